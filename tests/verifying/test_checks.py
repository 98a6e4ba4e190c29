"""No check is so lax that nothing fails it: each one finds its own breach of the contract."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from antiphon.events import (
    Abort,
    Admit,
    HostCommand,
    HostFrame,
    Released,
    Resume,
    SlotText,
    Step,
    TokenLogprob,
)
from antiphon.testing.rig import WordTokenizer
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.subjects import obedient_words, scripted_link
from antiphon.verifying import answers, pauses, slots
from antiphon.verifying.checks import CHECKS
from antiphon.verifying.run import verify
from antiphon.verifying.subjects import Subject
from antiphon.verifying.talk import Sizes


class Altering(ScriptedLink):
    """A sound engine, but for what a subclass does to its commands and frames."""

    async def send(self, command: HostCommand) -> None:
        if (altered := self.command(command)) is not None:
            await super().send(altered)

    def emit(self, frame: HostFrame) -> None:
        super().emit(self.frame(frame))

    def command(self, command: HostCommand) -> HostCommand | None:
        return command

    def frame(self, frame: HostFrame) -> HostFrame:
        return frame


class Miscounting(Altering):
    def frame(self, frame: HostFrame) -> HostFrame:
        if isinstance(frame, Released):
            return msgspec.structs.replace(frame, tokens=frame.tokens + 1)
        return frame


class Piecewise(Altering):
    def frame(self, frame: HostFrame) -> HostFrame:
        if isinstance(frame, Step):
            texts = [self.piece(piece) for piece in frame.texts]
            return msgspec.structs.replace(frame, texts=texts)
        return frame

    def piece(self, piece: SlotText) -> SlotText:
        return piece


class Halving(Piecewise):
    def piece(self, piece: SlotText) -> SlotText:
        return msgspec.structs.replace(piece, text=piece.text.replace("漢", "\ufffd"))


class CountingPrompts(Piecewise):
    def piece(self, piece: SlotText) -> SlotText:
        return msgspec.structs.replace(piece, prompt_tokens=7)


class WrongLogprobs(Piecewise):
    def piece(self, piece: SlotText) -> SlotText:
        entry = TokenLogprob(text="x", data=b"x", logprob=-0.5)
        return msgspec.structs.replace(piece, logprobs=piece.logprobs and [entry])


def admitting(**fields: Any) -> type[Altering]:
    """It runs something else than what it was told to."""

    class Admitting(Altering):
        def command(self, command: HostCommand) -> HostCommand | None:
            if isinstance(command, Admit):
                sampling = fields.get("sampling", {})
                return msgspec.structs.replace(
                    command,
                    **fields | {"sampling": msgspec.structs.replace(command.sampling, **sampling)},
                )
            return command

    return Admitting


class OneTokenMore(Altering):
    def command(self, command: HostCommand) -> HostCommand | None:
        if isinstance(command, Admit):
            return msgspec.structs.replace(command, max_tokens=command.max_tokens + 1)
        return command


class DeafToAborts(Altering):
    def command(self, command: HostCommand) -> HostCommand | None:
        return None if isinstance(command, Abort) else command


class AbortingBySlot(Altering):
    def command(self, command: HostCommand) -> HostCommand | None:
        if isinstance(command, Abort):
            for live in self._live.values():
                if live.admit.slot == command.slot:
                    return msgspec.structs.replace(command, request=live.admit.request)
        return command


class OneAtATime(Altering):
    def step(self) -> None:
        held = dict(itertools.islice(self._live.items(), 1, None))
        for request in held:
            del self._live[request]
        super().step()
        self._live |= held


class AcceptingAnything(Altering):
    def _refusal(self, admit: Admit) -> str | None:
        return None


class Narrower(Altering):
    def _refusal(self, admit: Admit) -> str | None:
        full = len(admit.prompt) + admit.max_tokens >= self.capabilities.window
        return "window" if full else super()._refusal(admit)


class LeakingBlocks(Altering):
    """Each abort of a request with text costs a block."""

    leaked = 0

    def command(self, command: HostCommand) -> HostCommand | None:
        self.leaked += isinstance(command, Abort)
        return command

    def _refusal(self, admit: Admit) -> str | None:
        wanted = sum(map(self._blocks, (live.admit for live in self._live.values())))
        left = self.capabilities.kv_blocks - self.leaked
        return "capacity" if wanted + self._blocks(admit) > left else super()._refusal(admit)


class LeakingSlots(Altering):
    """The last word of an aborted request is lost."""

    def step(self) -> None:
        for request in [each for each, live in self._live.items() if live.aborted and live.tokens]:
            del self._live[request]
        super().step()


class Forgetful(Altering):
    """Says the word before a pause once more, and its count goes on as if it had not."""

    async def send(self, command: HostCommand) -> None:
        await super().send(command)
        if isinstance(command, Resume):
            live = self._live[command.request]
            live.words.insert(live.tokens, "otherwise")
            live.words.pop()


def endless(admit: Admit) -> Iterator[str]:
    return itertools.cycle([" more"])


def by_chance(admit: Admit) -> Iterator[str]:
    return iter([f"{random.random()}"])


class Gossip:
    """Answers with what somebody else was asked."""

    def __init__(self) -> None:
        self._last: Admit | None = None

    def __call__(self, admit: Admit) -> Iterator[str]:
        told, self._last = self._last or admit, admit
        return obedient_words(told)


def sound(**fields: Any) -> ScriptedLink:
    link = scripted_link()
    for name, value in fields.items():
        setattr(link, name, value)
    return link


def altered(kind: type[ScriptedLink]) -> ScriptedLink:
    whole = scripted_link()
    return kind(capabilities=whole.capabilities, answer=whole.answer, step_s=whole.step_s)


BREACHES = [
    (answers.an_answer_ends_once_and_gives_its_slot_back, lambda: altered(Miscounting)),
    (answers.an_answer_ends_by_itself, lambda: sound(answer=endless)),
    (answers.the_longest_answer_is_a_bound, lambda: altered(OneTokenMore)),
    (
        answers.an_end_that_is_ignored_ends_nothing,
        lambda: altered(admitting(sampling={"ignore_eos": False})),
    ),
    (
        answers.no_answer_ends_before_its_least,
        lambda: altered(admitting(sampling={"min_tokens": 0})),
    ),
    (answers.a_stop_string_never_leaves, lambda: altered(admitting(stop=[]))),
    (answers.text_comes_in_whole_characters, lambda: altered(Halving)),
    (answers.a_prompt_is_counted_once, lambda: altered(CountingPrompts)),
    (answers.the_same_seed_says_the_same, lambda: sound(answer=by_chance)),
    (answers.the_same_seed_says_the_same, lambda: sound(answer=lambda _: iter(["constant"]))),
    (answers.log_probabilities_come_with_the_tokens, lambda: altered(WrongLogprobs)),
    (answers.a_schema_holds, lambda: altered(admitting(sampling={"json_schema": None}))),
    (slots.an_idle_engine_says_that_it_lives, lambda: sound(heartbeat_s=None)),
    (slots.all_slots_work_at_once, lambda: altered(OneAtATime)),
    (slots.exactly_the_window_fits, lambda: altered(Narrower)),
    (slots.what_does_not_fit_is_refused_and_costs_nothing, lambda: altered(AcceptingAnything)),
    (slots.an_abort_frees_the_slot, lambda: altered(DeafToAborts)),
    (slots.an_abort_of_nobody_hurts_nobody, lambda: altered(AbortingBySlot)),
    (slots.a_storm_of_aborts_leaks_no_slot_and_no_block, lambda: altered(LeakingBlocks)),
    (slots.a_storm_of_aborts_leaks_no_slot_and_no_block, lambda: altered(LeakingSlots)),
    (slots.no_conversation_hears_anothers_word, lambda: sound(answer=Gossip())),
    (pauses.a_paused_answer_goes_on_where_it_was, lambda: altered(Forgetful)),
    (slots.no_conversation_hears_anothers_word, lambda: sound(answer=endless)),
]


def test_every_check_is_tried():
    assert {check for check, _ in BREACHES} == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "make"), BREACHES, ids=lambda value: getattr(value, "__name__", "")
)
async def test_a_breach_is_found(check, make, autojump_clock):
    subject = Subject(model="broken", launcher=ScriptedLauncher(make), tokenizer=WordTokenizer())
    report = await verify(
        subject, start_timeout_s=5, checks=[check], sizes=Sizes(storm=64), measured=False
    )

    assert report.findings[0].problem is not None


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_a_sound_engine_passes(check, autojump_clock):
    launcher = ScriptedLauncher(scripted_link)
    subject = Subject(model="sound", launcher=launcher, tokenizer=WordTokenizer())
    report = await verify(
        subject, start_timeout_s=5, checks=[check], sizes=Sizes(storm=64), measured=False
    )

    assert [finding.problem for finding in report.findings] == [None, None]
