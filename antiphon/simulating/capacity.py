"""How many replicas it takes: the fewest with which a load is within its objectives."""

import math
from collections.abc import Callable

import msgspec

from antiphon.errors import SettingsError
from antiphon.simulating.report import Report, meets

_STEP = 1.4
"""Outwards from the first guess; then halved, down to `_CLOSE`."""
_CLOSE = 1.02
_MOST_TRIES = 24


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One number of replicas, and the smallest share of any class that was within its objective."""

    replicas: int
    good_share: float
    enough: bool


class Found(msgspec.Struct, frozen=True, kw_only=True):
    replicas: int
    report: Report
    tries: tuple[Try, ...]


def fewest(run: Callable[[int], Report], share: float, *, guess: int) -> Found:
    """The fewest replicas, within 2 %, with which `share` of each class is within its objectives;
    `run` simulates a number of them. Raises SettingsError when no number is enough, as where one
    request alone is too slow."""
    reports: dict[int, Report] = {}

    def enough(replicas: int) -> bool:
        if replicas not in reports:
            if len(reports) >= _MOST_TRIES:
                raise SettingsError("simulate", f"not within its objectives on {replicas} replicas")
            reports[replicas] = run(replicas)
        return meets(reports[replicas], share)

    high = max(guess, 1)
    while not enough(high):
        high = math.ceil(high * _STEP)
    low = high
    while low > 1 and enough(low):
        high = low
        low = math.floor(low / _STEP)
    if low == 1 and enough(1):
        high = 1
    while high - low > 1 and high > low * _CLOSE:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Found(
        replicas=high,
        report=reports[high],
        tries=tuple(
            Try(
                replicas=replicas,
                good_share=min(
                    (each.good_share for each in report.classes if each.objective_s), default=0.0
                ),
                enough=meets(report, share),
            )
            for replicas, report in sorted(reports.items())
        ),
    )
