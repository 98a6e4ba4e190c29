import codecs
import random
from itertools import groupby

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from antiphon.policy.bounded import Bounded, BoundedRule
from antiphon.policy.expression import ExpressionError, literal, parse
from antiphon.policy.window import Window
from antiphon.testing.disguises import DISGUISES, disguises_of
from antiphon.testing.expressions import matches, patterns, texts
from antiphon.verdicts import Action, Finding, Stage, Verdict

PHRASES = ("bad", "kill yourself", "launch code")


def banned(*phrases: str, **more) -> list[BoundedRule]:
    return [
        BoundedRule(
            rule=each,
            action=more.get("action", Action.BLOCK),
            expressions=(literal(each, whole_words=True, ignore_case=True),),
            disguises=True,
        )
        for each in phrases
    ]


def regular(pattern: str, action: Action, **more) -> BoundedRule:
    return BoundedRule(
        rule=f"{action} {pattern}",
        action=action,
        expressions=(parse(pattern),),
        disguises=False,
        **more,
    )


def window(*rules: BoundedRule) -> Window:
    return Window([Bounded(rules).tracker(Stage.OUTPUT)])


def passed(through: Window, pieces: list[str]):
    results = [*map(through.feed, pieces), through.finish()]
    found = [finding for each in results for finding in each.findings]
    # Which of two rules that find the same piece of text tells it first is not settled.
    findings = [
        finding
        for _, same in groupby(found, key=lambda each: (each.start, each.end))
        for finding in sorted(same, key=lambda each: each.rule)
    ]
    source = sum(each.source for each in results)
    return "".join(each.text for each in results), results[-1].blocked_by, findings, source


def without_annotations(result):
    text, blocked_by, findings, source = result
    acting = [each for each in findings if each.action is not Action.ANNOTATE]
    return text, blocked_by, acting, source


def cut(text: str, places: list[int]) -> list[str]:
    places = sorted(min(each, len(text)) for each in places)
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


BANNED = Bounded(banned(*PHRASES))


def test_ordinary_text_passes_at_once():
    through = Window([BANNED.tracker(Stage.OUTPUT)])

    result = through.feed("Hello, that's a fine day. ")

    assert result.text == "Hello, that's a fine day. "
    assert result.source == 26
    assert through.held == 0


def test_text_waits_only_for_what_may_still_be_a_match():
    through = Window([BANNED.tracker(Stage.OUTPUT)])

    assert through.feed("so kill").text == "so "
    assert through.held == 4
    assert through.feed(" y").text == ""
    assert through.feed("ak").text == "kill yak"


def test_a_match_at_the_end_of_the_output_blocks():
    text, blocked_by, findings, source = passed(window(*banned("bad")), ["so ", "bad"])

    assert (text, blocked_by, source) == ("so ", "bad", 6)
    assert [(each.start, each.end) for each in findings] == [(3, 6)]


def test_nothing_passes_after_a_block():
    through = window(*banned("bad"))

    assert through.feed("a bad day").blocked_by == "bad"
    assert through.held == 0
    assert through.feed("more").text == ""
    assert through.feed("more").source == 4
    assert through.finish().text == ""


def test_transforms_are_made_in_the_stream():
    through = window(regular(r"\d{3,5}", Action.TRANSFORM, replacement="#"))

    assert through.feed("call 123").text == "call "
    assert through.feed("45 or").text == "# or"
    assert through.feed(" 12").text == " "
    assert through.finish().text == "12"


def test_text_that_one_rule_holds_and_another_replaces_comes_out_right():
    rules = [
        regular("abcdefgh", Action.BLOCK),
        regular("cd", Action.TRANSFORM, replacement="<cd>"),
        regular("de", Action.TRANSFORM, replacement="<de>"),
    ]
    pieces = ["ab", "cd", "ef", "x"]

    apart = Window([Bounded([each]).tracker(Stage.OUTPUT) for each in rules])

    assert passed(window(*rules), pieces)[0] == "ab<cd><de>fx"
    assert passed(apart, pieces)[0] == "ab<cd><de>fx"


