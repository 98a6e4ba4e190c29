"""What people say of themselves is remembered as they say it; nothing else is."""

import time

import pytest

from antiphon.actors.workers.lines import Line, Speaker
from antiphon.actors.workers.remembering import MOST, is_secret, remembered, statements_in


@pytest.mark.parametrize(
    "said",
    [
        "My name is Anna and I live in Graz.",
        "I'm Tom.",
        "I'm allergic to peanuts.",
        "My sister's name is Petra.",
        "Call me Max",
        "I have two dogs",
        "I'm a software engineer from Leeds",
        "I am a nurse",
        "I work at Siemens as a welder.",
        "My favourite colour is green",
        "I don't eat meat",
        "My budget is 500 euros",
        "My timezone is CET",
        "I'm 34 years old",
        "My mother lives in Rome.",
        "Ich heiße Jonas und wohne in Wien.",
        "Meine Schwester heißt Lena.",
        "Ich bin allergisch gegen Nüsse.",
        "Ich bin Lehrerin.",
        "Mein Lieblingsbuch ist Momo.",
        "Je m'appelle Claire.",
        "J'habite à Lyon et j'ai 34 ans.",
        "Je suis végétarienne",
        "Mon frère s'appelle Luc.",
        "Me llamo Pablo y vivo en Sevilla.",
        "Soy alérgica a los gatos",
        "Mi perro se llama Toby",
        "Prefiero el té",
        "Mi chiamo Luca",
        "Mia sorella si chiama Anna",
        "Moro em Lisboa",
        "Meu nome é Rui",
        "Mijn naam is Piet",
        "Ik woon in Gent",
    ],
)
def test_a_statement_is_remembered_as_it_was_said(said):
    assert statements_in(said) == [said]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Please remember that my train leaves at 9:40.", "My train leaves at 9:40."),
        ("Remember: the code name is Falcon.", "The code name is Falcon."),
        ("Merk dir, dass die Sitzung am Montag ist.", "Die Sitzung am Montag ist."),
        ("N'oublie pas que la réunion est lundi.", "La réunion est lundi."),
        ("Recuerda que la clase es el lunes.", "La clase es el lunes."),
    ],
)
def test_what_is_asked_to_be_remembered_is(said, what):
    assert statements_in(said) == [what]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Hi! I'm Tom, what's up?", "I'm Tom."),
        ("I'm allergic to peanuts, what can I cook tonight?", "I'm allergic to peanuts."),
        ("Thanks! By the way, I'm vegetarian.", "I'm vegetarian."),
        ("my mother lives in Rome, where should I take her?", "My mother lives in Rome."),
        ("I\u2019m allergic to nuts.", "I'm allergic to nuts."),
    ],
)
def test_only_the_statement_of_a_sentence_is(said, what):
    assert statements_in(said) == [what]


@pytest.mark.parametrize(
    "said",
    [
        "What is my name?",
        "Is my name Anna?",
        "If I were a pilot, my name is Bob",
        "Imagine I live in Paris",
        "Stell dir vor, ich heiße Bob.",
        "Let's say my name is Bob.",
        "He said my name is Bob",
        'She wrote "my name is Bob"',
        "> My name is Bob",
        "Translate: my name is Bob",
        "Write a letter. My name is Bob.",
        "Please correct this: I lives in Berlin",
        "Übersetze: ich heiße Bob",
        "I have a question about Python",
        "I'm a bit confused",
        "I'm looking for a hotel",
        "I'm tired",
        "I like your idea",
        "I love that",
        "I love you",
        "My code is broken",
        "My question is simple",
        "Can you call me back?",
        "I need a poem",
        "```\nmy name is Bob\n```",
        "my password is hunter2",
        "Remember that my PIN is 1234.",
        "Remember that my card is 4111 1111 1111 1111.",
        "Remember that my account is DE89 3704 0044 0532 0130 00.",
        "Remember that my key is sk-abcdef1234567890abcdef1234",
        "Merk dir, dass mein Passwort geheim ist.",
        "My name is Bob. " + "word " * 400,
        "",
    ],
)
def test_nothing_else_is_remembered(said):
    assert statements_in(said) == []


def test_of_one_message_a_few_are_remembered_each_once():
    said = "My name is Bo. I live in Rome. I'm a baker. I have two dogs. My name is Bo."

    assert statements_in(said) == ["My name is Bo.", "I live in Rome.", "I'm a baker."]
    assert MOST == 3


def test_only_users_say_what_is_remembered():
    lines = [
        Line(speaker=Speaker.ASSISTANT, text="My name is Antiphon."),
        Line(speaker=Speaker.USER, text="I live in Graz."),
    ]

    assert list(remembered(lines)) == [(lines[1], "I live in Graz.")]


def test_secrets_are_those_of_the_policy():
    assert is_secret("ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    assert is_secret("4111-1111-1111-1111")
    assert is_secret("My social security number is 123-45-6789")
    assert not is_secret("I was born on 12 May 1987")


@pytest.mark.parametrize(
    "text",
    [
        "my " * 500,
        "I am a " * 200,
        "remember " * 150,
        "i " * 700,
        "and my name is " * 90,
        ", " * 700,
    ],
)
def test_no_message_takes_long(text):
    began = time.process_time()

    statements_in(text)

    assert time.process_time() - began < 1
