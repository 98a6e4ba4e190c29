"""Checks of what an engine holds: slots, KV blocks, and that they come back whatever happens."""

import trio

from antiphon.events import Abort, EndReason
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.verifying.client import Answer
from antiphon.verifying.talk import QUESTION, Broken, Talk, greedy, whole

_LONG = 64
_STRANGER = EngineRequest(1 << 40)
_BEATS_S = 5.0
"""Two heartbeats of a second, and what a busy machine adds."""
_PREFILL = 4096
"""Tokens of prompts that are really computed to fill the KV cache; the rest is reserved."""
_ENDS = (EndReason.STOP, EndReason.LENGTH)
_LONG_STORY = 100
"""Sentences; three tokens each."""
_PATIENT = 0.3
"""Of a storm, those whose prompts let others' pass."""
_CANCELLED = 0.3
_ENOUGH = 0.5
"""Of the answers that came to their end: a small model repeats badly."""


async def an_idle_engine_says_that_it_lives(talk: Talk) -> None:
    client = talk.client
    with trio.move_on_after(_BEATS_S):
        beats = [await client.next_stats(), await client.next_stats()]
        for beat in beats:
            if beat.live or beat.kv_usage:
                raise Broken(f"it is idle and says {beat}")
        return
    raise Broken(f"it was silent for {_BEATS_S:g} s")


async def all_slots_work_at_once(talk: Talk) -> None:
    answers = await _at_once(talk, _LONG)
    for answer in answers:
        whole(answer)
    last_first = max(answer.first_at or 0.0 for answer in answers)
    if last_first > min(answer.released_at for answer in answers):
        raise Broken("one was over before another began: some waited inside")


async def what_does_not_fit_is_refused_and_costs_nothing(talk: Talk) -> None:
    window = talk.capabilities.window
    answer = await talk.ask("sea " * 2 * window, max_tokens=1)
    _refused(answer, f"a prompt of twice the window ({window})")
    text, tokens = await talk.of_length(window - 8)
    answer = await talk.ask(text, max_tokens=window - tokens + 1, sampling=talk.endless())
    # A server behind may take it, and end it where the window ends.
    if answer.fault is None and answer.tokens > window - tokens:
        raise Broken(f"{tokens} and {answer.tokens} tokens in a window of {window}")
    await talk.answered(QUESTION)


async def exactly_the_window_fits(talk: Talk) -> None:
    window = talk.capabilities.window
    text, tokens = await talk.of_length(window - 8)
    answer = await talk.ask(text, max_tokens=window - tokens, sampling=talk.endless())
    whole(answer)
    if answer.tokens != window - tokens or answer.end is not EndReason.LENGTH:
        raise Broken(f"{answer.tokens} of {window - tokens} tokens, ended by {answer.end}")


async def an_abort_frees_the_slot(talk: Talk) -> None:
    for wait_for_text in (False, True):
        request = await talk.begin(QUESTION, max_tokens=128, sampling=talk.endless())
        if wait_for_text:
            await talk.client.heard(request)
        await talk.client.abort(request)
        await talk.client.abort(request)
        answer = await talk.client.over(request)
        if answer.released is None or answer.released.reason is not EndReason.CANCELLED:
            raise Broken(f"released as {answer.released}")


async def an_abort_of_nobody_hurts_nobody(talk: Talk) -> None:
    client = talk.client
    before = await talk.begin(QUESTION, max_tokens=2)
    slot = (await client.over(before)).slot
    client.free.remove(slot)
    client.free.appendleft(slot)  # so that the next one sits where the last one sat
    request = await talk.begin(QUESTION, max_tokens=_LONG, sampling=talk.endless())
    await client.abort(before)
    await client.link.send(Abort(request=_STRANGER, slot=slot))
    await client.link.send(Abort(request=_STRANGER, slot=SlotIndex(0)))
    answer = await client.over(request)
    whole(answer)
    if answer.slot != slot:
        raise Broken(f"in slot {answer.slot} instead of {slot}: nothing is known")


