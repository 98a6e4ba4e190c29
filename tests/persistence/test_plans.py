"""No statement reads a whole table: the databases are asked how they would run each of them.

All statements are made in one place, so none can be forgotten; what may scan says why.
"""

import re
import sqlite3
from pathlib import Path

import pytest
import trio

from antiphon.persistence.bridge import open_store
from antiphon.persistence.port import STATEMENTS, Statement, Transaction
from antiphon.persistence.sqlite_dialect import words_of
from antiphon.persistence.store import SqlStore

MAY_SCAN = {
    "users.list": "an operator's command, and there are few users",
    "keys.list": "an operator's command, and there are few keys",
    "prompts.versions": "an operator writes them, and there are few",
    "prompts.activations": "an operator makes them, and there are few",
    "removed_documents.first": "the few large ones that are being removed",
    "documents.remake": "once when a server starts, for what another version has made",
    **{
        name: "reads a whole table on purpose, in an operator's command"
        for name in STATEMENTS
        if name.startswith(("check.", "transfer."))
    },
}
PLANNED = sorted(
    name for name in STATEMENTS.keys() - MAY_SCAN.keys() if " VALUES (" not in STATEMENTS[name].text
)
"""Plain inserts have no plan."""
SORTS = {
    **{
        name: "few responses have that much metadata, or the list's order would be cheaper"
        for name in STATEMENTS
        if re.search(r"responses\.list.*_metadata\d\d$", name)
    },
    "context.chain": "the chain is walked backwards, and shown forwards",
    "items.output": "at most a page of responses",
    "account.feedback": "all of one user's, in an export",
    "responses.take_over": "the few that are orphans",
    "responses.owned": "the few of one batch",
    "keys.list_of_user": "a handful",
    "said.conversations": "two pages, one of them archived",
    "said.items": "those of a few conversations, a piece at a time",
    "prompts.activations": "by name and backwards; there are few",
}
"""Statements that may sort what they found."""
ASIDE = {
    *("json_each", "t", "chain", "c", "CONSTANT", "chunk_index", "(subquery-2)"),
    *("opened", "archived"),
}
"""What isn't a table: an argument's list (also as `t`), the chain as far as it has been walked, the
full-text index, which is asked for words (also as `c`, and where those are counted), and pages that
are merged."""


def test_every_exception_is_of_a_statement_there_is():
    assert MAY_SCAN.keys() <= STATEMENTS.keys()
    assert len(PLANNED) > 100


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")

    async def make() -> None:
        async with open_store(data_dir=folder):
            pass

    trio.run(make)
    return folder / "antiphon.db"


def test_sqlite_finds_rows_by_an_index(plan_file: Path):
    scanned, unordered = {}, {}
    for name in PLANNED:
        steps = steps_of(plan_file, words_of(STATEMENTS[name]))
        for step in steps:
            if step.startswith("SCAN ") and step.split()[1] not in ASIDE:
                scanned[name] = steps
            if "TEMP B-TREE FOR ORDER BY" in step and name not in SORTS:
                unordered[name] = steps

    assert not scanned
    assert not unordered


def steps_of(file: Path, text: str) -> list[str]:
    count = max(map(int, re.findall(r"\?(\d+)", text)), default=0)
    connection = sqlite3.connect(file)
    try:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", [""] * count)]
    finally:
        connection.close()


async def test_postgres_finds_rows_by_an_index(postgres, tmp_path: Path):
    """Small tables are read whole whatever their indexes, unless that is forbidden."""
    async with open_store(url=postgres.fresh(), data_dir=tmp_path) as store:
        plans = await explained(store)

    scanned = {
        name: plan for name, plan in plans.items() if "Seq Scan" in plan and name not in MAY_SCAN
    }
    assert not scanned, "\n\n".join(f"{name}\n{plan}" for name, plan in scanned.items())


async def explained(store: SqlStore) -> dict[str, str]:
    async def explain(tx: Transaction) -> dict[str, str]:
        await tx.execute(Statement("test", "SET LOCAL enable_seqscan = off"))
        await tx.execute(Statement("test", "SET LOCAL plan_cache_mode = force_generic_plan"))
        plans = {}
        for number, name in enumerate(PLANNED):
            text = STATEMENTS[name].text
            count = max(map(int, re.findall(r"\$(\d+)", text)), default=0)
            nothing = f"({', '.join(['NULL'] * count)})" if count else ""
            await tx.execute(Statement("test", f"PREPARE s{number} AS {text}"))
            rows = await tx.fetch(Statement("test", f"EXPLAIN EXECUTE s{number}{nothing}"))
            plans[name] = "\n".join(row[0] for row in rows)
        return plans

    return await store.database.write(explain)


def test_the_test_would_see_a_scan(plan_file: Path):
    assert steps_of(plan_file, "SELECT id FROM responses WHERE model = 'x'") == ["SCAN responses"]
