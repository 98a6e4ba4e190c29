"""Judges whole texts: every rule that needs nothing but this process, a classifier included.

A long text goes to the classifier in pieces that overlap, and counts as its worst piece does.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.policy.compiled import ScopedRules
from antiphon.policy.rules import ClassifierMatcher, InjectionMatcher, Rule
from antiphon.verdicts import CategoryScores, Failure, Finding, Stage, Verdict

PIECE = 3_000
"""Characters that a classifier is shown at once: few enough that it looks at all of them closely,
in every script."""
OVERLAP = 300
"""Characters that two pieces share, so that no sentence is judged only in halves."""
LONGEST = 160_000
"""Characters of a text that classifiers are run over. More takes longer than anybody waits; the
rules that need it are then said not to have been run."""

INJECTION = "injection"
"""The category of what the injection matcher finds; OpenAI has none for it."""


class Scorer(Protocol):
    """What a classifier must do. Scores are 0…1."""

    @property
    def name(self) -> str: ...

    @property
    def thresholds(self) -> Mapping[str, float]:
        """From which score on a category counts, where no rule says."""

    @property
    def harmless_below(self) -> float:
        """A text whose light scores are all below this need not be looked at by the full model to
        know that it isn't to be blocked."""

    @property
    def injection_threshold(self) -> float: ...

    def scores(
        self, texts: Sequence[str], *, light: bool = False
    ) -> Sequence[Mapping[str, float]]: ...

    def injection(self, texts: Sequence[str]) -> Sequence[float]: ...


class Scanner:
    """Owns a classifier; keeps nothing of a text."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._models: Mapping[str, _Model] = {
            "full": scorer.scores,
            "light": lambda texts: scorer.scores(texts, light=True),
            "quick": lambda texts: self._screened(texts, scorer.harmless_below),
            "both": lambda texts: self._screened(texts, min(scorer.thresholds.values())),
            INJECTION: lambda texts: [{INJECTION: score} for score in scorer.injection(texts)],
        }

    def judge(
        self, scoped: ScopedRules, stage: Stage, texts: Sequence[str], system_prompt: str = ""
    ) -> tuple[Verdict, ...]:
        """One verdict for each text. Guards and upstreams are not asked, and what bounded rules say
        of output is for its window to find: here, output is only classified."""
        asked = [(rule, name) for rule in scoped.asynchronous(stage) if (name := _model_of(rule))]
        shown = once_said if stage is Stage.OUTPUT else str
        names = {name for _, name in asked}
        scored = {name: _scored(self._models[name], texts, shown) for name in names}
        order = {rule.id: number for number, rule in enumerate(scoped.rules)}
        verdicts = []
        for number, text in enumerate(texts):
            found = [] if stage is Stage.OUTPUT else scoped.search(stage, text, system_prompt)
            said = [(rule, scored[name][number]) for rule, name in asked]
            for rule, each in said:
                found += self._findings(rule, stage, each)
            verdicts.append(
                Verdict(
                    version=scoped.version,
                    findings=tuple(sorted(found, key=lambda one: (order[one.rule], one.start))),
                    not_run=tuple(
                        rule.not_run(stage, Failure.TOO_LONG) for rule, each in said if each is None
                    ),
                    scores=self._shown(said),
                )
            )
        return tuple(verdicts)

    def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        """What the classifier says of each text, whatever the rules are. Of too long a text its
        beginning counts."""
        scored = _scored(self._models["full"], [text[:LONGEST] for text in texts])
        return tuple(
            self._category_scores(each or _NOTHING, self._scorer.thresholds) for each in scored
        )

    def _screened(self, texts: Sequence[str], limit: float) -> Sequence[Mapping[str, float]]:
        """The light model's scores where they are all below the limit, and the full one's of the
        rest: good enough to decide by, and no scores to show."""
        found = list(self._scorer.scores(texts, light=True))
        unsure = [at for at, each in enumerate(found) if max(each.values(), default=0.0) >= limit]
        if unsure:
            scores = self._scorer.scores([texts[at] for at in unsure])
            for at, each in zip(unsure, scores, strict=True):
                found[at] = each
        return found

    def _findings(self, rule: Rule, stage: Stage, scored: "_Scored | None") -> list[Finding]:
        """The one category that is furthest above its limit."""
        if scored is None:
            return []
        above = []
        for category, limit in self._limits(rule).items():
            score, piece = scored.worst(category)
            if score >= limit and scored.pieces:
                above.append((score - limit, category, score, piece))
        return [
            rule.finding(stage, start=piece.start, end=piece.stop, category=category, score=score)
            for _, category, score, piece in sorted(above, key=lambda one: one[:3])[-1:]
        ]

    def _limits(self, rule: Rule) -> Mapping[str, float]:
        match rule.match:
            case ClassifierMatcher(thresholds=thresholds):
                return thresholds or self._scorer.thresholds
            case InjectionMatcher(at_least=None):
                return {INJECTION: self._scorer.injection_threshold}
            case InjectionMatcher(at_least=float(limit)):
                return {INJECTION: limit}
            case _:
                return {}

    def _shown(self, said: "Sequence[tuple[Rule, _Scored | None]]") -> CategoryScores | None:
        """The scores of the first classifier rule, one that acts before a shadow."""
        rules = [
            (rule, scored)
            for rule, scored in said
            if scored is not None
            and isinstance(rule.match, ClassifierMatcher)
            and rule.match.model in {"full", "light"}
        ]
        for rule, scored in sorted(rules, key=lambda one: one[0].shadow):
            return self._category_scores(scored, self._limits(rule))
        return None

    def _category_scores(self, scored: "_Scored", limits: Mapping[str, float]) -> CategoryScores:
        scores = {category: scored.worst(category)[0] for category in self._scorer.thresholds}
        flagged = {name for name, limit in limits.items() if scores.get(name, 0.0) >= limit}
        return CategoryScores(
            model=self._scorer.name,
            scores=scores,
            flagged=frozenset(flagged) if scored.pieces else frozenset(),
        )


_Model = Callable[[Sequence[str]], Sequence[Mapping[str, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    """What a model says of each piece of one text; a text without letters has no pieces."""

    pieces: Sequence[slice]
    scores: Sequence[Mapping[str, float]]

    def worst(self, category: str) -> tuple[float, slice]:
        scores = [each.get(category, 0.0) for each in self.scores]
        if not scores:
            return 0.0, slice(0, 0)
        worst = max(range(len(scores)), key=scores.__getitem__)
        return scores[worst], self.pieces[worst]


_NOTHING = _Scored(pieces=(), scores=())


def _model_of(rule: Rule) -> str | None:
    """Which of the scanner's models the rule needs: None for those that are asked elsewhere."""
    match rule.match:
        case ClassifierMatcher(model=model):
            return model
        case InjectionMatcher():
            return INJECTION
        case _:
            return None


