import pytest

from antiphon.errors import RulesError
from antiphon.policy.reading import LONGEST_FILE, key_of, meant, read_form

HEAD = "format = 1\n"
RULE = '\n[[rules]]\nid = "words"\nstages = ["input"]\nmatch.kind = "phrases"\n'


def refused(text):
    with pytest.raises(RulesError) as caught:
        read_form("rules.toml", text)
    return caught.value.line, caught.value.key, caught.value.problem


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("format = 1\nrules = [", 2, "", "is not TOML: invalid value"),
        ("format = 1\n\nid == 3", 3, "", "is not TOML: invalid value"),
        ("", 1, "", "'format' is missing"),
        ("\nformat = 2", 2, "format", "can't be 2; known are 1"),
        (HEAD + "version = 3", 2, "version", "expected str | null, got int"),
        (HEAD + "ruls = 1", 2, "ruls", "is no such key; did you mean 'rules'?"),
        (HEAD + RULE + "acton = 1", 7, "rules[0].acton", "is no such key; did you mean 'action'?"),
        (
            HEAD + RULE + 'action = "blck"',
            7,
            "rules[0].action",
            "can't be 'blck'; did you mean 'block'?",
        ),
        (HEAD + RULE + 'on_failure = "shut"', 7, "rules[0].on_failure", "known are closed, open"),
        (
            HEAD + RULE + "match.phrase = []",
            7,
            "rules[0].match.phrase",
            "is no such key; did you mean 'phrases'?",
        ),
        (
            HEAD + RULE + RULE.replace("phrases", "phrase"),
            11,
            "rules[1].match.kind",
            "'phrase' is no kind of matcher; did you mean 'phrases'?",
        ),
        (HEAD + '\n[[rules]]\nid = "x"\nstages = []', 3, "rules[0]", "'match' is missing"),
        (
            HEAD + RULE + 'match.phrases = [\n"a",\n3]',
            9,
            "rules[0].match.phrases[1]",
            "expected str, got int",
        ),
        (
            HEAD + '[[rules]]\nid = "x"\nmatch.kind = "leak"\nstages = ["input", "inputs"]',
            5,
            "rules[0].stages[1]",
            "can't be 'inputs'; did you mean 'input'?",
        ),
        (
            HEAD + '[[rules]]\nid = "x"\nstages = []\nmatch = { words = 3 }',
            5,
            "rules[0].match",
            "'kind' is missing",
        ),
        (
            HEAD + RULE.replace("phrases", "classifier") + "match.thresholds.hate = 0\n"
            'match.thresholds.sexual = "high"',
            8,
            "rules[0].match.thresholds.sexual",
            "expected float, got str",
        ),
        (
            HEAD + RULE.replace("phrases", "classifier") + 'match.model = "heavy"',
            7,
            "rules[0].match.model",
            "can't be 'heavy'; known are both, full, light, quick",
        ),
        (HEAD + "[refusal]\n\nde = 3", 4, "refusal.de", "expected str, got int"),
    ],
)
def test_what_is_wrong_with_the_form_is_said_with_line_and_key(text, line, key, problem):
    at, named, said = refused(text)

    assert (at, named) == (line, key)
    assert problem in said


def test_a_file_that_is_too_long_is_not_read():
    assert refused("#" * (LONGEST_FILE + 1)) == (0, "", "is longer than 1 MiB")


def test_a_file_that_is_nested_too_deeply_is_refused():
    assert refused("a = " + "[" * 20_000)[2] == "is nested too deeply"


def test_what_was_written_is_told_from_what_is_a_default():
    file = read_form("rules.toml", HEAD + RULE)

    assert file.written(("rules", 0, "match", "kind"))
    assert not file.written(("rules", 0, "match", "phrases"))
    assert not file.written(("rules", 1, "id"))


def test_a_key_is_named_as_it_is_written():
    assert key_of(("rules", 2, "match", "entities", 0)) == "rules[2].match.entities[0]"


def test_a_word_that_is_like_nothing_gets_all_that_are_known():
    assert meant("zzz", ("b", "a")) == "known are a, b"
