"""Counting a prompt's tokens without running it."""

import pytest

from antiphon.errors import ContextLengthExceeded, ModelNotFound
from antiphon.events import Message
from antiphon.ids import ModelName
from antiphon.testing.rig import a_turn, running_rig


async def test_a_count_is_what_a_turn_would_be_charged(autojump_clock):
    async with running_rig() as rig:
        messages = (Message(role="user", content="one two three"),)

        assert await rig.directory.count_tokens(a_turn("a", messages=messages)) == 3


async def test_what_is_too_long_to_be_worth_counting_is_refused(autojump_clock):
    async with running_rig() as rig:
        messages = (Message(role="user", content="x " * 500_000),)
        with pytest.raises(ContextLengthExceeded):
            await rig.directory.count_tokens(a_turn("a", messages=messages))


async def test_only_models_that_are_served_can_count(autojump_clock):
    async with running_rig() as rig:
        with pytest.raises(ModelNotFound):
            await rig.directory.count_tokens(a_turn("a", model=ModelName("nobody")))
