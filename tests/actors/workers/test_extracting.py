"""Which sentences a summary is made of."""

from antiphon.actors.workers.extracting import extract, said_in
from antiphon.actors.workers.lines import Line, Speaker
from antiphon.actors.workers.words import estimate_tokens


def user(text: str) -> Line:
    return Line(speaker=Speaker.USER, text=text)


def model(text: str) -> Line:
    return Line(speaker=Speaker.ASSISTANT, text=text)


CHATTER = [
    user("Tell me a story about a dragon."),
    model("Once upon a time there was a dragon who lived alone on a mountain and slept a lot."),
    user("What happened then?"),
    model("The dragon woke up and looked around, and everything was quiet and still."),
]


def test_what_users_say_of_themselves_goes_before_what_they_ask():
    said = [*CHATTER, user("My daughter Mia turns 7 on May 3."), *CHATTER]

    assert extract("", said, 12) == "User: My daughter Mia turns 7 on May 3."


def test_sentences_stand_in_their_order_under_who_said_them():
    said = [user("I live in Graz."), model("Graz has 290,000 people."), user("I'm a baker there.")]

    assert extract("", said, 60) == (
        "User: I live in Graz.\nAssistant: Graz has 290,000 people.\nUser: I'm a baker there."
    )


def test_the_same_is_said_once():
    said = [user("I live in Graz."), user("As I said, I live in Graz."), user("I live in GRAZ!")]

    assert extract("", said, 60).count("Graz") + extract("", said, 60).count("GRAZ") == 1


def test_of_a_question_what_it_says_is_kept():
    assert extract("", [user("I'm allergic to nuts, what can I bake?")], 40) == (
        "User: I'm allergic to nuts."
    )


def test_an_early_fact_outlives_many_summaries():
    text = extract("", [user("My daughter Mia is allergic to nuts."), *CHATTER], 40)
    for number in range(30):
        text = extract(text, [user(f"Tell me of the year {1900 + number}."), *CHATTER], 40)

    assert "User: My daughter Mia is allergic to nuts." in text


def test_a_summary_by_a_model_competes_as_well():
    earlier = "Anna plans a trip to Oslo in July with 2 children."

    text = extract(earlier, CHATTER, 40)

    assert text.startswith(earlier)


def test_it_fits_whatever_was_said():
    long = user("word " * 3000 + ". " + "I live at 5 Main Street. " * 50)
    for tokens in (1, 5, 20, 100):
        assert estimate_tokens(extract("", [long, *CHATTER] * 3, tokens)) <= tokens


def test_it_is_the_same_each_time():
    said = [*CHATTER, user("I have 3 cats: Tom, Max and Lea.")] * 3

    assert len({extract("", said, 50) for _ in range(5)}) == 1


def test_of_nothing_there_is_nothing():
    assert extract("", [], 50) == ""
    assert extract("", [user("```\ncode\n```")], 50) == ""


def test_scripts_without_spaces_are_summarised_too():
    said = [user("我叫小明，住在上海。"), model("你好。"), user("明天天气怎么样？")]

    assert "我叫小明，住在上海。" in extract("", said, 30)


def test_a_summary_is_read_back_as_it_was_written():
    text = "Anna plans a trip.\nUser: I like tea. I hate coffee.\nAssistant: Noted."

    assert list(said_in(text)) == [
        (Speaker.OTHER, "Anna plans a trip."),
        (Speaker.USER, "I like tea."),
        (Speaker.USER, "I hate coffee."),
        (Speaker.ASSISTANT, "Noted."),
    ]
