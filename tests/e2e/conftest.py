"""Real servers with the real model, one a database, for all end-to-end tests that leave them as
they found them."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from antiphon.testing.databases import PrivatePostgres, private_postgres
from antiphon.testing.node import NodeProject, install_node_project
from antiphon.testing.process import ServerProcess, running_server
from antiphon.testing.tenants import GuardedServer, guarded_server


@pytest.fixture(scope="session")
def server(model_dir: Path) -> Iterator[ServerProcess]:
    """`model_dir` makes sure that the model is prepared, so that the start is quick."""
    with running_server() as process:
        yield process


@pytest.fixture(scope="session")
def postgres() -> Iterator[PrivatePostgres]:
    """One for all, with a database for each."""
    with private_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(model_dir: Path, postgres: PrivatePostgres) -> Iterator[ServerProcess]:
    """The same on PostgreSQL."""
    with running_server(ANTIPHON_DATABASE_URL=postgres.another()) as process:
        yield process


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest) -> ServerProcess:
    """A server whose state matters: every test that takes it runs on each database."""
    name = "server" if request.param == "sqlite" else "postgres_server"
    process: ServerProcess = request.getfixturevalue(name)
    return process


@pytest.fixture
def keeper(kept: ServerProcess) -> Iterator[openai.OpenAI]:
    """openai-python pointed at it, without retries, which would hide what went wrong."""
    with openai.OpenAI(base_url=kept.base_url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def node_project(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """openai-node, installed from its lock."""
    return install_node_project(
        Path(__file__).parent / "node",
        tmp_path_factory.mktemp("node"),
        ["package.json", "package-lock.json", "openai.mjs", "responses.mjs", "files.mjs"],
    )


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def guarded(
    request: pytest.FixtureRequest, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedServer]:
    """A server that asks for keys, on each database, whose whole memory a test may look at."""
    is_on_postgres = request.param == "postgresql"
    postgres = request.getfixturevalue("postgres") if is_on_postgres else None
    with guarded_server(tmp_path_factory.mktemp("guarded"), postgres) as guarded:
        yield guarded
