import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.http.openai.files.names import attachment_headers, media_type, safe_name


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("a.txt", "a.txt"),
        ("C:\\Users\\ann\\a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("a\x00b\r\nc\u202e.txt", "abc.txt"),
        ("", "file"),
        (None, "file"),
        ("..", "file"),
        ("a/", "file"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("\ud800x", "x"),
        ("x" * 300 + ".txt", "x" * 251 + ".txt"),
        ("é" * 300, "é" * 127),
    ],
)
def test_a_name_is_made_harmless(given_name, kept):
    assert safe_name(given_name) == kept


@given(st.text(max_size=400))
def test_no_name_is_a_path_a_control_character_or_too_long(text):
    name = safe_name(text)

    assert 0 < len(name.encode()) <= 255
    assert not set(name) & set("/\\\x00\r\n")
    assert name not in {".", ".."}
    assert safe_name(name) == name


@given(st.text(max_size=100))
def test_no_name_breaks_out_of_its_header(text):
    header = attachment_headers(text)["content-disposition"]

    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2


@pytest.mark.parametrize(
    ("declared", "name", "kept"),
    [
        ("text/csv; charset=utf-8", "a.txt", "text/csv"),
        ("application/octet-stream", "a.json", "application/json"),
        (None, "a.unheard", "application/octet-stream"),
        ("evil\r\nx: y", "a", "application/octet-stream"),
    ],
)
def test_a_media_type_is_the_one_declared_else_the_one_suggested(declared, name, kept):
    assert media_type(declared, name) == kept
