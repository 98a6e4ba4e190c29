"""The TensorRT-LLM host's process: `python -m antiphon.engine_trt.host --fd N --config JSON`.

It speaks the same frames as any engine host. Its end is bounded whatever the library does, and its
warden takes the GPU workers along. MPI's workers import this module as well: keep it free of deeds.
"""

import asyncio
import faulthandler
import gc
import os
import socket
import sys
import threading

import structlog
from tokenizers import Tokenizer

from antiphon import faults
from antiphon.engine.channel import HostChannel, ServerGone
from antiphon.engine.config import HostConfig
from antiphon.engine.contract import EngineBroken
from antiphon.engine.host import EXIT_BROKEN, read_command_line, say_not_started, settle_in
from antiphon.engine.runtime import HostRuntime
from antiphon.engine.vocabulary import Vocabulary
from antiphon.engine_trt.engine import TrtEngine
from antiphon.engine_trt.loading import Loaded, load, warmed_up
from antiphon.engine_trt.processes import new_mark
from antiphon.engine_trt.shell import NonBlocking, Shell
from antiphon.engine_trt.statistics import Statistics
from antiphon.engine_trt.warden import start_warden
from antiphon.engine_trt.workers import WorkerWatch
from antiphon.errors import HostProtocolError, HostStartFailed
from antiphon.events import Ready
from antiphon.fault_plan import Site

log = structlog.get_logger(__name__)

_SHUTDOWN_S = 3.0
"""The library joins its threads and processes without a bound; the server waits 5 s by default."""


def main() -> None:
    connection, config = read_command_line()
    # A worker that held the other end of the server's socket would keep its end from being seen.
    connection.set_inheritable(False)
    status = serve(connection, config)
    # Not sys.exit: the library's exit handlers are known to hang (#16312 of its issues).
    sys.stderr.flush()
    os._exit(status)


def serve(connection: socket.socket, config: HostConfig) -> int:
    """Run the host over this connection; the exit status of its process."""
    settle_in(config)
    faulthandler.enable()
    channel = HostChannel(connection)
    environment = dict(os.environ)
    mark = new_mark()
    warden = start_warden(mark, environment)
    try:
        with faults.from_setting(config.faults):
            return _serve(channel, config, mark)
    except ServerGone:
        log.info("server_gone")
        return 0
    finally:
        assert warden.stdin is not None
        warden.stdin.close()


def _serve(channel: HostChannel, config: HostConfig, mark: str) -> int:
    faults.maybe(Site.HOST_START)
    try:
        spelling = config.model_dir / "tokenizer.json"
        if not spelling.is_file():
            raise HostStartFailed(f"{spelling} is missing")
        loaded = load(config)
        vocabulary = Vocabulary(Tokenizer.from_file(str(spelling)))
        return asyncio.run(_run(channel, config, vocabulary, loaded, mark))
    except HostStartFailed as error:
        return say_not_started(channel, error)


async def _run(
    channel: HostChannel, config: HostConfig, vocabulary: Vocabulary, loaded: Loaded, mark: str
) -> int:
    shell = Shell(channel)
    statistics = Statistics(loaded.llm)
    capabilities = await warmed_up(loaded, config, statistics)
    engine = TrtEngine(loaded, config, capabilities, statistics, shell.wake)
    watch = WorkerWatch(mark, lambda pid: engine.break_down(f"worker process {pid} has ended"))
    gc.collect()
    gc.freeze()
    try:
        channel.send([Ready(pid=os.getpid(), capabilities=capabilities)])
        runtime = HostRuntime(
            engine, vocabulary, NonBlocking(channel), frozenset(config.stop_token_ids)
        )
        await shell.run(runtime, engine)
    except (EngineBroken, HostProtocolError):
        return EXIT_BROKEN
    finally:
        watch.close()
    _end_within(_SHUTDOWN_S)
    engine.close()
    return 0


def _end_within(seconds: float) -> None:
    """Whatever the library waits for in its shutdown, this process is gone by then."""

    def leave() -> None:
        log.warning("engine_shutdown_cut", after_s=seconds)
        os._exit(0)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
