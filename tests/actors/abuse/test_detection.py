"""Weeks of people, programs and farms in front of the detection, on clocks of the test's."""

import random

import pytest

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.actions import GOOD
from antiphon.actors.abuse.signals import Action, Kind, Signal, Subject
from antiphon.testing.abuse import DAY_S, HOUR_S, JAILBREAK, Bench, days_of_a_person

HOME = "203.0.113.9"
USER, ADDRESS = Kind.USER, Kind.ADDRESS


# ── those who have done nothing ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_a_person_is_never_acted_against_in_weeks(seed: int):
    """Some of whose prompts are blocked, one of them as a jailbreak, with a key typed wrong."""
    rng = random.Random(seed)
    bench = Bench(AbuseSettings(people_plans=("chat",)))
    bench.settings = AbuseSettings(people_plans=("chat",))
    for pause in days_of_a_person(rng, 21):
        bench.clock.now += pause
        if rng.random() < 0.01:
            bench.detection.key_failed(HOME)
        rule = JAILBREAK if rng.random() < 0.003 else "harm" if rng.random() < 0.05 else None
        bench.send("alice", address=HOME, plan="chat", rule=rule)

    assert bench.changes == []


def a_program(blocked: float, jailbreaks: float) -> Bench:
    """One key that asks for others, day and night, evenly, from ever other machines."""
    rng = random.Random(7)
    bench = Bench()
    while bench.clock.now < 14 * DAY_S:
        bench.clock.now += 30.0
        dice = rng.random()
        rule = "harm" if dice < blocked else JAILBREAK if dice < blocked + jailbreaks else None
        bench.send("app", address=f"198.51.100.{rng.randrange(200)}", rule=rule)
    return bench


@pytest.mark.parametrize(("blocked", "jailbreaks"), [(0.04, 0.0), (0.02, 0.005), (0.0, 0.01)])
def test_a_program_that_asks_for_others_is_never_acted_against(blocked: float, jailbreaks: float):
    assert a_program(blocked, jailbreaks).changes == []


@pytest.mark.parametrize(("blocked", "jailbreaks"), [(0.08, 0.0), (0.04, 0.01), (0.0, 0.02)])
def test_one_of_which_very_much_is_blocked_is_warned_at_most(blocked: float, jailbreaks: float):
    assert {action for _, action in a_program(blocked, jailbreaks).acted()} <= {Action.WARN}


def test_a_rhythm_alone_never_suspends_nor_does_anything_else():
    bench = Bench(AbuseSettings(people_plans="chat", warn_at=5.0, slow_at=6.0, suspend_at=7.0))
    for _ in range(20_000):
        bench.clock.now += 1.0
        assert bench.send("bot", address=HOME, plan="chat") is Action.NONE

    assert bench.score(USER, "bot") == pytest.approx(4.0)


def test_a_rhythm_is_nothing_on_plans_that_are_for_programs():
    bench = Bench(AbuseSettings(people_plans="chat"))
    for _ in range(100):
        bench.clock.now += 1.0
        bench.send("batch", plan="paid")
        bench.send("batch")

    assert bench.counted == []


def test_many_honest_people_behind_one_address_are_never_acted_against():
    """Five hundred, of whose prompts one in fifty is blocked, and who mistype keys, too."""
    rng = random.Random(11)
    bench = Bench()
    while bench.clock.now < 2 * DAY_S:
        bench.clock.now += rng.expovariate(1 / 7.0)
        if rng.random() < 0.01:
            bench.detection.key_failed(HOME)
        user = f"user {rng.randrange(500)}"
        bench.send(user, address=HOME, rule="harm" if rng.random() < 0.02 else None)

    assert bench.changes == []
    assert bench.detection.standing(Subject(ADDRESS, HOME)) == GOOD


def test_one_of_them_who_attacks_is_suspended_alone():
    rng = random.Random(12)
    bench = Bench(AbuseSettings(suspend_addresses=True))
    while bench.clock.now < DAY_S / 4:
        bench.clock.now += 7.0
        bench.send(f"user {rng.randrange(300)}", address=HOME)
        bench.send("mallory", address=HOME, rule=JAILBREAK)

    assert ("mallory", Action.SUSPEND) in bench.acted()
    others = {action for name, action in bench.acted() if name != "mallory"}
    assert others <= {Action.WARN}, "an operator may be told of the address, nobody else"


