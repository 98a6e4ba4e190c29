"""Who stands how with the abuse detection, and why; and the commands that undo what it did.

Looking needs no token, as with all pages here; each command does, and leaves one line in the log.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import msgspec
import structlog
import trio
from quart import request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.showing import EvidenceView, evidence, overview
from antiphon.actors.abuse.signals import Kind, Subject
from antiphon.http.exchange import current_exchange
from antiphon.http.ops.answers import ops_error, ops_json, ops_reply
from antiphon.http.ops.commands import OpsCommands

log = structlog.get_logger(__name__)

_LONGEST_ID = 128
_LONGEST_H = 24 * 366


class _Pardon(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hours: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_H)]


class _Done(msgspec.Struct, frozen=True, kw_only=True):
    """`written`: whether the database has it; if not yet, it holds here and is written later.
    `evidence` is what is known afterwards."""

    command: str
    kind: Kind
    id: str
    written: bool
    evidence: EvidenceView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbuseRoutes:
    abuse: Abuse
    commands: OpsCommands

    def register(self, app: QuartTrio) -> None:
        root = "/ops/abuse"
        one = f"{root}/<kind>/<path:id>"
        app.add_url_rule(root, view_func=self.all, endpoint=root)
        app.add_url_rule(one, view_func=self.one, endpoint=one)
        for name, view in (("forgive", self.forgive), ("pardon", self.pardon)):
            url = f"{one}/{name}"
            app.add_url_rule(url, view_func=view, endpoint=url, methods=["POST"])

    async def all(self) -> TrioResponse:
        """Everybody with a score, the highest first, and who is suspended by whichever server."""
        return ops_json(msgspec.json.encode(overview(self.abuse, _now_ms())), status=200)

    async def one(self, kind: str, id: str) -> TrioResponse:
        """Each signal with its weight, count and times, and what is left of it."""
        subject = _subject(kind, id)
        found = None if subject is None else evidence(self.abuse, subject, _now_ms())
        if found is None:
            return _unknown(kind, id)
        return ops_json(msgspec.json.encode(found), status=200)

    async def forgive(self, kind: str, id: str) -> TrioResponse:
        """Forget what was counted, and serve again at once."""
        return await self._carry_out("abuse_forgive", kind, id, self.abuse.forgive)

    async def pardon(self, kind: str, id: str) -> TrioResponse:
        """Do nothing against it for so many hours, and serve again at once; 0 ends that."""
        if (refused := self._refused()) is not None:
            return refused
        try:
            hours = msgspec.json.decode(await request.get_data(), type=_Pardon).hours
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            problem = f"The body must be {{'hours': …}}: {error}"
            return ops_error(ops_reply(400, problem, "invalid_body"))
        until_ms = _now_ms() + round(hours * 3_600_000)
        pardon = partial(self.abuse.pardon, until_ms=until_ms)
        return await self._carry_out("abuse_pardon", kind, id, pardon, hours=hours)

    async def _carry_out(
        self,
        command: str,
        kind: str,
        id: str,
        work: Callable[[Subject], Awaitable[bool]],
        **facts: float,
    ) -> TrioResponse:
        if (refused := self._refused()) is not None:
            return refused
        subject = _subject(kind, id)
        if subject is None:
            return _unknown(kind, id)
        began, is_written = trio.current_time(), False
        try:
            # What is counted is forgotten before the first wait; the rest goes on without us.
            with trio.move_on_after(self.commands.deadline_s):
                is_written = await work(subject)
        finally:
            log.info(
                "operator_command",
                command=command,
                kind=subject.kind.value,
                subject=subject.id,
                outcome="done" if is_written else "owed",
                duration_s=round(trio.current_time() - began, 3),
                request_id=current_exchange().request_id,
                **facts,
            )
        done = _Done(
            command=command,
            kind=subject.kind,
            id=subject.id,
            written=is_written,
            evidence=evidence(self.abuse, subject, _now_ms()),
        )
        return ops_json(msgspec.json.encode(done), status=200)

    def _refused(self) -> TrioResponse | None:
        refused = self.commands.refusal(request.headers.get("authorization", ""))
        return None if refused is None else ops_error(refused)


def _subject(kind: str, id: str) -> Subject | None:
    known = kind in set(Kind) and 0 < len(id) <= _LONGEST_ID
    return Subject(Kind(kind), id) if known else None


def _unknown(kind: str, id: str) -> TrioResponse:
    message = f"Nothing is known of {kind[:_LONGEST_ID]} {id[:_LONGEST_ID]}."
    return ops_error(ops_reply(404, message, "no_such_subject"))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
