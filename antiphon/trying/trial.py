"""One text tried on the rules, as `antiphon policy test` shows it: what a turn would do with it, in
this process.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from antiphon.policy.compiled import ScopedRules
from antiphon.policy.rulebook import Rulebook
from antiphon.policy.rules import GuardMatcher, Rule, UpstreamMatcher
from antiphon.policy.scan import Scanner, Scorer
from antiphon.verdicts import Finding, PolicyScope, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What left a stream when its `after`-th character had come."""

    after: int
    text: str
    source: int
    """Characters of the output that were dealt with by then."""
    held: int
    """Characters that were held from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of a text."""

    stage: Stage
    text: str
    verdict: Verdict
    passed: str
    """What would have gone on: masked, cut, or all of it. Nothing where a classifier blocks output:
    how much has left by then is a matter of time."""
    refusal: str | None
    stream: tuple[Left, ...]
    """For output only; the last is what its end let go."""
    elsewhere: tuple[Rule, ...]
    """Rules of models that are served elsewhere, which this process can't ask."""


def try_out(
    rulebook: Rulebook,
    scope: PolicyScope,
    stage: Stage,
    text: str,
    *,
    scorer: Callable[[], Scorer],
    system_prompt: str = "",
    languages: Sequence[str] = (),
) -> Trial:
    """`scorer` loads the classifier: it is called only where a rule needs it."""
    scoped = rulebook.for_scope(scope)
    verdict = Verdict(version=scoped.version)
    stream: tuple[Left, ...] = ()
    if stage is Stage.OUTPUT:
        verdict, stream = _streamed(scoped, text, system_prompt)
    judged = judge_whole(scoped, stage, [text], scorer, system_prompt)[0]
    verdict = replace(
        judged, findings=(*verdict.findings, *judged.findings), version=scoped.version
    )
    blocked = verdict.blocked_by
    if judged.blocked_by is not None:
        passed, stream = "", ()
    elif stage is Stage.OUTPUT:
        passed = "".join(left.text for left in stream)
    else:
        passed = verdict.applied(text)
    return Trial(
        stage=stage,
        text=text,
        verdict=verdict,
        passed=passed,
        refusal=None if blocked is None else rulebook.refusal(blocked, languages),
        stream=stream,
        elsewhere=tuple(rule for rule in scoped.asynchronous(stage) if _is_elsewhere(rule)),
    )


def judge_whole(
    scoped: ScopedRules,
    stage: Stage,
    texts: Sequence[str],
    scorer: Callable[[], Scorer],
    system_prompt: str = "",
) -> tuple[Verdict, ...]:
    """As a judge's process would, with the classifier only where a rule needs it."""
    needed = any(not _is_elsewhere(rule) for rule in scoped.asynchronous(stage))
    return Scanner(scorer() if needed else _NoScorer()).judge(scoped, stage, texts, system_prompt)


def _streamed(
    scoped: ScopedRules, text: str, system_prompt: str
) -> tuple[Verdict, tuple[Left, ...]]:
    window = scoped.window(system_prompt)
    stream: list[Left] = []
    findings: list[Finding] = []
    for after, piece in _characters(text):
        passed = window.feed(piece) if piece else window.finish()
        findings += passed.findings
        if passed.text or passed.source or passed.blocked_by:
            stream.append(
                Left(after=after, text=passed.text, source=passed.source, held=window.held)
            )
        if passed.blocked_by:
            break
    return Verdict(version=scoped.version, findings=tuple(findings)), tuple(stream)


def _characters(text: str) -> Iterator[tuple[int, str]]:
    """Each with its number, and the end."""
    yield from enumerate(text, 1)
    yield len(text), ""


def _is_elsewhere(rule: Rule) -> bool:
    return isinstance(rule.match, GuardMatcher | UpstreamMatcher)


class _NoScorer:
    """Where no rule asks for one."""

    name = "none"
    thresholds: dict[str, float] = {}
    injection_threshold = 1.0
    harmless_below = 0.0

    def scores(self, texts: Sequence[str], *, light: bool = False) -> list[dict[str, float]]:
        return [{} for _ in texts]

    def injection(self, texts: Sequence[str]) -> list[float]:
        return [0.0 for _ in texts]
