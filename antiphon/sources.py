"""What a turn is shown of files, and where it comes from: values that rooms exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from antiphon.ids import FileId, VectorStoreId

AttributeValue = str | float | bool
Attributes = Mapping[str, AttributeValue]
"""What a client has noted of a file in a vector store, for filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A piece of a file that a model is shown and may cite. Those of a turn are numbered from 1;
    the number is what a citation names."""

    file: FileId
    filename: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Of one attribute. A file without it is not equal to anything, and compares with nothing."""

    operator: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str
    value: AttributeValue | tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """Of several filters: all of them, or any."""

    operator: Literal["and", "or"]
    filters: "tuple[Comparison | Compound, ...]"


Filter = Comparison | Compound


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How what was found is put in order. `text_share` is what full text counts for beside the
    vectors, None as the server likes; `best` scores 1."""

    threshold: float = 0.0
    text_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    """What a turn searches in before its model speaks."""

    stores: tuple[VectorStoreId, ...]
    most: int | None = None
    """Results; None is as many as the server's settings say."""
    filter: Filter | None = None
    ranking: Ranking = field(default_factory=Ranking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A piece of a file that answers a search; `score` is 0…1."""

    file: FileId
    filename: str
    score: float
    text: str
    attributes: Attributes
    number: int
    """Which piece of its file it is, from 0."""
    headings: tuple[str, ...] = ()
    page: int | None = None

    def described(self) -> dict[str, Any]:
        """As the item of a search has it."""
        return {
            "file_id": self.file,
            "filename": self.filename,
            "score": self.score,
            "attributes": dict(self.attributes),
            "text": self.text,
        }


def matches(filter: Filter | None, attributes: Attributes) -> bool:
    """Whether a file with these attributes is one that the filter lets pass."""
    match filter:
        case None:
            return True
        case Compound(operator="and", filters=filters):
            return all(matches(each, attributes) for each in filters)
        case Compound(filters=filters):
            return any(matches(each, attributes) for each in filters)
        case Comparison(operator=operator, key=key, value=value):
            return _compares(operator, attributes.get(key), value)


def _compares(
    operator: str,
    has: AttributeValue | None,
    value: AttributeValue | tuple[AttributeValue, ...],
) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    is_one = has is not None and any(_equal(has, each) for each in values)
    match operator:
        case "eq" | "in":
            return is_one
        case "ne" | "nin":
            return not is_one
    if has is None or isinstance(value, tuple):
        return False
    order = _order(has, value)
    if order is None:
        return False
    match operator:
        case "gt":
            return order > 0
        case "gte":
            return order >= 0
        case "lt":
            return order < 0
        case _:
            return order <= 0


def _equal(one: AttributeValue, other: AttributeValue) -> bool:
    """True is not 1 here, as it isn't in JSON."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _order(one: AttributeValue, other: AttributeValue) -> int | None:
    """None where one can't be compared with the other."""
    if isinstance(one, bool) or isinstance(other, bool):
        return None
    if isinstance(one, str) and isinstance(other, str):
        return (one > other) - (one < other)
    if isinstance(one, str) or isinstance(other, str):
        return None
    return (one > other) - (one < other)
