"""The moderation as whoever composes the tree sees it: its children, its state, and the port that
others use (`moderating.Moderation`)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import trio

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.breaker import BreakerStatistics, Circuit
from antiphon.actors.moderation.backlog import Backlog
from antiphon.actors.moderation.client import DeskClient
from antiphon.actors.moderation.desk import Desk
from antiphon.actors.moderation.edition import Edition
from antiphon.actors.moderation.events import PolicyEvents
from antiphon.actors.moderation.guard import Guards
from antiphon.actors.moderation.messages import DeskMessage, Drop, Unjudged, WorkerMessage
from antiphon.actors.moderation.recording import Recording, without_surrogates
from antiphon.actors.moderation.reloading import Reloading
from antiphon.actors.moderation.remembered import Remembered
from antiphon.actors.moderation.remote import Remote
from antiphon.actors.moderation.shelf import Shelf
from antiphon.actors.moderation.status import PolicyView, WorkerStatus
from antiphon.actors.moderation.turn_judge import JudgeTools, TurnJudge
from antiphon.actors.moderation.worker import Worker
from antiphon.errors import MailboxFull, ModerationUnavailable
from antiphon.events import Turn
from antiphon.moderating import AllPass, Judge, JudgeLauncher
from antiphon.policy_settings import PolicySettings
from antiphon.ports import Chat
from antiphon.storage import StoreAccess
from antiphon.supervision.spec import ChildSpec, Grace, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.telemetry import Telemetry
from antiphon.verdicts import CategoryScores, Failure

_DESK_MAILBOX = 4096
"""Requests that arrive while the event loop is busy elsewhere; the bound on waiting texts is the
backlog's."""
_WORKER_MAILBOX = 256
"""A few at a time; more only while versions come and go under a worker that is being restarted."""
_WORKER_RESTARTS = 10
"""In a minute. One that can't be kept running is restarted less and less often, eight times in the
first minute at most, and must not take the tree along."""
_STOP_S = 4.0
_RETRY_S = 1.0
_LEAST_SILENCE_S = 3.0


