"""A turn's calls of functions, pure: what was generated in, text and calls out.

A model that may choose writes calls into its text. They are kept until its answer is whole; where
one is malformed, nothing of them leaves, and the choice is to be generated once more, held to a
schema. A model that must call is held to one from the beginning: its arguments pass as they come.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from antiphon.actors.sessions.alignment import Alignment
from antiphon.actors.tools.constrained import ConstrainedReader
from antiphon.actors.tools.free import FreeReader, Stretch
from antiphon.actors.tools.grammar import MOST_CALLS, calls_schema
from antiphon.actors.tools.reading import Call, MalformedCall, read_calls
from antiphon.ids import new_item_id
from antiphon.tools import CallDelta, CallEnded, CallStarted, Toolbox, ToolFormat
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason

LEAST_FOR_A_CALL = 16
"""Tokens: with fewer left of an answer's longest, a second attempt would be cut in the middle."""

Generated = Delta | ChoiceEnded
Spoken = Delta | CallStarted | CallDelta | CallEnded | ChoiceEnded


def new_call_id() -> str:
    return new_item_id("call_")


def schema_of(toolbox: Toolbox) -> str | None:
    """What the first generation of each choice is held to; None where it may say what it likes."""
    if not toolbox.required:
        return None
    return calls_schema(toolbox.callable, most=MOST_CALLS if toolbox.parallel else 1)


@dataclass(slots=True)
class _Choice:
    reader: FreeReader | ConstrainedReader
    alignment: Alignment = field(default_factory=Alignment)
    good: tuple[Call, ...] = ()
    bad: str = ""
    """What is malformed, as it was written."""
    attempted: int = 0


class Calling:
    """Of one turn. `count` is told of each call how it came about."""

    def __init__(
        self,
        toolbox: Toolbox | None,
        choices: int,
        count: Callable[[str], None],
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._toolbox = toolbox
        self._count = count
        self._new_id = new_id
        self._may_retry = self._is_single = False
        self._choices: list[_Choice] = []
        self._number = choices
        self._due: list[int] = []
        self._again: set[int] = set()

    def begin(self, format: ToolFormat | None, *, may_retry: bool) -> None:
        """It has a place, of a model that writes calls so, and whose engine may be held to a schema
        or not. Nothing was generated yet."""
        if self._toolbox is None:
            return
        self._may_retry = may_retry
        # Llama's template refuses a message of several calls.
        self._is_single = self._toolbox.parallel is False or format is ToolFormat.LLAMA
        self._choices = [
            _Choice(
                ConstrainedReader(index, self._new_id)
                if self._toolbox.required
                else FreeReader(format or ToolFormat.HERMES)
            )
            for index in range(self._number)
        ]
        self._due, self._again = [], set()

    def take(self, event: Generated) -> list[Spoken]:
        """What was generated."""
        if not self._choices:
            return [event]
        choice = self._choices[event.choice]
        if isinstance(reader := choice.reader, ConstrainedReader):
            if isinstance(event, Delta):
                return [*reader.feed(event.text)]
            return self._end_constrained(event, reader)
        if isinstance(event, Delta):
            choice.alignment.add(event.text, event.logprobs)
            return list(_passed(event.choice, choice.alignment, reader.feed(event.text)))
        return self._end_free(event, choice, reader)

    def due(self) -> list[int]:
        """Choices to be generated once more, since the last call."""
        due, self._due = self._due, []
        return due

    def retry(self, choice: int) -> str:
        """It is generated once more; the schema that it is to be held to."""
        assert self._toolbox is not None
        state = self._choices[choice]
        state.reader = ConstrainedReader(choice, self._new_id)
        self._again.add(choice)
        most = 1 if self._is_single else min(state.attempted, MOST_CALLS)
        return calls_schema(self._toolbox.callable, most=most)

    def give_up(self, choice: int) -> list[Spoken]:
        """It can't be: good calls are made, and what is malformed leaves as what it is, text."""
        state = self._choices[choice]
        self._again.discard(choice)
        said: list[Spoken] = [Delta(choice=choice, text=state.bad)] if state.bad else []
        return [*said, *self._made(choice, state.good, FinishReason.STOP)]

    def _end_free(self, event: ChoiceEnded, choice: _Choice, reader: FreeReader) -> list[Spoken]:
        assert self._toolbox is not None
        said: list[Spoken] = list(_passed(event.choice, choice.alignment, reader.finish()))
        good: list[Call] = []
        bad = []
        for body in reader.bodies:
            if not body.is_whole and event.finish_reason is not FinishReason.STOP:
                self._count("cut")
                continue
            choice.attempted += 1
            try:
                good += read_calls(body.content, self._toolbox)
            except MalformedCall:
                bad.append(body.raw)
        choice.good, choice.bad = tuple(good), "".join(bad)
        if not bad:
            return [*said, *self._made(event.choice, choice.good, event.finish_reason)]
        self._count("malformed")
        if self._may_retry and event.finish_reason is FinishReason.STOP:
            self._due.append(event.choice)
            return said
        return [*said, *self.give_up(event.choice)]

    def _end_constrained(self, event: ChoiceEnded, reader: ConstrainedReader) -> list[Spoken]:
        is_retry = event.choice in self._again
        for _ in range(reader.calls):
            self._count("retried" if is_retry else "required")
        if reader.is_cut:
            self._count("cut")
        elif not reader.calls:
            self._count("malformed")
        rest = [Delta(choice=event.choice, text=reader.rest)] if reader.rest.strip() else []
        reason = event.finish_reason
        if reason is FinishReason.STOP and reader.calls:
            reason = FinishReason.TOOL_CALLS
        return [*rest, ChoiceEnded(choice=event.choice, finish_reason=reason)]

    def _made(self, choice: int, calls: tuple[Call, ...], reason: FinishReason) -> Iterator[Spoken]:
        made = calls[:1] if self._is_single else calls
        for number, call in enumerate(made):
            self._count("chosen")
            yield CallStarted(choice=choice, call=number, id=self._new_id(), name=call.name)
            yield CallDelta(choice=choice, call=number, text=call.arguments)
            yield CallEnded(choice=choice, call=number)
        if made and reason is FinishReason.STOP:
            reason = FinishReason.TOOL_CALLS
        yield ChoiceEnded(choice=choice, finish_reason=reason)


def _passed(choice: int, alignment: Alignment, stretches: list[Stretch]) -> Iterator[Delta]:
    """Log-probabilities leave with their text; those of calls, which have none, don't."""
    for stretch in stretches:
        logprobs = alignment.dealt(stretch.source, ())
        if stretch.text:
            yield Delta(choice=choice, text=stretch.text, logprobs=logprobs)
