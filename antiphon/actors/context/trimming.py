"""A long text with its middle left out, and a line in its place that says so. Pure."""

_NEAR = 40
"""Characters that a cut may move to find the end of a line or a word."""


def halves(text: str, tokens: int, most: int) -> tuple[str, str] | None:
    """The beginning and the end of a text of `tokens`, together about `most`; None where nothing
    would be left out."""
    half = len(text) * most // max(tokens, 1) // 2
    if half < 1 or 2 * half >= len(text):
        return None
    return _head(text[:half]), _tail(text[-half:])


def with_note(head: str, tail: str, left_out: int) -> str:
    """What the model is shown of it; `left_out` is in tokens."""
    return f"{head}\n[… {left_out} tokens left out here …]\n{tail}"


def _head(text: str) -> str:
    """Up to its last whole line or word, where that ends near."""
    for blank in "\n ":
        if (cut := text.rfind(blank)) > len(text) - _NEAR:
            return text[:cut].rstrip()
    return text


def _tail(text: str) -> str:
    for blank in "\n ":
        if 0 <= (cut := text.find(blank)) < _NEAR:
            return text[cut + 1 :].lstrip()
    return text
