"""What storage costs, alone: a large database is filled, then each read and each write of a turn is
timed. Prints JSON, times in milliseconds.

    python -m bench.storage --conversations 100000 --items 20       # SQLite, in a temporary folder
    python -m bench.storage --database postgres                     # a private server
    python -m bench.storage --url postgresql://user@host/empty_database
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import trio

from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.persistence.bridge import open_store
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.schema import TABLES
from antiphon.persistence.store import SqlStore
from antiphon.records import EventBatch, Page, ResponseKind
from antiphon.testing.databases import private_postgres
from antiphon.testing.specimens import Writer

CHUNK = 500
OTHERS = 20
"""Besides one user with half of all conversations: the rest is spread over these."""
BODY = json.dumps({"content": [{"type": "input_text", "text": "All work and no play. " * 20}]})


def insert(table: str) -> Statement:
    columns = next(each.columns for each in TABLES if each.name == table)
    marks = ", ".join(f"${n + 1}" for n in range(len(columns)))
    return Statement("bench", f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})")


def conversation_id(n: int) -> ConversationId:
    return ConversationId(f"conv_{n * 2654435761 % 2**32:08x}{n:08x}")


def rows(
    numbers: range, items: int, owner: Callable[[int], UserId]
) -> dict[str, list[tuple[Any, ...]]]:
    conversations: list[tuple[Any, ...]] = []
    headers: list[tuple[Any, ...]] = []
    bodies: list[tuple[Any, ...]] = []
    for n in numbers:
        id, title = conversation_id(n), f"Conversation number {n} about things"
        conversations.append(
            (id, owner(n), title, title.casefold(), "{}", n, n, None, items, None, None)
        )
        for position in range(items):
            role = ("user", "assistant")[position % 2]
            item = ItemId(f"msg_{n:08x}{position:04x}")
            headers.append((id, position, item, None, None, "message", role, "completed", None, n))
            bodies.append((id, position, BODY))
    return {"conversations": conversations, "items": headers, "item_bodies": bodies}


def chunks(count: int) -> Iterator[range]:
    for start in range(0, count, CHUNK):
        yield range(start, min(start + CHUNK, count))


async def fill(store: SqlStore, conversations: int, items: int) -> Writer:
    heavy = await Writer.new(store)
    others = [(await Writer.new(store)).user for _ in range(OTHERS)]

    def owner(n: int) -> UserId:
        return heavy.user if n % 2 else others[n // 2 % OTHERS]

    for numbers in chunks(conversations):
        tables = rows(numbers, items, owner)

        async def write(tx: Transaction, tables: dict[str, Any] = tables) -> None:
            for table, batch in tables.items():
                await tx.executemany(insert(table), batch)

        await store.database.write(write)
    heavy.now_ms = max(heavy.now_ms, conversations)
    return heavy


async def timed(count: int, work: Callable[[int], Awaitable[object]]) -> dict[str, float]:
    times = []
    for n in range(count):
        began = time.perf_counter()
        await work(n)
        times.append((time.perf_counter() - began) * 1000)
    times.sort()
    return {
        "median": round(statistics.median(times), 3),
        "p99": round(times[int(len(times) * 0.99)], 3),
    }


async def measure(
    store: SqlStore, writer: Writer, conversations: int, count: int
) -> dict[str, Any]:
    mine = [conversation_id(n) for n in range(1, conversations, 2)]
    user = writer.user

    def some(n: int) -> ConversationId:
        return mine[n * 7919 % len(mine)]

    first = await store.conversations(user, Page(limit=20))
    found: dict[str, Any] = {
        "list_first_page": await timed(count, lambda n: store.conversations(user, Page(limit=20))),
        "list_deep_page": await timed(
            count, lambda n: store.conversations(user, Page(limit=20, after=some(n)))
        ),
        "search_common": await timed(
            count, lambda n: store.conversations(user, Page(limit=20), search="number")
        ),
        "search_rare": await timed(
            5, lambda n: store.conversations(user, Page(limit=20), search="nowhere")
        ),
        "open": await timed(count, lambda n: opened(store, user, some(n))),
        "context": await timed(count, lambda n: store.context(user, conversation=some(n))),
        "responses": await timed(
            count, lambda n: store.responses(user, Page(limit=20), kind=ResponseKind.RESPONSE)
        ),
        "conversations_of_the_user": len(mine),
        "first": first[0].id,
    }
    return found | await turn(store, writer, [some(n) for n in range(count)])


async def opened(store: SqlStore, user: UserId, id: ConversationId) -> None:
    await store.conversation(user, id)
    await store.items(user, id, Page(limit=100, newest_first=False))


async def turn(
    store: SqlStore, writer: Writer, conversations: list[ConversationId]
) -> dict[str, Any]:
    """`before_first_token` is all that is written before a turn may run."""
    turns = [writer.turn("What now?", conversation=each) for each in conversations]
    ids = [turn.response.id for turn in turns]

    async def accept(n: int) -> None:
        await store.accept_turn(turns[n])

    async def before(n: int) -> None:
        alone = writer.turn("What now?", conversation=conversations[n])
        await store.accept_turn(alone)
        await store.start_response(alone.response.id, writer.node)
        ends.append(alone.response.id)

    async def log(n: int) -> None:
        batch = EventBatch(first=0, last=9, body=b"x" * 500)
        await store.append_events(writer.node, [(ids[n], batch)])

    ends: list[Any] = []
    found = {
        "accept_turn": await timed(len(turns), accept),
        "append_events": await timed(len(turns), log),
        "finish_response": await timed(
            len(turns), lambda n: store.finish_response(writer.final(ids[n], "An answer. " * 40))
        ),
    }
    found["before_first_token"] = await timed(len(turns), before)
    for id in ends:
        await store.finish_response(writer.final(id, "Done."))
    return found


async def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(options.data_dir or folder)
        async with open_store(
            url=options.url, data_dir=place, durability=options.durability
        ) as store:
            began = time.perf_counter()
            writer = await fill(store, options.conversations, options.items)
            filled_s = time.perf_counter() - began
            found = await measure(store, writer, options.conversations, options.count)
        found["filled_s"] = round(filled_s, 1)
        file = place / "antiphon.db"
        found["file_mib"] = file.stat().st_size // 2**20 if file.exists() else None
        print(json.dumps(found, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--data-dir")
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=20, help="in each conversation")
    parser.add_argument("--count", type=int, default=200, help="of each measurement")
    parser.add_argument("--durability", choices=["normal", "full"], default="normal")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    if options.url is not None or options.database == "sqlite":
        trio.run(run, options)
        return
    with private_postgres(hasty=False) as postgres:
        options.url = postgres.another()
        trio.run(run, options)


if __name__ == "__main__":
    main()