def test_a_block_within_what_is_replaced_still_blocks():
    rules = [regular("a{1,4}b", Action.TRANSFORM), regular("bc", Action.BLOCK)]

    text, blocked_by, _, source = passed(window(*rules), list("xaabcd"))

    assert (text, blocked_by, source) == ("x[removed]", "block bc", 6)


def test_what_begins_first_blocks_though_it_ends_later():
    rules = [regular("bc", Action.BLOCK), regular("abcd", Action.BLOCK)]

    assert passed(window(*rules), list("xabcde"))[:2] == ("x", "block abcd")
    assert passed(window(*rules), list("xabce"))[:2] == ("xa", "block bc")


def test_findings_of_rules_that_do_not_act_are_told_in_order():
    rules = [
        regular("cd", Action.ANNOTATE),
        regular("ab", Action.BLOCK, shadow=True),
        regular("ef", Action.BLOCK),
        regular("gh", Action.ANNOTATE),
    ]

    for pieces in (["abcdefgh"], list("abcdefgh")):
        text, _, findings, _ = passed(window(*rules), pieces)
        assert text == "abcd"
        assert [each.start for each in findings] == [0, 2, 4]


class Late:
    """A tracker that holds nothing and finds what has passed already."""

    def __init__(self) -> None:
        self.held_from = 0

    def feed(self, text: str) -> list[Finding]:
        self.held_from += len(text)
        if self.held_from < 6:
            return []
        return [Finding(rule="late", stage=Stage.OUTPUT, action=Action.BLOCK, start=0, end=6)]

    def finish(self) -> list[Finding]:
        return []


def test_what_has_passed_before_a_late_block_stays_passed():
    text, blocked_by, _, source = passed(Window([Late()]), ["abc", "defg", "h"])

    assert (text, blocked_by, source) == ("abc", "late", 8)


actions = st.sampled_from([Action.BLOCK, Action.TRANSFORM, Action.TRANSFORM, Action.ANNOTATE])
rule_lists = st.lists(st.tuples(patterns, actions), min_size=1, max_size=3)


def bounded_of(rules) -> Bounded:
    try:
        return Bounded([regular(pattern, action) for pattern, action in rules])
    except ExpressionError:
        assume(False)
        raise


@settings(max_examples=300, deadline=None)
@example([("b", Action.TRANSFORM), ("[^a]", Action.TRANSFORM)], "11b", [2])
@given(rule_lists, texts, st.lists(st.integers(0, 20), max_size=5))
def test_what_passes_does_not_depend_on_how_the_output_is_cut(rules, text, places):
    bounded = bounded_of(rules)

    whole = passed(Window([bounded.tracker(Stage.OUTPUT)]), [text])
    in_pieces = passed(Window([bounded.tracker(Stage.OUTPUT)]), cut(text, places))

    if whole[1] is not None:
        # An annotation that nothing waited for may be cut off, or be known just before.
        whole, in_pieces = map(without_annotations, (whole, in_pieces))
    assert in_pieces == whole


@settings(max_examples=300, deadline=None)
@given(rule_lists, texts, st.lists(st.integers(0, 20), max_size=5))
def test_several_trackers_are_as_good_as_one(rules, text, places):
    bounded = bounded_of(rules)
    each_alone = [Bounded([rule]).tracker(Stage.OUTPUT) for rule in bounded.rules]

    whole = passed(Window([bounded.tracker(Stage.OUTPUT)]), [text])
    apart = passed(Window(each_alone), cut(text, places))

    assert (apart[0], apart[3]) == (whole[0], whole[3])
    assert (apart[1] is None) == (whole[1] is None)


