"""The editions of the rules that are in use: the one in force, and those that turns still judge by.
One owner, the moderation service; its actors read."""

from collections import Counter
from collections.abc import Callable

from antiphon.actors.moderation.edition import Edition


class Shelf:
    """`on_unused` is told of a version that nobody needs any more."""

    def __init__(self, current: Edition, on_unused: Callable[[str], None]) -> None:
        self._current = current
        self._editions = {current.version: current}
        self._holders: Counter[str] = Counter()
        self._on_unused = on_unused
        self.model = "antiphon-moderation"
        """What the classifier is called, as soon as a judge process has said it."""

    @property
    def current(self) -> Edition:
        """What is in force for turns that begin now."""
        return self._current

    @property
    def versions(self) -> tuple[str, ...]:
        """Those in use, the oldest first."""
        return tuple(self._editions)

    def edition(self, version: str) -> Edition | None:
        return self._editions.get(version)

    def install(self, edition: Edition) -> None:
        """From now on it is in force."""
        before, self._current = self._current, edition
        self._editions[edition.version] = edition
        self._tidy(before.version)

    def hold(self) -> Edition:
        """The current one, to be given back with `let_go`."""
        self._holders[self._current.version] += 1
        return self._current

    def let_go(self, version: str) -> None:
        self._holders[version] -= 1
        self._tidy(version)

    def _tidy(self, version: str) -> None:
        if self._holders[version] <= 0:
            del self._holders[version]
            if version != self._current.version and self._editions.pop(version, None) is not None:
                self._on_unused(version)
