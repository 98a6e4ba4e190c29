"""One server for one SQLite file."""

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.errors import SettingsError
from antiphon.persistence.claim import claimed

_HOLD = """
import sys
from pathlib import Path
from antiphon.persistence.claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_is_told_that_the_database_is_in_use(tmp_path: Path) -> None:
    database = tmp_path / "antiphon.db"
    with claimed(database), pytest.raises(SettingsError, match="another server"), claimed(database):
        pass


def test_a_claim_ends_with_its_block(tmp_path: Path) -> None:
    database = tmp_path / "antiphon.db"
    with claimed(database):
        pass

    with claimed(database):
        assert not database.exists()


def test_a_claim_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    database = tmp_path / "antiphon.db"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(SettingsError), claimed(database):
            pass
        process.kill()
        process.wait()

    with claimed(database):
        pass


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="cannot claim"), claimed(tmp_path / "file" / "a.db"):
        pass