def test_prompts_of_somebody_in_distress_count_for_nothing():
    bench = Bench()
    for category in ("self-harm", "self-harm/intent", "self-harm/instructions"):
        for _ in range(100):
            bench.send("alice", address=HOME, rule="classifier", category=category)

    assert bench.counted == []
    assert len(bench.changes) == 0


def test_without_a_blocked_prompt_nobody_is_suspended():
    bench = Bench(AbuseSettings(suspend_addresses=True, people_plans="chat"))
    for number in range(5_000):
        bench.clock.now += 0.5
        bench.detection.key_failed(HOME)
        bench.detection.flooded(HOME, "address_flood")
        bench.detection.came(f"user {number % 40}", "key", "chat", HOME)
        bench.detection.came("shared", "shared", "chat", f"198.51.100.{number % 250}")

    assert bench.action(ADDRESS, HOME) is Action.SLOW
    assert not {action for _, action in bench.acted()} & {Action.SUSPEND}
    assert "shared" not in {name for name, _ in bench.acted()}


# ── those who have ───────────────────────────────────────────────────────────────────────────────


def test_a_scripted_jailbreak_is_warned_of_then_slowed_then_suspended():
    bench = Bench()
    seen = []
    for _ in range(60):
        bench.clock.now += 5.0
        seen.append(bench.send("mallory", address=HOME, rule=JAILBREAK))

    assert list(dict.fromkeys(seen)) == [Action.NONE, Action.WARN, Action.SLOW, Action.SUSPEND]
    assert seen.index(Action.SUSPEND) < 15


def test_a_farm_of_accounts_below_the_radar_has_its_address_slowed():
    """Each account stops before it is warned of; the address doesn't."""
    bench = Bench()
    for account in range(30):
        for _ in range(3):
            bench.clock.now += 10.0
            bench.send(f"fresh {account}", address=HOME, rule=JAILBREAK)

    assert bench.action(ADDRESS, HOME) is Action.SLOW
    assert {name for name, _ in bench.acted()} == {HOME}


def test_whoever_sends_little_but_blocked_prompts_is_suspended_when_it_goes_on():
    """At the pace that the brake of 30 an hour leaves."""
    bench = Bench()
    for _ in range(30):
        bench.clock.now += 2.0
        bench.send("mallory", rule="harm")
    first = bench.action(USER, "mallory")
    for _ in range(30):
        bench.clock.now += 120.0
        bench.send("mallory", rule="harm")

    assert first is Action.SLOW
    assert bench.action(USER, "mallory") is Action.SUSPEND


def test_a_farm_of_accounts_is_suspended_by_address_where_the_settings_say_so():
    bench = Bench(AbuseSettings(suspend_addresses=True))
    for account in range(10):
        for _ in range(5):
            bench.clock.now += 10.0
            bench.send(f"fresh {account}", address=HOME, rule=JAILBREAK)

    assert bench.action(ADDRESS, HOME) is Action.SUSPEND


def test_prompts_about_minors_weigh_more_than_all_others():
    bench = Bench()
    for _ in range(7):
        bench.send("mallory", rule="classifier", category="sexual/minors")

    assert bench.action(USER, "mallory") is Action.SUSPEND


def test_what_a_jailbreak_is_is_said_by_rule_or_category():
    bench = Bench(AbuseSettings(jailbreak_rules="dan-*, prompt-attack"))
    bench.send("a", rule="dan-mode")
    bench.send("a", rule="classifier", category="prompt-attack")
    bench.send("a", rule="jailbreak")

    assert bench.counted == [Signal.JAILBREAK, Signal.JAILBREAK, Signal.BLOCKED_PROMPT]


# ── and the way back ─────────────────────────────────────────────────────────────────────────────


def suspended(**settings: object) -> Bench:
    bench = Bench()
    bench.configure(**settings)
    while bench.send("mallory", address=HOME, rule=JAILBREAK) is not Action.SUSPEND:
        bench.clock.now += 1.0
    return bench


