"""Accepting and finishing turns, on both databases."""

from dataclasses import replace

import pytest

from antiphon.errors import (
    ConversationLocked,
    IdempotencyMismatch,
    InvalidRequest,
    RecordNotFound,
    ResponseInProgress,
)
from antiphon.ids import (
    ModelName,
    RequestId,
    ResponseId,
    new_conversation_id,
    new_node_id,
    new_user_id,
)
from antiphon.persistence import context
from antiphon.persistence.store import SqlStore
from antiphon.persistence.turns import LAST_RETRY_MS
from antiphon.records import (
    Accepted,
    Claim,
    EventBatch,
    Page,
    Repeated,
    ResponseError,
    ResponseKind,
    ResponseStatus,
    TokenUsage,
)
from antiphon.testing.specimens import LEASE_MS, Writer, a_file, an_item, text_of

NOBODY = new_user_id()


async def test_a_turn_sees_what_came_before_in_its_conversation(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(an_item("Be brief.", role="system"))
    await writer.answered("One?", "Yes.", conversation=conversation)

    seen = await writer.accept(writer.turn("Two?", conversation=conversation))

    assert seen == ("Be brief.", "One?", "Yes.")


async def test_a_finished_turn_shows_all_that_was_said_about_it(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    turn = writer.turn(
        "Hi", conversation=conversation, response={"metadata": {"a": "b"}, "streamed": True}
    )
    await writer.accept(turn)
    final = writer.final(turn.response.id, "Hello", incomplete_reason="max_output_tokens")
    final = replace(final, status=ResponseStatus.INCOMPLETE)

    assert await store.finish_response(final)

    expected = replace(
        turn.response,
        status=ResponseStatus.INCOMPLETE,
        completed_ms=final.completed_ms,
        incomplete_reason="max_output_tokens",
        usage=final.usage,
        output=final.output,
    )
    assert await store.response(writer.user, turn.response.id) == expected
    assert await store.input_items(writer.user, turn.response.id, Page()) == turn.input
    items = await store.items(writer.user, conversation, Page(newest_first=False))
    assert items == turn.input + final.output
    (entry,) = await store.usage(writer.user)
    assert (entry.usage, entry.settled_ms, entry.reserved_tokens) == (
        final.usage,
        final.completed_ms,
        100,
    )
    assert await store.events(writer.user, turn.response.id) == (final.events,)


async def test_a_failure_keeps_its_error_and_the_partial_text_is_part_of_the_context(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    turn = writer.turn("Hi", conversation=conversation)
    await writer.accept(turn)
    partial = an_item("Hel", role="assistant", status="incomplete")
    error = ResponseError(code="server_error", message="interrupted")
    final = writer.final(turn.response.id, status=ResponseStatus.FAILED, error=error)

    await store.finish_response(replace(final, output=(partial,)))

    found = await store.response(writer.user, turn.response.id)
    assert found is not None
    assert (found.error, found.output) == (error, (partial,))
    assert await writer.accept(writer.turn("Again?", conversation=conversation)) == ("Hi", "Hel")


async def test_a_conversation_has_one_turn_at_a_time(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    first = writer.turn("One", conversation=conversation)
    await writer.accept(first)

    with pytest.raises(ConversationLocked):
        await store.accept_turn(writer.turn("Two", conversation=conversation))
    with pytest.raises(ConversationLocked):
        await store.add_items(writer.user, conversation, [an_item()], writer.tick())
    with pytest.raises(ConversationLocked):
        await store.delete_item(writer.user, conversation, first.input[0].id, writer.tick())
    with pytest.raises(ConversationLocked):
        await store.delete_conversation(writer.user, conversation, writer.tick())

    await store.finish_response(writer.final(first.response.id, "1"))
    assert await writer.accept(writer.turn("Two", conversation=conversation)) == ("One", "1")


async def test_a_refused_turn_leaves_nothing(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.accept(writer.turn("One", conversation=conversation))
    claim = Claim(key="k", fingerprint="f")
    refused = writer.turn("Two", conversation=conversation, claim=claim)

    with pytest.raises(ConversationLocked):
        await store.accept_turn(refused)

    assert await store.claimed(writer.user, claim) is None
    assert await store.response(writer.user, refused.response.id) is None
    assert len(await store.usage(writer.user)) == 1
    assert [text_of(item) for item in await store.items(writer.user, conversation, Page())] == [
        "One"
    ]


async def test_an_expired_lock_can_be_taken_and_late_output_stands_in_its_place(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation()
    slow = writer.turn("One", conversation=conversation)
    await writer.accept(slow)
    writer.now_ms += LEASE_MS
    quick = writer.turn("Two", conversation=conversation)

    assert await writer.accept(quick) == ("One",)
    assert await store.finish_response(writer.final(slow.response.id, "late"))

    with pytest.raises(ConversationLocked):  # the end of the first is not that of the second
        await store.accept_turn(writer.turn("Three", conversation=conversation))
    assert await store.finish_response(writer.final(quick.response.id, "2"))
    items = await store.items(writer.user, conversation, Page(newest_first=False))
    assert list(map(text_of, items)) == ["One", "late", "Two", "2"]


async def test_ends_are_final_and_doing_it_again_changes_nothing(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    turn = writer.turn("Hi", conversation=conversation)
    await writer.accept(turn)
    final = writer.final(turn.response.id, "Hello")
    assert await store.finish_response(final)

    again = replace(final, status=ResponseStatus.FAILED, usage=TokenUsage(output=999))

    assert await store.finish_response(again)
    found = await store.response(writer.user, turn.response.id)
    assert found is not None
    assert (found.status, found.usage) == (ResponseStatus.COMPLETED, final.usage)
    assert len(await store.items(writer.user, conversation, Page())) == 2
    assert not await store.start_response(turn.response.id, writer.node)
    lost = await store.append_events(
        writer.node, [(turn.response.id, EventBatch(first=0, last=0, body=b""))]
    )
    assert lost == {turn.response.id}


async def test_the_model_that_answers_takes_the_place_of_what_was_asked_for(
    store: SqlStore, writer: Writer
):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    answering, asked = ModelName("another"), turn.response.model
    assert await store.start_response(turn.response.id, writer.node, answering)
    started = await store.response(writer.user, turn.response.id)
    final = writer.final(turn.response.id, "Hello")
    shown = {**turn.response.request, "service_tier": "flex"}
    assert await store.finish_response(replace(final, model=asked, request=shown))
    ended = await store.response(writer.user, turn.response.id)

    assert started is not None
    assert ended is not None
    assert (started.model, started.request) == (answering, turn.response.request)
    assert (ended.model, ended.request) == (asked, shown)


async def test_only_the_owner_writes(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    stranger = new_node_id()
    batch = EventBatch(first=0, last=1, body=b"\x00\xff")

    assert not await store.start_response(turn.response.id, stranger)
    lost = await store.append_events(stranger, [(turn.response.id, batch)])
    assert lost == {turn.response.id}
    final = writer.final(turn.response.id, "x")
    assert not await store.finish_response(replace(final, owner=stranger))
    assert not await store.finish_response(replace(final, response=ResponseId("resp_none")))

    assert await store.events(writer.user, turn.response.id) == ()
    found = await store.response(writer.user, turn.response.id)
    assert found is not None
    assert found.status is ResponseStatus.QUEUED


async def test_events_are_logged_once_and_read_from_any_point(store: SqlStore, writer: Writer):
    one, two = writer.turn("1"), writer.turn("2")
    await writer.accept(one)
    await writer.accept(two)
    batches = [EventBatch(first=n, last=n + 4, body=bytes([n])) for n in (0, 5, 10)]
    log = [(one.response.id, batch) for batch in batches]
    other = (two.response.id, EventBatch(first=0, last=0, body=b"two"))

    assert await store.append_events(writer.node, [*log, other]) == frozenset()
    changed = replace(batches[0], body=b"other")
    assert await store.append_events(writer.node, [(one.response.id, changed)]) == frozenset()
    assert await store.append_events(writer.node, []) == frozenset()

    assert await store.events(writer.user, one.response.id) == tuple(batches)
    assert await store.events(writer.user, one.response.id, after=7) == tuple(batches[1:])
    assert await store.events(writer.user, one.response.id, after=9) == tuple(batches[2:])
    assert await store.events(writer.user, one.response.id, after=10**30) == ()
    assert await store.events(NOBODY, one.response.id) == ()


async def test_the_same_key_and_request_is_the_same_turn(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    claim = Claim(key="key-1 ☃", fingerprint="abc")
    first = writer.turn("Hi", conversation=conversation, claim=claim)
    await writer.accept(first)

    # Also while it runs, and so holds the lock.
    again = await store.accept_turn(writer.turn("Hi", conversation=conversation, claim=claim))
    other = replace(claim, fingerprint="def")

    assert again == Repeated(response=first.response.id)
    assert await store.claimed(writer.user, claim) == first.response.id
    with pytest.raises(IdempotencyMismatch):
        await store.accept_turn(writer.turn("Ho", conversation=conversation, claim=other))
    with pytest.raises(IdempotencyMismatch):
        await store.claimed(writer.user, other)
    assert len(await store.items(writer.user, conversation, Page())) == 1
    assert len(await store.usage(writer.user)) == 1


async def test_keys_of_different_users_never_meet(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    claim = Claim(key="same", fingerprint="abc")
    await writer.accept(writer.turn("Hi", claim=claim))

    assert await stranger.accept(stranger.turn("Hi", claim=claim)) == ()


async def test_an_sdks_retry_is_the_turn_it_repeats_but_not_for_ever(
    store: SqlStore, writer: Writer
):
    first = writer.turn("Hi", retry_fingerprint="abc")
    await writer.accept(first)

    retried = await store.accept_turn(writer.turn("Hi", retry_fingerprint="abc", is_retry=True))

    assert retried == Repeated(response=first.response.id)
    # Somebody who says the same again on purpose.
    await writer.accept(writer.turn("Hi", retry_fingerprint="abc"))
    await writer.accept(writer.turn("Ho", retry_fingerprint="def", is_retry=True))
    writer.now_ms += 10 * 60_000
    await writer.accept(writer.turn("Hi", retry_fingerprint="abc", is_retry=True))


@pytest.mark.parametrize("status", [ResponseStatus.CANCELLED, ResponseStatus.FAILED])
@pytest.mark.parametrize("claimed", [False, True])
async def test_an_sdks_retry_takes_the_place_of_a_try_that_was_cancelled_or_interrupted(
    store: SqlStore, writer: Writer, claimed: bool, status: ResponseStatus
):
    conversation = await writer.conversation()
    by = {"claim": Claim(key="k", fingerprint="abc")} if claimed else {"retry_fingerprint": "abc"}
    first = writer.turn("Hi", conversation=conversation, **by)
    await writer.accept(first)
    await store.finish_response(writer.final(first.response.id, "half an", status=status))
    if claimed:  # by hand, so that this is what it wants to see
        again = writer.turn("Hi", conversation=conversation, **by)
        assert await store.accept_turn(again) == Repeated(response=first.response.id)

    second = writer.turn("Hi", conversation=conversation, is_retry=True, **by)
    assert await writer.accept(second) == ()

    assert await store.response(writer.user, first.response.id) is None
    third = writer.turn("Hi", conversation=conversation, is_retry=True, **by)
    assert await store.accept_turn(third) == Repeated(response=second.response.id)
    items = await store.items(writer.user, conversation, Page(newest_first=False))
    assert list(map(text_of, items or ())) == ["Hi"]
    settled = [entry.settled_ms is not None for entry in await store.usage(writer.user)]
    assert settled == [True, False]


async def test_who_says_the_same_again_later_is_no_retry(store: SqlStore, writer: Writer):
    """Its first try may never have arrived, and an earlier turn with that body is another one."""
    first = writer.turn("yes", retry_fingerprint="abc")
    await writer.accept(first)
    writer.now_ms += 2 * LAST_RETRY_MS
    again = writer.turn("yes", retry_fingerprint="abc", is_retry=True)
    assert await store.accept_turn(again) == Repeated(response=first.response.id)  # it still runs
    await store.finish_response(writer.final(first.response.id, "done"))

    writer.now_ms += LAST_RETRY_MS - 100
    again = writer.turn("yes", retry_fingerprint="abc", is_retry=True)
    assert await store.accept_turn(again) == Repeated(response=first.response.id)
    writer.now_ms += 100
    await writer.accept(writer.turn("yes", retry_fingerprint="abc", is_retry=True))


async def test_a_chain_of_responses_is_its_context(store: SqlStore, writer: Writer):
    first = await writer.answered("1", "one")
    second = await writer.answered("2", "two", previous=first)
    branch = await writer.answered("2b", "two b", previous=first)

    assert await writer.accept(writer.turn("3", previous=second)) == ("1", "one", "2", "two")
    assert await writer.accept(writer.turn("3", previous=branch)) == ("1", "one", "2b", "two b")
    shown = (await store.context(writer.user, previous=second)).context
    assert list(map(text_of, shown)) == ["1", "one", "2", "two"]


async def test_a_chain_out_of_a_conversation_sees_it_as_it_was_then(
    store: SqlStore, writer: Writer
):
    conversation = await writer.conversation(an_item("rules"))
    first = await writer.answered("1", "one", conversation=conversation)
    await writer.answered("2", "two", conversation=conversation)

    branch = await writer.answered("other", "thing", previous=first)

    shown = (await store.context(writer.user, previous=branch)).context
    assert list(map(text_of, shown)) == ["rules", "1", "one", "other", "thing"]
    assert len((await store.context(writer.user, conversation=conversation)).context) == 5


async def test_what_can_not_be_continued_is_named(store: SqlStore, writer: Writer):
    running = writer.turn("Hi")
    await writer.accept(running)
    stranger = await Writer.new(store)
    ended = await writer.answered("a", "b")
    conversation = await writer.conversation()

    with pytest.raises(ResponseInProgress):
        await store.accept_turn(writer.turn("x", previous=running.response.id))
    with pytest.raises(RecordNotFound) as caught:
        await store.accept_turn(stranger.turn("x", previous=ended))
    assert caught.value.param == "previous_response_id"
    with pytest.raises(RecordNotFound) as caught:
        await store.accept_turn(stranger.turn("x", conversation=conversation))
    assert caught.value.param == "conversation"
    with pytest.raises(RecordNotFound):
        await store.accept_turn(writer.turn("x", conversation=new_conversation_id()))
    with pytest.raises(InvalidRequest):
        await store.accept_turn(writer.turn("x", conversation=conversation, previous=ended))
    with pytest.raises(RecordNotFound):
        await store.accept_turn(replace(writer, user=NOBODY).turn("x"))
    with pytest.raises(RecordNotFound):
        await store.context(stranger.user, conversation=conversation)
    with pytest.raises(RecordNotFound):
        await store.context(stranger.user, previous=ended)
    assert (await store.context(writer.user)).context == ()


async def test_too_long_a_chain_is_refused_rather_than_cut(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    conversation = await writer.conversation(*(an_item(str(n)) for n in range(6)))
    monkeypatch.setattr(context, "MOST_ITEMS", 5)

    with pytest.raises(InvalidRequest) as caught:
        await store.context(writer.user, conversation=conversation)
    assert caught.value.code == "conversation_too_long"

    previous = await writer.answered("0", "zero")
    for n in range(1, 3):
        previous = await writer.answered(str(n), "x", previous=previous)
    with pytest.raises(InvalidRequest):
        await store.accept_turn(writer.turn("more", previous=previous))


async def test_an_items_id_is_used_once_in_a_place(store: SqlStore, writer: Writer):
    known = an_item("Hi")
    conversation = await writer.conversation(known)

    turn = writer.turn(conversation=conversation)
    with pytest.raises(InvalidRequest) as caught:
        await store.accept_turn(replace(turn, input=(known,)))
    assert caught.value.param == "input"
    with pytest.raises(InvalidRequest):
        await store.add_items(writer.user, conversation, [known], writer.tick())

    # Elsewhere it may be sent along, as clients do with the output of a response.
    assert await store.accept_turn(replace(writer.turn(), input=(known,))) == Accepted(context=())


async def test_a_clock_that_goes_back_changes_no_order(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.answered("1", "one", conversation=conversation)
    before = await store.conversation(writer.user, conversation)
    writer.now_ms -= 500_000
    await writer.answered("2", "two", conversation=conversation)

    items = await store.items(writer.user, conversation, Page(newest_first=False))

    assert list(map(text_of, items)) == ["1", "one", "2", "two"]
    assert await store.conversation(writer.user, conversation) == before


@pytest.mark.parametrize("newest_first", [True, False])
async def test_pages_have_everything_once_also_after_the_clock_went_back(
    store: SqlStore, writer: Writer, newest_first: bool
):
    writer.now_ms = 10**12
    ids: dict[str, list[str]] = {"conversations": [], "responses": [], "files": []}
    for step_ms in (0, 1_000, -500_000, 0, 2_000, -3_600_000):
        writer.now_ms += step_ms
        ids["conversations"].append(await writer.conversation())
        ids["responses"].append(await writer.answered("Hi", "Hello"))
        file = a_file(writer.user, created_ms=writer.now_ms)
        await store.add_file(file)
        ids["files"].append(file.id)

    async def pages(name: str) -> list[str]:
        found: list[str] = []
        kind = {"kind": ResponseKind.RESPONSE} if name == "responses" else {}
        page = Page(limit=1, newest_first=newest_first)
        while records := await getattr(store, name)(writer.user, page, **kind):
            found.append(records[0].id)
            page = replace(page, after=records[0].id)
        return found

    for name, made in ids.items():
        assert sorted(await pages(name)) == sorted(made)


async def test_an_end_without_a_trace_is_fine(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi", request=RequestId("req_mine"))
    await writer.accept(turn)
    final = writer.final(turn.response.id, "x")

    assert await store.finish_response(replace(final, trace=None, events=None))

    assert await store.response(writer.user, turn.response.id) is not None
    assert await store.events(writer.user, turn.response.id) == ()


async def test_a_withdrawn_turn_never_was(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    await writer.answered("1", "one", conversation=conversation)
    before = await store.export_user(writer.user)
    claim = Claim(key="k", fingerprint="f")
    turn = writer.turn("Two", conversation=conversation, claim=claim)
    await writer.accept(turn)

    assert not await store.withdraw_turn(turn.response.id, new_node_id())
    assert await store.withdraw_turn(turn.response.id, writer.node)

    assert not await store.withdraw_turn(turn.response.id, writer.node)
    after = await store.export_user(writer.user)
    assert before is not None
    assert after is not None
    for export in (before, after):
        del export["conversations"][0]["updated_ms"]
    assert after == before
    assert await writer.accept(writer.turn("Two", conversation=conversation, claim=claim)) == (
        "1",
        "one",
    )
    ended = await writer.answered("alone", "x")
    assert not await store.withdraw_turn(ended, writer.node)


async def test_an_owner_hears_which_of_its_responses_to_cancel(store: SqlStore, writer: Writer):
    turns = [writer.turn(str(n)) for n in range(3)]
    for turn in turns:
        await writer.accept(turn)
    ids = [turn.response.id for turn in turns]
    ended = await writer.answered("x", "y")

    asked = await store.request_cancel(writer.user, ids[0])
    assert asked == turns[0].response
    await store.request_cancel(writer.user, ids[1])
    already = await store.request_cancel(writer.user, ended)
    assert already is not None
    assert already.status is ResponseStatus.COMPLETED
    assert await store.request_cancel(NOBODY, ids[2]) is None

    assert await store.cancel_requests(writer.node) == {ids[0], ids[1]}
    assert await store.cancel_requests(new_node_id()) == frozenset()
    await store.finish_response(writer.final(ids[0], status=ResponseStatus.CANCELLED))
    assert await store.cancel_requests(writer.node) == {ids[1]}
