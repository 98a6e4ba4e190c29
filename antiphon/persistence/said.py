"""Finds conversations by what was said in them, as it lies there: no index of it is kept, so that
a turn writes nothing for a search that may never come.

The database passes over what can't match, and Python, in a thread, decides, so that both databases
find the same in any script: they differ in what they know of case beyond ASCII. A search is many
short reads, with a bound on all of them together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from antiphon.errors import UnknownCursor
from antiphon.finding import FoundConversation, FoundMessage, FoundPage
from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.messages import WITHHELD
from antiphon.persistence import codec
from antiphon.persistence.conversations import CURSOR, LAST
from antiphon.persistence.port import Database, Row, Transaction, statement
from antiphon.persistence.turns import ROOM_FOR_OUTPUT
from antiphon.records import Conversation

MOST_S = 0.5
"""Somebody types, and waits."""
MOST_ITEMS = 20_000
MOST_OF_ONE = 5_000
"""The newest items of one conversation; the others aren't looked at."""
_ITEMS_AT_ONCE = 250
_POSITIONS = ROOM_FOR_OUTPUT // 2
"""That an item takes where turns brought it, a question and an answer each; others take one. So
counts of items are estimates, and time has the last word."""
_CONVERSATIONS_AT_ONCE = 200
_EXCERPT = 160
_BEFORE = 50
"""Characters of an excerpt, and of those before what was found."""

_NEWEST = " UNION ALL ".join(
    f"""SELECT * FROM (SELECT {codec.CONVERSATION}, next_position FROM conversations
        WHERE user_id = $1 AND archived_ms IS {archived} AND (updated_ms, id) < ($2, $3)
        ORDER BY updated_ms DESC, id DESC LIMIT $4) {name}"""
    for name, archived in (("opened", "NULL"), ("archived", "NOT NULL"))
)
_CONVERSATIONS = statement(
    "said.conversations",
    f"SELECT * FROM ({_NEWEST}) both_kinds ORDER BY updated_ms DESC, id DESC LIMIT $4",
)
_ITEMS = """SELECT i.home, i.id, i.role, b.body FROM items i
    JOIN item_bodies b ON b.home = i.home AND b.position = i.position
    WHERE i.home = ANY($1) AND i.position >= $2 AND i.position < $3 AND i.type = 'message'
    AND i.role IN ('user', 'assistant') AND ({like} OR b.body LIKE '{withheld}' OR {not_ascii})
    ORDER BY i.position DESC"""
