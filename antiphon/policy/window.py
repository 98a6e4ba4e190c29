"""One choice's output on its way out: what trackers have judged passes, with its transforms made.

What leaves depends on the text alone, not on how it was cut into pieces: of everything that blocks,
what begins first cuts, once nothing that begins before it is possible any more; a transform is made
if it begins before that.
"""

from collections.abc import Sequence

from antiphon.moderating import Passed
from antiphon.policy.tracker import Tracker
from antiphon.verdicts import Action, Finding


class Window:
    """An output window.

    The `source` of what it returns counts characters of the output as the model wrote it: those
    that are dealt with by this call, passed, replaced, or cut by a block. Over all calls they add
    up to what was fed. So a caller that has something for each piece, such as a token's number and
    its log-probability, keeps a queue of the pieces' lengths, and after each call lets go of as
    many as `source` covers: a piece has left when all of its characters have. Where `text` differs
    from what it stands for, some of that was replaced, and what belongs to the pieces must not
    leave with it. After a block whatever is fed is cut. Findings are told in the text's order, each
    when all that is before it has been dealt with. Nothing waits for an annotation, so one that is
    not decided yet when a block cuts is not told.
    """

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = tuple(trackers)
        self._fed = 0
        self._done = 0
        self._text = ""
        """From `done` on."""
        self._waiting: list[Finding] = []
        self._blocked_by: str | None = None

    @property
    def held(self) -> int:
        return 0 if self._blocked_by is not None else self._fed - self._done

    def feed(self, text: str) -> Passed:
        if self._blocked_by is not None:
            return Passed(source=len(text), blocked_by=self._blocked_by)
        self._text = self._text + text if self._text else text
        self._fed += len(text)
        limit = self._fed
        for tracker in self._trackers:
            found = tracker.feed(text)
            if found:
                self._waiting += found
            if tracker.held_from < limit:
                limit = tracker.held_from
        return self._passed(limit)

    def finish(self) -> Passed:
        if self._blocked_by is not None:
            return Passed(blocked_by=self._blocked_by)
        for tracker in self._trackers:
            self._waiting += tracker.finish()
        return self._passed(self._fed)

    def _passed(self, limit: int) -> Passed:
        """What is before the limit, and no block."""
        # A transform may have ended after where the next match was possible.
        limit = max(limit, self._done)
        if not self._waiting:
            text = self._text[: limit - self._done]
            return Passed(text=text, source=self._deal_with(limit))
        waiting = self._waiting
        waiting.sort(key=lambda finding: (finding.start, -finding.end))
        blocks = [finding for finding in waiting if _acts(finding, Action.BLOCK)]
        block = min(blocks, key=lambda finding: (finding.start, finding.end), default=None)
        if block is not None and block.start > limit:
            block = None
        reach = limit if block is None else block.start
        told = [finding for finding in waiting if finding.start < reach and finding is not block]
        text, end = self._transformed(told, reach)
        if block is None:
            self._waiting = [finding for finding in waiting if finding.start >= reach]
            return Passed(text=text, source=self._deal_with(end), findings=tuple(told))
        self._blocked_by = block.rule
        return Passed(
            text=text,
            source=self._deal_with(self._fed),
            findings=(*told, block),
            blocked_by=block.rule,
        )

    def _transformed(self, findings: Sequence[Finding], reach: int) -> tuple[str, int]:
        """The text up to there, or to the end of what begins before, as `Verdict.applied` has it;
        and where that is."""
        pieces, at = [], self._done
        for finding in findings:
            if _acts(finding, Action.TRANSFORM) and finding.end > at:
                start = max(finding.start, at)
                pieces += [self._text[at - self._done : start - self._done]]
                pieces.append(finding.replacement or "")
                at = finding.end
        end = max(at, reach)
        return "".join([*pieces, self._text[at - self._done : end - self._done]]), end

    def _deal_with(self, up_to: int) -> int:
        if up_to <= self._done:
            return 0
        count = up_to - self._done
        self._text = self._text[count:]
        self._done = up_to
        return count


def _acts(finding: Finding, action: Action) -> bool:
    return finding.action is action and not finding.shadow
