"""The policy as operators see it: which rules are in force, who judges by them, what they found;
and the command that reads them again.

Looking needs no token, as with all pages here, except at texts: those are somebody's words.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import structlog
import trio
from quart import request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from antiphon.actors.moderation.status import PolicyView
from antiphon.errors import RulesError, StoreError
from antiphon.http.exchange import current_exchange
from antiphon.http.ops.answers import ops_error, ops_json, ops_reply
from antiphon.http.ops.commands import OpsCommands
from antiphon.storage import StoreAccess
from antiphon.verdicts import PolicyEvent

log = structlog.get_logger(__name__)

_MOST_EVENTS = 1000
_USUAL_EVENTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """What the pages read and tell. `reload` names who asks; it raises RulesError."""

    view: Callable[[], PolicyView]
    reload: Callable[[str], Awaitable[str]]
    store: StoreAccess


class _Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    duration_s: float
    version: str


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """`text` only for who has the operator's token, and only where a rule keeps it."""

    id: str
    created_ms: int
    rule: str
    version: str
    action: str
    stage: str
    shadow: bool
    request: str
    response: str | None
    user: str | None
    detail: dict[str, str]
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRoutes:
    policy: PolicySource
    commands: OpsCommands

    def register(self, app: QuartTrio) -> None:
        root = "/ops/policy"
        app.add_url_rule(root, view_func=self.show, endpoint=root)
        app.add_url_rule(f"{root}/events", view_func=self.events, endpoint=f"{root}/events")
        reload = f"{root}/reload"
        app.add_url_rule(reload, view_func=self.reload, endpoint=reload, methods=["POST"])

    async def show(self) -> TrioResponse:
        return ops_json(msgspec.json.encode(self.policy.view()), status=200)

    async def events(self) -> TrioResponse:
        """The latest first, of all or of one rule or user."""
        limit = request.args.get("limit", default=_USUAL_EVENTS, type=int)
        if not 1 <= limit <= _MOST_EVENTS:
            message = f"limit must be from 1 to {_MOST_EVENTS}."
            return ops_error(ops_reply(400, message, "invalid_limit"))
        rule, user = request.args.get("rule"), request.args.get("user")
        try:
            found = await self.policy.store.run(
                lambda store: store.policy_events(rule=rule, user=user, limit=limit)
            )
        except StoreError as error:
            return ops_error(ops_reply(503, str(error), "store_unavailable"))
        with_text = self._refused() is None
        shown = [_shown(event, with_text=with_text) for event in found]
        return ops_json(msgspec.json.encode({"data": shown}), status=200)

    async def reload(self) -> TrioResponse:
        """Read the rules again; the version that is in force now."""
        if (refused := self._refused()) is not None:
            return refused
        began, outcome = trio.current_time(), "unheard"
        duration_s = 0.0
        try:
            with trio.move_on_after(self.commands.deadline_s):
                try:
                    version = await self.policy.reload("operator")
                except RulesError as error:
                    outcome = "rules_refused"
                    message = f"{error}; nothing has changed"
                    return ops_error(ops_reply(409, message, outcome))
                outcome = "done"
                duration_s = round(trio.current_time() - began, 3)
                done = _Reloaded(command="policy_reload", duration_s=duration_s, version=version)
                return ops_json(msgspec.json.encode(done), status=200)
            outcome = "timed_out"
            message = f"The rules could not be read within {self.commands.deadline_s:g} s."
            return ops_error(ops_reply(504, message, outcome))
        finally:
            log.info(
                "operator_command",
                command="policy_reload",
                outcome=outcome,
                duration_s=round(trio.current_time() - began, 3),
                request_id=current_exchange().request_id,
            )

    def _refused(self) -> TrioResponse | None:
        refused = self.commands.refusal(request.headers.get("authorization", ""))
        return None if refused is None else ops_error(refused)


def _shown(event: PolicyEvent, *, with_text: bool) -> _Event:
    return _Event(
        id=event.id,
        created_ms=event.created_ms,
        rule=event.rule,
        version=event.version,
        action=event.action,
        stage=event.stage.value,
        shadow=event.shadow,
        request=event.request,
        response=event.response,
        user=event.user,
        detail=dict(event.detail),
        text=event.text if with_text else None,
    )
