"""Where the index gets vectors that it doesn't hold (`embedding.VectorSource`): the store, which
wants to know whose they are."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import trio

from antiphon.embedding import FileVectors, Scope
from antiphon.ids import FileId, UserId, VectorStoreId
from antiphon.storage import StoreAccess

_MOST = 10_000
"""Sets whose owner is remembered. One is asked about within seconds of its search."""


class StoreVectors:
    """`model` is the one whose vectors are wanted."""

    def __init__(self, store: StoreAccess, model: Callable[[], str]) -> None:
        self._store = store
        self._model = model
        self._owners: OrderedDict[str, UserId] = OrderedDict()

    def belongs(self, scope: Scope, user: UserId) -> None:
        """To be said before the set is searched."""
        self._owners[scope.key] = user
        self._owners.move_to_end(scope.key)
        while len(self._owners) > _MOST:
            self._owners.popitem(last=False)

    async def files(self, scope: Scope) -> Mapping[FileId, str]:
        """Raises StoreUnavailable."""
        user = self._owners.get(scope.key)
        if user is None:
            await trio.lowlevel.checkpoint()
            return {}
        stores, only = _where(scope)
        found = await self._store.run(lambda store: store.search_files(user, stores, only))
        model = self._model()
        # A document keeps its id when it is made anew; then its chunks are mostly others.
        return {
            each.file: f"{each.document}/{each.chunks}" for each in found if each.model == model
        }

    async def vectors(self, scope: Scope, files: Sequence[FileId]) -> Sequence[FileVectors]:
        """Raises StoreUnavailable."""
        user = self._owners.get(scope.key)
        if user is None:
            await trio.lowlevel.checkpoint()
            return ()
        stores, _ = _where(scope)
        model = self._model()
        found = await self._store.run(lambda store: store.vectors(user, stores, files, model))
        return [FileVectors(file=file, vectors=vectors) for file, vectors in found.items()]


def _where(scope: Scope) -> tuple[tuple[VectorStoreId, ...], tuple[FileId, ...] | None]:
    """A vector store, or a file by itself."""
    if scope.key.startswith("vs_"):
        return (VectorStoreId(scope.key),), None
    return (), (FileId(scope.key),)
