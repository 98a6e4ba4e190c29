import json
import shlex

import pytest
from click.testing import CliRunner

from antiphon import cli_policy
from antiphon.cli import main
from antiphon.policy.rulebook import default_text
from antiphon.testing.examples import blocks, is_as_shown, steps

RULES = """format = 1
refusal = { default = "No.", de = "Nein." }

[[rules]]
id = "harm"
stages = ["input", "output"]
match.kind = "classifier"
plans = ["school"]

[[rules]]
id = "heron"
stages = ["input", "output"]
match = { kind = "phrases", phrases = ["blue heron"] }

[[rules]]
id = "ticket"
stages = ["tool", "output"]
match = { kind = "patterns", patterns = ['\\bT\\d{4}\\b'] }
action = "transform"

[[rules]]
id = "loud"
stages = ["input"]
match = { kind = "phrases", phrases = ["stork"] }
shadow = true

[[rules]]
id = "guarded"
stages = ["input"]
match = { kind = "guard", model = "g", format = "qwen3guard" }
action = "annotate"
on_failure = "closed"
tenants = ["acme"]
"""


SCORER = cli_policy._scorer


class Words:
    name = "words"
    thresholds = {"hate": 0.5}
    injection_threshold = 0.5
    harmless_below = 0.05

    def scores(self, texts, *, light=False):
        return [{"hate": 0.9 if "hate" in text else 0.1} for text in texts]

    def injection(self, texts):
        return [0.0 for _ in texts]


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    """Settings of nobody's, and a classifier that needs no weights."""
    monkeypatch.setattr(cli_policy, "_scorer", Words)
    monkeypatch.setenv("ANTIPHON_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def rules(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(RULES)
    return file


def run(*arguments, **options):
    return CliRunner().invoke(main, ["policy", *map(str, arguments)], **options)


def tried(*arguments, **options):
    result = run("test", "--json", *arguments, **options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_check_shows_the_rules_and_what_waits_for_them(rules):
    result = run("check", rules)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{rules}: 5 rules, version ")
    assert any(
        line.split() == ["loud", "input", "phrases", "block", "(shadow)", "open", "everybody"]
        for line in lines
    )
    assert "input: the first byte waits for harm, heron" in lines
    assert "retrieved: no rule; nothing waits" in lines
    assert "tool: the model waits for ticket" in lines
    assert "output: text waits while it could still become a match of heron, ticket" in lines
    assert "output: each piece waits for harm" in lines


def test_check_names_line_and_key_of_what_is_wrong(rules):
    rules.write_text(RULES.replace('"blue heron"', '" "'))

    result = run("check", rules)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"antiphon: {rules}:13: rules[1].match.phrases[0]: ")


def test_check_of_a_file_that_is_not_there(tmp_path):
    result = run("check", tmp_path / "gone.toml")

    assert result.exit_code == 2
    assert "can't be read: No such file" in result.stderr


def test_show_prints_the_rules_that_come_with_the_server():
    result = run("show")

    assert result.stdout == default_text()
    assert "they come with Antiphon" in result.stderr


def test_show_prints_the_rules_of_the_settings(rules, monkeypatch):
    monkeypatch.setenv("ANTIPHON_POLICY_RULES", str(rules))

    result = run("show")

    assert result.stdout == RULES
    assert str(rules) in result.stderr


def test_a_text_that_is_blocked_says_by_what_and_what_the_client_is_told(rules):
    result = run("test", "--rules", rules, "--language", "de-AT", "a BLUE  heron, a stork")

    assert result.exit_code == 0
    assert "stage input: blocked by heron" in result.stdout
    assert "the client is told: Nein." in result.stdout
    assert "block heron at 2–13: 'BLUE  heron'" in result.stdout
    assert "block loud at 17–22: 'stork', shadow: nothing is done" in result.stdout


def test_a_text_is_judged_as_for_a_plan_or_a_tenant(rules):
    free = tried("--rules", rules, "I hate it")
    school = tried("--rules", rules, "--plan", "school", "I hate it")
    acme = tried("--rules", rules, "--tenant", "acme", "I hate it")

    assert (free["blocked_by"], free["scores"]) == (None, None)
    assert (school["blocked_by"], school["flagged"]) == ("harm", ["hate"])
    assert acme["not_asked"] == ["guarded"]


def test_scores_and_rules_that_are_asked_elsewhere_are_shown(rules):
    result = run("test", "--rules", rules, "--plan", "school", "--tenant", "acme", "calm")

    assert "stage input: passes" in result.stdout
    assert "words: hate 0.100" in result.stdout
    assert "not asked here: guarded (guard (g))" in result.stdout


def test_a_masked_text_is_shown_as_it_goes_on(rules):
    result = run("test", "--rules", rules, "--stage", "tool", "see T1234 now")

    assert "stage tool: changed" in result.stdout
    assert result.stdout.endswith("goes on as:\nsee [removed] now\n")


def test_output_is_streamed_and_what_left_when_is_said(rules):
    result = run("test", "--rules", rules, "--stage", "output", "ok: T1234, a blue heron!")

    lines = result.stdout.splitlines()
    assert "stage output: blocked by heron" in lines[0]
    assert "     0–4: as it came: 'ok: '" in lines
    assert "     4–10: when 10 had come: '[removed],'" in lines
    assert lines[-2:] == ["    10–13: as it came: ' a '", "    13–24: never"]


def test_nothing_of_a_match_leaves_a_stream(rules):
    shown = tried("--rules", rules, "--stage", "output", "--plan", "school", "a blue heron flew")

    assert shown["blocked_by"] == "heron"
    assert shown["text"] == "a "
    assert shown["text"] == "".join(left["text"] for left in shown["stream"])


def test_a_classifier_that_blocks_output_says_that_it_saw_all_of_it_at_once(rules):
    arguments = ("--rules", rules, "--stage", "output", "--plan", "school", "I hate it")

    assert "the whole text was judged at once" in run("test", *arguments).stdout
    assert tried(*arguments)["text"] == ""


def test_a_classifier_that_cant_be_loaded_is_said_to_be(rules, monkeypatch):
    import antiphon.classifier

    def missing():
        raise FileNotFoundError(2, "No such file", "weights.bin")

    monkeypatch.setattr(antiphon.classifier, "load", missing)
    monkeypatch.setattr(cli_policy, "_scorer", SCORER)

    result = run("test", "--rules", rules, "--plan", "school", "calm")

    assert result.exit_code == 1
    assert "the classifier can't be loaded" in result.stderr


def test_a_text_may_come_on_standard_input(rules):
    assert tried("--rules", rules, "-", input="blue heron\n")["blocked_by"] == "heron"
    assert tried("--rules", rules, input="blue stork\n")["blocked_by"] is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\xff", "is not UTF-8"), (b"x" * ((1 << 20) + 1), "is longer than 1 MiB")],
)
def test_a_text_that_cant_be_read_is_refused(rules, data, problem):
    result = run("test", "--rules", rules, input=data)

    assert result.exit_code == 1
    assert problem in result.stderr


