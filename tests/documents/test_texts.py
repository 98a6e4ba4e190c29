"""Markdown, plain text, code, tables and JSON: read as they were written, with their structure."""

import json

import pytest

from antiphon.errors import UnreadableFile
from antiphon.reading_files import BlockKind, Unreadable
from antiphon.testing.extracts import extract, outline, shown

P, ROW, COLUMNS = BlockKind.PARAGRAPH, BlockKind.ROW, BlockKind.COLUMNS
ITEM, CODE = BlockKind.ITEM, BlockKind.CODE


def test_markdown_has_headings_of_both_kinds_and_a_title():
    found = extract("# The title\n\nText.\n\nSecond\n------\n\n- a\n  b\n- c\n", "a.md")

    assert outline(found) == [(1, "The title"), (2, "Second")]
    assert found.title == "The title"
    assert shown(found)[1] == (P, "Text.")
    assert shown(found)[3:] == [(ITEM, "- a\n  b"), (ITEM, "- c")]


def test_a_hash_in_a_fence_is_no_heading():
    found = extract("```sh\n# a comment\n```\n", "a.md")

    assert shown(found) == [(CODE, "```sh\n# a comment\n```")]


def test_a_table_in_markdown_has_columns_and_rows():
    found = extract("| a | b |\n|---|---|\n| 1 | 2 |\n", "a.md")

    assert [kind for kind, _ in shown(found)] == [COLUMNS, ROW, ROW]


def test_front_matter_names_the_title():
    assert extract('---\ntitle: "My page"\n---\n# Other\n', "a.md").title == "My page"


def test_plain_text_is_cut_at_empty_lines_alone():
    found = extract("One\nline.\r\n\r\nTwo.\n \nThree.\x00", "a.txt")

    assert shown(found) == [(P, "One\nline."), (P, "Two."), (P, "Three.")]


def test_code_is_cut_at_the_margin_and_its_definitions_are_headings():
    source = (
        "import os\n\nclass Cat:\n    name = 1\n\n    def purr(self):\n        pass\n\ndef f():\n"
    )
    found = extract(source, "a.py")

    assert [heading.text for heading in found.headings] == ["Cat", "f"]
    assert all(kind is CODE for kind, _ in shown(found))
    assert "    def purr(self):" in found.text()


def test_the_first_row_of_a_csv_names_its_columns():
    found = extract('name;town\n"Ann; B";"Bonn\nCologne"\n\nCyd;Ulm\n', "a.csv")

    assert shown(found) == [
        (COLUMNS, "name | town"),
        (ROW, "Ann; B | Bonn Cologne"),
        (ROW, "Cyd | Ulm"),
    ]


def test_a_tsv_is_cut_at_tabs_alone():
    assert extract("a, b\tc\n", "a.tsv").text() == "a, b | c"


def test_a_quote_that_is_never_closed_loses_nothing():
    assert "rest" in extract('a,b\n"never closed,1\nrest,2\n', "a.csv").text()


def test_json_in_one_line_is_shown_in_lines():
    found = extract(json.dumps({"name": "Ann", "list": [1, {"x": "é"}]}), "a.json")

    assert '"name": "Ann"' in found.text().split("\n")[1]
    assert "é" in found.text()
    assert len(found.blocks) == 3


def test_json_that_was_written_in_lines_stays_as_it_is():
    assert extract('{\n    "a": 1\n}', "a.json").text().startswith("{\n")


def test_what_is_no_json_is_read_as_text_and_said_so():
    found = extract("{broken", "a.json")

    assert found.text() == "{broken"
    assert "isn't valid JSON" in found.notices[0]


def test_json_lines_are_rows():
    assert shown(extract('{"a":1}\n{"a":2}\n', "a.jsonl")) == [(ROW, '{"a":1}'), (ROW, '{"a":2}')]


@pytest.mark.parametrize(
    ("content", "name", "declared", "expected"),
    [
        ("x", "a.txt", None, "text/plain"),
        ("x", "a", "text/markdown", "text/markdown"),
        ("<html><p>x", "a.txt", None, "text/html"),
        ("<HTML><p>x", "a", "application/pdf", "text/html"),
        ("x", "a", "application/pdf", "text/plain"),
        ("x,y", "A.CSV", "text/plain", "text/csv"),
        ("x = 1", "a.py", "application/octet-stream", "text/x-python"),
        ("x", "../../a.md", None, "text/markdown"),
    ],
)
def test_what_a_file_is_comes_from_its_content_first(content, name, declared, expected):
    assert extract(content, name, declared).media_type == expected


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 99, "old Office"),
        (b"\x1f\x8b" + b"x" * 99, "gzip"),
        (b"{\\rtf1 x}", "RTF"),
        (b"\x00\x00\x00\x18ftypmp42", "video"),
        (b"SQLite format 3\x00", "database"),
    ],
)
def test_what_is_not_read_is_named(data: bytes, named: str):
    with pytest.raises(UnreadableFile, match=named) as refused:
        extract(data, "a.txt")

    assert refused.value.code == Unreadable.UNSUPPORTED


def test_comments_without_end_are_looked_at_once():
    assert extract("<!---->" * 500 + "x", "a").media_type == "text/plain"


def test_headings_are_bounded():
    found = extract("# x\n" * 20_000, "a.md")

    assert len(found.headings) == 10_000
    assert len(found.blocks) == 20_000
