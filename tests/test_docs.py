"""The documents say what is there."""

from pathlib import Path

import pytest

import antiphon

PACKAGE = Path(antiphon.__file__).parent
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
