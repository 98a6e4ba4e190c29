"""Responses whose model is not the one that was asked for: shown, stored, and limited."""

import msgspec
import pytest
import trio.testing

from antiphon.alias_settings import AliasSettings
from antiphon.errors import RateLimited
from antiphon.ids import ModelName, ResponseId
from antiphon.narration import Opened
from antiphon.records import ResponseStatus
from antiphon.settings import Settings
from antiphon.testing.answers import read_response, running_answers, status_of
from antiphon.testing.metering import ScriptedMeter
from antiphon.testing.rig import MODEL
from antiphon.testing.scripted import ScriptedLauncher
from antiphon.turn_events import RateLimit

OTHER = ModelName("other")
SETTINGS = msgspec.structs.replace(
    Settings(), aliases={"auto": AliasSettings(models=(MODEL, OTHER))}
)
LIMIT = RateLimit(name="requests", limit=10, remaining=9, reset_s=6.0)
ID = ResponseId("resp_1")


def two_pools(**options):
    return running_answers(others={OTHER: ScriptedLauncher()}, settings=SETTINGS, **options)


def auto(**fields):
    """A turn for the alias."""
    return {"turn": {"model": ModelName("auto"), **fields}}


async def test_a_response_has_the_model_that_answered_and_is_stored_with_it(autojump_clock):
    async with two_pools(meter=ScriptedMeter(limits=(LIMIT,))) as answers:
        answers.rig.ttft_s[MODEL] = 4000.0  # flex waits long, but not for ever
        watcher = await answers.create("resp_1", **auto(tier="flex"))
        first = [*await watcher.next_events()]
        shown, placed = watcher.response, watcher.placed
        await read_response(watcher)
        stored = answers.store.rows[ID].response

    assert isinstance(first[0], Opened)
    assert placed is not None
    assert (placed.model, placed.moved, placed.limits) == (OTHER, "overload", (LIMIT,))
    assert (shown.model, shown.request["service_tier"]) == (OTHER, "flex")
    assert watcher.response.model == OTHER
    assert (stored.model, stored.request["service_tier"]) == (OTHER, "flex")


async def test_what_its_server_did_not_end_is_known_by_its_model_too(autojump_clock):
    async with two_pools() as answers:
        await read_response(await answers.create("resp_1", **auto()))
        await trio.testing.wait_all_tasks_blocked()

        assert "start_response" in answers.store.calls


async def test_a_limit_leaves_nothing_behind(autojump_clock):
    error = RateLimited("requests per minute", 10, 6.0, (LIMIT,))
    async with two_pools(meter=ScriptedMeter(error=error)) as answers:
        watcher = await answers.create("resp_1", **auto())
        with pytest.raises(RateLimited):
            await watcher.next_events()
        await trio.testing.wait_all_tasks_blocked()

        assert answers.store.rows == {}


async def test_a_limit_leaves_nothing_behind_of_one_that_would_have_outlived_its_reader(
    autojump_clock,
):
    error = RateLimited("requests per minute", 10, 6.0, (LIMIT,))
    async with two_pools(meter=ScriptedMeter(error=error)) as answers:
        watcher = await answers.create("resp_1", background=True, streamed=True, **auto())
        with pytest.raises(RateLimited):
            await watcher.next_events()
        await trio.testing.wait_all_tasks_blocked()

        assert answers.store.rows == {}


async def test_a_background_response_over_a_limit_failed_of_that(autojump_clock):
    error = RateLimited("requests per minute", 10, 6.0, (LIMIT,))
    async with two_pools(meter=ScriptedMeter(error=error)) as answers:
        watcher = await answers.create("resp_1", background=True, **auto(background=True))
        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.FAILED
        assert watcher.response.error is not None
        assert watcher.response.error.code == "rate_limit_exceeded"
