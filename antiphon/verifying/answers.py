"""Checks of what an engine says: bounds, ends, stop strings, seeds, counts, probabilities."""

import json

import msgspec

from antiphon.events import EndReason, Sampling
from antiphon.verifying.client import Answer
from antiphon.verifying.talk import QUESTION, Broken, Talk, greedy, whole

_SHORT = ("Hi!", "Say yes.", "Name a colour.")
"""One of these has an answer that a model ends by itself."""
_SHORT_TOKENS = 96
_MORE = 8
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
_WIDE = "🐳 été 漢字 ñandú"
"""Characters of two, three and four bytes, which no vocabulary has as whole words."""


async def an_answer_ends_once_and_gives_its_slot_back(talk: Talk) -> None:
    answer = await talk.answered(QUESTION)
    if not 0 < answer.tokens <= 32:
        raise Broken(f"{answer.tokens} tokens of at most 32")
    if answer.released is None or answer.released.tokens != answer.tokens:
        raise Broken(f"{answer.tokens} tokens were told, and {answer.released} at the end")
    if answer.logprobs:
        raise Broken("log-probabilities that nobody asked for")


async def an_answer_ends_by_itself(talk: Talk) -> None:
    await _short(talk)


async def the_longest_answer_is_a_bound(talk: Talk) -> None:
    answer = await talk.ask(QUESTION, max_tokens=3, sampling=greedy(min_tokens=_least(talk, 3)))
    _ends_at(answer, 3)


async def an_end_that_is_ignored_ends_nothing(talk: Talk) -> None:
    question, tokens = await _short(talk)
    answer = await talk.ask(question, max_tokens=tokens + _MORE, sampling=greedy(ignore_eos=True))
    _ends_at(answer, tokens + _MORE)


async def no_answer_ends_before_its_least(talk: Talk) -> None:
    question, tokens = await _short(talk)
    least = tokens + _MORE
    answer = await talk.answered(
        question, max_tokens=least + _MORE, sampling=greedy(min_tokens=least)
    )
    if answer.tokens < least:
        raise Broken(f"{answer.tokens} tokens of at least {least}")


async def a_stop_string_never_leaves(talk: Talk) -> None:
    # The first one may have been computed anew, with other rounding errors.
    await talk.answered(QUESTION)
    full = await talk.answered(QUESTION)
    middle = len(full.text) // 2
    stop = full.text[middle : middle + 4]
    if not stop:
        raise Broken("the answer is empty")
    cut = await talk.answered(QUESTION, stop=["~never~", stop])
    if cut.text != full.text.partition(stop)[0] or cut.end is not EndReason.STOP:
        raise Broken(f"{cut.text!r} is left of {full.text!r}, {stop!r} stops; by {cut.end}")


async def text_comes_in_whole_characters(talk: Talk) -> None:
    answers = [await talk.answered(f"Repeat: {_WIDE}", max_tokens=64)]
    if talk.capabilities.json_schema:
        schema = json.dumps({"const": _WIDE})
        answers.append(await talk.answered(QUESTION, max_tokens=96, sampling=_held_to(schema)))
    for answer in answers:
        for piece in answer.pieces[:-1]:  # the bound may fall within the last one
            if not _is_text(piece):
                raise Broken(f"{piece!r} is not text")
    if not any(character > "\x7f" for answer in answers for character in answer.text):
        raise Broken("nothing beyond ASCII was said, so nothing is known")


async def the_same_seed_says_the_same(talk: Talk) -> None:
    async def said(seed: int) -> str:
        drawn = Sampling(temperature=1.0, seed=seed)
        return (await talk.answered(QUESTION, max_tokens=24, sampling=drawn)).text

    await said(7)
    first, second = await said(7), await said(7)
    if first != second:
        raise Broken(f"seed 7 says {first!r}, and then {second!r}")
    # Whoever repeats what it is told draws nothing.
    if first.strip() == QUESTION:
        return
    for seed in (8, 9, 10):
        if await said(seed) != first:
            return
    raise Broken("every seed says the same")


async def log_probabilities_come_with_the_tokens(talk: Talk) -> None:
    answer = await talk.answered(QUESTION, sampling=greedy(logprobs=True))
    if not all(value <= 0 for value in answer.logprobs) or not any(answer.logprobs):
        raise Broken(f"{answer.logprobs} are not all logarithms")
    # The token that ended it has none, and has no text.
    if not answer.tokens - 1 <= len(answer.logprobs) <= answer.tokens:
        raise Broken(f"{len(answer.logprobs)} of them for {answer.tokens} tokens")
    spelled = answer.spelling.decode("utf-8", "replace")
    if spelled.strip() != answer.text.strip():
        raise Broken(f"their tokens spell {spelled!r}, and the text is {answer.text!r}")


async def a_schema_holds(talk: Talk) -> None:
    answer = await talk.answered(
        "Name a city, as JSON.", max_tokens=64, sampling=_held_to(json.dumps(_SCHEMA))
    )
    try:
        city = msgspec.json.decode(answer.text)["city"]
    except (msgspec.DecodeError, LookupError, TypeError) as error:
        raise Broken(f"the answer is not of the schema: {error}") from error
    if city not in ("Paris", "Rome"):
        raise Broken("the answer is not of the schema")


async def a_prompt_is_counted_once(talk: Talk) -> None:
    """By the engine or before it."""
    answer = await talk.answered(QUESTION, max_tokens=1)
    if not talk.capabilities.counts_prompts:
        if answer.prompt_tokens is not None:
            raise Broken("it says how long the prompt was, which is known")
        return
    short, long = await talk.length("sea " * 8), await talk.length("sea " * 72)
    if not short + 64 <= long <= short + 256:
        raise Broken(f"{short} tokens, and {long} with 64 words more")


async def _short(talk: Talk) -> tuple[str, int]:
    """A question whose answer the model ends by itself, and its length. Raises Broken."""
    for question in _SHORT:
        await talk.answered(question, max_tokens=1)
        answer = await talk.answered(question, max_tokens=_SHORT_TOKENS)
        if answer.end is EndReason.STOP:
            return question, answer.tokens
    raise Broken(f"no answer ended by itself within {_SHORT_TOKENS} tokens")


def _ends_at(answer: Answer, bound: int) -> None:
    whole(answer)
    if (answer.end, answer.tokens) != (EndReason.LENGTH, bound):
        raise Broken(f"ended by {answer.end} after {answer.tokens} tokens, not at {bound}")


def _held_to(schema: str) -> Sampling:
    return greedy(json_schema=schema)


def _least(talk: Talk, tokens: int) -> int:
    return tokens if talk.capabilities.min_tokens else 0


def _is_text(piece: str) -> bool:
    """Whether it has no half of a character, in whichever form."""
    return "\ufffd" not in piece and not any("\ud800" <= each <= "\udfff" for each in piece)
