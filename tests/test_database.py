"""From settings to a database."""

from functools import partial

import msgspec

from antiphon.database import is_alone, opener
from antiphon.settings import DatabaseSettings, RetentionSettings, Settings


def test_what_is_kept_for_ever_has_no_time_and_the_rest_has_its_own():
    retention = RetentionSettings(claims_days=0, events_days=0.5, responses_days=30)
    settings = msgspec.structs.replace(Settings(), retention=retention)

    opening = opener(settings)

    assert isinstance(opening, partial)
    kept = opening.keywords["retention"]
    assert kept.claims_ms is None
    assert kept.events_ms == 12 * 3_600_000
    assert kept.responses_ms == 30 * 24 * 3_600_000
    assert kept.traces_ms == 90 * 24 * 3_600_000


def test_a_sqlite_file_has_one_server_and_a_postgresql_may_have_more():
    shared = DatabaseSettings(url="postgresql://somewhere/antiphon")

    assert is_alone(Settings())
    assert not is_alone(msgspec.structs.replace(Settings(), database=shared))
