"""What an engine can't do is refused with 400, by name, before anything reaches its queue."""

from typing import Any

import httpx2
import msgspec
import pytest

from antiphon.http.app import make_api_app
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.http import serving
from antiphon.testing.responses import ResponseShelf, ScriptedResponses
from antiphon.testing.rig import MODEL, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: dict[str, Any] = {"model": MODEL, "input": "hi", "store": False}
OBJECT = {"type": "object"}
NAMED = {"name": "n", "schema": OBJECT}

ASKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("logprobs", "chat/completions", CHAT | {"logprobs": True}, "logprobs"),
    ("logprobs", "chat/completions", CHAT | {"logprobs": True, "stream": True}, "logprobs"),
    (
        "json_schema",
        "chat/completions",
        CHAT | {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        "response_format",
    ),
    (
        "json_schema",
        "chat/completions",
        CHAT | {"response_format": {"type": "json_object"}},
        "response_format",
    ),
    ("seed", "chat/completions", CHAT | {"seed": 7}, "seed"),
    ("seed", "chat/completions", CHAT | {"seed": 0}, "seed"),
    ("min_tokens", "chat/completions", CHAT | {"min_tokens": 2, "max_tokens": 8}, "min_tokens"),
    ("extras", "chat/completions", CHAT | {"top_k": 5}, "top_k"),
    ("extras", "chat/completions", CHAT | {"min_p": 0.1}, "min_p"),
    ("extras", "chat/completions", CHAT | {"ignore_eos": True}, "ignore_eos"),
    ("extras", "chat/completions", CHAT | {"repetition_penalty": 1.1}, "repetition_penalty"),
    (
        "logprobs",
        "responses",
        RESPONSES | {"include": ["message.output_text.logprobs"]},
        "include",
    ),
    (
        "json_schema",
        "responses",
        RESPONSES | {"text": {"format": {"type": "json_schema", **NAMED}}},
        "text.format",
    ),
    (
        "json_schema",
        "responses",
        RESPONSES | {"text": {"format": {"type": "json_object"}}},
        "text.format",
    ),
]


async def posted(
    path: str, body: dict[str, Any], **capabilities: bool
) -> tuple[httpx2.Response, int]:
    """The reply of the API over the core with an engine of these capabilities, and how many
    requests got beyond it."""
    engine = msgspec.structs.replace(scripted_capabilities(), **capabilities)
    launcher = ScriptedLauncher(lambda: ScriptedLink(capabilities=engine))
    shelf = ResponseShelf()
    responses = ScriptedResponses(shelf)
    responses.text = ["x"]
    settings = HttpSettings()
    async with running_rig(launcher) as rig:
        app = make_api_app(
            rig.directory,
            lambda: settings,
            GenerationSettings,
            rig.telemetry,
            accounts=ScriptedAccounts(),
            responses=responses,
            store=shelf,
        )
        async with (
            serving(app, settings) as served,
            httpx2.AsyncClient(base_url=f"{served.url}/v1/") as client,
        ):
            reply = await client.post(path, json=body)
    return reply, len(launcher.link.sent) + len(responses.created)


@pytest.mark.parametrize(("capability", "path", "body", "param"), ASKED)
async def test_it_is_refused(capability: str, path: str, body: dict[str, Any], param: str):
    reply, got_through = await posted(path, body, **{capability: False})

    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert error["code"] == "unsupported_value"
    assert got_through == 0


@pytest.mark.parametrize(("capability", "path", "body", "param"), ASKED)
async def test_an_engine_that_can_is_asked(
    capability: str, path: str, body: dict[str, Any], param: str
):
    reply, got_through = await posted(path, body)

    assert reply.status_code == 200
    assert got_through > 0


async def test_what_asks_for_nothing_special_is_never_refused():
    capabilities = dict.fromkeys(("logprobs", "json_schema", "seed", "min_tokens", "extras"), False)
    neutral = {"top_k": -1, "min_p": 0, "repetition_penalty": 1, "ignore_eos": False}
    plain = {"logprobs": False, "min_tokens": 0, "response_format": {"type": "text"}}
    reply, _ = await posted("chat/completions", CHAT | neutral | plain, **capabilities)

    assert reply.status_code == 200
