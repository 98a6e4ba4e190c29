"""Documents for tests of stores, as a reader and an embedder would have made them."""

import struct
from collections.abc import Sequence

from antiphon.document_records import NewStoreFile, ReadyDocument, VectorStore
from antiphon.ids import FileId, NodeId, UserId, VectorStoreId, new_vector_store_id
from antiphon.reading_files import EXTRACTOR, Heading, ReadDocument, TextChunk
from antiphon.storage import Store
from antiphon.testing.specimens import a_file

MODEL = "test-embedder"
LEASE_MS = 30_000


def a_vector_store(user: UserId, **fields: object) -> VectorStore:
    made: dict[str, object] = {
        "id": new_vector_store_id(),
        "created_ms": 1,
        "last_active_ms": 1,
    } | fields
    return VectorStore(user=user, **made)  # type: ignore[arg-type]


def a_reading(texts: Sequence[str], *, model: str = MODEL, heading: str = "Top") -> ReadyDocument:
    """Of as many chunks as there are texts, on pages of their own, each with a vector of two."""
    whole, chunks = "", []
    for number, text in enumerate(texts):
        start = len(whole)
        whole += f"{text}\n"
        end = start + len(text)
        chunk = TextChunk(
            number=number, text=text, start=start, end=end, headings=(heading,), page=number + 1
        )
        chunks.append(chunk)
    read = ReadDocument(
        media_type="text/plain",
        text=whole,
        title=heading,
        headings=(Heading(level=1, text=heading, start=0),),
        page_starts=tuple(chunk.start for chunk in chunks),
        notices=(f"{len(chunks)} pages",),
        chunks=tuple(chunks),
    )
    vectors = b"".join(struct.pack("<2e", number, 1.0) for number in range(len(chunks)))
    return ReadyDocument(read=read, extractor=EXTRACTOR, model=model, vectors=vectors)


async def a_stored_file(store: Store, user: UserId, sha256: str = "a", **fields: object) -> FileId:
    """`sha256` is its one character."""
    file = a_file(user, sha256=sha256 * 64, **fields)
    await store.add_file(file)
    return file.id


async def made(store: Store, node: NodeId, texts: Sequence[str], now_ms: int = 1_000_000) -> int:
    """Make every document that waits, of the same texts; how many."""
    count = 0
    while works := await store.take_documents(node, now_ms, lease_ms=now_ms + LEASE_MS):
        for work in works:
            assert await store.finish_document(work.document.id, node, a_reading(texts))
            count += 1
    return count


async def a_filled_store(
    store: Store, user: UserId, node: NodeId, texts: Sequence[str], *, sha256: str = "a"
) -> tuple[VectorStoreId, FileId]:
    """A vector store with one file, which is ready."""
    file = await a_stored_file(store, user, sha256)
    created = await store.create_vector_store(a_vector_store(user), [NewStoreFile(file=file)])
    await made(store, node, texts)
    return created.id, file
