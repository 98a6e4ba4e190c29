"""No method gives one user what is another's: every one of the contract is asked, by its types."""

import inspect
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from antiphon.context_records import Memory, Summary
from antiphon.document_records import NewStoreFile, VectorStore
from antiphon.errors import RecordNotFound, UnknownCursor
from antiphon.ids import (
    ConversationId,
    FileBatchId,
    FileId,
    ItemId,
    MemoryId,
    ResponseId,
    UserId,
    VectorStoreId,
    new_file_batch_id,
    new_memory_id,
    new_vector_store_id,
)
from antiphon.persistence.store import SqlStore
from antiphon.records import Claim, Conversation, Feedback, Page, Rating, Receipt, ResponseKind
from antiphon.storage import Store
from antiphon.testing.specimens import Writer, a_file, a_memory, an_item
from antiphon.testing.stored_documents import MODEL, a_vector_store, made

NOT_A_USERS = {
    *("add_user", "users", "add_key", "keys", "find_key", "has_keys", "revoke_key", "touch_keys"),
    # Of the whole, or of a node, whose ids no client ever sees:
    *("start_response", "append_events", "finish_response", "renew_leases", "orphans"),
    *("withdraw_turn", "cancel_requests"),
    *("unused_contents", "expire"),
    # Of a server's own bills, and of all of them:
    *(
        "reserve",
        "settle",
        "release",
        "uncount",
        "renew_reservations",
        "lapse_reservations",
        "bills",
    ),
    # An operator's:
    *("set_plan", "suspend_user", "suspend_key", "suspend_until", "lift_suspension"),
    "suspended_users",
    *("add_policy_events", "policy_events"),
    *("add_prompt", "prompt_versions", "activate_prompt", "prompt_activations"),
    # Of the background workers of a server:
    *("take_work", "renew_work", "finish_work"),
    *("take_documents", "renew_document", "finish_document", "fail_document", "release_document"),
    *("remake_documents", "touch_vector_stores"),
}
"""Methods that nobody calls on behalf of a user."""
OWN_ACCOUNT = {
    *("user", "set_training", "erase_user", "usage", "usage_sums", "export_user"),
    *("delete_memories", "find_said"),
}
"""What the user's own id alone names: a stranger's id names the stranger's account."""
NEW = {"create_conversation", "add_file"}
UNFINDABLE = {"create_vector_store", "add_vector_store_files"}
"""They say which of what they were given isn't there."""
"""They take no id of anything that exists."""

METHODS = dict(inspect.getmembers(Store, inspect.iscoroutinefunction))


async def owned(writer: Writer) -> dict[Any, Any]:
    """One of everything, and for each type of argument a value that names it."""
    item = an_item("secret")
    conversation = await writer.conversation(item, title="secret")
    response = await writer.answered("secret", "secret", conversation=conversation)
    file = a_file(writer.user)
    await writer.store.add_file(file)
    found = await writer.store.conversation(writer.user, conversation)
    await writer.summarised(conversation, 1, "secret")
    memory = a_memory(writer.user, "secret", said=(conversation, item.id))
    await writer.store.add_memories(writer.user, [memory], most=9)
    batch, put = new_file_batch_id(), [NewStoreFile(file=file.id)]
    vectors = await writer.store.create_vector_store(a_vector_store(writer.user))
    await writer.store.add_vector_store_files(writer.user, vectors.id, put, 2, batch=batch)
    await made(writer.store, writer.node, ["secret"])
    return {
        VectorStoreId: vectors.id,
        FileBatchId: batch,
        VectorStore: vectors,
        Sequence[VectorStoreId]: [vectors.id],
        Sequence[FileId]: [file.id],
        Collection[FileId]: {file.id},
        Sequence[NewStoreFile]: put,
        Sequence[tuple[FileId, int]]: [(file.id, 0)],
        ConversationId: conversation,
        ItemId: item.id,
        ResponseId: response,
        FileId: file.id,
        MemoryId: memory.id,
        Conversation: found,
        Summary: await writer.summary(conversation, 3, "secret"),
        Sequence[Memory]: [replace(memory, id=new_memory_id(), text="secret, too")],
        Feedback: Feedback(response=response, rating=Rating.UP, reason=None, created_ms=1),
        Claim: Claim(key="key", fingerprint="f"),
    }


