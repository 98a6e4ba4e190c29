"""Llama Guard 3 and 4: `safe`, or `unsafe` and a line of hazard categories S1 to S14.

Its chat template holds the task and the categories. Public sources: the model cards of
meta-llama/Llama-Guard-3-8B and meta-llama/Llama-Guard-4-12B, and llama-models'
models/llama3/prompt_templates. Knows no Trio.
"""

import re

from antiphon.actors.moderation.guards.opinion import Opinion, conversation

CATEGORIES = {
    "S1": "violent crimes",
    "S2": "non-violent crimes",
    "S3": "sex-related crimes",
    "S4": "child sexual exploitation",
    "S5": "defamation",
    "S6": "specialized advice",
    "S7": "privacy",
    "S8": "intellectual property",
    "S9": "indiscriminate weapons",
    "S10": "hate",
    "S11": "suicide and self-harm",
    "S12": "sexual content",
    "S13": "elections",
    "S14": "code interpreter abuse",
}

TOKENS = 48
"""All categories at once are fewer."""

_CODE = re.compile(r"S(?:1[0-4]|[1-9])(?![0-9])")

prompt = conversation


def opinion(answer: str) -> Opinion | None:
    """None for an answer that is none: a guard that rambles has not judged."""
    first, _, rest = answer.strip().partition("\n")
    match first.strip().lower():
        case "safe":
            return Opinion(unsafe=False)
        case "unsafe":
            return Opinion(unsafe=True, categories=tuple(dict.fromkeys(_CODE.findall(rest))))
        case _:
            return None
