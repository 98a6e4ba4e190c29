"""Everything that reads files and searches in them, wired from the settings: what `app` puts into
the tree, beside it as `pools` is."""

from collections.abc import Callable

from antiphon.actors.embedding.service import EmbeddingService
from antiphon.actors.files.ingestion import Ingestion
from antiphon.actors.files.service import FileService
from antiphon.actors.files.tools import FileTools
from antiphon.actors.files.vectors import StoreVectors
from antiphon.embedders import Embedders
from antiphon.ids import NodeId
from antiphon.ports import Contents
from antiphon.ranking import HybridRanker
from antiphon.readers import Readers
from antiphon.settings import Settings
from antiphon.storage import StoreAccess
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.telemetry import Telemetry

_INTENSITY = 10
"""In a minute: an embedding process that can't be kept running leaves the tree alone, and searches
go by words meanwhile."""


class Filing:
    """Wired and not yet running; `path` is where its child will stand."""

    def __init__(
        self,
        path: str,
        settings: Callable[[], Settings],
        store: StoreAccess,
        contents: Contents,
        telemetry: Telemetry,
        *,
        node: NodeId,
        now_ms: Callable[[], int],
    ) -> None:
        vectors = StoreVectors(store, lambda: self.embedding.model)
        self.embedding = EmbeddingService(f"{path}/embedding", Embedders(settings), vectors)
        tools = FileTools(
            store=store,
            contents=contents,
            reader=Readers(settings),
            embedding=self.embedding,
            telemetry=telemetry,
            settings=lambda: settings().files,
            node=node,
            now_ms=now_ms,
        )
        self.service = FileService(tools, HybridRanker(), vectors)

    @property
    def ingestion(self) -> Ingestion:
        """What a drain ends."""
        return self.service.ingestion

    def child(self, id: str) -> ChildSpec:
        """What stands in the tree."""
        return Supervisor(
            SupervisorSpec(intensity=_INTENSITY, period_s=60.0),
            [self.embedding.child("embedding"), self.ingestion.child("ingestion")],
        ).child(id)
