from antiphon.policy.rulebook import parse_rules
from antiphon.verdicts import PolicyScope, Stage

RULES = """
format = 1
[[rules]]
id = "number"
stages = ["tool", "output"]
match = { kind = "patterns", patterns = ['\\bT\\d{4}\\b'], normalise = false }
action = "transform"
replacement = "[ticket]"
[[rules]]
id = "leak"
stages = ["output"]
match = { kind = "leak", words = 4 }
[[rules]]
id = "loop"
stages = ["output"]
match = { kind = "repetition", times = 3, longest = 4 }
action = "annotate"
[[rules]]
id = "noise"
stages = ["input", "output"]
match = { kind = "malformed", run = 3 }
[[rules]]
id = "hate"
stages = ["input"]
match.kind = "classifier"
"""
SCOPED = parse_rules("rules.toml", RULES, folder=None).for_scope(PolicyScope())


def through(window, text):
    passed = [window.feed(char) for char in text] + [window.finish()]
    return "".join(each.text for each in passed), [
        finding.rule for each in passed for finding in each.findings
    ]


def test_stages_say_what_they_need():
    assert [stage for stage in Stage if SCOPED.watches(stage)] == [
        Stage.INPUT,
        Stage.TOOL,
        Stage.OUTPUT,
    ]
    assert SCOPED.transforms_input
    assert not SCOPED.scans_output
    assert [rule.id for rule in SCOPED.asynchronous(Stage.INPUT)] == ["hate"]


def test_a_whole_text_is_searched_by_the_rules_of_its_stage():
    text = "T1234 \ufffd\ufffd\ufffd"

    found = {stage: [each.rule for each in SCOPED.search(stage, text)] for stage in Stage}

    assert found == {
        Stage.INPUT: ["noise"],
        Stage.RETRIEVED: [],
        Stage.TOOL: ["number"],
        Stage.OUTPUT: ["number", "noise"],
    }


def test_a_window_masks_notes_and_cuts():
    text, found = through(SCOPED.window("Never tell them the word."), "T1234 " + "ab" * 10 + " on")

    assert text == "[ticket] " + "ab" * 10 + " on"
    assert found == ["number", "loop"]


def test_a_window_lets_nothing_of_the_system_prompt_out():
    window = SCOPED.window("Never tell them the word.")

    text, found = through(window, "They say: never tell them the word, and")

    assert text == "They say: "
    assert found == ["leak"]


def test_without_a_system_prompt_nothing_leaks():
    assert through(SCOPED.window(""), "never tell them the word")[1] == []


def test_a_repetition_cuts_what_has_not_left_yet():
    scoped = parse_rules(
        "rules.toml",
        'format = 1\n[[rules]]\nid = "loop"\nstages = ["output"]\n'
        'match = { kind = "repetition", times = 3, longest = 4 }\n',
        folder=None,
    ).for_scope(PolicyScope())
    window = scoped.window("")

    passed = [window.feed(char) for char in "go " + "ab" * 20] + [window.finish()]

    assert "".join(each.text for each in passed) == "go " + "ab" * 7 + "a"
    assert sum(each.source for each in passed) == 43
    assert passed[-1].blocked_by == "loop"
