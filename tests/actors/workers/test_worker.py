"""What the workers do with conversations in which turns have ended."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from antiphon import faults
from antiphon.context_records import MemoryOrigin
from antiphon.errors import EngineUnavailable, QueueFull, StoreFailed, StoreUnavailable
from antiphon.events import CancelCause
from antiphon.fault_plan import Action as Harm
from antiphon.fault_plan import Fault, FaultPlan, Site
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, ConversationId, NodeId
from antiphon.records import User
from antiphon.supervision.exits import Stopped
from antiphon.testing.chat import MODEL, ScriptedChat
from antiphon.testing.judging import ScriptedJudge, ScriptedModeration
from antiphon.testing.work_store import WorkStore
from antiphon.testing.workers import working
from antiphon.turn_events import FinishReason, Refused
from antiphon.verdicts import Action, OnFailure, Stage

HELLO = ("How do I sort a list in Python?", "Call sorted().")
ABOUT_ME = ("My name is Mia and I live in Graz.", "Hello Mia!")
LONG = ("Tell me of Rome. " + "word " * 300, "Rome is old. " + "word " * 400)
"""Some 900 tokens: three of them are more than the scripted model's window leaves for turns."""


def titled(store: WorkStore) -> str | None:
    return store.title("conv")


async def test_a_conversation_gets_a_title_by_the_model(autojump_clock: object):
    store = WorkStore()
    chat = ScriptedChat(text=["Sorting Lists", " in Python\n"])
    async with working(store, chat) as rig:
        await trio.sleep(0.1)
        store.add("conv", HELLO)
        rig.ends.end()
        await store.idle()

    assert titled(store) == "Sorting Lists in Python"
    assert rig.telemetry.named("work_finished") == [("title", "model"), ("summary", "none")]
    [(seconds,)] = rig.telemetry.named("work_done")
    assert 0.5 < float(str(seconds)) < 3


class Unreadable(WorkStore):
    """Whoever looks for work meets a defect."""

    async def take_work(self, *args: Any, **options: Any) -> Any:
        raise ValueError("a row that nobody can read")


async def test_workers_that_cannot_be_kept_running_leave_the_tree_alone(autojump_clock: object):
    async with working(Unreadable()) as rig:
        await trio.sleep(1800)
        assert rig.outcomes == []
        rig.stop.set()


