"""People and programs on a running Antiphon: a Locust file.

    locust -f load/locustfile.py --headless -u 16 -r 4 -t 60s --host http://127.0.0.1:8000

Beside Locust's row for each kind of request there are rows of type SSE, by who asks and, with
`--keys`, their plan: milliseconds to the first token and between two, hang-ups (until the user
left), pauses before a retry, what was given up, turns that another model took, and tokens/s, whose
number stands where Locust prints milliseconds. What the server sheds with honest advice has rows of
its own, `shed 429` and `shed 503`, and is no failure. A 503 without Retry-After is one, and a
stream that ends without saying how.

`--shape viral` is a viral moment: `--users` is the usual load and `--run-time` all of it.
"""

import random
import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

import gevent
from locust import HttpUser, between, events, task
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import WorkerRunner

from load import asking, keys, moment, shapes, words

_VIRAL_S = 120.0
_HANG_UPS = 0.2
_RETRIES = 0.7
"""The share of callers whose client tries again, as SDKs do; the others give up at once."""
_POLL_S = 1.0


def _callers(path: str) -> tuple[keys.Caller, ...]:
    try:
        return keys.callers(Path(path) if path else None)
    except (OSError, ValueError) as error:
        raise ArgumentTypeError(str(error)) from error


@events.init_command_line_parser.add_listener
def options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keys",
        type=_callers,
        default="",
        env_var="LOAD_KEYS",
        include_in_web_ui=False,
        metavar="FILE",
        help="Lines of a plan's name and a key. Without, all are the local user.",
    )
    parser.add_argument(
        "--shape", choices=["steady", "viral"], default="steady", env_var="LOAD_SHAPE"
    )
    parser.add_argument(
        "--viral-factor",
        type=float,
        default=8.0,
        env_var="LOAD_VIRAL_FACTOR",
        help="How many times the usual users there are in a viral moment.",
    )


@events.init.add_listener
def choose_shape(environment: Environment, **_: Any) -> None:
    """Here and not by a shape class among this file's names, which Locust would always use."""
    chosen = environment.parsed_options
    if chosen.shape != "viral" or isinstance(environment.runner, WorkerRunner):
        return
    shape = shapes.ViralMoment(
        moment.Moment(
            usual=chosen.num_users or 1,
            factor=chosen.viral_factor,
            length_s=chosen.run_time or _VIRAL_S,
        )
    )
    shape.runner = environment.runner
    environment.shape_class = shape


class Somebody(HttpUser):
    """One caller with one key, who knows what the model is called."""

    abstract = True
    lane: str

    def on_start(self) -> None:
        self.dice = random.Random()
        caller = self.dice.choice(self.environment.parsed_options.keys)
        retries = self.dice.random() < _RETRIES
        with self.client.get(
            "/v1/models", name="models", headers=caller.headers, catch_response=True
        ) as reply:
            if reply.status_code != 200:
                reply.failure(f"status {reply.status_code}")
                raise StopUser
            model = reply.json()["data"][0]["id"]
        self.asking = asking.Asking(self, self.lane, caller, model, retries=retries)

    def leaves_after(self) -> int | None:
        """After how many pieces of an answer; None for who reads it all."""
        return self.dice.randint(0, 12) if self.dice.random() < _HANG_UPS else None


class ChatUser(Somebody):
    """Somebody who asks, reads the answer as it streams, thinks, and asks again."""

    weight = 10
    lane = "chat"
    wait_time = between(0.5, 3.0)

    def on_start(self) -> None:
        super().on_start()
        self.messages: list[dict[str, str]] = []

    @task(8)
    def ask(self) -> None:
        """One turn; every few turns a new conversation, as people do."""
        if len(self.messages) > 6:
            self.messages = []
        self.messages.append({"role": "user", "content": self.dice.choice(words.QUESTIONS)})
        body = {"messages": self.messages, "max_tokens": 96}
        answer = self.asking.stream(body, self.leaves_after())
        if answer is None:
            self.messages.pop()
        else:
            self.messages.append({"role": "assistant", "content": answer})

    @task(1)
    def ask_without_streaming(self) -> None:
        """One short answer at once."""
        messages = [{"role": "user", "content": self.dice.choice(words.QUESTIONS)}]
        body = {"messages": messages, "max_tokens": 24}
        self.asking.whole("/v1/chat/completions", body, "whole")


class Reader(Somebody):
    """Somebody with a long document and several questions about it."""

    weight = 2
    lane = "document"
    wait_time = between(3.0, 10.0)

    @task
    def read(self) -> None:
        document = words.document(self.dice, self.dice.randint(1200, 2400))
        messages = [{"role": "user", "content": document}]
        for question in self.dice.sample(words.ABOUT_DOCUMENTS, 2):
            messages[-1]["content"] += f"\n\n{question}"
            body = {"messages": messages, "max_tokens": 64}
            answer = self.asking.stream(body, self.leaves_after())
            if answer is None:
                return
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": ""}]
            self.wait()


class Program(Somebody):
    """A program that hands in what its tools found, at once, until it has its answer."""

    weight = 3
    lane = "program"
    wait_time = between(2.0, 6.0)

    @task
    def run_tools(self) -> None:
        messages = [{"role": "user", "content": "Find what was delivered, and where it is now."}]
        for _ in range(self.dice.randint(2, 4)):
            answer = self.asking.stream({"messages": messages, "max_tokens": 48})
            if answer is None:
                return
            found = f"Result of the tool: {words.result(self.dice)}"
            messages += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": found},
            ]


class Worker(Somebody):
    """Jobs that nobody waits for."""

    weight = 3
    lane = "background"
    wait_time = between(1.0, 4.0)

    @task(2)
    def ask_at_the_cheap_tier(self) -> None:
        messages = [{"role": "user", "content": self.dice.choice(words.JOBS)}]
        body = {"messages": messages, "max_tokens": 128, "service_tier": "flex"}
        self.asking.whole("/v1/chat/completions", body, "flex")

    @task(1)
    def leave_a_job(self) -> None:
        """And come back for it."""
        started_at = time.monotonic()
        body = {
            "input": self.dice.choice(words.JOBS),
            "max_output_tokens": 128,
            "background": True,
        }
        job = self.asking.whole("/v1/responses", body, "job")
        while job is not None and job["status"] in ("queued", "in_progress"):
            gevent.sleep(_POLL_S)
            job = self.asking.get(f"/v1/responses/{job['id']}", "background (poll)")
        if job is None:
            return
        name, problem = f"job {job['status']}", None
        if (error := job["error"]) is not None:
            if error["code"] in asking.SHED_CODES:
                name = "job shed"
            else:
                problem = RuntimeError(error["message"])
        asking.report(name, seconds=time.monotonic() - started_at, problem=problem)


class Crowd(Somebody):
    """A class of pupils, or a page that asks for everything at once: bursts."""

    weight = 1
    lane = "burst"
    wait_time = between(10.0, 25.0)

    @task
    def all_at_once(self) -> None:
        gevent.joinall([gevent.spawn(self._ask) for _ in range(self.dice.randint(4, 8))])

    def _ask(self) -> None:
        messages = [{"role": "user", "content": self.dice.choice(words.QUESTIONS)}]
        self.asking.stream({"messages": messages, "max_tokens": 32})
