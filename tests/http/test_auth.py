"""Authentication in front of every route of the API."""

from collections.abc import AsyncIterator

import pytest
import structlog
import trio
from quart_trio import QuartTrio

from antiphon.errors import (
    AntiphonError,
    NotPermitted,
    StoreFailed,
    StoreUnavailable,
    Unauthenticated,
)
from antiphon.http.app import make_api_app
from antiphon.http.auth import bearer_token
from antiphon.http.errors import describe_error, error_headers
from antiphon.ids import KeyId, TenantId, UserId
from antiphon.records import Principal, Scope
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.telemetry import NullTelemetry

ALICE = Principal(
    user=UserId("user_a"),
    tenant=TenantId("acme"),
    scopes=frozenset({Scope.USER}),
    key=KeyId("key_1"),
)
SECRET = "sk-antiphon-secret"


@pytest.fixture
def accounts() -> ScriptedAccounts:
    return ScriptedAccounts(ALICE)


@pytest.fixture
async def served(accounts: ScriptedAccounts) -> AsyncIterator[Served]:
    app: QuartTrio = make_api_app(
        ScriptedChat(text=["hi"]),
        HttpSettings,
        GenerationSettings,
        NullTelemetry(),
        accounts=accounts,
    )
    async with serving(app, HttpSettings()) as served:
        yield served


async def get(served: Served, path: str, *headers: str) -> bytes:
    client = await served.connect()
    lines = "".join(f"{header}\r\n" for header in headers)
    await client.send(
        f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{lines}\r\n".encode()
    )
    return await client.read_to_end()


async def test_the_key_reaches_the_accounts_and_its_id_the_log(
    served: Served, accounts: ScriptedAccounts
):
    with structlog.testing.capture_logs() as logs:
        answer = await get(served, "/v1/models", f"Authorization: Bearer {SECRET}")
        await served.end()

    assert answer.startswith(b"HTTP/1.1 200")
    assert accounts.secrets == [SECRET]
    (line,) = [line for line in logs if line["event"] == "request_finished"]
    assert line["key"] == "key_1"
    assert SECRET not in str(logs)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/x/y", "/v1/no-such-route", "/v1"])
async def test_nothing_under_v1_is_told_to_who_may_not_use_it(
    served: Served, accounts: ScriptedAccounts, path: str
):
    accounts.error = Unauthenticated("Incorrect API key provided.")

    answer = await get(served, path)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 401")
    assert b"www-authenticate: Bearer" in head.replace(b"WWW-Authenticate", b"www-authenticate")
    assert b'"code":"invalid_api_key"' in body
    assert b'"type":"authentication_error"' in body


async def test_a_refused_request_reaches_no_handler(served: Served, accounts: ScriptedAccounts):
    accounts.error = Unauthenticated("no")
    client = await served.connect()

    await client.send_chat(stream=True)

    assert (await client.read_head()).startswith(b"HTTP/1.1 401")


async def test_other_paths_need_no_key(served: Served, accounts: ScriptedAccounts):
    accounts.error = Unauthenticated("no")

    assert (await get(served, "/nothing-here")).startswith(b"HTTP/1.1 404")
    assert accounts.secrets == []


async def test_a_store_that_is_away_is_503_with_advice(served: Served, accounts: ScriptedAccounts):
    accounts.error = StoreUnavailable("gone", 3.0, refused=True)

    head = (await get(served, "/v1/models")).lower()

    assert head.startswith(b"http/1.1 503")
    assert b"retry-after: 3" in head
    assert b"x-should-retry: true" in head


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer  ", None),
        ("Basic abc", None),
        ("Bearer abc", "abc"),
        ("bearer   abc ", "abc"),
        ("BEARER a b", "a b"),
    ],
)
def test_only_a_bearer_token_is_a_key(header: str | None, token: str | None):
    assert bearer_token(header) == token


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (Unauthenticated("no"), 401, "false"),
        (NotPermitted("operator"), 403, "false"),
        (StoreUnavailable("down", refused=True), 503, "true"),
        (StoreUnavailable("lost on the way"), 503, None),
        (StoreFailed("damaged"), 500, "false"),
    ],
)
def test_what_is_told_of_a_retry_is_what_is_known_of_the_work(
    error: AntiphonError, status: int, retry: str | None
):
    reply = describe_error(error)

    assert reply.status == status
    assert error_headers(reply).get("x-should-retry") == retry


async def test_the_local_user_has_no_key_in_the_log():
    app = make_api_app(
        ScriptedChat(),
        HttpSettings,
        GenerationSettings,
        NullTelemetry(),
        accounts=ScriptedAccounts(),
    )
    with structlog.testing.capture_logs() as logs:
        async with serving(app, HttpSettings()) as served:
            await get(served, "/v1/models")
            await served.end()
            await trio.lowlevel.checkpoint()

    (line,) = [line for line in logs if line["event"] == "request_finished"]
    assert "key" not in line
