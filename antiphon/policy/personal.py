"""Personal data: what each entity looks like, as bounded expressions, and who confirms that it is
one. The same for a whole text and for a stream.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon.policy import numbers, phones
from antiphon.policy.bounded import BoundedRule
from antiphon.policy.expression import parse
from antiphon.policy.rules import Rule

Span = tuple[int, int, str]
Confirm = Callable[[str, str], Span | None]
"""From a candidate and what stands before it to where in it the entity is, and its name."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which an entity is written."""

    patterns: tuple[str, ...]
    confirm: Confirm


def email(text: str, before: str) -> Span | None:
    return 0, len(text), "EMAIL_ADDRESS"


def url(text: str, before: str) -> Span | None:
    """Without the punctuation of the sentence around it."""
    return 0, len(text.rstrip(".,;:!?)]}*_")), "URL"


ENTITIES: Mapping[str, tuple[Form, ...]] = {
    "EMAIL_ADDRESS": (Form((r"\b[\w.%+'-]{1,64}@(?:[\w-]{1,63}\.){1,4}[A-Za-z]{2,24}\b",), email),),
    "CREDIT_CARD": (
        Form(
            (
                r"\b\d{4} \d{4} \d{4} \d{4}(?: \d{1,3})?\b",
                r"\b\d{4}-\d{4}-\d{4}-\d{4}(?:-\d{1,3})?\b",
                r"\b\d{4}[ -]\d{6}[ -]\d{4,5}\b",
                r"\b\d{12,19}\b",
            ),
            numbers.card,
        ),
    ),
    "IBAN_CODE": (
        Form(
            (r"\b[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?\b",),
            numbers.iban,
        ),
    ),
    "IP_ADDRESS": (
        Form(
            (
                r"\b\d{1,3}(?:\.\d{1,3}){3,5}\b",
                r"\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}",
            ),
            numbers.ip_address,
        ),
    ),
    "US_SSN": (Form((r"\b\d{3}[ -]\d{2}[ -]\d{4}\b", r"\b\d{9}\b"), numbers.social_security),),
    "URL": (
        Form(
            (
                r"\b(?:https?|ftp)://[^\s<>\"']{3,440}",
                r"\bwww\.[^\s<>\"'/]{3,100}(?:/[^\s<>\"']{0,340})?",
            ),
            url,
        ),
    ),
    "PHONE_NUMBER": (
        Form(phones.INTERNATIONAL, phones.international),
        Form(phones.BRACKETED, phones.bracketed),
        Form(phones.AMERICAN, phones.american),
        Form(phones.TRUNK, phones.trunk),
        Form(phones.ANY, phones.announced),
    ),
}
"""By the name that rules use, which is presidio's. Where a text may be several the first counts."""


def personal_rule(rule: Rule, entities: Sequence[str]) -> BoundedRule:
    """What a rule that looks for these entities is run as."""
    forms = [form for entity in ENTITIES if entity in entities for form in ENTITIES[entity]]
    return BoundedRule(
        rule=rule.id,
        action=rule.action,
        expressions=tuple(parse(pattern) for form in forms for pattern in form.patterns),
        disguises=False,
        replacement=rule.replacement,
        confirm=_Confirmation(forms),
        shadow=rule.shadow,
    )


class _Confirmation:
    """Asks those whose form a candidate has; the first entity of several that begin alike."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = [(re.compile("|".join(form.patterns)), form.confirm) for form in forms]

    def __call__(self, text: str, before: str) -> Span | None:
        for pattern, confirm in self._forms:
            # Borders were seen where it stood: here, nothing is around it.
            if pattern.fullmatch(text) and (span := confirm(text, before)):
                return span
        return None
