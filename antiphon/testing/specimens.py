"""Records for tests, and a writer that goes through turns with a store as a server would."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from antiphon.context_records import Memory, MemoryOrigin, Summary
from antiphon.ids import (
    LOCAL_TENANT,
    ConversationId,
    ItemId,
    ModelName,
    NodeId,
    RequestId,
    ResponseId,
    UserId,
    new_conversation_id,
    new_file_id,
    new_item_id,
    new_memory_id,
    new_node_id,
    new_response_id,
    new_user_id,
)
from antiphon.records import (
    Accepted,
    Conversation,
    EventBatch,
    File,
    FinalState,
    Item,
    NewTurn,
    Page,
    Repeated,
    Response,
    ResponseKind,
    ResponseStatus,
    TokenUsage,
    Trace,
    User,
)
from antiphon.storage import Store

LEASE_MS = 30_000


def a_user(name: str = "somebody") -> User:
    return User(id=new_user_id(), tenant=LOCAL_TENANT, name=name, created_ms=1)


def an_item(text: str = "Hello", *, role: str = "user", now_ms: int = 1, **fields: Any) -> Item:
    kind = "output_text" if role == "assistant" else "input_text"
    body = {"content": [{"type": kind, "text": text}]}
    made = {"id": new_item_id(), "type": "message", "role": role, "body": body} | fields
    return Item(created_ms=now_ms, **made)


def a_file(user: UserId, **fields: Any) -> File:
    made: dict[str, Any] = {
        "id": new_file_id(),
        "filename": "notes.txt",
        "purpose": "user_data",
        "media_type": "text/plain",
        "bytes": 5,
        "sha256": "a" * 64,
        "created_ms": 1,
    } | fields
    return File(user=user, **made)


def a_memory(
    user: UserId,
    text: str = "They live in Bern.",
    *,
    said: tuple[ConversationId, ItemId] | None = None,
    **fields: Any,
) -> Memory:
    """Stated where it was `said`, or added."""
    conversation, item = said or (None, None)
    made: dict[str, Any] = {
        "id": new_memory_id(),
        "origin": MemoryOrigin.ADDED if said is None else MemoryOrigin.STATED,
        "created_ms": 1,
        "updated_ms": 1,
    } | fields
    return Memory(user=user, text=text, conversation=conversation, item=item, **made)


def text_of(item: Item) -> str:
    text: str = item.body["content"][0].get("text", "")
    return text


@dataclass(slots=True)
class Writer:
    """One user of one node. Its clock goes on by 10 ms with every act."""

    store: Store
    user: UserId
    node: NodeId = field(default_factory=new_node_id)
    now_ms: int = 1_000_000
    _count: "itertools.count[int]" = field(default_factory=itertools.count)

    @classmethod
    async def new(cls, store: Store, name: str = "somebody") -> "Writer":
        user = a_user(name)
        await store.add_user(user)
        return cls(store, user.id)

    def tick(self) -> int:
        self.now_ms += 10
        return self.now_ms

    async def conversation(self, *items: Item, **fields: Any) -> ConversationId:
        now = self.tick()
        made = {"created_ms": now, "updated_ms": now} | fields
        record = Conversation(id=new_conversation_id(), user=self.user, **made)
        await self.store.create_conversation(record, items)
        return record.id

    def turn(
        self,
        *texts: str,
        conversation: ConversationId | None = None,
        previous: ResponseId | None = None,
        response: dict[str, Any] | None = None,
        **fields: Any,
    ) -> NewTurn:
        now = self.tick()
        made = {
            "id": new_response_id("resp_"),
            "kind": ResponseKind.RESPONSE,
            "model": ModelName("smollm2"),
            "status": ResponseStatus.QUEUED,
            "request": {"temperature": 1.0},
        } | (response or {})
        record = Response(
            user=self.user,
            created_ms=now,
            conversation=conversation,
            previous=previous,
            **made,
        )
        others = {"owner": self.node, "lease_ms": now + LEASE_MS, "reserved_tokens": 100} | fields
        items = tuple(an_item(text, now_ms=now) for text in texts)
        whole: dict[str, Any] = {"response": record, "input": items} | others
        return NewTurn(**whole)

    async def accept(self, turn: NewTurn) -> tuple[str, ...]:
        """The texts that it sees of what came before."""
        match await self.store.accept_turn(turn):
            case Accepted(context=context):
                return tuple(map(text_of, context))
            case Repeated(response=response):
                raise AssertionError(f"accepted before, as {response}")

    def final(self, response: ResponseId, *texts: str, **fields: Any) -> FinalState:
        now = self.tick()
        made: dict[str, Any] = {
            "status": ResponseStatus.COMPLETED,
            "owner": self.node,
            "usage": TokenUsage(input=7, cached=2, output=3, reasoning=1),
            "trace": Trace(request=RequestId(f"req_{next(self._count)}"), total_s=0.5),
            "events": EventBatch(first=100, last=101, body=b"the end"),
            "output": tuple(an_item(text, role="assistant", now_ms=now) for text in texts),
        } | fields
        return FinalState(response=response, completed_ms=now, **made)

    async def answered(self, text: str, answer: str, **fields: Any) -> ResponseId:
        """A whole turn; its id."""
        turn = self.turn(text, **fields)
        await self.accept(turn)
        assert await self.store.start_response(turn.response.id, self.node)
        assert await self.store.finish_response(self.final(turn.response.id, answer))
        return turn.response.id

    async def summary(
        self, conversation: ConversationId, covered: int, text: str = "So far.", **fields: Any
    ) -> Summary:
        """Of the first so many items; not stored."""
        page = Page(limit=covered, newest_first=False)
        items = await self.store.items(self.user, conversation, page)
        assert items
        made: dict[str, Any] = {
            "until": items[-1].id,
            "items": len(items),
            "tokens": sum(item.tokens or 0 for item in items),
            "made_by": "extract",
            "created_ms": self.tick(),
        } | fields
        return Summary(conversation=conversation, text=text, **made)

    async def summarised(
        self, conversation: ConversationId, covered: int, text: str = "So far."
    ) -> Summary:
        """And stored."""
        summary = await self.summary(conversation, covered, text)
        assert await self.store.add_summary(self.user, summary)
        return summary
