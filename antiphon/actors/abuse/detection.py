"""The detection: signals in, standings out. Pure over two clocks, in bounded memory, and quick:
each method takes the same time however many subjects there are, but for those of operators.

It refuses nobody and writes nothing: it says what changed, and others act.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.actions import GOOD, Standing, address_share, decide, thresholds
from antiphon.actors.abuse.crowds import Crowds
from antiphon.actors.abuse.exemptions import is_exempt
from antiphon.actors.abuse.rhythm import Rhythm
from antiphon.actors.abuse.scores import Score
from antiphon.actors.abuse.signals import Action, Kind, Mark, Signal, Subject
from antiphon.ids import KeyId, UserId

_FLOOD_S = 10.0
_HARMLESS = "self-harm"
"""A prompt of these categories may be somebody's in distress: nothing is ever counted for it."""
_WORST = "sexual/minors"


@dataclass(slots=True)
class Record:
    """What is known of one subject."""

    score: Score = field(default_factory=Score)
    standing: Standing = GOOD
    rhythm: Rhythm | None = None
    flooded_at: float | None = None
    pardoned_until_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a subject's standing changed."""

    subject: Subject
    before: Standing
    after: Standing
    score: float
    signals: tuple[Signal, ...]
    """What it was for, the weightiest first."""