def test_control_characters_of_a_text_never_reach_the_terminal(rules):
    result = run("test", "--rules", rules, "--stage", "output", "\x1b[2Jblue heron")

    assert "\x1b" not in result.stdout


@pytest.fixture
def dataset(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(
        "text,label\na blue heron,banned\nI hate it,hate\n"
        "a stork,safe\nblue heron,safe\ncalm,safe\n"
    )
    return file


def test_rules_are_measured_on_a_file(rules, dataset):
    result = run("eval", dataset, "--rules", rules, "--plan", "school", "--json")

    measured = json.loads(result.stdout)
    assert (measured["rows"], measured["positives"]) == (5, 2)
    assert measured["blocked"][0] == 1.0
    assert measured["false_alarms"][0] == pytest.approx(1 / 3)
    assert [
        (each["rule"], each["flagged"], each["harmless"], each["first"])
        for each in measured["rules"]
    ] == [
        ("harm", 1, 0, 1),
        ("heron", 1, 1, 2),
        ("loud", 0, 1, 0),
    ]
    assert measured["classifier"]["flagged"][0] == 0.5


def test_a_measurement_is_shown_with_its_intervals(rules, dataset):
    result = run("eval", dataset, "--rules", rules)

    assert result.exit_code == 0
    assert "rows.csv: 5 texts, 2 of them to be flagged" in result.stdout
    assert "blocked of those to be flagged: 0.500 (0.095–0.905)" in result.stdout
    assert "| loud | block (shadow) | 0 | 1 | 0 |" in result.stdout
    assert "classifier" not in result.stdout


def test_output_rules_are_measured_too(rules, dataset):
    result = run("eval", dataset, "--rules", rules, "--stage", "output", "--json")

    assert [each["rule"] for each in json.loads(result.stdout)["rules"]] == ["heron", "ticket"]
    assert json.loads(result.stdout)["blocked"][0] == 0.5


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "text,label\n", None])
def test_a_file_that_cant_be_measured_on_is_refused(rules, tmp_path, content):
    file = tmp_path / "bad.csv"
    if content is not None:
        file.write_text(content)

    result = run("eval", file, "--rules", rules)

    assert result.exit_code == 1
    assert "bad.csv" in result.stderr


def test_marked_spans_measure_personal_data(tmp_path):
    file = tmp_path / "spans.json"
    span = {"entity_type": "EMAIL_ADDRESS", "start_position": 3, "end_position": 10}
    file.write_text(json.dumps([{"full_text": "to a@b.org", "spans": [span]}]))

    result = run("eval", file)
    shown = json.loads(run("eval", file, "--json").stdout)

    assert result.exit_code == 0
    assert "| EMAIL_ADDRESS | 1 | 0 | 0 | 1.000 (" in result.stdout
    assert shown["entities"]["all together"]["right"] == 1


def test_the_document_shows_what_the_command_says():
    [session] = blocks("docs/policy.md", "console")

    for step in steps(session):
        printed = CliRunner().invoke(main, shlex.split(step.command)[1:])
        assert printed.exit_code == 0
        assert is_as_shown(printed.stdout, step.printed)
