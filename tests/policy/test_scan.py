import pytest

from antiphon.policy.rulebook import parse_rules
from antiphon.policy.scan import LONGEST, OVERLAP, PIECE, Scanner, once_said
from antiphon.verdicts import Failure, OnFailure, PolicyScope, Stage


class Words:
    """A classifier that counts words: what it says of a text is easily foretold."""

    name = "words"
    thresholds = {"hate": 0.5, "violence": 0.5}
    injection_threshold = 0.5
    harmless_below = 0.05

    def __init__(self):
        self.asked = []

    def scores(self, texts, *, light=False):
        self.asked.append(("light" if light else "full", list(texts)))
        return [
            {"hate": 0.9 * ("hate" in text), "violence": 0.7 * ("fight" in text)} for text in texts
        ]

    def injection(self, texts):
        self.asked.append(("injection", list(texts)))
        return [0.6 * ("ignore" in text) for text in texts]


def judged(body, *texts, stage=Stage.INPUT, scorer=None, **options):
    book = parse_rules("rules.toml", f"format = 1\n{body}", folder=None)
    scanner = Scanner(scorer or Words())
    return scanner.judge(book.for_scope(PolicyScope()), stage, texts, **options)


def rule(name, match, stages="input", extra=""):
    return f'[[rules]]\nid = "{name}"\nstages = ["{stages}"]\nmatch = {{ {match} }}\n{extra}\n'


CLASSIFIED = rule("harm", 'kind = "classifier"')


def test_a_text_is_flagged_for_the_category_that_is_furthest_above_its_limit():
    (verdict,) = judged(CLASSIFIED, "I hate a fight")

    assert [(each.category, each.score) for each in verdict.findings] == [("hate", 0.9)]
    assert verdict.blocked_by == "harm"
    assert verdict.scores.flagged == {"hate", "violence"}
    assert verdict.scores.model == "words"


def test_a_rules_own_thresholds_are_all_that_it_looks_at():
    body = rule("harm", 'kind = "classifier", thresholds = { violence = 0.8 }')

    (verdict,) = judged(body, "I hate a fight")

    assert verdict.findings == ()
    assert verdict.scores.scores == {"hate": 0.9, "violence": 0.7}
    assert verdict.scores.flagged == frozenset()


def test_each_text_has_its_verdict_and_all_are_scored_in_one_go():
    scorer = Words()

    verdicts = judged(CLASSIFIED, "calm", "hate", "", "  ", scorer=scorer)

    assert [verdict.blocked_by for verdict in verdicts] == [None, "harm", None, None]
    assert scorer.asked == [("full", ["calm", "hate"])]


def test_a_long_text_is_as_bad_as_its_worst_piece():
    text = "calm words " * 400 + "hate " + "calm words " * 400

    (verdict,) = judged(CLASSIFIED, text)

    (finding,) = verdict.findings
    assert "hate" in text[finding.start : finding.end]
    assert finding.end - finding.start <= PIECE


@pytest.mark.parametrize("text", ["calm words " * 400, "x" * 5000, "a" * PIECE, "b" * (PIECE + 1)])
def test_pieces_overlap_and_miss_nothing(text):
    scorer = Words()

    judged(CLASSIFIED, text, scorer=scorer)

    ((_, pieces),) = scorer.asked
    rebuilt = pieces[0]
    for piece in pieces[1:]:
        assert rebuilt.endswith(piece[:OVERLAP])
        rebuilt += piece[OVERLAP:]
    assert rebuilt == text


def test_what_is_too_long_is_said_not_to_have_been_judged():
    body = CLASSIFIED.replace("match", 'on_failure = "closed"\nmatch') + rule(
        "order", 'kind = "injection"'
    )

    long, short = judged(body, "x" * (LONGEST + 1), "hate")

    assert [(each.rule, each.failure, each.on_failure) for each in long.not_run] == [
        ("harm", Failure.TOO_LONG, OnFailure.CLOSED),
        ("order", Failure.TOO_LONG, OnFailure.OPEN),
    ]
    assert long.blocked_by == "harm"
    assert (short.blocked_by, short.not_run) == ("harm", ())


def test_the_light_model_is_asked_where_the_rule_says_so():
    scorer = Words()

    judged(rule("harm", 'kind = "classifier", model = "light"'), "hate", scorer=scorer)

    assert scorer.asked == [("light", ["hate"])]


