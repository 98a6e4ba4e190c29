import pytest

from antiphon.errors import RulesError
from antiphon.policy.rulebook import parse_rules


def rules(body):
    return f'format = 1\n[[rules]]\nid = "one"\n{body}\n'


def refused(text, folder=None):
    with pytest.raises(RulesError) as caught:
        parse_rules("rules.toml", text, folder=folder)
    return caught.value


OUT = 'stages = ["output"]\n'
IN = 'stages = ["input"]\n'
WORDS = 'match = { kind = "phrases", phrases = ["heron"] }\n'


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        pytest.param('format = 1\nversion = "a b"', 2, "version", "1 to 64", id="version"),
        pytest.param(
            'format = 1\nrefusal.german = "Nein"', 2, "refusal.german", "language", id="language"
        ),
        pytest.param('format = 1\n[refusal]\nde = " "', 3, "refusal.de", "1 to 2000", id="empty"),
        pytest.param(
            rules(IN + WORDS) + '[[rules]]\nid = "one"\n' + IN + WORDS,
            8,
            "rules[1].id",
            "'one' is the id of the rule in line 2",
            id="an id twice",
        ),
        pytest.param(
            rules(IN + WORDS).replace('"one"', '"One!"'), 3, "rules[0].id", "lower-case", id="id"
        ),
        pytest.param(rules("stages = []\n" + WORDS), 4, "rules[0].stages", "none", id="no stage"),
        pytest.param(
            rules('stages = ["input",\n"input"]\n' + WORDS),
            5,
            "rules[0].stages[1]",
            "'input' is there twice",
            id="a stage twice",
        ),
        pytest.param(
            rules(IN + WORDS + 'plans = ["a", ""]'), 6, "rules[0].plans[1]", "empty", id="a plan"
        ),
        pytest.param(
            rules(IN + WORDS + 'tenants = [" "]'), 6, "rules[0].tenants[0]", "empty", id="a tenant"
        ),
        pytest.param(
            rules(IN + 'match.kind = "classifier"\naction = "transform"'),
            6,
            "rules[0].action",
            "a classifier rule can't transform",
            id="a classifier transforms",
        ),
        pytest.param(
            rules(OUT + 'match.kind = "repetition"\naction = "transform"'),
            6,
            "rules[0].action",
            "a repetition rule can't transform",
            id="a repetition transforms",
        ),
        pytest.param(
            rules(IN + WORDS + 'replacement = "x"'),
            6,
            "rules[0].replacement",
            "'block'",
            id="a replacement that does nothing",
        ),
        pytest.param(
            rules(IN + WORDS + f'action = "transform"\nreplacement = "{"x" * 201}"'),
            7,
            "rules[0].replacement",
            "200",
            id="a long replacement",
        ),
        pytest.param(
            rules(IN + WORDS + 'action = "annotate"\nmessage.de = "Nein"'),
            7,
            "rules[0].message",
            "'annotate'",
            id="a message that nobody gets",
        ),
        pytest.param(
            rules(IN + WORDS + 'message = { "x y" = "No" }'),
            6,
            "rules[0].message.x y",
            "language",
            id="a message's language",
        ),
        pytest.param(
            rules(IN + WORDS + "keep_blocked = true"),
            6,
            "rules[0].keep_blocked",
            "blocks output",
            id="keeping what was never cut",
        ),
        pytest.param(
            rules(IN + 'match.kind = "patterns"\nmatch.patterns = []'),
            6,
            "rules[0].match.patterns",
            "none",
            id="no pattern",
        ),
        pytest.param(
            rules(IN + "match.kind = 'patterns'\nmatch.patterns = [\n'ab',\n'a+']"),
            8,
            "rules[0].match.patterns[1]",
            "'a+'",
            id="a pattern without an end",
        ),
        pytest.param(
            rules(IN + "match.kind = 'patterns'\nmatch.patterns = ['ab(']"),
            6,
            "rules[0].match.patterns[0]",
            "character ",
            id="a broken pattern",
        ),
        pytest.param(
            rules(IN + 'match.kind = "phrases"'), 5, "rules[0].match.phrases", "none", id="none"
        ),
        pytest.param(
            rules(IN + 'match = { kind = "phrases", phrases = ["a", " "] }'),
            5,
            "rules[0].match.phrases[1]",
            "",
            id="an empty phrase",
        ),
        pytest.param(
            rules(IN + 'match.kind = "phrases"\nmatch.file = "words.txt"'),
            6,
            "rules[0].match.file",
            "no folder",
            id="a file beside nothing",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "personal", entities = [] }'),
            5,
            "rules[0].match.entities",
            "none",
            id="no entity",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "personal", entities = ["EMAIL"] }'),
            5,
            "rules[0].match.entities[0]",
            "did you mean 'EMAIL_ADDRESS'?",
            id="an entity",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "secrets", kinds = ["openai"] }'),
            5,
            "rules[0].match.kinds[0]",
            "did you mean 'openai_key'?",
            id="a kind of secret",
        ),
        pytest.param(
            rules(OUT + 'action = "transform"\nmatch.kind = "secrets"'),
            6,
            "rules[0].match.kinds",
            "private_key and jwt may be longer",
            id="secrets without an end",
        ),
        pytest.param(
            rules(IN + 'match.kind = "classifier"\nmatch.thresholds.hat = 0.5'),
            6,
            "rules[0].match.thresholds.hat",
            "did you mean 'hate'?",
            id="a category",
        ),
        pytest.param(
            rules(IN + 'match.kind = "classifier"\nmatch.thresholds."hate" = 1.5'),
            6,
            "rules[0].match.thresholds.hate",
            "from 0 to 1",
            id="a threshold",
        ),
        pytest.param(
            rules(IN + 'match.kind = "upstream"\nmatch.thresholds.hate = -1'),
            6,
            "rules[0].match.thresholds.hate",
            "from 0 to 1",
            id="an upstream's threshold",
        ),
        pytest.param(
            rules('stages = ["tool", "output"]\nmatch.kind = "injection"'),
            4,
            "rules[0].stages[1]",
            "not at 'output'",
            id="an injection in the output",
        ),
        pytest.param(
            rules(IN + 'match = { kind = "injection", at_least = 2 }'),
            5,
            "rules[0].match.at_least",
            "from 0 to 1",
            id="an injection's score",
        ),
        pytest.param(
            rules('stages = ["output", "input"]\nmatch.kind = "leak"'),
            4,
            "rules[0].stages[1]",
            "not at 'input'",
            id="a leak in the input",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "leak", words = 2 }'),
            5,
            "rules[0].match.words",
            "from 3 to 64",
            id="words",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "repetition", times = 2 }'),
            5,
            "rules[0].match.times",
            "from 3 to 1000",
            id="times",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "repetition", longest = 513 }'),
            5,
            "rules[0].match.longest",
            "from 1 to 512",
            id="longest",
        ),
        pytest.param(
            rules(OUT + 'match = { kind = "malformed", run = 0 }'),
            5,
            "rules[0].match.run",
            "from 1 to 1000",
            id="run",
        ),
        pytest.param(
            rules(IN + 'match = { kind = "guard", model = "", format = "llama_guard" }'),
            5,
            "rules[0].match.model",
            "empty",
            id="a guard's model",
        ),
    ],
)
def test_what_a_rule_gets_wrong_is_said_with_line_and_key(text, line, key, problem):
    error = refused(text)

    assert (error.source, error.line, error.key) == ("rules.toml", line, key)
    assert problem in error.problem


def test_too_many_rules_are_refused():
    text = "format = 1\n" + "".join(
        f'[[rules]]\nid = "r{number}"\nstages = ["output"]\nmatch.kind = "malformed"\n'
        for number in range(501)
    )

    error = refused(text)

    assert (error.line, error.key) == (2002, "rules[500]")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("missing.txt", None, "missing.txt: can't be read: No such file or directory"),
        ("words.txt", b"\xff\xfe", "words.txt: is not UTF-8"),
        ("words.txt", b"a" * ((1 << 20) + 1), "words.txt: is longer than 1 MiB"),
        ("words.txt", b"word\n" * 10_001, "lists more than 10000 phrases"),
        ("words.txt", b"# none\n\n", "names none, nor a file that does"),
    ],
)
def test_a_file_of_phrases_that_is_no_use_is_refused(tmp_path, name, content, problem):
    if content is not None:
        (tmp_path / name).write_bytes(content)

    error = refused(rules(IN + f'match.kind = "phrases"\nmatch.file = "{name}"'), tmp_path)

    assert problem in error.problem
    assert error.key in {"rules[0].match.file", "rules[0].match.phrases"}
