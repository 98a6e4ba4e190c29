"""Which faults a run is to have: the sites, what may happen at each, and how a plan is written.

Pure values; what carries a plan out is `faults`. Sites are named here, and here alone.
"""

import enum
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.errors import SettingsError

_ODDS = 0.25
"""FoundationDB's, both for a site to be active in a run and for an active one to strike."""
_WORD = re.compile(
    r"(?P<site>[a-z_.]+)(?:\[(?P<at>[^\]]+)\])?(?:=(?P<action>[a-z]+)(?::(?P<pause_s>[\d.]+))?)?"
    r"(?:@(?P<probability>[\d.]+)|#(?P<nth>\d+))?"
)


class Action(enum.StrEnum):
    """What happens at a site that strikes."""

    RAISE = "raise"
    """InjectedFault."""
    SLOW = "slow"
    """It waits; `maybe` blocks its whole thread."""
    KILL = "kill"
    """SIGKILL to this very process."""
    STRIKE = "strike"
    """What the site's own line says; its code is at the call."""


_HARM = (Action.RAISE, Action.SLOW, Action.KILL)
_CRASH = (Action.RAISE, Action.KILL)
_OWN = (Action.STRIKE,)


class Site(enum.Enum):
    """Every site: its name in plans, where it is, and what may happen there, the usual first."""

    label: str
    place: str
    actions: tuple[Action, ...]

    def __new__(cls, label: str, place: str, actions: tuple[Action, ...]) -> "Site":
        site = object.__new__(cls)
        site._value_ = site.label = label
        site.place, site.actions = place, actions
        return site

    ACTOR_START = "actor.start", "an actor is about to get ready", _HARM
    ACTOR_HANDLE = "actor.handle", "an actor has a message in hand", _HARM
    ACTOR_TERMINATE = "actor.terminate", "an actor is about to give everything back", _HARM
    DRIVER_LAUNCHED = "driver.launched", "a host process runs and is not ready", _HARM
    DRIVER_ADMIT = "driver.admit", "a generation is known, its Admit not sent", _HARM
    DRIVER_FRAME = "driver.frame", "a frame was received and not acted on", _HARM
    SCHEDULER_SUBMIT = "scheduler.submit", "a turn is queued, its owner not yet watched", _CRASH
    SCHEDULER_GRANT = "scheduler.grant", "a slot is leased, the driver not yet told", _CRASH
    SCHEDULER_RELEASE = "scheduler.release", "the engine let go of a slot, the lease stands", _CRASH
    SESSION_SUBMIT = "session.submit", "the view is built, nothing queued", _HARM
    SESSION_ENDED = "session.ended", "the terminal event is out, the session still runs", _CRASH
    STORE_UNIT = "store.unit", "a unit of work is about to cross to its database", _HARM
    STORE_WRITE = "store.write", "a statement has written, its transaction is open", _CRASH
    STORE_COMMIT = "store.commit", "all is written and not committed", _CRASH
    STORE_COMMITTED = "store.committed", "it is committed and nobody knows yet", _CRASH
    WORKER_STEP = "worker.step", "a title, a summary or memories are about to be made", _HARM
    WORKER_WRITE = "worker.write", "they are made and not written", _HARM
    WORKER_WRITTEN = "worker.written", "they are written, the conversation still held", _HARM
    WORKER_DONE = "worker.done", "all is done, and the store not told", _HARM
    INGEST_READ = "ingest.read", "a document is held and about to be read", _HARM
    INGEST_EMBED = "ingest.embed", "it is read, and has no vectors", _HARM
    INGEST_WRITE = "ingest.write", "it has its vectors and is not written", _HARM
    INGEST_WRITTEN = "ingest.written", "it is written, and nobody knows", _HARM
    HTTP_ACCEPT = "http.accept", "accepting fails for want of file descriptors", _OWN
    HTTP_READ_DROP = "http.read.drop", "the connection is lost while the client sends", _OWN
    HTTP_WRITE_DROP = "http.write.drop", "the connection is lost before an answer's bytes", _OWN
    HTTP_WRITE_STALL = "http.write.stall", "the client takes no more bytes", _OWN
    HTTP_TURN = "http.turn", "a handler holds a turn and has answered nothing", _HARM
    HTTP_STREAM = "http.stream", "a stream has begun and its next chunk is due", _HARM
    JUDGE_START = "judge.start", "a judge process is about to load its classifier", _HARM
    JUDGE_BATCH = "judge.batch", "a judge process has texts in hand", _HARM
    JUDGE_HANG = "judge.hang", "a judge process never answers again", _OWN
    EMBEDDER_START = "embedder.start", "an embedding process is about to load its model", _HARM
    EMBEDDER_BATCH = "embedder.batch", "an embedding process has passages in hand", _HARM
    EMBEDDER_QUESTION = "embedder.question", "an embedding process has a question in hand", _HARM
    EMBEDDER_HANG = "embedder.hang", "an embedding process never answers again", _OWN
    READER_START = "reader.start", "a reader process is about to load its parsers", _HARM
    READER_FILE = "reader.file", "a reader process has a file in memory", _HARM
    READER_HANG = "reader.hang", "a reader process never says anything again", _OWN
    LINK_SEND_GARBLED = "link.send.garbled", "a command turns into garbage", _OWN
    HOST_START = "host.start", "a host process is about to load its engine", _HARM
    HOST_ADMIT_REFUSED = "host.admit.refused", "the engine has no room for a request", _OWN
    HOST_STEP = "host.step", "a host is about to step its engine", _HARM
    HOST_STEP_HANG = "host.step.hang", "a step never returns", _OWN
    HOST_STEP_BROKEN = "host.step.broken", "a step finds that the engine is beyond repair", _OWN
    ENGINE_STEP_THROWS = "engine.step.throws", "the inference library throws in a step", _OWN
    WIRE_READ = "wire.read", "a host is about to take commands", _HARM
    WIRE_WRITE = "wire.write", "frames of a host are made and not sent", _HARM
    WIRE_WRITE_CUT = "wire.write.cut", "the host's socket closes in the middle of a frame", _OWN
    WIRE_WRITE_GARBLED = "wire.write.garbled", "a frame turns into garbage", _OWN


