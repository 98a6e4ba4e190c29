"""Every error of the tree has a reply, and no reply says more than it should."""

import pytest
from werkzeug.exceptions import MethodNotAllowed, NotFound, RequestTimeout, UnsupportedMediaType

from antiphon import errors
from antiphon.http.errors import describe_error, error_body, error_headers
from antiphon.ids import ActorPath

PATH = ActorPath("root/secret")

TABLE = [
    (errors.InvalidRequest("m", "p", "c"), 400, "invalid_request_error", "c", None),
    (errors.ModelNotFound("m"), 404, "invalid_request_error", "model_not_found", None),
    (errors.PayloadTooLarge(1), 413, "invalid_request_error", "request_too_large", None),
    (
        errors.ContextLengthExceeded(window=1, prompt_tokens=2, max_tokens=3),
        *(400, "invalid_request_error", "context_length_exceeded", None),
    ),
    (
        errors.QueueFull(reason="r", retry_after_s=1),
        *(503, "overloaded_error", "overloaded", True),
    ),
    (
        errors.QueueExpired(waited_s=1, retry_after_s=1),
        *(503, "overloaded_error", "queue_timeout", True),
    ),
    (errors.EngineUnavailable(1), 503, "server_error", "engine_unavailable", True),
    (errors.Draining(1), 503, "server_error", "server_stopping", True),
    (errors.MailboxFull(PATH, 1), 503, "overloaded_error", "overloaded", True),
    (errors.MaxChildren(PATH, 1), 503, "overloaded_error", "overloaded", True),
    (errors.NoActor(PATH), 503, "server_error", "engine_unavailable", True),
    (errors.HostStartFailed("r"), 503, "server_error", "engine_unavailable", True),
    (errors.HostLost("r"), 503, "server_error", "engine_lost", False),
    (errors.HostProtocolError("r"), 503, "server_error", "engine_lost", False),
    (errors.ActorStopped(PATH), 503, "server_error", "interrupted", False),
    (errors.AskTimeout(PATH, 1), 503, "server_error", "interrupted", False),
    (errors.ActorCrashed(PATH, 1), 500, "server_error", "internal_error", False),
    (errors.GenerationFailed("capacity", "d"), 503, "server_error", "engine_capacity", False),
    (errors.GenerationFailed("odd", "d"), 500, "server_error", "odd", False),
    (
        errors.GenerationFailed("invalid_schema", "d"),
        *(400, "invalid_request_error", "invalid_schema", None),
    ),
    (NotFound(), 404, "invalid_request_error", "unknown_url", None),
    (RequestTimeout(), 408, "invalid_request_error", "request_timeout", None),
    (UnsupportedMediaType(), 415, "invalid_request_error", "unsupported_media_type", None),
    (RuntimeError("secret"), 500, "server_error", "internal_error", False),
]


@pytest.mark.parametrize(("error", "status", "type_", "code", "retry_is_safe"), TABLE)
def test_an_error_has_its_status_type_code_and_retry_advice(
    error, status, type_, code, retry_is_safe
):
    reply = describe_error(error)

    assert (reply.status, reply.type, reply.code) == (status, type_, code)
    assert reply.retry_is_safe is retry_is_safe


@pytest.mark.parametrize("error", [row[0] for row in TABLE])
def test_no_reply_tells_about_the_inside(error):
    body = error_body(describe_error(error))

    assert b"secret" not in body
    assert body.startswith(b'{"error":{"message":"')
    assert all(key in body for key in (b'"type":', b'"param":', b'"code":'))


def test_only_a_defect_is_unexpected():
    assert [row[0] for row in TABLE if not describe_error(row[0]).is_expected] == [TABLE[-1][0]]


@pytest.mark.parametrize(
    ("seconds", "whole", "milliseconds"),
    [(0.0, "1", "1"), (0.2, "1", "200"), (1.001, "2", "1001"), (59.5, "60", "59500")],
)
def test_retry_advice_is_whole_seconds_rounded_up_and_milliseconds(seconds, whole, milliseconds):
    headers = error_headers(describe_error(errors.EngineUnavailable(seconds)))

    assert headers["Retry-After"] == whole
    assert headers["retry-after-ms"] == milliseconds
    assert headers["x-should-retry"] == "true"


def test_advice_stays_within_what_sdks_follow():
    headers = error_headers(describe_error(errors.QueueFull("r", 3600)))

    assert (headers["Retry-After"], headers["retry-after-ms"]) == ("60", "60000")


def test_a_wrong_method_says_which_are_right():
    reply = describe_error(MethodNotAllowed(valid_methods=["POST", "GET"]))

    assert error_headers(reply)["Allow"] == "GET, POST"
