"""Plain sentences of any length, each different, so that no prefix cache knows them: what people
write about ordinary days. Words thrown together at random look odd to the policy, which then looks
at them for longer than it does at what people write."""

import random

_TIMES = (
    "In the morning", "After lunch", "Last week", "On Sunday", "Before the meeting", "In spring",
    "Every evening", "During the holidays", "At noon", "Two years ago", "On the way home",
    "As soon as it was warm", "When the shop opened", "In the first year", "Late in autumn",
)  # fmt: skip
_PEOPLE = (
    "the teacher", "my neighbour", "a student", "the gardener", "our family", "the librarian",
    "the new colleague", "my sister", "the baker", "a group of friends", "the engineer",
    "the choir", "her grandfather", "the tour guide", "a musician", "the accountant",
)  # fmt: skip
_DEEDS = (
    "planned a trip", "wrote a letter", "compared two offers", "painted the kitchen",
    "asked about the timetable", "repaired an old bicycle", "read a book about rivers",
    "made a list of questions", "learned a new song", "cooked soup with vegetables",
    "measured the garden", "explained the report", "looked for a quiet place",
    "talked about the weather", "collected photographs", "baked bread with seeds",
    "counted the chairs", "moved the meeting", "opened the window", "bought a map",
)  # fmt: skip
_PLACES = (
    "in the library", "near the station", "at the office", "by the lake", "in a small town",
    "on the second floor", "at the market", "in the mountains", "behind the school",
    "in the community hall", "close to the museum", "at home", "in the botanical garden",
)  # fmt: skip
_REASONS = (
    "because the train was late", "so that everybody had enough time", "and wrote down the result",
    "although it was raining", "and invited the whole team", "since the old one was too small",
    "to prepare for the summer", "and found it easier than expected", "with a cup of tea",
    "and told the others about it", "to save some money", "while the children played chess",
)  # fmt: skip


def prose(dice: random.Random, words: int) -> str:
    """About so many words, in sentences."""
    sentences: list[str] = []
    count = 0
    while count < words:
        parts = [dice.choice(each) for each in (_TIMES, _PEOPLE, _DEEDS, _PLACES, _REASONS)]
        time, *rest = parts
        sentences.append(f"{time} {' '.join(rest)}.")
        count += sum(len(part.split()) for part in parts)
    return " ".join(" ".join(sentences).split()[:words])
