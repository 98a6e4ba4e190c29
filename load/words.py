"""What people ask, what they have it read, and what programs hand in. Made by dice, so that prompts
differ and a prefix cache helps only where it would in earnest. Pure."""

import random

QUESTIONS = (
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain how rain forms to a ten-year-old.",
    "Give me three names for a bakery, and say why.",
    "Translate to French: the train leaves at noon.",
    "What should I cook with rice, eggs and spinach?",
    "Summarise in one sentence why the sky is blue.",
    "Tell me a story about a lighthouse keeper and a whale.",
)
ABOUT_DOCUMENTS = (
    "Summarise this report in two sentences.",
    "Who is named in it, and for what?",
    "What went wrong, by this report?",
    "Which of these events came first?",
)
JOBS = (
    "Give this conversation a title of four words: someone asks how bread is baked.",
    "List three keywords for an article on tides.",
    "Rewrite politely: send me the file now.",
)
_WHO = ("the harbour master", "a baker", "the second engineer", "a courier", "the night nurse")
_DID = ("measured", "repaired", "mislaid", "counted", "delivered", "photographed")
_WHAT = ("four crates of apples", "the north pump", "a ledger", "two lanterns", "the tide table")
_TOKENS_OF_A_SENTENCE = 20


def document(dice: random.Random, tokens: int) -> str:
    """About so many tokens of a report."""
    return " ".join(
        f"On day {dice.randrange(1, 400)}, {dice.choice(_WHO)} {dice.choice(_DID)} "
        f"{dice.choice(_WHAT)} at {dice.randrange(24)} h."
        for _ in range(max(tokens // _TOKENS_OF_A_SENTENCE, 1))
    )


def result(dice: random.Random) -> str:
    """What a tool found."""
    return f'{{"rows": {dice.randrange(1000)}, "found": "{dice.choice(_WHAT)}"}}'
