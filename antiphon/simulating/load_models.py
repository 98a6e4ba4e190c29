"""Loads that nobody has a trace of: so many people a day, so many prompts each. What is assumed of
them is named, and told in every report. Conversations come at random times and go on by themselves,
whatever the server does: an open loop, as a large public is one."""

import heapq
import math
import random
from collections.abc import Callable, Iterator, Mapping
from statistics import NormalDist

import msgspec

from antiphon.errors import SettingsError
from antiphon.simulating.trace import Arrival

_DAY_S = 86_400.0
_READ_S = 0.03
"""Somebody reads an answer about as fast as it is streamed, 33 tokens/s."""
_OF_THE_FLOOD = "flood"


class LoadModel(msgspec.Struct, frozen=True, kw_only=True):
    """Who comes, how often, and with what. Tokens are means; lengths are log-normal, since a few
    are much longer than most."""

    name: str
    daily_users: int
    prompts_a_day: int
    """Of each user."""
    peak: float
    """The busiest hour's rate, relative to the mean of the day: what is planned for."""
    message_tokens: int
    answer_tokens: int
    spread: float = 0.8
    """Sigma of the logarithm of both."""
    longest_answer: int = 1024
    """What clients ask for at most, and what is reserved for them."""
    system_tokens: int = 300
    """System prompt and memory, which every prompt begins with."""
    turns: float = 5.0
    """Mean length of a conversation; one more turn is always as likely as it was before."""
    history_tokens: int = 6000
    """Older turns are replaced by a summary when there is more; half of it remains."""
    think_s: float = 60.0
    """Mean time from an answer read to the next message."""
    paid_share: float = 0.1
    tool_share: float = 0.05
    """Turns that go on from the result of a tool."""
    document_share: float = 0.01
    """Turns that bring a document along."""
    document_tokens: int = 8000
    titles: bool = True
    """A title for each conversation, and a summary whenever history is cut: in the background."""
    title_tokens: int = 12
    summary_tokens: int = 200
    hang_up_share: float = 0.05
    hang_up_s: float = 10.0
    """Mean patience of those who hang up."""
    first_token_s: float
    first_token_share: float
    """The objective: this share of all has its first token within `first_token_s`."""
    long_prompt_tokens: int = 7000
    """What is served as a long prompt: documents, and no history."""
    between_tokens_s: float
    """The mean from one token of an answer to its next."""

    @property
    def mean_rate(self) -> float:
        """Prompts of people a second, over the whole day."""
        return self.daily_users * self.prompts_a_day / _DAY_S

    @property
    def peak_rate(self) -> float:
        return self.mean_rate * self.peak

    def assumptions(self) -> tuple[str, ...]:
        """Sentences for a report."""
        titles = (
            f"in the background, a title of {self.title_tokens} tokens for each conversation and a "
            f"summary of {self.summary_tokens} whenever history is cut"
            if self.titles
            else "no titles and no summaries"
        )
        return (
            f"{self.daily_users / 1e6:g} million users a day, {self.prompts_a_day} prompts each: "
            f"{self.mean_rate:,.0f} a second on the mean, {self.peak_rate:,.0f} at the peak "
            f"({self.peak:g} times the mean)",
            f"messages of {self.message_tokens} and answers of {self.answer_tokens} tokens on the "
            f"mean, log-normal with a sigma of {self.spread:g}, answers of at most "
            f"{self.longest_answer}, which KV blocks are reserved for",
            f"conversations of {self.turns:g} turns on the mean, geometric; {self.think_s:g} s "
            "from an answer read to the next message, exponential",
            f"{self.system_tokens} tokens of system prompt and memory; history of up to "
            f"{self.history_tokens} tokens, then cut to half of that",
            f"{self.paid_share:.0%} of conversations are paid for and go before others; "
            f"{self.tool_share:.0%} of turns go on from a tool's result; {self.document_share:.0%} "
            f"bring a document of {self.document_tokens} tokens; {titles}",
            f"{self.hang_up_share:.0%} of requests are hung up after {self.hang_up_s:g} s on the "
            "mean, if they last that long",
            f"objectives: first token within {self.first_token_s:g} s for "
            f"{self.first_token_share:.0%}, {self.between_tokens_s * 1000:.0f} ms from one token "
            "to the next on an answer's mean",
        )


