"""What a plan keeps to, whatever the conversation and the budget."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.context.manifest import manifest_of
from antiphon.actors.context.parts import Frame, Part
from antiphon.actors.context.planning import Budget, Plan, plan, room_for_turns
from antiphon.context_settings import ContextSettings
from antiphon.ids import ItemId
from antiphon.views import TURNS, Fate, Manifest, PieceKind

LONG = 40
SETTINGS = ContextSettings(tool_output_tokens=LONG, memory_tokens=30, keep_share=0.5)
FRAME = Frame(base=3, each=4)


def part(kind: PieceKind, role: str, tokens: int, **fields) -> Part:
    return Part(kind=kind, role=role, tokens=tokens, **fields)


def user(tokens: int, **fields) -> Part:
    return part(PieceKind.HISTORY, "user", tokens, **fields)


def answer(tokens: int, **fields) -> Part:
    return part(PieceKind.HISTORY, "assistant", tokens, **fields)


def result(tokens: int, call: str) -> Part:
    return part(
        PieceKind.HISTORY,
        "tool",
        tokens,
        calls=(call,),
        short=LONG + 8 if tokens > LONG + 8 else None,
    )


@st.composite
def requests(draw, *, longest: int = 60, most: int = 24) -> list[list[Part]]:
    """A conversation as its requests came: what each brought, and what was answered."""
    asked, calls = [], 0
    is_called = False
    for _ in range(draw(st.integers(1, most))):
        tokens = draw(st.integers(1, longest))
        if is_called:
            new = [result(draw(st.integers(1, 3 * LONG)), f"call{calls}")]
        else:
            copy = draw(st.one_of(st.none(), st.none(), st.integers(0, 1)))
            is_long = tokens > LONG + 8
            new = [
                user(
                    tokens,
                    same=copy if is_long else None,
                    short=LONG + 8 if is_long and copy is not None else None,
                )
            ]
        said = [answer(draw(st.integers(1, longest)))]
        is_called = draw(st.booleans()) and draw(st.booleans())
        if is_called:
            calls += 1
            said.append(answer(draw(st.integers(1, 12)), calls=(f"call{calls}",)))
        asked.append([*new, *said])
    return asked


@st.composite
def settings_parts(draw) -> list[Part]:
    """What stands before the turns."""
    parts = [part(PieceKind.INSTRUCTIONS, "system", draw(st.integers(1, 30)))]
    parts += [
        part(PieceKind.MEMORY, "system", draw(st.integers(1, 20)), rank=rank)
        for rank in draw(st.permutations(range(draw(st.integers(0, 3)))))
    ]
    if draw(st.booleans()):
        parts.append(
            part(PieceKind.SUMMARY, "system", draw(st.integers(1, 40)), covers=9, covered_tokens=99)
        )
    return parts


def turn(before: Sequence[Part], asked: Sequence[Sequence[Part]], number: int) -> list[Part]:
    """What the planner gets for request `number`: what came before is history."""
    history = [each for request in asked[:number] for each in request]
    new = [replace(each, kind=PieceKind.INPUT) for each in asked[number] if not each.is_answer]
    parts = [*before, *history, *new]
    return [
        replace(each, item=ItemId(f"item{place}")) if each.kind in TURNS else each
        for place, each in enumerate(parts)
    ]


def budget(window: int, *, answer: int = 0, **fields) -> Budget:
    return Budget(
        **{
            "window": window,
            "usual_answer": window // 8,
            "answer": answer or window // 8,
            "truncation": "auto",
            "settings": SETTINGS,
            "frame": FRAME,
            **fields,
        }
    )


def prompt_of(parts: Sequence[Part], planned: Plan) -> list[tuple[int, bool]]:
    """What is shown, in order: each part, and whether it is whole."""
    return [(place, planned.trimmed[place]) for place in range(len(parts)) if planned.shown[place]]


def tokens_of(parts: Sequence[Part], planned: Plan) -> int:
    """As a template that adds the same each time would count it."""
    total, has_memory = FRAME.base, any(each.kind is PieceKind.MEMORY for each in parts)
    for place, is_trimmed in prompt_of(parts, planned):
        each = parts[place]
        total += each.short if is_trimmed and each.short else each.tokens
        total += FRAME.each if each.kind is not PieceKind.MEMORY else 0
    return total + (FRAME.each if has_memory else 0)


windows = st.integers(60, 1500)


@given(settings_parts(), requests(), windows, st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_it_fits_or_nothing_is_left_that_may_go(before, asked, window, answer_tokens):
    parts = turn(before, asked, len(asked) - 1)
    given_budget = budget(window, answer=answer_tokens)

    planned = plan(parts, given_budget)

    assert planned.tokens == tokens_of(parts, planned)
    assert planned.tokens <= window - answer_tokens or not planned.can_drop


@given(settings_parts(), requests(), windows)
@settings(max_examples=60, deadline=None)
def test_what_must_be_shown_is_and_calls_stay_with_their_results(before, asked, window):
    parts = turn(before, asked, len(asked) - 1)

    planned = plan(parts, budget(window))

    shown = {place for place, _ in prompt_of(parts, planned)}
    for place, each in enumerate(parts):
        if each.kind in {PieceKind.INSTRUCTIONS, PieceKind.SUMMARY, PieceKind.INPUT}:
            assert place in shown
            assert not planned.trimmed[place]
    homes: dict[str, list[int]] = {}
    for place, each in enumerate(parts):
        for call in each.calls:
            homes.setdefault(call, []).append(place)
    for pair in homes.values():
        assert len({place in shown for place in pair}) == 1


@given(settings_parts(), requests(), windows)
@settings(max_examples=60, deadline=None)
def test_whole_turns_are_left_out_and_only_from_the_front(before, asked, window):
    parts = turn(before, asked, len(asked) - 1)

    planned = plan(parts, budget(window))

    places = [place for place, each in enumerate(parts) if each.kind in TURNS]
    flags = [planned.shown[place] for place in places]
    first = flags.index(True)
    assert all(flags[first:])
    assert first == 0 or parts[places[first]].role == "user"


@given(settings_parts(), requests(), windows, st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_the_manifest_adds_up(before, asked, window, template):
    parts = turn(before, asked, len(asked) - 1)
    planned = plan(parts, budget(window))
    exact = tokens_of(parts, planned) + template

    manifest = manifest_of(
        parts, planned, prompt_tokens=exact, window=window, answer=9, truncation="auto"
    )

    check(manifest, parts)
    assert manifest.prompt_tokens == exact


@given(settings_parts(), requests(), windows)
@settings(max_examples=60, deadline=None)
def test_the_manifest_adds_up_where_counts_were_another_vocabularys(before, asked, window):
    parts = turn(before, asked, len(asked) - 1)
    planned = plan(parts, budget(window))
    exact = max(1, tokens_of(parts, planned) // 3)

    manifest = manifest_of(
        parts, planned, prompt_tokens=exact, window=window, answer=9, truncation="auto"
    )

    check(manifest, parts)


def check(manifest: Manifest, parts: Sequence[Part]) -> None:
    shown = sum(run.shown_tokens for run in manifest.runs)
    assert manifest.template_tokens >= 0
    assert shown + manifest.template_tokens == manifest.prompt_tokens
    covered = sum(each.covers for each in parts)
    assert sum(run.items for run in manifest.runs) == len(parts) + covered
    assert sum(run.tokens for run in manifest.runs) == sum(
        each.tokens + each.covered_tokens for each in parts
    )
    for before, after in zip(manifest.runs, manifest.runs[1:], strict=False):
        assert (before.kind, before.fate) != (after.kind, after.fate)


@given(settings_parts(), requests(longest=50, most=40))
@settings(max_examples=60, deadline=None)
def test_a_turn_more_goes_on_where_the_last_prompt_ended_until_a_step(before, asked):
    given_budget = budget(900)
    fixed = sum(each.tokens + FRAME.each for each in before if each.kind is not PieceKind.MEMORY)
    memory = any(each.kind is PieceKind.MEMORY for each in before)
    fixed += FRAME.base + memory * (FRAME.each + SETTINGS.memory_tokens)
    high = room_for_turns(fixed, given_budget)
    low = int(SETTINGS.keep_share * high)
    last: list[tuple[int, bool]] = []
    dropped, cut_at, was_enough = 0, 0, False

    for number in range(len(asked)):
        parts = turn(before, asked, number)
        planned = plan(parts, given_budget)
        prompt = prompt_of(parts, planned)
        now = sum(
            not planned.shown[place] for place, each in enumerate(parts) if each.kind in TURNS
        )
        if now == dropped:
            kept = [place for place, _ in last]
            assert [place for place, _ in prompt][: len(kept)] == kept
            # What was trimmed stays so; and whatever is trimmed now was whole last time, and long.
            for (place, was), (_, is_trimmed) in zip(last, prompt, strict=False):
                assert is_trimmed or not was or parts[place].same is not None
                assert was == is_trimmed or parts[place].tokens > LONG
        elif now > dropped:
            came = sum(each.tokens + FRAME.each for request in asked[:number] for each in request)
            came += sum(each.tokens + FRAME.each for each in parts if each.kind is PieceKind.INPUT)
            # A turn that is too long by itself leaves no room for another, whatever is left out.
            if was_enough and planned.can_drop:
                assert came - cut_at >= high - low
            fresh = sum(each.tokens + FRAME.each for each in parts if each.kind is PieceKind.INPUT)
            cut_at, was_enough = came - fresh, planned.can_drop
        else:
            raise AssertionError("what was left out came back")
        last, dropped = prompt, now


@given(requests(), windows)
@settings(max_examples=60, deadline=None)
def test_disabled_leaves_everything_as_it_is(asked, window):
    parts = turn([], asked, len(asked) - 1)

    planned = plan(parts, budget(window, truncation="disabled"))

    assert all(planned.shown)
    assert not any(planned.trimmed)
    assert not planned.can_drop


@given(requests(), st.integers(10, 400))
@settings(max_examples=60, deadline=None)
def test_a_threshold_bounds_the_turns_in_a_window_that_holds_them_all(asked, threshold):
    parts = turn([], asked, len(asked) - 1)
    tokens = sum(each.tokens + FRAME.each for each in parts)

    planned = plan(parts, budget(100_000, truncation="disabled", compact=threshold))

    left = planned.tokens - FRAME.base
    assert tokens > threshold or all(planned.shown)
    newest = max(place for place, each in enumerate(parts) if each.role == "user")
    assert left <= threshold or not any(planned.shown[:newest])


def test_memories_come_by_rank_and_stand_in_their_order():
    memories = [
        part(PieceKind.MEMORY, "system", 12, rank=rank, item=ItemId(f"from{rank}"))
        for rank in (2, 0, 1)
    ]
    parts = [*memories, part(PieceKind.INPUT, "user", 5)]

    planned = plan(parts, budget(500))

    assert planned.shown == (False, True, True, True)


def test_a_memory_of_what_is_shown_word_for_word_is_not_said_twice():
    said = user(30, item=ItemId("said"))
    memory = part(PieceKind.MEMORY, "system", 9, rank=0, item=ItemId("said"))
    new = part(PieceKind.INPUT, "user", 5)

    planned = plan([memory, said, answer(5), new], budget(500))
    cut = plan([memory, said, answer(200), user(9), answer(200), new], budget(500))

    assert planned.repeated == {0}
    assert planned.shown[0] is False
    assert cut.shown[:2] == (True, False)


def test_a_copy_is_trimmed_only_while_the_first_one_is_shown():
    first, again = user(100, same=1, short=50), user(100, same=1, short=50)
    new = part(PieceKind.INPUT, "user", 5)

    both = plan([first, answer(5), again, answer(5), new], budget(900))
    cut = plan([first, answer(400), again, answer(5), user(5), answer(150), new], budget(900))

    assert both.trimmed == (False, False, True, False, False)
    assert cut.shown == (False, False, True, True, True, True, True)
    assert not any(cut.trimmed)


def test_a_call_whose_result_is_new_stays_while_its_turn_goes():
    call = answer(5, calls=("c",))
    new = part(PieceKind.INPUT, "tool", 30, calls=("c",))
    parts = [user(300), call, user(300), answer(5), new]

    planned = plan(parts, budget(500))

    assert planned.shown == (False, True, True, True, True)


def test_a_result_without_its_call_is_not_shown():
    parts = [result(5, "gone"), answer(5), part(PieceKind.INPUT, "user", 5)]

    assert plan(parts, budget(500)).shown == (False, True, True)


def test_the_turn_that_is_going_on_is_trimmed_before_it_is_refused():
    call, old = answer(5, calls=("a",)), result(300, "a")
    again = answer(5, calls=("b",))
    new = part(PieceKind.INPUT, "tool", 100, calls=("b",))

    planned = plan([user(5), call, old, again, new], budget(320))

    assert planned.trimmed == (False, False, True, False, False)
    assert planned.tokens <= 320 - 40


def test_runs_say_what_became_of_whom():
    summary = part(
        PieceKind.SUMMARY, "system", 20, covers=8, covered_tokens=400, item=ItemId("last")
    )
    old, gone = user(300, item=ItemId("a")), answer(300, item=ItemId("b"))
    new = part(PieceKind.INPUT, "user", 5, item=ItemId("c"))
    parts = [summary, old, gone, new]

    manifest = manifest_of(
        parts, plan(parts, budget(400)), prompt_tokens=40, window=400, answer=9, truncation="auto"
    )

    assert [
        (run.kind, run.fate, run.items, run.tokens, run.shown_tokens, run.first, run.last)
        for run in manifest.runs
    ] == [
        (PieceKind.HISTORY, Fate.SUMMARISED, 8, 400, 0, None, "last"),
        (PieceKind.SUMMARY, Fate.SHOWN, 1, 20, 20, None, None),
        (PieceKind.HISTORY, Fate.DROPPED, 2, 600, 0, "a", "b"),
        (PieceKind.INPUT, Fate.SHOWN, 1, 5, 5, "c", "c"),
    ]
    assert manifest.template_tokens == 15
    assert manifest.worst is Fate.DROPPED
    assert msgspec.convert(msgspec.to_builtins(manifest), Manifest) == manifest


def test_a_result_in_a_later_turn_goes_with_its_call():
    call = answer(5, calls=("c",))
    new = part(PieceKind.INPUT, "user", 150)
    parts = [user(200), call, user(20), result(20, "c"), answer(100), new]

    planned = plan(parts, budget(500))

    assert planned.shown == (False, False, True, False, True, True)
