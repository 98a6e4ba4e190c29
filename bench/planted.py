"""Conversations in which somebody says things early that are asked for late: what they say, by
which words it is known again, and all the talk in between, which has names and numbers of its own.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.prose import prose

_FACTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "en": (
        ("My name is {}.", ("Odalys Brandt", "Tiberius Quill", "Marguerite Yoo", "Anselm Okoro")),
        ("I'm allergic to {}, so please keep that in mind.", ("hazelnuts", "shellfish", "lupin")),
        ("My daughter {} starts school in September.", ("Philippa", "Henrike", "Solveig")),
        ("I live in {} with my husband.", ("Tromsø", "Ljubljana", "Valparaíso", "Dunedin")),
        ("We decided to call the project {}.", ("Bluebottle", "Kingfisher", "Marzipan")),
        ("The deadline is {}, and it can't be moved.", ("17 October", "9 March", "28 June")),
        ("Our budget for this is {} euros.", ("4,350", "12,900", "780")),
        ("The contact at the agency is {}.", ("Rosalind Achterberg", "Emeka Vance")),
        ("I prefer {} over coffee.", ("rooibos", "genmaicha", "yerba mate")),
        ("The test server listens on port {}.", ("8447", "9013", "6022")),
        ("I was thinking, since my brother {} is a vet, we could ask him.", ("Casimir", "Leopold")),
        ("We have to invite {} people to the party.", ("37", "64", "112")),
    ),
    "de": (
        ("Ich heiße {}.", ("Friederike Aldinger", "Korbinian Weiss")),
        ("Ich bin allergisch gegen {}.", ("Haselnüsse", "Sellerie")),
        ("Meine Tochter {} kommt im Herbst in die Schule.", ("Leokadia", "Wilhelmine")),
        ("Der Abgabetermin ist der {}.", ("17. Oktober", "9. März")),
        ("Wir haben das Projekt {} genannt.", ("Eisvogel", "Zaunkönig")),
        ("Das Budget liegt bei {} Euro.", ("4350", "12900")),
    ),
    "fr": (
        ("Je m'appelle {}.", ("Apolline Desrosiers", "Barnabé Quintal")),
        ("Je suis allergique aux {}.", ("noisettes", "crevettes")),
        ("Ma fille {} entre à l'école en septembre.", ("Clémence", "Ombeline")),
        ("La date limite est le {}.", ("17 octobre", "9 mars")),
        ("Notre budget est de {} euros.", ("4350", "12900")),
        ("Nous avons appelé le projet {}.", ("Martin-pêcheur", "Hirondelle")),
    ),
    "es": (
        ("Me llamo {}.", ("Casilda Arizmendi", "Fermín Oteiza")),
        ("Soy alérgica a {}.", ("las avellanas", "los mariscos")),
        ("Mi hija {} empieza el colegio en septiembre.", ("Leocadia", "Candela")),
        ("La fecha límite es el {}.", ("17 de octubre", "9 de marzo")),
        ("Nuestro presupuesto es de {} euros.", ("4350", "12900")),
        ("Hemos llamado al proyecto {}.", ("Colibrí", "Golondrina")),
    ),
}
"""What is said, and by what it is known again."""
_ASIDES = ("By the way: ", "", "", "One more thing. ")
_QUESTIONS = (
    "Can you tell me how many people lived in {city} in {year}?",
    "What happened in {city} in {year}?",
    "Please write a few lines about {city}.",
    "How far is {city} from {other}?",
    "Explain in {number} sentences why {city} is famous.",
    "Which {number} museums of {city} would you compare with those of {other}?",
)
_REMARKS = (
    "I read that {city} is beautiful in spring.",
    "We once thought of going to {city} for {number} days.",
    "Thanks, I didn't know that about {other}.",
    "My colleague told me about {city} in {year}.",
    "I find {other} more interesting than {city}.",
)
_REMARKED = 0.4
"""Of the turns in between: with something that reads like a fact about the user."""
_CITIES = ("Lisbon", "Kyoto", "Quebec", "Cairo", "Riga", "Bergen", "Lima", "Perth", "Turin", "Fez")
_SHARES = ("en",) * 6 + ("de", "de", "fr", "es")
_FACTS_EACH = 6
_EARLY = 3
"""Turns over which they are spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A conversation: its turns, and the words that are to be found in the end."""

    language: str
    turns: tuple[tuple[str, str], ...]
    wanted: tuple[str, ...]


def planted(number: int, turns: int) -> Planted:
    """The same for the same number."""
    dice = random.Random(f"planted {number}")
    language = _SHARES[number % len(_SHARES)]
    facts = [
        (text, dice.choice(known)) for text, known in dice.sample(_FACTS[language], _FACTS_EACH)
    ]
    early: list[list[str]] = [[] for _ in range(_EARLY)]
    for place, (text, known) in enumerate(facts):
        early[place % _EARLY].append(dice.choice(_ASIDES) + text.format(known))
    said = [f"{' '.join(texts)} {_question(dice)}" for texts in early]
    said += [_question(dice) for _ in range(turns - _EARLY)]
    return Planted(
        language=language,
        turns=tuple((text, _answer(dice)) for text in said),
        wanted=tuple(known for _, known in facts),
    )


def question() -> str:
    """After which all of it is wanted; it holds nothing of it."""
    return "Please put together all that you know of me and of what we have planned."


def _question(dice: random.Random) -> str:
    city, other = dice.sample(_CITIES, 2)
    texts = [dice.choice(_QUESTIONS)]
    if dice.random() < _REMARKED:
        texts.insert(0, dice.choice(_REMARKS))
    return " ".join(texts).format(
        city=city, other=other, year=dice.randint(1500, 2020), number=dice.randint(2, 9)
    )


def _answer(dice: random.Random) -> str:
    """What models say: long, and full of names and numbers."""
    return " ".join(_statements(dice))


def _statements(dice: random.Random) -> Iterator[str]:
    for _ in range(dice.randint(3, 6)):
        city, year = dice.choice(_CITIES), dice.randint(1500, 2020)
        yield f"In {year}, {city} had {dice.randint(10, 900)},000 inhabitants."
        yield prose(dice, dice.randint(12, 30)).rstrip(".") + "."
