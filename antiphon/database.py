"""Which database the settings name, and how it is opened: the one module that brings settings and
`persistence` together, for the server and for the commands beside it."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial

from antiphon.persistence.bridge import (
    TrioDatabase,
    is_postgres,
    open_database,
    open_store,
    sqlite_path,
)
from antiphon.persistence.claim import claimed
from antiphon.persistence.contents import FolderContents
from antiphon.persistence.expiry import Retention
from antiphon.settings import RetentionSettings, Settings
from antiphon.storage import OpenStore

_DAY_MS = 24 * 3_600_000


def opener(settings: Settings) -> OpenStore:
    """Opens it and brings its schema up to date. Raises SettingsError for an address that can't
    be one of a database."""
    url = settings.database.url
    if url is not None:
        is_postgres(url)
    return partial(
        open_store,
        url=url,
        data_dir=settings.data_dir,
        connections=settings.database.concurrency,
        durability=settings.database.durability,
        retention=_retention(settings.retention),
    )


def database_of(settings: Settings) -> AbstractAsyncContextManager[TrioDatabase]:
    """The database alone, whatever its schema. Raises SettingsError."""
    return open_database(url=settings.database.url, data_dir=settings.data_dir)


def is_alone(settings: Settings) -> bool:
    """Whether no other server can use this database: SQLite is for one."""
    return settings.database.url is None or not is_postgres(settings.database.url)


def claim(settings: Settings) -> AbstractContextManager[None]:
    """Keep other servers away from a database that is for one. Raises SettingsError."""
    if not is_alone(settings):
        return nullcontext()
    return claimed(sqlite_path(settings.database.url, settings.data_dir))


def contents(settings: Settings) -> FolderContents:
    """Where the contents of files lie."""
    return FolderContents(settings.data_dir / "files")


def _retention(settings: RetentionSettings) -> Retention:
    def in_ms(days: float) -> int | None:
        return round(days * _DAY_MS) or None

    return Retention(
        claims_ms=in_ms(settings.claims_days),
        events_ms=in_ms(settings.events_days),
        responses_ms=in_ms(settings.responses_days),
        traces_ms=in_ms(settings.traces_days),
    )
