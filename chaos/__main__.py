"""`make chaos`: many seeds of the simulated server under attack, with every rule checked.

    python -m chaos --seeds 50 --minutes 10

Ends with status 1 and the seed when a rule is broken; the same seed repeats it event for event.
"""

import argparse
import logging
import sys
from collections import Counter

import structlog

from antiphon.testing.simulation import simulate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--minutes", type=float, default=10.0, help="virtual, of each")
    parser.add_argument("--story", action="store_true", help="print the event log of each seed")
    options = parser.parse_args()
    # The server under attack reports every crash; here they are expected.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    turns: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    sites: Counter[str] = Counter()
    broken = 0
    for seed in range(options.first, options.first + options.seeds):
        outcome = simulate(seed, minutes=options.minutes)
        turns += outcome.outcomes
        faults += outcome.faults
        sites += outcome.sites
        if options.story:
            print("\n".join(outcome.story))
        for violation in outcome.violations:
            print(f"seed {seed}: {violation}")
        broken += bool(outcome.violations)
        print(f"seed {seed}: {outcome.outcomes.total()} turns, {outcome.faults.total()} faults")
        sys.stdout.flush()
    print(f"{options.seeds} seeds of {options.minutes:g} virtual minutes, {broken} with violations")
    print("turns:", ", ".join(f"{name} {count}" for name, count in turns.most_common()))
    print("faults:", ", ".join(f"{name} {count}" for name, count in faults.most_common()))
    print("fault sites:", ", ".join(f"{name} {count}" for name, count in sites.most_common()))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