class Detection:
    """`clock` is for what decays, `now_ms` the wall clock for what people read. `told` is told of
    every change for the worse, and of every end of a suspension."""

    def __init__(
        self,
        settings: Callable[[], AbuseSettings],
        *,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        counted: Callable[[Signal], None],
        told: Callable[[Change], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._now_ms = now_ms
        self._counted = counted
        self._told = told
        self._records: dict[Kind, OrderedDict[str, Record]] = {kind: OrderedDict() for kind in Kind}
        self._accounts: Crowds[str] = Crowds()
        self._addresses: Crowds[KeyId] = Crowds()
        self._acted: set[Subject] = set()

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))

    # ── what rooms tell ──────────────────────────────────────────────────────────────────────────

    def prompt_blocked(
        self, user: UserId, address: str | None, rule: str, category: str | None
    ) -> None:
        settings = self._settings()
        signal, points = _weighed(settings, rule, category)
        if not points:
            return
        mark = self._mark(signal, points, rule if category is None else f"{rule} ({category})")
        self._count(Subject(Kind.USER, user), mark)
        if address is not None:
            self._count(Subject(Kind.ADDRESS, address), mark, user)

    def key_failed(self, address: str) -> None:
        points = self._settings().failed_key_points
        self._count(Subject(Kind.ADDRESS, address), self._mark(Signal.FAILED_KEY, points))

    def flooded(self, address: str, reason: str) -> None:
        """Once in a while: how many there were is the brakes' business."""
        record, now = self._record(Subject(Kind.ADDRESS, address)), self._clock()
        if record.flooded_at is None or now - record.flooded_at >= _FLOOD_S:
            record.flooded_at = now
            points = self._settings().flood_points
            self._count(Subject(Kind.ADDRESS, address), self._mark(Signal.FLOOD, points, reason))

    def came(self, user: UserId, key: KeyId, plan: str | None, address: str | None) -> None:
        """A prompt of this user's is about to be read."""
        settings, now = self._settings(), self._clock()
        subject = Subject(Kind.USER, user)
        if address is not None:
            met = self._accounts.meet(address, user, now, size=settings.subjects)
            if met > settings.free_accounts:
                mark = self._mark(Signal.MANY_ACCOUNTS, settings.account_points, user)
                self._count(Subject(Kind.ADDRESS, address), mark)
            met = self._addresses.meet(key, address, now, size=settings.subjects)
            if met > settings.free_addresses:
                mark = self._mark(Signal.MANY_ADDRESSES, settings.address_points, key)
                self._count(subject, mark)
        if plan is not None and plan in settings.plans_for_people:
            record = self._record(subject)
            record.rhythm = record.rhythm or Rhythm()
            if (reading := record.rhythm.beat(now)) is not None:
                self._count(subject, self._mark(Signal.RHYTHM, settings.rhythm_points, reading))

    def answered(self, user: UserId, address: str | None) -> None:
        """A prompt of this user's was answered."""
        now, half_life_s = self._clock(), self._settings().half_life_s
        self._record(Subject(Kind.USER, user)).score.answer(now, half_life_s)
        if address is not None:
            self._record(Subject(Kind.ADDRESS, address)).score.answer(now, half_life_s)

    # ── what follows ─────────────────────────────────────────────────────────────────────────────

    def standing(self, subject: Subject) -> Standing:
        """As it is now: what has ended has ended."""
        record = self._records[subject.kind].get(subject.id)
        if record is None or record.standing is GOOD:
            return GOOD
        self._judge(subject, record)
        return record.standing

    def score(self, subject: Subject) -> float:
        record = self._records[subject.kind].get(subject.id)
        return 0.0 if record is None else self._total(record)

    def record(self, subject: Subject) -> Record | None:
        """For whoever shows it; not to be changed."""
        record = self._records[subject.kind].get(subject.id)
        if record is not None:
            self._judge(subject, record)
        return record

    def suspects(self) -> Iterator[tuple[Subject, Record]]:
        """Everybody with a score or a pardon, as they stand now."""
        for kind, records in self._records.items():
            for id, record in tuple(records.items()):
                subject = Subject(kind, id)
                self._judge(subject, record)
                pardoned = record.pardoned_until_ms > self._now_ms()
                if pardoned or record.standing is not GOOD or self._total(record) >= 0.05:
                    yield subject, record

    def acted(self) -> tuple[tuple[Subject, Standing], ...]:
        """Against whom something is done, now."""
        standings = [(each, self.standing(each)) for each in tuple(self._acted)]
        return tuple(each for each in standings if each[1].action is not Action.NONE)

    def forgive(self, subject: Subject) -> bool:
        """Forget everything about it; whether there was anything. A pardon stays."""
        record = self._records[subject.kind].get(subject.id)
        if record is None:
            return False
        had = bool(record.score.tallies)
        self._acted.discard(subject)
        self._records[subject.kind][subject.id] = Record(pardoned_until_ms=record.pardoned_until_ms)
        return had

    def pardon(self, subject: Subject, until_ms: int) -> None:
        """Count, and do nothing against it until then; a time that has passed ends a pardon."""
        record = self._record(subject)
        record.pardoned_until_ms = until_ms
        self._judge(subject, record)

    # ── within ───────────────────────────────────────────────────────────────────────────────────

    def _mark(self, signal: Signal, points: float, detail: str = "") -> Mark:
        return Mark(signal=signal, points=points, at_ms=self._now_ms(), detail=detail)

    def _record(self, subject: Subject) -> Record:
        records = self._records[subject.kind]
        record = records.get(subject.id)
        if record is None:
            record = records[subject.id] = Record()
        records.move_to_end(subject.id)
        while len(records) > self._settings().subjects:
            gone, _ = records.popitem(last=False)
            self._acted.discard(Subject(subject.kind, gone))
        return record

    def _count(self, subject: Subject, mark: Mark, contributor: str | None = None) -> None:
        if not mark.points:
            return
        settings, now, record = self._settings(), self._clock(), self._record(subject)
        if contributor is None:
            record.score.add(mark, now, settings.half_life_s)
            self._counted(mark.signal)
        else:
            share = address_share(settings)
            record.score.add_from(contributor, mark, now, settings.half_life_s, most=share)
        self._judge(subject, record)

    def _total(self, record: Record) -> float:
        settings = self._settings()
        return record.score.total(self._clock(), settings.half_life_s, settings.tolerance)

    def _judge(self, subject: Subject, record: Record) -> None:
        settings, now_ms = self._settings(), self._now_ms()
        before = record.standing
        if before is GOOD and not record.score.tallies:
            return
        if self._is_exempt(subject, record, settings, now_ms):
            record.standing = GOOD
        elif before.until_ms is not None and now_ms < before.until_ms:
            return
        else:
            if before.action is Action.SUSPEND:
                self._serve_again(record, settings)
                record.standing = GOOD
            record.standing = self._next(subject, record, settings, now_ms)
        after = record.standing
        (self._acted.discard if after is GOOD else self._acted.add)(subject)
        worse = after.action.severity > before.action.severity
        if worse or (before.action is Action.SUSPEND and before.until_ms != after.until_ms):
            self._told(
                Change(
                    subject=subject,
                    before=before,
                    after=after,
                    score=self._total(record),
                    signals=self._reasons(record),
                )
            )

    def _next(
        self, subject: Subject, record: Record, settings: AbuseSettings, now_ms: int
    ) -> Standing:
        limits = thresholds(settings, subject.kind)
        score = self._total(record)
        prompts = record.score.of_prompts(self._clock(), settings.half_life_s, settings.tolerance)
        action = decide(record.standing.action, score, prompts, limits)
        if action is record.standing.action:
            return record.standing
        if action is Action.NONE:
            return GOOD
        ends = action is Action.SUSPEND
        return Standing(
            action=action,
            since_ms=now_ms,
            score=score,
            threshold=limits[action],
            until_ms=now_ms + round(settings.suspend_s * 1000) if ends else None,
        )

    def _serve_again(self, record: Record, settings: AbuseSettings) -> None:
        """After a suspension what was counted weighs no more than half of what it takes for the
        next one."""
        score, most = self._total(record), settings.suspend_at / 2
        if score > most:
            record.score.scale(most / score)

    def _is_exempt(
        self, subject: Subject, record: Record, settings: AbuseSettings, now_ms: int
    ) -> bool:
        return now_ms < record.pardoned_until_ms or is_exempt(settings.exempted, subject)

    def _reasons(self, record: Record) -> tuple[Signal, ...]:
        now, half_life_s = self._clock(), self._settings().half_life_s
        points = {
            each: record.score.points(each, now, half_life_s) for each in record.score.tallies
        }
        return tuple(sorted(points, key=lambda each: -points[each]))


def _weighed(settings: AbuseSettings, rule: str, category: str | None) -> tuple[Signal, float]:
    """What a blocked prompt counts as, and for how much."""
    named = category or ""
    patterns = settings.jailbreak_patterns
    if any(fnmatchcase(name, each) for name in (rule, named) if name for each in patterns):
        return Signal.JAILBREAK, settings.jailbreak_points
    if named.partition("/")[0] == _HARMLESS:
        return Signal.BLOCKED_PROMPT, 0.0
    if named == _WORST:
        return Signal.BLOCKED_PROMPT, settings.minors_points
    return Signal.BLOCKED_PROMPT, settings.blocked_points
