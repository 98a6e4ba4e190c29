from collections.abc import AsyncIterator

import pytest

from antiphon.http.app import make_api_app
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.telemetry import RecordingTelemetry


@pytest.fixture
def chat() -> ScriptedChat:
    return ScriptedChat()


@pytest.fixture
def telemetry() -> RecordingTelemetry:
    return RecordingTelemetry()


@pytest.fixture
def http_settings() -> HttpSettings:
    return HttpSettings()


@pytest.fixture
async def server(chat, telemetry, http_settings) -> AsyncIterator[Served]:
    app = make_api_app(
        chat, lambda: http_settings, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    async with serving(app, http_settings) as served:
        yield served
