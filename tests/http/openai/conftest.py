from collections.abc import AsyncIterator

import httpx2
import pytest

from antiphon.http.app import make_api_app
from antiphon.http.openai.prompting import Prompting
from antiphon.ids import TenantId, UserId
from antiphon.records import Principal, Scope, User
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.judging import ScriptedModeration
from antiphon.testing.responses import ResponseShelf, ScriptedResponses
from antiphon.testing.stateful import StatefulApi, stateful_api
from antiphon.testing.telemetry import RecordingTelemetry


@pytest.fixture
def chat() -> ScriptedChat:
    return ScriptedChat()


@pytest.fixture
def shelf() -> ResponseShelf:
    return ResponseShelf()


@pytest.fixture
def responses(shelf) -> ScriptedResponses:
    return ScriptedResponses(shelf)


@pytest.fixture
def accounts() -> ScriptedAccounts:
    return ScriptedAccounts()


@pytest.fixture
def telemetry() -> RecordingTelemetry:
    return RecordingTelemetry()


@pytest.fixture
def moderation() -> ScriptedModeration:
    return ScriptedModeration()


@pytest.fixture
def http_settings() -> HttpSettings:
    return HttpSettings()


@pytest.fixture
def prompting() -> Prompting | None:
    return None


@pytest.fixture
async def server(
    chat, responses, shelf, accounts, telemetry, moderation, prompting, http_settings
) -> AsyncIterator[Served]:
    app = make_api_app(
        chat,
        lambda: http_settings,
        GenerationSettings,
        telemetry,
        accounts=accounts,
        responses=responses,
        store=shelf,
        moderation=moderation,
        prompting=prompting,
    )
    async with serving(app, http_settings) as served:
        yield served


@pytest.fixture
async def client(server) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"{server.url}/v1", timeout=20) as client:
        yield client


MALLORY = Principal(
    user=UserId("user_mallory"), tenant=TenantId("other"), scopes=frozenset({Scope.USER})
)


@pytest.fixture
async def api(tmp_path, http_settings) -> AsyncIterator[StatefulApi]:
    """The routes that keep state, over the real store and a content folder."""
    async with stateful_api(tmp_path, http_settings) as api:
        yield api


@pytest.fixture
async def mallory(api) -> Principal:
    """Somebody of another tenant, to be set as `api.accounts.principal`."""
    user = User(id=MALLORY.user, tenant=MALLORY.tenant, name="Mallory", created_ms=1)
    await api.store.run(lambda store: store.add_user(user))
    return MALLORY
