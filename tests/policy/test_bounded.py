import random
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from antiphon.policy.bounded import Bounded, BoundedRule
from antiphon.policy.expression import Expression, ExpressionError, literal, parse
from antiphon.testing.disguises import disguises_of
from antiphon.testing.expressions import covered, matches, patterns, texts
from antiphon.verdicts import Action, Stage

PHRASES = ("bad", "evil", "launch code", "kill yourself", "jazz queue")


def phrase(text: str, *, whole_words: bool = True) -> Expression:
    return literal(text, whole_words=whole_words, ignore_case=True)


def rule(*expressions: Expression, disguises: bool = False, **more) -> BoundedRule:
    return BoundedRule(
        rule=more.pop("id", "r"),
        action=more.pop("action", Action.ANNOTATE),
        expressions=expressions,
        disguises=disguises,
        **more,
    )


def spans(bounded: Bounded, text: str) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in bounded.search(text, Stage.INPUT)]


DISGUISED = Bounded(
    [rule(phrase(each), disguises=True, id=each, action=Action.BLOCK) for each in PHRASES]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(patterns, min_size=1, max_size=3), texts)
def test_it_finds_what_the_standard_library_finds(sources, text):
    try:
        expressions = [parse(each) for each in sources]
    except ExpressionError:
        assume(False)

    found = spans(Bounded([rule(*expressions)]), text)

    assert found == covered(matches(sources, text))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\b[\w.]{1,20}@[a-z]{1,9}\.com\b", "to a.b@c.com and x@y.com, not x@y.org"),
        (r"\d{3}-\d{2,4}", "123-45, 123-4567 1-23"),
        ("(?i)ab|abc", "xABCab"),
        (r"é\b", "café, cafés"),
    ],
)
def test_matches_that_do_not_overlap_are_those_of_the_standard_library(pattern, text):
    found = spans(Bounded([rule(parse(pattern))]), text)

    longest_first = pattern.replace("ab|abc", "abc|ab")
    assert found == [each.span() for each in re.finditer(longest_first, text)]


def test_what_a_match_leaves_of_one_that_overlaps_it_is_found_too():
    assert spans(Bounded([rule(parse("aba"))]), "xababa") == [(1, 4), (4, 6)]


def test_matches_are_told_with_their_rule_category_and_replacement():
    bounded = Bounded(
        [
            rule(
                parse("x1"),
                id="mask",
                action=Action.TRANSFORM,
                category="c",
                replacement="<{entity}>",
                confirm=lambda text, before: (0, 1, "X") if before.endswith("ok ") else None,
            )
        ]
    )

    (found,) = bounded.search("no x1, ok x1", Stage.OUTPUT)

    assert (found.rule, found.category, found.replacement) == ("mask", "c", "<X>")
    assert (found.start, found.end, found.stage) == (10, 11, Stage.OUTPUT)


def test_a_match_that_is_not_confirmed_gives_way_to_a_shorter_one():
    bounded = Bounded(
        [rule(parse(r"\d{2,4}"), confirm=lambda text, _: (0, 3, "") if text == "123" else None)]
    )

    assert spans(bounded, "a1234") == [(1, 4)]


@pytest.mark.parametrize("banned", PHRASES)
def test_every_disguise_of_a_phrase_is_found_at_its_first_character(banned):
    for name, disguise in disguises_of(banned).items():
        for seed in range(6):
            disguised = disguise(banned, random.Random(seed))
            text = f"We say {disguised.text} now."

            found = DISGUISED.search(text, Stage.OUTPUT)

            assert [each.rule for each in found] == [banned], (name, text)
            assert found[0].start == len("We say ") + disguised.start, (name, text)


@pytest.mark.parametrize(
    "text",
    [
        "The badge and the sinbad were not abad.",
        "A ba d idea, b ad too",
        "b, then a, then d",
        "Tab adds a bed, bid, bud; ebad",
        "Options: a) b c d",
        "good god, live and devil",
        "8.4d faster, 84d later, 4.5.8a",
        "bádminton and caf\\u00e9bad\\u00e9",
        "base64 is YmFkZ2U= and c2luYmFk",
        "in hex 6261646765 and 73696e626164, in 62 61 days",
        "Who did kill? Yourself. To kill! Yourself, killyourself, kill the yourself",
        "launch the code",
        "lev il and ev-iler",
    ],
)
def test_ordinary_text_is_not_taken_for_a_disguise(text):
    assert spans(DISGUISED, text) == [], text


