"""The blocks of code in the README and in docs/: what each says it is and, where it isn't run, why
not. Every such block is read by a test; most are run as they stand."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import antiphon

ROOT = Path(antiphon.__file__).parent.parent
PAGES = ("README.md", *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")))
HOST = "http://127.0.0.1:8000"
"""Where the server of the examples listens."""

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$",
    re.MULTILINE,
)
_PROMPT, _GOES_ON = "$ ", "> "
_STEP_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`not_run` is why it isn't, which stands in a comment above it."""

    page: str
    line: int
    kind: str
    text: str
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}:{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Of a session: what is typed, and what that prints."""

    command: str
    printed: str


def blocks(page: str, *kinds: str) -> list[Block]:
    """Those of a page, of some kinds or of all."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, match.start("kind")) + 1,
            kind=match["kind"],
            text=match["text"],
            not_run=match["reason"],
        )
        for match in _BLOCK.finditer(text)
        if not kinds or match["kind"] in kinds
    ]


def prose(page: str) -> str:
    """What stands outside of blocks."""
    return _BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))


def steps(block: Block) -> Iterator[Step]:
    """What follows `$ ` is typed, and goes on in lines after `> `; the rest is what that prints."""
    typed, printed = "", ""
    for line in block.text.splitlines(keepends=True):
        if line.startswith(_PROMPT):
            if typed:
                yield Step(command=typed, printed=printed)
            typed, printed = line.removeprefix(_PROMPT), ""
        elif not printed and typed and line.startswith(_GOES_ON):
            typed += line.removeprefix(_GOES_ON)
        else:
            printed += line
    yield Step(command=typed, printed=printed)


def play(
    block: Block, folder: Path, environment: Mapping[str, str], given: Mapping[str, str]
) -> None:
    """Type a session in `folder`, with the names of `given` in place of the example's. Raises
    AssertionError where something else is printed, standard error included; `…` stands for
    anything."""
    programs = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for step in steps(block):
        command, expected = replaced(step.command, given), replaced(step.printed, given)
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env={**environment, "PATH": programs},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_STEP_S,
            check=False,
        )
        assert ran.returncode == 0, f"{command}{ran.stdout}"
        if expected:
            assert is_as_shown(ran.stdout, expected), f"{command}{ran.stdout}\nnot\n{expected}"


def replaced(text: str, given: Mapping[str, str]) -> str:
    """With the names that a test has, instead of those of an example."""
    names = "|".join(map(re.escape, sorted(given, key=len, reverse=True)))
    return re.sub(names, lambda found: given[found[0]], text) if names else text


def is_as_shown(printed: str, shown: str) -> bool:
    """Spaces may be wider than they are in a document, and `…` is anything within a line."""
    pattern = r"\s+".join(".*".join(map(re.escape, word.split("…"))) for word in shown.split())
    return re.fullmatch(pattern, printed.strip()) is not None


def pipeline(line: str) -> Iterator[list[str]]:
    """The words of each command of a line, without what goes into files."""
    words: list[str] = []
    for word in shlex.split(line, comments=True):
        if word in ("|", "&&", ";"):
            yield words
            words = []
        elif word.startswith((">", "<")):
            break
        else:
            words.append(word)
    yield words
