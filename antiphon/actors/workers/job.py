"""All that is to be done for one conversation: a title, a summary, what is to be remembered, in
this order. Each is written by one call that writes nothing where it isn't wanted any more, so a job
may be killed anywhere and done again: nothing is there twice, or by halves."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from antiphon import faults
from antiphon.actors.workers.lines import whole
from antiphon.actors.workers.matter import Matter, WorkTools
from antiphon.actors.workers.memory_step import remember
from antiphon.actors.workers.reading import ConversationReader
from antiphon.actors.workers.summary_step import summarise
from antiphon.actors.workers.title_step import give_title
from antiphon.actors.workers.writer import ModelUnavailable
from antiphon.fault_plan import Site
from antiphon.ids import ItemId
from antiphon.records import PendingWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`problem` is why something is to be tried again, None where all is done. `remembered` is the
    last item that was looked at for what is to be remembered."""

    problem: str | None = None
    remembered: ItemId | None = None


class Job:
    """Of one conversation."""

    def __init__(self, work: PendingWork, tools: WorkTools, *, is_patient: bool) -> None:
        self._work = work
        self._tools = tools
        self._is_patient = is_patient
        self._problems: list[str] = []

    async def do(self) -> Outcome:
        """Raises StoreError."""
        conversation = self._work.conversation
        reader = ConversationReader(self._tools.store, conversation.user, conversation.id)
        user = await reader.user()
        if user is None:
            return Outcome()
        matter = Matter(
            work=self._work,
            user=user,
            reader=reader,
            tools=self._tools,
            is_patient=self._is_patient,
        )
        if self._tools.settings().context.titles and conversation.title is None:
            await self._step("title", lambda: give_title(matter))
        remembered = await self._read_on(matter)
        await faults.pause(Site.WORKER_DONE)
        problem = "; ".join(self._problems) or None
        return Outcome(problem=problem, remembered=remembered)

    async def _read_on(self, matter: Matter) -> ItemId | None:
        """Summary and memory, from the items that the present summary leaves."""
        context = self._tools.settings().context
        if not context.summaries and not matter.has_memory:
            last = await matter.reader.last()
            return None if last is None else last.id
        summary = self._work.summary
        items = await matter.reader.after(None if summary is None else summary.until)
        if context.summaries:
            await self._step("summary", lambda: summarise(matter, items))
        ended = whole(items)
        if matter.has_memory and not await self._step("memory", lambda: remember(matter, ended)):
            return None
        # Also without a memory: what is said then isn't learned when there is one.
        return ended[-1].id if ended else None

    async def _step(self, kind: str, step: Callable[[], Awaitable[str]]) -> bool:
        """False when it is to be tried again. Raises StoreError."""
        telemetry = self._tools.telemetry
        try:
            await faults.pause(Site.WORKER_STEP, kind)
            telemetry.work_finished(kind, await step())
        except ModelUnavailable as error:
            telemetry.work_finished(kind, "failed")
            self._problems.append(f"{kind}: {error}")
            return False
        return True
