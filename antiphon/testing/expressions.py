"""Random expressions of the subset that rules may have, and what the standard library says that
they match: the slow way, for tests to compare with."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

_ONE = st.sampled_from(["a", "a", "b", "[ab]", "[^a]", r"\w", r"\d", r"\s", ".", "é", r"\."])


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})?"),
        st.tuples(inner, st.integers(0, 2), st.integers(0, 2)).map(
            lambda all: f"(?:{all[0]}){{{all[1]},{all[1] + all[2]}}}"
        ),
        inner.map(lambda one: rf"{one}\b"),
        inner.map(lambda one: rf"\b{one}"),
        inner.map(lambda one: rf"{one}\B"),
    )


patterns = st.recursive(_ONE, _wider, max_leaves=6).filter(
    lambda pattern: re.search(r"\)\?\?|(?<!\\)\?\{", pattern) is None
)
"""Some may match nothing at all, which is refused."""

texts = st.text("aabbé1 .", max_size=20)


def matches(patterns: Sequence[str], text: str) -> list[tuple[int, int]]:
    """From every place the longest match, in the text's order."""
    found = []
    for start in range(len(text)):
        for end in range(len(text), start, -1):
            rest = rf"(?=[\s\S]{{{len(text) - end}}}\Z)"
            if any(re.compile(f"(?:{each}){rest}").match(text, start) for each in patterns):
                found.append((start, end))
                break
    return found


def covered(matches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without overlaps: of two the first, and what it leaves of the other."""
    found, at = [], 0
    for start, end in matches:
        if end > at:
            found.append((max(start, at), end))
            at = end
    return found
