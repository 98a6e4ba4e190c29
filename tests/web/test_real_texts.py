"""The page in front of the real model: texts of every length and direction, on every screen, and
for those who hear them."""

import pytest

from antiphon.testing.browsers import PHONE, ChatPage
from antiphon.testing.page_records import items, responses, said
from antiphon.testing.page_script import dictated

pytestmark = pytest.mark.engine

QUESTION = "What is the capital of France? Answer in one sentence."
STORY = "Tell me a very long story about a whale."
SPARSE = "What is two plus two?\n" + ("-" * 64 + "\n") * 1_538 + "The end."
"""A hundred thousand characters, and yet the model's window holds them: a line is one token."""
DENSE = "".join(f"In harbour {i} lay {i * 7} ships.\n\n" for i in range(3_500))[:100_000].strip()
"""As many, and more than it holds."""
HEBREW = "שלום עולם, זה טקסט"
ARABIC = "مرحبا بالعالم، هذا نص"
MIXED = f"{HEBREW}.\n\nAnd this is English.\n\n- {ARABIC}\n- one more"
DIRECTIONS = "all => all.map(each => getComputedStyle(each).direction)"
# A frame of a busy machine: this only has to tell slow from stuck.
LONGEST_FRAME_MS = 1_000.0


@pytest.fixture
def chat(real, chat_page) -> ChatPage:
    """A tab whose questions have short answers, the same ones each time."""
    return chat_page(real).asking(temperature=0, max_output_tokens=24).open()


def test_a_message_of_a_hundred_thousand_characters_is_folded_kept_and_answered(real, chat):
    chat.watch_frames()
    chat.paste(SPARSE)
    chat.page.keyboard.press("Enter")
    chat.turns.first.wait_for()
    chat.until_idle()
    words = chat.last.locator(".bubble .words")
    folded = len(words.inner_text())
    chat.press(f"Show all {len(SPARSE):,} characters")
    unfolded = words.evaluate("each => each.textContent")
    [asked] = [each for each in items(real, chat.conversation) if each["role"] == "user"]

    assert len(SPARSE) >= 99_900
    assert asked["content"][0]["text"] == SPARSE
    assert chat.answer
    assert folded < 2_000
    assert unfolded.endswith("The end.")
    assert chat.longest_frame_ms < LONGEST_FRAME_MS


def test_a_message_that_is_too_long_for_the_model_stays_to_be_shortened(real, chat):
    chat.watch_frames()
    chat.paste(DENSE)
    chat.page.keyboard.press("Enter")
    refusal = chat.last.locator(".notice.error")
    refusal.wait_for()
    told = refusal.inner_text()
    refusal.get_by_role("button", name="Edit message").click()
    focused = chat.page.evaluate("() => document.activeElement.ariaLabel")
    frame_ms = chat.longest_frame_ms
    stored = [*items(real, chat.conversation), *responses(real, chat.conversation)]
    chat.reload()

    assert "maximum context length is 8192 tokens" in told
    assert "A long text can go along as a file." in told
    assert focused == "Message"
    assert chat.field.input_value() == DENSE
    assert stored == []
    assert frame_ms < LONGEST_FRAME_MS


def test_what_is_sent_after_a_refusal_takes_its_place_and_has_its_files(real, chat):
    chat.bring("paste", "ships.txt", "The ship lies in the harbour of Ithaca.")
    chat.paste(DENSE)
    chat.page.keyboard.press("Enter")
    chat.last.locator(".notice.error").wait_for()
    chat.page.locator(".composer .file-chip.ready", has_text="ships.txt").wait_for()
    chat.asked_as("Where does the ship lie?")
    chat.until_idle()
    [response] = responses(real, chat.conversation)

    assert chat.turns.count() == 1
    assert chat.last.locator(".bubble .words").inner_text() == "Where does the ship lie?"
    assert [each["filename"] for each in response["context"]["files"]] == ["ships.txt"]
    assert chat.page.locator(".composer .file-chip").count() == 0
    assert not chat.last.locator(".versions").is_visible()
    assert len(items(real, chat.conversation)) == 2


def test_a_text_that_is_too_long_goes_along_as_a_file(chat):
    chat.bring("paste", "harbours.txt", DENSE)
    chat.asked("How many ships lay in harbour 1000?")

    assert any("“harbours.txt” is long: the model was shown" in each for each in chat.notices)
    assert chat.answer


