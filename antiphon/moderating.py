"""What the rooms need of the policy, said at the user's side: judging a turn's texts, and scoring
texts for whoever asks. Implementations are structural: nobody inherits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.events import Turn
from antiphon.judging import JudgeCommand, JudgeFrame
from antiphon.verdicts import CategoryScores, Finding, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What a piece of output may do now: `text` may leave, with its transforms made; `findings`
    are new. After a block no text passes any more."""

    text: str = ""
    source: int = 0
    """How many characters of the output, as it was generated, are dealt with: passed, replaced or
    cut."""
    findings: tuple[Finding, ...] = ()
    blocked_by: str | None = None


class OutputWindow(Protocol):
    """One choice's output on its way out, as far as bounded rules judge it. Quick, never waits.

    What it lets pass is never a part of a match, at whatever place the output was cut into pieces.
    """

    def feed(self, text: str) -> Passed:
        """The next piece."""

    def finish(self) -> Passed:
        """There is no more: whatever is still held back is decided now."""

    @property
    def held(self) -> int:
        """Characters held back."""


class Judge(Protocol):
    """The policy for one turn: one version of the rules, however often they change meanwhile.

    It records what it and its windows find. No method raises.
    """

    @property
    def version(self) -> str: ...

    def watches(self, stage: Stage) -> bool:
        """Whether any rule of this turn is for the stage."""

    @property
    def transforms_input(self) -> bool:
        """Whether a rule may change what the model is shown, which then has to wait for it."""

    @property
    def scans_output(self) -> bool:
        """Whether output that its window let pass must also pass `judge`, before it leaves."""

    async def judge(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """One verdict for each text, within the deadline: what could not be run by then is said in
        the verdict. Input texts are those of one request, in order."""

    def window(self, system_prompt: str) -> OutputWindow: ...

    def refusal(self, rule: str, languages: Sequence[str]) -> str:
        """What a client is told whom this rule has blocked, in the first language there is a text
        in. Languages are BCP 47, the preferred one first."""

    def note_output(self, findings: Sequence[Finding], text: str) -> None:
        """Record what a window found; `text` is what matched, kept only where a rule says so."""

    def note_withheld(self, rule: str, text: str) -> None:
        """Record what was generated and not delivered because this rule blocked it: kept only where
        the rule says so."""

    def close(self) -> None:
        """The turn is over. Idempotent."""


class Moderation(Protocol):
    """The moderation actor, as others see it."""

    def judge_for(self, turn: Turn) -> Judge:
        """The rules that are in force now, for this turn. Never blocks, never raises."""

    async def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        """What the classifier says of each text. Raises ModerationUnavailable."""

    @property
    def model(self) -> str:
        """What the classifier is called."""


class JudgeLink(Protocol):
    """One running judge process, as its worker sees it."""

    @property
    def pid(self) -> int: ...

    async def send(self, command: JudgeCommand) -> None:
        """Raises JudgeLost when the process is gone."""

    async def receive(self) -> JudgeFrame:
        """The next frame. Raises JudgeLost at the end of the stream, or on a malformed frame."""

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the process to end, then kill it after the grace. Also when cancelled: the wait is
        shielded and bounded. Raises nothing else; idempotent."""

    def kill(self) -> None:
        """SIGKILL the process now. Idempotent."""


class JudgeLauncher(Protocol):
    """Starts judge processes."""

    async def launch(self) -> JudgeLink:
        """Start one; it reports JudgeReady as its first frame. Raises JudgeStartFailed."""


class AllPass:
    """No policy at all: what a turn is judged by where moderation is off."""

    version = "none"
    transforms_input = False
    scans_output = False

    def watches(self, stage: Stage) -> bool:
        return False

    async def judge(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        return tuple(Verdict(version=self.version) for _ in texts)

    def window(self, system_prompt: str) -> OutputWindow:
        return _Open()

    def refusal(self, rule: str, languages: Sequence[str]) -> str:
        return ""

    def note_output(self, findings: Sequence[Finding], text: str) -> None: ...

    def note_withheld(self, rule: str, text: str) -> None: ...

    def close(self) -> None: ...


class _Open:
    held = 0

    def feed(self, text: str) -> Passed:
        return Passed(text=text, source=len(text))

    def finish(self) -> Passed:
        return Passed()
