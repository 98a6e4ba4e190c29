"""What the reading of files and the search in them are done with."""

from collections.abc import Callable
from dataclasses import dataclass

from antiphon.embedding import Embedding
from antiphon.files_settings import FilesSettings
from antiphon.ids import NodeId
from antiphon.ports import Contents
from antiphon.reading_files import FileReader
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTools:
    """`now_ms` is the wall clock."""

    store: StoreAccess
    contents: Contents
    reader: FileReader
    embedding: Embedding
    telemetry: Telemetry
    settings: Callable[[], FilesSettings]
    node: NodeId
    now_ms: Callable[[], int]
