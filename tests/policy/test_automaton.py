import random
import string

import pytest

from antiphon.policy.automaton import HELD_MOST, KEPT, Machine
from antiphon.policy.bounded import Bounded, BoundedRule
from antiphon.policy.expression import ExpressionError, literal, parse
from antiphon.policy.pattern import AsIs, Pattern
from antiphon.verdicts import Action, Stage

HUGE_CLASS = "[" + "".join(f"\\u{code:04x}" for code in range(0x4E00, 0x5200)) + "]{1,200}x"


def machine(*patterns: str) -> Machine:
    return Machine(AsIs([Pattern(0, True, parse(each).graph) for each in patterns]))


def read(of: Machine, text: str) -> int:
    """How many steps a text takes."""
    before = of.steps
    node = of.first
    for symbol in text.translate(of.alphabet):
        node = node[symbol]
    return of.steps - before


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+b", "(.*)*x", "((a*)*)*"])
def test_patterns_that_make_others_hang_are_refused(pattern):
    with pytest.raises(ExpressionError):
        parse(pattern)


@pytest.mark.parametrize(
    ("pattern", "alphabet"),
    [
        ("(?:a|a){1,200}b", "a"),
        ("(?:a|aa){1,100}b", "a"),
        ("(?:a?){0,60}b", "a"),
        ("(?:(?:a{1,4}){1,4}){1,4}b", "a"),
        ("[ab]{0,120}a[ab]{120}c", "ab"),
        ("(?:" * 39 + "a" + ")" * 39 + "{1,400}b", "a"),
        (HUGE_CLASS, "\u4e00\u4e01\u51ff"),
        (r"\b(?:\w{1,9}\W?){1,9}!", "ab "),
    ],
)
def test_work_grows_with_the_text_and_not_faster(pattern, alphabet):
    rng = random.Random(7)
    text = "".join(rng.choices(alphabet, k=4_000))
    searched = machine(pattern)
    places = len(parse(pattern).graph.places)

    first, second = read(searched, text[:2_000]), read(searched, text[2_000:])

    # No more partial matches than places in the pattern, each with or without a word before.
    assert first <= 2_000 * 2 * places
    assert second <= 2_000 * 2 * places


def test_a_text_that_is_read_again_costs_nothing():
    searched = machine(r"\bbad\b", "[a-z]{1,9}@x")
    text = "is it bad or bad@y, said bad@x " * 5
    read(searched, text)

    assert read(searched, text) == 0


def test_what_is_kept_is_bounded_and_forgetting_changes_no_result():
    rng = random.Random(3)
    patterns = [f"[ab]{{0,{n}}}{letter}[a-d]{{9}}x" for n, letter in ((20, "a"), (30, "b"))]
    rules = [
        BoundedRule(rule=each, action=Action.ANNOTATE, expressions=(parse(each),), disguises=False)
        for each in patterns
    ]
    text = "".join(rng.choices("abcdx", k=30_000))
    bounded = Bounded(rules)
    assert bounded.as_is is not None
    forgot = []
    forget = bounded.as_is.source.forget
    bounded.as_is.source.forget = lambda: (forgot.append(bounded.as_is.kept), forget())

    found = bounded.search(text, Stage.OUTPUT)

    assert forgot
    assert max(forgot) <= KEPT + 200
    # Piece by piece with automata of their own, that never have to forget.
    apart = [
        finding
        for start in range(0, len(text), 3_000)
        for finding in Bounded(rules).search(text[start : start + 3_000], Stage.OUTPUT)
    ]
    assert 0 <= len(found) - len(apart) <= 20
    assert found


def test_texts_in_progress_survive_that_nodes_are_forgotten():
    phrase = literal("forbidden", whole_words=True, ignore_case=True)
    rule = BoundedRule(rule="r", action=Action.BLOCK, expressions=(phrase,), disguises=True)
    bounded = Bounded([rule])
    tracker = bounded.tracker(Stage.OUTPUT)
    tracker.feed("forb")

    for each in (bounded.as_is, *bounded.disguised):
        if each is not None:
            each.forget()
    found = tracker.feed("idden ")

    assert [(each.start, each.end) for each in found] == [(0, 9)]


def test_an_alphabet_has_one_sign_for_all_that_are_read_alike():
    searched = machine(r"\bab\d")

    signs = set((string.ascii_lowercase + string.digits + ".,:").translate(searched.alphabet))

    assert len(signs) == 5


@pytest.mark.parametrize("filler", ["\u200b", "a"])
def test_whoever_is_held_too_long_is_taken_to_match(filler):
    phrase = literal("bad", whole_words=True, ignore_case=True)
    rule = BoundedRule(rule="r", action=Action.BLOCK, expressions=(phrase,), disguises=True)
    tracker = Bounded([rule]).tracker(Stage.OUTPUT)

    assert tracker.feed("so ba" + filler * (HELD_MOST - 3)) == ()
    assert tracker.held_from == 3
    found = tracker.feed(filler * 3)

    assert [(each.rule, each.start) for each in found] == [("r", 3)]


def test_a_long_list_of_phrases_costs_a_text_no_more_than_a_short_one():
    rng = random.Random(11)
    words = ["".join(rng.choices("abcdeiorst", k=rng.randint(4, 8))) for _ in range(400)]
    text = " ".join(rng.choices([word[:-1] + "x" for word in words], k=400))

    def work(phrases: list[str]) -> float:
        rules = [
            BoundedRule(
                rule=each,
                action=Action.BLOCK,
                expressions=(literal(each, whole_words=True, ignore_case=True),),
                disguises=True,
            )
            for each in phrases
        ]
        bounded = Bounded(rules)
        bounded.search(text, Stage.OUTPUT)
        return sum(each.steps for each in bounded.disguised)

    assert work(words) < 8 * len(text)
