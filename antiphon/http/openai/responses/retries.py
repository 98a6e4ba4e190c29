"""What a request's headers say about having been sent before: the caller's idempotency key, and an
SDK's count of its own retries."""

import hashlib
from dataclasses import dataclass

from werkzeug.datastructures import Headers

from antiphon.errors import InvalidRequest
from antiphon.ids import UserId
from antiphon.records import Claim

_KEY_HEADER = "Idempotency-Key"
_COUNT_HEADER = "x-stainless-retry-count"
"""OpenAI's SDKs retry POSTs by themselves and send no key (openai-python's default client has no
header name for it), but they count."""
_MAX_KEY_CHARACTERS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A key wins over a count: who sets one means exactly the requests that carry it."""

    claim: Claim | None = None
    retry_fingerprint: str | None = None
    is_retry: bool = False


def read_sending(headers: Headers, user: UserId, digest: str, *, is_stored: bool) -> Sending:
    """What the headers say; `digest` is of the body. Raises InvalidRequest for a key that can't be
    used."""
    key = headers.get(_KEY_HEADER)
    if key is None:
        if not is_stored:
            return Sending()
        fingerprint = hashlib.sha256(f"{user}\n{digest}".encode()).hexdigest()
        return Sending(retry_fingerprint=fingerprint, is_retry=_is_retry(headers))
    if not is_stored:
        raise _invalid("it is only allowed when 'store' is enabled, since it must be remembered")
    if not 1 <= len(key) <= _MAX_KEY_CHARACTERS or not all("!" <= char <= "~" for char in key):
        raise _invalid(f"expected 1 to {_MAX_KEY_CHARACTERS} visible ASCII characters")
    return Sending(claim=Claim(key=key, fingerprint=digest), is_retry=_is_retry(headers))


def _is_retry(headers: Headers) -> bool:
    count = headers.get(_COUNT_HEADER, "")
    return count.isascii() and count.isdecimal() and count.strip("0") != ""


def _invalid(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid '{_KEY_HEADER}' header: {problem}.", _KEY_HEADER, "invalid_value"
    )
