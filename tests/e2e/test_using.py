"""Every example in the README and in docs/ that talks to a server, run as it stands against a real
one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.testing.examples import HOST, PAGES, Block, blocks
from antiphon.testing.node import NodeProject
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine

LANGUAGES = ("python", "javascript", "sh")
ELSEWHERE = "docs/supervision.md"
"""Its examples have no server: tests/supervision/test_docs.py runs them."""
EXAMPLES = [
    block
    for page in PAGES
    for block in blocks(page, *LANGUAGES)
    if page != ELSEWHERE and not block.not_run
]
_EXAMPLE_S = 120.0


def test_there_are_examples_in_every_language():
    assert {example.kind for example in EXAMPLES} == set(LANGUAGES)
    assert any("langchain" in example.text for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_runs_as_it_stands(
    example: Block, server: ServerProcess, node_project: NodeProject, tmp_path: Path
):
    host, port = server.api
    text = example.text.replace(HOST, f"http://{host}:{port}")
    command: list[str | Path]
    match example.kind:
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
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONWARNINGS": "default",
            "LANGSMITH_TRACING": "false",
            "ANTIPHON_API_URL": f"http://{host}:{port}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_EXAMPLE_S,
        check=False,
    )

    assert HOST in example.text or "antiphon chat" in example.text, "it talks to the server"
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip()
    # As events, an answer comes in pieces of words.
    if "capital of France" in example.text and '"stream": true' not in example.text:
        assert "Paris" in ran.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_can_be_copied_by_itself(example: Block):
    """It stands alone: nothing of another example is needed."""
    if example.kind == "python":
        assert "import" in example.text.splitlines()[0]
        compile(example.text, str(example), "exec")
