"""`python -m bench.context`: conversations that become long, on the real server and model.

Two scenes: three hundred turns, more than twice what the window holds, in which every prompt must
fit and every item must be accounted for, while the last turns are answered as soon as the
twentieth; and twenty turns of which each finds the last one's prompt in the engine's cache, against
the same prompt without one.
"""

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx2

from antiphon.settings import Settings
from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, run
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile, table
from bench.prose import prose

_LONG = 300
_SHORT = 20
_AROUND = 5
"""Turns before and after the twentieth that it is told by, too: a single one says little."""
_LAST = 40
_ROUNDS = 5
_TOKENS = 24
_WITHIN_S = 120.0
_READS = 'antiphon_store_units_total{kind="read"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One turn."""

    first_s: float
    prompt: int
    cached: int
    context: dict[str, Any]
    reads: float

    @property
    def first_shown(self) -> str | None:
        """The item that its turns begin with."""
        runs = [run for run in self.context["runs"] if run["kind"] in {"history", "input"}]
        return next((run.get("first") for run in runs if run["fate"] == "shown"), None)


class Talk:
    """One conversation."""

    def __init__(self, server: ServerProcess, seed: int, items: list[dict[str, Any]]) -> None:
        self._server = server
        self._dice = random.Random(seed)
        self._api = httpx2.Client(base_url=server.base_url, timeout=_WITHIN_S)
        self.id = self.post("/conversations", {"items": items})["id"]

    def turn(self, words: int, text: str | None = None) -> Told:
        """One answer to so many words."""
        body = {
            "model": Settings().model,
            "input": text or prose(self._dice, words),
            "conversation": self.id,
            "stream": True,
            "max_output_tokens": _TOKENS,
        }
        reads = _reads(self._server)
        call = Call(json.dumps(body).encode(), f"turn-{self.id}", path="/v1/responses")
        started = time.monotonic()
        run(self._server.api, [call], within_s=_WITHIN_S)
        if call.first_text_at is None:
            raise RuntimeError(f"no text: {bytes(call.raw[:500])!r}")
        response = call.events()[-1]["response"]
        usage = response["usage"]
        return Told(
            first_s=call.first_text_at - started,
            prompt=usage["input_tokens"],
            cached=usage["input_tokens_details"]["cached_tokens"],
            context=response["context"],
            reads=_reads(self._server) - reads,
        )

    def items(self) -> list[dict[str, Any]]:
        """All of it, as another conversation may begin."""
        found: list[dict[str, Any]] = []
        after: dict[str, Any] = {}
        while True:
            page = self._api.get(
                f"/conversations/{self.id}/items", params={"limit": 100, "order": "asc", **after}
            ).json()
            found += page["data"]
            if not page["has_more"]:
                break
            after = {"after": page["last_id"]}
        return [
            {"type": "message", "role": item["role"], "content": item["content"][0]["text"]}
            for item in found
        ]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._api.post(path, json=body).raise_for_status().json()


def long() -> list[Figure]:
    """Three hundred turns. The last of them take turns with those around the twentieth of other
    conversations, so that a machine whose speed drifts slows both alike."""
    told: list[Told] = []
    twentieth: list[float] = []
    with running_server() as server:
        talk = Talk(server, 1, [])
        told += [talk.turn(30) for _ in range(_LONG - _LAST)]
        while len(told) < _LONG:
            other = Talk(server, len(told), [])
            for _ in range(_SHORT - _AROUND):
                other.turn(30)
            for _ in range(2 * _AROUND):
                told.append(talk.turn(30))
                twentieth.append(other.turn(30).first_s)
    fits = all(
        each.prompt + each.context["reserved_for_answer"] <= each.context["window"] for each in told
    )
    last = [each.first_s for each in told[-_LAST:]]
    ratio = statistics.median(last) / statistics.median(twentieth)
    steps = sum(before.first_shown != after.first_shown for before, after in pairwise(told[1:]))
    return [
        must_be_true("300 turns: every prompt within its budget", fits),
        must_be_true(
            "300 turns: the manifest accounts for every item and token",
            all(_adds_up(each, number) for number, each in enumerate(told)),
        ),
        at_most(
            "300 turns: reads of the database per turn, median",
            statistics.median(each.reads for each in told),
            4,
        ),
        at_most("300 turns: first token of the last turns against turn 20", ratio, 1.3),
        explains(
            "300 turns: first token around turn 20", statistics.median(twentieth) * 1000, "ms"
        ),
        explains("300 turns: first token of the last 40", statistics.median(last) * 1000, "ms"),
        explains("300 turns: the same, p90", quantile(last, 0.9) * 1000, "ms"),
        explains("300 turns: longest prompt", max(each.prompt for each in told), "tokens"),
        explains("300 turns: steps in which old turns went", steps),
        explains("300 turns: part of the prompts that was cached", _cached(told[1:])),
    ]


def short() -> list[Figure]:
    """Twenty turns, and the twentieth once more where no cache knows it."""
    shares, ratios, warm, cold = [], [], [], []
    with running_server(ANTIPHON_CONTEXT_SUMMARIES="false") as server:
        Talk(server, 99, []).turn(100)
        for number in range(_ROUNDS):
            talk = Talk(server, number, [])
            told = [talk.turn(100) for _ in range(_SHORT - 1)]
            history = talk.items()
            question = f"And what of that comes {number} times?"
            told.append(talk.turn(0, question))
            # The same to the word, but for the first one, with which a cache begins.
            history[0]["content"] = f"Again{number} {history[0]['content'].partition(' ')[2]}"
            again = Talk(server, number, history[:20])
            again_told = _continued(again, history[20:], question)
            shares.append(_cached(told[1:]))
            warm.append(told[-1].first_s)
            cold.append(again_told.first_s)
            ratios.append(told[-1].first_s / again_told.first_s)
    return [
        at_least("20 turns: part of the prompts that was cached", min(shares), 0.85),
        at_most(
            "20 turns: first token of turn 20 against a cold one", statistics.median(ratios), 0.3
        ),
        explains("20 turns: first token of turn 20", statistics.median(warm) * 1000, "ms"),
        explains("20 turns: the same, cold", statistics.median(cold) * 1000, "ms"),
    ]


def _continued(talk: Talk, items: list[dict[str, Any]], question: str) -> Told:
    """The API takes twenty items at once."""
    while items:
        talk.post(f"/conversations/{talk.id}/items", {"items": items[:20]})
        items = items[20:]
    return talk.turn(0, question)


def _reads(server: ServerProcess) -> float:
    """Units of work that only read, whoever asked for them. What accepting a turn reads, with what
    it writes, is a unit that writes: three statements, which the tests of the store count."""
    lines = server.get("/metrics")[1].decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(_READS))


def _adds_up(told: Told, number: int) -> bool:
    runs = told.context["runs"]
    turns = [run for run in runs if run["kind"] in {"history", "input"}]
    texts = sum(run["shown_tokens"] for run in runs)
    return (
        sum(run["items"] for run in turns) == 2 * number + 1
        and texts + told.context["template_tokens"] == told.context["prompt_tokens"]
    )


def _cached(told: list[Told]) -> float:
    return sum(each.cached for each in told) / sum(each.prompt for each in told)


_SCENES = {"long": long, "short": short}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.context", description=__doc__)
    parser.add_argument("--only", choices=_SCENES, action="append", help="leave out the others")
    options = parser.parse_args()
    figures: list[Figure] = []
    for name in options.only or _SCENES:
        figures += _SCENES[name]()
        print(f"{name}: measured", file=sys.stderr, flush=True)
    print(table(figures))
    return 0 if all(figure.holds is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
