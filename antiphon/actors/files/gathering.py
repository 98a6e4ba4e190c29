"""What one turn is shown of files: those that its messages bring along, whole or by what answers
the newest message, and what its search finds.

It waits a little for files that are still being read. What isn't there by then is said.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import trio

from antiphon.actors.files import showing
from antiphon.actors.files.asking import searched_for
from antiphon.actors.files.ingestion import Ingestion
from antiphon.actors.files.searching import Place, Searcher, found_of, shortened
from antiphon.actors.files.tools import FileTools
from antiphon.document_records import Document, DocumentStatus, DocumentText
from antiphon.embedding import Scope
from antiphon.events import Message
from antiphon.ids import FileId, UserId
from antiphon.records import File
from antiphon.retrieval import FilesAsked, Gathered
from antiphon.sources import Found, Ranking, Source
from antiphon.storage import Store
from antiphon.views import FileFate, ShownFile

_CHARACTERS_PER_TOKEN = 4
"""Of most texts in most vocabularies there are more."""
_LOOK_S = 0.5
"""Another server may be reading it, of which nobody here hears."""
_UNREAD = {DocumentStatus.PENDING, DocumentStatus.READING}


@dataclass(slots=True)
class _Parts:
    """What has come together."""

    shown: list[tuple[Message, int | None]] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    files: dict[FileId, ShownFile] = field(default_factory=dict)

    def number(self, file: FileId, filename: str) -> int:
        self.sources.append(Source(file=file, filename=filename))
        return len(self.sources)


class Gathering:
    """Of one server."""

    def __init__(self, tools: FileTools, searcher: Searcher, ingestion: Ingestion) -> None:
        self._tools = tools
        self._searcher = searcher
        self._ingestion = ingestion

    async def gather(self, asked: FilesAsked) -> Gathered:
        """As the port says."""
        files = await self._files(asked)
        documents = await self._documents(asked, files)
        parts = _Parts()
        large = await self._whole(asked, files, documents, parts)
        queries = searched_for(asked.question, asked.before)
        found = await self._searched(asked, queries)
        beside = await self._excerpts(asked, large, queries)
        self._add_excerpts(asked, parts, found, beside, files)
        if not parts.shown and not parts.files and asked.search is None:
            return Gathered()
        notes = showing.notes(
            list(parts.files.values()),
            searched=asked.search is not None,
            found=bool(found),
        )
        around = [showing.head(may_cite=asked.may_cite)] if parts.sources else []
        after = [*notes, showing.shown(showing.TAIL)]
        return Gathered(
            shown=(
                *((message, None) for message in around),
                *parts.shown,
                *((message, None) for message in after),
            ),
            sources=tuple(parts.sources) if asked.may_cite else (),
            files=tuple(parts.files.values()),
            queries=() if asked.search is None else tuple(map(shortened, queries)),
            found=found,
        )

    async def _files(self, asked: FilesAsked) -> dict[FileId, File | None]:
        """None is one that is gone."""
        if not asked.files:
            return {}

        async def read(store: Store) -> dict[FileId, File | None]:
            return {id: await store.file(asked.user, id) for id in asked.files}

        return await self._tools.store.run(read)

    async def _documents(
        self, asked: FilesAsked, files: dict[FileId, File | None]
    ) -> dict[FileId, Document]:
        """Of the files that are there, as far as they have come when there is no more time."""
        wanted = [id for id, file in files.items() if file is not None]
        if not wanted:
            return {}
        documents = await self._want(asked, wanted)
        give_up_at = trio.current_time() + self._tools.settings().wait_s
        hurried = [each.id for each in documents.values() if each.status in _UNREAD]
        for id in hurried:
            self._ingestion.hurry(id)
        try:
            while any(each.status in _UNREAD for each in documents.values()):
                ended = self._ingestion.next_end()
                self._ingestion.look()
                left = give_up_at - trio.current_time()
                if left <= 0:
                    break
                with trio.move_on_after(min(left, _LOOK_S)):
                    await ended.wait()
                documents |= await self._tools.store.run(
                    lambda store: store.documents(asked.user, wanted)
                )
        finally:
            for id in hurried:
                self._ingestion.hurry_no_more(id)
        return documents

    async def _want(self, asked: FilesAsked, wanted: Sequence[FileId]) -> dict[FileId, Document]:
        now_ms, chunking = self._tools.now_ms(), self._tools.settings().chunking

        async def want(store: Store) -> dict[FileId, Document]:
            known = await store.documents(asked.user, wanted)
            for id in wanted:
                made = await store.want_document(asked.user, id, now_ms, chunking=chunking)
                if made is not None and id not in known:
                    known[id] = made
            return known

        return await self._tools.store.run(want)

    async def _whole(
        self,
        asked: FilesAsked,
        files: dict[FileId, File | None],
        documents: dict[FileId, Document],
        parts: _Parts,
    ) -> dict[FileId, Document]:
        """Show the small ones; the large ones, of which only what answers is shown."""
        large: dict[FileId, Document] = {}
        room = min(self._tools.settings().small_file_tokens, asked.room) * _CHARACTERS_PER_TOKEN
        left = asked.room * _CHARACTERS_PER_TOKEN
        for id, file in files.items():
            document = documents.get(id)
            if (shown := _not_shown(id, asked.files[id], file, document)) is not None:
                parts.files[id] = shown
                continue
            assert file is not None
            assert document is not None
            if document.characters > min(room, left):
                large[id] = document
                continue
            text = await self._tools.store.run(partial(_text_of, asked.user, id))
            if text is None:  # deleted since
                parts.files[id] = _shown(id, file.filename, FileFate.DELETED)
                continue
            left -= document.characters
            number = parts.number(id, file.filename)
            message = showing.whole(number, file.filename, text.text, may_cite=asked.may_cite)
            parts.shown.append((message, None))
            parts.files[id] = _shown(id, file.filename, FileFate.WHOLE)
        return large

    async def _searched(self, asked: FilesAsked, queries: Sequence[str]) -> tuple[Found, ...]:
        if asked.search is None:
            return ()
        return await self._searcher.search(asked.user, asked.search, queries, "tools", is_one=True)

    async def _excerpts(
        self, asked: FilesAsked, large: dict[FileId, Document], queries: Sequence[str]
    ) -> tuple[Found, ...]:
        """What answers, of files that are too large to be shown; where nothing is asked, how they
        begin."""
        if not large:
            return ()
        most = self._tools.settings().results
        place = Place(
            user=asked.user,
            stores=(),
            scopes=tuple(scope_of(id, document) for id, document in large.items()),
            only=frozenset(large),
        )
        found: tuple[Found, ...] = ()
        if asked.question.strip():
            found = await self._searcher.find(place, queries, most, Ranking(), is_one=True)
        if found:
            return found
        first = [(id, number) for id in large for number in range(max(1, most // len(large)))]
        chunks = await self._tools.store.run(lambda store: store.chunks(asked.user, (), first))
        return tuple(map(found_of, chunks))

    def _add_excerpts(
        self,
        asked: FilesAsked,
        parts: _Parts,
        searched: Sequence[Found],
        beside: Sequence[Found],
        files: dict[FileId, File | None],
    ) -> None:
        """Each piece once, the best first."""
        seen: set[tuple[FileId, int]] = set()
        counts: dict[FileId, int] = {}
        names: dict[FileId, str] = {}
        for rank, found in enumerate(sorted((*searched, *beside), key=lambda each: -each.score)):
            names[found.file] = found.filename
            is_whole = found.file in parts.files
            if is_whole or (found.file, found.number) in seen:
                continue
            seen.add((found.file, found.number))
            counts[found.file] = counts.get(found.file, 0) + 1
            number = parts.number(found.file, found.filename)
            message = showing.excerpt(number, found, may_cite=asked.may_cite)
            parts.shown.append((message, rank))
        for id, file in files.items():
            if file is not None and id not in parts.files:
                names.setdefault(id, file.filename)
                counts.setdefault(id, 0)
        for id, count in counts.items():
            parts.files[id] = _shown(id, names[id], FileFate.EXCERPTS, excerpts=count)


async def _text_of(user: UserId, file: FileId, store: Store) -> DocumentText | None:
    return await store.document_text(user, file)


def scope_of(file: FileId, document: Document) -> Scope:
    """Of a file by itself. It is another revision whenever its document is made anew."""
    made = f"{document.id}/{document.extractor}/{document.model}/{document.chunks}"
    return Scope(key=file, revision=zlib.crc32(made.encode()))


def _not_shown(
    id: FileId, name: str, file: File | None, document: Document | None
) -> ShownFile | None:
    if file is None or document is None:
        return _shown(id, name, FileFate.DELETED)
    match document.status:
        case DocumentStatus.PENDING | DocumentStatus.READING:
            return _shown(
                id,
                file.filename,
                FileFate.NOT_READY,
                reason=f"{document.progress:.0%} of it has been read",
            )
        case DocumentStatus.FAILED:
            reason = None if document.failure is None else document.failure.message
            return _shown(id, file.filename, FileFate.FAILED, reason=reason)
        case _:
            return None


def _shown(
    id: FileId,
    filename: str,
    fate: FileFate,
    *,
    excerpts: int = 0,
    reason: str | None = None,
) -> ShownFile:
    return ShownFile(file_id=id, filename=filename, fate=fate, excerpts=excerpts, reason=reason)
