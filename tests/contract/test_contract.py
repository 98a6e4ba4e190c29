"""One contract, and every engine keeps it: the checks of `antiphon engines verify`, one by one."""

from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

import antiphon
from antiphon.testing.subjects import REAL, SUBJECTS
from antiphon.verifying.checks import CHECKS, Check, name_of
from antiphon.verifying.report import Report
from antiphon.verifying.run import BOOKS, verify
from antiphon.verifying.talk import Sizes

HEAVY = {"upstream-antiphon", "upstream-llama-server"}
"""Two servers and two engines for what one server in front of another shows end to end as well; and
a slow one, for what the scripted replicas show of an upstream."""
ENGINES = [
    pytest.param(
        name,
        marks=[pytest.mark.engine] * (name in REAL) + [pytest.mark.heavy] * (name in HEAVY),
        id=name,
    )
    for name in SUBJECTS
]


ENGINES_PAGE = (Path(antiphon.__file__).parents[1] / "docs" / "engines.md").read_text()
STORMS = {"openvino": 80, "upstream-llama-server": 40, "upstream-antiphon": 60}
"""Where 200 admits take longer than they tell."""


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def report(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Report:
    """The engine is started once, for those of its checks that are wanted."""
    wanted = [
        item.callspec.params["check"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.function is test_the_contract_is_kept
        and item.callspec.params["engine"] == engine
    ]
    options = request.config
    sizes = Sizes(
        storm=options.getoption("storm") or STORMS.get(engine, 200),
        conversations=options.getoption("conversations") or 16,
    )
    folder = tmp_path_factory.mktemp("engine")
    return trio.run(partial(_report, engine, folder, wanted, sizes))


async def _report(engine: str, folder: Path, checks: list[Check], sizes: Sizes) -> Report:
    async with SUBJECTS[engine](folder) as subject:
        return await verify(subject, start_timeout_s=60, sizes=sizes, checks=checks, measured=False)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_is_kept(check: Check, report: Report):
    [finding] = [each for each in report.findings if each.check == name_of(check)]

    if finding.skipped:
        pytest.skip("the engine says that it can't")
    assert finding.problem is None


def test_the_table_says_what_it_can_do(engine: str, report: Report):
    section = ENGINES_PAGE.partition("\n## Capabilities\n")[2].partition("\n## ")[0]
    table = section[section.index("|") :].partition("\n\n")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    column = head.index(f"`{engine}`")
    told = {row[0].strip("`"): row[column].split()[0] == "yes" for row in rows}

    capabilities = msgspec.structs.asdict(report.capabilities)
    assert told == {key: value for key, value in capabilities.items() if isinstance(value, bool)}


def test_the_books_are_right(report: Report):
    [finding] = [each for each in report.findings if each.check == BOOKS]

    assert finding.problem is None
