"""A check of what an engine does with an answer that gives its slot to another one."""

from typing import Any

from antiphon.verifying.talk import QUESTION, Broken, Talk, greedy, whole

_PAUSES = 6
_BEYOND = 12
"""Characters after a pause that must mostly be those of the same answer without one."""


async def a_paused_answer_goes_on_where_it_was(talk: Talk) -> None:
    """To the token. The words may differ in a few: an engine that computes in floats may decide
    otherwise where two tokens are nearly as likely."""
    client = talk.client
    paused = seamless = 0
    for number in range(_PAUSES):
        question = f"{number}. {QUESTION}"
        fields: dict[str, Any] = {"max_tokens": 48, "sampling": greedy(ignore_eos=True)}
        unpaused = await talk.ask(question, **fields)
        request = await talk.begin(question, **fields)
        await client.heard(request)
        answer = await client.pause(request)
        border = answer.text
        whole(await talk.ask(QUESTION))
        if answer.text != border:
            raise Broken("it went on while it was paused")
        if answer.paused:
            await client.resume(request)
            paused += 1
            whole(await client.over(request))
            end = len(border) + _BEYOND
            seamless += answer.text[:end] == unpaused.text[:end]
        if (answer.end, answer.tokens) != (unpaused.end, unpaused.tokens):
            raise Broken(f"{answer.tokens} tokens of {unpaused.tokens}, ended by {answer.end}")
    if 2 * seamless < paused:
        raise Broken(f"{paused - seamless} of {paused} answers went on otherwise")