def test_a_suspension_ends_by_itself_and_leaves_less_than_half_of_the_score():
    bench = suspended()
    bench.clock.now += HOUR_S - 1
    before = bench.action(USER, "mallory")
    bench.clock.now += 2

    assert before is Action.SUSPEND
    assert bench.action(USER, "mallory") is Action.WARN
    assert bench.score(USER, "mallory") <= 15.0
    last = bench.changes[-1]
    assert (last.before.action, last.after.action) == (Action.SUSPEND, Action.WARN)
    bench.clock.now += 2 * HOUR_S
    assert bench.action(USER, "mallory") is Action.NONE


def test_what_was_under_way_when_it_began_does_not_make_it_longer_or_the_next_one_due():
    bench = suspended()
    until_ms = bench.detection.standing(Subject(USER, "mallory")).until_ms
    for _ in range(200):
        bench.detection.prompt_blocked("mallory", None, JAILBREAK, None)

    assert bench.detection.standing(Subject(USER, "mallory")).until_ms == until_ms
    bench.clock.now += HOUR_S + 1
    assert bench.action(USER, "mallory") is Action.WARN


def test_who_goes_on_after_a_suspension_is_suspended_again():
    bench = suspended()
    bench.clock.now += HOUR_S + 1
    for _ in range(12):
        bench.send("mallory", rule=JAILBREAK)

    assert bench.action(USER, "mallory") is Action.SUSPEND


def test_forgiving_restores_at_once_and_begins_anew():
    bench = suspended()

    assert bench.detection.forgive(Subject(USER, "mallory"))
    assert bench.action(USER, "mallory") is Action.NONE
    assert bench.score(USER, "mallory") == 0.0
    assert bench.send("mallory", rule=JAILBREAK) is Action.NONE
    assert not bench.detection.forgive(Subject(USER, "nobody"))


def test_a_pardon_holds_until_its_end_and_what_was_counted_meanwhile_counts_then():
    bench = suspended()
    subject = Subject(USER, "mallory")
    bench.detection.pardon(subject, bench.clock.wall_ms() + 3_600_000)
    pardoned = [bench.send("mallory", rule=JAILBREAK) for _ in range(50)]
    bench.clock.now += HOUR_S + 1
    after = bench.send("mallory", rule=JAILBREAK)

    assert set(pardoned) == {Action.NONE}
    assert after is Action.SUSPEND


@pytest.mark.parametrize("exempt", ["mallory", "other, 203.0.113.0/24"])
def test_nothing_is_done_against_whom_the_settings_exempt(exempt: str):
    bench = Bench(AbuseSettings(exempt=exempt, slow_at=0, suspend_at=0))
    for account in ("mallory", "b", "c", "d"):
        for _ in range(30):
            bench.send(account, address=HOME, rule=JAILBREAK)

    named = {name for name, _ in bench.acted()}
    assert ("mallory" in named, HOME in named) == (exempt != "mallory", exempt == "mallory")


def test_a_new_half_life_counts_from_the_next_look():
    bench = Bench()
    bench.send("alice", rule=JAILBREAK)
    bench.clock.now += HOUR_S
    bench.configure(half_life_s=HOUR_S / 2, tolerance=0.0)

    assert bench.score(USER, "alice") == pytest.approx(0.75)


def test_memory_is_bounded_whoever_comes():
    bench = Bench(AbuseSettings(subjects=1_000))
    for number in range(100_000):
        bench.clock.now += 0.01
        bench.detection.prompt_blocked(f"user {number}", f"address {number}", JAILBREAK, None)
        bench.detection.came(f"user {number}", f"key {number}", None, f"address {number}")

    assert len(bench.detection) == 2_000
    assert bench.score(USER, "user 99999") == pytest.approx(3.0)
    assert bench.score(USER, "user 0") == 0.0


def test_those_who_are_acted_against_are_counted_while_they_are_remembered():
    bench = Bench(AbuseSettings(subjects=5))
    for number in range(20):
        for _ in range(5):
            bench.send(f"user {number}", rule=JAILBREAK)

    assert len(bench.detection.acted()) == 5
    bench.clock.now += DAY_S
    assert bench.detection.acted() == ()
