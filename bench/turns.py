"""Time to first token of a conversation with a 1,000-token history: its first turn here, which is
cold, and the turn after it, which finds the history in the KV cache."""

import http.client
import json
import statistics
import time
from typing import Any

from antiphon.settings import Settings
from antiphon.testing.process import ServerProcess
from bench.client import Call, run
from bench.figure import Figure, at_least, at_most, explains

_ROUNDS = 9
_HISTORY = 1000
_SENTENCES = 56
_TOKENS = 16
_WITHIN_S = 120.0


def turns(server: ServerProcess) -> list[Figure]:
    """Each round has a conversation of its own, with a history that no cache knows."""
    _turn(server, _conversation(server, "warm"), "warm")
    cold, second, lengths = [], [], []
    for index in range(_ROUNDS):
        conversation = _conversation(server, f"round {index}")
        first_ms, length = _turn(server, conversation, "What was it about?")
        cold.append(first_ms)
        lengths.append(length)
        second.append(_turn(server, conversation, "And then, how did it end?")[0])
    ratio = statistics.median(mine / other for mine, other in zip(second, cold, strict=True))
    return [
        at_most("second turn, part of the cold first token", ratio, 0.25),
        at_least("tokens of a cold turn, fewest", min(lengths), _HISTORY),
        explains("first token, cold", statistics.median(cold), "ms"),
        explains("first token, second turn", statistics.median(second), "ms"),
    ]


def _turn(server: ServerProcess, conversation: str, question: str) -> tuple[float, int]:
    """Milliseconds to the first text, and the tokens of the prompt."""
    body = {
        "model": Settings().model,
        "input": question,
        "conversation": conversation,
        "stream": True,
        "max_output_tokens": _TOKENS,
    }
    call = Call(json.dumps(body).encode(), f"turn-{conversation}", path="/v1/responses")
    started = time.monotonic()
    run(server.api, [call], within_s=_WITHIN_S)
    if call.first_text_at is None:
        raise RuntimeError(f"no text: {bytes(call.raw[:500])!r}")
    usage = call.events()[-1]["response"]["usage"]
    return (call.first_text_at - started) * 1000, int(usage["input_tokens"])


def _conversation(server: ServerProcess, label: str) -> str:
    """With a history that was written elsewhere, so that no engine has seen it."""
    story = " ".join(
        f"In {label} the {ship * 7}th ship carried {ship * 13} barrels."
        for ship in range(_SENTENCES)
    )
    body: dict[str, Any] = {
        "items": [
            {"type": "message", "role": "user", "content": f"{label}. {story}"},
            {"type": "message", "role": "assistant", "content": "A long list of ships."},
        ]
    }
    connection = http.client.HTTPConnection(*server.api, timeout=10)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/conversations", json.dumps(body), headers)
        id: str = json.loads(connection.getresponse().read())["id"]
        return id
    finally:
        connection.close()
