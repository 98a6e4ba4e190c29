"""What may be learned from leaves by one door, and only with its user's consent."""

import json
from pathlib import Path

import pytest

from antiphon.errors import StoreFailed
from antiphon.persistence.store import SqlStore
from antiphon.persistence.training import export_training, messages_of
from antiphon.testing.specimens import Writer, an_item


def lines_of(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def exported(store: SqlStore, file: Path) -> list[dict[str, object]]:
    count = await export_training(store.database, file)
    lines = lines_of(file)
    assert len(lines) == count
    return lines


async def test_conversations_of_users_who_said_no_are_left_out_until_they_say_yes(
    store: SqlStore, tmp_path: Path
):
    willing, not_willing = await Writer.new(store), await Writer.new(store)
    ids = []
    for writer in (willing, not_willing):
        id = await writer.conversation(
            an_item("Be kind.", role="developer"),
            an_item("Hello?", role="user"),
            an_item("Yes!", role="assistant"),
        )
        ids.append(id)
    await store.set_training(not_willing.user, False)

    without = await exported(store, tmp_path / "one.jsonl")
    await store.set_training(not_willing.user, True)
    both = await exported(store, tmp_path / "both.jsonl")

    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Yes!"},
    ]
    assert without == [{"conversation": ids[0], "messages": messages}]
    assert sorted(line["conversation"] for line in both) == sorted(ids)
    assert not [line for line in both if set(line) != {"conversation", "messages"}]


async def test_more_conversations_than_a_page_are_all_there(store: SqlStore, tmp_path: Path):
    writer = await Writer.new(store)
    for _ in range(201):
        await writer.conversation(an_item("a", role="user"), an_item("b", role="assistant"))

    assert len(await exported(store, tmp_path / "x.jsonl")) == 201


async def test_a_file_that_is_there_is_not_written_over(store: SqlStore, tmp_path: Path):
    file = tmp_path / "x.jsonl"
    await exported(store, file)

    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(StoreFailed, match="exists"):
        await export_training(store.database, file)


def test_what_was_cut_short_or_is_no_message_teaches_nothing():
    assert messages_of([an_item("Hello?", role="user")]) == []
    assert (
        messages_of(
            [an_item("x", role="user"), an_item("y", role="assistant", status="incomplete")]
        )
        == []
    )
    kept = messages_of(
        [
            an_item("x", role="user"),
            an_item(type="reasoning", body={}),
            an_item("y", role="assistant"),
        ]
    )
    assert [message["content"] for message in kept] == ["x", "y"]
