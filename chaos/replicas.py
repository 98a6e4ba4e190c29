"""`make chaos-replicas`: a real server in front of two real ones, and one is killed under load.

    python -m chaos.replicas

Conversations must stay with their replica; when it is killed, what has no token yet must be
answered by the other, what has must end as interrupted, and no conversation of the other may move.
Ends with status 1 when it isn't so.
"""

import argparse
import json
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from antiphon.settings import Settings
from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body, run
from bench.crowd import Crowd, Visit, attend

_CONVERSATIONS = 40
_BUSY = 24
_TOKENS = 48
_SLOTS = "16"
_STEADY_S = 20.0
_KILL_AFTER_S = 8.0
_UNDER_FIRE_S = 20.0
_PATIENCE_S = 60.0
_AFFINITY = 0.95
_ONE_S = 30.0
_ANSWERED = {"whole", "ended by the policy"}
_HONEST = _ANSWERED | {"interrupted after its first token"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    front: ServerProcess
    replicas: tuple[ServerProcess, ServerProcess]

    def counters(self, name: str) -> dict[str, int]:
        """Of each replica, by its name, as the front counts it."""
        replicas = json.loads(self.front.get("/ops/replicas")[1])
        return {each["name"]: each[name] for each in replicas}


@contextmanager
def running_fleet() -> Iterator[Fleet]:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(running_server(ANTIPHON_ENGINE_SLOTS=_SLOTS)) for _ in range(2)
        )
        front = stack.enter_context(
            running_server(
                ANTIPHON_ENGINE_KIND="upstream",
                ANTIPHON_UPSTREAM_URLS=f"{first.base_url},{second.base_url}",
                ANTIPHON_UPSTREAM_MODEL=Settings().model,
                ANTIPHON_ENGINE_SLOTS=str(2 * int(_SLOTS)),
                ANTIPHON_UPSTREAM_SLOTS=str(2 * int(_SLOTS)),
            )
        )
        yield Fleet(front=front, replicas=(first, second))


def ask(conversation: int, number: int, tokens: int) -> Call:
    body = chat_body(
        f"Conversation {conversation}, question {number}: tell me about the sea.",
        prompt_cache_key=f"conversation-{conversation}",
        max_tokens=tokens,
        min_tokens=tokens,
    )
    return Call(body, f"c{conversation}-{number}")


def homes(fleet: Fleet) -> dict[int, str]:
    """Which replica answers each conversation, asked one after another."""
    found = {}
    for conversation in range(_CONVERSATIONS):
        before = fleet.counters("started")
        call = ask(conversation, 0, 1)
        run(fleet.front.api, [call], within_s=_ONE_S)
        after = fleet.counters("started")
        changed = [name for name, count in after.items() if count > before.get(name, 0)]
        if call.status != 200 or not changed:
            raise RuntimeError(f"conversation {conversation}: {bytes(call.raw[:300])!r}")
        found[conversation] = changed[-1]
    return found


def loops(made: Callable[[int, Call], None] = lambda conversation, call: None) -> list[Visit]:
    """`made` is told of each call before it is sent."""

    def visit(conversation: int, number: int) -> Visit:
        def then(_: Visit) -> Visit:
            return visit((conversation + _BUSY) % _CONVERSATIONS, number + 1)

        call = ask(conversation, number, _TOKENS)
        made(conversation, call)
        return Visit(0.0, call, "busy", then=then)

    return [visit(number, 1) for number in range(_BUSY)]


def ending(visit: Visit) -> str:
    """How an answer ended, as its client knows it."""
    call = visit.call
    if call.status != 200:
        return f"refused {call.status}"
    spoken = "after its first token" if call.first_text_at is not None else "before any token"
    if any("error" in event for event in call.events()):
        return f"interrupted {spoken}"
    if b"data: [DONE]" not in call.raw:
        return f"cut without a word {spoken}"
    if b'"finish_reason":"content_filter"' in call.raw:
        return "ended by the policy"
    tokens = call.completion_tokens()
    return "whole" if tokens == _TOKENS else f"over after {tokens} tokens"


def under_fire(fleet: Fleet, homes: dict[int, str]) -> tuple[Crowd, float]:
    """The load, and when the first replica was killed: while one of its conversations waits for a
    first token, which is a few hundredths of a second, and nobody could hit by chance."""
    port = f":{fleet.replicas[0].api[1]}"
    its_own: list[Call] = []
    killed_at: list[float] = []

    def made(conversation: int, call: Call) -> None:
        if homes[conversation].endswith(port):
            its_own.append(call)

    def kill(crowd: Crowd) -> bool:
        now = time.monotonic()
        if not killed_at and now >= crowd.began + _KILL_AFTER_S:
            waits = (call.sock is not None and call.first_text_at is None for call in its_own)
            if any(waits):
                fleet.replicas[0].process.send_signal(signal.SIGKILL)
                killed_at.append(now)
        return False

    crowd = attend(
        fleet.front.api, loops(made), for_s=_UNDER_FIRE_S, patience_s=_PATIENCE_S, until=kill
    )
    return crowd, killed_at[0] if killed_at else math.inf


def main() -> int:
    argparse.ArgumentParser(prog="chaos.replicas", description=__doc__).parse_args()
    problems: list[str] = []
    with running_fleet() as fleet:
        before = homes(fleet)
        again = homes(fleet)
        started, moved = fleet.counters("started"), fleet.counters("moved")
        attend(fleet.front.api, loops(), for_s=_STEADY_S, patience_s=_PATIENCE_S)
        asked = sum(fleet.counters("started").values()) - sum(started.values())
        strayed = sum(fleet.counters("moved").values()) - sum(moved.values())
        crowd, killed_at = under_fire(fleet, before)
        after = homes(fleet)
    gone = next(iter(set(before.values()) - set(after.values())), "")
    endings = Counter(map(ending, crowd.visits))
    stayed = sum(before[each] == again[each] for each in before)
    others = [each for each, home in before.items() if home != gone]
    away = [each for each in others if after[each] != before[each]]
    waiting = [
        visit
        for visit in crowd.visits
        if visit.due_at < killed_at < (visit.call.first_text_at or killed_at)
    ]
    affinity = 1 - strayed / max(asked, 1)
    print(f"conversations that stayed, one by one      {stayed} of {_CONVERSATIONS}")
    print(f"affinity under a steady load               {affinity:.1%} of {asked} requests")
    print(f"answers while a replica was killed         {dict(endings)}")
    print(
        f"without a token at the kill                {len(waiting)}, "
        f"answered: {sum(ending(each) in _ANSWERED for each in waiting)}"
    )
    print(f"conversations of the one that was killed   {_CONVERSATIONS - len(others)}")
    print(f"of the other's {len(others)} conversations moved      {len(away)}")
    if stayed != _CONVERSATIONS or affinity < _AFFINITY:
        problems.append("conversations do not stay where they are")
    if not gone or away:
        problems.append("others' conversations moved")
    odd = [visit for visit in crowd.visits if ending(visit) not in _HONEST]
    if odd or crowd.unfinished:
        for visit in odd:
            print(f"{visit.call.request_id}: {ending(visit)}: …{bytes(visit.call.raw[-400:])!r}")
        problems.append("an answer ended in another way than whole or as interrupted")
    if not waiting or any(ending(each) not in _ANSWERED for each in waiting):
        problems.append("what had no token yet was not answered by the other replica")
    if not endings["interrupted after its first token"]:
        problems.append("nothing ran on the one that was killed")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
