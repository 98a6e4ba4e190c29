"""The view of a turn: prompt and answer within the window."""

import threading
from functools import partial

import pytest
import trio

from antiphon.actors.context.view import encode, fit
from antiphon.errors import ContextLengthExceeded
from antiphon.events import Message


def test_a_silent_client_gets_the_default_answer_length():
    assert fit([1] * 10, max_tokens=None, default=50, window=100).max_tokens == 50


def test_a_silent_client_gets_no_more_than_the_window_leaves():
    assert fit([1] * 90, max_tokens=None, default=50, window=100).max_tokens == 10


def test_a_named_answer_length_may_exceed_the_default():
    assert fit([1] * 10, max_tokens=90, default=50, window=100).max_tokens == 90


@pytest.mark.parametrize(("prompt", "answer"), [(11, 90), (100, None), (101, 1), (250, None)])
def test_what_does_not_fit_is_refused_with_the_numbers(prompt: int, answer: int | None):
    with pytest.raises(ContextLengthExceeded) as caught:
        fit([1] * prompt, max_tokens=answer, default=50, window=100)

    assert caught.value.window == 100
    assert caught.value.prompt_tokens == prompt
    assert str(prompt) in str(caught.value)


class _Tokenizer:
    longest_token = 100
    tool_format = None

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def encode_chat(self, messages: object, tools: object = ()) -> list[int]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.threads.append(threading.get_ident())
        with self._lock:
            self.at_once -= 1
        return [1]


def user(length: int) -> list[Message]:
    return [Message(role="user", content="a" * length)]


@pytest.mark.parametrize(("length", "same_thread"), [(100, True), (100_000, False)])
async def test_long_text_is_tokenised_off_the_trio_thread(length: int, same_thread: bool):
    tokenizer = _Tokenizer()

    await encode(tokenizer, user(length), window=8192, threads=trio.CapacityLimiter(1))

    assert (tokenizer.threads == [threading.get_ident()]) is same_thread


async def test_hopelessly_long_text_is_refused_without_tokenising():
    tokenizer = _Tokenizer()

    with pytest.raises(ContextLengthExceeded, match="at least 1001 tokens") as caught:
        await encode(tokenizer, user(100_001), window=1000, threads=trio.CapacityLimiter(1))

    assert caught.value.window == 1000
    assert tokenizer.threads == []


async def test_long_prompts_share_a_few_threads():
    tokenizer = _Tokenizer()
    threads = trio.CapacityLimiter(1)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(
                partial(encode, tokenizer, user(100_000), window=8192, threads=threads)
            )

    assert len(tokenizer.threads) == 4
    assert tokenizer.most_at_once == 1
