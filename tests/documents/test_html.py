"""What a browser would show of a page, and nothing else."""

import pytest

from antiphon.errors import UnreadableFile
from antiphon.reading_files import BlockKind, Unreadable
from antiphon.testing.extracts import extract, outline, shown

P, ROW, COLUMNS = BlockKind.PARAGRAPH, BlockKind.ROW, BlockKind.COLUMNS
ITEM, CODE = BlockKind.ITEM, BlockKind.CODE


def read(body: str):
    return extract(f"<!doctype html><title> The  title </title><body>{body}", "a")


def test_the_title_is_known_and_not_part_of_the_text():
    found = read("<p>Text</p>")

    assert (found.media_type, found.title, found.text()) == ("text/html", "The title", "Text")


def test_headings_have_their_levels():
    found = read("<h1>One<a href=#one>¶</a></h1><p>a</p><h3>Two <b>bold</b></h3><p>b</p>")

    assert outline(found) == [(1, "One"), (3, "Two bold")]


def test_tags_within_a_line_leave_no_gap_and_blocks_do():
    assert read("<p>so<b>me</b> <i>words</i></p><div>more</div>tail").text() == (
        "some words\n\nmore\n\ntail"
    )


def test_a_table_is_rows_of_cells():
    found = read("<table><tr><th>Name<th>Age<tr><td><p>Ann</p><p>B</p><td>7</table>")

    assert shown(found) == [(COLUMNS, "Name | Age"), (ROW, "Ann B | 7")]


def test_a_table_in_a_cell_is_part_of_that_cell():
    inner = "<table><tr><td>x<td>y</table>"

    assert read(f"<table><tr><td>{inner}<td>z</table>").text() == "x y | z"


def test_a_line_that_a_tag_ends_is_a_line():
    assert read("<p>Main St 1<br>\n  Springfield<br></p>").text() == "Main St 1\nSpringfield"


def test_lists_and_code_are_told_apart():
    found = read("<ul><li>milk<li>tea</ul><pre>def f():\n    pass</pre>")

    assert shown(found) == [(ITEM, "- milk"), (ITEM, "- tea"), (CODE, "def f():\n    pass")]


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>alert(1)</script>",
        "<style>p {}</style>",
        "<template><p>x</p></template>",
        "<noscript>x</noscript>",
        "<!-- x -->",
        "<p hidden>x</p>",
        "<div style='color: red; DISPLAY : none'><p>x</p></div>",
        "<span style='visibility:hidden'>x</span>",
        "<span style='font-size:0px'>x</span>",
        "<svg><text>x</text></svg>",
        "<iframe>x</iframe>",
    ],
)
def test_what_no_one_sees_is_not_read(hidden: str):
    assert read(f"<p>seen</p>{hidden}").text() == "seen"


def test_invisible_characters_do_not_hide_words():
    assert read("<p>ig&shy;no\u200bre\U000e0041</p>").text() == "ignore"


def test_the_encoding_that_a_page_names_is_heeded():
    page = '<html><meta charset="koi8-r"><p>Съешь ещё</p>'.encode("koi8-r")

    assert extract(page, "a.html").text() == "Съешь ещё"


def test_what_came_with_the_page_counts_before_what_it_names():
    page = '<html><meta charset="koi8-r"><p>Съешь ещё</p>'.encode("cp1251")

    assert extract(page, "a.html", "text/html; charset=windows-1251").text() == "Съешь ещё"


def test_a_page_of_scripts_alone_has_no_text():
    with pytest.raises(UnreadableFile) as refused:
        read("<script>everything()</script>")

    assert refused.value.code == Unreadable.NO_TEXT


def test_nothing_that_a_page_names_is_fetched():
    found = read('<img src="http://127.0.0.1:9/x.png"><link href="http://127.0.0.1:9/"><p>x</p>')

    assert found.text() == "x"