class ModerationService:
    """Wired and not yet running; `path` is where its child will stand. `chat` is asked for when a
    guard is asked, `served` for the names that a guard may have."""

    def __init__(
        self,
        path: str,
        edition: Edition,
        launcher: JudgeLauncher,
        settings: Callable[[], PolicySettings],
        store: StoreAccess,
        telemetry: Telemetry,
        *,
        chat: Callable[[], Chat],
        served: Callable[[], Sequence[str]],
        now_ms: Callable[[], int],
        remote: Remote | None = None,
    ) -> None:
        self._launcher = launcher
        self._settings = settings
        self._telemetry = telemetry
        self._remote = remote
        self._shelf = Shelf(edition, self._unused)
        self._backlog = Backlog(lambda: settings().queue)
        self._desk: Address[DeskMessage] = Address(f"{path}/desk", capacity=_DESK_MAILBOX)
        self._workers: list[tuple[WorkerStatus, Address[WorkerMessage]]] = [
            (
                WorkerStatus(name=f"judge-{number}", silence_s=self._silence_s),
                Address(f"{path}/judges/judge-{number}", capacity=_WORKER_MAILBOX),
            )
            for number in range(1, settings().workers + 1)
        ]
        self._client = DeskClient(self._desk.ref, lambda: settings().deadline_s)
        self._remembered = Remembered()
        self._events = PolicyEvents(store, telemetry)
        self._guards = Guards(chat)
        self._tools = JudgeTools(
            desk=self._client,
            remembered=self._remembered,
            recording=Recording(self._events.note, telemetry, settings, now_ms),
            guards=self._guards,
            remote=remote,
            deadline_s=lambda: settings().deadline_s,
        )
        self._reloading = Reloading(
            self._shelf,
            [(status, address.ref) for status, address in self._workers],
            lambda: settings().rules,
            served=served,
            has_remote=remote is not None,
        )

    # ── the port ─────────────────────────────────────────────────────────────────────────────────

    def judge_for(self, turn: Turn) -> Judge:
        if turn.judges:
            return AllPass()
        return TurnJudge(self._shelf.hold(), turn, self._tools, self._shelf.let_go)

    async def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        """Raises ModerationUnavailable."""
        try:
            return await self._client.score([without_surrogates(text) for text in texts])
        except Unjudged as error:
            reason = _REASONS.get(error.failure, error.failure.value)
            raise ModerationUnavailable(reason, retry_after_s=_RETRY_S) from error

    @property
    def model(self) -> str:
        return self._shelf.model

    # ── for operators ────────────────────────────────────────────────────────────────────────────

    async def reload(self, source: str) -> str:
        """Read the rules again; the version in force. Raises RulesError."""
        return (await self._reloading.reload(source)).version

    def problem(self) -> str | None:
        """Why no traffic should come: nobody judges, and some rule then blocks all."""
        problem = self._problem()
        return problem if self._shelf.current.fails_closed else None

    def concern(self) -> str | None:
        """What an operator has to see to although traffic may come."""
        if (problem := self._problem()) is not None:
            return problem
        if self._reloading.refused is not None:
            return f"rules refused: {self._reloading.refused}"
        down = [status.name for status, _ in self._workers if not self._works(status)]
        return f"{', '.join(down)} not working" if down else None

    def view(self) -> PolicyView:
        edition, now = self._shelf.current, trio.current_time()
        rules = edition.rulebook.rules
        return PolicyView(
            version=edition.version,
            source=edition.load.source,
            rules=len(rules),
            shadows=sum(rule.shadow for rule in rules),
            model=self.model,
            problem=self._problem(),
            refused=self._reloading.refused,
            versions_in_use=self._shelf.versions,
            waiting=len(self._backlog),
            remembered=len(self._remembered),
            events_waiting=len(self._events),
            events_dropped=self._events.dropped,
            judges=tuple(status.view(now) for status, _ in self._workers),
        )

    def breakers(self) -> tuple[BreakerStatistics, ...]:
        remote = () if self._remote is None else (self._remote.statistics(),)
        return (self._client.breaker.statistics(), *self._guards.statistics(), *remote)

    def pids(self) -> Iterator[int]:
        """The judge processes that run now."""
        return (status.pid for status, _ in self._workers if status.pid is not None)

    # ── the tree ─────────────────────────────────────────────────────────────────────────────────

    def child(self, id: str) -> ChildSpec:
        """The desk comes first: without it the workers have nothing to do, and its next incarnation
        learns of them by their restart."""
        judges = Supervisor(
            SupervisorSpec(intensity=_WORKER_RESTARTS * len(self._workers), period_s=60.0),
            [
                actor_child(
                    status.name,
                    partial(self._make_worker, status),
                    address,
                    shutdown=Grace(_STOP_S),
                    kill_grace_s=_STOP_S,
                )
                for status, address in self._workers
            ],
        )
        remote = () if self._remote is None else (ChildSpec(id="upstream", start=self._remote.run),)
        return Supervisor(
            SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=3, period_s=60.0),
            [
                actor_child("desk", lambda: Desk(self._backlog), self._desk),
                judges.child("judges"),
                ChildSpec(id="rules", start=self._reloading.run),
                *remote,
                ChildSpec(id="events", start=self._events.run),
            ],
        ).child(id)

    def _make_worker(self, status: WorkerStatus) -> Worker:
        return Worker(
            self._launcher, status, self._shelf, self._desk.ref, self._telemetry, self._budget_s
        )

    def _unused(self, version: str) -> None:
        """No turn judges by it any more."""
        for status, address in self._workers:
            if status.ready:
                try:
                    address.ref.tell(Drop(version=version))
                except MailboxFull:
                    pass  # it stays loaded until that process ends

    def _states(self, now: float) -> Iterator[str]:
        """Each judge's, and of one that is down why it is."""
        for status, _ in self._workers:
            view = status.view(now)
            is_down = view.state == "down" and view.last_exit is not None
            yield f"{view.state}: {view.last_exit}" if is_down else view.state

    def _budget_s(self) -> float:
        """What one batch may take: who waits behind it must have some of its own time left."""
        return self._settings().deadline_s / 2

    def _silence_s(self) -> float:
        """How long a judge process may say nothing while it has work: its texts have been given up
        by then."""
        return max(_LEAST_SILENCE_S, 2 * self._settings().deadline_s)

    def _works(self, status: WorkerStatus) -> bool:
        return status.works(trio.current_time())

    def _problem(self) -> str | None:
        now = trio.current_time()
        if not any(status.works(now) for status, _ in self._workers):
            return f"no judge process works ({', '.join(sorted(set(self._states(now))))})"
        circuit = self._client.breaker.statistics()
        if circuit.circuit == Circuit.OPEN.value and circuit.retry_after_s:
            return f"judging failed {circuit.failures_in_row} times in a row"
        return None


_REASONS = {
    Failure.DEADLINE: "no verdict in time",
    Failure.QUEUE_FULL: "too many texts wait",
    Failure.WORKER_LOST: "the judge process was lost",
    Failure.CIRCUIT_OPEN: "judging failed several times in a row",
}


class Unmoderated:
    """What a server has instead when its policy is off."""

    model = "none"

    def judge_for(self, turn: Turn) -> Judge:
        return AllPass()

    async def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        """Raises ModerationUnavailable."""
        await trio.lowlevel.checkpoint()
        raise ModerationUnavailable("it is off (policy.enabled)", retry_after_s=60.0)
