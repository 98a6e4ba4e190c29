"""Who embeds with these settings, and what they are told: the one module that brings settings and
embedding processes together."""

import sys
from collections.abc import Callable

import structlog
import trio

from antiphon.documents.embedder_config import EmbedderConfig, encode_config
from antiphon.documents.embedder_wire import encode_command, frame_decoder
from antiphon.embedding_frames import EmbedderCommand, EmbedderFrame, HaltEmbedder
from antiphon.errors import EmbedderLost, EmbedderStartFailed
from antiphon.processes.link import Contract, ProcessLink, launch
from antiphon.settings import Settings

log = structlog.get_logger(__name__)

EmbedderProcess = ProcessLink[EmbedderCommand, EmbedderFrame]
"""One running embedding process: an EmbedderLink. Raises EmbedderLost."""

_MODULE = "antiphon.documents.embedder_process"
_ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("OV_NUM_THREADS", "RAYON_NUM_THREADS"),
    ),
    "1",
)
"""More would be taken from the engine's cores."""
_MIB = 1024 * 1024

CONTRACT: Contract[EmbedderCommand, EmbedderFrame] = Contract(
    child="embedder",
    stderr_event="embedder_stderr",
    encode=encode_command,
    decoder=frame_decoder,
    halt=HaltEmbedder(),
    lost=EmbedderLost,
)


class Embedders:
    """Starts embedding processes, each with the settings of that moment. `module` is what the child
    runs."""

    def __init__(self, settings: Callable[[], Settings], *, module: str = _MODULE) -> None:
        self._settings = settings
        self._module = module

    async def launch(self) -> EmbedderProcess:
        """Start an embedding process; it reports EmbedderReady as its first frame. Raises
        EmbedderStartFailed."""
        await trio.lowlevel.checkpoint()
        config = encode_config(embedder_config(self._settings()))
        try:
            link = launch(CONTRACT, self._module, config, _ONE_THREAD)
        except OSError as error:
            problem = f"cannot start {sys.executable}: {error.strerror}"
            raise EmbedderStartFailed(problem) from error
        log.info("embedder_process_started", embedder_pid=link.pid)
        return link


def embedder_config(settings: Settings) -> EmbedderConfig:
    """What an embedding process is told."""
    return EmbedderConfig(
        log_level=settings.log_level,
        index_bytes=settings.files.index_mib * _MIB,
        nice=settings.files.embedding_nice,
        faults=settings.faults,
    )
