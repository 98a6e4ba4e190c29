"""Errors of each server, in the shapes that they were seen in."""

import json

import pytest

from antiphon.engine.upstream.refusals import refusal, refusal_in_stream
from antiphon.engine.upstream.trouble import Kind

OPENAI_QUOTA = {"error": {"message": "Slow down", "type": "requests", "code": "rate_limit"}}
VLLM_LONG = {
    "error": {
        "message": "This model's maximum context length is 4096 tokens. However, you requested "
        "4100 tokens. Please reduce the length of the input messages.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    }
}
VLLM_FLAT = {
    "object": "error",
    "message": "top_k must be 0 (disable), or at least 1",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
VLLM_MODEL = {
    "error": {"message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}
}
LLAMA_LONG = {
    "error": {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 5000,
        "n_ctx": 2048,
    }
}
LLAMA_LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
SGLANG_QUEUE = {"object": "error", "message": "The request queue is full.", "code": 503}
TGI_BUSY = {"error": "Model is overloaded", "error_type": "overloaded"}
TGI_BAD = {"error": "Input validation error: `top_p` must be > 0.0", "error_type": "validation"}
TRT_LONG = {
    "object": "error",
    "message": "The sum of prompt length (5000.0), query length (0) should not exceed "
    "max_num_tokens (4096)",
    "type": "BadRequestError",
    "code": 400,
}
FASTAPI = {"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, OPENAI_QUOTA, Kind.BUSY),
        (400, VLLM_LONG, Kind.CONTEXT),
        (400, VLLM_FLAT, Kind.INVALID),
        (404, VLLM_MODEL, Kind.UNUSABLE),
        (400, LLAMA_LONG, Kind.CONTEXT),
        (503, LLAMA_LOADING, Kind.BUSY),
        (503, SGLANG_QUEUE, Kind.BUSY),
        (429, TGI_BUSY, Kind.BUSY),
        (422, TGI_BAD, Kind.INVALID),
        (400, TRT_LONG, Kind.CONTEXT),
        (422, FASTAPI, Kind.INVALID),
        (401, {"error": {"message": "no such key", "code": "invalid_api_key"}}, Kind.UNUSABLE),
        (529, {"detail": "busy"}, Kind.BUSY),
        (500, {"error": {"message": "boom"}}, Kind.BROKEN),
        (502, "<html>Bad Gateway</html>", Kind.LOST),
        (504, "<html>Gateway Timeout</html>", Kind.SILENT),
        (307, "", Kind.BROKEN),
        (400, "[" * 100_000, Kind.INVALID),
        (400, '{"error": 7}', Kind.INVALID),
        (400, "null", Kind.INVALID),
    ],
)
def test_a_refusal_means_what_its_server_means(status, body, kind):
    data = body if isinstance(body, str) else json.dumps(body)

    assert refusal(status, data.encode()).kind is kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (SGLANG_QUEUE, Kind.BUSY),
        ({"error": {"message": "The request queue is full.", "code": 503}}, Kind.BUSY),
        ({"error": {"message": "Too many requests waiting", "type": "AbortError"}}, Kind.BUSY),
        ({"error": TGI_BUSY["error"], "error_type": "overloaded"}, Kind.BUSY),
        (VLLM_LONG, Kind.CONTEXT),
        ({"error": {"message": "CUDA error", "type": "InternalServerError"}}, Kind.BROKEN),
        ({"error": {"message": "The engine failed", "code": "engine_lost"}}, Kind.BROKEN),
        ({"error": {"message": "out of memory", "code": "500"}}, Kind.BROKEN),
    ],
)
def test_an_error_within_a_good_stream_is_found(value, kind):
    trouble = refusal_in_stream(value)

    assert trouble is not None
    assert trouble.kind is kind


@pytest.mark.parametrize(
    "value",
    [{"choices": []}, {"error": None, "choices": []}, {"error": {}}, {"usage": {}}, [], "x", 3],
)
def test_what_is_no_error_is_none(value):
    assert refusal_in_stream(value) is None


def test_the_advice_when_to_come_again_is_taken_in_seconds():
    assert refusal(503, b"", "7").retry_after_s == 7
    assert refusal(503, b"", "Fri, 31 Dec 1999 23:59:59 GMT").retry_after_s is None
    assert refusal(503, b"", "999999").retry_after_s == 60


def test_what_the_server_says_is_for_the_client_and_not_for_the_log():
    trouble = refusal(400, json.dumps(VLLM_FLAT).encode())

    assert trouble.message == VLLM_FLAT["message"]
    assert "top_k" not in str(trouble)
