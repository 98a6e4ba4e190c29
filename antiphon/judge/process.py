"""A judge's process: `python -m antiphon.judge.process --fd N --config JSON`.

It loads the classifier, reports that it is ready on the inherited socket, and serves until it is
told to end or the server is gone. It has one thread, and imports no more than judging takes.
"""

import argparse
import gc
import os
import socket
import sys
from collections.abc import Callable

import structlog

from antiphon import faults
from antiphon.errors import JudgeLost
from antiphon.fault_plan import Site
from antiphon.judge.config import JudgeConfig, decode_config
from antiphon.judge.runtime import JudgeRuntime
from antiphon.judge.wire import command_decoder, encode_frame
from antiphon.judging import JudgeReady
from antiphon.policy.scan import Scorer
from antiphon.processes.channel import Channel, ServerGone
from antiphon.processes.settling import settle_in

log = structlog.get_logger(__name__)

EXIT_START_FAILED = 3
EXIT_BROKEN = 4

LoadScorer = Callable[[], Scorer]


def main(load: LoadScorer | None = None) -> None:
    """The command line of a judge; `load` takes the place of the embedded classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--config", type=decode_config, required=True)
    arguments = parser.parse_args()
    connection = socket.socket(fileno=arguments.fd)
    sys.exit(serve(connection, arguments.config, load or _embedded))


def serve(connection: socket.socket, config: JudgeConfig, load: LoadScorer) -> int:
    """Run a judge over this connection; the exit status of its process."""
    settle_in(config.log_level)
    os.nice(config.nice)
    channel = Channel(connection, command_decoder())
    try:
        with faults.from_setting(config.faults):
            faults.maybe(Site.JUDGE_START)
            try:
                scorer = load()
            except Exception as error:
                # Whatever it is, it is said once here, and not line by line as a traceback.
                log.error("judge_start_failed", exc_info=error)
                return EXIT_START_FAILED
            # What was loaded stays: the collector need not look at it again in the middle of a
            # batch.
            gc.collect()
            gc.freeze()
            channel.send(encode_frame(JudgeReady(pid=os.getpid(), model=scorer.name)))
            JudgeRuntime(channel, scorer).run()
    except ServerGone:
        log.info("server_gone")
    except JudgeLost as error:
        log.error("judge_gives_up", reason=error.reason)
        return EXIT_BROKEN
    return 0


def _embedded() -> Scorer:
    # Imported only here: tests put another one in its place.
    from antiphon.classifier import load

    return load()


if __name__ == "__main__":
    main()
