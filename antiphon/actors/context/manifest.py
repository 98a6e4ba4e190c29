"""What became of each of a turn's messages, added up, for whoever asked for the answer."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from antiphon.actors.context.parts import Part
from antiphon.actors.context.planning import Plan
from antiphon.ids import ItemId
from antiphon.views import Fate, Manifest, ManifestRun, PieceKind, Truncation


def manifest_of(
    parts: Sequence[Part],
    plan: Plan,
    *,
    prompt_tokens: int,
    window: int,
    answer: int,
    truncation: Truncation,
) -> Manifest:
    """`prompt_tokens` is the exact count of the whole prompt: what its texts don't account for is
    the template's."""
    runs = tuple(_merged(_lines(parts, plan)))
    texts = sum(run.shown_tokens for run in runs)
    if texts > prompt_tokens:
        # Some were counted by another model's vocabulary: their shares are right, if not the sum.
        runs = _scaled(runs, texts, prompt_tokens)
        texts = sum(run.shown_tokens for run in runs)
    return Manifest(
        window=window,
        reserved_for_answer=answer,
        prompt_tokens=prompt_tokens,
        template_tokens=prompt_tokens - texts,
        truncation=truncation,
        runs=runs,
    )


def _lines(parts: Sequence[Part], plan: Plan) -> Iterator[ManifestRun]:
    # Functions stand with what comes first, whatever the template makes of them.
    for place in sorted(range(len(parts)), key=lambda at: parts[at].kind is not PieceKind.TOOLS):
        part = parts[place]
        if part.kind is PieceKind.SUMMARY:
            yield ManifestRun(
                kind=PieceKind.HISTORY,
                fate=Fate.SUMMARISED,
                items=part.covers,
                tokens=part.covered_tokens,
                shown_tokens=0,
                last=part.item,
            )
        if place not in plan.repeated:
            yield _line(part, is_shown=plan.shown[place], is_trimmed=plan.trimmed[place])


def _line(part: Part, *, is_shown: bool, is_trimmed: bool) -> ManifestRun:
    fate, tokens = Fate.SHOWN, part.tokens
    if not is_shown:
        fate, tokens = Fate.DROPPED, 0
    elif is_trimmed and part.short is not None:
        fate, tokens = Fate.TRIMMED, part.short
    is_item = part.kind not in {PieceKind.MEMORY, PieceKind.SUMMARY, PieceKind.RETRIEVED}
    item: ItemId | None = part.item if is_item else None
    return ManifestRun(
        kind=part.kind,
        fate=fate,
        items=1,
        tokens=part.tokens,
        shown_tokens=tokens,
        first=item,
        last=item,
    )


def _merged(lines: Iterator[ManifestRun]) -> Iterator[ManifestRun]:
    for (kind, fate), group in groupby(lines, key=lambda line: (line.kind, line.fate)):
        run = list(group)
        yield ManifestRun(
            kind=kind,
            fate=fate,
            items=sum(line.items for line in run),
            tokens=sum(line.tokens for line in run),
            shown_tokens=sum(line.shown_tokens for line in run),
            first=run[0].first,
            last=run[-1].last,
        )


def _scaled(runs: Sequence[ManifestRun], texts: int, most: int) -> tuple[ManifestRun, ...]:
    scaled, before, at = [], 0, 0
    for run in runs:
        at += run.shown_tokens
        until = at * most // texts
        scaled.append(
            ManifestRun(
                kind=run.kind,
                fate=run.fate,
                items=run.items,
                tokens=run.tokens,
                shown_tokens=until - before,
                first=run.first,
                last=run.last,
            )
        )
        before = until
    return tuple(scaled)
