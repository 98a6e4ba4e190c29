"""The title of a conversation: how a model is asked for it, which of its answers is one, and what
stands in for it. Pure."""

import re
from collections.abc import Iterator, Sequence

from antiphon.actors.workers.asking import is_of_its_kind, is_refusal, repeats
from antiphon.actors.workers.expressions import phrases
from antiphon.actors.workers.facts import numbers
from antiphon.actors.workers.lines import Line, Speaker
from antiphon.actors.workers.sentences import sentences
from antiphon.actors.workers.stopwords import ALL_STOPWORDS
from antiphon.actors.workers.words import folded, is_unspaced, terms, words
from antiphon.events import Message

TOKENS = 16
"""The longest answer: a title of sixty characters has fewer."""
LONGEST = 60
_SHORTEST = 2
_LONGEST_OWN = 48
"""Characters of one that is taken out of what was said; cut where a word ends."""
_LONGEST_UNSPACED = 20
_MOST_WORDS = 8
_LEAST_WORDS = 3
"""Of one that is cut, whatever they are."""
_TELLING = 5
"""Letters of a word that may be its last one."""
_ABOUT = 0.5
"""Of its words: as many have to be words of the conversation, or begin as they do."""
_STEM = 4
"""Letters in which words are alike that differ in their endings."""
_SHOWN = 600
"""Characters of each line that a model is shown."""

INSTRUCTION = (
    "Write a short title of three to six words for the conversation below, in its own language. "
    "Answer with the title only."
)
_PREFIX = re.compile(
    r"^(?:here(?:'s| is)[^:\n]{0,40}:|(?:conversation\s+|chat\s+)?"
    r"(?:title|titel|titre|título|titolo)\s*:)\s*",
    re.IGNORECASE,
)
_WRAPPING = "\"'`*_#„“”‚‘’«»“”《》「」『』[]() \t"
_MARKUP = re.compile(rf"[*_`#<>{{}}|\\\"“”]|https?://|\b(?:{'|'.join(Speaker)}):")
_GREETING = phrases(
    r"""^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|dear \w+|thanks|thank you
    |ok(?:ay)?|hallo|guten (?:tag|morgen|abend)|servus|grüß \w+|moin|bonjour|bonsoir|salut
    |coucou|hola|buenos días|buenas \w+|ciao|buongiorno|olá|oi|bom dia|hoi|dag|你好|您好
    |こんにちは)(?: there| everyone| all| again| zusammen)?[\s,.!?:;，。！？-]+)+"""
)
_REQUEST = phrases(
    r"""^(?:(?:please|bitte|s'il (?:te|vous) plaît|por favor|per favore)[\s,]+|(?:can|could|would
    |will) you (?:please )?|(?:can|could|may) i |i(?:'d| would) like (?:you )?to |i (?:want
    |need) (?:you )?to |help me (?:to |with )?|i need (?:some )?help (?:with |in )?|let's
     |(?:tell|give|show) me (?:about |of )?
    |(?:what(?:'s| is| are| was| were)|who (?:is|was|are)|how (?:do|can|should|would) (?:i|you
    |we)|where (?:is|are)|why (?:is|are|do|does)) |(?:kannst|könntest|können|könnten) (?:du
    |sie) (?:mir )?(?:bitte )?|ich (?:möchte|will|würde gerne?) |(?:was|wer|wie|wo) (?:ist
    |sind|war) |(?:sag|erzähl|erkläre?|gib) mir (?:bitte )?|(?:peux-tu|pouvez-vous|pourrais-tu
    |pourriez-vous) (?:me )?|je (?:veux|voudrais) |dis-moi |(?:quel(?:le)?s? (?:est|sont)
    |qu'est-ce que|qui est|où est|comment) |(?:puedes|podrías) |quiero |dime |¿?(?:qué|cuál
    |quién|dónde|cómo) (?:es|son|está) )+"""
)
_ADDRESS = re.compile(r"https?://\S+|www\.\S+")
_BREAKS = re.compile(r"[,;:(（，、；：–—]|\s-\s")


