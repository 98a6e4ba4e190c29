"""What a verification found, as a value that can be written down and read by people."""

import platform
from collections.abc import Iterator

import msgspec

from antiphon import __version__
from antiphon.events import Capabilities


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `problem` None: it passed; `skipped`: the engine says that it can't."""

    check: str
    problem: str | None = None
    skipped: bool = False
    took_s: float = 0.0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Measured with every slot in use; times in seconds."""

    tokens_per_s: float
    first_token_p50_s: float
    first_token_p99_s: float
    abort_p50_s: float
    abort_p99_s: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run against one engine."""

    antiphon: str
    machine: str
    model: str
    capabilities: Capabilities
    findings: list[Finding]
    figures: Figures | None

    @property
    def passed(self) -> bool:
        return all(finding.problem is None for finding in self.findings)


def make_report(
    model: str, capabilities: Capabilities, findings: list[Finding], figures: Figures | None
) -> Report:
    return Report(
        antiphon=__version__,
        machine=f"{platform.platform()}, Python {platform.python_version()}",
        model=model,
        capabilities=capabilities,
        findings=findings,
        figures=figures,
    )


def lines_of(report: Report) -> Iterator[str]:
    """For people."""
    engine = report.capabilities
    yield f"{engine.engine} {engine.engine_version}, {report.model}, {engine.slots} slots"
    yield f"antiphon {report.antiphon} on {report.machine}"
    for finding in report.findings:
        if finding.skipped:
            yield f"skipped {finding.check}"
        elif finding.problem is None:
            yield f"ok      {finding.check}, {finding.took_s:.1f} s"
        else:
            yield f"BROKEN  {finding.check}: {finding.problem}"
    if (figures := report.figures) is not None:
        yield f"{figures.tokens_per_s:.0f} tokens/s with every slot in use"
        yield (
            f"first token {figures.first_token_p50_s:.3f} s (p50), "
            f"{figures.first_token_p99_s:.3f} s (p99)"
        )
        yield f"abort {figures.abort_p50_s:.3f} s (p50), {figures.abort_p99_s:.3f} s (p99)"
