"""The store as whoever composes the tree sees it: its status, the way to it, and its child."""

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.store.client import StoreClient
from antiphon.actors.store.keeper import CLOSE_S
from antiphon.actors.store.messages import StoreMessage
from antiphon.actors.store.status import StoreStatus
from antiphon.actors.store.store import StoreActor
from antiphon.storage import OpenStore
from antiphon.supervision.spec import ChildSpec, Grace
from antiphon.telemetry import Telemetry

_MAILBOX = 1024
"""A second's worth of the slower database; what comes on top is refused at once."""
_MIGRATION_S = 600.0
"""A large database may take minutes to be brought up to date, once."""
_REAP_S = 2.0


class StoreService:
    """Wired and not yet running; `path` is where its child will stand."""

    def __init__(
        self,
        path: str,
        open_store: OpenStore,
        telemetry: Telemetry,
        *,
        concurrency: int,
        deadline_s: float,
        start_wait_s: float,
    ) -> None:
        self._open_store = open_store
        self._telemetry = telemetry
        self._concurrency = concurrency
        self._deadline_s = deadline_s
        self._start_wait_s = start_wait_s
        self._address: Address[StoreMessage] = Address(path, capacity=_MAILBOX)
        self.status = StoreStatus()
        self.client = StoreClient(self._address, self.status, telemetry, deadline_s=deadline_s)

    def child(self, id: str) -> ChildSpec:
        # Long enough for work under way to end and for the database to close, told or killed.
        patience_s = self._deadline_s + CLOSE_S + _REAP_S
        return actor_child(
            id,
            self._make,
            self._address,
            init_timeout_s=self._start_wait_s + _MIGRATION_S,
            shutdown=Grace(patience_s),
            kill_grace_s=patience_s,
        )

    def _make(self) -> StoreActor:
        return StoreActor(
            self._open_store,
            self.status,
            self._telemetry,
            concurrency=self._concurrency,
            deadline_s=self._deadline_s,
            start_wait_s=self._start_wait_s,
        )
