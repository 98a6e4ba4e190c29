"""API keys as strings: how one is made, recognised, hashed, and shown without being given away.

A secret is 256 random bits, so one round of SHA-256 is enough: slow hashes are for what people can
remember. It is looked up by its hash, so there is nothing to compare byte by byte, and no time from
which to learn any of it.
"""

import hashlib
import re
import secrets

_PREFIX = "sk-antiphon-"
_SHOWN = len(_PREFIX) + 6
_SHAPE = re.compile(re.escape(_PREFIX) + "[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def is_secret(text: str) -> bool:
    """Whether it could be a key of ours; anything else needs no look at the store."""
    return _SHAPE.fullmatch(text) is not None


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def shown_prefix(secret: str) -> str:
    """Enough to recognise a key in a list, and nowhere near enough to use it."""
    return secret[:_SHOWN]
