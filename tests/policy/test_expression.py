import pytest

from antiphon.policy.expression import LONGEST, ExpressionError, literal, parse


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("abc", 3),
        ("a?b", 2),
        (r"\b\d{3}-\d{2,4}\b", 8),
        ("[a-z_]{1,40}(?:x|yz)", 42),
        (r"(?P<word>\w{2}) \x41é", 5),
        ("(?i)ab", 2),
        ("a{,3}b", 4),
        ("a{b", 3),
        (r"[]\]^-]x", 2),
        (r"\[\.\*", 3),
        ("((a|b){2}c){3}", 9),
    ],
)
def test_the_longest_match_is_known(pattern, length):
    assert parse(pattern).longest == length


@pytest.mark.parametrize(
    ("pattern", "position", "problem"),
    [
        ("(a+)+$", 2, "no longest match"),
        ("(a|a)*b", 5, "no longest match"),
        ("a{2,}", 1, "no longest match"),
        ("ab(?=c)", 2, "look-around"),
        ("ab(?<!c)", 2, "look-around"),
        (r"(a)\1", 3, "back-reference"),
        ("(?P<a>x)(?P=a)", 8, "back-reference"),
        ("(a)?(?(1)b|c)", 4, "condition"),
        ("^a", 0, "not supported"),
        ("a$", 1, "not supported"),
        (r"a\Z", 1, "not supported"),
        ("a{3,2}", 0, "the least is more"),
        ("a{2}{3}", 0, "counted twice"),
        ("a??", 2, "lazy"),
        ("a{2}+", 4, "possessive"),
        (r"\b?", 0, "no character here to repeat"),
        ("?a", 0, "nothing before it"),
        ("|*", 1, "nothing before it"),
        ("(ab", 0, "never closed"),
        ("ab)", 2, "closing bracket"),
        ("[ab", 0, "never closed"),
        ("[z-a]", 0, "no set of characters"),
        (r"[\d-x]", 1, "range"),
        ("a\\", 1, "nothing after it"),
        (r"\xq1", 0, "hexadecimal"),
        (r"\U00110000", 0, "hexadecimal"),
        ("", 0, "nothing at all"),
        ("a?b{0,2}", 0, "nothing at all"),
        (r"\b", 0, "nothing at all"),
        (f"a{{{LONGEST + 1}}}", 0, "may match"),
        ("a{300}b{300}", 0, "may match 600"),
        ("a{99999999999999999999}", 1, "may match more"),
    ],
)
def test_what_the_subset_lacks_is_refused_with_its_place(pattern, position, problem):
    with pytest.raises(ExpressionError) as caught:
        parse(pattern)

    assert problem in caught.value.problem
    assert caught.value.position == position


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{50}){50}){50}",
        "(a?){500}{500}",
        "((((a?){20}b?){20}c?){20}d?){20}",
        "(()){400}" * 2,
        "((){512}){512}",
        "(((((){500}){500}){500}){500}){500}",
        "(a?b?c?d?){120}",
        "(?:a{0,100}|b{0,100}|c{0,100}){5}",
        "(" * 500 + "a" + ")" * 500,
        "(?:a|b|c|d|e|f|g|h){400}",
    ],
)
def test_what_would_be_huge_when_it_is_written_out_is_refused(pattern):
    with pytest.raises(ExpressionError):
        parse(pattern)


def test_a_phrase_knows_its_words_and_stands_for_any_white_space():
    expression = literal(" two \n words ", whole_words=True, ignore_case=True)

    assert expression.phrase == "two words"
    assert expression.whole_words
    assert expression.longest == len("two") + 4 + len("words")


def test_an_empty_phrase_is_refused():
    with pytest.raises(ExpressionError):
        literal(" \t", whole_words=False, ignore_case=True)


def test_a_phrase_longer_than_the_longest_match_is_refused():
    with pytest.raises(ExpressionError):
        literal("x" * (LONGEST + 1), whole_words=False, ignore_case=True)