async def test_an_answer_that_is_no_title_is_replaced_by_what_was_said(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    async with working(store) as rig:
        await store.idle()

    assert titled(store) == "Sort a list in Python"
    assert ("title", "extract") in rig.telemetry.named("work_finished")


async def test_a_turn_of_its_own_is_in_the_background_free_and_kept_apart(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    async with working(store) as rig:
        await store.idle()

    turn = rig.chat.turns[0].turn
    assert (turn.model, turn.background, turn.upkeep) == (MODEL, True, True)
    assert (turn.user, turn.tenant, turn.salt, turn.plan) == ("ada", "acme", "acme", None)
    assert turn.unjudged == len(turn.messages)
    assert turn.sampling.temperature == 0
    assert turn.max_tokens == 16


async def test_the_local_user_is_nobody(autojump_clock: object):
    store = WorkStore()
    local = User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=0)
    store.people[LOCAL_USER] = local
    store.add("conv", HELLO, user=local)
    async with working(store) as rig:
        await store.idle()

    assert (rig.chat.turns[0].turn.user, rig.chat.turns[0].turn.salt) == (None, None)


@pytest.mark.parametrize("context", [{"titles": False}, {"titles": True, "summaries": False}, {}])
async def test_only_what_is_wanted_is_made(autojump_clock: object, context: dict[str, Any]):
    store = WorkStore()
    store.add("conv", HELLO, title="Mine")
    async with working(store, **context) as rig:
        await store.idle()

    assert rig.chat.turns == []
    assert titled(store) == "Mine"
    assert store.talks[ConversationId("conv")].remembered == "conv-1"


async def test_a_conversation_without_an_answer_waits_for_one(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", HELLO)
    del talk.items[1]
    async with working(store) as rig:
        await store.idle()
        assert titled(store) is None
        store.say("conv", HELLO)
        rig.ends.end()
        await store.idle()

    assert titled(store) == "Sort a list in Python"


async def test_a_long_conversation_is_summarised(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG, title="T")
    async with working(store) as rig:
        await store.idle()

    summary = store.talks[ConversationId("conv")].summary
    assert summary is not None
    assert summary.made_by == "extract"
    assert "My name is Mia and I live in Graz." in summary.text
    assert (summary.items, summary.until) == (6, "conv-5")
    assert ("summary", "extract") in rig.telemetry.named("work_finished")


async def test_a_summary_goes_on_from_the_last_one(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG, title="T")
    async with working(store) as rig:
        await store.idle()
        first = store.talks[ConversationId("conv")].summary
        store.say("conv", LONG, LONG)
        rig.ends.end()
        await store.idle()
        second = store.talks[ConversationId("conv")].summary

    assert first is not None
    assert second is not None
    assert second.items > first.items
    assert second.tokens > first.tokens
    assert "My name is Mia and I live in Graz." in second.text


async def test_a_model_that_keeps_the_facts_writes_the_summary(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG, title="T")
    text = "The user is called Mia, lives in Graz, and asks about Rome several times."
    async with working(store, ScriptedChat(text=[text])) as rig:
        await store.idle()

    summary = store.talks[ConversationId("conv")].summary
    assert summary is not None
    assert (summary.text, summary.made_by) == (text, MODEL)
    assert rig.chat.turns[0].turn.max_tokens == 192


async def test_what_users_say_of_themselves_is_remembered_where_there_is_a_memory(
    autojump_clock: object,
):
    store = WorkStore()
    store.add("with", ABOUT_ME, title="T", memory=True)
    store.add("without", ("My name is Eve.", "Hello Eve!"), title="T")
    async with working(store) as rig:
        await store.idle()

    [memory] = store.memories
    assert memory.text == "My name is Mia and I live in Graz."
    assert (memory.origin, memory.item) == (MemoryOrigin.STATED, "with-0")
    assert (memory.user, memory.conversation) == ("ada", "with")
    assert rig.telemetry.named("work_finished").count(("memory", "extract")) == 1


async def test_a_conversation_may_do_without_the_memory_that_all_have(autojump_clock: object):
    store = WorkStore()
    talk = store.add("off", ABOUT_ME, title="T", memory=False)
    async with working(store, memory=True) as rig:
        await store.idle()
        talk.conversation = replace(talk.conversation, memory=None)
        store.say("off", HELLO)
        rig.ends.end()
        await store.idle()

    assert store.memories == []  # also when it has one later: it was said while there was none


async def test_nothing_is_learned_twice(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, title="T", memory=True)
    async with working(store) as rig:
        await store.idle()
        store.memories.clear()  # as if the user had deleted it
        store.say("conv", HELLO)
        rig.ends.end()
        await store.idle()

    assert store.memories == []
    assert store.talks[ConversationId("conv")].remembered == "conv-3"


async def test_what_was_blocked_is_neither_titled_nor_remembered(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", ABOUT_ME, memory=True)
    refusal = {"content": [{"type": "refusal", "refusal": "No."}], "withheld": ["conv-0"]}
    talk.items[1] = replace(talk.items[1], body=refusal)
    async with working(store) as rig:
        await store.idle()

    assert (titled(store), store.memories, rig.chat.turns) == (None, [], [])


# ── the policy ───────────────────────────────────────────────────────────────────────────────────


async def test_output_that_the_policy_blocks_is_not_used(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        turn.say("Sorting Lists in Python\n")
        turn.feed(Refused(choice=0, text="No."))
        turn.finish(FinishReason.CONTENT_FILTER)
        await store.idle()

    assert titled(store) == "Sort a list in Python"


async def test_a_models_summary_that_would_block_every_turn_is_not_kept(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG, title="T")
    text = "The user is called Mia, lives in Graz, and asks about Rome several times."
    judge = ScriptedJudge(phrases={"several times": Action.BLOCK})
    moderation = ScriptedModeration(judge)
    async with working(store, ScriptedChat(text=[text]), moderation=moderation):
        await store.idle()

    summary = store.talks[ConversationId("conv")].summary
    assert summary is not None
    assert summary.made_by == "extract"
    assert judge.is_closed
    assert {stage for stage, _ in judge.asked} == {Stage.INPUT}


async def test_what_was_said_is_kept_without_the_sentences_that_would(autojump_clock: object):
    store = WorkStore()
    store.add("conv", (f"{ABOUT_ME[0]} I like apples.", "Hm."), LONG, LONG, LONG, title="T")
    judge = ScriptedJudge(phrases={"apples": Action.BLOCK})
    async with working(store, moderation=ScriptedModeration(judge)):
        await store.idle()

    summary = store.talks[ConversationId("conv")].summary
    assert summary is not None
    assert "My name is Mia and I live in Graz." in summary.text
    assert "apples" not in summary.text


async def test_nothing_is_remembered_that_would(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ("I like apples. I live in Graz.", "Hm."), title="T", memory=True)
    judge = ScriptedJudge(phrases={"apples": Action.BLOCK})
    async with working(store, moderation=ScriptedModeration(judge)):
        await store.idle()

    assert [memory.text for memory in store.memories] == ["I live in Graz."]


async def test_a_rule_that_must_be_sure_is_waited_for(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", ABOUT_ME, title="T", memory=True)
    judge = ScriptedJudge(missing={Stage.INPUT: OnFailure.CLOSED})
    async with working(store, moderation=ScriptedModeration(judge)):
        await trio.sleep(3)
        assert (talk.attempts, talk.remembered) == (1, None)
        judge.missing = {}
        await store.idle()

    assert [memory.text for memory in store.memories] == ["My name is Mia and I live in Graz."]


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "error",
    [EngineUnavailable(retry_after_s=1.0), QueueFull("full", retry_after_s=1.0)],
)
async def test_a_model_that_cannot_be_asked_is_asked_again(
    autojump_clock: object, error: Exception
):
    store = WorkStore()
    store.add("conv", HELLO, memory=True)
    chat = ScriptedChat(text=["Sorting Lists in Python\n"], refusal=error)  # type: ignore[arg-type]
    async with working(store, chat):
        await trio.sleep(10)
        assert titled(store) is None
        assert store.talks[ConversationId("conv")].attempts > 0
        chat.refusal = None
        await store.idle()

    assert titled(store) == "Sorting Lists in Python"
    assert store.talks[ConversationId("conv")].attempts == 0


async def test_after_five_failures_what_was_said_stands_in(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG)
    chat = ScriptedChat(refusal=EngineUnavailable(retry_after_s=1.0))
    async with working(store, chat) as rig:
        await store.idle()
        waited = trio.current_time()

    assert titled(store) == "My name is Mia and I live in Graz"
    assert store.talks[ConversationId("conv")].summary is not None
    assert rig.telemetry.named("work_finished").count(("title", "failed")) == 4
    assert 185 < waited < 230
    assert store.talks[ConversationId("conv")].attempts == 0


async def test_memory_does_not_wait_for_a_model(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, memory=True)
    chat = ScriptedChat(refusal=EngineUnavailable(retry_after_s=1.0))
    async with working(store, chat):
        await trio.sleep(3)

    assert [memory.text for memory in store.memories] == ["My name is Mia and I live in Graz."]


async def test_one_conversation_that_crashes_its_work_holds_up_no_other(autojump_clock: object):
    store = WorkStore()
    store.add("bad", HELLO)
    store.add("good", HELLO)

    def crash(name: str) -> None:
        if name == "items" and store.talks[ConversationId("bad")].owner is not None:
            raise ZeroDivisionError

    store.before = crash
    async with working(store) as rig:
        await store.idle()
        assert store.title("good") == "Sort a list in Python"
        assert store.talks[ConversationId("bad")].due_ms is None  # given up

    assert store.title("bad") is None
    assert [outcome.exit for outcome in rig.outcomes] == [Stopped()]


async def test_a_store_that_is_away_is_waited_for(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    store.failures.extend([StoreUnavailable("down")] * 7)
    async with working(store):
        await store.idle()

    assert titled(store) == "Sort a list in Python"
    assert store.talks[ConversationId("conv")].attempts == 0


async def test_a_conversation_that_the_store_refuses_is_given_up(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)

    def refuse(name: str) -> None:
        if name == "give_title":
            raise StoreFailed("damaged page")

    store.before = refuse
    async with working(store):
        await store.idle()

    assert titled(store) is None
    assert store.asked.count("give_title") == 5


# ── holding and letting go ───────────────────────────────────────────────────────────────────────


async def test_what_waits_for_a_model_is_held(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        await trio.sleep(25)
        turn.say("Sorting Lists ")
        await trio.sleep(25)
        assert talk.lease_ms > trio.current_time() * 1000
        assert rig.workers.age_s() > 45
        turn.say("in Python\n")
        turn.finish()
        await store.idle()
        assert rig.workers.age_s() == 0

    assert titled(store) == "Sorting Lists in Python"


async def test_a_model_is_not_waited_for_beyond_its_time(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        turn.say("Sorting")
        await store.idle()
        took = trio.current_time()

    assert titled(store) == "Sort a list in Python"
    assert turn.cancels == [CancelCause.DEADLINE]
    assert 59 < took < 63


async def test_a_model_that_does_not_begin_is_given_up_sooner(autojump_clock: object):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG)
    async with working(store, ScriptedChat()) as rig:
        await store.idle()
        took = trio.current_time()

    assert titled(store) == "My name is Mia and I live in Graz"
    assert store.talks[ConversationId("conv")].summary is not None
    assert len(rig.chat.turns) == 1  # the summary didn't wait as well
    assert 29 < took < 33


async def test_while_it_is_crowded_a_model_is_asked_now_and_then_and_not_for_long(
    autojump_clock: object,
):
    store = WorkStore()
    async with working(store, ScriptedChat()) as rig:
        for number in range(300):
            store.add(f"conv{number}", HELLO)
            rig.ends.end()
            await trio.sleep(1)
        await store.idle()

    # Half a minute at first, then five seconds, each half a minute after the last ones.
    assert 7 <= len(rig.chat.turns) <= 9


async def test_once_it_is_crowded_no_more_a_model_has_its_time_again(autojump_clock: object):
    store = WorkStore()
    store.add("first", HELLO)
    async with working(store, ScriptedChat()) as rig:
        await rig.chat.next_turn()
        await store.idle()
        await trio.sleep(31)
        for name in ("second", "third"):
            store.add(name, HELLO)
            rig.ends.end()
            turn = await rig.chat.next_turn()
            await trio.sleep(4 if name == "second" else 25)
            turn.say("Sorting Lists in Python\n")
            turn.finish()
            await store.idle()

    assert store.title("first") == "Sort a list in Python"
    assert store.title("second") == store.title("third") == "Sorting Lists in Python"


async def test_of_much_that_there_is_to_do_half_of_the_time_is_spent_on_it(
    autojump_clock: object,
):
    store = WorkStore()
    for number in range(20):
        store.add(f"conv{number}", HELLO)
    chat = ScriptedChat()
    async with working(store, chat) as rig:
        for _ in range(20):
            turn = await rig.chat.next_turn()
            await trio.sleep(0.5)
            turn.say("Sorting Lists in Python\n")
            turn.finish()
        await store.idle()
        took = trio.current_time()

    assert 19 <= took < 22


async def test_what_has_waited_behind_it_does_not_wait_for_a_model_as_well(autojump_clock: object):
    store = WorkStore()
    for number in range(20):
        store.add(f"conv{number}", HELLO)
    async with working(store, ScriptedChat()) as rig:
        await store.idle()
        took = trio.current_time()

    assert len(rig.chat.turns) == 1
    assert took < 35


async def test_late_work_is_the_models_where_it_answers_at_once(autojump_clock: object):
    store = WorkStore()
    for number in range(3):
        store.add(f"conv{number}", HELLO)
    await trio.sleep(3600)
    async with working(store, ScriptedChat(text=["Sorting Lists in Python\n"])):
        await store.idle()

    assert store.title("conv2") == "Sorting Lists in Python"


async def test_work_on_a_conversation_that_is_deleted_ends(autojump_clock: object):
    store = WorkStore()
    store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        del store.talks[ConversationId("conv")]
        await turn.cancelled.wait()
        store.add("next", HELLO)
        await rig.chat.next_turn()

    assert trio.current_time() < 20


async def test_a_conversation_that_is_deleted_while_a_title_is_written_leaves_nothing(
    autojump_clock: object,
):
    store = WorkStore()
    store.add("conv", HELLO)
    chat = ScriptedChat(text=["Sorting Lists in Python\n"])

    def delete(name: str) -> None:
        if name == "give_title":
            store.talks.clear()

    store.before = delete
    async with working(store, chat) as rig:
        await trio.sleep(5)

    assert ("title", "unwanted") in rig.telemetry.named("work_finished")


async def test_a_drain_ends_it_at_once_and_leaves_it_to_others(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        began = trio.current_time()
        rig.workers.refuse_new_turns()
        await turn.cancelled.wait()
        await rig.workers.wait_idle()
        await trio.sleep(0.1)
        assert (talk.owner, talk.due_ms is None) == (None, False)
        assert trio.current_time() - began < 1
        await trio.sleep(60)

    assert len(rig.chat.turns) == 1
    assert rig.workers.open_turns == 0


async def test_a_stop_leaves_it_to_others(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", HELLO)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()

    assert turn.cancels == [CancelCause.DEADLINE]
    assert talk.owner is None
    assert [outcome.exit for outcome in rig.outcomes] == [Stopped()]


async def test_what_a_killed_server_held_is_done_when_its_lease_is_over(autojump_clock: object):
    store = WorkStore()
    talk = store.add("conv", HELLO)
    talk.owner, talk.lease_ms = NodeId("node_dead"), 30_000
    async with working(store):
        await trio.sleep(29)
        assert titled(store) is None
        await store.idle()
        assert trio.current_time() < 40

    assert titled(store) == "Sort a list in Python"


async def test_conversations_are_worked_on_one_at_a_time_the_oldest_first(autojump_clock: object):
    store = WorkStore()
    async with working(store, ScriptedChat()) as rig:
        for name in ("a", "b", "c"):
            await trio.sleep(0.01)
            store.add(name, (f"What is topic {name * 5}?", "That."))
        rig.ends.end()
        asked = []
        for _ in range(3):
            turn = await rig.chat.next_turn()
            await trio.sleep(20)
            asked.append([name for name in "abc" if name * 5 in turn.turn.messages[0].content])
            turn.finish()
        await store.idle()

    assert asked == [["a"], ["b"], ["c"]]
    assert len(rig.chat.turns) == 3


async def test_where_several_are_worked_on_at_once_none_is_twice(autojump_clock: object):
    store = WorkStore()
    for name in ("a", "b", "c", "d"):
        store.add(name, (f"What is topic {name * 5}?", "That."))
        await trio.sleep(0.01)
    async with working(store, ScriptedChat(), workers=3) as rig:
        turns = [await rig.chat.next_turn() for _ in range(3)]
        await trio.sleep(5)
        assert len(rig.chat.turns) == 3
        assert rig.workers.age_s() > 5
        turns[1].finish()
        turns.append(await rig.chat.next_turn())
        for turn in (turns[0], *turns[2:]):
            turn.finish()
        await store.idle()

    asked = [turn.turn.messages[0].content for turn in turns]
    assert [sum(name * 5 in content for content in asked) for name in "abcd"] == [1, 1, 1, 1]


async def test_a_drain_ends_all_that_is_worked_on(autojump_clock: object):
    store = WorkStore()
    for number in range(3):
        store.add(f"conv{number}", HELLO)
    async with working(store, ScriptedChat(), workers=2) as rig:
        turns = [await rig.chat.next_turn() for _ in range(2)]
        rig.workers.refuse_new_turns()
        for turn in turns:
            await turn.cancelled.wait()
        await trio.sleep(10)

    assert len(rig.chat.turns) == 2
    assert [talk.owner for talk in store.talks.values()] == [None] * 3


async def test_a_turn_that_ends_while_its_conversation_is_worked_on_is_not_missed(
    autojump_clock: object,
):
    store = WorkStore()
    store.add("conv", HELLO, memory=True)
    async with working(store, ScriptedChat()) as rig:
        turn = await rig.chat.next_turn()
        store.say("conv", ABOUT_ME)
        rig.ends.end()
        turn.finish()
        await store.idle()

    assert [memory.text for memory in store.memories] == ["My name is Mia and I live in Graz."]


# ── kills ────────────────────────────────────────────────────────────────────────────────────────

SITES = [site for site in Site if site.label.startswith("worker.")]


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_work_that_crashes_anywhere_is_done_once_in_the_end(
    autojump_clock: object, site: Site, nth: int
):
    store = WorkStore()
    store.add("conv", ABOUT_ME, LONG, LONG, LONG, memory=True)
    written: list[str] = []
    store.before = written.append
    plan = FaultPlan((Fault(site, Harm.RAISE, nth=nth),))
    with faults.injected(plan):
        async with working(store):
            await store.idle()

    talk = store.talks[ConversationId("conv")]
    assert talk.conversation.title == "My name is Mia and I live in Graz"
    assert talk.summary is not None
    assert [memory.text for memory in store.memories] == ["My name is Mia and I live in Graz."]
    assert (talk.remembered, talk.attempts) == ("conv-7", 0)
    assert written.count("give_title") == 1
    assert written.count("add_summary") == 1
