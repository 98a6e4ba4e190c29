"""A pytest plugin with which openai-python's own tests run against a server that keeps state.

Those tests name what was never made: `conv_123`, `msg_abc`, `file_id`. Here each is made just
before the request that names it, and put in its place; tests and client stay as published. It needs
nothing but what those tests need: `-p antiphon.testing.placeholders`.
"""

import os
import re
import time
from collections.abc import Callable
from typing import Any

import httpx2

_BASE = os.environ.get("TEST_API_BASE_URL", "http://127.0.0.1:8000/v1").rstrip("/")
_MODELS = ("gpt-6-astra", "gpt-5.4", "gpt-3.5-turbo-instruct")
_HELLO = [{"type": "message", "role": "user", "content": "hello"}]
_plain = httpx2.Client.send
_plain_async = httpx2.AsyncClient.send


def _call(method: str, path: str, **given: Any) -> Any:
    with httpx2.Client(base_url=_BASE, timeout=60) as client:
        reply = _plain(client, client.build_request(method, path.lstrip("/"), **given))
        return reply.raise_for_status().json()


def _model() -> str:
    return str(_call("GET", "models")["data"][0]["id"])


def _response(*, background: bool = False) -> str:
    body = {"input": "hello", "max_output_tokens": 16, "background": background}
    return str(_call("POST", "responses", json=body)["id"])


def _conversation() -> str:
    return str(_call("POST", "conversations", json={"items": _HELLO})["id"])


def _item(conversation: str) -> str:
    return str(_call("GET", f"conversations/{conversation}/items")["data"][0]["id"])


def _chat() -> str:
    body = {
        "model": _model(),
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 8,
        "store": True,
    }
    return str(_call("POST", "chat/completions", json=body)["id"])


def _file() -> str:
    files = {"file": ("a.txt", b"hello")}
    return str(_call("POST", "files", files=files, data={"purpose": "user_data"})["id"])


def _store() -> str:
    return str(_call("POST", "vector_stores", json={"name": "placeholder"})["id"])


def _store_file(store: str) -> str:
    """Ready, since its content may be asked for."""
    file = _file()
    path = f"vector_stores/{store}/files"
    _call("POST", path, json={"file_id": file})
    while _call("GET", f"{path}/{file}")["status"] == "in_progress":
        time.sleep(0.05)
    return file


def _batch(store: str) -> str:
    body = {"file_ids": [_file()]}
    return str(_call("POST", f"vector_stores/{store}/file_batches", json=body)["id"])


_IN_PATHS: dict[str, Callable[[], str]] = {
    "/responses/(response_id|resp_677efb5139a88190b512bc3fef8e535d)": _response,
    "/files/(file_id)": _file,
    "/chat/completions/(completion_id)": _chat,
    f"/models/({'|'.join(map(re.escape, _MODELS))})": _model,
}


def _in_a_store(path: str) -> str:
    """With a vector store that is there, and a file or a batch in it."""
    store = _store()
    path = re.sub(r"/vector_stores/(vector_store_id|vs_abc123)", f"/vector_stores/{store}", path)
    if re.search(r"/files/(file-abc123|file_id)", path):
        path = re.sub(r"(?<=/files/)(file-abc123|file_id)", _store_file(store), path)
    return re.sub(r"(?<=/file_batches/)(vsfb_abc123|batch_id)", lambda _: _batch(store), path)


def _path(path: str) -> str:
    if "/vector_stores/v" in path:
        return _in_a_store(path)
    if "/conversations/conv_123" in path:
        conversation = _conversation()
        path = path.replace("conv_123", conversation)
        if "msg_abc" in path:
            path = path.replace("msg_abc", _item(conversation))
    for place, make in _IN_PATHS.items():
        if (found := re.search(place, path)) is not None:
            made = _response(background=True) if path.endswith("/cancel") else make()
            path = path[: found.start(1)] + made + path[found.end(1) :]
    return path


def _body(text: str) -> str:
    for name in _MODELS:
        if f'"{name}"' in text:
            text = text.replace(f'"{name}"', f'"{_model()}"')
    for place in (r'(?<="file_id":)"(file_id|string)"', r'(?<="file_ids":\[)"string"'):
        if re.search(place, text) is not None:
            text = re.sub(place, f'"{_file()}"', text)
    place = r'("previous_response_id":\s*)"(?:resp_123|previous_response_id)"'
    if re.search(place, text) is not None:
        text = re.sub(place, rf'\1"{_response()}"', text)
    return text


def _real(request: httpx2.Request) -> httpx2.Request:
    url = request.url.copy_with(path=_path(request.url.path))
    if "json" not in request.headers.get("content-type", ""):
        request.url = url
        return request
    headers = [(name, value) for name, value in request.headers.items() if name != "content-length"]
    return httpx2.Request(
        request.method,
        url,
        headers=headers,
        content=_body(request.read().decode()).encode(),
        extensions=request.extensions,
    )


def _send(self: httpx2.Client, request: httpx2.Request, **options: Any) -> httpx2.Response:
    return _plain(self, _real(request), **options)


async def _send_async(
    self: httpx2.AsyncClient, request: httpx2.Request, **options: Any
) -> httpx2.Response:
    return await _plain_async(self, _real(request), **options)


def pytest_configure() -> None:
    """Called by pytest, once."""
    httpx2.Client.send = _send  # type: ignore[method-assign]
    httpx2.AsyncClient.send = _send_async  # type: ignore[method-assign]
