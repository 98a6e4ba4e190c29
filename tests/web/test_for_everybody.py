"""The page for those who use it by keyboard, by ear, on a phone, in the dark, or from right to
left."""

import re

import pytest

from antiphon.testing.accessibility import violations
from antiphon.testing.browsers import DESKTOP, PHONE

RICH = """\
say # Title

A [link](https://example.com), `code`, **bold**.

- one
- two

> said before

```python
def f(x: int) -> str:
    # a comment
    return 'text' * 2
```

| a | b |
|---|--:|
| 1 | 2 |
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(server, chat_page, axe, scheme, viewport):
    chat = chat_page(server, viewport=viewport, color_scheme=scheme).open()
    found = {"empty": violations(chat.page, axe)}
    chat.asked(RICH)
    chat.page.locator(".hljs-keyword").first.wait_for()
    found["answered"] = violations(chat.page, axe)
    chat.press("Bad answer")
    found["rating"] = violations(chat.page, axe)
    if viewport is PHONE:
        chat.press("Conversations")
        found["list"] = violations(chat.page, axe)
    entry = chat.page.locator(".list li").first
    entry.get_by_role("button").click()
    found["menu"] = violations(chat.page, axe)
    chat.page.keyboard.press("Escape")
    chat.press("Settings")
    chat.page.get_by_text("Your plan").or_(chat.page.get_by_text("answers,")).first.wait_for()
    found["settings"] = violations(chat.page, axe)
    chat.press("Close")
    if viewport is PHONE:
        chat.page.keyboard.press("Escape")
    chat.asked("tell me of the blue heron")
    found["blocked"] = violations(chat.page, axe)
    chat.press("Edit message")
    found["editing"] = violations(chat.page, axe)

    assert {place: each for place, each in found.items() if each} == {}


def test_everything_can_be_done_by_keyboard(server, chat):
    keys = chat.page.keyboard
    keys.type("say by keyboard")
    keys.press("Enter")
    chat.until_text("by keyboard")
    chat.until_idle()
    conversation = chat.conversation
    # Its title, and no longer what it was called until there was one.
    chat.page.locator(".list a", has_text=re.compile("^Say by keyboard$")).wait_for()

    keys.press("Control+Shift+KeyO")
    assert chat.turns.count() == 0
    keys.press("Control+KeyK")
    keys.type("keyboard")
    chat.page.wait_for_function(
        "() => [...document.querySelectorAll('.list a')].every(a => a.title.includes('keyboard'))"
    )
    keys.press("Tab")
    keys.press("Enter")
    chat.until_text("by keyboard")
    assert chat.conversation == conversation

    keys.press("Tab")  # to what can be done with it
    keys.press("Enter")
    chat.page.get_by_role("menuitem", name="Rename").wait_for()
    keys.press("ArrowDown")
    focused = chat.page.evaluate("() => document.activeElement.textContent")
    keys.press("Escape")
    keys.press("Shift+Escape")

    assert focused == "Archive"
    assert chat.page.evaluate("() => document.activeElement.ariaLabel") == "Message"


def test_a_list_that_is_hidden_is_out_of_the_way_of_the_keyboard(server, chat_page):
    chat = chat_page(server, viewport=PHONE).open()

    assert chat.page.evaluate("() => document.querySelector('#sidebar').inert")
    chat.press("Conversations")
    assert not chat.page.evaluate("() => document.querySelector('#sidebar').inert")
    chat.page.keyboard.press("Escape")
    assert chat.page.evaluate("() => document.querySelector('#sidebar').inert")


def test_a_screen_reader_is_told_once_and_not_for_every_word(chat):
    chat.listen()
    chat.asked("count 60")
    heard = chat.heard

    assert heard[0] == "Sent."
    assert heard[-1].startswith("Answer: 1 2 3")
    assert len(heard) <= 3


def test_each_paragraph_goes_its_own_way(chat):
    chat.asked("say שלום עולם, זה טקסט.\n\nAnd this is English.\n\n- פריט ראשון")
    directions = chat.last.locator(".markdown :is(p, li)").evaluate_all(
        "all => all.map(e => getComputedStyle(e).direction)"
    )
    bubble = chat.last.locator(".bubble .plain").evaluate("e => getComputedStyle(e).unicodeBidi")

    assert directions == ["rtl", "ltr", "rtl"]
    assert bubble == "plaintext"


def test_nothing_is_wider_than_a_phone(server, chat_page):
    chat = chat_page(server, viewport={"width": 320, "height": 640}).open()
    wide = "x" * 300
    chat.asked(f"say {wide}\n\n```\n{wide}\n```\n\n| {wide} | b |\n|---|---|\n| 1 | 2 |")

    assert chat.page.evaluate("() => document.documentElement.scrollWidth") == 320
    box = chat.page.locator(".composer").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 320


def test_the_look_is_kept_and_wins_over_the_system(server, chat_page):
    chat = chat_page(server, color_scheme="light").open()
    background = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = chat.page.evaluate(background)
    chat.press("Settings")
    chat.page.get_by_role("radio", name="Dark").check()
    chat.reload()

    assert chat.page.evaluate(background) != light
    assert chat.page.evaluate("() => document.documentElement.dataset.look") == "dark"