@settings(max_examples=300, deadline=None)
@given(rule_lists, texts, st.lists(st.integers(0, 20), max_size=5))
def test_no_character_of_a_match_passes_before_it_blocks(rules, text, places):
    bounded = bounded_of(rules)
    blocking = [pattern for pattern, action in rules if action is Action.BLOCK]
    first = min((start for start, _ in matches(blocking, text)), default=len(text))
    through = Window([bounded.tracker(Stage.OUTPUT)])

    got, blocked_by, _, source = passed(through, cut(text, places))

    replaced = [
        finding
        for finding in bounded.search(text, Stage.OUTPUT)
        if finding.action is Action.TRANSFORM and finding.start < first
    ]
    assert source == len(text)
    assert (blocked_by is not None) == (first < len(text))
    reach = max([first, *(finding.end for finding in replaced)])
    assert got == Verdict(version="", findings=tuple(replaced)).applied(text[:reach])


@settings(max_examples=300, deadline=None)
@given(rule_lists, texts, st.lists(st.integers(0, 20), max_size=5))
def test_at_no_moment_has_more_passed_than_can_be_meant(rules, text, places):
    """What has passed by then is what passes of every text that goes on differently."""
    bounded = bounded_of(rules)
    beginning = text[: min([len(text), *places])]
    through = Window([bounded.tracker(Stage.OUTPUT)])
    so_far = through.feed(beginning).text

    whole = passed(Window([bounded.tracker(Stage.OUTPUT)]), [text])[0]

    assert whole.startswith(so_far)


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_phrase_blocks_at_every_cut_and_byte(name):
    for phrase in PHRASES:
        disguise = disguises_of(phrase).get(name)
        if disguise is None:
            continue
        disguised = disguise(phrase, random.Random(5))
        before = 'He: {"say": "' if len(phrase) > 3 else "Well, "
        text = before + disguised.text + '" and so on'
        expected = text[: len(before) + disguised.start]

        data = text.encode()
        first = len(before.encode())
        for place in range(first, first + len(disguised.text.encode())):
            decoder = codecs.getincrementaldecoder("utf-8")()
            pieces = [decoder.decode(data[:place]), decoder.decode(data[place:], final=True)]
            got, blocked_by, _, source = passed(Window([BANNED.tracker(Stage.OUTPUT)]), pieces)

            assert (got, blocked_by, source) == (expected, phrase, len(text)), (text, place)

        got, blocked_by, _, _ = passed(Window([BANNED.tracker(Stage.OUTPUT)]), list(text))
        assert (got, blocked_by) == (expected, phrase), text


PARTS = [
    "b",
    "a",
    "d",
    "bad",
    " ",
    "-",
    ".",
    "4",
    "I",
    "=",
    "\n",
    "\\",
    "&",
    "%",
    "\u200b",
    "\u0301",
]
PARTS += ["\\u0062", "%61", "&#100;", "&#98", "\\n", "YmFk", "IGJh", "ZCA", "626164", "62 ", "0x"]
PARTS += ["kill", "k i l l", "your", "self", "yourself", "llik", "xvyy", "ｂ", "а", "ﬁ", "𝐝"]
scraps = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
MASKED = Bounded([*banned("bad", action=Action.TRANSFORM), *banned("kill yourself")])


@settings(max_examples=600, deadline=None)
@given(scraps, st.lists(st.integers(0, 40), max_size=6), st.sampled_from([BANNED, MASKED]))
def test_disguises_are_found_alike_however_the_output_is_cut(text, places, bounded):
    whole = passed(Window([bounded.tracker(Stage.OUTPUT)]), [text])
    in_pieces = passed(Window([bounded.tracker(Stage.OUTPUT)]), cut(text, places))

    assert in_pieces == whole
    found = [each for each in bounded.search(text, Stage.OUTPUT) if each.action is Action.BLOCK]
    assert (whole[1] is not None) == bool(found)
    assert whole[3] == len(text)
