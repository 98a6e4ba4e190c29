"""What people see in a Word document, and nothing that they don't."""

import pytest

from antiphon.errors import UnreadableFile
from antiphon.reading_files import BlockKind, Unreadable
from antiphon.testing.extracts import extract, outline, shown
from antiphon.testing.office import archive, docx, paragraph, table

P, ROW, COLUMNS, ITEM = BlockKind.PARAGRAPH, BlockKind.ROW, BlockKind.COLUMNS, BlockKind.ITEM


def read(body: str, **parts: str):
    return extract(docx(body, parts={f"word/{name}.xml": xml for name, xml in parts.items()}), "a")


def test_it_is_recognised_by_what_is_in_it():
    assert extract(docx(paragraph("x")), "a.pdf", "image/png").media_type.endswith("document")


def test_paragraphs_are_apart():
    assert read(paragraph("One.") + paragraph("Two.")).text() == "One.\n\nTwo."


def test_headings_are_known_by_their_style_in_any_language_and_by_inheritance():
    found = read(
        paragraph("Eins", style="berschrift1")
        + paragraph("Zwei", style="berschrift2")
        + paragraph("Drei", style="Own")
        + paragraph("Text", style="Normal")
    )

    assert outline(found) == [(1, "Eins"), (2, "Zwei"), (2, "Drei")]


def test_a_table_is_rows_of_cells():
    found = read(table([["Name", "Age"], ["Ann", "7"]]))

    assert shown(found) == [(COLUMNS, "Name | Age"), (ROW, "Ann | 7")]


def test_a_table_in_a_cell_is_part_of_that_cell():
    inner = table([["a", "b"]])
    body = f"<w:tbl><w:tr><w:tc>{inner}</w:tc><w:tc>{paragraph('c')}</w:tc></w:tr></w:tbl>"

    assert read(body).text() == "a b | c"


def test_a_table_of_one_column_is_text():
    assert shown(read(table([["only"]]))) == [(P, "only")]


def test_list_items_are_items():
    item = "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>milk</w:t></w:r></w:p>"

    found = read(item + paragraph("tea", style="Liste"))

    assert shown(found) == [(ITEM, "- milk"), (ITEM, "- tea")]


def test_styles_in_a_circle_are_no_heading():
    circle = (
        '<w:styles xmlns:w="urn:w"><w:style w:styleId="a"><w:basedOn w:val="b"/></w:style>'
        '<w:style w:styleId="b"><w:basedOn w:val="a"/></w:style></w:styles>'
    )

    assert shown(read(paragraph("x", style="a"), styles=circle)) == [(P, "x")]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<w:del><w:r><w:tab/><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>!</w:t></w:r>",
            "kept!",
        ),
        ("<w:moveFrom><w:r><w:t>elsewhere</w:t></w:r></w:moveFrom>", "kept"),
        ("<w:ins><w:r><w:t> new</w:t></w:r></w:ins>", "kept new"),
        ("<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>", "kept"),
        ('<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> seen</w:t></w:r>', "kept seen"),
        ("<w:hyperlink><w:r><w:t> link</w:t></w:r></w:hyperlink>", "kept link"),
        ("<w:r><w:instrText>PAGE</w:instrText></w:r>", "kept"),
        ("<w:r><w:tab/><w:t>x</w:t></w:r>", "kept\tx"),
        ("<w:r><w:br/><w:t>x</w:t></w:r>", "kept\nx"),
        (
            "<mc:AlternateContent><mc:Choice><w:r><w:t> once</w:t></w:r></mc:Choice>"
            "<mc:Fallback><w:r><w:t> once</w:t></w:r></mc:Fallback></mc:AlternateContent>",
            "kept once",
        ),
    ],
)
def test_what_is_shown_is_read_and_what_is_not_is_not(markup: str, text: str):
    assert read(paragraph("kept", extra=markup)).text() == text


def test_a_text_box_in_a_paragraph_is_text_of_its_own():
    box = f"<w:r><w:txbxContent>{paragraph('in the box')}</w:txbxContent></w:r>"

    assert set(read(paragraph("around", extra=box)).text().split("\n\n")) == {
        "in the box",
        "around",
    }


def test_footnotes_come_at_the_end():
    notes = paragraph("A note.").join(
        ('<w:footnotes xmlns:w="urn:w"><w:footnote>', "</w:footnote></w:footnotes>")
    )

    assert read(paragraph("Text."), footnotes=notes).text() == "Text.\n\nA note."


def test_the_title_is_the_documents_own():
    core = '<c:core xmlns:c="urn:c" xmlns:d="urn:d"><d:title>My  title</d:title></c:core>'

    assert extract(docx(paragraph("x"), parts={"docProps/core.xml": core}), "a").title == "My title"


def test_a_document_without_words_says_so():
    with pytest.raises(UnreadableFile) as refused:
        read("")

    assert refused.value.code == Unreadable.NO_TEXT


def test_other_office_files_are_named_in_the_refusal():
    with pytest.raises(UnreadableFile, match="spreadsheet"):
        extract(archive({"xl/workbook.xml": ""}), "a.xlsx")
