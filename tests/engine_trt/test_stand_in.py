"""The stand-in is as strict, and as bad, as what it stands for."""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon.engine_trt.library import Library, load_library
from antiphon.testing.trt import STAND_IN, encode


def talk(library: Library, conversation: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    llm = library.llm("a model", **{"max_seq_len": 64, **options})

    async def whole() -> Any:
        try:
            return await conversation(llm)
        finally:
            llm.shutdown()  # while the loop lives, to which its thread delivers

    return asyncio.run(whole())


def test_an_argument_that_the_real_one_does_not_know_is_refused(library: Library):
    with pytest.raises(ValueError, match="invalid argument: max_slots"):
        library.llm("a model", max_slots=3)
    with pytest.raises(ValueError, match="extra inputs"):
        library.configured("KvCacheConfig", {}).__class__(fraction=0.5)
    with pytest.raises(TypeError):
        library.sampling_params(max_new_tokens=3)


def test_a_call_with_an_unknown_keyword_is_refused(library: Library):
    async def conversation(llm: Any) -> None:
        llm.generate_async([5], library.sampling_params(), streaming=True, priority=0.5)

    with pytest.raises(TypeError, match="priority"):
        talk(library, conversation)


def test_without_words_it_gives_32_tokens_and_yields_itself(library: Library):
    async def conversation(llm: Any) -> None:
        params = library.sampling_params(ignore_eos=True)
        output = llm.generate_async([5], params, streaming=True)
        counts = []
        async for step in output:
            assert step is output
            counts.append(len(step.outputs[0].token_ids))
        assert counts == list(range(1, 33))
        assert output.outputs[0].finish_reason == "length"
        assert params.end_id == 0

    talk(library, conversation)


def test_parameters_are_written_into_and_good_for_one_request(library: Library):
    async def conversation(llm: Any) -> None:
        params = library.sampling_params()
        llm.generate_async([5], params, streaming=True)
        llm.generate_async([5], params, streaming=True)

    with pytest.raises(RuntimeError, match="another request"):
        talk(library, conversation)


@pytest.mark.parametrize("prompt", [[], ["a"], [1.0]])
def test_a_prompt_that_is_not_token_ids_is_refused(library: Library, prompt: list[Any]):
    async def conversation(llm: Any) -> None:
        llm.generate_async(prompt, library.sampling_params(), streaming=True)

    with pytest.raises((IndexError, AssertionError)):
        talk(library, conversation)


def test_a_long_prompt_needs_chunked_prefill(library: Library):
    async def conversation(llm: Any) -> list[int]:
        params = library.sampling_params(max_tokens=1)
        output = llm.generate_async([5] * 20, params, streaming=True)
        return (await output.aresult()).outputs[0].token_ids

    with pytest.raises(ValueError, match="max_num_tokens"):
        talk(library, conversation, max_num_tokens=8)
    assert talk(library, conversation, max_num_tokens=8, enable_chunked_prefill=True) == [5]


def test_another_thread_is_refused(library: Library):
    async def conversation(llm: Any) -> None:
        params = library.sampling_params()
        await asyncio.to_thread(llm.generate_async, [5], params, streaming=True)

    with pytest.raises(RuntimeError, match="another thread"):
        talk(library, conversation)


def test_an_answer_that_goes_on_from_its_half_ends_the_same(library: Library):
    async def conversation(llm: Any, prompt: list[int]) -> list[int]:
        params = library.sampling_params()
        output = llm.generate_async(prompt, params, streaming=True)
        return (await output.aresult()).outputs[0].token_ids

    async def both(llm: Any) -> None:
        whole = await conversation(llm, encode("hello"))
        assert await conversation(llm, [*encode("hello"), *whole[:2]]) == whole[2:]

    talk(library, both)


def test_importing_it_replaces_the_hook_and_loading_puts_it_back(
    library: Library, monkeypatch: pytest.MonkeyPatch
):
    def hook(*facts: object) -> None: ...

    monkeypatch.setattr(sys, "excepthook", hook)
    module = sys.modules["tensorrt_llm"]
    importlib.reload(module)
    assert sys.excepthook is not hook

    monkeypatch.setattr(sys, "excepthook", hook)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
        del sys.modules[name]
    load_library()

    assert sys.excepthook is hook


def test_an_error_leaves_the_iterator_hanging(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORRT_LLM_STAND_IN", '{"request_fails_each": 1}')
    monkeypatch.syspath_prepend(str(STAND_IN))
    failing = load_library()

    async def conversation(llm: Any) -> None:
        output = llm.generate_async([5], failing.sampling_params(), streaming=True)
        with pytest.raises(failing.request_error):
            await anext(output)
        assert not output.finished
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(output), 0.05)

    try:
        talk(failing, conversation)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
            del sys.modules[name]
