"""Texts as people write them to get past a filter, or in a hurry. The label stays the same."""

from random import Random

_LEET = {"a": "4@", "e": "3", "i": "1!", "o": "0", "s": "5$", "t": "7"}


def disguised(text: str, random: Random) -> str:
    """One or two words of the text in a disguise drawn at random."""
    words = text.split(" ")
    long_ones = [at for at, word in enumerate(words) if len(word) >= 4 and word.isascii()]
    if not long_ones:
        return text
    kind = random.choice([_swapped, _shortened, _doubled, _leeted, _spaced, _spaced, _dotted])
    for at in random.sample(long_ones, min(len(long_ones), random.choice([1, 1, 2]))):
        words[at] = kind(words[at], random)
    if random.random() < 0.1 and len(words) > 2:
        at = random.randrange(len(words) - 1)
        words[at : at + 2] = ["".join(words[at : at + 2])]
    return " ".join(words)


def _swapped(word: str, random: Random) -> str:
    at = random.randrange(1, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _shortened(word: str, random: Random) -> str:
    at = random.randrange(1, len(word) - 1)
    return word[:at] + word[at + 1 :]


def _doubled(word: str, random: Random) -> str:
    at = random.randrange(1, len(word))
    return word[:at] + word[at - 1] + word[at:]


def _leeted(word: str, random: Random) -> str:
    return "".join(
        random.choice(_LEET[each]) if each in _LEET and random.random() < 0.7 else each
        for each in word
    )


def _spaced(word: str, random: Random) -> str:
    return " ".join(word)


def _dotted(word: str, random: Random) -> str:
    return random.choice(".-*_").join(word)
