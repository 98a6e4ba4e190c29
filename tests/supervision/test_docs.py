"""docs/supervision.md is true: its example runs, and every test that it names exists."""

import ast
import re
from pathlib import Path

import pytest
import structlog.testing

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "supervision.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DOC)))


def functions_of(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_exists(file: str) -> None:
    names = {name for named, name in NAMED if named == file}

    assert names <= functions_of(ROOT / file)


def test_every_scenario_has_a_row_with_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| (\d+)(?:–(\d+))? \| .+ \| (.+) \|$", DOC, re.MULTILINE)
    numbers = [
        number for first, last, _ in rows for number in range(int(first), int(last or first) + 1)
    ]

    assert numbers == list(range(1, 98))
    assert all("::" in told or told.startswith("not applicable") for *_, told in rows)


def test_the_example_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    example, _ = re.findall(r"```python\n(.+?)```", DOC, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.+?)```", DOC, re.DOTALL)

    with structlog.testing.capture_logs():
        exec(compile(example, "docs/supervision.md", "exec"), {"__name__": "example"})

    assert capsys.readouterr().out == printed


def test_every_file_that_the_rules_point_to_exists() -> None:
    table = DOC[DOC.index("## The rules") : DOC.index("How a child ended")]
    places = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    folders = [ROOT, *(ROOT / "antiphon" / room for room in ("", "supervision", "actors"))]

    assert len(places) > 20
    for place in places:
        assert any((folder / place).exists() for folder in folders), place
