"""Predicted against actual first tokens, over what a real engine did: a recorded run, replayed."""

import json
import statistics
from pathlib import Path

from antiphon.actors.scheduling.forecast import Forecast
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass

RECORDED = Path(__file__).parent / "data" / "first_tokens.jsonl"
"""A server with the default model on two busy cores, slots and KV as below, first come, first
served: new chats, conversations that go on, long prompts, at times more than it can do. A line is
what happened and when, in milliseconds: `submit` has the prompt's length, the longest answer, and
how much of the prompt is that of which earlier one; `step` how long it took, and who got a first
token."""
SLOTS = 32
BLOCKS = 2452
SIZE = 32
LEARNING = 20


class Replay:
    """The queue as it was, and the forecast that is asked at each arrival."""

    def __init__(self) -> None:
        self.forecast = Forecast(step_tokens=128)
        self.forecast.restarted(kv_blocks=BLOCKS, block_size=SIZE)
        self.prompts: dict[int, list[int]] = {}
        self.longest: dict[int, int] = {}
        self.waiting: list[int] = []
        self.running: dict[int, int] = {}
        self.asked: dict[int, tuple[float, Prediction]] = {}
        self.errors: list[float] = []
        self.waited: list[float] = []

    def run(self) -> None:
        for line in RECORDED.read_text().splitlines():
            kind, at_ms, *rest = json.loads(line)
            getattr(self, kind)(at_ms / 1000, *rest)

    def submit(
        self, now: float, request: int, length: int, longest: int, before: int, shared: int
    ) -> None:
        own = [request * 100_000 + place for place in range(shared, length)]
        prompt = self.prompts.get(before, [])[:shared] + own
        self.prompts[request] = prompt
        self.longest[request] = longest
        prediction = self.forecast.predict(self.outlook(), prompt, longest, now)
        self.asked[request] = now, prediction
        self.waiting.append(request)

    def begin(self, now: float, request: int) -> None:
        self.waiting.remove(request)
        self.running[request] = self.blocks(request)
        self.forecast.begun(
            EngineRequest(request),
            WorkloadClass.INTERACTIVE,
            self.prompts[request],
            self.longest[request],
            now,
        )

    def step(self, now: float, took_ms: float, firsts: list[int]) -> None:
        self.forecast.stepped(took_ms / 1000, [EngineRequest(each) for each in firsts], now)
        for request in firsts:
            asked_at, prediction = self.asked[request]
            actual_s = now - asked_at
            self.forecast.observe_first_token(prediction, actual_s)
            if len(self.asked) > LEARNING:
                error = abs(prediction.ttft_s - actual_s) / actual_s
                self.errors.append(error)
                if prediction.wait_s:
                    self.waited.append(error)

    def released(self, now: float, request: int, tokens: int, reason: str) -> None:
        self.running.pop(request)
        self.forecast.ended(EngineRequest(request), tokens, whole=reason in {"stop", "length"})

    def blocks(self, request: int) -> int:
        return -(-(len(self.prompts[request]) + self.longest[request]) // SIZE)

    def outlook(self) -> Outlook:
        held = sum(self.running.values())
        return Outlook(
            free_slots=SLOTS - len(self.running),
            free_blocks=BLOCKS - held,
            block_size=SIZE,
            running=len(self.running),
            reserved_blocks=held,
            ahead=len(self.waiting),
            ahead_prompt_tokens=sum(len(self.prompts[each]) for each in self.waiting),
            ahead_blocks=sum(self.blocks(each) for each in self.waiting),
        )


def test_first_tokens_of_a_real_run_are_predicted_within_bounds():
    replay = Replay()

    replay.run()

    assert len(replay.errors) > 100
    assert len(replay.waited) > 50
    assert statistics.median(replay.errors) <= 0.20
    assert statistics.quantiles(replay.errors, n=10)[-1] <= 0.50
    assert statistics.median(replay.waited) <= 0.20


def test_the_same_run_gives_the_same_predictions():
    first, second = Replay(), Replay()

    first.run()
    second.run()

    assert first.asked == second.asked
