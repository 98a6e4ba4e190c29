"""Every example of the README and of docs/using.md, run as it stands against a real server."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import antiphon
from antiphon.testing.node import NodeProject
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine

ROOT = Path(antiphon.__file__).parent.parent
DOCUMENTS = ("README.md", "docs/using.md")
HOST = "http://127.0.0.1:8000"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = {"python", "javascript", "sh"}
_EXAMPLE_S = 120.0


@dataclass(frozen=True, slots=True)
class Example:
    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}:{self.language}"


def examples() -> list[Example]:
    found = []
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Example(document, line, match[1], match[2]))
    return found


EXAMPLES = examples()


def test_there_are_examples_in_every_language():
    assert {example.language for example in EXAMPLES} == RUN
    assert any("langchain" in example.text for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_runs_as_it_stands(
    example: Example, server: ServerProcess, node_project: NodeProject, tmp_path: Path
):
    host, port = server.api
    text = example.text.replace(HOST, f"http://{host}:{port}")
    command: list[str | Path]
    match example.language:
        case "python":
            file, command, folder = tmp_path / "example.py", [sys.executable], tmp_path
        case "javascript":
            folder = node_project.folder
            file, command = folder / f"example_{example.line}.mjs", [node_project.node]
        case _:
            file, command, folder = tmp_path / "example.sh", ["sh", "-e"], tmp_path
    file.write_text(text, encoding="utf-8")

    ran = subprocess.run(
        [*command, file],
        cwd=folder,
        env=os.environ | {"PYTHONWARNINGS": "default", "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=_EXAMPLE_S,
        check=False,
    )

    assert HOST in example.text, "an example names the server that it talks to"
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip()
    # As events, an answer comes in pieces of words.
    if "capital of France" in example.text and '"stream": true' not in example.text:
        assert "Paris" in ran.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_can_be_copied_by_itself(example: Example):
    """It stands alone: nothing of another example is needed."""
    if example.language == "python":
        assert "import" in example.text.splitlines()[0]
        compile(example.text, str(example), "exec")
