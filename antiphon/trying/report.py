"""Rules, and what they did to a text, in lines for people and as plain JSON."""

from collections.abc import Sequence
from typing import Any

from antiphon.plain import plain
from antiphon.policy.checks import BOUNDED
from antiphon.policy.compiled import ASYNCHRONOUS
from antiphon.policy.rulebook import Rulebook
from antiphon.policy.rules import ClassifierMatcher, GuardMatcher, LeakMatcher, Matcher, Rule
from antiphon.trying.trial import Trial
from antiphon.verdicts import Action, Finding, NotRun, Stage

_EXCERPT = 60
_SCORES = 5
_HARDLY = 3
"""Characters that text may wait for without a line of its own."""


def table(rulebook: Rulebook) -> list[str]:
    """The rules, one a line, and what each stage waits for."""
    rows: list[tuple[str, ...]] = [("rule", "stages", "looks for", "does", "on failure", "for")]
    rows += [_row(rule) for rule in rulebook.rules]
    return [*_columns(rows), "", *_waits(rulebook.rules)]


def trial_lines(trial: Trial) -> list[str]:
    """For people."""
    verdict = trial.verdict
    lines = [f"version {verdict.version}, stage {trial.stage}: {_end(trial)}"]
    if trial.refusal is not None:
        lines.append(f"the client is told: {plain(trial.refusal)}")
    lines += [_finding_line(finding, trial.text) for finding in verdict.findings]
    lines += [f"not run: {_not_run(missing)}" for missing in verdict.not_run]
    lines += [f"not asked here: {rule.id} ({_matcher(rule.match)})" for rule in trial.elsewhere]
    if verdict.scores is not None:
        scores = sorted(verdict.scores.scores.items(), key=lambda each: -each[1])[:_SCORES]
        said = ", ".join(f"{name} {score:.3f}" for name, score in scores)
        lines.append(f"{verdict.scores.model}: {said}")
    if trial.stage is Stage.OUTPUT and trial.refusal is not None and not trial.stream:
        lines.append("the whole text was judged at once; a stream is asked about as it grows")
    elif trial.stage is Stage.OUTPUT:
        lines += ["", "what left, and when (characters of the output):"]
        lines += _stream_lines(trial)
    elif verdict.transforms and trial.refusal is None:
        lines += ["", "goes on as:", trial.passed]
    return lines


def trial_json(trial: Trial) -> dict[str, Any]:
    """For programs."""
    verdict = trial.verdict
    scores = verdict.scores
    return {
        "version": verdict.version,
        "stage": trial.stage.value,
        "blocked_by": verdict.blocked_by,
        "refusal": trial.refusal,
        "text": trial.passed,
        "findings": [_finding_json(finding, trial.text) for finding in verdict.findings],
        "not_run": [
            {
                "rule": missing.rule,
                "failure": missing.failure.value,
                "on_failure": missing.on_failure.value,
            }
            for missing in verdict.not_run
        ],
        "not_asked": [rule.id for rule in trial.elsewhere],
        "scores": None if scores is None else dict(scores.scores),
        "flagged": None if scores is None else sorted(scores.flagged),
        "stream": [
            {"after": left.after, "text": left.text, "source": left.source, "held": left.held}
            for left in trial.stream
        ],
    }


def _row(rule: Rule) -> tuple[str, ...]:
    scope = [*(f"plan {plan}" for plan in rule.plans), *(f"tenant {each}" for each in rule.tenants)]
    return (
        rule.id,
        " ".join(rule.stages),
        _matcher(rule.match),
        rule.action.value + (" (shadow)" if rule.shadow else ""),
        rule.on_failure.value,
        ", ".join(scope) or "everybody",
    )


def _matcher(match: Matcher) -> str:
    kind = str(type(match).__struct_config__.tag)
    match match:
        case ClassifierMatcher(model=model):
            return f"{kind} ({model})"
        case GuardMatcher(model=model):
            return f"{kind} ({model})"
        case _:
            return kind


def _waits(rules: Sequence[Rule]) -> list[str]:
    """What a turn waits for at each stage."""
    lines = []
    for stage in Stage:
        acting = [
            rule
            for rule in rules
            if stage in rule.stages and not rule.shadow and rule.action is not Action.ANNOTATE
        ]
        if not any(stage in rule.stages for rule in rules):
            lines.append(f"{stage}: no rule; nothing waits")
            continue
        bounded = [rule.id for rule in acting if isinstance(rule.match, (*BOUNDED, LeakMatcher))]
        others = [rule.id for rule in acting if _asks(rule)]
        if stage is Stage.OUTPUT:
            if bounded:
                lines.append(
                    f"output: text waits while it could still become a match of {_all(bounded)}"
                )
            if others:
                lines.append(f"output: each piece waits for {_all(others)}")
            if not bounded and not others:
                lines.append("output: nothing waits")
            continue
        changing = [rule.id for rule in acting if rule.action is Action.TRANSFORM]
        blocking = [rule.id for rule in acting if rule.action is Action.BLOCK]
        if changing:
            lines.append(f"{stage}: the model waits for {_all(changing)}")
        if blocking:
            lines.append(f"{stage}: the first byte waits for {_all(blocking)}")
        if not acting:
            lines.append(f"{stage}: nothing is changed or blocked")
    return lines


def _asks(rule: Rule) -> bool:
    return isinstance(rule.match, ASYNCHRONOUS)


def _all(ids: Sequence[str]) -> str:
    return ", ".join(ids)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _end(trial: Trial) -> str:
    blocked = trial.verdict.blocked_by
    if blocked is not None:
        return f"blocked by {blocked}"
    return "changed" if trial.verdict.transforms else "passes"


def _finding_line(finding: Finding, text: str) -> str:
    shadow = ", shadow: nothing is done" if finding.shadow else ""
    why = "" if finding.category is None else f" {finding.category}"
    score = "" if finding.score is None else f" {finding.score:.3f}"
    excerpt = plain(text[finding.start : finding.end])
    if len(excerpt) > _EXCERPT:
        excerpt = excerpt[: _EXCERPT - 1] + "…"
    return (
        f"{finding.action.value} {finding.rule}{why}{score}"
        f" at {finding.start}–{finding.end}: {excerpt!r}{shadow}"
    )


def _finding_json(finding: Finding, text: str) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "action": finding.action.value,
        "start": finding.start,
        "end": finding.end,
        "text": text[finding.start : finding.end],
        "category": finding.category,
        "score": finding.score,
        "shadow": finding.shadow,
        "replacement": finding.replacement,
    }


def _not_run(missing: NotRun) -> str:
    return f"{missing.rule}: {missing.failure}, fails {missing.on_failure}"


def _stream_lines(trial: Trial) -> list[str]:
    """Unchanged text that hardly waited is one line together."""
    lines: list[str] = []
    at, start, run = 0, 0, ""

    def close_run() -> None:
        if run:
            lines.append(f"{start:>6}–{at}: as it came: {plain(run)!r}")

    for left in trial.stream:
        end = at + left.source
        waited = left.after - at - 1
        if left.text == trial.text[at:end] and waited <= _HARDLY:
            run, at = run + left.text, end
            continue
        close_run()
        if left is trial.stream[-1] and trial.verdict.blocked_by is not None:
            end -= left.source - len(left.text)
        if end > at:
            lines.append(f"{at:>6}–{end}: when {left.after} had come: {plain(left.text)!r}")
        run, at, start = "", end, end
    close_run()
    if at < len(trial.text):
        lines.append(f"{at:>6}–{len(trial.text)}: never")
    return lines