HUNDRED_MILLION = LoadModel(
    name="100m-users",
    daily_users=100_000_000,
    prompts_a_day=10,
    peak=3.0,
    message_tokens=100,
    answer_tokens=400,
    first_token_s=0.5,
    first_token_share=0.99,
    between_tokens_s=0.05,
)
"""100 million people a day, 10 prompts each of 100 tokens, answers of 400; first token within 500
ms for 99 %, less than 50 ms between tokens."""

TEN_MILLION = LoadModel(
    name="10m-users",
    daily_users=10_000_000,
    prompts_a_day=15,
    peak=3.0,
    message_tokens=200,
    answer_tokens=500,
    turns=6.0,
    first_token_s=1.0,
    first_token_share=0.95,
    between_tokens_s=1 / 30,
)
"""10 million people a day, 15 messages each; first token within 1 s for 95 %, 30 tokens/s to each.
2.6 million tokens/s at the peak are 500 tokens an answer at three times the mean rate."""

LOADS = {load.name: load for load in (HUNDRED_MILLION, TEN_MILLION)}


def load_named(name: str, changes: Mapping[str, str] | None = None) -> LoadModel:
    """One of these, with other assumptions by the names of its fields. Raises SettingsError."""
    if name not in LOADS:
        raise SettingsError("load", f"{name} is none of {', '.join(LOADS)}")
    fields: dict[str, object] = msgspec.structs.asdict(LOADS[name])
    for key, value in (changes or {}).items():
        if key not in fields:
            raise SettingsError("--assume", f"{key} is none of {', '.join(fields)}")
        fields[key] = value
    try:
        return msgspec.convert(fields, LoadModel, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError("--assume", str(error)) from error


class Surge(msgspec.Struct, frozen=True, kw_only=True):
    """A viral moment: from `begins` to `ends` (parts of the whole time) the rate of new
    conversations is `factor` times itself. `flood` is the share of requests of one tenant in it."""

    factor: float = 1.0
    begins: float = 0.4
    ends: float = 0.6
    flood: float = 0.0


def arrivals(
    load: LoadModel, *, rate: float, seconds: float, seed: int, surge: Surge | None = None
) -> Iterator[Arrival]:
    """Prompts of people at `rate` a second, and the background work that comes of them, in order.
    The same seed gives the same requests. Conversations are in full swing from the first second."""
    return _Crowd(load, rate, seconds, random.Random(seed), surge or Surge()).arrivals()


class _Crowd:
    def __init__(
        self, load: LoadModel, rate: float, seconds: float, dice: random.Random, surge: Surge
    ) -> None:
        self._load = load
        self._rate = rate / load.turns
        self._seconds = seconds
        self._dice = dice
        self._surge = surge
        self._message_mu = _log_mean(load.message_tokens, load.spread, 8 * load.message_tokens)
        self._answer_mu = _log_mean(load.answer_tokens, load.spread, load.longest_answer)
        # Two conversations in a hundred last longer than four mean ones.
        self._head_s = 4 * load.turns * (load.think_s + load.answer_tokens * _READ_S)

    def arrivals(self) -> Iterator[Arrival]:
        """A heap of what is still to come: the next turn of every conversation under way."""
        waiting: list[tuple[float, int, _Conversation | None, Arrival | None]] = []
        number = 0
        opens = -self._head_s
        while True:
            opens += self._dice.expovariate(self._rate_at(opens))
            number += 1
            if opens < self._seconds:
                heapq.heappush(waiting, (opens, number, self._opened(number, opens), None))
            while waiting and (waiting[0][0] <= opens or opens >= self._seconds):
                at, _, conversation, job = heapq.heappop(waiting)
                if job is not None:
                    yield job
                    continue
                assert conversation is not None
                number += 1
                for arrival in conversation.turn(at):
                    if arrival.at == at:
                        if at >= 0:
                            yield arrival
                    elif 0 <= arrival.at < self._seconds:
                        number += 1
                        heapq.heappush(waiting, (arrival.at, number, None, arrival))
                if (again := conversation.next_at(at)) is not None and again < self._seconds:
                    number += 1
                    heapq.heappush(waiting, (again, number, conversation, None))
            if opens >= self._seconds and not waiting:
                return

    def _rate_at(self, at: float) -> float:
        surge = self._surge
        inside = surge.begins * self._seconds <= at < surge.ends * self._seconds
        return self._rate * (surge.factor if inside else 1.0)

    def _opened(self, number: int, at: float) -> "_Conversation":
        return _Conversation(
            self._load, self._dice, str(number), self._tenant(number, at), self._lengths
        )

    def _tenant(self, number: int, at: float) -> str:
        surge = self._surge
        inside = surge.begins * self._seconds <= at < surge.ends * self._seconds
        if surge.flood and inside and self._dice.random() < surge.flood:
            return _OF_THE_FLOOD
        return f"user-{number}"

    def _lengths(self) -> tuple[int, int]:
        load, dice = self._load, self._dice
        message = dice.lognormvariate(self._message_mu, load.spread)
        answer = dice.lognormvariate(self._answer_mu, load.spread)
        return (
            max(1, round(min(message, 8 * load.message_tokens))),
            max(1, round(min(answer, load.longest_answer))),
        )


class _Conversation:
    """One person's turns: each prompt is the last one, its answer and a new message."""

    def __init__(
        self,
        load: LoadModel,
        dice: random.Random,
        name: str,
        tenant: str,
        lengths: Callable[[], tuple[int, int]],
    ) -> None:
        self._load = load
        self._dice = dice
        self._name = name
        self._tenant = tenant
        self._lengths = lengths
        self._priority = 1 if dice.random() < load.paid_share else 0
        self._history = 0
        self._is_new = True
        self._answer = 0

    def turn(self, at: float) -> Iterator[Arrival]:
        """The prompt at `at`, and what is done in the background after it."""
        load, dice = self._load, self._dice
        message, answer = self._lengths()
        self._answer = answer
        is_cut = self._history > load.history_tokens
        if is_cut:
            self._history = load.history_tokens // 2
        if dice.random() < load.document_share:
            message += load.document_tokens
        prompt = load.system_tokens + self._history + message
        leaves = dice.random() < load.hang_up_share
        yield Arrival(
            at=at,
            prompt_tokens=prompt,
            output_tokens=answer,
            max_tokens=load.longest_answer,
            continues_tool=not self._is_new and dice.random() < load.tool_share,
            tenant=self._tenant,
            priority=self._priority,
            conversation=self._name,
            shared_tokens=load.system_tokens + (0 if is_cut else self._history),
            common_tokens=load.system_tokens,
            leaves_after_s=dice.expovariate(1 / load.hang_up_s) if leaves else None,
        )
        self._history += message + answer
        if load.titles and (self._is_new or is_cut):
            tokens = load.title_tokens if self._is_new else load.summary_tokens
            yield Arrival(
                at=at + answer * _READ_S,
                prompt_tokens=load.system_tokens + min(self._history, load.history_tokens),
                output_tokens=tokens,
                max_tokens=2 * tokens,
                background=True,
                tenant="server",
                common_tokens=0,
            )
        self._is_new = False

    def next_at(self, at: float) -> float | None:
        """When the next message comes; None after the last."""
        load, dice = self._load, self._dice
        if dice.random() < 1 / load.turns:
            return None
        return at + self._answer * _READ_S + dice.expovariate(1 / load.think_s)


def _log_mean(mean: float, sigma: float, most: float) -> float:
    """The mu of a log-normal that has this mean when it is cut at `most`."""
    normal = NormalDist()

    def cut_mean(mu: float) -> float:
        at = (math.log(most) - mu) / sigma
        return math.exp(mu + sigma * sigma / 2) * normal.cdf(at - sigma) + most * (
            1 - normal.cdf(at)
        )

    low, high = math.log(mean) - 2 * sigma, math.log(most) + sigma
    for _ in range(60):
        middle = (low + high) / 2
        if cut_mean(middle) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2
