"""A rule as its file has it: what it looks for, where, for whom, and what follows from a match.

Values only. `rulebook` reads and checks them, `compiled` makes them run.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from antiphon.verdicts import Action, Failure, Finding, NotRun, OnFailure, Stage


class PatternsMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="patterns",
):
    """Regular expressions of a subset that is run in linear time and has a longest match."""

    patterns: tuple[str, ...]
    ignore_case: bool = True
    normalise: bool = True
    """Also find it in disguise; False looks at the text as it is."""


class PhrasesMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="phrases",
):
    """Words or sequences of words, found in every disguise that normalisation undoes."""

    phrases: tuple[str, ...] = ()
    file: str | None = None
    """One phrase a line; relative to the rules' file."""
    whole_words: bool = True


class PersonalMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="personal",
):
    """Personal data, by the names of its entities."""

    entities: tuple[str, ...]


class SecretsMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="secrets",
):
    """Keys and tokens of well-known services; none named means all."""

    kinds: tuple[str, ...] = ()


class ClassifierMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="classifier",
):
    """Scores of the embedded classifier. An empty table means its own default thresholds."""

    thresholds: dict[str, float] = {}
    model: Literal["full", "light", "quick", "both"] = "full"
    """`quick` asks the light one first, and the full one about what that doesn't find harmless;
    `both` asks the full one only about what the light one flags."""


class InjectionMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="injection",
):
    """Instructions that hide in a document or a tool's result, or that try to lift the model's
    own."""

    at_least: float | None = None
    """A score 0…1; None is the classifier's own default."""


class LeakMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="leak",
):
    """The turn's system prompt, said word for word."""

    words: int = 8
    """So many of its words in a row are a match."""


class RepetitionMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="repetition",
):
    """The same piece of text over and over."""

    times: int = 20
    longest: int = 64
    """Characters of the piece that is repeated."""


class MalformedMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="malformed",
):
    """Control characters, replacement characters, lone surrogates: this many in a row."""

    run: int = 8


class GuardMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="guard",
):
    """A guard model that one of our own pools serves."""

    model: str
    format: Literal["llama_guard", "qwen3guard"]
    categories: tuple[str, ...] = ()
    """Of the guard's own; none named means any."""


class UpstreamMatcher(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="upstream",
):
    """An OpenAI-compatible `/v1/moderations` elsewhere, which the settings name."""

    thresholds: dict[str, float] = {}
    """Empty: whatever it flags."""


Matcher = (
    PatternsMatcher
    | PhrasesMatcher
    | PersonalMatcher
    | SecretsMatcher
    | ClassifierMatcher
    | InjectionMatcher
    | LeakMatcher
    | RepetitionMatcher
    | MalformedMatcher
    | GuardMatcher
    | UpstreamMatcher
)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. `plans` and `tenants` narrow whom it is for; empty means everybody."""

    id: str
    stages: tuple[Stage, ...]
    match: Matcher
    action: Action = Action.BLOCK
    message: dict[str, str] = {}
    """What a blocked client is told, by language; empty takes the rules' own `refusal`."""
    replacement: str = "[removed]"
    """What a transforming rule writes instead; `{entity}` is what was found."""
    on_failure: OnFailure = OnFailure.OPEN
    shadow: bool = False
    plans: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    keep_text: bool = False
    """Whether its events hold the text that matched."""
    keep_blocked: bool = False
    """Whether output after the cut is kept, for operators only."""

    def finding(
        self,
        stage: Stage,
        *,
        start: int = 0,
        end: int,
        category: str | None = None,
        score: float | None = None,
    ) -> Finding:
        """That it matched there, as one that replaces nothing."""
        return Finding(
            rule=self.id,
            stage=stage,
            action=self.action,
            start=start,
            end=end,
            category=category,
            score=score,
            shadow=self.shadow,
        )

    def not_run(self, stage: Stage, failure: Failure) -> NotRun:
        """That it couldn't be run."""
        return NotRun(
            rule=self.id,
            stage=stage,
            failure=failure,
            on_failure=self.on_failure,
            shadow=self.shadow,
        )


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file. Without a `version` its hash is the version."""

    format: Literal[1]
    version: str | None = None
    refusal: Mapping[str, str] = {}
    """The standard text, by language (BCP 47); `default` for all others."""
    rules: tuple[Rule, ...] = ()
