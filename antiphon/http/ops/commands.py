"""Operator commands over HTTP: restart, stop or start one child, reload the settings.

Each needs the configured token, is bounded by a deadline, and leaves one line in the log.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Protocol

import msgspec
import structlog
import trio
from quart import request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from antiphon.errors import (
    ActorStopped,
    AlreadyPresent,
    AntiphonError,
    CommandRefused,
    NoActor,
    RulesError,
    SettingsError,
    SpecError,
    StartFailed,
    WouldDeadlock,
)
from antiphon.http.errors import ErrorReply
from antiphon.http.exchange import current_exchange
from antiphon.http.ops.answers import ops_error, ops_json, ops_reply
from antiphon.ids import ActorPath
from antiphon.live_settings import Change
from antiphon.supervision.tree import Node, node_at

log = structlog.get_logger(__name__)

_LONGEST_PATH = 512


class TreeOperator(Protocol):
    """Who carries the commands out; each returns when it is done."""

    async def restart(self, path: ActorPath) -> None: ...

    async def stop(self, path: ActorPath) -> None: ...

    async def start(self, path: ActorPath) -> None: ...


class Reloadable(Protocol):
    """The settings of the server."""

    async def reload(self, source: str) -> tuple[Change, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpsCommands:
    """`token` is what a command must carry, as the settings are then; without one every command is
    refused. `deadline_s` is how long an answer may take: longer than the slowest child takes to
    stop and to start."""

    operator: TreeOperator
    settings: Reloadable
    token: Callable[[], str | None] = field(repr=False)
    deadline_s: float

    def refusal(self, authorization: str) -> ErrorReply | None:
        """Why whoever sends this header may give no command."""
        token = self.token()
        if token is None:
            message = (
                "Operator commands are off. Set ops_token (ANTIPHON_OPS_TOKEN) to a secret of at "
                "least 16 characters, and send it as a bearer token."
            )
            return ops_reply(403, message, "commands_disabled")
        scheme, _, given = authorization.partition(" ")
        is_right = hmac.compare_digest(given.strip().encode(), token.encode())
        if scheme.lower() == "bearer" and is_right:
            return None
        return ops_reply(401, "Send the operator token as a bearer token.", "invalid_token")


class _Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[ActorPath, msgspec.Meta(min_length=1, max_length=_LONGEST_PATH)]


class _Done(msgspec.Struct, frozen=True, kw_only=True):
    """`child` is the node afterwards; None if the child has been forgotten."""

    command: str
    path: ActorPath
    duration_s: float
    child: Node | None


class _Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    duration_s: float
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRoutes:
    commands: OpsCommands
    tree: Callable[[], Node]

    def register(self, app: QuartTrio) -> None:
        for name, view in (("restart", self.restart), ("stop", self.stop), ("start", self.start)):
            url = f"/ops/{name}"
            app.add_url_rule(url, view_func=view, endpoint=url, methods=["POST"])
        reload = "/ops/reload"
        app.add_url_rule(reload, view_func=self.reload, endpoint=reload, methods=["POST"])

    async def restart(self) -> TrioResponse:
        return await self._serve("restart", self.commands.operator.restart)

    async def stop(self) -> TrioResponse:
        return await self._serve("stop", self.commands.operator.stop)

    async def start(self) -> TrioResponse:
        return await self._serve("start", self.commands.operator.start)

    async def reload(self) -> TrioResponse:
        """Read the settings again; says of each changed key whether it counts now."""
        refused = self.commands.refusal(request.headers.get("authorization", ""))
        if refused is not None:
            return ops_error(refused)
        changes: tuple[Change, ...] = ()

        async def carry_out() -> None:
            nonlocal changes
            changes = await self.commands.settings.reload("operator")

        def overdue() -> str:
            return f"The settings could not be read within {self.commands.deadline_s:g} s."

        reply, duration_s = await self._logged("reload", None, carry_out, overdue)
        if reply is not None:
            return ops_error(reply)
        done = _Reloaded(command="reload", duration_s=duration_s, changes=changes)
        return ops_json(msgspec.json.encode(done), status=200)

    async def _serve(
        self, command: str, carry_out: Callable[[ActorPath], Awaitable[None]]
    ) -> TrioResponse:
        refused = self.commands.refusal(request.headers.get("authorization", ""))
        if refused is not None:
            return ops_error(refused)
        try:
            path = msgspec.json.decode(await request.get_data(), type=_Target).path
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return ops_error(
                ops_reply(400, f"The body must be {{'path': …}}: {error}", "invalid_body")
            )

        def overdue() -> str:
            node = node_at(self.tree(), path)
            state = "gone" if node is None else node.state
            return (
                f"{path} is {state} after {self.commands.deadline_s:g} s; the {command} goes on, "
                f"and GET /ops/tree/{path} shows how far it is."
            )

        reply, duration_s = await self._logged(command, path, partial(carry_out, path), overdue)
        if reply is not None:
            return ops_error(reply)
        child = node_at(self.tree(), path)
        done = _Done(command=command, path=path, duration_s=duration_s, child=child)
        return ops_json(msgspec.json.encode(done), status=200)

    async def _logged(
        self,
        command: str,
        path: ActorPath | None,
        carry_out: Callable[[], Awaitable[None]],
        overdue: Callable[[], str],
    ) -> tuple[ErrorReply | None, float]:
        """What went wrong, None when it is done, and how long it took. Giving up the wait takes
        nothing back: a supervisor goes on."""
        began = trio.current_time()
        outcome, reply = "unheard", None  # the client left
        try:
            with trio.move_on_after(self.commands.deadline_s) as patience:
                try:
                    await carry_out()
                except AntiphonError as error:
                    reply = _described(error)
            if patience.cancelled_caught:
                reply = ops_reply(504, overdue(), "timed_out")
            outcome = "done" if reply is None else reply.code or "failed"
        finally:
            duration_s = round(trio.current_time() - began, 3)
            log.info(
                "operator_command",
                command=command,
                path=path,
                outcome=outcome,
                duration_s=duration_s,
                request_id=current_exchange().request_id,
            )
        return reply, duration_s


def command_error(error: AntiphonError) -> TrioResponse:
    """The answer to whoever named a child for which that can't be done."""
    return ops_error(_described(error))


def _described(error: AntiphonError) -> ErrorReply:
    message = str(error)
    match error:
        case NoActor():
            return ops_reply(404, message, "no_such_child")
        case SettingsError():
            return ops_reply(409, f"{message}; nothing has changed", "reload_refused")
        case RulesError():
            return ops_reply(409, f"{message}; the rules in force stay", "rules_refused")
        case AlreadyPresent():
            return ops_reply(
                409, f"{message}: it is not down, or on its way down", "already_present"
            )
        case CommandRefused():
            return ops_reply(409, message, "refused")
        case SpecError():
            return ops_reply(409, message, "not_restartable")
        case WouldDeadlock():
            return ops_reply(409, message, "would_deadlock")
        case ActorStopped():
            return ops_reply(503, message, "supervisor_stopped")
        case StartFailed():
            return ops_reply(503, message, "start_failed")
        case _:
            raise error
