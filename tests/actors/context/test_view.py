"""The view of a turn: prompt and answer within the window."""

import threading

import pytest

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
    def __init__(self) -> None:
        self.threads: list[int] = []

    def encode_chat(self, messages: object) -> list[int]:
        self.threads.append(threading.get_ident())
        return [1]


@pytest.mark.parametrize(("length", "same_thread"), [(100, True), (100_000, False)])
async def test_long_text_is_tokenised_off_the_trio_thread(length: int, same_thread: bool):
    tokenizer = _Tokenizer()

    await encode(tokenizer, [Message(role="user", content="a" * length)])

    assert (tokenizer.threads == [threading.get_ident()]) is same_thread
