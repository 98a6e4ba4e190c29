import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy.expression import parse
from antiphon.policy.personal import ENTITIES
from antiphon.policy.rulebook import parse_rules
from antiphon.verdicts import PolicyScope, Stage, Verdict


def scoped(*entities):
    names = ", ".join(f'"{entity}"' for entity in entities or ENTITIES)
    return parse_rules(
        "rules.toml",
        'format = 1\n[[rules]]\nid = "personal"\nstages = ["tool", "output"]\n'
        f'action = "transform"\nreplacement = "<{{entity}}>"\n'
        f'match = {{ kind = "personal", entities = [{names}] }}\n',
        folder=None,
    ).for_scope(PolicyScope())


ALL = scoped()


def masked(text, rules=ALL):
    window = rules.window("")
    streamed = "".join([*(window.feed(char).text for char in text), window.finish().text])
    whole = Verdict(version="", findings=tuple(rules.search(Stage.TOOL, text)))
    assert whole.applied(text) == streamed
    return streamed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to Ann.Lee+x@mail.example.co.uk.", "Write to <EMAIL_ADDRESS>."),
        ("<a@b.de>, c@d.org", "<<EMAIL_ADDRESS>>, <EMAIL_ADDRESS>"),
        ("card 4111 1111 1111 1111, yes", "card <CREDIT_CARD>, yes"),
        ("amex 3782-822463-10005", "amex <CREDIT_CARD>"),
        ("5555555555554444 or 12 4111 1111 1111 1111", "<CREDIT_CARD> or 12 <CREDIT_CARD>"),
        ("GB82WEST12345698765432 is mine", "<IBAN_CODE> is mine"),
        ("de89 3704 0044 0532 0130 00 have it", "<IBAN_CODE> have it"),
        ("from 192.168.0.1 to [2001:db8::1:2]", "from <IP_ADDRESS> to [<IP_ADDRESS>]"),
        (
            "SSN 123-45-6789; my social security number is 123456789",
            "SSN <US_SSN>; my social security number is <US_SSN>",
        ),
        ("see https://example.org/a?b=c.", "see <URL>."),
        ("(www.example.org/x)", "(<URL>)"),
        ("+49 (0)30 1234567 and 0049-30-1234567", "<PHONE_NUMBER> and <PHONE_NUMBER>"),
        ("(212) 555-0123 or 212-555-0123 x12", "<PHONE_NUMBER> or <PHONE_NUMBER>"),
        ("ring 030/1234567 or 01.84.17.61.18", "ring <PHONE_NUMBER> or <PHONE_NUMBER>"),
        ("call me on 450 0840?", "call me on <PHONE_NUMBER>?"),
        ("Fax: 72 128 827\n", "Fax: <PHONE_NUMBER>\n"),
        ("416 60 039 office", "<PHONE_NUMBER> office"),
    ],
)
def test_it_is_masked_the_same_in_a_stream_and_in_a_whole_text(text, expected):
    assert masked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "at 5 p.m. @home, a@b",
        "4111 1111 1111 1112 fails its check digit",
        "order 1234567812345678",
        "GB82WEST12345698765433",
        "version 1.2.3 and 256.1.1.1",
        "at 12:34:56, x[1::2], std::vector",
        "000-12-3456 666-12-3456 123-00-4567 123-45-0000 912-34-5678",
        "541 6343 Skogstien 106",
        "2019 2020 2021",
        "On 2018-01-14 03:07:43",
        "on 24.12.2024 18:00",
        "file 01-12-2024-18",
        "my driver's license number is 2270-66-1551",
        "call the version of 2270-66-1551",
        "the answer is 12345678",
        "phone (2019) 12",
        "1700000000 seconds",
        "(2019) 123-145",
        "http:// is a scheme",
    ],
)
def test_what_only_looks_like_it_passes(text):
    assert masked(text) == text


def test_only_the_entities_of_the_rule_are_looked_for():
    text = "a@b.org 4111111111111111"

    assert masked(text, scoped("CREDIT_CARD")) == "a@b.org <CREDIT_CARD>"


PARTS = [
    "a@b.org",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "192.168.0.1",
    "123-45-6789",
    "+49 30 123456",
    "450 0840",
    "call me on ",
    " office",
    "https://a.org/b",
    *" .-/\n7a",
]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=8), data=st.data())
def test_wherever_the_output_is_cut_the_same_is_masked(parts, data):
    text = "".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    window = ALL.window("")

    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    passed = [window.feed(piece).text for piece in pieces]

    assert "".join([*passed, window.finish().text]) == masked(text)


def test_every_form_has_a_longest_match():
    for forms in ENTITIES.values():
        for form in forms:
            for pattern in form.patterns:
                assert parse(pattern).longest <= 512
