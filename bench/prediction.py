"""`python -m bench.prediction`: predicted against actual time to first token, on the real server
with the real model, under a mixed load that comes whatever becomes of it.

New chats, conversations that go on, long documents and background jobs arrive at random at six and
at nine tenths of what the server can do, with bursts of twice that much. Predictions are those by
which the router decided, from its log; actual times are the client's, HTTP included. Nothing is
refused for being late, so that also long waits are compared.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body
from bench.crowd import Crowd, Visit, attend
from bench.figure import Figure, at_least, at_most, explains, quantile, table
from bench.prose import prose

_CALLERS = 24
"""Those that ask again and again, to find what the server can do."""
_LOADS = (0.6, 0.9, 2.0, 0.6, 0.9, 2.0, 0.3)
"""Parts of that: calm, busy, a burst; the last lets the burst drain."""
_PART_S = (20.0, 20.0, 5.0, 20.0, 20.0, 5.0, 5.0)
_WARM_S, _MEASURE_S = 8.0, 20.0
_PATIENCE_S = 60.0
_TURNS = 4
_GOES_ON = 0.6
_CHATS = 0.75
_PER_ARRIVAL = 1 - _CHATS + _CHATS * sum(_GOES_ON**turn for turn in range(_TURNS))
"""Requests for each visit that comes by itself, conversations' later turns among them."""
_SHOWN = (
    "antiphon_first_token_prediction_error_ratio_bucket",
    "antiphon_predicted_first_token_seconds",
    "antiphon_prefill_tokens_per_second",
    "antiphon_decode_tokens_per_second",
)
"""What the server itself says of its predictions, for the curious."""


@dataclass(slots=True)
class People:
    """Makes the visits of the mix, the same ones for the same seed."""

    dice: random.Random
    name: str
    number: int = 0
    made: list[Visit] = field(default_factory=list)

    def visit(self, at_s: float) -> Visit:
        kind = self.dice.random()
        if kind < _CHATS:
            return self._chat(at_s, [], self.dice.choice((5, 10, 20, 40, 80)), _TURNS)
        if kind < 0.83:
            question = self._text("Summarise: ", self.dice.choice((400, 800, 1500)))
            return self._new(at_s, "document", [question], 64)
        job = self._text("A title for: ", self.dice.choice((60, 120, 240)))
        return self._new(at_s, "background", [job], 24, service_tier="flex")

    def _chat(self, at_s: float, before: list[dict[str, str]], words: int, turns: int) -> Visit:
        messages = [*before, self._text("", words)]
        group = "conversation" if before else "chat"
        visit = self._new(at_s, group, messages, self.dice.choice((16, 32, 64, 96, 128)))
        if turns > 1:
            visit.then = partial(self._again, messages, turns - 1)
        return visit

    def _again(self, messages: list[dict[str, str]], turns: int, visit: Visit) -> Visit | None:
        if visit.call.status != 200 or self.dice.random() > _GOES_ON:
            return None
        answer = {"role": "assistant", "content": visit.call.text()}
        pause_s = self.dice.expovariate(0.5)
        return self._chat(pause_s, [*messages, answer], self.dice.choice((5, 10, 30)), turns)

    def _text(self, before: str, words: int) -> dict[str, str]:
        text = prose(self.dice, words)
        return {"role": "user", "content": f"{before}{text} {self.dice.randrange(10**6)}"}

    def _new(
        self,
        at_s: float,
        group: str,
        messages: list[dict[str, str]],
        max_tokens: int,
        **fields: object,
    ) -> Visit:
        self.number += 1
        body = chat_body("", messages=messages, max_tokens=max_tokens, **fields)
        return Visit(at_s=at_s, call=Call(body, f"{self.name}-{self.number}"), group=group)


@dataclass(frozen=True, slots=True)
class Compared:
    """One request: which group, what was predicted, what it was, in seconds."""

    group: str
    predicted_s: float
    actual_s: float

    @property
    def error(self) -> float:
        return abs(self.predicted_s - self.actual_s) / self.actual_s


