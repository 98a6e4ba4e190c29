"""An open loop: requests leave at their times, whatever has become of those before. What came back
is a trace with its outcomes, which the simulator can be held against."""

import json
import random
import re
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.simulating.trace import Arrival
from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, start, take

_TEXT = (
    "the sea and a ship with old sails went over cold water while gulls cried about fish bread "
    "stone light morning house river garden window letter street winter silver quiet"
)
_WORDS = tuple(re.findall(r"\w+", _TEXT))
_PATIENCE_S = 120.0
"""Beyond the last request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """When it leaves, and what it asks."""

    at: float
    words: int
    answer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A request as it went: seconds from the start of the run."""

    arrival: Arrival
    first_at: float
    ended_at: float

    @property
    def first_s(self) -> float:
        return self.first_at - self.arrival.at


Run = Sequence[Served]
"""All requests of one open loop."""


def plan(*, rate: float, seconds: float, seed: int, burst: float = 1.0) -> list[Planned]:
    """Random arrivals, `burst` times as many in the middle third; a few prompts are long."""
    dice = random.Random(seed)
    at, planned = 0.0, []
    while True:
        inside = seconds / 3 <= at < 2 * seconds / 3
        at += dice.expovariate(rate * (burst if inside else 1.0))
        if at >= seconds:
            return planned
        words = dice.randint(300, 600) if dice.random() < 0.05 else dice.randint(5, 120)
        answer = min(max(int(dice.lognormvariate(3.8, 0.7)), 4), 200)
        planned.append(Planned(at=at, words=words, answer=answer))


def mean_answer(planned: Sequence[Planned]) -> float:
    return sum(each.answer for each in planned) / len(planned)


def run_plan(server: ServerProcess, planned: Sequence[Planned], *, name: str) -> Run:
    """Send each at its time, and read all to their ends. Raises TimeoutError, and RuntimeError for
    one that was refused."""
    dice = random.Random(name)
    bodies = [_body(each, number, dice) for number, each in enumerate(planned)]
    calls: list[Call] = []
    ended: dict[str, float] = {}
    began = time.monotonic() + 0.1
    deadline = began + planned[-1].at + _PATIENCE_S
    with selectors.DefaultSelector() as selector:
        while len(calls) < len(planned) or selector.get_map():
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError(f"{len(selector.get_map())} streams unfinished")
            while len(calls) < len(planned) and began + planned[len(calls)].at <= now:
                call = Call(bodies[len(calls)], f"{name}-{len(calls)}")
                start(server.api, call)
                assert call.sock is not None
                selector.register(call.sock, selectors.EVENT_READ, call)
                calls.append(call)
            waits = began + planned[len(calls)].at - now if len(calls) < len(planned) else 1.0
            for key, _ in selector.select(timeout=max(waits, 0.0)):
                if not take(key.data):
                    ended[key.data.request_id] = time.monotonic()
                    selector.unregister(key.fileobj)
    return [
        _served(each, call, ended[call.request_id], began)
        for each, call in zip(planned, calls, strict=True)
    ]


def _body(planned: Planned, number: int, dice: random.Random) -> bytes:
    # A number first, so that no prefix cache answers for the engine.
    content = f"{number} {dice.random()} " + " ".join(dice.choices(_WORDS, k=planned.words))
    return chat_body(content, max_tokens=planned.answer, ignore_eos=True, seed=number)


def _served(planned: Planned, call: Call, ended_at: float, began: float) -> Served:
    usage = next((event["usage"] for event in call.events() if event.get("usage")), None)
    if call.status != 200 or usage is None or call.first_text_at is None:
        raise RuntimeError(f"not an answer: {json.dumps(bytes(call.raw[-300:]).decode())}")
    return Served(
        arrival=Arrival(
            at=planned.at,
            prompt_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
            max_tokens=planned.answer,
        ),
        first_at=call.first_text_at - began,
        ended_at=ended_at - began,
    )
