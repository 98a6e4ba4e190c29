"""What a preparing child tells the store, one JSON line each."""

import msgspec

from antiphon.engine.models.prepared import Facts


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped"):
    """Still at work, done to this fraction."""

    fraction: float


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag="prepared"):
    """Every file is written."""

    facts: Facts


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The source can't be prepared, and why in one line."""

    reason: str


Report = Stepped | Prepared | Failed
