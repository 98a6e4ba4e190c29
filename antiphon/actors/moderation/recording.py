"""Records what rules found and which were not run: as metrics, and as policy events as far as the
operator wants them kept."""

import re
from collections.abc import Callable, Collection, Sequence

from antiphon.actors.moderation.edition import Edition
from antiphon.actors.moderation.merging import gravest
from antiphon.events import Turn
from antiphon.ids import LOCAL_USER
from antiphon.policy_settings import PolicySettings
from antiphon.telemetry import Telemetry
from antiphon.verdicts import Action, Finding, NotRun, PolicyEvent, Stage, Verdict

LONGEST_TEXT = 2_000
"""Characters of one event's text."""
WITHHELD = "withheld"
"""The action of an event whose text is what a block kept from its reader."""
_SURROGATES = re.compile("[\ud800-\udfff]")


class Recording:
    """One for a server."""

    def __init__(
        self,
        note: Callable[[PolicyEvent], None],
        telemetry: Telemetry,
        settings: Callable[[], PolicySettings],
        now_ms: Callable[[], int],
    ) -> None:
        self._note = note
        self._telemetry = telemetry
        self._settings = settings
        self._now_ms = now_ms

    def judged(
        self,
        edition: Edition,
        turn: Turn,
        stage: Stage,
        texts: Sequence[str],
        verdicts: Sequence[Verdict],
        seconds: float,
    ) -> None:
        """Texts were judged together; somebody waited so long for it."""
        self._telemetry.judging_took(stage.value, seconds)
        for text, verdict in zip(texts, verdicts, strict=True):
            for finding in verdict.findings:
                matched = text[finding.start : finding.end] if finding.end else text
                self.found(edition, turn, finding, matched)
        # Of each rule once: a request whose hundred texts were not judged is one fact.
        missing = {one.rule: one for verdict in verdicts for one in verdict.not_run}
        for one in missing.values():
            self._missed(edition, turn, one)

    def over(self, stage: Stage, outcomes: Collection[str]) -> None:
        """All that one turn has at this stage was judged, with these outcomes."""
        self._telemetry.texts_judged(stage.value, gravest(outcomes))

    def found(self, edition: Edition, turn: Turn, finding: Finding, matched: str) -> None:
        self._telemetry.rule_matched(finding.rule, finding.action.value, shadow=finding.shadow)
        acted = finding.action is not Action.ANNOTATE and not finding.shadow
        if not self._is_kept(acted):
            return
        rule = edition.by_id.get(finding.rule)
        detail = {
            name: value
            for name, value in (
                ("category", finding.category),
                ("score", None if finding.score is None else f"{finding.score:.3f}"),
            )
            if value is not None
        }
        self._note(
            self._event(
                edition,
                turn,
                rule=finding.rule,
                action=finding.action.value,
                stage=finding.stage,
                shadow=finding.shadow,
                detail=detail,
                text=_storable(matched) if rule is not None and rule.keep_text else None,
            )
        )

    def withheld(self, edition: Edition, turn: Turn, rule: str, text: str) -> None:
        """Output that a block kept from its reader, which the rule wants kept."""
        self._note(
            self._event(
                edition,
                turn,
                rule=rule,
                action=WITHHELD,
                stage=Stage.OUTPUT,
                shadow=False,
                detail={},
                text=_storable(text),
            )
        )

    def _missed(self, edition: Edition, turn: Turn, missing: NotRun) -> None:
        self._telemetry.rule_not_run(missing.failure.value, missing.on_failure.value)
        if self._is_kept(not missing.shadow):
            self._note(
                self._event(
                    edition,
                    turn,
                    rule=missing.rule,
                    action="not_run",
                    stage=missing.stage,
                    shadow=missing.shadow,
                    detail={
                        "failure": missing.failure.value,
                        "on_failure": missing.on_failure.value,
                    },
                    text=None,
                )
            )

    def _is_kept(self, acted: bool) -> bool:
        match self._settings().events:
            case "all":
                return True
            case "acted":
                return acted
            case "none":
                return False

    def _event(
        self,
        edition: Edition,
        turn: Turn,
        *,
        rule: str,
        action: str,
        stage: Stage,
        shadow: bool,
        detail: dict[str, str],
        text: str | None,
    ) -> PolicyEvent:
        return PolicyEvent(
            request=turn.request,
            # Of an answer that isn't kept there is no row to refer to.
            response=turn.response if turn.stored else None,
            user=turn.user or LOCAL_USER,
            rule=rule,
            version=edition.version,
            action=action,
            stage=stage,
            shadow=shadow,
            created_ms=self._now_ms(),
            detail=detail,
            text=text,
        )


def without_surrogates(text: str) -> str:
    """As many characters, all of which can be sent and stored."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _storable(text: str) -> str:
    return without_surrogates(text[:LONGEST_TEXT])
