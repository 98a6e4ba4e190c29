"""The policy for one turn (`moderating.Judge`): one edition of the rules, whatever is installed
meanwhile. Every rule that could not be run is said in the verdict, with what follows from that."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from antiphon.actors.moderation.client import DeskClient
from antiphon.actors.moderation.edition import Edition, needs_judge
from antiphon.actors.moderation.guard import Guards
from antiphon.actors.moderation.merging import actions_of, merged, not_run, of_findings, outcomes_of
from antiphon.actors.moderation.messages import Unjudged
from antiphon.actors.moderation.recording import Recording, without_surrogates
from antiphon.actors.moderation.remembered import Remembered, key_of
from antiphon.actors.moderation.remote import Remote
from antiphon.events import Turn
from antiphon.judging import Job
from antiphon.moderating import OutputWindow
from antiphon.policy.rules import GuardMatcher, Rule, UpstreamMatcher
from antiphon.verdicts import Failure, Finding, PolicyScope, Stage, Verdict

LONGEST_TEXT = 1_000_000
"""Characters of one text. A longer one would hold up everybody's for longer than anybody waits."""

Part = Callable[[], Awaitable[tuple[Verdict, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTools:
    """What the judges of all turns share."""

    desk: DeskClient
    remembered: Remembered
    recording: Recording
    guards: Guards
    remote: Remote | None
    deadline_s: Callable[[], float]


class TurnJudge:
    """`let_go` is told once that the turn needs its edition no more."""

    def __init__(
        self, edition: Edition, turn: Turn, tools: JudgeTools, let_go: Callable[[str], None]
    ) -> None:
        self._edition = edition
        self._turn = turn
        self._tools = tools
        self._let_go = let_go
        self._scope = PolicyScope(tenant=turn.tenant, plan=turn.plan)
        self._scoped = edition.rulebook.for_scope(self._scope)
        self._streamed = False
        self._output: set[str] = set()
        """What came of the output so far, by its windows and by scans."""
        self._closed = False

    @property
    def version(self) -> str:
        return self._edition.version

    def watches(self, stage: Stage) -> bool:
        return self._scoped.watches(stage)

    @property
    def transforms_input(self) -> bool:
        return self._scoped.transforms_input

    @property
    def scans_output(self) -> bool:
        return self._scoped.scans_output

    async def judge(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        if not texts or not self._scoped.watches(stage):
            await trio.lowlevel.checkpoint()
            return (Verdict(version=self.version),) * len(texts)
        began = trio.current_time()
        verdicts = await self._judged(stage, texts)
        seconds = trio.current_time() - began
        recording, outcomes = self._tools.recording, outcomes_of(verdicts)
        recording.judged(self._edition, self._turn, stage, texts, verdicts, seconds)
        if stage is Stage.OUTPUT:
            self._output |= outcomes
        else:
            recording.over(stage, outcomes)
        return verdicts

    def window(self, system_prompt: str) -> OutputWindow:
        self._streamed = True
        window: OutputWindow = self._scoped.window(system_prompt)
        return window

    def refusal(self, rule: str, languages: Sequence[str]) -> str:
        return self._edition.rulebook.refusal(rule, languages)

    def note_output(self, findings: Sequence[Finding], text: str) -> None:
        self._output |= actions_of(findings)
        for finding in findings:
            self._tools.recording.found(self._edition, self._turn, finding, text)

    def note_withheld(self, rule: str, text: str) -> None:
        known = self._edition.by_id.get(rule)
        if known is not None and known.keep_blocked and text:
            self._tools.recording.withheld(self._edition, self._turn, rule, text)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._streamed or self._output:
            self._tools.recording.over(Stage.OUTPUT, self._output)
        self._let_go(self.version)

    async def _judged(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """Only what isn't remembered is judged; of the same text twice, one."""
        found: dict[str, Verdict] = {}
        fresh: dict[str, bytes | None] = {}
        for text in dict.fromkeys(texts):
            key = self._key(stage, text)
            if key is not None and (known := self._tools.remembered.get(key)) is not None:
                found[text] = known
            elif len(text) > LONGEST_TEXT:
                rules = self._asked(stage)
                (found[text],) = not_run(self.version, rules, stage, Failure.TOO_LONG, 1)
            else:
                fresh[text] = key
        if fresh:
            verdicts = await self._fresh(stage, tuple(map(without_surrogates, fresh)))
            for (text, key), verdict in zip(fresh.items(), verdicts, strict=True):
                found[text] = verdict
                if key is not None:
                    self._tools.remembered.put(key, verdict)
        else:
            await trio.lowlevel.checkpoint()
        return tuple(found[text] for text in texts)

    def _key(self, stage: Stage, text: str) -> bytes | None:
        """By which its verdict is remembered. Of output none is: nothing streams the same piece
        again."""
        if stage is Stage.OUTPUT:
            return None
        return key_of(self.version, self._scope, stage, text)

    async def _fresh(self, stage: Stage, texts: tuple[str, ...]) -> tuple[Verdict, ...]:
        """All who have to judge these texts do so at the same time."""
        local: list[Rule] = []
        remote: list[Rule] = []
        parts: list[Part] = []
        for rule in self._asked(stage):
            match rule.match:
                case GuardMatcher():
                    parts.append(partial(self._guarded, rule, stage, texts))
                case UpstreamMatcher():
                    remote.append(rule)
                case _:
                    local.append(rule)
        if remote:
            parts.append(partial(self._remotely, remote, stage, texts))
        if local:
            parts.insert(0, partial(self._locally, local, stage, texts))
        said: list[tuple[Verdict, ...]] = [()] * len(parts)
        if len(parts) == 1:
            said[0] = await parts[0]()
        else:

            async def say(number: int, part: Part) -> None:
                said[number] = await part()

            async with trio.open_nursery() as nursery:
                for number, part in enumerate(parts):
                    nursery.start_soon(say, number, part)
        if not parts:
            return (Verdict(version=self.version),) * len(texts)
        order = {rule.id: number for number, rule in enumerate(self._scoped.rules)}
        return merged(self.version, order, said)

    async def _locally(
        self, rules: Sequence[Rule], stage: Stage, texts: tuple[str, ...]
    ) -> tuple[Verdict, ...]:
        job = Job(version=self.version, scope=self._scope, stage=stage, texts=texts)
        return tuple(
            not_run(self.version, rules, stage, said, 1)[0] if isinstance(said, Failure) else said
            for said in await self._tools.desk.judge(job)
        )

    async def _guarded(
        self, rule: Rule, stage: Stage, texts: tuple[str, ...]
    ) -> tuple[Verdict, ...]:
        guards, deadline_s = self._tools.guards, self._tools.deadline_s()
        try:
            found = await guards.judge(rule, stage, texts, self._turn, deadline_s)
        except Unjudged as error:
            return not_run(self.version, (rule,), stage, error.failure, len(texts))
        return of_findings(self.version, found)

    async def _remotely(
        self, rules: Sequence[Rule], stage: Stage, texts: tuple[str, ...]
    ) -> tuple[Verdict, ...]:
        remote, deadline_s = self._tools.remote, self._tools.deadline_s()
        try:
            if remote is None:
                raise Unjudged(Failure.UPSTREAM)
            found = await remote.judge(rules, stage, texts, deadline_s)
        except Unjudged as error:
            return not_run(self.version, rules, stage, error.failure, len(texts))
        return of_findings(self.version, found)

    def _asked(self, stage: Stage) -> list[Rule]:
        """Those that are run here: of output, only what a window can't do."""
        return [
            rule
            for rule in self._scoped.rules
            if stage in rule.stages
            and (isinstance(rule.match, GuardMatcher | UpstreamMatcher) or needs_judge(rule, stage))
        ]