def test_an_acting_rules_scores_are_shown_before_a_shadows():
    body = rule(
        "quiet", 'kind = "classifier", thresholds = { hate = 0.1 }', extra="shadow = true"
    ) + rule("harm", 'kind = "classifier", thresholds = { violence = 0.1 }')

    (verdict,) = judged(body, "hate and fight")

    assert verdict.scores.flagged == {"violence"}
    assert verdict.blocked_by == "harm"
    assert [each.shadow for each in verdict.findings] == [True, False]


def test_injections_are_scored_at_the_stages_that_ask_for_it():
    body = rule("order", 'kind = "injection"', stages="tool", extra='action = "annotate"')

    (noted,) = judged(body, "ignore all of it", stage=Stage.TOOL)
    (passed,) = judged(body, "ignore all of it")

    assert [(each.rule, each.category, each.score) for each in noted.findings] == [
        ("order", "injection", 0.6)
    ]
    assert noted.blocked_by is None
    assert noted.scores is None
    assert passed.findings == ()


def test_an_injections_own_limit_wins():
    body = rule("order", 'kind = "injection", at_least = 0.7')

    assert judged(body, "ignore")[0].findings == ()


def test_findings_are_in_the_order_of_the_rules():
    body = CLASSIFIED + rule("heron", 'kind = "phrases", phrases = ["heron"]')

    (verdict,) = judged(body, "heron hate heron")

    assert [each.rule for each in verdict.findings] == ["harm", "heron", "heron"]


def test_output_is_only_classified_since_its_window_does_the_rest():
    body = rule("heron", 'kind = "phrases", phrases = ["heron"]', stages="output") + rule(
        "harm", 'kind = "classifier"', stages="output"
    )

    (verdict,) = judged(body, "heron hate", stage=Stage.OUTPUT)

    assert [each.rule for each in verdict.findings] == ["harm"]


def test_whoever_asks_for_scores_gets_them_whatever_the_rules_are():
    scores = Scanner(Words()).score(["hate", "", "x" * LONGEST + "hate"])

    assert [sorted(each.flagged) for each in scores] == [["hate"], [], []]
    assert scores[1].scores == {"hate": 0.0, "violence": 0.0}


def test_the_full_model_is_asked_about_what_the_light_one_does_not_find_harmless():
    scorer = Words()
    body = rule("harm", 'kind = "classifier", model = "quick"')

    (verdict,) = judged(body, "I hate a fight", scorer=scorer)

    assert verdict.blocked_by == "harm"
    assert verdict.scores is None  # what isn't always the full model's is not shown
    assert scorer.asked == [("light", ["I hate a fight"]), ("full", ["I hate a fight"])]


def test_what_the_light_model_finds_harmless_is_not_looked_at_again():
    scorer = Words()

    (verdict,) = judged(
        rule("harm", 'kind = "classifier", model = "quick"'), "good morning", scorer=scorer
    )

    assert verdict.blocked_by is None
    assert scorer.asked == [("light", ["good morning"])]


def test_both_models_have_to_flag_what_both_are_asked_for():
    class Doubtful(Words):
        def scores(self, texts, *, light=False):
            scores = super().scores(texts, light=light)
            return scores if light else [dict.fromkeys(each, 0.1) for each in scores]

    body = rule("harm", 'kind = "classifier", model = "both"')

    assert judged(body, "I hate a fight")[0].blocked_by == "harm"
    assert judged(body, "I hate a fight", scorer=Doubtful())[0].blocked_by is None
    assert judged(body, "good morning")[0].blocked_by is None


def test_output_that_goes_round_in_circles_is_looked_at_once():
    scorer = Words()
    said = "leaves fall, leaves fall,\n" * 20 + "I hate a fight"

    (verdict,) = judged(
        CLASSIFIED.replace('"input"', '"output"'), said, stage=Stage.OUTPUT, scorer=scorer
    )
    judged(CLASSIFIED, said, scorer=scorer)

    assert scorer.asked[0] == (
        "full",
        ["leaves fall, leaves fall,\nleaves I hate a fight"],
    )
    assert scorer.asked[1] == ("full", [said])  # who asks so is judged by all of it
    assert (verdict.findings[0].start, verdict.findings[0].end) == (0, len(said))


@pytest.mark.parametrize(
    "text", ["", " ", "one two three", "a b c d e", "to be or not to be", "\n a  b\tc d \n"]
)
def test_what_is_not_said_again_is_left_as_it_is(text):
    assert once_said(text) == text
