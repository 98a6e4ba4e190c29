"""A report as people read it: aligned columns for a terminal, Markdown for a document."""

from collections.abc import Callable, Sequence

from antiphon.simulating.report import ClassFigures, FleetFigures, Report

Layout = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]


def table(report: Report) -> str:
    """For a terminal."""
    return "\n".join(_lines(report, _aligned))


def markdown(report: Report) -> str:
    """For a document."""
    return "\n".join(_lines(report, _piped))


_COLUMNS = (
    "class",
    "requests",
    "finished",
    "first token p50",
    "p90",
    "p99",
    "between tokens p50",
    "p99",
    "gap p99",
    "queue p99",
    "within objectives",
    "goodput",
    "tokens/s",
)
_FLEET_COLUMNS = (
    "engine",
    "replicas",
    "busy",
    "slots",
    "KV",
    "batch",
    "tokens/s each",
    "prefill tokens/s each",
)


def _lines(report: Report, layout: Layout) -> list[str]:
    rows = [*report.classes, *report.priorities]
    if len(rows) != 1:
        rows.append(report.total)
    lines = [
        f"{report.source}; policy {report.policy}; {report.seconds:,.0f} s of arrivals",
        "",
        *layout(_COLUMNS, [_row(figures) for figures in rows]),
        "",
        *layout(_FLEET_COLUMNS, [_fleet_row(fleet) for fleet in report.fleets]),
        "",
        f"{report.cached_share:.0%} of prompt tokens were in the prefix cache. "
        + _otherwise(report.total),
    ]
    if report.assumptions:
        lines += ["", "Assumed:", "", *(f"- {assumption}" for assumption in report.assumptions)]
    return lines


def _row(figures: ClassFigures) -> tuple[str, ...]:
    first, between = figures.first_token_s, figures.between_tokens_s
    return (
        figures.name,
        f"{figures.arrived:,}",
        f"{figures.finished:,}",
        *(_time(value) for value in (first.p50, first.p90, first.p99)),
        *(_time(value) for value in (between.p50, between.p99, figures.gap_p99_s)),
        _time(figures.queue_s.p99),
        f"{figures.good_share:.1%}",
        f"{figures.goodput:,.2f}/s",
        f"{figures.tokens_s:,.0f}",
    )


def _fleet_row(fleet: FleetFigures) -> tuple[str, ...]:
    accelerators = f" ({fleet.accelerators} accelerators)" if fleet.accelerators else ""
    return (
        fleet.engine,
        f"{fleet.replicas}{accelerators}",
        f"{fleet.busy_share:.0%}",
        f"{fleet.slot_share:.0%}",
        f"{fleet.kv_share:.0%}",
        f"{fleet.mean_batch:.1f}",
        f"{fleet.tokens_s:,.0f}",
        f"{fleet.prefill_tokens_s:,.0f}",
    )


def _otherwise(total: ClassFigures) -> str:
    """What didn't simply finish."""
    parts = [
        f"{count:,} {ending}" for ending, count in total.endings.items() if ending != "finished"
    ]
    if total.moved:
        parts.append(f"{total.moved:,} moved to the smaller model")
    if total.paused:
        parts.append(f"{total.paused:,} pauses for pre-emption")
    return f"Beside those that finished: {', '.join(parts)}." if parts else "All finished."


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _piped(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
