"""A text in sentences: prose as it stands, without markup and without program code. Pure."""

import re
from collections.abc import Iterator

from antiphon.actors.workers.expressions import phrases

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|[-*+•–]\s+|\d{1,3}[.)]\s+|>+\s*)+")
_TABLE_ROW = re.compile(r"\|.*\||[-=_*|: ]{3,}")
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\n]{0,2000}\)")
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)([^\n]{1,300}?)(?<=\S)\1")
_END = re.compile(r"""(?<![.!?…؟।॥])[.!?…؟।॥]+["'»”’)\]]*(?=\s)|[。！？]+[」』”）]*""")
"""Where words are spaced, and where they aren't."""
_ENDS = tuple(".!?…؟।॥。！？:;")
_SHORT = """
    approx apt art av bzw ca cf co corp dept dr ed eg etc evtl fig gen geb ggf gov hon ie inc jr lt
    ltd mag max mio mlle mm mme mr mrs ms mt mwst nr no op p pp prof rev sec sen sig sog sr st str
    tel u.a usw u.s v vol vs z.b d.h e.g i.e p.m a.m o.ä s.o núm sra srta ud uds exmo"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_BEFORE = re.compile(r"(\S+)$")
_ASKING = r"""
    what(?:'s)?|how|why|when|where|who|which|whose|can|could|would|will|should|do|does|did|is|are
    |tell|please|any|wie|warum|wann|wo|wer|welche\w?|was|kannst?|könntest|soll|gibt|hast|qu'\w+
    |que|quoi|comment|pourquoi|quand|où|quel\w*|peux|pouvez|est-ce|as-tu|avez|qué|cómo|cuándo
    |dónde|quién|cuál|puedes|podrías|por qué|che|cosa|come|perché|quando|dove|chi|puoi|quale|como
    |onde|quem|qual|pode|podes|wat|hoe|waarom|wanneer|waar|kun"""
_JOINING = r"and|so|but|then|und|also|aber|et|donc|mais|y|pero|e|en|dus"
_QUESTION = phrases(
    rf"(?:[,;:] (?:(?:{_JOINING}) )?| (?:{_JOINING}) | [-–—] )(?:{_ASKING})(?!\w)",
)


def sentences(text: str) -> list[str]:
    """In their order; none of them is empty."""
    return [sentence for paragraph in _paragraphs(text) for sentence in _split(paragraph)]


def _paragraphs(text: str) -> Iterator[str]:
    """Lines, those joined that only a margin has broken."""
    whole = ""
    for raw in _FENCED.sub("\n", text).splitlines():
        line = "" if _TABLE_ROW.fullmatch(raw.strip()) else _plain(raw)
        is_item = _MARKS.match(raw) is not None
        if whole and (not line or is_item or whole.endswith(_ENDS) or not _continues(line)):
            yield whole
            whole = ""
        whole = f"{whole} {line}".strip()
    if whole:
        yield whole


def _continues(line: str) -> bool:
    return line[0].islower()


def _plain(line: str) -> str:
    line = _LINK.sub(r"\1", _MARKS.sub("", line))
    return " ".join(_EMPHASIS.sub(r"\2", line).split())


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(paragraph):
        if _is_end(paragraph, start, end):
            if sentence := paragraph[start : end.end()].strip():
                yield sentence
            start = end.end()
    if rest := paragraph[start:].strip():
        yield rest


def _is_end(text: str, start: int, end: re.Match[str]) -> bool:
    if not end[0].startswith("."):
        return True
    following = text[end.end() :].lstrip()[:1]
    if following.islower():
        return False
    before = _BEFORE.search(text, start, end.start())
    if before is None or end[0].startswith(".."):
        return True
    word = before[1].lstrip("(\"'«„“").casefold()
    # An initial, an abbreviation, or an ordinal as several languages write it: "am 3. März".
    is_short = len(word) == 1 or word in _ABBREVIATIONS or (word.isdigit() and len(word) <= 2)
    return not is_short


def is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'»”’)* ").endswith(("?", "？", "؟"))


def statement_of(sentence: str) -> str | None:
    """What a sentence says; of one that ends in a question, what comes before that, if anything
    does."""
    if not is_question(sentence):
        return sentence
    begin = _QUESTION.search(sentence)
    if begin is None or len(sentence[: begin.start()].split()) < 2:
        return None
    return f"{sentence[: begin.start()].rstrip(' ,;:–—-')}."
