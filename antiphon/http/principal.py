"""Who makes the current request."""

from antiphon.errors import NotPermitted, Unauthenticated
from antiphon.http.exchange import current_exchange
from antiphon.records import Principal, Scope


def current_principal() -> Principal:
    """The caller of the request that this task handles. Raises Unauthenticated on a route that
    nobody authenticated, which is a defect, and must not become somebody's rights."""
    principal = current_exchange().principal
    if principal is None:
        raise Unauthenticated("This request was not authenticated.")
    return principal


def operator() -> Principal:
    """The caller, who must be an operator. Raises NotPermitted."""
    principal = current_principal()
    if Scope.OPERATOR not in principal.scopes:
        raise NotPermitted(Scope.OPERATOR)
    return principal
