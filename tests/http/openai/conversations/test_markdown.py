import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from antiphon.http.openai.conversations.markdown import escaped, fenced, heading_of, section_of
from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.records import Conversation, Item

_RENDERERS = [MarkdownIt("commonmark"), MarkdownIt("js-default", {"html": True})]
_TRICKY = st.sampled_from(
    [
        *"#*_-+=~`|<>&[]()!\\$^:.) \t\n0123456789aX",
        "\n\n",
        "    ",
        "1. ",
        "- ",
        "&amp;",
        "<b>",
        "</b>",
        "```",
        "---",
        "http://a.b",
        "www.a.b",
    ]
)


def shown(markdown, renderer):
    """What a reader sees, words as they stand in their lines."""
    page = renderer.render(markdown)
    page = re.sub(r"<br ?/?>\n?", "\n", page).replace("</p>", "\n")
    page = re.sub(r"<[^>]*>", "", page)
    return [line.split() for line in html.unescape(page).split("\n") if line.strip()]


def said(text):
    return [line.split() for line in text.split("\n") if line.strip()]


@given(st.lists(_TRICKY, max_size=40).map("".join))
def test_what_is_rendered_is_what_was_said(text):
    for renderer in _RENDERERS:
        assert shown(escaped(text), renderer) == said(text)


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "1. no list\n2) nor this\n- nor this\n+ nor this\n* nor this",
        "no heading\n===\nnor\n---",
        "**no emphasis** _here_ ~~nor here~~",
        "<script>alert(1)</script> &lt;",
        "[no](http://link) ![nor](image) <http://auto.link>",
        "    no code\n\tnor here",
        "a | b\n--|--\n1 | 2",
        "```\nno fence\n```",
        "> no quote",
        "ends with a backslash\\\nand goes on",
        "***\n___\n- - -",
    ],
)
def test_nothing_said_becomes_markup(text):
    for renderer in _RENDERERS:
        page = renderer.render(escaped(text))

        assert set(re.findall(r"<(\w+)", page)) <= {"p", "br"}
        assert shown(escaped(text), renderer) == said(text)


@given(st.text(alphabet="`a\n ", max_size=20))
def test_a_fence_is_longer_than_any_in_its_text(text):
    page = MarkdownIt("commonmark").render(fenced(text) + "\n\nafter")

    assert html.unescape(re.findall(r"<code>(.*)</code>", page, re.DOTALL)[0]) == f"{text}\n"
    assert page.endswith("<p>after</p>\n")


def item(kind, **body):
    return Item(
        id=ItemId("x_1"), type=kind, role=body.get("role"), body={"type": kind} | body, created_ms=0
    )


def test_each_kind_of_item_has_a_section():
    told = "".join(
        map(
            section_of,
            [
                item("message", role="user", content=[{"type": "input_text", "text": "*hi*"}]),
                item("message", role="user", content=[{"type": "input_file", "file_id": "file-1"}]),
                item("message", role="assistant", content=[{"type": "refusal", "refusal": "no"}]),
                item("function_call", name="add_up", arguments='{"a":1}'),
                item("function_call_output", output="4"),
                item("reasoning", summary=[{"type": "summary_text", "text": "so"}]),
                item("web_search_call", queries=["x"]),
            ],
        )
    )

    assert "## User\n\n\\*hi\\*\n" in told
    assert "File file-1" in told
    assert "## Assistant\n\nno\n" in told
    assert '## Call of add\\_up\n\n```\n{"a":1}\n```' in told
    assert "## Result\n\n```\n4\n```" in told
    assert "## Reasoning\n\nso\n" in told
    assert "## web\\_search\\_call" in told


def test_a_title_can_not_become_a_second_line():
    conversation = Conversation(
        id=ConversationId("conv_1"),
        user=UserId("user_1"),
        created_ms=0,
        updated_ms=0,
        title="one\n# two",
    )

    page = MarkdownIt("commonmark").render(heading_of(conversation))

    assert page.startswith("<h1>one # two</h1>")
