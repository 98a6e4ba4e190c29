"""The API over the real store and a real content folder, for the tests of the routes that keep
state."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from antiphon.context_settings import ContextSettings
from antiphon.http.app import make_api_app
from antiphon.persistence.contents import FolderContents
from antiphon.retrieval import FileSearching
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.open_store import DirectAccess, direct_store
from antiphon.testing.telemetry import RecordingTelemetry


@dataclass(slots=True)
class Live:
    """Settings that a test may change meanwhile."""

    context: ContextSettings = field(default_factory=ContextSettings)


@dataclass(slots=True, kw_only=True)
class StatefulApi:
    """What a test may reach into. `accounts.principal` is whoever calls next."""

    store: DirectAccess
    contents: FolderContents
    folder: Path
    served: Served
    client: httpx2.AsyncClient
    telemetry: RecordingTelemetry
    settings: HttpSettings
    live: Live
    accounts: ScriptedAccounts = field(default_factory=ScriptedAccounts)

    def files(self) -> list[str]:
        """Everything in the content folder."""
        return sorted(
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        )


@asynccontextmanager
async def stateful_api(
    folder: Path, settings: HttpSettings, *, searching: FileSearching | None = None
) -> AsyncIterator[StatefulApi]:
    """Serve for the length of the block."""
    contents = FolderContents(folder / "contents")
    await contents.prepare()
    accounts, telemetry, live = ScriptedAccounts(), RecordingTelemetry(), Live()
    async with direct_store(folder) as store:
        app = make_api_app(
            ScriptedChat(),
            lambda: settings,
            GenerationSettings,
            telemetry,
            accounts=accounts,
            store=store,
            contents=contents,
            context=lambda: live.context,
            searching=searching,
        )
        async with (
            serving(app, settings) as served,
            httpx2.AsyncClient(base_url=served.url, timeout=20) as client,
        ):
            yield StatefulApi(
                store=store,
                contents=contents,
                folder=folder / "contents",
                served=served,
                client=client,
                telemetry=telemetry,
                settings=settings,
                live=live,
                accounts=accounts,
            )