_WITHHELD = f'%"{WITHHELD}":%'
"""No text of a body can look like this key: its quotes would be escaped."""
# What is ASCII is found by the pattern, whatever the case; of the rest the database can't tell.
_MAYBE = statement(
    "said.items",
    _ITEMS.format(
        like="""lower(b.body COLLATE "C") LIKE $4""",
        withheld=_WITHHELD,
        not_ascii="octet_length(b.body) <> length(b.body)",
    ),
    sqlite=_ITEMS.format(
        like="b.body LIKE $4 ESCAPE '\\'",
        withheld=_WITHHELD,
        not_ascii="length(CAST(b.body AS BLOB)) <> length(b.body)",
    ),
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    conversation: Conversation
    items: int
    """About how many there are."""

    @property
    def looks(self) -> int:
        return min(self.items, MOST_OF_ONE)


@dataclass(slots=True)
class Search:
    """One page of one search. A method of the store, in more than one unit of work: what it finds
    may be gone, or changed, when the page is read, as ever. A text has to have all the words, of
    which there is at least one, folded."""

    database: Database
    user: UserId
    words: tuple[str, ...]
    _withheld: set[str] = field(default_factory=set, init=False)
    """Items that the policy has blocked, as far as was read: a refusal stands after what it is for,
    and the newest is read first."""

    async def page(self, after: ConversationId | None, limit: int) -> FoundPage:
        """Raises UnknownCursor."""
        until = trio.current_time() + MOST_S
        found: list[FoundConversation] = []
        start = (LAST, "") if after is None else await self._place_of(after)
        looked = 0
        while batch := await self._batch(*start):
            is_last = len(batch) < _CONVERSATIONS_AT_ONCE
            for group in _groups(batch):
                messages = await self._messages(group)
                for each in group:
                    conversation = each.conversation
                    message = messages.get(conversation.id)
                    if message is None and not self._is_called_so(conversation):
                        continue
                    found.append(FoundConversation(conversation=conversation, message=message))
                    if len(found) == limit:
                        return _page(found, each, has_more=not (is_last and each is batch[-1]))
                looked += sum(each.looks for each in group)
                if looked >= MOST_ITEMS or trio.current_time() >= until:
                    end = group[-1]
                    return _page(found, end, has_more=not (is_last and end is batch[-1]))
            if is_last:
                return _page(found, batch[-1], has_more=False)
            start = (batch[-1].conversation.updated_ms, batch[-1].conversation.id)
        return FoundPage(found=tuple(found))

    async def _place_of(self, id: ConversationId) -> tuple[int, str]:
        row = await self.database.read(partial(_cursor, user=self.user, id=id))
        if row is None:
            raise UnknownCursor(id)
        return row[0], row[1]

    async def _batch(self, updated_ms: int, id: str) -> list[_Candidate]:
        rows = await self.database.read(
            partial(_newest, user=self.user, updated_ms=updated_ms, id=id)
        )
        return [
            _Candidate(codec.conversation(tuple(row)[:-1]), -(-row[-1] // _POSITIONS))
            for row in rows
        ]

    def _is_called_so(self, conversation: Conversation) -> bool:
        title = (conversation.title or "").casefold()
        return all(word in title for word in self.words)

    async def _messages(self, group: Sequence[_Candidate]) -> dict[str, FoundMessage]:
        """By conversation, of those that aren't found by their titles."""
        asked = [each for each in group if not self._is_called_so(each.conversation)]
        homes = [each.conversation.id for each in asked]
        found: dict[str, FoundMessage] = {}
        for low, high in _spans(asked):
            rows = await self.database.read(
                partial(_maybe, homes=homes, low=low, high=high, pattern=self._pattern)
            )
            if rows:
                found |= await trio.to_thread.run_sync(self._decided, rows)
            if found:
                break
        return found

    @property
    def _pattern(self) -> str:
        """The longest word as it is in a body, where special characters are escaped."""
        return codec.like_part(codec.to_json(self._longest)[1:-1])

    @property
    def _longest(self) -> str:
        return max(self.words, key=len)

    def _decided(self, rows: Sequence[Row]) -> dict[str, FoundMessage]:
        """The newest of each conversation."""
        found: dict[str, FoundMessage] = {}
        for home, id, role, text in rows:
            body = codec.from_json(text)
            self._withheld.update(body.get(WITHHELD, ()))
            if home in found or id in self._withheld:
                continue
            said = _said(body)
            folded = said.casefold()
            if all(word in folded for word in self.words):
                excerpt = _excerpt(said, folded, folded.index(self._longest))
                found[home] = FoundMessage(item=ItemId(id), role=role, excerpt=excerpt)
        return found


async def _cursor(tx: Transaction, *, user: UserId, id: ConversationId) -> Row | None:
    return await tx.fetchrow(CURSOR, id, user)


async def _newest(tx: Transaction, *, user: UserId, updated_ms: int, id: str) -> Sequence[Row]:
    return await tx.fetch(_CONVERSATIONS, user, updated_ms, id, _CONVERSATIONS_AT_ONCE)


async def _maybe(
    tx: Transaction, *, homes: Sequence[str], low: int, high: int, pattern: str
) -> Sequence[Row]:
    return await tx.fetch(_MAYBE, list(homes), low, high, pattern)


def _page(found: Iterable[FoundConversation], last: _Candidate, *, has_more: bool) -> FoundPage:
    return FoundPage(found=tuple(found), last=last.conversation.id, has_more=has_more)


def _groups(batch: Iterable[_Candidate]) -> Iterator[list[_Candidate]]:
    """In order, so many together that they have some items, or one that has more."""
    group: list[_Candidate] = []
    items = 0
    for each in batch:
        if group and items + each.items > _ITEMS_AT_ONCE:
            yield group
            group, items = [], 0
        group.append(each)
        items += each.items
    if group:
        yield group


def _spans(group: Sequence[_Candidate]) -> Iterator[tuple[int, int]]:
    """Positions to be read at once, the newest first. Only one by itself has more than one span:
    what is found in one of its spans need not be looked for in the next."""
    if not group:
        return
    top = max(each.items for each in group)
    end = max(0, top - MOST_OF_ONE)
    for high in range(top, end, -_ITEMS_AT_ONCE):
        yield max(end, high - _ITEMS_AT_ONCE) * _POSITIONS, high * _POSITIONS


def _said(body: Mapping[str, Any]) -> str:
    content = body.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(text for part in content if isinstance(text := part.get("text"), str))


def _excerpt(text: str, folded: str, index: int) -> str:
    """What stands around a place of the folded text, on one line, cut between words."""
    place = index if len(folded) == len(text) else _unfolded(text, index)
    start, end = max(0, place - _BEFORE), place - _BEFORE + _EXCERPT
    if start and (space := text.find(" ", start, place)) >= 0:
        start = space
    if end < len(text) and (space := text.rfind(" ", place, end)) > place:
        end = space
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _unfolded(text: str, index: int) -> int:
    """The place that a place of the folded text has in the text: ß is two letters there."""
    reached = 0
    for place, character in enumerate(text):
        reached += len(character.casefold())
        if reached > index:
            return place
    return len(text)