async def a_storm_of_aborts_leaks_no_slot_and_no_block(talk: Talk) -> None:
    client = talk.client

    # What a slot has room for, and a few steps' worth of reading.
    offered = talk.capabilities
    room = min(offered.kv_blocks * offered.block_size // offered.slots, offered.window)
    long = QUESTION + " Once more." * min(_LONG_STORY, room // 20)

    async def one(moment: str, after_s: float, question: str, patient: bool) -> None:
        request = await talk.begin(question, max_tokens=8, patient=patient)
        if moment == "later":
            await trio.sleep(after_s)
        elif moment == "with text":
            await client.heard(request)
        elif moment == "afterwards":
            await client.over(request)
        if moment != "never":
            await client.abort(request)
        answer = await client.over(request)
        if moment in ("never", "afterwards"):
            whole(answer)

    moments = ("at once", "later", "with text", "afterwards", "never")
    async with trio.open_nursery() as nursery:
        for _ in range(talk.sizes.storm):
            question = talk.dice.choice((QUESTION, QUESTION, long))
            moment, patient = talk.dice.choice(moments), talk.dice.random() < _PATIENT
            nursery.start_soon(one, moment, talk.dice.random() / 10, question, patient)
    if len(client.free) != talk.capabilities.slots:
        raise Broken(f"{len(client.free)} of {talk.capabilities.slots} slots are free")
    stats = await client.next_stats()
    if stats.live or stats.kv_usage:
        raise Broken(f"nothing runs, and it says {stats}")
    if talk.capabilities.abort_proof:
        await _every_block_is_there(talk)
    else:  # what blocks there are is known to those who do the work
        for answer in await _at_once(talk, 8):
            whole(answer)
    await talk.answered(QUESTION)


async def no_conversation_hears_anothers_word(talk: Talk) -> None:
    # Digits: every model has a token for each, so that even a small one can repeat them.
    words = [str(word) for word in talk.dice.sample(range(10**6, 10**7), talk.sizes.conversations)]
    answers: dict[str, Answer] = {}

    async def one(word: str, after_s: float | None) -> None:
        request = await talk.begin(
            f"Repeat the number {word}.", max_tokens=28, salt=word, sampling=greedy()
        )
        if after_s is not None:
            await talk.client.heard(request)
            await trio.sleep(after_s)
            await talk.client.abort(request)
        answers[word] = await talk.client.over(request)

    async with trio.open_nursery() as nursery:
        for word in words:
            is_cancelled = talk.dice.random() < _CANCELLED
            nursery.start_soon(one, word, talk.dice.random() / 20 if is_cancelled else None)
    for word, answer in answers.items():
        if answer.fault is not None:
            whole(answer)
        if any(other in answer.text for other in words if other != word):
            raise Broken("an answer holds a word of another conversation")
    ended = [word for word, answer in answers.items() if answer.end is not None]
    own = [word for word in ended if word in answers[word].text]
    if len(own) <= _ENOUGH * len(ended):
        raise Broken(f"{len(own)} of {len(ended)} answers hold their own word: nothing is known")


async def _at_once(talk: Talk, max_tokens: int) -> list[Answer]:
    """An answer of every slot."""
    client = talk.client
    if len(client.free) != client.capabilities.slots:
        raise Broken(f"{len(client.free)} of {client.capabilities.slots} slots are free")
    requests = [
        await talk.begin(f"{number}. {QUESTION}", max_tokens=max_tokens, sampling=talk.endless())
        for number in range(client.capabilities.slots)
    ]
    return [await client.over(request) for request in requests]


async def _every_block_is_there(talk: Talk) -> None:
    """Fill the cache: one that had leaked would refuse the last request, or evict another."""
    client, engine = talk.client, talk.capabilities
    blocks_of_window = -(-engine.window // engine.block_size)
    sizes: list[int] = []
    left = engine.kv_blocks
    while left and len(sizes) < engine.slots:
        sizes.append(min(left, blocks_of_window))
        left -= sizes[-1]
    requests = []
    for number, blocks in enumerate(sizes):
        tokens = min(blocks * engine.block_size, engine.window)
        text, prompt = f"{number}", await talk.length(f"{number}")
        if (wanted := min(tokens - 8, _PREFILL // len(sizes))) > 2 * prompt:
            text, prompt = await talk.of_length(wanted, f"{number} ")
        requests.append(
            await talk.begin(
                text, max_tokens=tokens - prompt, salt=f"full {number}", sampling=talk.endless()
            )
        )
    for request in requests:
        await client.heard(request)
    answers = [client.answers[request] for request in requests]
    for answer in answers:
        if answer.fault is not None:
            raise Broken(f"not every KV block is free: {answer.fault.detail}")
    if not left and client.free:
        _refused(await talk.ask(QUESTION, max_tokens=8), "a request without a KV block")
    for request in requests:
        await client.abort(request)
    for request in requests:
        await client.over(request)


def _refused(answer: Answer, what: str) -> None:
    if answer.fault is None:
        raise Broken(f"{what} was accepted")
    if answer.tokens or answer.released is None or answer.released.reason in _ENDS:
        raise Broken(f"{what} was refused, with {answer.tokens} tokens: {answer.released}")
