"""Who a request is from: every route of the API is authenticated before its handler runs, and what
stands in the log is the key's id, never its secret."""

from quart import Quart, request

from antiphon.errors import RateLimited, Unauthenticated
from antiphon.http.brakes import Brakes
from antiphon.http.exchange import current_exchange
from antiphon.ports import Accounts
from antiphon.records import Principal

_PROTECTED = "/v1"
_SCHEME = "bearer"


def require_key(app: Quart, accounts: Accounts, brakes: Brakes | None = None) -> None:
    """Have every request under `/v1` authenticated, also those that match no route: which routes
    there are is told to nobody who may not use them. `brakes` keep whoever guesses from looking."""

    async def authenticate() -> None:
        if not _is_protected(request.path if request.url_rule is None else request.url_rule.rule):
            return
        exchange = current_exchange()
        secret = bearer_token(request.headers.get("authorization"))
        if brakes is None:
            exchange.principal = await accounts.authenticate(secret)
        else:
            exchange.principal = await _braked(accounts, brakes, secret)
        if exchange.principal.key is not None:
            exchange.facts["key"] = exchange.principal.key

    app.before_request(authenticate)


async def _braked(accounts: Accounts, brakes: Brakes, secret: str | None) -> Principal:
    exchange = current_exchange()
    try:
        # A key that is known goes through: who guesses from the same address must not lock it out.
        if secret is not None and not accounts.remembers(secret):
            brakes.before_key(exchange.address)
        principal = await accounts.authenticate(secret)
        brakes.admit(principal.user, exchange.address)
        if brakes.abuse is not None:
            exchange.warning = brakes.abuse.admit(principal, exchange.address)
            if exchange.brings_prompt:
                brakes.abuse.came(principal, exchange.address)
    except Unauthenticated:
        if secret is not None:
            brakes.key_failed(exchange.address)
        raise
    except RateLimited:
        exchange.is_quiet = True  # told once a minute, not for each
        raise
    return principal


def bearer_token(header: str | None) -> str | None:
    """What an `Authorization` header carries; another scheme is no key at all."""
    scheme, _, token = (header or "").strip().partition(" ")
    return (token.strip() or None) if scheme.lower() == _SCHEME else None


def _is_protected(path: str) -> bool:
    return path == _PROTECTED or path.startswith(f"{_PROTECTED}/")