def arguments(name: str, values: dict[Any, Any], stranger: Writer) -> dict[str, Any]:
    """The stranger's call, naming what is the owner's wherever a type has a name for it."""
    hints = get_type_hints(METHODS[name])
    made: dict[str, Any] = {}
    for parameter in list(inspect.signature(METHODS[name]).parameters.values())[1:]:
        hint = hints[parameter.name]
        options = getattr(hint, "__args__", (hint,))
        known = [values[option] for option in (hint, *options) if option in values]
        if known:
            made[parameter.name] = known[0]
        elif hint is UserId:
            made[parameter.name] = stranger.user
        elif hint is Page:
            made[parameter.name] = Page()
        elif hint is ResponseKind:
            made[parameter.name] = ResponseKind.RESPONSE
        elif parameter.name == "items":
            made[parameter.name] = [an_item("intruder")]
        elif parameter.name == "now_ms":
            made[parameter.name] = stranger.tick()
        elif parameter.name in {"title", "text"}:
            made[parameter.name] = "intruder"
        elif parameter.name == "terms":
            made[parameter.name] = ["secret"]
        elif parameter.name == "attributes":
            made[parameter.name] = {"intruder": True}
        elif parameter.name == "model":
            made[parameter.name] = MODEL
        elif parameter.name in {"most", "limit"}:
            made[parameter.name] = 9
        elif parameter.name == "metadata" and parameter.default is inspect.Parameter.empty:
            made[parameter.name] = {"intruder": "yes"}
        elif parameter.default is inspect.Parameter.empty:
            raise AssertionError(f"{name} has a parameter {parameter} that this test doesn't know")
    return made


@pytest.mark.parametrize("name", sorted(METHODS.keys() - NOT_A_USERS - OWN_ACCOUNT - NEW))
async def test_a_strangers_ids_are_as_unknown_as_ids_that_never_were(
    store: SqlStore, writer: Writer, name: str
):
    stranger = await Writer.new(store)
    values = await owned(writer)
    values[Conversation] = replace(values[Conversation], user=stranger.user)
    values[VectorStore] = replace(values[VectorStore], user=stranger.user)
    before = await store.export_user(writer.user)
    if name == "accept_turn":
        with pytest.raises(RecordNotFound):
            await store.accept_turn(stranger.turn("x", conversation=values[ConversationId]))
        with pytest.raises(RecordNotFound):
            await store.accept_turn(stranger.turn("x", previous=values[ResponseId]))
        return
    if name in UNFINDABLE:
        if name == "create_vector_store":
            values[VectorStore] = replace(values[VectorStore], id=new_vector_store_id())
        with pytest.raises(RecordNotFound):
            await getattr(store, name)(**arguments(name, values, stranger))
        assert await store.export_user(writer.user) == before
        return
    if name == "context":
        for which in ({"conversation": values[ConversationId]}, {"previous": values[ResponseId]}):
            with pytest.raises(RecordNotFound):
                await store.context(stranger.user, **which)
        return

    result = await getattr(store, name)(**arguments(name, values, stranger))

    assert result in (None, False, (), {})
    assert await store.export_user(writer.user) == before


@pytest.mark.parametrize(
    "name",
    [
        *("conversations", "responses", "files", "items", "input_items", "memories"),
        *("vector_stores", "vector_store_files"),
    ],
)
async def test_a_strangers_id_is_no_cursor(store: SqlStore, writer: Writer, name: str):
    stranger = await Writer.new(store)
    theirs, mine = await owned(writer), await owned(stranger)
    cursor, place = {
        "conversations": (theirs[ConversationId], {}),
        "responses": (theirs[ResponseId], {"kind": ResponseKind.RESPONSE}),
        "files": (theirs[FileId], {}),
        "memories": (theirs[MemoryId], {}),
        "vector_stores": (theirs[VectorStoreId], {}),
        "vector_store_files": (theirs[FileId], {"id": mine[VectorStoreId]}),
        "items": (theirs[ItemId], {"conversation": mine[ConversationId]}),
        "input_items": (theirs[ItemId], {"id": mine[ResponseId]}),
    }[name]

    with pytest.raises(UnknownCursor):
        await getattr(store, name)(user=stranger.user, page=Page(after=cursor), **place)


async def test_erasing_a_stranger_takes_nothing_of_anybody_else(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    await owned(writer)
    before = await store.export_user(writer.user)

    receipt = await store.erase_user(stranger.user, 1)

    assert isinstance(receipt, Receipt)
    assert receipt.rows == {"users": 1}
    assert await store.export_user(writer.user) == before


def test_every_method_of_the_contract_is_there_with_its_parameters():
    assert METHODS.keys() >= NOT_A_USERS | OWN_ACCOUNT | NEW
    for name, function in METHODS.items():
        assert inspect.signature(getattr(SqlStore, name)) == inspect.signature(function), name
