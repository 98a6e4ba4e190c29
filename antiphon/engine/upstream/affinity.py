"""Which conversation a generation belongs to, for whoever keeps its prefix warm. Pure.

A conversation grows at its end, so what it begins with names it: up to and with the first message
of the user. Conversations that begin alike go to the same replica, and share the prefix there.
"""

from hashlib import blake2b

from antiphon.events import Admit

_TOKENS = 64
"""Of a prompt without messages: as many as most system prompts have, and no first question."""


def conversation_key(admit: Admit) -> str:
    """The same for every turn of a conversation; another tenant's is another one."""
    digest = blake2b(digest_size=16)
    # A length before each part, so that no two lists of parts spell the same bytes.
    for part in _parts(admit):
        data = part.encode("utf-8", "replace")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def _parts(admit: Admit) -> list[str]:
    parts = [admit.salt or ""]
    if admit.affinity:
        return [*parts, "named", admit.affinity]
    if not admit.messages:
        return [*parts, "tokens", repr(admit.prompt[:_TOKENS])]
    for message in admit.messages:
        parts += [message.role, message.content, *(image.sha256 for image in message.images)]
        if message.role == "user":
            break
    return parts
