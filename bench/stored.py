"""What storage adds to the time to first token: a response in a conversation beside a chat
completion that isn't kept, in turn, on one server."""

import http.client
import json
import statistics
import time

from antiphon.settings import Settings
from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_most, explains

_ROUNDS = 40
_TOKENS = 16
_WITHIN_S = 60.0
_BOUNDS_MS = {"SQLite": 8.0, "PostgreSQL": 12.0}


def stored(server: ServerProcess, database: str) -> list[Figure]:
    """Both in each round, with prompts of one length that no prefix cache knows."""
    conversation = _conversation(server)
    _first_ms(server, _response("warm", conversation))
    plain, kept = [], []
    for index in range(_ROUNDS):
        # A conversation of its own, so that both prompts have one length.
        plain.append(_first_ms(server, _chat(f"round {index} a")))
        kept.append(_first_ms(server, _response(f"round {index} b", _conversation(server))))
    extra = statistics.median(b - a for a, b in zip(plain, kept, strict=True))
    return [
        at_most(f"storage, extra to first token, {database}", extra, _BOUNDS_MS[database], "ms"),
        explains(f"first token, not kept, {database}", statistics.median(plain), "ms"),
        explains(f"first token, kept, {database}", statistics.median(kept), "ms"),
    ]


def _first_ms(server: ServerProcess, call: Call) -> float:
    started = time.monotonic()
    run(server.api, [call], within_s=_WITHIN_S)
    if call.first_text_at is None:
        raise RuntimeError(f"no text: {bytes(call.raw[:500])!r}")
    return (call.first_text_at - started) * 1000


def _chat(label: str) -> Call:
    return Call(chat_body(_content(label), max_tokens=_TOKENS), label.replace(" ", "-"))


def _response(label: str, conversation: str) -> Call:
    body = {
        "model": Settings().model,
        "input": _content(label),
        "conversation": conversation,
        "stream": True,
        "max_output_tokens": _TOKENS,
    }
    return Call(json.dumps(body).encode(), label.replace(" ", "-"), path="/v1/responses")


def _content(label: str) -> str:
    return f"{label}: tell me a story about the sea."


def _conversation(server: ServerProcess) -> str:
    connection = http.client.HTTPConnection(*server.api, timeout=10)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/conversations", "{}", headers)
        id: str = json.loads(connection.getresponse().read())["id"]
        return id
    finally:
        connection.close()
