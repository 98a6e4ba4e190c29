"""What an engine is doing, by what went in and what came out: which prompts it is still reading and
how far, and who is decoding. Pure; the engine itself says nothing of it.

It assumes what in-flight batching engines do: each step gives every decoding sequence a token, then
takes prompt tokens, first come, first served, up to `step_tokens` in all. Where an engine does
otherwise, each first token puts the mirror right. Where the engine lets others' prompts pass those
of patient requests (`lets_pass`), these are read only while there are no others.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from antiphon.actors.scheduling.rates import Work
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass


@dataclass(slots=True, eq=False)
class Inside:
    """One generation inside the engine. `left` is what is still to be read of its prompt, up to the
    first token, after which it decodes; the first came with step `first_step`."""

    lane: WorkloadClass
    prompt_tokens: int
    max_tokens: int
    left: int
    patient: bool = False
    before: int = 0
    """Answer tokens that it had when it came in, if it was paused."""
    first_step: int | None = None
    cached: int = 0
    """What of its prompt was taken to be in the engine's cache."""
    late_steps: int = 0
    late_tokens: int = 0
    """Steps, and room in them, after all of the prompt should have been read. In the first such
    step it may only have missed the one before."""

    @property
    def read(self) -> int:
        return self.prompt_tokens - self.left


class EngineMirror:
    """Of one host. `step` counts its steps."""

    def __init__(self, step_tokens: int) -> None:
        self._step_tokens = step_tokens
        self.lets_pass = False
        self.clear()

    def clear(self) -> None:
        """Another host, which runs nothing."""
        self.inside: dict[EngineRequest, Inside] = {}
        self._reading: dict[EngineRequest, Inside] = {}
        self._fresh: dict[EngineRequest, Inside] = {}
        self.step = 0
        self.decoding = 0
        self.context = 0

    @property
    def busy(self) -> bool:
        return bool(self.inside)

    @property
    def prefilling(self) -> int:
        return len(self._reading) + len(self._fresh)

    def begun(
        self,
        request: EngineRequest,
        lane: WorkloadClass,
        prompt_tokens: int,
        max_tokens: int,
        *,
        cached_tokens: int = 0,
        tokens: int = 0,
        patient: bool = False,
    ) -> None:
        """It goes into the engine now: into the step after the one that runs, if one does."""
        cached = min(cached_tokens, prompt_tokens - 1)
        left = max(prompt_tokens - cached, 1)
        waits = patient and self.lets_pass
        run = Inside(lane, prompt_tokens, max_tokens, left, waits, tokens, cached=cached)
        idle = not self.inside
        self.ended(request)
        self.inside[request] = run
        (self._reading if idle else self._fresh)[request] = run

    def current(self) -> Work:
        """What the step does that runs now, or would run."""
        if not self._reading:
            return Work(float(self.decoding), 0.0, float(self.context), 0.0)
        budget = self._budget()
        prefill = attended = 0.0
        for run in self._next():
            if prefill >= budget:
                break
            chunk = min(run.left, budget - prefill)
            prefill += chunk
            attended += chunk * (run.read + chunk / 2)
        return Work(float(self.decoding), prefill, float(self.context), attended)

    def backlog(self, *, passing: bool = False) -> tuple[float, float]:
        """Prompt tokens that are still to be read, and the context that they will read; of those
        before one that comes now, which may be `passing` the patient ones."""
        tokens = attended = 0.0
        for group in (self._reading, self._fresh):
            for run in group.values():
                if passing and run.patient:
                    continue
                tokens += run.left
                attended += run.left * (run.read + run.left / 2)
        return tokens, attended

    def stepped(self, gained: Iterable[EngineRequest]) -> tuple[Work, Sequence[EngineRequest]]:
        """A step is over in which these got a token; what it did, and who of them got the first."""
        self.step += 1
        if not self._reading and not self._fresh:
            work = Work(float(self.decoding), 0.0, float(self.context), 0.0)
            self.context += self.decoding
            return work, ()
        work = self.current()
        firsts: list[EngineRequest] = []
        budget = self._budget()
        for run in self._next():
            if budget <= 0:
                break
            chunk = min(run.left, budget)
            run.left -= chunk
            budget -= chunk
        self.context += self.decoding
        for request in gained:
            run_or_none = self._reading.pop(request, None) or self._fresh.pop(request, None)
            if run_or_none is not None:
                firsts.append(request)
                run_or_none.left = 0
                run_or_none.first_step = self.step
                self.decoding += 1
                self.context += run_or_none.prompt_tokens
        for run in self._reading.values():
            if run.left == 0:
                # It should have had its first token and hasn't: there is a little more to read.
                run.left = 1
                # A patient one comes late for others' sake, too.
                if not run.patient:
                    run.late_tokens += budget if run.late_steps else 0
                    run.late_steps += 1
        self._reading.update(self._fresh)
        self._fresh.clear()
        return work, firsts

    def gained(self, run: Inside) -> int:
        """Answer tokens so far: one in each step since the first."""
        if run.first_step is None:
            return run.before
        return run.before + 1 + self.step - run.first_step

    def ended(self, request: EngineRequest) -> Inside | None:
        """The engine gave its slot back, for whatever reason."""
        run = self.inside.pop(request, None)
        if run is None:
            return None
        self._reading.pop(request, None)
        self._fresh.pop(request, None)
        if run.first_step is not None:
            self.decoding -= 1
            self.context -= run.prompt_tokens + self.step - run.first_step
        return run

    def _next(self) -> Collection[Inside]:
        """Whose prompts the step reads, in order."""
        reading = self._reading.values()
        return [run for run in reading if not run.patient] or reading

    def _budget(self) -> int:
        return max(self._step_tokens - self.decoding, 1)
