"""`python -m bench.lanes`: who waits for whom, on the real server with the real model.

Three scenes: people chatting while long documents and background jobs fill the pool, against first
come, first served; a small tenant beside one that sends fifty times as much; two minutes of three
times what the server can do. The chatting people's prompts are a few hundred tokens, as those of a
conversation are, and all different, so that no prefix cache answers for the scheduler.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

import psutil

from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body
from bench.crowd import Crowd, Visit, attend
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile, table
from bench.prose import prose

_CHAT_WORDS = 400
_LONG_WORDS = 2500
_JOB_WORDS = 60
_CHATS = 60
_TAKE_ALL = {
    "ANTIPHON_QUEUE_DEADLINE_S": "600",
    **{f"ANTIPHON_SCHEDULING_{lane}_OBJECTIVE_S": "0" for lane in ("INTERACTIVE", "LONG")},
}
"""Nothing is refused for being late: what is compared is who waits."""
_PATIENCE_S = 90.0


class Speaker:
    """Makes calls, each with a prompt of its own."""

    def __init__(self, seed: int, name: str) -> None:
        self._dice = random.Random(seed)
        self._name = name
        self._number = 0

    def call(self, words: int, tokens: int, *, key: str | None = None, **fields: object) -> Call:
        self._number += 1
        text = prose(self._dice, words)
        body = chat_body(
            f"{self._number}: {text}", max_tokens=tokens, ignore_eos=True, seed=1, **fields
        )
        return Call(body, f"{self._name}-{self._number}", key=key)

    def arrivals(
        self, count: int, rate: float, make: Callable[[], Call], group: str
    ) -> list[Visit]:
        """Poisson arrivals, `rate` a second."""
        at_s, visits = 0.0, []
        for _ in range(count):
            at_s += self._dice.expovariate(rate)
            visits.append(Visit(at_s=at_s, call=make(), group=group))
        return visits

    def during(
        self, seconds: float, rate: float, group: str, key: str, *, after_s: float = 0.0
    ) -> list[Visit]:
        """Poisson arrivals of short requests for so many seconds."""
        call = partial(self.call, _JOB_WORDS, _TOKENS, key=key)
        visits = self.arrivals(round(seconds * rate), rate, call, group)
        for visit in visits:
            visit.at_s += after_s
        return visits

    def loop(self, make: Callable[[], Call], group: str, *, at_s: float = 0.0) -> Visit:
        """One caller who asks again as soon as there is an answer."""

        def again(_: Visit) -> Visit:
            return Visit(at_s=0.0, call=make(), group=group, then=again)

        return Visit(at_s=at_s, call=make(), group=group, then=again)


def crowded() -> list[Figure]:
    """Interactive chats beside two readers of long documents and forty background jobs."""
    figures: list[Figure] = []
    p99: dict[str, float] = {}
    progress = 0
    for policy in ("fair", "fcfs"):
        with running_server(None, ANTIPHON_SCHEDULING_POLICY=policy, **_TAKE_ALL) as server:
            if policy == "fair":
                speaker = Speaker(1, "alone")
                chats = _chats(speaker, rate=0.8)
                alone = attend(
                    server.api,
                    chats,
                    for_s=1e6,
                    until=_all_of(chats, "chat"),
                    patience_s=_PATIENCE_S,
                )
                p99["alone"] = _first_p99(alone, "chat")
            speaker = Speaker(2, policy)
            chats = _chats(speaker, rate=0.8, after_s=20.0)
            busy = [
                *(speaker.loop(partial(speaker.call, _LONG_WORDS, 64), "long") for _ in range(3)),
                *(
                    speaker.loop(
                        partial(speaker.call, _JOB_WORDS, 400, service_tier="flex"), "background"
                    )
                    for _ in range(40)
                ),
            ]
            crowd = attend(
                server.api, [*chats, *busy], for_s=1e6, until=_all_of(chats, "chat"), patience_s=1.0
            )
            _must_have_answered(crowd, "chat")
            p99[policy] = _first_p99(crowd, "chat")
            if policy == "fair":
                progress = len(crowd.of("background"))
                figures += [
                    explains("crowded: chat p50 alone", _first(alone, "chat", 0.5) * 1000, "ms"),
                    explains("crowded: chat p50", _first(crowd, "chat", 0.5) * 1000, "ms"),
                    explains("crowded: long answers meanwhile", len(crowd.of("long"))),
                ]
    return [
        *figures,
        explains("crowded: chat p99 alone", p99["alone"] * 1000, "ms"),
        at_most("crowded: chat p99 against alone", p99["fair"] / p99["alone"], 2),
        at_least("crowded: the same, first come first served", p99["fcfs"] / p99["alone"], 5),
        at_least("crowded: background answers meanwhile", progress, 1),
    ]


def flood() -> list[Figure]:
    """One message every two seconds, beside a tenant that always has fifty under way."""
    p99 = {}
    with keyed_server("small", "large", environment=_TAKE_ALL) as (server, keys):
        for scene in ("alone", "beside"):
            speaker = Speaker(3, scene)
            chats = _chats(speaker, rate=0.5, key=keys["small"])
            others = [
                speaker.loop(partial(speaker.call, _JOB_WORDS, 48, key=keys["large"]), "large")
                for _ in range(50 if scene == "beside" else 0)
            ]
            crowd = attend(
                server.api,
                [*chats, *others],
                for_s=1e6,
                until=_all_of(chats, "chat"),
                patience_s=1.0,
            )
            _must_have_answered(crowd, "chat")
            p99[scene] = _first_p99(crowd, "chat")
            large = len(crowd.of("large"))
    return [
        explains("flood: the small tenant's p99 alone", p99["alone"] * 1000, "ms"),
        explains("flood: answers of the large tenant meanwhile", large),
        at_most("flood: the small tenant's p99 against alone", p99["beside"] / p99["alone"], 1.5),
    ]


_OVERLOAD_S = 120.0
_CAPACITY_S = 30.0
_TOKENS = 48
_OBJECTIVE_S = 2.0
"""`scheduling.interactive_objective_s`, as it comes."""
_PLANS = """
[plans.free]
priority = 0
[plans.paid]
priority = 1
"""


def overload() -> list[Figure]:
    """Three times what the server can do, a fifth of it from people who pay; then an ordinary day,
    from five seconds after the end."""
    with keyed_server("free", "paid", settings=_PLANS, plans=True) as (server, keys):
        process = psutil.Process(server.process.pid)
        before = _capacity(server.api, keys["paid"], seed=4)
        before_mb = process.memory_info().rss / 1e6
        speaker = Speaker(5, "over")
        visits = [
            *speaker.during(_OVERLOAD_S, 2.4 * before, "free", keys["free"]),
            *speaker.during(_OVERLOAD_S, 0.6 * before, "paid", keys["paid"]),
            *speaker.during(10.0, 2.0, "later", keys["free"], after_s=_OVERLOAD_S + 5.0),
        ]
        crowd = attend(server.api, visits, for_s=_OVERLOAD_S + 15.0, patience_s=_PATIENCE_S)
        after_mb = process.memory_info().rss / 1e6
        # The machine's own speed changes within minutes: what it could do is known on both sides.
        capacity = (before + _capacity(server.api, keys["paid"], seed=6)) / 2
    good = [visit for visit in crowd.visits if visit.call.status == 200 and _is_whole(visit)]
    burst = [visit for visit in good if visit.group != "later"]
    # To the last of them: those that run when the burst ends are its answers too.
    burst_s = max(visit.over_at or 0.0 for visit in burst) - crowd.began
    refused = [visit for visit in crowd.visits if visit.call.status in {429, 503}]
    advised = all(b"retry-after" in bytes(visit.call.raw).lower() for visit in refused)
    # The policy's refusal would be an answer, too.
    blocked = [visit for visit in crowd.visits if b'"content_filter"' in visit.call.raw]
    ended = len(good) + len(refused) + len(blocked)
    all_ended = not crowd.unfinished and ended == len(crowd.visits)
    paid = [visit for visit in good if visit.group == "paid"]
    firsts = [visit.first_text_s for visit in paid if visit.first_text_s is not None]
    answered = {group: _part_answered(crowd, good, group) for group in ("paid", "free", "later")}
    return [
        explains("overload: capacity", capacity * _TOKENS, "tokens/s"),
        explains("overload: requests", len(crowd.visits)),
        at_least("overload: goodput against capacity", len(burst) / burst_s / capacity, 0.9),
        must_be_true("overload: each ended with an answer or honest advice", all_ended and advised),
        explains("overload: of them blocked by the policy", len(blocked)),
        explains("overload: without an end", len(crowd.visits) - ended),
        at_most("overload: paid p99 to first token", quantile(firsts, 0.99), _OBJECTIVE_S, "s"),
        explains("overload: part of the paid that was answered", answered["paid"]),
        explains("overload: part of the free that was answered", answered["free"]),
        at_most("overload: server's memory growth", after_mb - before_mb, 30, "MB"),
        at_least("overload: answered from 5 s afterwards", answered["later"], 1),
        at_most("overload: their p99", _first_p99(crowd, "later"), _OBJECTIVE_S, "s"),
    ]


def _capacity(address: tuple[str, int], key: str, *, seed: int) -> float:
    """Answers in a second, with more callers than slots."""
    speaker = Speaker(seed, f"full{seed}")
    ask = partial(speaker.call, _JOB_WORDS, _TOKENS, key=key)
    busy = [speaker.loop(ask, "full") for _ in range(40)]
    full = attend(address, busy, for_s=_CAPACITY_S, patience_s=0.0)
    return len(full.of("full")) / _CAPACITY_S


def _part_answered(crowd: Crowd, good: list[Visit], group: str) -> float:
    return sum(visit.group == group for visit in good) / max(len(crowd.of(group)), 1)


@contextmanager
def keyed_server(
    *users: str,
    settings: str = "",
    plans: bool = False,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    """A server with a key for each of these; with `plans`, each has the plan of its own name."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        file = Path(folder) / "antiphon.toml"
        file.write_text(settings)
        own = {"ANTIPHON_DATABASE_URL": f"sqlite:///{folder}/antiphon.db", **environment}
        with running_server(config=file, **own) as server:
            keys = {}
            for user in users:
                keys[user] = _command(
                    "keys", "create", "--user", user, "--tenant", user, config=file, **own
                ).split()[-1]
                if plans:
                    _command("users", "set-plan", user, user, config=file, **own)
            yield server, keys


