"""Reads the rules again: when their file changes, when somebody asks, when the settings name
another one. They are swapped only once they are right and a judge process has loaded them; what is
wrong with them is said once, and those before them stay in force.
"""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import trio

from antiphon.actors.moderation.edition import (
    Edition,
    default_edition,
    listed_files,
    read_edition,
)
from antiphon.actors.moderation.messages import Prepare, WorkerMessage
from antiphon.actors.moderation.shelf import Shelf
from antiphon.actors.moderation.status import LOAD_S, WorkerStatus
from antiphon.actors.ref import Ref
from antiphon.errors import ActorError, RulesError
from antiphon.judging import SAMPLE
from antiphon.policy.rules import GuardMatcher, UpstreamMatcher
from antiphon.supervision.context import ChildContext
from antiphon.verdicts import PolicyScope

log = structlog.get_logger(__name__)

_LOOK_S = 1.0
Seat = tuple[WorkerStatus, Ref[WorkerMessage]]
Signature = tuple[tuple[object, ...], ...]


class Reloading:
    """`path` is asked for at each look; `served` for the models that a guard may name."""

    def __init__(
        self,
        shelf: Shelf,
        seats: Sequence[Seat],
        path: Callable[[], Path | None],
        *,
        served: Callable[[], Sequence[str]],
        has_remote: bool,
    ) -> None:
        self._shelf = shelf
        self._seats = tuple(seats)
        self._path = path
        self._served = served
        self._has_remote = has_remote
        self._seen: tuple[Path | None, Signature] | None = None
        """The files as they were when they were last taken, or refused for good."""
        self._reading = trio.Lock()
        self.refused: str | None = None

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        self._seen = (None, ()) if self._path() is None else None
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look_on)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the server stops")

    async def reload(self, source: str) -> Edition:
        """The edition that is in force then. `source` is who asked, for the log. Raises RulesError,
        and then nothing has changed."""
        async with self._reading:
            return await self._reload(source)

    async def look(self) -> None:
        """Take what has changed since the last look, if anything has."""
        async with self._reading:
            path = self._path()
            # Without a file of its own nothing can change, unless the settings name one.
            seen = (None, ()) if path is None else (path, await _signature(path, self._listed()))
            if seen != self._seen:
                try:
                    await self._reload("file")
                except RulesError:
                    pass  # it is in the log

    async def _look_on(self) -> None:
        while True:
            await self.look()
            await trio.sleep(_LOOK_S)

    async def _reload(self, source: str) -> Edition:
        path = self._path()
        signature, read = await _in_thread(path, self._listed())
        try:
            if isinstance(read, RulesError):
                raise read
            check_edition(read, self._served(), has_remote=self._has_remote)
            self._check_version(read)
            if read.digest != self._shelf.current.digest:
                await self._load(read)
                self._install(read, source)
        except _NotNow:
            raise
        except RulesError as error:
            self._seen = path, signature
            self._refuse(error, source)
            raise
        self._seen = path, signature
        self.refused = None
        return self._shelf.current

    async def _load(self, edition: Edition) -> None:
        """Have the judge processes load it, one after the other: the others judge meanwhile. Those
        that are being restarted will get it then. Raises RulesError."""
        loaded = 0
        for status, worker in self._seats:
            if not status.ready:
                continue
            try:
                problem: str | None = await worker.ask(
                    lambda reply: Prepare(edition=edition, reply=reply), deadline_s=LOAD_S
                )
            except ActorError as error:
                log.warning("rules_not_loaded", version=edition.version, why=str(error))
                continue
            if problem is not None:
                raise RulesError(edition.load.source, 0, "", problem)
            loaded += 1
        if not loaded:
            raise _NotNow(edition.load.source, 0, "", "no judge process is there to load them")

    def _install(self, edition: Edition, source: str) -> None:
        before = self._shelf.current.version
        # One that turns still judge by is the same one, also when it comes back.
        self._shelf.install(self._shelf.edition(edition.version) or edition)
        log.info(
            "rules_installed",
            source=source,
            version=edition.version,
            before=before,
            rules=len(edition.rulebook.rules),
        )

    def _refuse(self, error: RulesError, source: str) -> None:
        self.refused = str(error)
        log.error(
            "rules_refused",
            source=source,
            file=error.source,
            line=error.line or None,
            key=error.key or None,
            problem=error.problem,
            in_force=self._shelf.current.version,
        )

    def _check_version(self, edition: Edition) -> None:
        known = self._shelf.edition(edition.version)
        if known is not None and known.digest != edition.digest:
            problem = f"{edition.version!r} is what other rules are called, that are in use"
            raise RulesError(edition.load.source, 0, "version", problem)

    def _listed(self) -> tuple[str, ...]:
        return listed_files(self._shelf.current.rulebook.rules)


class _NotNow(RulesError):
    """Nothing is wrong with the rules: it is tried again at the next look."""


def check_edition(edition: Edition, served: Sequence[str], *, has_remote: bool) -> None:
    """What rules ask of this server. Raises RulesError."""
    for rule in edition.rulebook.rules:
        problem = None
        match rule.match:
            case GuardMatcher(model=model) if model not in served:
                problem = f"no pool serves the guard {model!r}"
            case UpstreamMatcher() if not has_remote:
                problem = "asks an upstream, and the settings name none (policy.upstream_url)"
            case _:
                continue
        if problem is not None:
            raise RulesError(edition.load.source, 0, f"rules.{rule.id}", problem)


def first_edition(path: Path | None) -> Edition:
    """What a server starts with. Raises RulesError."""
    return default_edition() if path is None else read_edition(path)


async def _in_thread(
    path: Path | None, listed: tuple[str, ...]
) -> tuple[Signature, Edition | RulesError]:
    """How the files looked before they were read, and what is in them."""

    def read() -> tuple[Signature, Edition | RulesError]:
        # Looked at first: what changes meanwhile is seen at the next look.
        signature = _stat(path, listed)
        # A large file becomes millions of objects at once. The collector would look at all of them
        # several times meanwhile, and stall every stream for a second each time.
        gc.disable()
        try:
            edition = first_edition(path)
            _warm(edition)
        except RulesError as error:
            return signature, error
        finally:
            gc.enable()
        return signature, edition

    return await trio.to_thread.run_sync(read, abandon_on_cancel=True)


def _warm(edition: Edition) -> None:
    """Make what most turns need, in the thread that reads: a large file's automata take seconds,
    and the first of those turns would hold up all others."""
    plans = {plan for rule in edition.rulebook.rules for plan in rule.plans}
    for plan in (None, *sorted(plans)):
        edition.rulebook.for_scope(PolicyScope(plan=plan)).window("").feed(SAMPLE)


async def _signature(path: Path | None, listed: tuple[str, ...]) -> Signature:
    return await trio.to_thread.run_sync(_stat, path, listed, abandon_on_cancel=True)


def _stat(path: Path | None, listed: tuple[str, ...]) -> Signature:
    """How the files look from outside. One that isn't there looks like nothing."""
    if path is None:
        return ()
    found: list[tuple[object, ...]] = []
    for each in (path, *(path.parent / name for name in listed)):
        try:
            stat = each.stat()
        except OSError as error:
            found.append((str(each), error.errno))
        else:
            found.append((str(each), stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)
