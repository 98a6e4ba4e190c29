"""From bytes to characters: what is certain first, a guess last, and never silently."""

import pytest

from antiphon.documents.decoding import decode
from antiphon.errors import UnreadableFile
from antiphon.reading_files import Unreadable

GERMAN = "Das Mädchen ißt gerne Käse – und später „Äpfel“ für 5 €. "
SAMPLES = {
    "cp1252": GERMAN,
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Żółw i łódź. ",
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю. ",
    "koi8_r": "Съешь же ещё этих мягких французских булок, да выпей чаю. ",
    "cp1253": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η ελληνική γλώσσα. ",
    "shift_jis": "これは日本語の文章です。文字コードの判定をテストします。",
    "euc_jp": "これは日本語の文章です。文字コードの判定をテストします。",
    "gb18030": "这是一个中文的句子。我们测试字符编码的检测。",
    "big5": "這是一個中文的句子。我們測試字元編碼的檢測。",
    "euc_kr": "이것은 한국어 문장입니다. 문자 인코딩을 시험합니다.",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_unicode_is_certain(encoding: str):
    text = "Plain words, and Käse.\n" * 3

    assert decode(text.encode(encoding)) == (text, ())


@pytest.mark.parametrize("encoding", SAMPLES)
def test_older_encodings_are_guessed_and_said_to_be(encoding: str):
    text = SAMPLES[encoding] * 3

    decoded, notices = decode(text.encode(encoding))

    assert decoded == text
    assert "doesn't say its encoding" in notices[0]


def test_what_was_declared_counts_before_a_guess():
    text = SAMPLES["koi8_r"]

    assert decode(text.encode("cp1251"), "windows-1251") == (text, ())


@pytest.mark.parametrize("declared", ["no-such-encoding", "zip", "base64", "idna", "\x00", "hex"])
def test_a_declared_encoding_that_is_none_for_texts_is_passed_over(declared: str):
    assert decode(b"text \xe4", declared)[0] == "text ä"


def test_latin_1_is_what_browsers_take_it_for():
    assert decode("„5 €“".encode("cp1252"), "iso-8859-1")[0] == "„5 €“"


def test_a_few_broken_bytes_are_replaced_and_counted():
    data = bytearray((GERMAN * 40).encode())
    at = data.index("ß".encode(), 100)
    del data[at]

    text, notices = decode(bytes(data))

    assert text.count("\ufffd") == 1
    assert notices == ("One place in the file can't be decoded and was replaced.",)


def test_utf_16_that_is_cut_in_the_middle_of_a_character_is_replaced():
    text, notices = decode("a text".encode("utf-16")[:-1])

    assert text == "a tex\ufffd"
    assert notices


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 40,
        bytes((at * 89 + at // 5) % 128 + 128 for at in range(5_000)),
        b"\x00\x01\x02\x03" * 100,
        b"\xff\xfe" + b"\x00\xd8" * 500,
        b"\xef\xbb\xbf" + b"\xff" * 500,
    ],
)
def test_what_is_no_text_is_refused(data: bytes):
    with pytest.raises(UnreadableFile) as refused:
        decode(data)

    assert refused.value.code == Unreadable.ENCODING
