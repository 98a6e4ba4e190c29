"""The engine host's process: `python -m antiphon.engine.host --fd N --config JSON`.

It loads the engine, reports Ready on the inherited socket, and serves until it is told to end or
the server is gone. Ctrl-C in a terminal is not its business.
"""

import argparse
import gc
import os
import socket
import sys
from collections.abc import Callable

import structlog
from tokenizers import Tokenizer

from antiphon import faults
from antiphon.engine.channel import HostChannel, ServerGone
from antiphon.engine.config import EngineKind, HostConfig, decode_config
from antiphon.engine.contract import EngineBroken, StepEngine
from antiphon.engine.runtime import HostRuntime
from antiphon.engine.vocabulary import Vocabulary
from antiphon.errors import HostProtocolError, HostStartFailed
from antiphon.events import Fault, Ready
from antiphon.fault_plan import Site
from antiphon.processes import settling

log = structlog.get_logger(__name__)

EXIT_START_FAILED = 3
EXIT_BROKEN = 4
_START_FAULT_S = 1.0

EngineFactory = Callable[[HostConfig], StepEngine]


def main(make_engine: EngineFactory | None = None) -> None:
    """The command line of a host; `make_engine` overrules the configured kind."""
    connection, config = read_command_line()
    factory = make_engine or _factory(config.engine)
    sys.exit(serve(connection, config, factory))


def read_command_line() -> tuple[socket.socket, HostConfig]:
    """What a launcher gave this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--config", type=decode_config, required=True)
    arguments = parser.parse_args()
    return socket.socket(fileno=arguments.fd), arguments.config


def serve(connection: socket.socket, config: HostConfig, make_engine: EngineFactory) -> int:
    """Run a host over this connection; the exit status of its process."""
    settle_in(config)
    channel = HostChannel(connection)
    try:
        with faults.from_setting(config.faults):
            return _serve(channel, config, make_engine)
    except ServerGone:
        log.info("server_gone")
        return 0


def settle_in(config: HostConfig) -> None:
    """What every host process does first."""
    settling.settle_in(config.log_level)


def say_not_started(channel: HostChannel, error: HostStartFailed) -> int:
    """Tell the server why; the exit status of the process."""
    log.error("host_start_failed", reason=error.reason)
    channel.send([Fault(code="start_failed", detail=error.reason)])
    channel.flush(_START_FAULT_S)
    return EXIT_START_FAILED


def _serve(channel: HostChannel, config: HostConfig, make_engine: EngineFactory) -> int:
    faults.maybe(Site.HOST_START)
    try:
        engine = make_engine(config)
        vocabulary = Vocabulary(Tokenizer.from_file(str(config.model_dir / "tokenizer.json")))
    except HostStartFailed as error:
        return say_not_started(channel, error)
    # What was loaded stays: the collector need not look at it again in the middle of a step.
    gc.collect()
    gc.freeze()
    try:
        channel.send([Ready(pid=os.getpid(), capabilities=engine.capabilities)])
        HostRuntime(engine, vocabulary, channel, frozenset(config.stop_token_ids)).run()
    except (EngineBroken, HostProtocolError):
        return EXIT_BROKEN
    finally:
        engine.close()
    return 0


def _factory(kind: EngineKind) -> EngineFactory:
    match kind:
        case EngineKind.OPENVINO:
            # Imported only here, since the library takes a third of a second and 70 MB.
            from antiphon.engine.openvino.engine import OpenVinoEngine

            return OpenVinoEngine
        case EngineKind.TENSORRT_LLM:
            raise HostStartFailed("TensorRT-LLM has a host of its own, antiphon.engine_trt.host")


if __name__ == "__main__":
    main()
