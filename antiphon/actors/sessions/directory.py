"""The directory of sessions: opens a turn as a temporary actor in a shard, and knows which are
open.

It is what HTTP sees of the whole server (`ports.Chat`). Refuses new turns while the server drains.
"""

import itertools
from collections.abc import Callable, Sequence

import trio

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.context.seeing import placeholders
from antiphon.actors.context.viewing import Viewer
from antiphon.actors.monitor import Down
from antiphon.actors.ref import Ref
from antiphon.actors.routing.router import Router
from antiphon.actors.sessions.charges import Charges, Tab
from antiphon.actors.sessions.judging import Judging
from antiphon.actors.sessions.means import means_of
from antiphon.actors.sessions.outlet import Outlet
from antiphon.actors.sessions.session import CancelTurn, Session, SessionMessage
from antiphon.actors.sessions.session_tools import SessionTools
from antiphon.actors.tools.words import in_words
from antiphon.context_settings import ContextSettings
from antiphon.errors import ActorCrashed, ActorError, Draining, SupervisionError
from antiphon.events import CancelCause, Capabilities, Turn
from antiphon.ids import ActorPath, ModelName
from antiphon.moderating import AllPass, Moderation
from antiphon.moments import Arrived, Ended
from antiphon.ports import AbuseSignals, ModelCard, SamplingDefaults
from antiphon.supervision.exits import is_abnormal
from antiphon.supervision.spec import NO_BACKOFF, Grace, Restart
from antiphon.supervision.supervisor import Supervisor
from antiphon.telemetry import Telemetry
from antiphon.turn_events import TurnFailed, Usage

_MAILBOX = 4096
"""News wait here only while the event loop is busy elsewhere: thousands of steps' worth."""
_STOP_S = 2.0
_NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


class Directory:
    """Turns are spread over `shards`, so that crashes of sessions in one leave the others alone."""

    def __init__(
        self,
        router: Router,
        shards: Sequence[tuple[str, Supervisor]],
        telemetry: Telemetry,
        charges: Charges | None = None,
        *,
        moderation: Moderation | None = None,
        abuse: AbuseSignals | None = None,
        context: Callable[[], ContextSettings] = ContextSettings,
    ) -> None:
        """Without `moderation` there is no policy, and everything passes."""
        self._router = router
        self._shards = tuple(shards)
        self._charges = charges or Charges()
        self._moderation = moderation
        self._telemetry = telemetry
        self._tools = SessionTools(
            router=router,
            charges=self._charges,
            telemetry=telemetry,
            viewer=Viewer(context),
            abuse=abuse,
            turns=lambda: self.open_turns,
        )
        self._numbers = itertools.count(1)
        self._open: dict[ActorPath, Ref[SessionMessage]] = {}
        self._draining = False
        self._changed = trio.Event()

    def models(self, plan: str | None = None) -> tuple[ModelCard, ...]:
        return self._router.cards(plan)

    def capabilities(self, model: ModelName) -> Capabilities | None:
        return self._router.capabilities(model)

    def sees(self, model: ModelName) -> bool | None:
        return self._router.sees(model)

    def sampling_defaults(self, model: ModelName) -> SamplingDefaults:
        return self._router.meant(model)[0].pool.sampling_defaults

    async def count_tokens(self, turn: Turn) -> int:
        """Raises ModelNotFound, InvalidRequest, ContextLengthExceeded."""
        routed = self._router.meant(turn.model)[0]
        pool = routed.pool
        means = means_of(routed, default_max_tokens=pool.default_max_tokens())
        messages, prompt = await self._tools.viewer.draft(turn, means)
        if pool.count_prompt is not None:
            told = in_words(messages, () if turn.tools is None else turn.tools.tools)
            if known := await pool.count_prompt(told):
                return known + len(placeholders(messages, means.sight))
        return len(prompt)

    async def open_turn(self, turn: Turn) -> Outlet:
        """Start a session for the turn. Raises ModelNotFound, Draining, MaxChildren, ActorStopped
        (the sessions' supervisor does not run)."""
        await trio.lowlevel.checkpoint()
        meant = self._router.first_meant(turn)
        if self._draining:
            raise Draining(retry_after_s=5.0)
        number = next(self._numbers)
        path, shard = self._shards[number % len(self._shards)]
        name = f"session-{number}"
        address: Address[SessionMessage] = Address(f"{path}/{name}", capacity=_MAILBOX)
        ref = address.ref

        def cancel(cause: CancelCause) -> None:
            ref.tell_system(CancelTurn(cause=cause, at=trio.current_time()))

        outlet, tab = Outlet(cancel), Tab()
        judge = AllPass() if self._moderation is None else self._moderation.judge_for(turn)
        judging = Judging(judge, self._moderation, turn.scoring)
        try:
            shard.start_child_nowait(
                actor_child(
                    name,
                    lambda: Session(turn, meant, outlet, tab, judging, self._tools),
                    address,
                    restart=Restart.TEMPORARY,
                    shutdown=Grace(_STOP_S),
                    backoff=NO_BACKOFF,
                )
            )
        except (SupervisionError, ActorError):
            judge.close()
            raise

        def down(news: Down) -> None:
            del self._open[ref.path]
            self._changed.set()
            self._changed = trio.Event()
            # The reader of a session that crashed must hear an end, too; after one this is nothing.
            crash = ActorCrashed(news.path, news.incarnation)
            outlet.put(TurnFailed(error=crash, usage=tab.used() or _NOTHING))
            if news.exit is None or is_abnormal(news.exit):  # it may have said nothing itself
                ended = Ended(reason="error", error=type(crash).__name__)
                self._telemetry.turn_noted(turn.request, ended)
            self._charges.close(tab)
            judge.close()

        self._open[ref.path] = ref
        self._telemetry.turn_noted(turn.request, _arrived(turn))
        ref.monitor(down)
        return outlet

    @property
    def open_turns(self) -> int:
        return len(self._open)

    def refuse_new_turns(self) -> None:
        """From now on the server drains."""
        self._draining = True

    def cancel_all(self, cause: CancelCause) -> None:
        """Give every open turn its terminal event."""
        for ref in self._open.values():
            ref.tell_system(CancelTurn(cause=cause, at=trio.current_time()))

    async def wait_idle(self) -> None:
        """Return when no turn is open."""
        while self._open:
            await self._changed.wait()


def _arrived(turn: Turn) -> Arrived:
    return Arrived(
        asked=turn.model,
        response=turn.response,
        user=turn.user,
        messages=len(turn.messages),
        choices=turn.choices,
        upkeep=turn.upkeep,
    )
