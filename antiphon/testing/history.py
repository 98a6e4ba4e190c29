"""What clients of a simulated server saw, and the checkers that read it: each names a rule that
must hold whatever was done to the server, and says who broke it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnEvent, TurnFailed

Violation = str


@dataclass(slots=True, kw_only=True)
class TurnRecord:
    """One turn as its client saw it. A client that hung up stops recording at that moment."""

    name: str
    choices: int
    opened_at: float
    text: dict[int, str] = field(default_factory=dict)
    ends: dict[int, FinishReason] = field(default_factory=dict)
    terminal: list[TurnEnded | TurnFailed] = field(default_factory=list)
    hung_up: bool = False
    cut: bool = False
    """The connection ended before the answer: right only where a fault did that."""
    refused: str | None = None
    ended_at: float | None = None

    def add(self, event: TurnEvent, now: float) -> None:
        match event:
            case Delta():
                self.text[event.choice] = self.text.get(event.choice, "") + event.text
            case ChoiceEnded():
                self.ends[event.choice] = event.finish_reason
            case TurnEnded() | TurnFailed():
                self.terminal.append(event)
                self.ended_at = now

    @property
    def outcome(self) -> str:
        """One word, for event logs and counts."""
        if self.refused is not None:
            return self.refused
        if self.hung_up:
            return "hung_up"
        if self.cut:
            return "cut"
        if not self.terminal:
            return "silent"
        last = self.terminal[-1]
        return "completed" if isinstance(last, TurnEnded) else type(last.error).__name__


def numbered_words(request: int, count: int) -> list[str]:
    """An answer that tells whose it is and where each word stands, for `check_text`."""
    return [f"{request}.{index} " for index in range(count)]


def check(records: Sequence[TurnRecord]) -> list[Violation]:
    """Every violation of the rules below, over all records."""
    return [
        violation
        for record in records
        for rule in (check_one_ending, check_text, check_usage)
        for violation in rule(record)
    ]


def check_one_ending(record: TurnRecord) -> Iterator[Violation]:
    """A turn ends exactly once, unless it was refused when it was opened or one side left."""
    expected = 0 if record.refused is not None or record.hung_up or record.cut else 1
    if len(record.terminal) != expected:
        yield f"{record.name}: {len(record.terminal)} endings, expected {expected}"


def check_text(record: TurnRecord) -> Iterator[Violation]:
    """Text is a prefix of what was generated for that choice, in order, and of nobody else's."""
    owners: dict[str, int] = {}
    for choice, text in record.text.items():
        words = text.split()
        owner = words[0].partition(".")[0] if words else ""
        if words != [word.strip() for word in numbered_words(int(owner or 0), len(words))]:
            yield f"{record.name}: choice {choice} is not a prefix of one answer: {text[:80]!r}"
        if owner in owners:
            yield f"{record.name}: choices {owners[owner]} and {choice} share answer {owner}"
        owners[owner] = choice


def check_usage(record: TurnRecord) -> Iterator[Violation]:
    """A completed turn delivered every choice to its end, and was billed for just that."""
    if record.outcome != "completed":
        return
    last = record.terminal[-1]
    words = sum(len(text.split()) for text in record.text.values())
    if len(record.ends) != record.choices:
        yield f"{record.name}: {len(record.ends)} of {record.choices} choices ended"
    if last.usage.completion_tokens != words:
        yield f"{record.name}: {last.usage.completion_tokens} tokens billed, {words} delivered"
