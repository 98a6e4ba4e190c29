"""One real server with the real model for all end-to-end tests that leave it as they found it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.testing.node import NodeProject, install_node_project
from antiphon.testing.process import ServerProcess, running_server


@pytest.fixture(scope="session")
def server(model_dir: Path) -> Iterator[ServerProcess]:
    """`model_dir` makes sure that the model is prepared, so that the start is quick."""
    with running_server() as process:
        yield process


@pytest.fixture(scope="session")
def node_project(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """openai-node, installed from its lock."""
    return install_node_project(
        Path(__file__).parent / "node",
        tmp_path_factory.mktemp("node"),
        ["package.json", "package-lock.json", "openai.mjs"],
    )
