"""A store in memory for tests of the background workers on a clock that jumps: conversations that
are there, and what workers make of them. What a store promises is tested against the real ones."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import trio
import trio.testing

from antiphon.context_records import Memory, Summary
from antiphon.errors import AntiphonError, UnknownCursor
from antiphon.ids import ConversationId, ItemId, ModelName, NodeId, TenantId, UserId
from antiphon.records import Conversation, Item, Page, PendingWork, Response, ResponseKind, User
from antiphon.storage import Store

R = TypeVar("R")
ADA = User(id=UserId("ada"), tenant=TenantId("acme"), name="Ada", created_ms=0)


@dataclass(slots=True)
class Talk:
    """A conversation with its mark; `due_ms` None is no work."""

    conversation: Conversation
    items: list[Item] = field(default_factory=list)
    summary: Summary | None = None
    mark: int = 0
    due_ms: int | None = None
    attempts: int = 0
    owner: NodeId | None = None
    lease_ms: int = 0
    remembered: ItemId | None = None


class WorkStore:
    """A `StoreAccess` and its store. `failures` are raised, one a call, before anything is done;
    `before` runs ahead of each call and is told its name."""

    def __init__(self) -> None:
        self.talks: dict[ConversationId, Talk] = {}
        self.memories: list[Memory] = []
        self.people = {ADA.id: ADA}
        self.failures: deque[AntiphonError] = deque()
        self.before: Callable[[str], None] = lambda name: None
        self.asked: list[str] = []
        self._finished = trio.Event()

    def add(self, name: str, *said: tuple[str, str], user: User = ADA, **fields: object) -> Talk:
        """A conversation in which turns have ended: what was said, and what to that."""
        conversation = Conversation(
            id=ConversationId(name), user=user.id, created_ms=0, updated_ms=_now_ms()
        )
        talk = self.talks[conversation.id] = Talk(replace(conversation, **fields))  # type: ignore[arg-type]
        self.say(name, *said)
        return talk

    def say(self, name: str, *said: tuple[str, str]) -> None:
        """More turns end there."""
        talk = self.talks[ConversationId(name)]
        for asked, answer in said:
            number = len(talk.items)
            talk.items.append(an_item(f"{name}-{number}", "user", asked))
            talk.items.append(an_item(f"{name}-{number + 1}", "assistant", answer))
        talk.mark += 1
        talk.due_ms = _now_ms() if talk.due_ms is None else talk.due_ms
        talk.conversation = replace(talk.conversation, updated_ms=_now_ms())

    def title(self, name: str) -> str | None:
        return self.talks[ConversationId(name)].conversation.title

    async def idle(self) -> None:
        """Return once nothing is left to do."""
        while any(talk.due_ms is not None for talk in self.talks.values()):
            await self._finished.wait()
        await trio.testing.wait_all_tasks_blocked()  # whoever has done it ends, too

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        await trio.lowlevel.checkpoint()
        if self.failures:
            raise self.failures.popleft()
        return await work(cast("Store", self))

    async def user(self, user: UserId) -> User | None:
        self._note("user")
        return self.people.get(user)

    async def items(
        self, user: UserId, conversation: ConversationId, page: Page
    ) -> tuple[Item, ...] | None:
        self._note("items")
        talk = self._talk(user, conversation)
        if talk is None:
            return None
        items = talk.items[::-1] if page.newest_first else talk.items
        ids = [item.id for item in items]
        if page.after is not None and page.after not in ids:
            raise UnknownCursor(page.after)
        start = 0 if page.after is None else ids.index(ItemId(page.after)) + 1
        return tuple(items[start : start + page.limit])

    async def responses(
        self,
        user: UserId,
        page: Page,
        *,
        kind: ResponseKind,
        conversation: ConversationId | None = None,
        model: ModelName | None = None,
        metadata: dict[str, str] | None = None,
    ) -> tuple[Response, ...]:
        self._note("responses")
        return ()

    async def take_work(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 8
    ) -> tuple[PendingWork, ...]:
        self._note("take_work")
        due = [
            talk
            for talk in self.talks.values()
            if talk.due_ms is not None
            and talk.due_ms <= now_ms
            and (talk.owner is None or talk.lease_ms <= now_ms)
        ]
        due.sort(key=lambda talk: talk.due_ms or 0)
        for talk in due[:limit]:
            talk.owner, talk.lease_ms = owner, lease_ms
        return tuple(
            PendingWork(
                conversation=talk.conversation,
                mark=talk.mark,
                attempts=talk.attempts,
                summary=talk.summary,
                remembered=talk.remembered,
            )
            for talk in due[:limit]
        )

    async def renew_work(self, work: PendingWork, owner: NodeId, *, lease_ms: int) -> bool:
        self._note("renew_work")
        talk = self.talks.get(work.conversation.id)
        if talk is None or talk.owner != owner:
            return False
        talk.lease_ms = lease_ms
        return True

    async def finish_work(
        self,
        work: PendingWork,
        owner: NodeId,
        *,
        remembered: ItemId | None = None,
        again_ms: int | None = None,
    ) -> bool:
        self._note("finish_work")
        self._finished.set()
        self._finished = trio.Event()
        talk = self.talks.get(work.conversation.id)
        if talk is None or talk.owner != owner:
            return False
        talk.owner = None
        talk.remembered = remembered or talk.remembered
        talk.attempts = 0 if again_ms is None else talk.attempts + 1
        if again_ms is not None:
            talk.due_ms = again_ms
        elif talk.mark == work.mark:
            talk.due_ms = None
        return True

    async def give_title(
        self, user: UserId, id: ConversationId, title: str, *, of: Sequence[ItemId] = ()
    ) -> bool:
        self._note("give_title")
        talk = self._talk(user, id)
        if talk is None or talk.conversation.title is not None:
            return False
        talk.conversation = replace(talk.conversation, title=title)
        return True

    async def add_summary(self, user: UserId, summary: Summary) -> bool:
        self._note("add_summary")
        talk = self._talk(user, summary.conversation)
        ids = [] if talk is None else [item.id for item in talk.items]
        if talk is None or summary.until not in ids:
            return False
        covered = ids.index(summary.until) + 1
        if covered != summary.items or (talk.summary and talk.summary.items >= covered):
            return False
        talk.summary = summary
        return True

    async def add_memories(
        self, user: UserId, memories: Sequence[Memory], *, most: int
    ) -> tuple[Memory, ...]:
        self._note("add_memories")
        known = {memory.text.casefold() for memory in self.memories if memory.user == user}
        new = [memory for memory in memories if memory.text.casefold() not in known]
        self.memories += new[: max(0, most - len(known))]
        return tuple(new)

    def _talk(self, user: UserId, id: ConversationId) -> Talk | None:
        talk = self.talks.get(id)
        return talk if talk is not None and talk.conversation.user == user else None

    def _note(self, name: str) -> None:
        self.asked.append(name)
        self.before(name)


def an_item(id: str, role: str, text: str, **fields: object) -> Item:
    """A message of one text part."""
    kind = "input_text" if role == "user" else "output_text"
    body = {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **fields}
    return Item(id=ItemId(id), type="message", role=role, body=body, created_ms=0)


def _now_ms() -> int:
    return round(trio.current_time() * 1000)
