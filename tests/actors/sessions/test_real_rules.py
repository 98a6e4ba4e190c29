"""Guards over the windows of real rules: whatever the disguise, and wherever the output is cut into
tokens, no character of a match leaves, nor does the log-probability of one."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.sessions.guard import Guard
from antiphon.events import TokenLogprob
from antiphon.policy.rulebook import parse_rules
from antiphon.turn_events import FinishReason
from antiphon.verdicts import PolicyScope, Stage, Verdict

RULES = """\
format = 1
version = "1"

[[rules]]
id = "fruit"
stages = ["output"]
match = { kind = "phrases", phrases = ["forbidden fruit"] }
action = "block"

[[rules]]
id = "ticket"
stages = ["output"]
match = { kind = "patterns", patterns = ['\\bINC-\\d{3,5}\\b'], ignore_case = false }
action = "transform"
replacement = "[ticket]"
"""
SCOPED = parse_rules("rules.toml", RULES, folder=None).for_scope(PolicyScope())
PIECES = st.sampled_from(
    [
        *(
            "forbidden fruit",
            "f0rbidden  FRU1T",
            "for\u200bbidden fr\u00fcit",
            "forbidden",
            " fruit",
        ),
        *("INC-123", "INC-12", "INC-", "4567", " ", ".", "a", "\u00e9", '{"q":"', '"}', "fr"),
    ]
)
later = count(1.0).__next__
"""A moment at which whatever waits is due."""


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(PIECES, max_size=8),
    cuts=st.lists(st.integers(1, 5), min_size=1, max_size=30),
    scans=st.booleans(),
)
def test_nothing_of_a_match_leaves_at_whatever_border_it_is_cut(pieces, cuts, scans):
    text = "".join(pieces)
    whole = SCOPED.window("")
    expected = whole.feed(text).text + whole.finish().text
    findings = []
    guard = Guard(
        SCOPED.window(""),
        version="1",
        scans=scans,
        note=lambda finding, matched: findings.append((finding, matched)),
    )
    said: list[str] = []
    spelled: list[str] = []

    def say(piece):
        said.append(piece.text)
        spelled.extend(entry.text for entry in piece.logprobs)

    at = turn = 0
    while at < len(text):
        token = text[at : at + cuts[turn % len(cuts)]]
        at, turn = at + len(token), turn + 1
        entries = [TokenLogprob(text=each, data=each.encode(), logprob=-1.0) for each in token]
        say(guard.feed(token, entries))
        if turn % 3 == 0 and guard.due(later()) is not None:
            say(guard.scanned(Verdict(version="1")))
    say(guard.finish(FinishReason.STOP))
    while guard.due(later()) is not None:
        say(guard.scanned(Verdict(version="1")))

    assert guard.is_over
    assert "".join(said) == expected
    end = min((each.start for each, _ in findings if each.rule == "fruit"), default=len(text))
    gone = {
        place
        for each, _ in findings
        if each.rule == "ticket"
        for place in range(each.start, each.end)
    }
    allowed = [char for place, char in enumerate(text) if place not in gone and place < end]
    assert spelled == allowed
    for finding, matched in findings:
        assert matched == text[finding.start : finding.end]
        assert finding.stage is Stage.OUTPUT
