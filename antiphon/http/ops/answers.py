"""Answers to operator commands, in the API's own shape of errors."""

from quart_trio.wrappers import TrioResponse

from antiphon.http.errors import ErrorReply, error_body


def ops_reply(status: int, message: str, code: str) -> ErrorReply:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return ErrorReply(status=status, message=message, type=kind, code=code)


def ops_error(reply: ErrorReply) -> TrioResponse:
    response = ops_json(error_body(reply), status=reply.status)
    if reply.status == 401:
        response.headers["www-authenticate"] = 'Bearer realm="antiphon operations"'
    return response


def ops_json(body: bytes, *, status: int) -> TrioResponse:
    return TrioResponse(
        body,
        status=status,
        headers={"cache-control": "no-store"},
        content_type="application/json",
    )