def test_a_phrase_is_part_of_a_word_only_where_that_is_asked_for():
    within = Bounded([rule(phrase("bad", whole_words=False), disguises=True)])

    assert spans(within, "sinbád, b4dge") == [(3, 6), (8, 11)]
    assert spans(within, "ba.dge ba d") == []


def test_words_that_nothing_sets_apart_are_found_within_a_sentence():
    bounded = Bounded([rule(phrase("毒药"), disguises=True)])

    assert spans(bounded, "制造毒药的方法") == [(2, 4)]


def test_a_phrase_with_signs_is_found_as_it_is():
    bounded = Bounded([rule(phrase("c++ crack"), disguises=True)])

    assert spans(bounded, "a C++ crack") == [(2, 11)]


@pytest.mark.parametrize(
    "text", ["YmFk\nday", "line\nYmFk", "add 626164", "42 626164", "1,042 62 61 64", "a YmFk\\nx"]
)
def test_what_is_encoded_is_told_from_what_stands_around_it(text):
    assert len(spans(DISGUISED, text)) == 1, text


@pytest.mark.parametrize("text", ["69 62 61 64", "0x69, 0x62, 0x61, 0x64", "69:62:61:64"])
def test_bytes_that_are_apart_are_one_word(text):
    assert spans(DISGUISED, text) == [], text


def test_a_double_letter_is_ordinary_and_three_are_not():
    bounded = Bounded([rule(phrase("god"), disguises=True)])

    assert spans(bounded, "good, goood, ggod, g-o-o-d") == [(6, 11)]


def test_a_pattern_that_lists_phrases_is_found_in_their_disguises():
    bounded = Bounded([rule(parse(r"\b(?:bad|evil) (?:idea|plan)s?\b"), disguises=True)])

    for text in ("e.v.i.l p-l-a-n", "6261642069646561", "B\u200bAD IDEAS", "onq cynaf"):
        assert spans(bounded, text) == [(0, len(text))], text


def test_a_pattern_sees_through_how_letters_look():
    bounded = Bounded([rule(parse(r"\bcode[-:]\d{2,4}\b"), disguises=True)])

    for text in ("ｃоde:１２3", "\\u0063ode-12", "%63ode:1234", "Y29kZToxMjM="):
        assert len(spans(bounded, text)) == 1, text


def test_a_pattern_that_is_not_to_see_through_disguises_does_not():
    assert spans(Bounded([rule(parse(r"\bbad\b"))]), "b\u200bad BAD b.a.d") == []


def test_without_rules_nothing_is_held_and_nothing_found():
    tracker = Bounded([]).tracker(Stage.OUTPUT)

    assert tracker.feed("anything") == ()
    assert tracker.held_from == 8
    assert list(tracker.finish()) == []


@pytest.mark.parametrize("how", [{"shadow": True, "action": Action.BLOCK}, {}])
def test_what_does_not_act_holds_nothing(how):
    tracker = Bounded([rule(phrase("bad"), disguises=True, **how)]).tracker(Stage.OUTPUT)

    tracker.feed("so ba")

    assert tracker.held_from == 5
    assert [(each.start, each.end) for each in tracker.feed("d ")] == [(3, 6)]


@settings(max_examples=300, deadline=None)
@given(st.lists(patterns, min_size=1, max_size=2), texts, st.lists(st.integers(0, 20), max_size=4))
def test_findings_do_not_depend_on_how_a_text_is_cut(sources, text, cuts):
    try:
        bounded = Bounded([rule(parse(each)) for each in sources])
    except ExpressionError:
        assume(False)
    tracker = bounded.tracker(Stage.INPUT)
    found = []

    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True):
        found += tracker.feed(text[start:end])
    found += tracker.finish()

    order = {"key": lambda each: (each.start, each.end)}
    assert sorted(found, **order) == sorted(bounded.search(text, Stage.INPUT), **order)