def test_a_message_from_right_to_left_is_written_and_shown_so(chat):
    chat.write(f"{ARABIC}؟")
    written = chat.field.evaluate("each => getComputedStyle(each).direction")
    chat.page.keyboard.press("Enter")
    chat.turns.first.wait_for()
    chat.until_idle()
    shown = chat.last.locator(".bubble .plain").evaluate_all(DIRECTIONS)

    assert (written, shown) == ("rtl", ["rtl"])
    assert chat.answer


def test_what_the_model_writes_from_right_to_left_is_shown_so_beside_what_it_does_not(real, chat):
    known = said(real, "Both ways", ("user", "Say both."), ("assistant", MIXED))
    chat.open(known)
    chat.until_idle()
    before = chat.last.locator(".markdown :is(p, li)").evaluate_all(DIRECTIONS)
    chat.asking(**dictated(HEBREW, name="טקסט"))
    chat.asked("Now in Hebrew.")
    streamed = chat.last.locator(".markdown p", has_text=HEBREW).evaluate_all(DIRECTIONS)
    chat.asking(**dictated("And this is English."))
    chat.asked("Now in English.")
    latin = chat.last.locator(".markdown p", has_text="English").evaluate_all(DIRECTIONS)

    assert before == ["rtl", "ltr", "rtl", "ltr"]
    assert (streamed, latin) == (["rtl"], ["ltr"])


def test_a_screen_reader_says_an_answer_once_and_not_every_word_of_it(chat):
    chat.asking(temperature=0, max_output_tokens=200).listen()
    answer = chat.asked(STORY)
    heard = chat.heard

    assert len(answer) > 400
    assert heard[0] == "Sent."
    assert heard[-1].startswith("Answer of ")
    assert len(heard) == 2


def test_a_screen_reader_says_how_an_answer_ended(chat):
    chat.listen()
    chat.asking(temperature=0).ask(STORY)
    chat.until_longer(40)
    chat.press("Stop answering")
    chat.until_idle()
    stopped = chat.heard[-1]
    chat.asked("Where does the blue heron sleep?")
    blocked = chat.heard[-1]
    chat.paste(DENSE)
    chat.page.keyboard.press("Enter")
    chat.last.locator(".notice.error").wait_for()

    assert stopped.endswith("You stopped this answer.")
    assert blocked == "Answer: I can't help with that. Blocked by the server's rules."
    assert chat.heard[-1].startswith("This model's maximum context length is 8192 tokens.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_answer_fits_the_smallest_phone_in_the_look_of_its_owner(real, chat_page, scheme):
    size = {"width": 320, "height": 640}
    chat = chat_page(real, viewport=size, color_scheme=scheme).open()
    chat.asking(**dictated(f"https://example.com/{'x' * 200}"))
    chat.asked("Which address is it?")
    chat.asking(temperature=0).ask(STORY)
    chat.until_longer(200)
    width = chat.page.evaluate("() => document.documentElement.scrollWidth")
    chat.press("Stop answering")
    chat.until_idle()
    first = chat.turns.first.locator(".markdown").bounding_box()
    place = chat.page.locator(".composer").bounding_box()

    assert width == 320
    for box in (first, place):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 320
    assert is_dark(chat) == (scheme == "dark")


def test_a_look_that_was_chosen_stays_whatever_the_system_has(real, chat_page):
    chat = chat_page(real, viewport=PHONE, color_scheme="light")
    chat.asking(temperature=0, max_output_tokens=24).open()
    answer = chat.asked(QUESTION)
    chat.press("Conversations")
    chat.press("Settings")
    chat.page.get_by_role("radio", name="Dark").check()
    chat.reload()
    chat.until_idle()

    assert is_dark(chat)
    assert chat.answer == answer


def is_dark(chat: ChatPage) -> bool:
    """Whether light letters are on a dark ground in the answer."""
    letters, ground = chat.last.locator(".markdown").evaluate(
        "each => [getComputedStyle(each).color, getComputedStyle(document.documentElement)"
        ".backgroundColor].map(colour => colour.match(/[\\d.]+/g).slice(0, 3)"
        ".reduce((sum, part) => sum + Number(part), 0))"
    )
    return letters > ground
