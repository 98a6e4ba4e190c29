"""The settings of an alias: a table under `aliases`, read and checked by `settings`."""

import msgspec


class AliasSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name that clients may ask for, which is no model's own."""

    models: tuple[str, ...]
    """By preference: the next is for when the one before can't serve the request."""
    canary: str | None = None
    """A model that a part of all conversations is given instead of the first one, always the same
    ones."""
    canary_share: float = 0.0
    prompt: str | None = None
    """The name of the system prompt that its turns begin with, instead of `context.prompt`."""
