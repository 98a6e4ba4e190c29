"""How guards are asked, and what their answers mean: examples from their model cards."""

import pytest

from antiphon.actors.moderation.guards import llama_guard, qwen3guard
from antiphon.actors.moderation.guards.opinion import Opinion
from antiphon.verdicts import Stage

SAFE = Opinion(unsafe=False)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("safe", SAFE),
        ("\n\nsafe", SAFE),
        ("unsafe\nS1", Opinion(unsafe=True, categories=("S1",))),
        ("\n\nunsafe\nS9,S14", Opinion(unsafe=True, categories=("S9", "S14"))),
        ("unsafe\nS1, S1,S2\n", Opinion(unsafe=True, categories=("S1", "S2"))),
        ("unsafe", Opinion(unsafe=True)),
        ("unsafe\nS15", Opinion(unsafe=True)),
        ("", None),
        ("I can't say", None),
        ("safe enough", None),
        ("The text is safe", None),
    ],
)
def test_llama_guards_answers(answer: str, expected: Opinion | None):
    assert llama_guard.opinion(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Safety: Safe\nCategories: None", SAFE),
        ("Safety: Safe\nCategories: None\nRefusal: Yes", SAFE),
        (
            "Safety: Unsafe\nCategories: Violent",
            Opinion(unsafe=True, categories=("Violent",)),
        ),
        (
            "Safety: Unsafe\nCategories: Non-violent Illegal Acts, Suicide & Self-Harm\nRefusal: -",
            Opinion(unsafe=True, categories=("Non-violent Illegal Acts", "Suicide & Self-Harm")),
        ),
        ("Safety: Unsafe\nCategories: None", Opinion(unsafe=True)),
        ("Safety: Unsafe", Opinion(unsafe=True)),
        ("Safety: Controversial\nCategories: Politically Sensitive Topics", SAFE),
        ("Categories: Violent", None),
        ("Unsafe", None),
        ("Safety: Unsafely", None),
        ("", None),
    ],
)
def test_qwen3guards_answers(answer: str, expected: Opinion | None):
    assert qwen3guard.opinion(answer) == expected


@pytest.mark.parametrize("form", [llama_guard, qwen3guard])
@pytest.mark.parametrize(
    ("stage", "roles"),
    [
        (Stage.INPUT, ["user"]),
        (Stage.RETRIEVED, ["user"]),
        (Stage.TOOL, ["user"]),
        (Stage.OUTPUT, ["user", "assistant"]),
    ],
)
def test_a_guard_is_shown_the_text_as_its_writers_message(form, stage: Stage, roles: list[str]):
    messages = form.prompt(stage, "the text")

    assert [message.role for message in messages] == roles
    assert messages[-1].content == "the text"
