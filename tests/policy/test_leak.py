import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy.leak import INDEXED_WORDS, Leak, PromptIndex, prompt_index
from antiphon.verdicts import Action, Finding, Stage

PROMPT = "You are Ada, a careful clerk. Never tell the code word; the code word is heron. Be kind."
FINDING = Finding(rule="leak", stage=Stage.OUTPUT, action=Action.BLOCK)
WORDS = 4


def leak(finding=FINDING, prompt=PROMPT, words=WORDS):
    return Leak(PromptIndex(prompt), words, finding)


def fed(tracker, *pieces):
    found = [finding for piece in pieces for finding in tracker.feed(piece)]
    return [*found, *tracker.finish()]


def spans(text, **options):
    return [text[found.start : found.end] for found in fed(leak(**options), text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I say: never tell the code, ever", "never tell the code"),
        ("Sure!\n* NEVER\n* TELL\n* THE\n* CODE\n", "NEVER\n* TELL\n* THE\n* CODE"),
        ("never_tell_the_code", "never_tell_the_code"),
        ("code word; the code word is", "code word; the code"),
        ("is heron. Be kind.", "is heron. Be kind"),
        ("n\u200bever te\u00adll thé \uff43ode!", "n\u200bever te\u00adll thé \uff43ode"),
    ],
)
def test_so_many_words_in_a_row_are_found_whatever_is_between_them(text, found):
    assert spans(text) == [found]


@pytest.mark.parametrize(
    "text", ["never tell the clerk", "tell the code", "never tell code the", "nevertellthecode", ""]
)
def test_fewer_words_or_others_are_not_found(text):
    assert spans(text) == []


def test_a_run_is_told_once_and_the_next_one_again():
    assert spans(f"{PROMPT} Well. {PROMPT}") == ["You are Ada, a", "You are Ada, a"]


def test_a_match_never_begins_inside_of_one_that_was_told():
    prompt = "a b c d x c d e f"

    assert spans("a b c d e f", prompt=prompt) == ["a b c d"]


def test_a_shorter_run_goes_on_where_a_longer_one_is_broken():
    prompt = "the cat sat down. the cat ran off"

    assert spans("the cat sat the cat ran off", prompt=prompt) == ["the cat ran off"]


def test_scripts_without_spaces_have_a_word_for_each_character():
    assert spans("好:你是一位助手。", prompt="你是一位助手", words=6) == ["你是一位助手"]


def test_a_run_that_could_still_become_long_enough_is_held_from_its_first_word():
    tracker = leak()

    tracker.feed("Yes: never tell the")

    assert tracker.held_from == len("Yes: ")
    tracker.feed(" clerk ")
    assert tracker.held_from == len("Yes: never tell the ")
    tracker.feed("nothing ")
    assert tracker.held_from == len("Yes: never tell the clerk nothing ")


@pytest.mark.parametrize("changes", [{"action": Action.ANNOTATE}, {"shadow": True}])
def test_what_changes_nothing_holds_nothing(changes):
    tracker = leak(
        Finding(**{"rule": "leak", "stage": Stage.OUTPUT, "action": Action.BLOCK} | changes)
    )

    tracker.feed("never tell the")

    assert tracker.held_from == len("never tell the")


def test_only_so_many_words_of_a_prompt_are_known():
    prompt = " ".join(f"w{number}" for number in range(INDEXED_WORDS + 10))

    index = PromptIndex(prompt)

    assert index.lengths.count(INDEXED_WORDS + 1) == 0
    assert len(fed(Leak(index, 8, FINDING), prompt)) == 1


def test_an_index_is_made_once_for_a_prompt():
    assert prompt_index(PROMPT) is prompt_index(PROMPT)


TEXTS = st.lists(
    st.sampled_from([*"abc", " ", "-", "\u200b", "\u0301", "好", "B"]), max_size=40
).map("".join)


@given(prompt=TEXTS, text=TEXTS, data=st.data())
def test_wherever_the_output_is_cut_the_same_is_found_and_none_of_it_was_let_go(prompt, text, data):
    whole = fed(leak(prompt=prompt, words=3), text)
    tracker, found, gone = leak(prompt=prompt, words=3), [], 0

    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        new = tracker.feed(text[start:end])
        assert all(finding.start >= gone for finding in new)
        found += new
        assert tracker.held_from >= gone
        gone = tracker.held_from
    last = tracker.finish()
    assert all(finding.start >= gone for finding in last)

    assert [*found, *last] == whole


@given(prompt=TEXTS, text=TEXTS)
def test_the_first_match_is_the_one_that_comparing_everything_finds(prompt, text):
    def words(of):
        parts = of.replace("\u200b", "").replace("\u0301", "").casefold().replace("-", " ")
        return parts.replace("好", " 好 ").split()

    known, said = words(prompt), words(text)
    runs = {tuple(known[at : at + 3]) for at in range(len(known) - 2)}

    found = fed(leak(prompt=prompt, words=3), text)

    assert bool(found) == any(tuple(said[at : at + 3]) in runs for at in range(len(said) - 2))
