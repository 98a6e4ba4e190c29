"""A run: one response from its acceptance in the store to its final state there.

It drives a turn of the sessions and logs what comes of it. It keeps two rules: nothing is shown as
ended before it is stored as ended, and what was refused before any work leaves nothing behind.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog
import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.context.attaching import asked_of, attached
from antiphon.actors.context.looking import with_images_found
from antiphon.actors.context.material import items_of, material
from antiphon.actors.responses.ending import shown, write_end
from antiphon.actors.responses.log import Debt, EventLog
from antiphon.actors.responses.script import Script
from antiphon.context_settings import ContextSettings
from antiphon.errors import AntiphonError, StoreUnavailable, TurnInterrupted
from antiphon.events import CancelCause, Turn
from antiphon.files_settings import FilesSettings
from antiphon.ids import NodeId
from antiphon.messages import check_results, files_in, messages_of
from antiphon.narration import Ended, ResponseEvent
from antiphon.ports import Chat, NewAnswer, TurnStream
from antiphon.records import (
    Accepted,
    NewTurn,
    Repeated,
    Response,
    ResponseKind,
    ResponseStatus,
    Trace,
)
from antiphon.retrieval import FileSearching
from antiphon.storage import StoreAccess
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed, TurnPlaced

log = structlog.get_logger(__name__)

R = TypeVar("R")

LEASE_S = 10.0
"""How long after its last sign of life a server's responses belong to it."""
_QUIET_S = 1.0
"""After so long without any text it is announced as queued; a refusal before that has a status."""
_SAVE_S = 30.0
"""How long the end of a response waits for a store that is away, before it is given up."""
_RETRY_S = (0.1, 2.0)
_CANCELS = {CancelCause.REQUESTED, CancelCause.DISCONNECT, CancelCause.SLOW_READER}
"""Ends that somebody wanted; all others interrupt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """End it, as one that was cancelled or as one that was interrupted."""

    cause: CancelCause


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTools:
    """What every run works with."""

    chat: Chat
    store: StoreAccess
    node: NodeId
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    context: Callable[[], ContextSettings] = ContextSettings
    files: FileSearching | None = None
    """Without it nothing is found in files."""
    file_settings: Callable[[], FilesSettings] = FilesSettings


class Run:
    """A temporary actor: it ends with its response."""

    def __init__(self, new: NewAnswer, events: EventLog, tools: RunTools) -> None:
        self._new = new
        self._log = events
        self._tools = tools
        self._script = Script(
            new.response,
            shows_judged=new.turn.scoring is not None,
            choices=new.turn.choices,
        )
        self._began = trio.current_time()
        self._first_text_s: float | None = None
        self._cause: CancelCause | None = None
        self._stream: TurnStream | None = None
        self._looking: trio.CancelScope | None = None
        """At files, before there is a turn."""
        self._save_by = float("inf")
        self._over = trio.Event()
        self._me: ActorContext[CancelRun]

    def start(self, me: ActorContext[CancelRun]) -> None:
        self._me = me
        me.start_soon(self._run)

    def handle(self, message: CancelRun) -> None:
        """Pass it on to the turn; its end then ends the response."""
        self._cancel(message.cause)

    async def terminate(self) -> None:
        """On an ordered stop: end the response and store that, as far as the time allows."""
        if self._over.is_set():
            return
        self._cancel(CancelCause.SHUTDOWN)
        if self._me.stopping.is_set():
            self._save_by = self._me.stop_deadline
            with trio.move_on_at(self._me.stop_deadline):
                await self._over.wait()

    async def _run(self) -> None:
        try:
            came = await self._accept()
            if came is not None:
                await self._answer(came)
        except AntiphonError as error:
            if isinstance(error, StoreUnavailable) and not error.refused:
                self._log.owe(Debt.WITHDRAWAL)  # whether it was accepted is unknown
            self._log.refuse(error)
        self._over.set()
        self._me.stop()

    async def _accept(self) -> Accepted | None:
        """What came before; None when this is a response that was accepted before."""
        new, response = self._new, self._new.response
        store = self._tools.store
        if not new.stored:
            came = Accepted(context=())
            if response.previous is not None:
                user, previous = response.user, response.previous
                came = await store.run(
                    lambda store: store.context(user, previous=previous, whole=self._is_whole)
                )
            self._log.accepted.set()
            return came
        match await store.run(lambda store: store.accept_turn(self._new_turn())):
            case Accepted() as came:
                self._log.accepted.set()
                return came
            case Repeated(response=earlier):
                self._log.repeat(earlier)
                return None

    def _new_turn(self) -> NewTurn:
        """Its lease begins now: not when it began to wait for a busy store."""
        new = self._new
        return NewTurn(
            response=new.response,
            input=new.input,
            owner=self._tools.node,
            lease_ms=self._tools.now_ms() + round(LEASE_S * 1000),
            reserved_tokens=new.turn.max_tokens or 0,
            claim=new.claim,
            request=new.turn.request,
            retry_fingerprint=new.retry_fingerprint,
            is_retry=new.is_retry,
            whole=self._is_whole,
            memory_default=self._tools.context().memory,
        )

    @property
    def _is_whole(self) -> bool:
        """Whether all that came before is to be shown, or nothing at all."""
        turn = self._new.turn
        return turn.truncation == "disabled" and turn.compact is None

    async def _answer(self, came: Accepted) -> None:
        last: TurnEvent | AntiphonError
        if self._cause is not None:  # while it was being accepted
            last = TurnInterrupted("it was cancelled")
        else:
            last = await self._play(came)
        error = last.error if isinstance(last, TurnFailed) else last
        if isinstance(error, AntiphonError):
            if not self._script.opened and not isinstance(error, TurnInterrupted):
                await self._withdraw(error)
                return
            if not isinstance(error, TurnInterrupted):
                self._cause = None  # a cancel that came too late changes nothing
            status = ResponseStatus.CANCELLED if self._cause in _CANCELS else ResponseStatus.FAILED
            await self._finish(status, error)
        else:
            await self._finish(self._script.outcome(), None)

    async def _play(self, came: Accepted) -> TurnEvent | AntiphonError:
        """Log the turn to its end; that event, or why there is no turn."""
        turn, response = self._new.turn, self._new.response
        if self._new.response.status is ResponseStatus.QUEUED:
            self._log.append(self._script.queue())
        try:
            check_results(came.context, self._new.input)
            made = material(
                prompt=self._new.prompt,
                instructions=turn.messages,
                came=came,
                input=self._new.input,
                may_split=response.conversation is None and response.previous is None,
            )
            known = replace(
                turn,
                messages=made.messages,
                pieces=made.pieces,
                response=response.id,
                stored=self._new.stored,
                must_see=any(message.images for message in messages_of(self._new.input)),
            )
            known = await with_images_found(
                known, response.user, self._tools.store, self._tools.file_settings()
            )
            known = await self._with_files(known, came)
            self._script.show(items_of(known.pieces))
            stream = await self._tools.chat.open_turn(known)
        except AntiphonError as error:
            return error
        self._stream = stream
        if self._cause is not None:
            stream.cancel(self._cause)
        event = await self._first(stream)
        while True:
            if self._first_text_s is None and not isinstance(event, TurnFailed):
                self._first_text_s = trio.current_time() - self._began
                if self._script.opened or self._script.placed.model != turn.model:
                    self._me.start_soon(self._note_start)
            self._log.append(self._script.on_turn(event))
            if isinstance(event, TurnEnded | TurnFailed):
                return event
            event = await self._next(stream)

    async def _with_files(self, turn: Turn, came: Accepted) -> Turn:
        """With what is to be shown of files, and told of a search. Raises RequestError,
        StoreError."""
        new, searching = self._new, self._tools.files
        asked = asked_of(
            turn,
            user=new.response.user,
            files={**files_in((*came.context, *new.input)), **new.files},
            search=new.search,
            cards=self._tools.chat.models(turn.plan),
            may_cite=new.response.kind is ResponseKind.RESPONSE,
        )
        if searching is None or asked is None:
            return turn
        with trio.CancelScope() as self._looking:
            gathered = await searching.gather(asked)
            if new.search is not None:
                found = [each.described() for each in gathered.found]
                self._script.search(gathered.queries, found)
            return attached(turn, gathered)
        raise TurnInterrupted("it was cancelled")

    async def _first(self, stream: TurnStream) -> TurnEvent:
        """What happens first to the text. It may wait for a slot for long, and is announced then;
        before it has a place it may be refused, and must not have been announced."""
        first = await stream.next_event()
        if not isinstance(first, TurnPlaced):
            return first
        self._place(first)
        with trio.move_on_after(_QUIET_S):
            return await self._next(stream)
        self._log.append(self._script.queue())
        return await self._next(stream)

    async def _next(self, stream: TurnStream) -> TurnEvent:
        """What happens next to the text; where the turn was placed is noted at once."""
        while True:
            event = await stream.next_event()
            if not isinstance(event, TurnPlaced):
                return event
            self._place(event)

    def _place(self, placed: TurnPlaced) -> None:
        self._script.on_turn(placed)
        self._log.place(self._script.placed, placed)

    async def _note_start(self) -> None:
        """The store shows it as queued until now, or under the name that was asked for; that it
        doesn't any more can wait or fail."""
        if not self._new.stored:
            return
        response, node = self._new.response.id, self._tools.node
        model = self._script.placed.model
        try:
            await self._tools.store.run(lambda store: store.start_response(response, node, model))
        except AntiphonError as error:
            log.debug("response_start_unnoted", response_id=response, reason=str(error))

    async def _withdraw(self, error: AntiphonError) -> None:
        """It was refused before any work: a client that tries again starts anew."""
        response, node, store = self._new.response.id, self._tools.node, self._tools.store
        if self._new.stored:
            try:
                await self._stubbornly(
                    lambda: store.run(lambda store: store.withdraw_turn(response, node))
                )
            except AntiphonError as failure:
                log.warning("turn_not_withdrawn", response_id=response, reason=str(failure))
                self._log.owe(Debt.WITHDRAWAL)
        self._log.refuse(error)

    async def _finish(self, status: ResponseStatus, error: AntiphonError | None) -> None:
        last = self._script.end(status)
        now_ms = self._tools.now_ms()
        reason = None if status is ResponseStatus.CANCELLED or error is None else shown(error)
        ended = self._script.response(status, now_ms, reason)
        if self._new.stored and not await self._save(ended, last):
            error = TurnInterrupted("its end could not be stored")
            ended = self._script.response(ResponseStatus.FAILED, now_ms, shown(error))
            last = (*last[:-1], Ended(status=ResponseStatus.FAILED))
        self._log.append(last)
        self._log.end(ended, error)

    async def _save(self, ended: Response, last: tuple[ResponseEvent, ...]) -> bool:
        """Store the end; False when the store is away for too long, or the response is not ours
        any more."""
        try:
            return await self._stubbornly(
                lambda: write_end(
                    self._tools.store,
                    self._log,
                    ended,
                    last,
                    owner=self._tools.node,
                    trace=self._trace(ended),
                    counts=self._script.counts,
                )
            )
        except AntiphonError as error:
            log.error(
                "response_not_saved",
                response_id=ended.id,
                status=ended.status,
                reason=str(error),
            )
            self._log.owe(Debt.END)
            return False

    async def _stubbornly(self, work: Callable[[], Awaitable[R]]) -> R:
        """Try again while the store is away. Raises StoreUnavailable when that takes too long."""
        give_up_at = trio.current_time() + _SAVE_S
        wait_s, longest_s = _RETRY_S
        while True:
            try:
                return await work()
            except StoreUnavailable:
                if trio.current_time() + wait_s >= min(give_up_at, self._save_by):
                    raise
                await trio.sleep(wait_s)
                wait_s = min(wait_s * 2, longest_s)

    def _cancel(self, cause: CancelCause) -> None:
        if self._cause is None:
            self._cause = cause
            if self._looking is not None:
                self._looking.cancel(cause)
            if self._stream is not None:
                self._stream.cancel(cause)

    def _trace(self, ended: Response) -> Trace:
        return Trace(
            request=self._new.turn.request,
            prompt_version=self._new.turn.prompt_version,
            first_token_s=self._first_text_s,
            total_s=trio.current_time() - self._began,
            finish=ended.incomplete_reason or ended.status,
        )