def messages(lines: Sequence[Line]) -> tuple[Message, ...]:
    """What a model is shown: the first exchange."""
    said = "\n".join(f"{line.speaker}: {_clipped(line.text, _SHOWN)}" for line in _exchange(lines))
    return (Message(role="user", content=f"{INSTRUCTION}\n\n{said}\n\nTitle:"),)


def checked(answer: str, lines: Sequence[Line], *, is_cut: bool) -> str | None:
    """The title in a model's answer; None where there is none. `is_cut`: the answer would have gone
    on."""
    said = [line for line in answer.splitlines() if line.strip(_WRAPPING)]
    if not said or (is_cut and len(said) == 1):
        return None
    title = _PREFIX.sub("", said[0].strip(_WRAPPING)).strip(_WRAPPING)
    title = " ".join(title.split()).rstrip(".:;,")
    if not _SHORTEST <= len(title) <= LONGEST or not 0 < len(words(title)) <= _MOST_WORDS:
        return None
    if _MARKUP.search(title) or is_refusal(title) or repeats(title, INSTRUCTION):
        return None
    exchange = _exchange(lines)
    source = "\n".join(line.text for line in exchange)
    asked = "\n".join(line.text for line in exchange if line.speaker is Speaker.USER)
    if not is_of_its_kind(title, source) or numbers(title) - numbers(source):
        return None
    return title if _is_about(title, source, asked) else None


def extracted(lines: Sequence[Line]) -> str | None:
    """The first thing that a user has said with something in it, cut at a word; None where nobody
    has said a word."""
    said = [line.text for line in lines if line.speaker is Speaker.USER]
    spoken = [sentence for text in said for sentence in sentences(text)[:4]]
    telling = (_told(sentence) for sentence in spoken)
    found = next((each for each in telling if any(True for _ in terms(each))), None)
    if found is None:
        found = next((each for each in spoken if words(each)), None)
    if found is None:
        return None
    title = _cut(found).strip(_WRAPPING).rstrip(".!?,;:¿¡。！？ ")
    return title[:1].upper() + title[1:] if len(title) >= _SHORTEST else None


def _exchange(lines: Sequence[Line]) -> Sequence[Line]:
    """To the end of the first answer."""
    answers = (at for at, line in enumerate(lines) if line.speaker is Speaker.ASSISTANT)
    return lines[: next(answers, len(lines)) + 1]


def _is_about(title: str, source: str, asked: str) -> bool:
    """Enough of its words are of the conversation, and one of them is the user's own."""
    said = list(_stems(title))
    known = set(_stems(source))
    share = sum(stem in known for stem in said) / max(len(said), 1)
    return share >= _ABOUT and not set(_stems(asked)).isdisjoint(said)


def _stems(text: str) -> Iterator[str]:
    return (term[:_STEM] for term in terms(text))


def _told(sentence: str) -> str:
    """Without greeting and without asking for it."""
    plain = _ADDRESS.sub("", sentence)
    return _REQUEST.sub("", _GREETING.sub("", plain).lstrip("¿¡ ")).strip()


def _cut(text: str) -> str:
    """Where a clause ends, if that leaves something; else before the last small words."""
    longest = _LONGEST_UNSPACED if is_unspaced(text) else _LONGEST_OWN
    if len(text) <= longest:
        return text
    clause, broken, _ = _BREAKS.sub("\n", text[: longest + 1]).partition("\n")
    if broken and len(list(terms(clause))) >= 2:
        return clause
    if is_unspaced(text):
        return text[:longest]
    spoken = text[: longest + 1].rsplit(None, 1)[0].split()
    if len(spoken) > _LEAST_WORDS and len(spoken[-1]) < _TELLING:
        spoken.pop()  # such as "my two", without what there are two of
    while len(spoken) > _LEAST_WORDS and folded(spoken[-1].strip(",.")) in ALL_STOPWORDS:
        spoken.pop()
    return " ".join(spoken)


def _clipped(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most].rsplit(None, 1)[0]} …"
