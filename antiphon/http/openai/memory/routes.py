"""`/v1/memory`: what is remembered of the caller, listed, added to, changed and deleted."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.context_records import Memory, MemoryOrigin
from antiphon.context_settings import ContextSettings
from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.http.openai.body import checked_id, json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.lists import fetch, list_body, one_more, page_queries, parse_page
from antiphon.http.openai.memory.schema import WriteMemory, checked_text, says_the_same
from antiphon.http.openai.memory.wire import DeletedMemory, MemoryList, MemoryObject, memory_object
from antiphon.http.openai.openapi import Operation, mount
from antiphon.http.principal import current_principal
from antiphon.ids import MemoryId, UserId, new_memory_id
from antiphon.records import Page
from antiphon.settings import HttpSettings
from antiphon.storage import Store, StoreAccess

_WRITE = msgspec.json.Decoder(WriteMemory)
_ROOT = "/v1/memory"
_ONE = f"{_ROOT}/<memory_id>"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoutes:
    """What the handlers work with."""

    store: StoreAccess
    http: Callable[[], HttpSettings]
    context: Callable[[], ContextSettings]
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, (*self._of_all(), *self._of_one()))

    def _of_all(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=_ROOT,
                name="list_memory",
                handler=self.list_all,
                summary="List what is remembered of the caller, by creation",
                answer=MemoryList,
                query=page_queries(),
            ),
            Operation(
                method="POST",
                rule=_ROOT,
                name="create_memory",
                handler=self.create,
                summary="Have something remembered",
                body=WriteMemory,
                answer=MemoryObject,
                feeds={"memory_id": "$response.body#/id"},
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=_ROOT,
                name="delete_all_memory",
                handler=self.delete_all,
                summary="Forget everything",
                answer=DeletedMemory,
            ),
        )

    def _of_one(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=_ONE,
                name="retrieve_memory",
                handler=self.get,
                summary="Show one thing that is remembered",
                answer=MemoryObject,
            ),
            Operation(
                method="POST",
                rule=_ONE,
                name="update_memory",
                handler=self.update,
                summary="Change one; it is then the caller's own words, and stays with them",
                body=WriteMemory,
                answer=MemoryObject,
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=_ONE,
                name="delete_memory",
                handler=self.delete,
                summary="Forget one; it isn't learned from the same words again",
                answer=DeletedMemory,
            ),
        )

    async def list_all(self) -> TrioResponse:
        page, user = parse_page(request.args), current_principal().user
        found = await fetch(self.store, page, lambda store: store.memories(user, one_more(page)))
        return json_response(list_body(found, page, memory_object, lambda each: each.id))

    async def create(self) -> TrioResponse:
        """What is remembered already is answered as it is: to send it again does nothing."""
        text, user, now = await self._text(), current_principal().user, self.now_ms()
        most = self.context().memory_entries
        memory = Memory(
            id=new_memory_id(),
            user=user,
            text=text,
            origin=MemoryOrigin.ADDED,
            created_ms=now,
            updated_ms=now,
        )

        async def add(store: Store) -> tuple[Memory, ...]:
            return await store.add_memories(user, (memory,), most=most)

        written = await self.store.run(add)
        found = written[0] if written else await self._same(user, text, most)
        return json_response(memory_object(found))

    async def _same(self, user: UserId, text: str, most: int) -> Memory:
        """What was there before. Raises InvalidRequest where it is for lack of room that nothing
        was written."""
        # More than `most` there may be where it was more once; never many more.
        page = Page(limit=max(most, 1000), newest_first=False)
        found = await self.store.run(lambda store: store.memories(user, page))
        same = next((each for each in found if says_the_same(each.text, text)), None)
        if same is None:
            raise InvalidRequest(
                f"The memory is full: it has {len(found)} entries of at most {most}. Delete some "
                "of them.",
                "text",
                "memory_full",
            )
        return same

    async def delete_all(self) -> TrioResponse:
        user, now = current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_memories(user, now))
        return json_response(DeletedMemory(id=receipt.subject, receipt=receipt_object(receipt, ())))

    async def get(self, memory_id: str) -> TrioResponse:
        id, user = _checked(memory_id), current_principal().user
        found = await self.store.run(lambda store: store.memory(user, id))
        return json_response(memory_object(_existing(found, id)))

    async def update(self, memory_id: str) -> TrioResponse:
        text, id = await self._text(), _checked(memory_id)
        user, now = current_principal().user, self.now_ms()
        found = await self.store.run(lambda store: store.update_memory(user, id, text, now))
        return json_response(memory_object(_existing(found, id)))

    async def delete(self, memory_id: str) -> TrioResponse:
        id, user, now = _checked(memory_id), current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_memory(user, id, now))
        if receipt is None:
            raise _unknown(id)
        return json_response(DeletedMemory(id=id, receipt=receipt_object(receipt, ())))

    async def _text(self) -> str:
        body = decode_body(await read_json_body(self.http().max_body_bytes), _WRITE, {})
        return checked_text(body.text)


def _checked(text: str) -> MemoryId:
    return MemoryId(checked_id("memory", text, "memory_id"))


def _existing(found: Memory | None, id: MemoryId) -> Memory:
    if found is None:
        raise _unknown(id)
    return found


def _unknown(id: MemoryId) -> RecordNotFound:
    return RecordNotFound("memory", id, "memory_id")
