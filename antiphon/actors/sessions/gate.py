"""The gate of a turn's input: its messages and tools are judged while they are placed and
prefilled, and the verdict is known before the first byte of an answer leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import trio

from antiphon.actors.sessions.judging import Judging
from antiphon.actors.sessions.merging import merged
from antiphon.events import Message, Turn
from antiphon.tools import Toolbox
from antiphon.verdicts import Action, Finding, Stage, Verdict
from antiphon.views import PieceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class InputVerdict:
    """What was decided of a turn's input, all its messages together."""

    verdict: Verdict
    messages: tuple[Message, ...]
    """As a model may be shown them."""
    tools: Toolbox | None = None
    blocked_by: str | None = None
    finding: Finding | None = None
    """What blocks it, where that is what it says, and not a rule that could not be run."""
    to_blame: tuple[int, ...] = ()
    """Which messages such findings are in, by their places."""


def stages_of(turn: Turn) -> list[Stage]:
    """Where the text of each of its messages comes from."""
    kinds = [piece.kind for piece in turn.pieces] or [PieceKind.INPUT] * len(turn.messages)
    return [
        Stage.RETRIEVED if kind is PieceKind.RETRIEVED else _stage_of(message)
        for message, kind in zip(turn.messages, kinds, strict=True)
    ]


def is_watched(judging: Judging, turn: Turn) -> bool:
    """Whether there is anything to wait for."""
    stages = {*stages_of(turn)[turn.unjudged :], *((Stage.INPUT,) if turn.tools else ())}
    return any(map(judging.watches, stages))


def _stage_of(message: Message) -> Stage:
    return Stage.TOOL if message.role == "tool" else Stage.INPUT


def decide(
    version: str,
    messages: Sequence[Message],
    verdicts: Mapping[int, Verdict],
    tools: Toolbox | None = None,
) -> InputVerdict:
    """From the verdicts on single messages, by their places; those of tools go on from there."""
    whole = merged(version, [verdicts[place] for place in sorted(verdicts)])
    blocking = {place: found for place, each in verdicts.items() if (found := _blocking(each))}
    return InputVerdict(
        verdict=whole,
        messages=tuple(
            _reworded(message, verdicts[place].applied(message.text))
            if place in verdicts and verdicts[place].transforms
            else message
            for place, message in enumerate(messages)
        ),
        tools=_judged_tools(tools, verdicts, len(messages)),
        # A finding goes before a rule that wasn't run: it is what the client can do about it.
        blocked_by=blocking[min(blocking)].rule if blocking else whole.blocked_by,
        finding=blocking[min(blocking)] if blocking else None,
        to_blame=tuple(place for place in sorted(blocking) if place < len(messages)),
    )


async def judge_input(judging: Judging, turn: Turn) -> InputVerdict:
    """All stages at once. Texts that were judged before cost the judge nothing, so a conversation's
    history may be among them; it has to be, since rules change. The first `unjudged` ones are left
    out: the operator's own words are no deed of the user's."""
    verdicts: dict[int, Verdict] = {}
    tools = turn.tools.tools if turn.tools else ()
    texts = [*(message.text for message in turn.messages), *(tool.text for tool in tools)]
    stages = [*stages_of(turn), *(Stage.INPUT for _ in tools)]

    async def judge(stage: Stage, places: list[int]) -> None:
        found = await judging.verdicts(stage, [texts[place] for place in places])
        verdicts.update(zip(places, found, strict=True))

    by_stage: dict[Stage, list[int]] = {}
    for place, (text, stage) in enumerate(zip(texts, stages, strict=True)):
        if place >= turn.unjudged and text and judging.watches(stage):
            by_stage.setdefault(stage, []).append(place)
    if len(by_stage) == 1:  # as nearly always, and on the way to a first token
        await judge(*by_stage.popitem())
    async with trio.open_nursery() as nursery:
        for stage, places in by_stage.items():
            nursery.start_soon(judge, stage, places)
    return decide(judging.version, turn.messages, verdicts, turn.tools)


def _reworded(message: Message, text: str) -> Message:
    if message.call is None:
        return replace(message, content=text)
    return replace(message, call=replace(message.call, arguments=text))


def _judged_tools(
    tools: Toolbox | None, verdicts: Mapping[int, Verdict], first: int
) -> Toolbox | None:
    changed = {
        place - first: each
        for place, each in verdicts.items()
        if place >= first and each.transforms
    }
    if tools is None or not changed:
        return tools
    return replace(
        tools,
        tools=tuple(
            tool.reworded(changed[index].applied(tool.text)) if index in changed else tool
            for index, tool in enumerate(tools.tools)
        ),
    )


def _blocking(verdict: Verdict) -> Finding | None:
    for finding in verdict.findings:
        if finding.action is Action.BLOCK and not finding.shadow:
            return finding
    return None
