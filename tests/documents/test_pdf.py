"""PDF: pages, headings, and lines that become paragraphs again."""

import pytest

from antiphon.documents.pdf_lines import Line, body_size, heading_sizes, paragraphs
from antiphon.errors import UnreadableFile
from antiphon.reading_files import BlockKind, Unreadable
from antiphon.testing import pdfs
from antiphon.testing.extracts import extract, outline, shown
from antiphon.testing.prose import paragraphs as prose


def joined(*lines: Line | str) -> list[str]:
    made = [Line(line) if isinstance(line, str) else line for line in lines]
    return [paragraph.text for paragraph in paragraphs(made)]


@pytest.mark.parametrize("has_outline", [True, False])
def test_headings_come_from_the_outline_or_from_the_size_of_letters(has_outline: bool):
    found = extract(pdfs.report(25, outline=has_outline), "a.pdf")

    assert found.title == "Report of 25 pages"
    assert outline(found) == [
        (1, f"Chapter {number}: Findings of part {number}") for number in (1, 2, 3)
    ]


def test_each_page_begins_where_it_says():
    found = extract(pdfs.report(12), "a.pdf")
    text = found.text()

    assert len(found.page_starts) == 12
    assert found.page_starts[0] == 0
    for number, start in enumerate(found.page_starts):
        first = next(prose(number, count=5)).split(".")[0]
        assert text.find(first, start) - start < 60


def test_lines_become_the_paragraphs_that_they_were():
    found = extract(pdfs.report(1), "a.pdf")
    read = [text for kind, text in shown(found) if kind is BlockKind.PARAGRAPH]

    assert read == list(prose(0, count=5))


def test_pages_of_pictures_are_counted():
    chapter = pdfs.Chapter("Title", (("Words.",), ()))
    blank = pdfs.Chapter("", ((),))

    found = extract(pdfs.book([chapter, blank], title="t", outline=False), "a.pdf")

    assert found.notices == ["2 of 3 pages have no text; pictures of text aren't read."]


def test_an_outline_entry_that_stands_nowhere_is_a_heading_of_its_page():
    chapter = pdfs.Chapter("(Part) with \\ signs", (("Words on the page.",),))

    found = extract(pdfs.book([chapter], title="t", outline=True), "a.pdf")

    assert outline(found) == [(1, "(Part) with \\ signs")]


def test_a_file_made_for_the_web_and_cut_short_is_refused():
    data = pdfs.report(5)
    cut = data.replace(b"%PDF-1.7\n", b"%PDF-1.7\n%/Linearized 1 /L 99999999\n", 1)

    with pytest.raises(UnreadableFile, match="incomplete") as refused:
        extract(cut, "a.pdf")

    assert refused.value.code == Unreadable.DAMAGED


def test_words_that_were_broken_are_whole_again():
    assert joined("a docu\ufffe", "ment of well-", "known words") == [
        "a document of well-known words"
    ]


def test_a_short_line_with_a_full_stop_ends_its_paragraph():
    long = "a line that is as long as most lines on this page are"

    assert joined(long, "the end.", long) == [f"{long} the end.", long]


def test_a_gap_begins_a_paragraph_and_so_does_another_size():
    lines = [
        Line("one", 10, 100, 90),
        Line("more of it", 10, 88, 78),
        Line("far below", 10, 60, 50),
        Line("larger", 14, 48, 34),
    ]

    assert joined(*lines) == ["one more of it", "far below", "larger"]


def test_the_next_column_goes_on_with_the_sentence():
    lines = [Line("a sentence that goes on", 10, 20, 10), Line("in the next column", 10, 700, 690)]

    assert joined(*lines) == ["a sentence that goes on in the next column"]


def test_headings_are_what_is_larger_than_most():
    lines = [Line("x" * 500, 10.0), Line("Part", 20.0), Line("Section", 14.0), Line("note", 8.0)]

    assert body_size(lines) == 10.0
    assert heading_sizes(lines, 10.0) == {20.0: 1, 14.0: 2}
