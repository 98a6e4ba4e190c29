"""The page in front of the real model: what it shows of answers, and what people do with one."""

import httpx2
import pytest

from antiphon.testing.accessibility import violations
from antiphon.testing.browsers import DESKTOP, PHONE, ChatPage
from antiphon.testing.page_records import responses, said, text_of
from antiphon.testing.page_script import HOSTILE, dictated

pytestmark = pytest.mark.engine

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France? Answer in one sentence."
WATCH = """() => {
  window.frames = [];
  const look = () => {
    const reply = document.querySelector('.reply.streaming');
    const places = [...(reply?.querySelectorAll('.tail, .tail *') ?? [])];
    const carets = places.map((each) => getComputedStyle(each, '::after'))
      .filter(({ content }) => content === '""');
    const length = reply?.querySelector('.markdown').textContent.length ?? 0;
    const isSteady = carets.every(({ animationName }) => animationName === 'none');
    if (length) frames.push([length, carets.length, isSteady]);
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture
def chat(real, chat_page) -> ChatPage:
    """A tab whose questions have short answers, the same ones each time."""
    return chat_page(real).asking(temperature=0, max_output_tokens=24).open()


def test_an_answer_streams_before_a_caret_that_leaves_with_its_end(chat):
    chat.page.evaluate(WATCH)
    answer = chat.asked(QUESTION)
    frames = chat.page.evaluate("() => frames")
    lengths = [length for length, _, _ in frames]

    assert "Paris" in answer
    assert len(set(lengths)) >= 3
    assert lengths == sorted(lengths)
    assert {tuple(rest) for _, *rest in frames} == {(1, True)}
    assert chat.page.locator(".streaming").count() == 0
    assert chat.last.locator(".actions .model").inner_text() == MODEL


def test_regenerating_makes_a_second_version(chat):
    first = chat.asked(QUESTION)
    conversation = chat.conversation
    chat.press("Regenerate")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()
    second = chat.conversation
    chat.press("Previous version")
    chat.page.locator(".versions", has_text="1/2").wait_for()
    chat.until_idle()

    assert second != conversation
    assert (chat.conversation, chat.answer) == (conversation, first)


def test_an_edited_message_begins_a_branch(chat):
    chat.asked(QUESTION)
    last = chat.asked("And of Italy?")
    chat.turns.first.hover()
    chat.turns.first.get_by_role("button", name="Edit message").click()
    chat.page.get_by_role("textbox", name="Edit your message").fill("What is two plus two?")
    chat.page.keyboard.press("Enter")
    chat.page.locator(".versions", has_text="2/2").wait_for()
    chat.until_idle()

    assert chat.turns.count() == 1
    assert chat.last.locator(".bubble").inner_text() == "What is two plus two?"
    assert chat.answer
    chat.press("Previous version")
    chat.page.locator(".versions", has_text="1/2").wait_for()
    chat.until_idle()
    assert (chat.turns.count(), chat.answer) == (2, last)


def test_an_answer_is_copied_as_the_model_wrote_it(real, chat):
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.asked(QUESTION)
    chat.press("Copy answer")
    chat.page.get_by_role("button", name="Copied").wait_for()
    [response] = responses(real, chat.conversation)

    assert chat.page.evaluate("() => navigator.clipboard.readText()") == text_of(response)


def test_thumbs_and_their_reason_are_kept_by_the_server(real, chat):
    chat.asked(QUESTION)
    chat.press("Bad answer")
    chat.page.get_by_role("textbox", name="Why?").fill("nobody asked about Lyon")
    chat.page.keyboard.press("Enter")
    chat.last.get_by_text("Thank you.").wait_for()

    exported = httpx2.get(f"{real.base_url}/users/me/export").text
    assert "nobody asked about Lyon" in exported
    pressed = chat.last.get_by_role("button", name="Bad answer")
    assert pressed.get_attribute("aria-pressed") == "true"


def test_the_model_that_was_chosen_is_asked_and_stays_chosen(chat):
    choice = chat.page.get_by_role("combobox", name="Model")
    offered = choice.locator("option").all_inner_texts()
    choice.select_option("whoever")
    with chat.page.expect_request("**/v1/responses") as asked:
        chat.asked(QUESTION)
    chat.reload()

    assert set(offered) == {MODEL, "whoever"}
    assert asked.value.post_data_json["model"] == "whoever"
    assert choice.input_value() == "whoever"
    chat.until_idle()
    assert chat.answer


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_file_is_brought_read_and_named_with_the_answer(real, chat, how):
    chat.bring(how, "harbour.txt", "The boat to Ithaca leaves on Monday at nine.")
    chat.asked("When does the boat leave?")
    [response] = responses(real, chat.conversation)
    [file] = response["context"]["files"]

    assert (file["filename"], file["fate"]) == ("harbour.txt", "whole")
    assert chat.last.locator(".bubble .file-chip").inner_text() == "harbour.txt"
    assert chat.answer


def test_hostile_text_that_the_model_writes_does_nothing_but_show(chat):
    hostile = (
        "<script>window.hacked=1</script><img src=x onerror=window.hacked=2> "
        "[click](javascript:window.hacked=3) <a href=javascript:window.hacked=4>x</a>"
    )
    chat.asking(**dictated(hostile))
    requested: list[str] = []
    chat.page.on("request", lambda request: requested.append(request.url))
    answer = chat.asked("Go on.")

    assert chat.alive == []
    assert [url for url in requested if not url.startswith(chat.url)] == []
    assert "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>" in answer
    assert "<a href=javascript:window.hacked=4>x</a>" in answer


def test_hostile_text_that_was_said_before_is_text_between_answers_too(real, chat):
    hostile = HOSTILE.replace("\x00", "")  # which the API takes from nobody
    known = said(real, "<b>Hostile</b>", ("user", "<i>Hello</i>"), ("assistant", hostile))
    chat.open(known)
    chat.until_idle()

    assert chat.alive == []
    assert "<script>window.hacked = 1</script>" in chat.answer
    assert "bell ␇ escape ␛[31m" in chat.answer
    assert chat.asked(QUESTION)
    assert chat.turns.count() == 2
    assert chat.page.evaluate("() => window.hacked") is None
    assert chat.listed.count("<b>Hostile</b>") == 1


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_page_with_an_answer(real, chat_page, axe, scheme, viewport):
    chat = chat_page(real, viewport=viewport, color_scheme=scheme)
    chat.asking(temperature=0, max_output_tokens=24).open()
    chat.asked(QUESTION)
    answered = violations(chat.page, axe)
    chat.press("New chat")
    chat.asking(temperature=0).ask("Tell me a very long story about a whale.")
    chat.until_longer(0)
    streaming = violations(chat.page, axe)
    chat.press("Stop answering")
    chat.until_idle()

    assert (answered, streaming, violations(chat.page, axe)) == ([], [], [])
