"""The abuse detection as the server has it: what it tells, and suspensions that hold on every
server of the database and after a restart.

Scores are this process's own. What can't be written now holds here and is written later. Also a
child of the tree, for what goes on behind.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog
import trio

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.actions import GOOD, Standing
from antiphon.actors.abuse.detection import Change, Detection
from antiphon.actors.abuse.signals import Action, Kind, Signal, Subject
from antiphon.actors.abuse.telling import reason_of
from antiphon.errors import StorageFull, StoreError, StoreFailed
from antiphon.ids import KeyId, UserId
from antiphon.records import User
from antiphon.storage import Store, StoreAccess
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

_LOOK_S = 30.0
_AGAIN_S = 5.0
_LAST_S = 2.0
_HELD_S = 10.0
"""So long after it was written, a suspension is also refused here: what accounts remember of the
user, or are just reading, may be from before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspension:
    reason: str
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbuseStatistics:
    """Counters since the start, and against how many something is done now."""

    signals: Mapping[str, int]
    actions: Mapping[tuple[str, str], int]
    """By kind of subject and action: those that began, or would have begun."""
    subjects: Mapping[tuple[str, str], int]
    remembered: int
    owed: int


class Abuse:
    """`now_ms` is the wall clock. `forget` makes accounts look again at a user."""

    def __init__(
        self,
        store: StoreAccess,
        settings: Callable[[], AbuseSettings],
        *,
        now_ms: Callable[[], int],
        forget: Callable[[UserId], None] = lambda user: None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self._store = store
        self._settings = settings
        self._now_ms = now_ms
        self._forget = forget
        self._clock = clock
        self._owed: dict[UserId, _Suspension | None] = {}
        self._written: dict[UserId, tuple[int, float]] = {}
        """Until when it is written that they are suspended, and when that was written."""
        self._signals = Counter({signal.value: 0 for signal in Signal})
        self._actions = _counter()
        self._something_owed = trio.Event()
        self._writing = trio.Lock()
        self.suspended: tuple[User, ...] = ()
        """As the database had it when it was last looked at: by whichever server."""
        self.detection = Detection(
            settings,
            clock=clock,
            now_ms=now_ms,
            counted=self._counted,
            told=self._on_change,
        )

    @property
    def settings(self) -> AbuseSettings:
        return self._settings()

    @property
    def clock(self) -> Callable[[], float]:
        """What scores decay by."""
        return self._clock

    @property
    def owed(self) -> int:
        """How much is to be written yet."""
        return len(self._owed)

    def statistics(self) -> AbuseStatistics:
        subjects = _counter()
        subjects.update((s.kind.value, at.action.value) for s, at in self.detection.acted())
        return AbuseStatistics(
            signals=dict(self._signals),
            actions=dict(self._actions),
            subjects=subjects,
            remembered=len(self.detection),
            owed=self.owed,
        )

    # ── what rooms tell; None stands for an address that doesn't count ───────────────────────────

    def prompt_blocked(
        self, user: UserId, address: str | None, rule: str, category: str | None
    ) -> None:
        if self.settings.mode != "off":
            self.detection.prompt_blocked(user, address, rule, category)

    def key_failed(self, address: str | None) -> None:
        if self.settings.mode != "off" and address is not None:
            self.detection.key_failed(address)

    def flooded(self, address: str | None, reason: str) -> None:
        if self.settings.mode != "off" and address is not None:
            self.detection.flooded(address, reason)

    def came(self, user: UserId, key: KeyId, plan: str | None, address: str | None) -> None:
        if self.settings.mode != "off":
            self.detection.came(user, key, plan, address)

    def answered(self, user: UserId, address: str | None) -> None:
        if self.settings.mode != "off":
            self.detection.answered(user, address)

    # ── what follows ─────────────────────────────────────────────────────────────────────────────

    def address(self, address: str) -> Standing:
        """What is done against an address now."""
        if self.settings.mode != "act":
            return GOOD
        return self.detection.standing(Subject(Kind.ADDRESS, address))

    def user(self, user: UserId) -> Standing:
        """What is done against a user whom accounts let pass."""
        if self.settings.mode != "act":
            return GOOD
        subject = Subject(Kind.USER, user)
        standing = self.detection.standing(subject)
        if standing.action is Action.SUSPEND and self._is_lifted_elsewhere(user, standing):
            log.info("abuse_lifted", kind=subject.kind.value, subject=user, by="another server")
            self._written.pop(user, None)
            self.detection.forgive(subject)
            return GOOD
        return standing

    # ── what operators order ─────────────────────────────────────────────────────────────────────

    async def forgive(self, subject: Subject) -> bool:
        """Forget what was counted, and serve again; whether that is written already. A suspension
        by an operator stays."""
        self.detection.forgive(subject)
        return await self._lift(subject)

    async def pardon(self, subject: Subject, until_ms: int) -> bool:
        """Do nothing against it until then, and serve again; whether that is written already. A
        time that has passed ends a pardon, and lifts nothing."""
        self.detection.pardon(subject, until_ms)
        if until_ms <= self._now_ms():
            await trio.lowlevel.checkpoint()
            return True
        return await self._lift(subject)

    async def run(self, context: ChildContext) -> None:
        """A child's start function: write what is owed, and see who is suspended."""
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the abuse detection stops")
        with trio.move_on_after(_LAST_S):
            await self._write_all()

    async def _keep(self) -> None:
        while True:
            self._something_owed = trio.Event()  # before the look: nothing is missed meanwhile
            self.detection.acted()  # so that what has ended is told
            if await self._look():
                with trio.move_on_after(_LOOK_S):
                    await self._something_owed.wait()
            else:
                await trio.sleep(_AGAIN_S)

    async def _look(self) -> bool:
        """Whether all is as it should be in the store."""
        now_ms = self._now_ms()
        self._written = {
            user: written for user, written in self._written.items() if written[0] > now_ms
        }
        if not await self._write_all():
            return False
        try:
            self.suspended = await self._store.run(lambda store: store.suspended_users(now_ms))
        except StoreError as error:
            log.warning("suspensions_not_kept", waiting=self.owed, reason=str(error))
            return False
        return True

    async def _write_all(self) -> bool:
        return all([await self._write(user) for user in tuple(self._owed)])

    async def _write(self, user: UserId) -> bool:
        """Whether it is done: what the store refuses for good is."""
        async with self._writing:  # or an old word might be the last one
            if user not in self._owed:
                return True
            wanted, refused = self._owed[user], False
            try:
                await self._store.run(lambda store: _written(store, user, wanted))
            except StoreError as error:
                log.warning("suspensions_not_kept", waiting=self.owed, reason=str(error))
                if not isinstance(error, StoreFailed) or isinstance(error, StorageFull):
                    return False
                refused = True
            if self._owed.get(user) is wanted:
                del self._owed[user]
            if wanted is not None and not refused:
                self._written[user] = wanted.until_ms, self._clock()
        self._forget(user)
        return user not in self._owed

    async def _lift(self, subject: Subject) -> bool:
        if subject.kind is Kind.ADDRESS:
            await trio.lowlevel.checkpoint()
            return True
        user = UserId(subject.id)
        self._written.pop(user, None)
        self._owe(user, None)
        is_written = await self._write(user)
        if is_written:
            self.suspended = tuple(each for each in self.suspended if each.id != user)
        return is_written

    def _owe(self, user: UserId, wanted: _Suspension | None) -> None:
        self._owed[user] = wanted
        while len(self._owed) > self.settings.subjects:
            del self._owed[next(iter(self._owed))]
        self._something_owed.set()

    def _is_lifted_elsewhere(self, user: UserId, standing: Standing) -> bool:
        """It was written long enough ago, and yet the user was let pass: somebody has lifted it, on
        another server or in the database."""
        until_ms, written_at = self._written.get(user, (0, 0.0))
        return until_ms == standing.until_ms and self._clock() - written_at > _HELD_S

    def _counted(self, signal: Signal) -> None:
        self._signals[signal.value] += 1

    def _on_change(self, change: Change) -> None:
        after, subject = change.after, change.subject
        acts = self.settings.mode == "act"
        if after.action.severity <= change.before.action.severity:
            if acts:
                log.info("abuse_ended", kind=subject.kind.value, subject=subject.id)
            return
        self._actions[subject.kind.value, after.action.value] += 1
        facts = {
            "kind": subject.kind.value,
            "subject": subject.id,
            "action": after.action.value,
            "score": round(change.score, 1),
            "threshold": after.threshold,
            "signals": [signal.value for signal in change.signals],
            "until_ms": after.until_ms,
        }
        if acts:
            log.warning("abuse_acted", **facts)
        else:
            log.warning("abuse_seen", **facts)
        if acts and subject.kind is Kind.USER and after.until_ms is not None:
            wanted = _Suspension(reason=reason_of(after), until_ms=after.until_ms)
            self._owe(UserId(subject.id), wanted)


async def _written(store: Store, user: UserId, wanted: _Suspension | None) -> None:
    if wanted is None:
        await store.lift_suspension(user)
    else:
        await store.suspend_until(user, wanted.reason, wanted.until_ms)


def _counter() -> Counter[tuple[str, str]]:
    """With all there can be, so that a rate exists before the first one."""
    actions = [action for action in Action if action is not Action.NONE]
    return Counter({(kind.value, action.value): 0 for kind in Kind for action in actions})
