"""A bug that several sessions run into costs their turns and nobody else anything."""

from collections.abc import Iterator

import structlog.testing
import trio
import trio.testing

from antiphon.errors import ActorCrashed
from antiphon.ids import ModelName
from antiphon.supervision.tree import Node
from antiphon.testing.rig import read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.turn_events import Delta, TurnEnded, TurnEvent, TurnFailed

SESSIONS = 12
DOOMED = frozenset({"session-2", "session-4", "session-6", "session-8"})
"""Turns go to the two shards by turns, so that these are all in the first one."""
WORDS = [f"{number} " for number in range(60)]


class Buggy(RecordingTelemetry):
    """Crashes some sessions at their thirtieth word: each has a task of its own, named by path."""

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        super().tokens_generated(model, tokens, seconds)
        name = trio.lowlevel.current_task().name.rpartition("/")[2]
        if name in DOOMED:
            self.words[name] = self.words.get(name, 0) + 1
            if self.words[name] == 30:
                raise RuntimeError("a bug")

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[str, int] = {}


def nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for child in tree.children:
        yield from nodes(child)


def text_of(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


async def test_four_sessions_that_crash_within_a_second_cost_their_turns_and_nothing_else(
    autojump_clock: trio.testing.MockClock,
):
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=scripted_capabilities(slots=SESSIONS), answer=lambda _: WORDS, step_s=0.01
        )
    )
    async with running_rig(launcher, telemetry=Buggy()) as rig:
        told: dict[str, list[TurnEvent]] = {}
        with structlog.testing.capture_logs() as logs:
            async with trio.open_nursery() as nursery:
                for number in range(1, SESSIONS + 1):
                    stream = await rig.open(str(number), max_tokens=len(WORDS))

                    async def read(name=f"session-{number}", stream=stream) -> None:
                        told[name] = await read_all(stream)

                    nursery.start_soon(read)
        await trio.sleep(1)

        crashes = [line for line in logs if line["event"] == "child_exited"]
        assert {line["path"].split("/")[1] for line in crashes} == {"shard-0", "shard-1"}
        crashed = {line["path"] for line in crashes if line["exit"] == "crashed"}
        assert crashed == {f"root/shard-0/{name}" for name in DOOMED}
        for name, events in told.items():
            if name in DOOMED:
                assert isinstance(events[-1], TurnFailed), name
                assert isinstance(events[-1].error, ActorCrashed), name
                assert "".join(WORDS).startswith(text_of(events)), name
            else:
                assert isinstance(events[-1], TurnEnded), name
                assert text_of(events) == "".join(WORDS), name
        tree = rig.tree.snapshot()
        assert {node.incarnation for node in nodes(tree)} == {1}
        assert {node.restarts for node in nodes(tree)} == {0}
        assert all(not node.restarts_in_window for node in nodes(tree))
        assert [line for line in logs if line["event"].startswith("restart_")] == []
        assert (rig.running, rig.waiting, rig.status.tokens) == (0, 0, {})
        assert rig.directory.open_turns == 0
        assert isinstance((await read_all(await rig.open("after")))[-1], TurnEnded)
