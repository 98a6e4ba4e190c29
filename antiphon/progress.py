"""How far long work has come, as whoever does it tells whoever waits: a share from 0 to 1. Nobody
who does it knows how that is shown."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Told = Callable[[float], None]

T = TypeVar("T")


def untold(share: float) -> None:
    """Nobody waits."""


def telling(items: Iterable[T], total: int, told: Told) -> Iterator[T]:
    """The items, and after each how many of `total` there were."""
    for number, item in enumerate(items, 1):
        yield item
        told(number / total)
