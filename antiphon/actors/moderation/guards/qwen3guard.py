"""Qwen3Guard-Gen: lines `Safety:`, `Categories:` and, for an assistant's message, `Refusal:`.

Its chat template holds the task. Public source: the model card of Qwen/Qwen3Guard-Gen-8B. Of its
three levels only `Unsafe` is a finding: what it calls `Controversial` depends on who asks. Knows no
Trio.
"""

import re

from antiphon.actors.moderation.guards.opinion import Opinion, conversation

CATEGORIES = (
    "Violent",
    "Non-violent Illegal Acts",
    "Sexual Content or Sexual Acts",
    "PII",
    "Suicide & Self-Harm",
    "Unethical Acts",
    "Politically Sensitive Topics",
    "Copyright Violation",
    "Jailbreak",
)

TOKENS = 96
"""All three lines with several categories."""

_SAFETY = re.compile(r"^\s*Safety:\s*(Safe|Unsafe|Controversial)\b", re.MULTILINE)
_LISTED = re.compile(r"^\s*Categories:(.*)$", re.MULTILINE)
_CATEGORY = re.compile("|".join(map(re.escape, sorted(CATEGORIES, key=len, reverse=True))))

prompt = conversation


def opinion(answer: str) -> Opinion | None:
    """None for an answer that is none: a guard that rambles has not judged."""
    safety = _SAFETY.search(answer)
    if safety is None:
        return None
    if safety[1] != "Unsafe":
        return Opinion(unsafe=False)
    listed = _LISTED.search(answer)
    found = () if listed is None else tuple(dict.fromkeys(_CATEGORY.findall(listed[1])))
    return Opinion(unsafe=True, categories=found)
