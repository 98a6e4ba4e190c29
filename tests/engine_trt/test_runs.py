from types import SimpleNamespace
from typing import Any

import pytest

from antiphon.engine_trt.runs import Run, read
from antiphon.events import Admit, EndReason, Sampling
from antiphon.ids import EngineRequest, SlotIndex


def a_run(*, logprobs: bool = False) -> Run:
    admit = Admit(
        request=EngineRequest(1),
        slot=SlotIndex(0),
        prompt=[1],
        max_tokens=9,
        sampling=Sampling(logprobs=logprobs),
        stop=[],
    )
    return Run(admit, 1)


def told(run: Run, tokens: list[int], reason: str | None = None, logprobs: Any = None) -> Run:
    completion = SimpleNamespace(token_ids=tokens, finish_reason=reason, logprobs=logprobs)
    run.output = SimpleNamespace(outputs=[completion])
    return run


def test_only_what_is_new_of_cumulative_tokens_is_read():
    run = a_run()

    assert read(told(run, [4])).tokens == [4]
    assert read(told(run, [4])).tokens == []
    assert read(told(run, [4, 5, 6])).tokens == [5, 6]


def test_what_the_cache_had_of_a_prompt_is_told_once_by_a_library_that_knows():
    silent, run = a_run(), told(a_run(), [4])
    run.output.cached_tokens = 1

    assert read(told(silent, [4])).cached is None
    assert (first := read(run)).cached == 1
    assert first.prefilled == 0
    assert read(run).cached is None


def test_tokens_that_shrink_at_the_end_are_not_read_again():
    run = a_run()
    read(told(run, [4, 5, 0]))

    news = read(told(run, [4, 5], "stop"))

    assert (news.tokens, news.end) == ([], EndReason.STOP)


@pytest.mark.parametrize(
    ("reason", "end", "strange"),
    [
        (None, None, None),
        ("stop", EndReason.STOP, None),
        ("length", EndReason.LENGTH, None),
        ("not_finished", None, None),
        ("cancelled", None, "cancelled"),
        ("timeout", None, "timeout"),
        ("something new", None, "something new"),
    ],
)
def test_an_end_that_is_none_of_ours_is_told_apart(reason, end, strange):
    news = read(told(a_run(), [1], reason))

    assert (news.end, news.ended_by) == (end, strange)


def test_logprobs_come_as_numbers_or_as_tables():
    run = a_run(logprobs=True)
    table = [{4: SimpleNamespace(logprob=-1.0)}, {9: SimpleNamespace(logprob=-2.0)}, -3.0]

    news = read(told(run, [4, 5, 6, 7], None, table))

    assert news.logprobs == [-1.0, -9999.0, -3.0, -9999.0]


def test_nobody_who_did_not_ask_gets_logprobs():
    assert read(told(a_run(), [4], None, [-1.0])).logprobs is None
