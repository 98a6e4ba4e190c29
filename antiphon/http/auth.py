"""Who a request is from: every route of the API is authenticated before its handler runs, and what
stands in the log is the key's id, never its secret."""

from quart import Quart, request

from antiphon.http.exchange import current_exchange
from antiphon.ports import Accounts

_PROTECTED = "/v1"
_SCHEME = "bearer"


def require_key(app: Quart, accounts: Accounts) -> None:
    """Have every request under `/v1` authenticated, also those that match no route: which routes
    there are is told to nobody who may not use them."""

    async def authenticate() -> None:
        if not _is_protected(request.path if request.url_rule is None else request.url_rule.rule):
            return
        exchange = current_exchange()
        secret = bearer_token(request.headers.get("authorization"))
        exchange.principal = await accounts.authenticate(secret)
        if exchange.principal.key is not None:
            exchange.facts["key"] = exchange.principal.key

    app.before_request(authenticate)


def bearer_token(header: str | None) -> str | None:
    """What an `Authorization` header carries; another scheme is no key at all."""
    scheme, _, token = (header or "").strip().partition(" ")
    return (token.strip() or None) if scheme.lower() == _SCHEME else None


def _is_protected(path: str) -> bool:
    return path == _PROTECTED or path.startswith(f"{_PROTECTED}/")
