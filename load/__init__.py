"""Load on a running server, as people and programs make it."""
