"""What texts were judged to be, as it goes on the wire: results of `/v1/moderations`, and the
`moderation` field of answers, which has one form in chats and another one in responses."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from antiphon.verdicts import CATEGORIES, CategoryScores, Judged, Verdict

_DIGITS = 6


class ModerationResult(msgspec.Struct, kw_only=True):
    """Of one text. Every score is of its words, since nothing here sees images."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[Literal["text"]]]


class ModerationBody(msgspec.Struct, kw_only=True):
    id: str
    model: str
    results: list[ModerationResult]


class MatchedRule(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A rule of the policy that matched: ours."""

    id: str
    action: str
    category: str | None = None
    score: float | None = None


class JudgedText(ModerationResult, kw_only=True, tag_field="type", tag="moderation_result"):
    """Of the input, or of a choice. `policy` is the version of the rules; both it and `rules` are
    ours, SDKs keep them."""

    model: str
    policy: str
    rules: list[MatchedRule]


class NotJudged(msgspec.Struct, kw_only=True, tag_field="type", tag="error"):
    """Why there is no result."""

    code: str
    message: str


class ResponseModeration(msgspec.Struct, kw_only=True):
    input: JudgedText | NotJudged
    output: JudgedText | NotJudged


class JudgedTexts(msgspec.Struct, kw_only=True, tag_field="type", tag="moderation_results"):
    model: str
    results: list[JudgedText]


class ChatModeration(msgspec.Struct, kw_only=True):
    input: JudgedTexts | NotJudged
    output: JudgedTexts | NotJudged


def moderation_body(scores: Sequence[CategoryScores], *, model: str) -> ModerationBody:
    """The whole answer of `/v1/moderations`."""
    return ModerationBody(
        id=f"modr-{secrets.token_hex(16)}",
        model=model,
        results=[
            ModerationResult(
                flagged=bool(each.flagged),
                categories=shown.flags,
                category_scores=shown.values,
                category_applied_input_types=shown.types,
            )
            for each in scores
            for shown in [_Shown(each)]
        ],
    )


def response_moderation(judged: Judged) -> ResponseModeration:
    """Of a response, which has one choice."""
    return ResponseModeration(
        input=_judged(judged.input),
        output=_judged(judged.output[0] if judged.output else None),
    )


def chat_moderation(judged: Judged) -> ChatModeration:
    """Of a chat: one result for all of its messages, and one for each choice."""
    return ChatModeration(
        input=_together([] if judged.input is None else [judged.input]),
        output=_together(judged.output),
    )


def _together(verdicts: Sequence[Verdict]) -> JudgedTexts | NotJudged:
    results = []
    for verdict in verdicts or (None,):
        result = _judged(verdict)
        if isinstance(result, NotJudged):
            return result
        results.append(result)
    return JudgedTexts(model=results[0].model, results=results)


def _judged(verdict: Verdict | None) -> JudgedText | NotJudged:
    if verdict is None:
        return NotJudged(code="not_judged", message="There was nothing to judge.")
    rules = [
        MatchedRule(
            id=finding.rule,
            action=finding.action.value,
            category=finding.category,
            score=None if finding.score is None else round(finding.score, _DIGITS),
        )
        for finding in verdict.findings
        if not finding.shadow
    ]
    scores = verdict.scores
    if scores is None and not rules:
        return _not_judged(verdict)
    shown = _Shown(scores)
    return JudgedText(
        model=f"rules-{verdict.version}" if scores is None else scores.model,
        policy=verdict.version,
        rules=rules,
        flagged=verdict.blocked_by is not None or bool(scores and scores.flagged),
        categories=shown.flags,
        category_scores=shown.values,
        category_applied_input_types=shown.types,
    )


def _not_judged(verdict: Verdict) -> NotJudged:
    missing = [each for each in verdict.not_run if not each.shadow]
    if not missing:
        return NotJudged(code="not_judged", message="There was nothing to judge.")
    code = missing[0].failure.value
    return NotJudged(code=code, message=f"The text could not be judged: {code}.")


@dataclass(frozen=True, slots=True)
class _Shown:
    """All of OpenAI's categories, since clients know them by name; none without scores."""

    scores: CategoryScores | None

    @property
    def names(self) -> tuple[str, ...]:
        if self.scores is None:
            return ()
        return tuple(dict.fromkeys((*CATEGORIES, *self.scores.scores)))

    @property
    def flags(self) -> dict[str, bool]:
        flagged = frozenset[str]() if self.scores is None else self.scores.flagged
        return {name: name in flagged for name in self.names}

    @property
    def values(self) -> dict[str, float]:
        found = {} if self.scores is None else self.scores.scores
        return {name: round(found.get(name, 0.0), _DIGITS) for name in self.names}

    @property
    def types(self) -> dict[str, list[Literal["text"]]]:
        return {name: ["text"] for name in self.names}
