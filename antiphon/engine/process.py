"""Starts engine hosts: child processes that speak the engine contract. Nothing here knows what an
engine does."""

import sys
from collections.abc import Mapping

import structlog
import trio

from antiphon import faults
from antiphon.engine.config import HostConfig, encode_config
from antiphon.engine.wire import encode_frame, frame_decoder
from antiphon.errors import HostLost, HostStartFailed
from antiphon.events import Halt, HostCommand, HostFrame
from antiphon.fault_plan import Site
from antiphon.processes.frames import GARBAGE
from antiphon.processes.link import Contract, ProcessLink, launch

log = structlog.get_logger(__name__)

HostLink = ProcessLink[HostCommand, HostFrame]
"""One running host process: an EngineLink. Raises HostLost, HostProtocolError."""


def _encode(command: HostCommand) -> bytes:
    return GARBAGE if faults.strikes(Site.LINK_SEND_GARBLED) else encode_frame(command)


CONTRACT: Contract[HostCommand, HostFrame] = Contract(
    child="host",
    stderr_event="host_stderr",
    encode=_encode,
    decoder=frame_decoder,
    halt=Halt(),
    lost=HostLost,
)


class HostLauncher:
    """Starts hosts of one configuration: an EngineLauncher. `module` is what the child runs, and
    `environment` is added to what it inherits."""

    def __init__(
        self,
        config: HostConfig,
        *,
        module: str = "antiphon.engine.host",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._module = module
        self._environment = environment or {}

    async def launch(self) -> HostLink:
        """Start a host process; it reports Ready as its first frame. Raises HostStartFailed."""
        await trio.lowlevel.checkpoint()
        config = encode_config(self._config)
        try:
            link = launch(CONTRACT, self._module, config, self._environment)
        except OSError as error:
            raise HostStartFailed(f"cannot start {sys.executable}: {error.strerror}") from error
        log.info("host_process_started", host_pid=link.pid, engine=self._config.engine)
        return link