@dataclass(frozen=True, slots=True)
class Fault:
    """One site gone wrong: at its nth pass of this process, or now and then. `at` is a pattern for
    the path of the actor, where a site is in every actor. Raises ValueError."""

    site: Site
    action: Action | None = None
    """None is the site's usual one."""
    probability: float = _ODDS
    nth: int | None = None
    at: str = "*"
    pause_s: float = 1.0
    """How long SLOW waits."""

    def __post_init__(self) -> None:
        if self.does not in self.site.actions:
            allowed = ", ".join(self.site.actions)
            raise ValueError(f"{self.site.label} can {allowed}, not {self.does}")
        if not 0.0 <= self.probability <= 1.0:
            raise ValueError(f"a probability is from 0 to 1, not {self.probability:g}")
        if self.nth is not None and self.nth < 1:
            raise ValueError("passes are counted from 1")

    @property
    def does(self) -> Action:
        return self.site.actions[0] if self.action is None else self.action

    def __str__(self) -> str:
        at = "" if self.at == "*" else f"[{self.at}]"
        pause = f":{self.pause_s:g}" if self.does is Action.SLOW else ""
        odds = f"@{self.probability:g}" if self.nth is None else f"#{self.nth}"
        return f"{self.site.label}{at}={self.does}{pause}{odds}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """What goes wrong in a run. The same plan makes the same choices at the same passes."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0

    @classmethod
    def drawn(
        cls, seed: int, sites: Iterable[Site] = tuple(Site), *, probability: float = _ODDS
    ) -> "FaultPlan":
        """Each site is active for the whole run or not at all, as the seed decides."""
        dice = random.Random(f"plan {seed}")
        active = [site for site in sites if dice.random() < _ODDS]
        return cls(tuple(Fault(site, probability=probability) for site in active), seed)

    @classmethod
    def parse(cls, text: str) -> "FaultPlan":
        """The plan of a text such as `seed=7 driver.frame=slow:0.5@0.01 host.step=kill#3`, where
        `random@0.001` stands for a drawn one, and `actor.handle[root/*/driver]` for one actor's
        passes. Raises SettingsError."""
        seed, words = 0, text.split()
        if words and (given := re.fullmatch(r"seed=(\d+)", words[0])):
            seed = int(given[1])
            del words[0]
        faults: list[Fault] = []
        for word in words:
            try:
                if (drawn := re.fullmatch(r"random(?:@([\d.]+))?", word)) is not None:
                    faults += cls.drawn(seed, probability=float(drawn[1] or _ODDS)).faults
                else:
                    faults.append(_parse(word))
            except ValueError as error:
                raise SettingsError("faults", f"{word!r}: {error}") from error
        return cls(tuple(faults), seed)

    def __str__(self) -> str:
        return " ".join([f"seed={self.seed}", *map(str, self.faults)])


def _parse(word: str) -> Fault:
    found = _WORD.fullmatch(word)
    if found is None:
        raise ValueError("must be site[path]=action@probability or site[path]=action#pass")
    known = {site.label: site for site in Site}
    if found["site"] not in known:
        raise ValueError(f"no such site; there are {', '.join(known)}")
    return Fault(
        known[found["site"]],
        Action(found["action"]) if found["action"] else None,
        probability=float(found["probability"] or _ODDS),
        nth=int(found["nth"]) if found["nth"] else None,
        at=found["at"] or "*",
        pause_s=float(found["pause_s"] or 1.0),
    )