def _command(*words: str, config: Path, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "antiphon", "--config", str(config), *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _chats(
    speaker: Speaker, *, rate: float, after_s: float = 0.0, key: str | None = None
) -> list[Visit]:
    chats = speaker.arrivals(_CHATS, rate, partial(speaker.call, _CHAT_WORDS, 32, key=key), "chat")
    for chat in chats:
        chat.at_s += after_s
    return chats


def _all_of(visits: list[Visit], group: str) -> Callable[[Crowd], bool]:
    return lambda crowd: len(crowd.of(group)) == len(visits)


def _must_have_answered(crowd: Crowd, group: str) -> None:
    if failed := [visit for visit in crowd.of(group) if visit.call.status != 200]:
        raise RuntimeError(f"a request failed: {bytes(failed[0].call.raw[:500])!r}")


def _is_whole(visit: Visit) -> bool:
    return visit.call.completion_tokens() == _TOKENS


def _first(crowd: Crowd, group: str, share: float) -> float:
    return quantile([v.first_text_s for v in crowd.of(group) if v.first_text_s is not None], share)


def _first_p99(crowd: Crowd, group: str) -> float:
    return _first(crowd, group, 0.99)


_SCENES = {"crowded": crowded, "flood": flood, "overload": overload}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.lanes", description=__doc__)
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
