"""Whose keys the load is sent with. Pure."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: without a key the local user, who has no plan."""

    plan: str = ""
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def callers(file: Path | None) -> tuple[Caller, ...]:
    """Those of a file with lines of a plan's name and a key, such as `free sk-antiphon-…`: several
    lines are several users, of whom each is as likely.

    Raises ValueError for a line of another kind.
    """
    if file is None:
        return (Caller(),)
    found = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            raise ValueError(f"{file}:{number}: not a plan's name and a key")
        found.append(Caller(*words))
    if not found:
        raise ValueError(f"{file}: there is no key in it")
    return tuple(found)
