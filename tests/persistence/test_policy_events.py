"""What the policy did is kept, found again, and leaves with those whom it was about."""

from dataclasses import replace
from typing import Any

from antiphon.ids import new_response_id, new_user_id
from antiphon.persistence.expiry import Retention, expire
from antiphon.persistence.port import Statement
from antiphon.persistence.store import SqlStore
from antiphon.records import Page
from antiphon.testing.specimens import Writer
from antiphon.verdicts import PolicyEvent, Stage


def an_event(**fields: Any) -> PolicyEvent:
    made = {
        "request": "req_1",
        "rule": "no-secrets",
        "version": "v1",
        "action": "block",
        "stage": Stage.OUTPUT,
        "created_ms": 5,
        "detail": {"category": "key"},
    } | fields
    return PolicyEvent(**made)


async def texts(store: SqlStore) -> list[str | None]:
    return [event.text for event in reversed(await store.policy_events())]


async def test_an_event_comes_back_as_it_was_written(store: SqlStore, writer: Writer):
    turn = await writer.answered("hello", "done")
    event = an_event(response=turn, user=writer.user, shadow=True, text="sk-1\0", created_ms=7)

    await store.add_policy_events([event])
    await store.add_policy_events([event])  # its writer never heard that it was written

    (found,) = await store.policy_events()
    assert found == replace(event, text="sk-1\ufffd")


async def test_operators_see_the_latest_first_of_a_rule_or_a_user(store: SqlStore, writer: Writer):
    await store.add_policy_events(
        [
            an_event(created_ms=1),
            an_event(created_ms=2, rule="other", user=writer.user),
            an_event(created_ms=3, user=writer.user),
        ]
    )

    async def times(**wanted: Any) -> list[int]:
        return [event.created_ms for event in await store.policy_events(**wanted)]

    assert await times() == [3, 2, 1]
    assert await times(limit=2) == [3, 2]
    assert await times(rule="no-secrets") == [3, 1]
    assert await times(user=writer.user) == [3, 2]
    assert await times(user=writer.user, rule="other") == [2]


async def test_what_belongs_to_nobody_any_more_is_kept_without_name_and_text(
    store: SqlStore, writer: Writer
):
    await store.add_policy_events(
        [
            an_event(created_ms=1, response=new_response_id(), user=writer.user, text="words"),
            an_event(created_ms=2, user=new_user_id(), text="words"),
            an_event(created_ms=3, user=writer.user, text="words"),
        ]
    )

    found = await store.policy_events()
    assert [(event.response, event.user, event.text) for event in reversed(found)] == [
        (None, writer.user, None),
        (None, None, None),
        (None, writer.user, "words"),
    ]


async def test_events_leave_with_their_conversation_and_with_their_user(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    turn = await writer.answered("hello", "done", conversation=conversation)
    other = await Writer.new(store)
    await store.add_policy_events(
        [
            an_event(response=turn, user=writer.user, text="in it"),
            an_event(user=writer.user, text="alone"),
            an_event(user=other.user, text="another's"),
        ]
    )

    receipt = await store.delete_conversation(writer.user, conversation, 9)
    assert receipt is not None
    assert receipt.rows["policy_events"] == 1
    exported = await store.export_user(writer.user)
    assert exported is not None
    assert [event["text"] for event in exported["policy_events"]] == ["alone"]

    receipt = await store.erase_user(writer.user, 10)
    assert receipt is not None
    assert receipt.rows["policy_events"] == 1
    assert await texts(store) == ["another's"]


async def test_deleting_a_turn_takes_the_words_of_all_that_came_after_it(
    store: SqlStore, writer: Writer
):
    first = await writer.answered("hello", "done")
    second = await writer.answered("hello", "done", previous=first)
    third = await writer.answered("hello", "done", previous=second)
    apart = await writer.answered("hello", "done")
    await store.add_policy_events(
        [
            an_event(response=turn, user=writer.user, created_ms=at, text="words")
            for at, turn in enumerate((first, second, third, apart))
        ]
    )

    await store.delete_response(writer.user, second, 9)

    # The second one's event has gone with it.
    assert await texts(store) == ["words", None, "words"]


async def test_deleting_an_item_takes_the_words_from_its_conversations_events(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    first = await writer.answered("hello", "done", conversation=conversation)
    second = await writer.answered("hello", "done", conversation=conversation)
    await store.add_policy_events(
        [an_event(response=turn, user=writer.user, text="words") for turn in (first, second)]
    )

    (item, *_) = await store.items(writer.user, conversation, Page(limit=1)) or ()

    await store.delete_item(writer.user, conversation, item.id, writer.tick())

    assert await texts(store) == [None, None]


async def test_events_expire_with_the_traces(store: SqlStore):
    await store.add_policy_events([an_event(created_ms=100), an_event(created_ms=200)])
    retention = Retention(traces_ms=50)

    receipt = await store.database.write(lambda tx: expire(tx, retention, 200, 10))

    assert receipt.rows == {"policy_events": 1}
    assert [event.created_ms for event in await store.policy_events()] == [200]


async def test_events_of_an_earlier_schema_are_read(store: SqlStore):
    old = Statement(
        "test",
        """INSERT INTO policy_events (id, request_id, rule, action, stage, created_ms)
            VALUES ('pol_0', 'req_0', 'r', 'block', 'input', 1)""",
    )
    await store.database.write(lambda tx: tx.execute(old))

    (found,) = await store.policy_events()

    assert (found.version, found.shadow, found.user, dict(found.detail), found.text) == (
        "",
        False,
        None,
        {},
        None,
    )
