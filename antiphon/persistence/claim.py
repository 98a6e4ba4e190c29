"""One server for one SQLite file: what two of them would write about each other's running responses
would be wrong. Commands beside a server need no claim."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from antiphon.errors import SettingsError


@contextmanager
def claimed(database: Path) -> Iterator[None]:
    """Hold the file for this process; the system lets go of it whenever that ends. Raises
    SettingsError when another server has it, or nobody may write there."""
    path = database.with_name(f"{database.name}.server")
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(path.open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingsError(
                "database.url",
                f"{database} is in use by another server; give this one another `data_dir`, or "
                "let both share a PostgreSQL",
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise SettingsError("database.url", f"cannot claim {database}: {reason}") from error
        yield
