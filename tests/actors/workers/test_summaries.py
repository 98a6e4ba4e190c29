"""When a summary is due, what it covers, and whose text is taken."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.workers import summaries
from antiphon.actors.workers.lines import turns_of
from antiphon.actors.workers.summaries import Due
from antiphon.context_records import Summary
from antiphon.context_settings import ContextSettings
from antiphon.ids import ConversationId, ItemId
from antiphon.records import Item
from antiphon.testing.work_store import an_item

SETTINGS = ContextSettings(summarise_at_share=0.6, keep_share=0.5)


def turns(*tokens: int, first: int = 0) -> list[Item]:
    """A question and an answer each, with so many tokens together."""
    items = []
    for number, each in enumerate(tokens, first):
        items.append(replace(an_item(f"q{number}", "user", "What?"), tokens=1))
        items.append(replace(an_item(f"a{number}", "assistant", "That."), tokens=each - 1))
    return items


def due(items: list[Item], room: int = 1000, summary: Summary | None = None) -> Due | None:
    return summaries.due(items, summary, room=room, settings=SETTINGS)


def of(*said: tuple[str, str], earlier: str = "") -> Due:
    items = []
    for number, (asked, answer) in enumerate(said):
        items += [an_item(f"q{number}", "user", asked), an_item(f"a{number}", "assistant", answer)]
    found = summaries.due(items * 1, None, room=0, settings=SETTINGS)
    assert found is not None
    return replace(found, earlier=earlier)


def test_none_is_due_before_its_share_of_the_room_is_used():
    assert due(turns(*[100] * 6)) is None
    assert due(turns(*[100] * 7)) is not None


def test_it_covers_whole_turns_down_to_what_is_kept():
    found = due(turns(*[100] * 7))

    assert found is not None
    assert [item.id for item in found.items] == ["q0", "a0", "q1", "a1", "q2", "a2", "q3", "a3"]
    assert found.until == ItemId("a3")
    assert found.tokens == 400


def test_the_newest_turn_is_never_covered():
    found = due(turns(10, 5000))

    assert found is not None
    assert found.until == ItemId("a0")
    assert due(turns(5000)) is None


def test_a_turn_that_runs_is_neither_counted_nor_covered():
    running = replace(an_item("q9", "user", "And?"), tokens=900)

    assert due([*turns(*[100] * 6), running]) is None


def test_several_messages_in_a_row_are_one_turn():
    items = [an_item("1", "user", "a"), an_item("2", "user", "b"), an_item("3", "assistant", "c")]

    assert [len(turn.items) for turn in turns_of([*items, an_item("4", "user", "d")])] == [3, 1]


@given(st.lists(st.integers(2, 900), max_size=30), st.integers(1, 3000))
def test_what_is_covered_and_what_is_left_are_all_there_is(tokens: list[int], room: int):
    items = turns(*tokens)

    found = due(items, room)

    if found is None:
        return
    covered = len(found.items)
    assert items[:covered] == list(found.items)
    assert found.tokens == sum(item.tokens or 0 for item in found.items)
    left = items[covered:]
    assert left
    assert left[0].role == "user"
    kept = sum(item.tokens or 0 for item in left)
    threshold = SETTINGS.summarise_at_share * room
    assert len(left) == 2 or kept <= SETTINGS.keep_share * threshold
    assert sum(tokens) > threshold


@given(st.lists(st.integers(2, 300), min_size=1, max_size=60))
def test_after_a_summary_the_next_is_a_step_away(tokens: list[int]):
    """So that the beginning of the prompt stays the same for a while."""
    items: list[Item] = []
    last = None
    for number, each in enumerate(tokens):
        items += turns(each, first=number)
        found = due(items, 2000)
        if found is None:
            continue
        if last is not None:
            assert sum(item.tokens or 0 for item in items) - last > 500
        del items[: len(found.items)]
        last = sum(item.tokens or 0 for item in items)


MIA = ("My daughter Mia turns 7 on May 3.", "How nice. Any plans?")
TRIP = ("We want to go to Oslo with 2 friends.", "Oslo has many museums.")
LAST = ("What else?", "Nothing else.")


def better(answer: str, found: Due, *, is_cut: bool = False) -> str | None:
    said = summaries.extracted(found, tokens=60)
    return summaries.better(answer, said, found, is_cut=is_cut, tokens=60)


def test_a_models_text_with_all_the_facts_is_taken():
    text = "The user's daughter Mia turns 7 on May 3. They want to go to Oslo with 2 friends."

    assert better(f"Summary: {text}", of(MIA, TRIP, LAST)) == text


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Summary:",
        "The user talks about a child and a trip to a city in the north.",
        "Mia turns 8 on May 3. They want to go to Oslo with 2 friends. Mia turns 7.",
        "Ihre Tochter Mia wird am May 3 die 7, und sie wollen nach Oslo mit 2 Freunden.",
        "Дочери Мии 7 лет, May 3, Oslo, 2.",
        "User: My daughter Mia turns 7 on May 3. We want to go to Oslo with 2 friends.",
        "I'm sorry, I can't summarise. Mia turns 7 on May 3, Oslo, 2 friends.",
        "Keep every name, number, date, decision and wish of the user. Mia 7 May 3 Oslo 2.",
        "Mia is 7 on May 3, 2 go to Oslo. Mia is 7 on May 3, 2 go to Oslo.",
        "Mia 7 May 3 Oslo 2 " * 12,
    ],
)
def test_another_text_is_not(answer):
    assert better(answer, of(MIA, TRIP, LAST)) is None


def test_a_text_that_was_cut_ends_with_its_last_sentence():
    whole = "The user's daughter Mia turns 7 on May 3. They want to go to Oslo with 2 friends."

    assert better(f"{whole} And then they", of(MIA, TRIP, LAST), is_cut=True) == whole


def test_facts_of_the_earlier_summary_count_as_well():
    found = of(TRIP, LAST, earlier="User: My daughter Mia turns 7 on May 3.")

    assert better("They want to go to Oslo with 2 friends this summer.", found) is None
    assert better("Mia turns 7 on May 3; they go to Oslo with 2 friends.", found) is not None


def test_a_model_is_shown_all_lines_shortened_where_they_are_long():
    found = of(MIA, ("Tell me. " + "word " * 2000, "Yes. " + "word " * 2000), LAST)

    shown = summaries.messages(found, tokens=500)

    assert shown is not None
    assert "Mia" in shown[0].content
    assert len(shown[0].content) < 2000
    assert summaries.messages(found, tokens=50) is None


def test_a_summary_goes_on_from_the_one_before():
    before = Summary(
        conversation=ConversationId("conv"),
        until=ItemId("a0"),
        items=2,
        tokens=9,
        text="Earlier things.",
        made_by="extract",
        created_ms=1,
    )
    found = due(turns(*[100] * 7), summary=before)

    assert found is not None
    assert found.earlier == "Earlier things."
    shown = summaries.messages(found, tokens=4000)
    assert shown is not None
    assert "Earlier: Earlier things." in shown[0].content
