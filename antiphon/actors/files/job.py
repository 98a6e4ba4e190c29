"""One document that is made: its file read and cut, its pieces embedded, all of it written at once.

It may be killed anywhere and done again: until the last step nothing is written, and that is one
transaction which only the holder of the document's lease can make.
"""

from collections.abc import Callable

from antiphon import faults
from antiphon.actors.files.tools import FileTools
from antiphon.document_records import DocumentFailure, DocumentWork, ReadyDocument
from antiphon.errors import EmbeddingUnavailable, UnreadableFile
from antiphon.fault_plan import Site
from antiphon.reading_files import EXTRACTOR, ReadDocument, TextChunk

_READ_SHARE = 0.5
"""Of all that is to be done."""
_EMBEDDED_AT_ONCE = 64


class Job:
    """Of one document. `progress` is how far it has come, 0…1. With `without_vectors`, what can't
    be embedded is written all the same: full text finds it, and it is made anew later."""

    def __init__(
        self, work: DocumentWork, tools: FileTools, *, without_vectors: bool, is_urgent: bool
    ) -> None:
        self.progress = 0.0
        self._work = work
        self._tools = tools
        self._without_vectors = without_vectors
        self._is_urgent = is_urgent

    async def do(self) -> str:
        """What came of it: ready, unembedded, failed, or lost to somebody else. Raises
        ReaderUnavailable and EmbeddingUnavailable, after which it may be tried again, StoreError.
        """
        tools, id = self._tools, self._work.document.id
        await faults.pause(Site.INGEST_READ)
        try:
            read = await self._read()
        except UnreadableFile as error:
            failure = DocumentFailure(code=error.code, message=error.message)
            is_ours = await tools.store.run(
                lambda store: store.fail_document(id, tools.node, failure)
            )
            return "failed" if is_ours else "lost"
        await faults.pause(Site.INGEST_EMBED)
        model, vectors = await self._embedded(read)
        ready = ReadyDocument(read=read, extractor=EXTRACTOR, model=model, vectors=vectors)
        await faults.pause(Site.INGEST_WRITE)
        is_ours = await tools.store.run(lambda store: store.finish_document(id, tools.node, ready))
        await faults.pause(Site.INGEST_WRITTEN)
        if not is_ours:
            return "lost"
        return "unembedded" if model is None and read.chunks else "ready"

    async def _read(self) -> ReadDocument:
        work = self._work
        return await self._tools.reader.read(
            self._tools.contents.path(work.document.sha256),
            work.filename,
            work.media_type,
            chunking=work.document.chunking,
            waited_for=self._is_urgent,
            progress=self._note(0.0, _READ_SHARE),
        )

    async def _embedded(self, read: ReadDocument) -> tuple[str | None, bytes]:
        embedding, note = self._tools.embedding, self._note(_READ_SHARE, 1.0)
        texts = [embedded_text(read.title or self._work.filename, each) for each in read.chunks]
        vectors: list[bytes] = []
        try:
            for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
                vectors += await embedding.embed(texts[start : start + _EMBEDDED_AT_ONCE])
                note(len(vectors) / len(texts))
        except EmbeddingUnavailable:
            if not self._without_vectors:
                raise
            return None, b""
        return embedding.model, b"".join(vectors)

    def _note(self, begin: float, end: float) -> Callable[[float], None]:
        def note(share: float) -> None:
            self.progress = begin + (end - begin) * share

        return note


def embedded_text(title: str, chunk: TextChunk) -> str:
    """What of a piece its vector is made of: a piece by itself may not say what it is about."""
    return "\n".join([title, *chunk.headings, chunk.text])
