"""`/v1/files`: upload, list, show, download and delete files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import trio
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.actors.workers.disposal import discard
from antiphon.document_records import Document
from antiphon.errors import InvalidRequest, RecordNotFound, StoreError, StoreFailed
from antiphon.files_settings import FilesSettings
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.body_stream import FRAME_BYTES, BodyStream
from antiphon.http.openai.body import checked_id, json_response, wall_ms
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.files.names import attachment_headers
from antiphon.http.openai.files.upload import Form, FormReader, multipart_boundary
from antiphon.http.openai.files.wire import (
    MAX_EXPIRY_S,
    MIN_EXPIRY_S,
    PURPOSES,
    UPLOAD_FORM,
    DeletedFile,
    FileList,
    FileObject,
    file_object,
)
from antiphon.http.openai.lists import (
    check_text,
    fetch,
    list_body,
    one_more,
    page_queries,
    parse_integer,
    parse_page,
)
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.principal import current_principal
from antiphon.ids import FileId, UserId, new_file_id
from antiphon.ports import ContentDraft, Contents
from antiphon.records import File
from antiphon.retrieval import FileSearching
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

_ALL = "/v1/files"
_ONE = f"{_ALL}/<file_id>"
_LONGEST_LIST = 10_000
_MAX_PURPOSE = 64
_FOR_MESSAGES = "user_data"
_WRITE_GRACE_S = 30.0
"""The record of a content that is there: longer than the store's own deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRoutes:
    """What the handlers work with."""

    store: StoreAccess
    contents: Contents
    http: Callable[[], HttpSettings]
    files: Callable[[], FilesSettings]
    searching: FileSearching | None = None
    """Who reads files; without one, nobody does."""
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, self._operations())

    def _operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                rule=_ALL,
                name="create_file",
                handler=self.create,
                summary="Upload a file",
                form=UPLOAD_FORM,
                answer=FileObject,
                feeds={"file_id": "$response.body#/id"},
                errors=(507,),
            ),
            Operation(
                method="GET",
                rule=_ALL,
                name="list_files",
                handler=self.list_all,
                summary="List the files",
                answer=FileList,
                query=(
                    *page_queries(default=_LONGEST_LIST, longest=_LONGEST_LIST),
                    Query("purpose", str, "Only those with it.", longest=_MAX_PURPOSE),
                ),
            ),
            Operation(
                method="GET",
                rule=_ONE,
                name="retrieve_file",
                handler=self.get,
                summary="Show a file",
                answer=FileObject,
            ),
            Operation(
                method="DELETE",
                rule=_ONE,
                name="delete_file",
                handler=self.delete,
                summary="Delete a file",
                answer=DeletedFile,
            ),
            Operation(
                method="GET",
                rule=f"{_ONE}/content",
                name="download_file",
                handler=self.content,
                summary="The content of a file",
                media={"application/octet-stream": {"type": "string", "format": "binary"}},
            ),
        )

    async def create(self) -> TrioResponse:
        settings = self.http()
        boundary = multipart_boundary()
        longest = settings.max_file_bytes + FRAME_BYTES
        body = BodyStream(request, longest, settings.body_timeout_s)
        draft = await self.contents.draft()
        try:
            form = await FormReader(boundary, draft, settings.max_file_bytes).read(body)
            file = await self._keep(form, draft)
        finally:
            draft.close()
        return json_response(file_object(file, await self._begun(file)))

    async def list_all(self) -> TrioResponse:
        page = parse_page(request.args, default=_LONGEST_LIST, longest=_LONGEST_LIST)
        purpose = request.args.get("purpose") or None
        if purpose is not None:
            check_text("purpose", purpose, _MAX_PURPOSE)
        user = current_principal().user
        found = await fetch(
            self.store,
            page,
            lambda store: store.files(user, one_more(page), purpose=purpose),
        )
        documents = await self._documents(user, [file.id for file in found[: page.limit]])
        return json_response(
            list_body(
                found,
                page,
                lambda each: file_object(each, documents.get(each.id)),
                lambda each: each.id,
            )
        )

    async def get(self, file_id: str) -> TrioResponse:
        file = await self._find(file_id)
        documents = await self._documents(file.user, [file.id])
        return json_response(file_object(file, documents.get(file.id)))

    async def delete(self, file_id: str) -> TrioResponse:
        id_ = FileId(checked_id("file", file_id, "file_id"))
        user, now = current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_file(user, id_, now))
        if receipt is None:
            raise RecordNotFound("file", file_id, "file_id")
        removed = await discard(self.store, self.contents, receipt.contents)
        return json_response(DeletedFile(id=id_, receipt=receipt_object(receipt, removed)))

    async def content(self, file_id: str) -> TrioResponse:
        file = await self._find(file_id)
        reader = await self.contents.open(file.sha256)
        if reader is None:
            # Deleted since, or lost: only the database can tell.
            await self._find(file_id)
            raise StoreFailed(f"the content of {file.id} is missing")

        async def pump(write: Write) -> None:
            try:
                while data := await reader.read():
                    await write(data)
            finally:
                reader.close()

        response = PumpedResponse(pump, attachment_headers(file.filename))
        response.headers["content-length"] = str(reader.size)
        return response

    async def _keep(self, form: Form, draft: ContentDraft) -> File:
        """The content, then its record, then the content once more; not cancelled in between."""
        user, now = current_principal().user, self.now_ms()
        purpose, expires_ms = _checked(form.fields, now)
        if form.filename is None:
            raise _missing("file")
        stored = await draft.commit()
        file = File(
            id=new_file_id(),
            user=user,
            filename=form.filename,
            purpose=purpose,
            media_type=form.media_type,
            bytes=stored.size,
            sha256=stored.sha256,
            created_ms=now,
            expires_ms=expires_ms,
        )
        with trio.move_on_after(_WRITE_GRACE_S, shield=True):
            await self.store.run(lambda store: store.add_file(file))
            await draft.confirm()
            return file
        raise StoreFailed("the record of a file was not written in time")

    async def _begun(self, file: File) -> Document | None:
        """What goes with a message is read while the message is written. Where that can't begin
        now, the turn that wants the file begins it."""
        if self.searching is None or file.purpose != _FOR_MESSAGES:
            return None
        chunking = self.files().chunking
        try:
            document = await self.store.run(
                lambda store: store.want_document(
                    file.user, file.id, file.created_ms, chunking=chunking
                )
            )
        except StoreError:
            return None
        self.searching.files_added()
        return document

    async def _documents(self, user: UserId, ids: Sequence[FileId]) -> dict[FileId, Document]:
        if not ids:
            return {}
        return await self.store.run(lambda store: store.documents(user, ids))

    async def _find(self, text: str) -> File:
        id_ = FileId(checked_id("file", text, "file_id"))
        user = current_principal().user
        found = await self.store.run(lambda store: store.file(user, id_))
        if found is None:
            raise RecordNotFound("file", text, "file_id")
        return found


def _checked(fields: Mapping[str, str], now_ms: int) -> tuple[str, int | None]:
    """Purpose and time of expiry. Raises InvalidRequest."""
    purpose = fields.get("purpose")
    if purpose is None:
        raise _missing("purpose")
    if purpose not in PURPOSES:
        raise InvalidRequest(
            f"Invalid value for 'purpose': {purpose[:100]!r}. Supported values are: "
            f"{', '.join(map(repr, PURPOSES))}.",
            "purpose",
            "invalid_value",
        )
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return purpose, None
    if anchor is None or seconds is None:
        raise _missing(f"expires_after.{'anchor' if anchor is None else 'seconds'}")
    if anchor != "created_at":
        raise InvalidRequest(
            f"Invalid value for 'expires_after.anchor': {anchor[:100]!r}. Supported values are: "
            "'created_at'.",
            "expires_after.anchor",
            "invalid_value",
        )
    name = "expires_after.seconds"
    after_s = parse_integer({name: seconds}, name, 0, MIN_EXPIRY_S, MAX_EXPIRY_S)
    return purpose, now_ms + after_s * 1000


def _missing(param: str) -> InvalidRequest:
    return InvalidRequest(
        f"Missing required parameter: '{param}'.", param, "missing_required_parameter"
    )
