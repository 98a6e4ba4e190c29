import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.vocabulary import Vocabulary
from antiphon.testing.vocabularies import END, byte_level_vocabulary, word_piece_vocabulary

BYTE_LEVEL = byte_level_vocabulary()
WORD_PIECE = word_piece_vocabulary()
TEXT = st.text(
    alphabet=["h", "e", "l", " ", "w", "é", "漢", "🎉", "👩", "\u200d", "a", "b"], max_size=25
)


def streamed(vocabulary: Vocabulary, tokens: list[int]) -> list[str]:
    stream = vocabulary.stream()
    return [*map(stream.push, tokens), stream.flush()]


@given(tokens=st.lists(st.integers(0, BYTE_LEVEL.get_vocab_size() - 1), max_size=40))
def test_any_byte_level_tokens_stream_to_what_decoding_them_at_once_gives(tokens: list[int]):
    text = "".join(streamed(Vocabulary(BYTE_LEVEL), tokens))

    whole = BYTE_LEVEL.decode(tokens)
    assert text in (whole, whole.removesuffix("�"))


@given(text=TEXT, ends=st.lists(st.integers(0, 50), max_size=3))
@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, WORD_PIECE], ids=["byte level", "word piece"])
def test_text_streams_back_whatever_special_tokens_stand_between(tokenizer, text, ends):
    tokens = tokenizer.encode(text).ids
    for end in ends:
        tokens.insert(min(end, len(tokens)), END)

    pieces = streamed(Vocabulary(tokenizer), tokens)

    # Decoding at once, they would part a character that byte tokens spell.
    whole = tokenizer.decode([token for token in tokens if token != END])
    assert "".join(pieces) == whole
    assert not any("�" in piece for piece in pieces)


@given(text=TEXT, cut=st.integers(0, 100))
@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, WORD_PIECE], ids=["byte level", "word piece"])
def test_an_answer_cut_inside_a_character_ends_before_it(tokenizer, text, cut):
    tokens = tokenizer.encode(text).ids[:cut]

    streamed_text = "".join(streamed(Vocabulary(tokenizer), tokens))

    assert "�" not in streamed_text
    assert tokenizer.decode(tokenizer.encode(text).ids).startswith(streamed_text)


def test_an_emoji_of_several_tokens_leaves_whole_with_the_last_one():
    tokens = BYTE_LEVEL.encode("🎉!").ids
    assert len(tokens) == 4

    assert streamed(Vocabulary(BYTE_LEVEL), tokens) == ["", "", "🎉", "!", ""]


def test_bytes_that_are_no_text_do_not_hold_back_what_follows():
    stream = Vocabulary(WORD_PIECE).stream()
    broken = WORD_PIECE.token_to_id("<0xFF>")

    pushed = [stream.push(broken) for _ in range(100)]

    assert "".join(pushed).count("�") > 32


def test_a_word_after_a_special_token_keeps_its_blank():
    tokens = [*WORD_PIECE.encode("a").ids, END, *WORD_PIECE.encode("b").ids]

    assert "".join(streamed(Vocabulary(WORD_PIECE), tokens)) == "a b"


@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, WORD_PIECE], ids=["byte level", "word piece"])
def test_bytes_of_tokens_add_up_to_the_text(tokenizer):
    vocabulary = Vocabulary(tokenizer)

    data = b"".join(map(vocabulary.data, [*tokenizer.encode("ab 🎉é a").ids, END]))

    assert data.decode().strip() == "ab 🎉é a"
    assert vocabulary.data(END) == b""
    assert vocabulary.data(10**6) == b""
