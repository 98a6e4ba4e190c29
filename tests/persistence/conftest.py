"""One test-suite for both databases: every test that takes `store` or `url` runs on each."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from antiphon.persistence.bridge import open_store
from antiphon.persistence.store import SqlStore
from antiphon.testing.databases import PrivatePostgres, private_postgres
from antiphon.testing.specimens import Writer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PrivatePostgres]:
    with private_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh database with the schema, or a file that isn't there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'antiphon.db'}"
    server: PrivatePostgres = request.getfixturevalue("postgres")
    return server.fresh()


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with open_store(url=url, data_dir=tmp_path) as store:
        yield store


@pytest.fixture
async def writer(store: SqlStore) -> Writer:
    return await Writer.new(store)


@pytest.fixture
async def other(store: SqlStore, url: str, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A second server's store on the same database."""
    async with open_store(url=url, data_dir=tmp_path) as other:
        yield other
