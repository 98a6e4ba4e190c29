"""The chunks of a streamed chat completion: a pure state machine from turn events to bytes.

The rules that SDKs depend on: the role once for each choice and in choice order, no chunk for empty
text, an empty delta with the finish reason last, moderation and usage with `choices: []` only when
asked for, an error as a payload with a top-level `error`, and always `[DONE]`. Never an `id:`,
`retry:` or `event:` line. One call gives at most one write.
"""

from typing import assert_never

import msgspec

from antiphon.errors import AntiphonError
from antiphon.events import TokenLogprob
from antiphon.http.errors import describe_error, error_body
from antiphon.http.openai.moderations.wire import chat_moderation
from antiphon.http.openai.wire import logprobs_of, usage_of
from antiphon.ids import ModelName, ResponseId
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Cited,
    Delta,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
    Usage,
)
from antiphon.verdicts import Judged
from antiphon.views import Manifest

HEARTBEAT = b": keep-alive\n\n"
STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    # A pipelined request behind a long stream would hide that the client left.
    "connection": "close",
}
_DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


class ChunkEncoder:
    """Encodes one stream. The parts of a chunk that never change are encoded once, since a token
    is a chunk and there are thousands a second."""

    def __init__(
        self,
        *,
        response: ResponseId,
        model: ModelName,
        created: int,
        fingerprint: str,
        choices: int,
        include_usage: bool,
        with_moderation: bool = False,
    ) -> None:
        self._response = response
        self._created = created
        tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._text_end = b'},"logprobs":null,"finish_reason":null}]' + tail
        self._open_end = b',"finish_reason":null}]' + tail
        self._finish_end = b'"}]' + tail
        self._choices = choices
        self._include_usage = include_usage
        self._with_moderation = with_moderation
        self._tail = tail
        self._opened = 0
        """Choices below this have sent their role."""
        self._head = b""
        self._starts: list[bytes] = []
        self.place(model=model, tier="default", fingerprint=fingerprint)

    def place(
        self, *, model: ModelName, tier: str, fingerprint: str, context: Manifest | None = None
    ) -> None:
        """From now on every chunk says that, and the one with the usage what the model was shown,
        where that isn't all of the request."""
        self._context = context
        head = _encode(
            {
                "id": self._response,
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": model,
                "service_tier": tier,
                "system_fingerprint": fingerprint,
            }
        )
        self._head = b"data: " + head[:-1] + b',"choices":['
        self._starts = [
            self._head + b'{"index":%d,"delta":{"content":' % index
            for index in range(self._choices)
        ]

    def encode(self, event: TurnEvent) -> bytes:
        """The bytes to write for an event; empty when it says nothing."""
        match event:
            case Delta(choice=choice, text=text, logprobs=logprobs):
                if not text and not logprobs:
                    return b""
                if choice < self._opened and not logprobs:
                    return self._starts[choice] + _encode(text) + self._text_end
                return self._open_before(choice) + self._content(choice, text, logprobs)
            case Refused(choice=choice, text=text):
                return self._refusal(choice, text)
            case CallStarted():
                return self._call(event)
            case CallDelta(choice=choice, call=call, text=text):
                function = {"arguments": text}
                return self._calls(choice, {"index": call, "function": function})
            case CallEnded() | Cited():
                return b""
            case ChoiceEnded(choice=choice, finish_reason=reason):
                opening = self._open_before(choice + 1)
                return opening + (
                    self._head
                    + b'{"index":%d,"delta":{},"logprobs":null,"finish_reason":"' % choice
                    + reason.encode("ascii")
                    + self._finish_end
                )
            case TurnEnded(usage=usage, judged=judged):
                last = self._usage(usage) if self._include_usage else b""
                return self._moderation(judged) + last + _DONE
            case TurnFailed(error=error):
                return self.encode_failure(error)
            case TurnPlaced():
                return b""
            case _:
                assert_never(event)

    @staticmethod
    def encode_failure(error: AntiphonError) -> bytes:
        """The end of a stream whose headers are gone already."""
        return b"data: " + error_body(describe_error(error)) + b"\n\n" + _DONE

    def _content(self, choice: int, text: str, logprobs: tuple[TokenLogprob, ...]) -> bytes:
        role = b""
        if choice >= self._opened:
            role = b'"role":"assistant",'
            self._opened = choice + 1
        start = self._head + b'{"index":%d,"delta":{' % choice + role + b'"content":'
        if not logprobs:
            return start + _encode(text) + self._text_end
        encoded = _encode(logprobs_of(logprobs))
        return start + _encode(text) + b'},"logprobs":' + encoded + self._open_end

    def _open_before(self, choice: int) -> bytes:
        """Roles of the choices below `choice`: openai-python's helper inserts choices at their
        index, so one that starts out of order would land in another's place."""
        chunks = b""
        while self._opened < choice:
            chunks += (
                self._head
                + b'{"index":%d,"delta":{"role":"assistant","content":""' % self._opened
                + self._text_end
            )
            self._opened += 1
        return chunks

    def _call(self, started: CallStarted) -> bytes:
        """As OpenAI does, the first chunk of a call names it, and those that follow don't."""
        choice = started.choice
        opening = self._open_before(choice)
        role: dict[str, object] = {}
        if choice >= self._opened:
            role = {"role": "assistant", "content": None}
            self._opened = choice + 1
        call = {
            "index": started.call,
            "id": started.id,
            "type": "function",
            "function": {"name": started.name, "arguments": ""},
        }
        return opening + self._calls(choice, call, role)

    def _calls(
        self, choice: int, call: dict[str, object], role: dict[str, object] | None = None
    ) -> bytes:
        delta = _encode({**(role or {}), "tool_calls": [call]})
        start = self._head + b'{"index":%d,"delta":' % choice
        return start + delta[:-1] + self._text_end

    def _refusal(self, choice: int, text: str) -> bytes:
        opening = self._open_before(choice)
        role = b""
        if choice >= self._opened:
            role = b'"role":"assistant",'
            self._opened = choice + 1
        start = self._head + b'{"index":%d,"delta":{' % choice + role + b'"refusal":'
        return opening + start + _encode(text) + self._text_end

    def _moderation(self, judged: Judged | None) -> bytes:
        """A chunk of its own, as the one with the usage."""
        if judged is None or not self._with_moderation:
            return b""
        return self._head + b'],"moderation":' + _encode(chat_moderation(judged)) + self._tail

    def _usage(self, usage: Usage) -> bytes:
        context = b"" if self._context is None else b',"context":' + _encode(self._context)
        return self._head + b'],"usage":' + _encode(usage_of(usage)) + context + b"}\n\n"