def capacity(server: ServerProcess) -> float:
    """Requests of the mix a second, when there is always somebody. It also teaches the server its
    own rates, as a day of service would."""
    people = People(random.Random(1), "full")

    def again(before: Visit, then: Callable[[Visit], Visit | None] = lambda _: None) -> Visit:
        visit = then(before) or people.visit(0.0)
        visit.at_s = 0.0  # who goes on with a conversation doesn't think here
        visit.then = partial(again, then=visit.then)
        return visit

    callers = [again(Visit(at_s=0.0, call=Call(b"", ""))) for _ in range(_CALLERS)]
    crowd = attend(server.api, callers, for_s=_WARM_S + _MEASURE_S, patience_s=_PATIENCE_S)
    window = (crowd.began + _WARM_S, crowd.began + _WARM_S + _MEASURE_S)
    done = [visit for visit in crowd.visits if window[0] <= (visit.over_at or 0.0) < window[1]]
    return len(done) / _MEASURE_S


def loaded(server: ServerProcess, rate: float) -> Crowd:
    """The loads, one after another, as parts of `rate`."""
    people = People(random.Random(2), "load")
    visits = []
    at_s = began_s = 0.0
    for load, part_s in zip(_LOADS, _PART_S, strict=True):
        arrivals = load * rate / _PER_ARRIVAL
        while (at_s := at_s + people.dice.expovariate(arrivals)) < began_s + part_s:
            visits.append(people.visit(at_s))
        at_s = began_s = began_s + part_s
    return attend(server.api, visits, for_s=began_s, patience_s=_PATIENCE_S)


def compared(server: ServerProcess, crowd: Crowd) -> list[Compared]:
    """Those that had a first token, and for whom one was predicted."""
    predicted = {
        line["request_id"]: line["predicted_s"]
        for line in server.log.events("turn_routed")
        if line["predicted_s"] is not None
    }
    return [
        Compared(visit.group, predicted[visit.call.request_id], visit.first_text_s)
        for visit in crowd.visits
        if visit.first_text_s is not None and visit.call.request_id in predicted
    ]


def figures(pairs: list[Compared], crowd: Crowd, rate: float) -> list[Figure]:
    errors = [pair.error for pair in pairs]
    groups = sorted({pair.group for pair in pairs})
    each = (
        (
            explains(f"{group}: median error", quantile(of, 0.5)),
            explains(f"{group}: p90 error", quantile(of, 0.9)),
        )
        for group in groups
        if (of := [pair.error for pair in pairs if pair.group == group])
    )
    actual = [pair.actual_s for pair in pairs]
    return [
        explains("what the server can do", rate, "requests/s"),
        at_least("requests compared", len(pairs), 80),
        explains("answered, part of all", len(pairs) / max(len(crowd.visits), 1)),
        explains("time to first token, p50", quantile(actual, 0.5) * 1000, "ms"),
        explains("time to first token, p99", quantile(actual, 0.99) * 1000, "ms"),
        at_most("prediction error, median", quantile(errors, 0.5), 0.20),
        at_most("prediction error, p90", quantile(errors, 0.9), 0.50),
        explains("predicted over actual, median", quantile([_ratio(p) for p in pairs], 0.5)),
        *chain.from_iterable(each),
    ]


def _ratio(pair: Compared) -> float:
    return pair.predicted_s / pair.actual_s


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.prediction", description=__doc__)
    parser.add_argument("--pairs", type=Path, help="save what was compared as JSON")
    options = parser.parse_args()
    # Where a turn went without being moved is in the log for those who look for it.
    with running_server(
        ANTIPHON_LOG_LEVEL="debug",
        ANTIPHON_SCHEDULING_INTERACTIVE_OBJECTIVE_S="0",
        ANTIPHON_SCHEDULING_TOOL_OBJECTIVE_S="0",
        ANTIPHON_SCHEDULING_LONG_OBJECTIVE_S="0",
    ) as server:
        rate = capacity(server)
        print(f"{rate:.2f} requests/s", file=sys.stderr, flush=True)
        crowd = loaded(server, rate)
        pairs = compared(server, crowd)
        shown = server.get("/metrics")[1].decode()
    if options.pairs:
        rows = [[pair.group, pair.predicted_s, pair.actual_s] for pair in pairs]
        options.pairs.write_text(json.dumps(rows))
    sys.stderr.writelines(f"{line}\n" for line in shown.splitlines() if line.startswith(_SHOWN))
    result = figures(pairs, crowd, rate)
    print(table(result))
    return 0 if all(figure.holds is not False for figure in result) else 1


if __name__ == "__main__":
    sys.exit(main())
