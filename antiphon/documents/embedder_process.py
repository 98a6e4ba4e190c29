"""An embedding process: `python -m antiphon.documents.embedder_process --fd N --config JSON`.

It loads the model, reports that it is ready on the inherited socket, and serves until it is told to
end or the server is gone.
"""

import argparse
import gc
import os
import socket
import sys
from collections.abc import Callable
from typing import Protocol

import structlog

from antiphon import faults
from antiphon.documents.background import Background, PassageVectors
from antiphon.documents.embedder_config import EmbedderConfig, decode_config
from antiphon.documents.embedder_runtime import EmbedderRuntime, QuestionVectors
from antiphon.documents.embedder_wire import command_decoder, encode_frame
from antiphon.documents.index import VectorIndex
from antiphon.documents.vectors import SentenceVectors
from antiphon.embedding_frames import EmbedderReady
from antiphon.errors import EmbedderLost
from antiphon.fault_plan import Site
from antiphon.processes.channel import Channel, ServerGone
from antiphon.processes.settling import settle_in

log = structlog.get_logger(__name__)

EXIT_START_FAILED = 3
EXIT_BROKEN = 4


class Vectors(QuestionVectors, PassageVectors, Protocol):
    """What a process needs of a model."""


LoadModel = Callable[[], Vectors]


def main(load: LoadModel = SentenceVectors) -> None:
    """The command line of an embedding process; tests put another model in its place."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--config", type=decode_config, required=True)
    arguments = parser.parse_args()
    connection = socket.socket(fileno=arguments.fd)
    sys.exit(serve(connection, arguments.config, load))


def serve(connection: socket.socket, config: EmbedderConfig, load: LoadModel) -> int:
    """Serve over this connection; the exit status of its process."""
    settle_in(config.log_level)
    channel = Channel(connection, command_decoder())
    try:
        with faults.from_setting(config.faults):
            faults.maybe(Site.EMBEDDER_START)
            try:
                model = load()
                model.question("ready?")  # what is made for a first text is made now
            except Exception as error:
                # Whatever it is, it is said once here, and not line by line as a traceback.
                log.error("embedder_start_failed", exc_info=error)
                return EXIT_START_FAILED
            gc.collect()
            gc.freeze()
            channel.send(encode_frame(EmbedderReady(pid=os.getpid())))
            background = Background(load, nice=config.nice)
            index = VectorIndex(config.index_bytes)
            EmbedderRuntime(channel, model, index, background).run()
    except ServerGone:
        log.info("server_gone")
    except EmbedderLost as error:
        log.error("embedder_gives_up", reason=error.reason)
        return EXIT_BROKEN
    return 0


if __name__ == "__main__":
    main()
