"""The API as a terminal uses it: one small client over httpx2, whose every method blocks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import msgspec

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.plain import plain
from antiphon.terminal.counted import CountedFile
from antiphon.terminal.sse import EventParser
from antiphon.terminal.wire import (
    Body,
    Conversation,
    Event,
    Item,
    Model,
    Page,
    Refusal,
    Response,
    UploadedFile,
)

_TIMEOUT = httpx2.Timeout(30.0, connect=5.0)
_SILENCE_S = 20.0
"""A stream without as much as a comment for so long is dead: the server sends one every 5 s."""
T = TypeVar("T")


class ApiClient:
    """For one server. `key` is sent with every request, where there is one."""

    def __init__(
        self, url: str, key: str | None, *, transport: httpx2.BaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._http = httpx2.Client(
            base_url=self.url, headers=headers, timeout=_TIMEOUT, transport=transport
        )

    def close(self) -> None:
        self._http.close()

    def models(self) -> tuple[Model, ...]:
        """Every method raises ApiUnreachable and ApiRefused."""
        return self._list("/v1/models", Model)

    def conversations(self, *, search: str = "", limit: int = 20) -> tuple[Conversation, ...]:
        """The latest first; with a search, those in which its words were said."""
        if search:
            path = "/v1/conversations/search"
            return self._list(path, Conversation, {"query": search, "limit": limit})
        return self._list("/v1/conversations", Conversation, {"limit": limit})

    def conversation(self, id: str) -> Conversation:
        return self._json("GET", f"/v1/conversations/{_segment(id)}", Conversation)

    def create_conversation(self) -> Conversation:
        return self._json("POST", "/v1/conversations", Conversation, {})

    def rename(self, id: str, title: str) -> Conversation:
        path = f"/v1/conversations/{_segment(id)}"
        return self._json("POST", path, Conversation, {"title": title})

    def delete(self, id: str) -> None:
        self._json("DELETE", f"/v1/conversations/{_segment(id)}", Body)

    def branch(self, id: str, after_item: str) -> Conversation:
        """A copy up to that item."""
        body = {"after_item": after_item}
        return self._json("POST", f"/v1/conversations/{_segment(id)}/branch", Conversation, body)

    def items(self, id: str, *, limit: int = 100) -> tuple[Item, ...]:
        """The last ones, in their order."""
        query = {"limit": limit, "order": "desc"}
        found = self._list(f"/v1/conversations/{_segment(id)}/items", Item, query)
        return tuple(reversed(found))

    def export(self, id: str) -> str:
        """As Markdown."""
        path = f"/v1/conversations/{_segment(id)}/export"
        return self._send("GET", path, query={"format": "markdown"}).text

    def running(self, conversation: str) -> Response | None:
        """An answer in it that has not ended."""
        query = {"conversation": conversation, "limit": 5}
        found = self._list("/v1/responses", Response, query)
        return next((each for each in found if each.status in {"queued", "in_progress"}), None)

    def cancel(self, response: str) -> Response:
        """Whose slot is free then."""
        return self._json("POST", f"/v1/responses/{_segment(response)}/cancel", Response, {})

    def response(self, id: str) -> Response:
        return self._json("GET", f"/v1/responses/{_segment(id)}", Response)

    def ask(self, body: Body, *, headers: Body, leaving: Callable[[], None]) -> Iterator[Event]:
        """The events of an answer; `leaving` is called just before the server may have all of the
        question."""
        content = msgspec.json.encode(body)
        return self._events(
            "POST",
            "/v1/responses",
            content=_leaving(content, leaving),
            headers={
                "content-type": "application/json",
                "content-length": str(len(content)),
                **headers,
            },
        )

    def events_after(self, response: str, number: int) -> Iterator[Event]:
        """Those that follow the one with that number."""
        query: Body = {"stream": "true", "starting_after": number}
        return self._events("GET", f"/v1/responses/{_segment(response)}", query=query)

    def upload(self, file: Path, sent: Callable[[int], None], *, purpose: str) -> UploadedFile:
        """For messages. `sent` is called with the number of bytes that went. Raises OSError, too,
        where the file can't be read."""
        name = file.name.encode("utf-8", "replace").decode()
        with CountedFile(file, sent) as content, self._heard():
            answer = self._http.post(
                "/v1/files", data={"purpose": purpose}, files={"file": (name, content)}
            )
        return self._decoded(answer, UploadedFile)

    def delete_file(self, id: str) -> None:
        self._json("DELETE", f"/v1/files/{_segment(id)}", Body)

    def _events(self, method: str, path: str, **options: Any) -> Iterator[Event]:
        parser = EventParser()
        timeout = httpx2.Timeout(_SILENCE_S, connect=5.0)
        with (
            self._heard(is_cut=True),
            self._http.stream(method, path, timeout=timeout, **_request(**options)) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            for chunk in answer.iter_raw():
                for event in parser.feed(chunk):
                    yield msgspec.json.decode(event.data, type=Event)

    def _list(self, path: str, kind: type[T], query: Body | None = None) -> tuple[T, ...]:
        page = self._json("GET", path, Page, query=query)
        with self._heard():
            return tuple(msgspec.json.decode(each, type=kind) for each in page.data)

    def _json(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: Body | None = None,
        query: Body | None = None,
    ) -> T:
        return self._decoded(self._send(method, path, body=body, query=query), kind)

    def _send(
        self, method: str, path: str, *, body: Body | None = None, query: Body | None = None
    ) -> httpx2.Response:
        with self._heard():
            answer = self._http.request(method, path, **_request(body=body, query=query))
        return _accepted(answer)

    def _decoded(self, answer: httpx2.Response, kind: type[T]) -> T:
        with self._heard():
            return msgspec.json.decode(_accepted(answer).content, type=kind)

    @contextmanager
    def _heard(self, *, is_cut: bool = False) -> Iterator[None]:
        """A connection that could not be made is no answer that was cut."""
        try:
            yield
        except httpx2.ConnectError as error:
            raise ApiUnreachable(self.url, _reason(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.MsgspecError) as error:
            raise ApiUnreachable(self.url, _reason(error), is_cut=is_cut) from error


def _request(
    *,
    body: Body | None = None,
    content: Iterator[bytes] | None = None,
    query: Body | None = None,
    headers: Body | None = None,
) -> dict[str, Any]:
    given = {"json": body, "content": content, "params": query, "headers": headers}
    return {name: value for name, value in given.items() if value is not None}


def _leaving(content: bytes, leaving: Callable[[], None]) -> Iterator[bytes]:
    leaving()
    yield content


def _accepted(answer: httpx2.Response) -> httpx2.Response:
    if answer.status_code != 200:
        raise _refusal(answer)
    return answer


def _refusal(answer: httpx2.Response) -> ApiRefused:
    try:
        problem = msgspec.json.decode(answer.content, type=Refusal).error
    except msgspec.MsgspecError:  # something between here and the server has answered
        problem = Refusal().error
    after = answer.headers.get("retry-after-ms", "")
    return ApiRefused(
        answer.status_code,
        problem.code or "",
        plain(problem.message) or f"the server answers with status {answer.status_code}",
        retry_after_s=int(after) / 1000 if after.isdecimal() else None,
    )


def _segment(id: str) -> str:
    """An id that was typed must not become another path."""
    return "".join(char for char in id if char.isalnum() or char in "-_.") or "-"


def _reason(error: Exception) -> str:
    return plain(str(error)) or type(error).__name__
