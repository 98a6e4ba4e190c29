import pytest

from antiphon.errors import RulesError
from antiphon.policy.rulebook import (
    default_rules,
    default_text,
    parse_rules,
    read_rules,
)
from antiphon.verdicts import REFUSAL, Action, PolicyScope, Stage

EVERYBODY = PolicyScope()
RULES = """
format = 1

[refusal]
default = "No."
de = "Nein."
pt-BR = "Não."

[[rules]]
id = "masked"
stages = ["output"]
match = { kind = "patterns", patterns = ['\\bT\\d{4}\\b'] }
action = "transform"

[[rules]]
id = "school"
stages = ["input", "output"]
match = { kind = "phrases", phrases = ["heron"] }
message = { fr = "Pas de hérons." }
plans = ["school"]

[[rules]]
id = "acme"
stages = ["output"]
match.kind = "classifier"
tenants = ["acme"]
shadow = true
"""


def rulebook(text=RULES, folder=None):
    return parse_rules("rules.toml", text, folder=folder)


def test_a_version_that_is_given_is_the_version():
    assert rulebook('format = 1\nversion = "2026-12-01"').version == "2026-12-01"


def test_else_the_version_changes_with_the_file_and_with_its_phrases(tmp_path):
    text = (
        'format = 1\n[[rules]]\nid = "a"\nstages = ["input"]\n'
        'match = { kind = "phrases", file = "words.txt" }'
    )
    versions = set()
    for body, words in [(text, "heron"), (text, "stork"), (text + "\n", "stork"), (text, "heron")]:
        (tmp_path / "words.txt").write_text(words)
        versions.add(rulebook(body, tmp_path).version)

    assert len(versions) == 3
    assert {len(version) for version in versions} == {12}


def test_phrases_come_from_the_rule_and_from_its_file(tmp_path):
    (tmp_path / "words.txt").write_text("# birds\n\n  heron \nblue stork\n")
    text = (
        'format = 1\n[[rules]]\nid = "birds"\nstages = ["input"]\n'
        'match = { kind = "phrases", phrases = ["crane"], file = "words.txt" }'
    )

    scoped = rulebook(text, tmp_path).for_scope(EVERYBODY)

    found = scoped.search(Stage.INPUT, "crane, heron, blue stork, birds, stork")
    assert [(each.start, each.end) for each in found] == [(0, 5), (7, 12), (14, 24)]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (["de"], "Nein."),
        (["de-AT", "en"], "Nein."),
        (["PT-br"], "Não."),
        (["pt"], "No."),
        (["nl", "de"], "Nein."),
        ([], "No."),
    ],
)
def test_a_refusal_is_in_the_first_language_there_is_a_text_in(languages, expected):
    assert rulebook().refusal("masked", languages) == expected


def test_a_rules_own_message_comes_first():
    book = rulebook()

    assert book.refusal("school", ["de", "fr"]) == "Pas de hérons."
    assert book.refusal("school", ["de"]) == "Nein."


def test_without_any_text_a_refusal_is_in_english():
    assert rulebook("format = 1").refusal("gone", ["xx"]) == REFUSAL


def test_rules_are_for_those_whom_they_name():
    book = rulebook()

    def ids(**scope):
        return [rule.id for rule in book.for_scope(PolicyScope(**scope)).rules]

    assert ids() == ["masked"]
    assert ids(plan="school") == ["masked", "school"]
    assert ids(plan="other", tenant="acme") == ["masked", "acme"]


def test_who_has_the_same_rules_shares_them():
    book = rulebook()

    first = book.for_scope(PolicyScope(tenant="a"))

    assert book.for_scope(PolicyScope(tenant="b", plan="c")) is first
    assert book.for_scope(PolicyScope(tenant="acme")) is not first


def test_only_so_many_selections_are_kept():
    text = "format = 1\n" + "".join(
        f'[[rules]]\nid = "r{number}"\nstages = ["output"]\nmatch.kind = "malformed"\n'
        f'tenants = ["t{number}"]\n'
        for number in range(100)
    )
    book = rulebook(text)

    first = book.for_scope(PolicyScope(tenant="t0"))
    for number in range(100):
        book.for_scope(PolicyScope(tenant=f"t{number}"))

    again = book.for_scope(PolicyScope(tenant="t0"))
    assert again is not first
    assert again.rules == first.rules


def test_a_file_that_cant_be_read_is_no_rules(tmp_path):
    with pytest.raises(RulesError, match=r"gone\.toml: can't be read: No such file"):
        read_rules(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(RulesError, match="is not UTF-8"):
        read_rules(tmp_path / "bytes.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(RulesError, match="is longer than 1 MiB"):
        read_rules(tmp_path / "long.toml")


def test_a_file_is_read_with_what_lies_beside_it(tmp_path):
    (tmp_path / "words.txt").write_text("heron")
    (tmp_path / "rules.toml").write_text(
        'format = 1\n[[rules]]\nid = "a"\nstages = ["input"]\n'
        'match = { kind = "phrases", file = "words.txt" }'
    )

    assert read_rules(tmp_path / "rules.toml").rules[0].id == "a"


def test_the_default_rules_can_be_read_and_act_as_they_say():
    book = default_rules()
    actions = {rule.id: (rule.action, rule.shadow) for rule in book.rules}

    assert actions["harmful-request"] == (Action.BLOCK, False)
    assert actions["injected-instructions"] == (Action.ANNOTATE, False)
    assert actions["endless-repetition"] == (Action.BLOCK, True)
    assert not book.for_scope(EVERYBODY).transforms_input
    assert book.for_scope(EVERYBODY).scans_output


def test_the_examples_among_the_default_rules_can_be_read_too(tmp_path):
    (tmp_path / "project-names.txt").write_text("blue heron\n")
    lines = default_text().partition("# Examples of what else there is")[2].splitlines()
    code = [line[2:] for line in lines if line.startswith("# ") and _is_toml(line[2:])]

    book = rulebook("format = 1\n" + "\n".join(code), tmp_path)

    assert [rule.id for rule in book.rules] == [
        "personal-data-in-answer",
        "project-names",
        "ticket-number",
        "guarded",
        "second-opinion",
    ]


def _is_toml(line):
    return line.startswith("[") or " = " in line
