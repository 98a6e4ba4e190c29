"""What is to be remembered of a user: sentences in which they have said something of themselves, as
they have said it. Pure, and the same for the same text.

Few false ones matter more than finding all: no questions, nothing supposed, nothing quoted or
pasted, nothing of what the policy calls a secret.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from antiphon.actors.workers import statements
from antiphon.actors.workers.expressions import phrases
from antiphon.actors.workers.lines import Line, Speaker
from antiphon.actors.workers.sentences import sentences, statement_of
from antiphon.policy.bounded import Bounded
from antiphon.policy.personal import personal_rule
from antiphon.policy.rules import PersonalMatcher, Rule, SecretsMatcher
from antiphon.policy.secrets import secret_rule
from antiphon.verdicts import Stage

MOST = 3
"""Of one message."""
LONGEST_MESSAGE = 1_500
"""Characters; a longer one is a text that somebody has pasted."""
_LONGEST = 200
_SHORTEST_WORDS = 2
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_SPOKEN = re.compile(r"[\"“„«»”]")
_NUMBERS_OF_ACCOUNTS = ("CREDIT_CARD", "IBAN_CODE", "US_SSN")

_HYPOTHETICAL = phrases(statements.HYPOTHETICAL)
_REPORTED = phrases(statements.REPORTED)
_ABOUT_A_TEXT = phrases(statements.ABOUT_A_TEXT)
_PASSING = phrases(statements.PASSING)
_SECRET = phrases(statements.SECRET)
_REMEMBER = phrases(rf"^{statements.REMEMBER}(?P<what>.+)$")
_STATES = phrases(statements.STATES)
_NAMED = phrases(statements.NAMED, ignore_case=False)
_FILLER = phrases(statements.FILLER)


def remembered(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    """Each with the line in which it was said."""
    for line in lines:
        if line.speaker is Speaker.USER:
            for text in statements_in(line.text):
                yield line, text


def statements_in(text: str) -> list[str]:
    """At most MOST, each once, in the order of the text."""
    if len(text) > LONGEST_MESSAGE or _ABOUT_A_TEXT.match(text):
        return []
    found: dict[str, str] = {}
    for sentence in sentences(_QUOTED.sub("", text)):
        said = _stated(sentence)
        if said is not None:
            found.setdefault(said.casefold(), said)
    return list(found.values())[:MOST]


def is_secret(text: str) -> bool:
    """Whether it holds what nobody should keep: a key, a password, the number of an account."""
    return _SECRET.search(text) is not None or bool(_accounts().search(text, Stage.INPUT))


def _stated(sentence: str) -> str | None:
    said = statement_of(sentence.replace("\u2019", "'"))
    if said is None or len(said) > _LONGEST or len(said.split()) < _SHORTEST_WORDS:
        return None
    if _SPOKEN.search(said) or _HYPOTHETICAL.search(said) or _REPORTED.search(said):
        return None
    said = _FILLER.sub("", said)
    asked = _REMEMBER.match(said)
    what = said if asked is None else asked["what"].strip()
    if not what or (asked is None and not _is_of_themselves(what)):
        return None
    if is_secret(what):
        return None
    return what[:1].upper() + what[1:]


def _is_of_themselves(text: str) -> bool:
    if _NAMED.match(text):
        return True
    return _STATES.search(text) is not None and _PASSING.search(text) is None


@lru_cache(1)
def _accounts() -> Bounded:
    """As the policy's own rules find them."""
    secrets = Rule(id="secrets", stages=(Stage.INPUT,), match=SecretsMatcher())
    numbers = Rule(
        id="numbers",
        stages=(Stage.INPUT,),
        match=PersonalMatcher(entities=_NUMBERS_OF_ACCOUNTS),
    )
    return Bounded([secret_rule(secrets, ()), personal_rule(numbers, _NUMBERS_OF_ACCOUNTS)])
