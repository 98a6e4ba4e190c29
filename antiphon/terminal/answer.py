"""One answer, from the message that asks for it to its last event. It rests on two things: the
message has a key of its own, so that it can be sent again and is answered once; and the answer
runs in the background, so that it can be read on from where a broken connection left it, and ends
only when it is done or somebody stops it by its id.
"""

import enum
import secrets
import time
from collections.abc import Iterator, Sequence

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.terminal.client import ApiClient
from antiphon.terminal.wire import Body, Event, Part

_WAITS_S = (0.5, 1.0, 2.0, 4.0, *(8.0,) * 7)
"""Between tries to read on; together about what a server takes that is started again."""
_LOOKS_S = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Before looks for an answer whose id never came: it may be accepted only now."""
_RUNNING = frozenset({"queued", "in_progress"})
_ENDS = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
}
_LAST = frozenset({*_ENDS.values(), "error"})
_AWAY = frozenset({502, 503, 504})
"""What is said for a server that is being started again."""


class Stopped(enum.Enum):
    """What is known after somebody has stopped an answer."""

    STOPPED = enum.auto()
    """The server says so."""
    ENDED = enum.auto()
    """It had ended by then."""
    ENDING = enum.auto()
    """The server was told, and has not ended it yet."""
    NOT_ASKED = enum.auto()
    """The message never left."""
    UNKNOWN = enum.auto()
    """The message has left; no answer to it was found."""


class Answer:
    """To one message in one conversation. `id` is known once the server has said it."""

    def __init__(
        self,
        client: ApiClient,
        text: str,
        *,
        model: str,
        conversation: str,
        files: Sequence[Part] = (),
    ) -> None:
        self._client = client
        self._conversation = conversation
        self._body: Body = {
            "model": model,
            "conversation": conversation,
            "input": _input(text, files),
            "stream": True,
            "background": True,
        }
        self._key = {"idempotency-key": f"antiphon-chat-{secrets.token_hex(16)}"}
        self._last = -1
        """The number of the event that was read last."""
        self.id = ""
        self.is_sent = False
        """Whether the server may have the message."""

    def events(self) -> Iterator[Event]:
        """Up to the last one, also over broken connections and a server that is started again.
        Raises ApiRefused; ApiUnreachable, with `is_cut` where the answer may still come."""
        waits, is_cut = iter(_WAITS_S), False
        while True:
            try:
                for event in self._read():
                    self._last = max(self._last, event.sequence_number)
                    if event.response is not None:
                        self.id = event.response.id
                    yield event
                    if event.type in _LAST:
                        return
                    waits = iter(_WAITS_S)
                if (end := self._end()) is not None:
                    yield end
                    return
                reason = "the answer broke off"
            except ApiRefused as error:
                if not is_cut or error.status not in _AWAY:
                    raise
                reason = str(error)
            except ApiUnreachable as error:
                if not self.is_sent:
                    raise
                reason = error.reason
            is_cut = True
            if (wait_s := next(waits, None)) is None:
                raise ApiUnreachable(self._client.url, reason, is_cut=True)
            yield Event(type="antiphon.connection_lost", message=reason)
            time.sleep(wait_s)

    def stop(self) -> Stopped:
        """End it at the server, so that its slot is free for others. Raises ApiRefused,
        ApiUnreachable: then it may still run."""
        if not self.is_sent:
            return Stopped.NOT_ASKED
        id = self.id or self._looked_up()
        return stop(self._client, id) if id else Stopped.UNKNOWN

    def _read(self) -> Iterator[Event]:
        if self.id:
            return self._client.events_after(self.id, self._last)
        return self._client.ask(self._body, headers=self._key, leaving=self._note_sent)

    def _note_sent(self) -> None:
        self.is_sent = True

    def _end(self) -> Event | None:
        """How it ended, where the stream doesn't tell: a server that was killed has kept fewer
        events than it had sent, and none of them comes after the last one that was read."""
        if not self.id:
            return None
        response = self._client.response(self.id)
        if response.status not in _ENDS:
            return None
        return Event(type=_ENDS[response.status], response=response)

    def _looked_up(self) -> str:
        """A conversation has one answer at a time: what runs in it is this one."""
        for wait_s in _LOOKS_S:
            time.sleep(wait_s)
            if (running := self._client.running(self._conversation)) is not None:
                return running.id
        return ""


def stop(client: ApiClient, id: str) -> Stopped:
    """Raises ApiRefused, ApiUnreachable."""
    status = client.cancel(id).status
    if status == "cancelled":
        return Stopped.STOPPED
    return Stopped.ENDING if status in _RUNNING else Stopped.ENDED


def _input(text: str, files: Sequence[Part]) -> str | list[Body]:
    if not files:
        return text
    parts: list[Body] = [{"type": file.type, "file_id": file.file_id} for file in files]
    if text:
        parts.append({"type": "input_text", "text": text})
    return [{"role": "user", "content": parts}]
