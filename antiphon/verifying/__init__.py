"""Whether an engine keeps the contract, asked of the engine itself: `antiphon engines verify`."""
