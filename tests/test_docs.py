"""The documents say what is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

import antiphon
from antiphon.actors.abuse.abuse import AbuseStatistics
from antiphon.actors.moderation.status import PolicyView
from antiphon.actors.store.status import StoreStatus
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.ids import ModelName
from antiphon.live_settings import EFFECTS
from scripts.settings_table import DOCUMENT, sections, written

PACKAGE = Path(antiphon.__file__).parent
DOCUMENTS = PACKAGE.parent / "docs"
NAME = re.compile(r"\bantiphon_[a-z_]+")
A_POLICY = PolicyView(
    version="1",
    source="rules.toml",
    rules=0,
    shadows=0,
    model="m",
    problem=None,
    refused=None,
    versions_in_use=(),
    waiting=0,
    remembered=0,
    events_waiting=0,
    events_dropped=0,
    judges=(),
)
SUFFIXES = {
    "info": ("_info",),
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("", "_bucket", "_sum", "_count"),
}
ARCHITECTURE = (PACKAGE.parent / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize(
    "room", sorted({file.parent for file in PACKAGE.rglob("*.py") if file.name != "__init__.py"})
)
def test_every_module_has_its_line_in_the_architecture(room: Path):
    place = f"### `{room.relative_to(PACKAGE.parent)}/`\n"
    assert place in ARCHITECTURE
    section = ARCHITECTURE.partition(place)[2].partition("\n### ")[0].partition("\n## ")[0]

    listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}

    assert listed == {file.name for file in room.glob("*.py") if file.name != "__init__.py"}


def exported() -> Iterator[str]:
    """Every name of ours that a query may have."""
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)
    telemetry.watch_store(StoreStatus().statistics)
    telemetry.watch_replicas(ModelName("m"), lambda: ())
    telemetry.watch_abuse(
        lambda: AbuseStatistics(signals={}, actions={}, subjects={}, remembered=0, owed=0)
    )
    telemetry.watch_policy(lambda: A_POLICY)
    telemetry.watch_prompts(lambda: ())
    telemetry.watch_work(lambda: 0.0)
    telemetry.watch_files(lambda: 0)
    for family in registry.collect():
        if family.name.startswith("antiphon_"):
            yield from (family.name + suffix for suffix in SUFFIXES[family.type])


@pytest.mark.parametrize(
    "document",
    sorted(file.name for file in DOCUMENTS.glob("*.md") if NAME.search(file.read_text())),
)
def test_every_metric_that_a_document_names_exists(document: str, autojump_clock):
    named = set(NAME.findall((DOCUMENTS / document).read_text()))

    assert named <= set(exported())


def test_the_settings_in_the_document_are_those_of_the_code():
    """`python scripts/settings_table.py` writes them anew."""
    document = DOCUMENT.read_text(encoding="utf-8")

    assert written(document) == document


def test_every_setting_has_its_row():
    rows = {row.key for _, _, section in sections() for row in section}

    assert EFFECTS.keys() - {"pools", "aliases", "plans"} <= rows


PAGES = [PACKAGE.parent / "README.md", *sorted(DOCUMENTS.glob("*.md"))]
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in set(anchors(target)), f"{path}#{anchor}"


def anchors(page: Path) -> Iterator[str]:
    """As GitHub makes them of headings."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip().lower()
            yield re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
