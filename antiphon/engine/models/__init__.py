"""Model store: references, fetching, preparing. Never imports numpy, gguf or openvino: a child
process does."""

from antiphon.engine.models.catalogue import CATALOGUE
from antiphon.engine.models.checkpoints import use_checkpoint
from antiphon.engine.models.prepared import PreparedModel
from antiphon.engine.models.progress import Progress, SilentProgress, progress_on
from antiphon.engine.models.store import ModelStore

__all__ = [
    "CATALOGUE",
    "ModelStore",
    "PreparedModel",
    "Progress",
    "SilentProgress",
    "progress_on",
    "use_checkpoint",
]
