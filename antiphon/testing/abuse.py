"""A detection on clocks that a test moves, and the people, programs and farms that come to it."""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar, cast

import msgspec

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.detection import Change, Detection
from antiphon.actors.abuse.signals import Action, Kind, Signal, Subject
from antiphon.ids import KeyId, UserId
from antiphon.storage import Store
from antiphon.testing.stores import ScriptedStore

R = TypeVar("R")

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
JAILBREAK = "jailbreak-phrases"
_EPOCH_MS = 1_800_000_000_000


class Direct:
    """A way to a scripted store without an actor."""

    def __init__(self, store: ScriptedStore) -> None:
        self.store = store

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        return await work(cast("Store", self.store))


class Clock:
    """Seconds on one hand, and the wall's milliseconds on the other."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return _EPOCH_MS + round(self.now * 1000)


@dataclass
class Bench:
    """A detection, and whatever it told."""

    settings: AbuseSettings = field(default_factory=AbuseSettings)
    clock: Clock = field(default_factory=Clock)
    changes: list[Change] = field(default_factory=list)
    counted: list[Signal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.detection = Detection(
            lambda: self.settings,
            clock=self.clock,
            now_ms=self.clock.wall_ms,
            counted=self.counted.append,
            told=self.changes.append,
        )

    def configure(self, **settings: object) -> None:
        self.settings = msgspec.structs.replace(self.settings, **settings)

    def action(self, kind: Kind, id: str) -> Action:
        return self.detection.standing(Subject(kind, id)).action

    def score(self, kind: Kind, id: str) -> float:
        return self.detection.score(Subject(kind, id))

    def acted(self) -> set[tuple[str, Action]]:
        """Every action that ever began, by whom it was against."""
        return {(change.subject.id, change.after.action) for change in self.changes}

    def send(
        self,
        user: str,
        *,
        address: str | None = None,
        plan: str | None = None,
        rule: str | None = None,
        category: str | None = None,
    ) -> Action:
        """One prompt, blocked by `rule` if there is one; refused where they are suspended. What is
        done against the user afterwards."""
        if self.action(Kind.USER, user) is not Action.SUSPEND:
            name = UserId(user)
            self.detection.came(name, KeyId(f"key of {user}"), plan, address)
            if rule is not None:
                self.detection.prompt_blocked(name, address, rule, category)
            self.detection.answered(name, address)
        return self.action(Kind.USER, user)


def days_of_a_person(rng: random.Random, days: float) -> Iterator[float]:
    """The pauses between the prompts of somebody who talks to a model most of the day, in seconds:
    some dozen in a sitting, as unequal as reading and writing are."""
    spent = 0.0
    while spent < days * DAY_S:
        for _ in range(rng.randint(3, 30)):
            pause = min(rng.lognormvariate(3.6, 1.0), 500.0)
            spent += pause
            yield pause
        pause = rng.uniform(0.2, 6.0) * HOUR_S
        spent += pause
        yield pause
