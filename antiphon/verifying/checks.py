"""Which checks there are, and which engines each is for.

A check is one talk with the engine, and raises Broken with a sentence for what is wrong with it.
They hold for any model, so none knows what an answer should say.
"""

from collections.abc import Awaitable, Callable

from antiphon.events import Capabilities
from antiphon.verifying import answers, pauses, slots
from antiphon.verifying.talk import Talk

Check = Callable[[Talk], Awaitable[None]]

CHECKS: dict[Check, Callable[[Capabilities], bool]] = {
    answers.an_answer_ends_once_and_gives_its_slot_back: lambda _: True,
    answers.an_answer_ends_by_itself: lambda _: True,
    answers.the_longest_answer_is_a_bound: lambda _: True,
    answers.an_end_that_is_ignored_ends_nothing: lambda engine: engine.extras,
    answers.no_answer_ends_before_its_least: lambda engine: engine.min_tokens,
    answers.a_stop_string_never_leaves: lambda _: True,
    answers.text_comes_in_whole_characters: lambda _: True,
    answers.a_prompt_is_counted_once: lambda _: True,
    answers.the_same_seed_says_the_same: lambda engine: engine.seed,
    answers.log_probabilities_come_with_the_tokens: lambda engine: engine.logprobs,
    answers.a_schema_holds: lambda engine: engine.json_schema,
    slots.an_idle_engine_says_that_it_lives: lambda _: True,
    slots.all_slots_work_at_once: lambda engine: engine.extras,
    slots.exactly_the_window_fits: lambda engine: engine.extras,
    slots.what_does_not_fit_is_refused_and_costs_nothing: lambda _: True,
    slots.an_abort_frees_the_slot: lambda _: True,
    slots.an_abort_of_nobody_hurts_nobody: lambda _: True,
    slots.a_storm_of_aborts_leaks_no_slot_and_no_block: lambda _: True,
    slots.no_conversation_hears_anothers_word: lambda _: True,
    pauses.a_paused_answer_goes_on_where_it_was: lambda engine: engine.pausable,
}


def name_of(check: Check) -> str:
    """As people read it."""
    return getattr(check, "__name__", "?").replace("_", " ")
