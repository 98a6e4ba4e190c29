"""Conversations with a secret word each, on a whole pool whose engine is struck meanwhile: who ever
says another's word has been told it by the engine, the scheduler or a session."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from antiphon.events import CancelCause, Message, Sampling
from antiphon.ports import EngineLauncher, EngineLink
from antiphon.testing.history import TurnRecord, check_one_ending
from antiphon.testing.rig import Rig

TURNS = 2
LEAVES = 0.25
_LONGEST = 28

Strike = Callable[[], Awaitable[None]]


@dataclass
class KeepingLauncher:
    """An EngineLauncher that knows what it has launched, and can end it as the kernel would."""

    launcher: EngineLauncher
    links: list[EngineLink] = field(default_factory=list)

    async def launch(self) -> EngineLink:
        self.links.append(await self.launcher.launch())
        return self.links[-1]

    async def kill(self) -> None:
        """SIGKILL to the host. Its driver knows nothing of it."""
        await trio.lowlevel.checkpoint()
        self.links[-1].kill()


@dataclass(slots=True)
class Canaries:
    """What became of them. `own` and `foreign` count answers by whose word they hold."""

    records: list[TurnRecord] = field(default_factory=list)
    own: int = 0
    foreign: int = 0
    strikes: int = 0
    _ended: trio.Event = field(default_factory=trio.Event)

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(record.outcome for record in self.records)

    @property
    def violations(self) -> list[str]:
        ended = [record for record in self.records if not record.hung_up]
        return [broken for record in ended for broken in check_one_ending(record)]

    def count(self, record: TurnRecord, word: str, words: set[str]) -> None:
        text = record.text.get(0, "")
        self.foreign += any(other in text for other in words if other != word)
        self.own += record.outcome == "completed" and word in text
        self._ended.set()
        self._ended = trio.Event()

    async def until(self, turns: int) -> None:
        """So many turns are over."""
        while sum(record.ended_at is not None or record.hung_up for record in self.records) < turns:
            await self._ended.wait()


async def sing(rig: Rig, conversations: int, strike: Strike, *, strikes: int = 2) -> Canaries:
    """All at once; a quarter of the clients leave at a random moment, and the engine is struck when
    so many turns are over."""
    dice = random.Random(conversations)
    words = [str(word) for word in dice.sample(range(10**6, 10**7), conversations)]
    canaries = Canaries()

    async def conversation(word: str, chance: random.Random) -> None:
        history: tuple[Message, ...] = ()
        for number in range(TURNS):
            leave_after = chance.randrange(12) if chance.random() < LEAVES else None
            history += (Message(role="user", content=f"Repeat the number {word}."),)
            record = await turn(rig, f"{word}-{number}", history, canaries, leave_after)
            canaries.count(record, word, set(words))
            if record.outcome == "completed":
                history += (Message(role="assistant", content=record.text.get(0, "")),)

    async def strikes_between() -> None:
        for number in range(strikes):
            await canaries.until((number + 1) * TURNS * conversations // (strikes + 2))
            canaries.strikes += 1
            await strike()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(strikes_between)
        for word in words:
            nursery.start_soon(conversation, word, random.Random(word))
    return canaries


async def turn(
    rig: Rig,
    name: str,
    messages: tuple[Message, ...],
    canaries: Canaries,
    leave_after: int | None,
) -> TurnRecord:
    """Hang up after so many characters."""
    record = TurnRecord(name=name, choices=1, opened_at=trio.current_time())
    canaries.records.append(record)
    sampling = Sampling(temperature=0.0, seed=1)
    stream = await rig.open(name, messages=messages, max_tokens=_LONGEST, sampling=sampling)
    while not record.terminal:
        if leave_after is not None and len(record.text.get(0, "")) >= leave_after:
            record.hung_up = True
            stream.cancel(CancelCause.DISCONNECT)
            return record
        record.add(await stream.next_event(), trio.current_time())
    return record
