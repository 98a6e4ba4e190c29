"""The tables of documents and vector stores: the statements of the migration that brought them.

A chunk's `place` is its document's number, shifted by 20 bits, plus its own. So a document's chunks
are a range, whichever database sorts them, and a found place says by itself where it belongs.
"""

PLACE_BITS = 20
CHUNKS_AT_MOST = 1 << PLACE_BITS

_VECTOR_STORES = (
    """CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL){strict}""",
    """CREATE TABLE vector_stores (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), name TEXT NOT NULL,
        description TEXT NOT NULL, metadata TEXT NOT NULL, created_ms BIGINT NOT NULL,
        last_active_ms BIGINT NOT NULL, expires_after_days BIGINT, expires_ms BIGINT,
        expired BIGINT NOT NULL, revision BIGINT NOT NULL){strict}""",
    "CREATE INDEX vector_stores_by_user ON vector_stores (user_id, created_ms, id)",
    """CREATE INDEX vector_stores_by_expiry ON vector_stores (expires_ms)
        WHERE expires_ms IS NOT NULL AND expired = 0""",
    # 1 is one that is being emptied, 2 one that is.
    "CREATE INDEX vector_stores_emptied ON vector_stores (expired, id) WHERE expired = 1",
    """CREATE TABLE file_batches (
        id TEXT PRIMARY KEY, store_id TEXT NOT NULL REFERENCES vector_stores (id),
        created_ms BIGINT NOT NULL, cancelled BIGINT NOT NULL){strict}""",
    "CREATE INDEX file_batches_by_store ON file_batches (store_id)",
)

_DOCUMENTS = (
    # `kind` is what a file's name and its client say that it is: the same bytes may be read in
    # another way under another name.
    """CREATE TABLE documents (
        id TEXT PRIMARY KEY, number BIGINT NOT NULL UNIQUE,
        user_id TEXT NOT NULL REFERENCES users (id), sha256 TEXT NOT NULL, kind TEXT NOT NULL,
        max_tokens BIGINT NOT NULL, overlap_tokens BIGINT NOT NULL, status TEXT NOT NULL,
        progress DOUBLE PRECISION NOT NULL, failure_code TEXT, failure_message TEXT, title TEXT,
        media_type TEXT, pages BIGINT, characters BIGINT NOT NULL, chunks BIGINT NOT NULL,
        words BIGINT NOT NULL, notices TEXT NOT NULL, usage_bytes BIGINT NOT NULL,
        extractor TEXT, model TEXT, revision BIGINT NOT NULL, created_ms BIGINT NOT NULL,
        priority BIGINT NOT NULL, due_ms BIGINT, attempts BIGINT NOT NULL, owner TEXT,
        lease_ms BIGINT, UNIQUE (user_id, sha256, kind, max_tokens, overlap_tokens)){strict}""",
    """CREATE INDEX documents_by_due ON documents (priority, due_ms, number)
        WHERE due_ms IS NOT NULL""",
    """CREATE TABLE vector_store_files (
        store_id TEXT NOT NULL REFERENCES vector_stores (id),
        file_id TEXT NOT NULL REFERENCES files (id), document_id TEXT REFERENCES documents (id),
        batch_id TEXT REFERENCES file_batches (id), attributes TEXT NOT NULL,
        max_tokens BIGINT NOT NULL, overlap_tokens BIGINT NOT NULL, created_ms BIGINT NOT NULL,
        PRIMARY KEY (store_id, file_id)){clustered}""",
    "CREATE INDEX vector_store_files_by_age ON vector_store_files (store_id, created_ms, file_id)",
    "CREATE INDEX vector_store_files_by_file ON vector_store_files (file_id)",
    """CREATE INDEX vector_store_files_by_document ON vector_store_files (document_id)
        WHERE document_id IS NOT NULL""",
    """CREATE INDEX vector_store_files_by_batch ON vector_store_files (batch_id)
        WHERE batch_id IS NOT NULL""",
    # What was asked for outside of vector stores.
    """CREATE TABLE file_documents (
        file_id TEXT NOT NULL REFERENCES files (id),
        document_id TEXT NOT NULL REFERENCES documents (id),
        PRIMARY KEY (file_id, document_id)){clustered}""",
    "CREATE INDEX file_documents_by_document ON file_documents (document_id)",
    """CREATE TABLE document_texts (
        document_id TEXT PRIMARY KEY REFERENCES documents (id), headings TEXT NOT NULL,
        page_starts TEXT NOT NULL, text TEXT NOT NULL){strict}""",
    """CREATE TABLE document_vectors (
        document_id TEXT PRIMARY KEY REFERENCES documents (id), vectors BYTEA NOT NULL){strict}""",
    """CREATE TABLE chunks (
        place BIGINT PRIMARY KEY, page BIGINT, headings TEXT NOT NULL, starts BIGINT NOT NULL,
        ends BIGINT NOT NULL, text TEXT NOT NULL){strict}""",
    # What is found by, apart from what is shown: a search looks at many of these.
    """CREATE TABLE chunk_words (
        place BIGINT PRIMARY KEY, length BIGINT NOT NULL, repeated TEXT NOT NULL,
        words TEXT NOT NULL){strict}""",
)

_FULL_TEXT = (
    "{only postgresql} CREATE INDEX chunk_words_found ON chunk_words "
    "USING gin (string_to_array(words, ' '))",
    # FTS5 as an inverted file and no more: it keeps neither texts nor positions, which makes it
    # a third of what it would be, and a removal as much quicker. It has to be told what it knows
    # of a row to forget it: that is why `words` has it as it was.
    """{only sqlite} CREATE VIRTUAL TABLE chunk_index USING fts5 (
        words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')""",
    "{only sqlite} INSERT INTO chunk_index (chunk_index, rank) VALUES ('usermerge', 2)",
    """{only sqlite} CREATE TRIGGER chunk_words_added AFTER INSERT ON chunk_words BEGIN
        INSERT INTO chunk_index (rowid, words) VALUES (new.place, new.words); END""",
    # A removed word stays in the index's older parts until they are merged; a row here says that
    # there may be some.
    "{only sqlite} CREATE TABLE chunk_index_removals (one INTEGER PRIMARY KEY) STRICT",
    """{only sqlite} CREATE TRIGGER chunk_words_removed AFTER DELETE ON chunk_words BEGIN
        INSERT INTO chunk_index (chunk_index, rowid, words)
            VALUES ('delete', old.place, old.words);
        INSERT OR IGNORE INTO chunk_index_removals (one) VALUES (1); END""",
)

STATEMENTS = _VECTOR_STORES + _DOCUMENTS + _FULL_TEXT

# Of documents that are gone: there may be chunks of them still, which nothing leads to.
REMOVALS = ("CREATE TABLE removed_documents (number BIGINT PRIMARY KEY){strict}",)