def _scored(
    model: _Model, texts: Sequence[str], shown_as: Callable[[str], str] = str
) -> list[_Scored | None]:
    """All pieces of all texts in one go; None for a text that is too long."""
    pieces = [list(_pieces(text)) if len(text) <= LONGEST else None for text in texts]
    shown = [
        shown_as(text[piece]) for text, of in zip(texts, pieces, strict=True) for piece in of or ()
    ]
    scores = iter(model(shown) if shown else ())
    return [
        None if of is None else _Scored(pieces=of, scores=[next(scores) for _ in of])
        for of in pieces
    ]


_WORD = re.compile(r"\S+\s*")
_RUN = 4


def once_said(text: str) -> str:
    """The text without the words that end a run of four which it has had before.

    A model that goes round in circles is judged by what it says, not by how often: scores of
    n-grams grow with their number, and each round would be one for the full model to look at.
    """
    words = _WORD.findall(text)
    seen: set[tuple[str, ...]] = set()
    kept = words[: _RUN - 1]
    for end in range(_RUN, len(words) + 1):
        run = tuple(word.strip() for word in words[end - _RUN : end])
        if run not in seen:
            seen.add(run)
            kept.append(words[end - 1])
    return text if len(kept) == len(words) else "".join(kept)


_SPACE = re.compile(r"\s")


def _pieces(text: str) -> Iterator[slice]:
    """Cut where a word ends, if one ends soon."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            space = _SPACE.search(text, end - OVERLAP // 2, end)
            end = space.end() if space else end
        if not text[start:end].isspace():
            yield slice(start, min(end, len(text)))
        if end >= len(text):
            return
        start = end - OVERLAP
