"""How documents are cut: nothing lost, nothing too long, and at the places where people would."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.chunking import cut
from antiphon.documents.reader_config import Limits
from antiphon.documents.reader_wire import Cut
from antiphon.documents.units import estimated_tokens
from antiphon.reading_files import BlockKind, Chunking
from antiphon.testing.prose import paragraphs

SMALL = Chunking(max_tokens=100, overlap_tokens=0)
KINDS = [BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.CODE]


def building() -> DocumentBuilder:
    return DocumentBuilder("text/plain", Limits())


def cuts(builder: DocumentBuilder, chunking: Chunking = SMALL) -> list[Cut]:
    text = builder.text()
    return list(cut(text, builder.blocks, builder.headings, builder.page_starts, chunking))


def texts(builder: DocumentBuilder, chunking: Chunking = SMALL) -> list[str]:
    text = builder.text()
    return [text[one.start : one.end] for one in cuts(builder, chunking)]


pieces = st.one_of(
    st.tuples(st.just("heading"), st.integers(1, 4), st.text("ab ", min_size=1, max_size=20)),
    st.tuples(
        st.sampled_from(KINDS),
        st.lists(
            st.sampled_from(["word", "Ende.", "\n", "语言", "x" * 90, "3.14", "!?", "ü"]),
            min_size=1,
            max_size=150,
        ),
    ),
    st.tuples(st.just("row"), st.lists(st.sampled_from(["a", "b 12", ""]), max_size=40)),
    st.just(("page",)),
)
chunkings = st.builds(
    lambda most, share: Chunking(max_tokens=most, overlap_tokens=int(most * share)),
    st.integers(100, 300),
    st.floats(0, 0.5),
)


@given(st.lists(pieces, max_size=25), chunkings)
def test_chunks_are_all_of_the_text_in_order_and_within_their_size(drawn, chunking):
    builder = building()
    for piece in drawn:
        match piece:
            case ("heading", level, text):
                builder.heading(level, text)
            case ("row", cells):
                builder.row(cells, first=len(cells) % 3 == 0)
            case ("page",):
                builder.page()
            case (kind, words):
                builder.add(kind, " ".join(words))
    text = builder.text()

    found = cuts(builder, chunking)

    covered = 0
    for one in found:
        assert not text[covered : one.start].strip(), "nothing is left out"
        assert one.end > covered, "each says something new"
        covered = one.end
        said = text[one.start : one.end]
        assert said.strip()
        assert said == said.lstrip("\n").rstrip()
        lead = text[one.lead[0] : one.lead[1]] if one.lead else ""
        assert estimated_tokens(lead + said) <= chunking.max_tokens
        levels = [builder.headings[place].level for place in one.path]
        assert levels == sorted(set(levels))
        assert all(builder.headings[place].start <= one.end for place in one.path)
        if builder.page_starts and one.page is not None:
            assert builder.page_starts[one.page - 1] <= one.start
    assert not text[covered:].strip()


def test_a_section_that_is_large_enough_begins_a_chunk():
    builder = building()
    for title in ("One", "Two"):
        builder.heading(1, title)
        builder.add(BlockKind.PARAGRAPH, f"The section {title.lower()} says something. " * 8)

    first, second = texts(builder)

    assert first.startswith("One")
    assert second.startswith("Two")


def test_small_sections_are_put_together_under_what_they_have_in_common():
    builder = building()
    builder.heading(1, "Animals")
    for name in ("Cat", "Dog"):
        builder.heading(2, name)
        builder.add(BlockKind.PARAGRAPH, f"A {name.lower()}.")

    [only] = cuts(builder)

    assert only.path == (0,)


def test_a_heading_is_never_the_last_of_a_chunk():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, "word " * 20)
    builder.heading(1, "Title")
    builder.add(BlockKind.PARAGRAPH, "word " * 95)

    assert not any(text.endswith("Title") for text in texts(builder))


def test_a_full_chunk_ends_with_a_paragraph_rather_than_within_one():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, "First sentence is here. " * 15)
    builder.add(BlockKind.PARAGRAPH, "Second sentence is here. " * 15)

    first, second = texts(builder)

    assert first.endswith("First sentence is here.")
    assert second.startswith("Second")


def test_a_long_paragraph_is_cut_between_sentences():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, next(paragraphs(1, count=1, sentences=40)))

    found = texts(builder)

    assert len(found) > 3
    assert all(text.endswith(".") for text in found)


def test_the_overlap_is_whole_sentences_of_the_same_section():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, " ".join(f"This is sentence number {n}." for n in range(60)))

    found = texts(builder, Chunking(max_tokens=100, overlap_tokens=30))

    for before, after in pairwise(found):
        shared = after.split(". ")[0]
        assert shared in before
    assert all(text.startswith("This") for text in found)


def test_what_is_new_comes_before_what_is_shared():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, " ".join(["A short one."] * 16 + ["word " * 90 + "end."]))
    chunking = Chunking(max_tokens=100, overlap_tokens=50)

    assert max(map(estimated_tokens, texts(builder, chunking))) <= 100


def test_no_overlap_crosses_a_heading():
    builder = building()
    for title in ("One", "Two"):
        builder.heading(1, title)
        builder.add(BlockKind.PARAGRAPH, f"The {title} says something. " * 12)

    found = texts(builder, Chunking(max_tokens=100, overlap_tokens=50))

    assert [text[:3] for text in found] == ["One", "Two"]


def test_later_rows_of_a_table_come_after_what_the_columns_are():
    builder = building()
    builder.row(["name", "age"], first=True)
    for number in range(60):
        builder.row([f"person {number}", str(number)], first=False)

    first, *others = cuts(builder)

    assert first.lead is None
    assert others
    text = builder.text()
    assert {text[one.lead[0] : one.lead[1]] for one in others if one.lead} == {"name | age"}


def test_a_chunk_knows_its_page():
    builder = building()
    for number in range(3):
        builder.page()
        builder.heading(1, f"Page {number}")
        builder.add(BlockKind.PARAGRAPH, "word " * 80)

    assert [one.page for one in cuts(builder)] == [1, 2, 3]


def test_a_word_without_end_is_cut():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, "x" * 20_000)

    assert "".join(texts(builder)) == "x" * 20_000


def test_a_million_full_stops_are_looked_at_once():
    builder = building()
    builder.add(BlockKind.PARAGRAPH, "." * 1_000_000)

    assert sum(map(len, texts(builder, Chunking()))) >= 1_000_000
