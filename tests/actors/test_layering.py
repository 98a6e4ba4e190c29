"""Asks go only downward. A path doesn't say what is below what, and an actor may be reached from
several places, so the rule is kept where it can be seen: in the source, for every ask there is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import antiphon.actors

ROOMS = Path(antiphon.actors.__file__).parent
LAYERS = (
    *("sessions", "moderation's client", "moderation", "judges", "scheduling", "engines"),
    *("embedding", "embedders"),
)
"""Rooms whose actors ask, from the top down."""
ASKED = {
    "scheduler": "scheduling",
    "driver": "engines",
    "desk": "moderation",
    "worker": "judges",
    "embedder": "embedders",
}
"""The room of what is asked, by the name under which it is known to the asker."""


def asks(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Room of the asker, name of the asked, and where."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="ask", value=value)):
                    room = file.relative_to(folder).parts[0]
                    if file.name == "client.py":  # it runs in the tasks of whoever uses it
                        room = f"{room}'s client"
                    yield room, name_of(value), f"{file.relative_to(folder)}:{node.lineno}"


def name_of(value: ast.expr) -> str:
    match value:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lstrip("_").removesuffix("_ref")
        case _:
            return ast.unparse(value)


def test_every_ask_goes_from_a_room_to_one_below_it() -> None:
    found = list(asks(ROOMS))

    assert found
    for asker, asked, where in found:
        assert asked in ASKED, f"{where}: which room answers {asked!r}?"
        assert asker in LAYERS, f"{where}: where does {asker!r} stand?"
        assert LAYERS.index(asker) < LAYERS.index(ASKED[asked]), f"{where} asks upward"


def test_an_upward_ask_is_found(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "driver.py").write_text("x = await self._scheduler.ask(make)")

    assert list(asks(tmp_path)) == [("engines", "scheduler", "engines/driver.py:1")]
