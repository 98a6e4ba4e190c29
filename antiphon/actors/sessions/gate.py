"""The gate of a turn's input: its messages are judged while they are placed and prefilled, and the
verdict is known before the first byte of an answer leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import trio

from antiphon.actors.sessions.judging import Judging
from antiphon.actors.sessions.merging import merged
from antiphon.events import Message
from antiphon.verdicts import Action, Finding, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class InputVerdict:
    """What was decided of a turn's input, all its messages together."""

    verdict: Verdict
    messages: tuple[Message, ...]
    """As a model may be shown them."""
    blocked_by: str | None = None
    finding: Finding | None = None
    """What blocks it, where that is what it says, and not a rule that could not be run."""
    to_blame: tuple[int, ...] = ()
    """Which messages such findings are in, by their places."""


def stage_of(message: Message) -> Stage:
    """Where its text comes from."""
    return Stage.TOOL if message.role == "tool" else Stage.INPUT


def is_watched(judging: Judging, messages: Sequence[Message]) -> bool:
    """Whether there is anything to wait for."""
    return any(judging.watches(stage) for stage in {stage_of(message) for message in messages})


def decide(
    version: str, messages: Sequence[Message], verdicts: Mapping[int, Verdict]
) -> InputVerdict:
    """From the verdicts on single messages, by their places."""
    whole = merged(version, [verdicts[place] for place in sorted(verdicts)])
    blocking = {place: found for place, each in verdicts.items() if (found := _blocking(each))}
    return InputVerdict(
        verdict=whole,
        messages=tuple(
            replace(message, content=verdicts[place].applied(message.content))
            if place in verdicts and verdicts[place].transforms
            else message
            for place, message in enumerate(messages)
        ),
        # A finding goes before a rule that wasn't run: it is what the client can do about it.
        blocked_by=blocking[min(blocking)].rule if blocking else whole.blocked_by,
        finding=blocking[min(blocking)] if blocking else None,
        to_blame=tuple(sorted(blocking)),
    )


async def judge_input(judging: Judging, messages: Sequence[Message]) -> InputVerdict:
    """All stages at once. Texts that were judged before cost the judge nothing, so a conversation's
    history may be among them; it has to be, since rules change."""
    verdicts: dict[int, Verdict] = {}

    async def judge(stage: Stage, places: list[int]) -> None:
        found = await judging.verdicts(stage, [messages[place].content for place in places])
        verdicts.update(zip(places, found, strict=True))

    by_stage: dict[Stage, list[int]] = {}
    for place, message in enumerate(messages):
        if message.content and judging.watches(stage_of(message)):
            by_stage.setdefault(stage_of(message), []).append(place)
    if len(by_stage) == 1:  # as nearly always, and on the way to a first token
        await judge(*by_stage.popitem())
    async with trio.open_nursery() as nursery:
        for stage, places in by_stage.items():
            nursery.start_soon(judge, stage, places)
    return decide(judging.version, messages, verdicts)


def _blocking(verdict: Verdict) -> Finding | None:
    for finding in verdict.findings:
        if finding.action is Action.BLOCK and not finding.shadow:
            return finding
    return None
