"""One run of a child: its context, the scope that ends it, and what its end is called.

It holds no rule: its supervisor's core decides what the end means.
"""

import math
from dataclasses import dataclass, field

import trio

from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Exit, Ignored, Killed, Normal, Stopped, exit_of
from antiphon.supervision.reports import ChildExited, ReportSink
from antiphon.supervision.spec import ChildSpec, Restart


@dataclass(slots=True, eq=False)
class Incarnation:
    """Made for one start. A scope can be used only once, and so can this."""

    spec: ChildSpec
    context: ChildContext
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def live(self, reports: ReportSink, *, dynamic: bool) -> Exit | None:
        """Run the child to its end and classify that. None, or Cancelled, when its supervisor is
        being killed with all below it, so that nobody is left to act on the end: it has been
        reported here."""
        exit: Exit
        try:
            with self.scope:
                returned = await self.spec.start(self.context)
            if self.scope.cancelled_caught:
                exit = Killed()
            else:
                exit = returned if isinstance(returned, Ignored | Stopped) else Normal()
        except trio.Cancelled:
            self._cut(Killed(), reports, dynamic)
            raise
        except BaseException as error:
            classified = exit_of(error)
            if classified is None:
                self._cut(Killed(), reports, dynamic)
                raise
            exit = classified
        if trio.current_effective_deadline() == -math.inf:
            self._cut(exit, reports, dynamic)
            return None
        return exit

    def _cut(self, exit: Exit, reports: ReportSink, dynamic: bool) -> None:
        """The supervisor's core must start nothing any more, but whoever waits for the child is
        told."""
        spec, context = self.spec, self.context
        reports(
            ChildExited(
                path=context.path,
                incarnation=context.incarnation,
                temporary=spec.restart is Restart.TEMPORARY,
                exit=exit,
                ordered=context.stopping.is_set(),
                stop_s=None,
            )
        )
        if spec.lifecycle is not None:
            spec.lifecycle.exited(context.incarnation, exit)
            if dynamic:
                spec.lifecycle.gone()
