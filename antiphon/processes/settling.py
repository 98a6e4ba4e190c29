"""What every child process does first: tie its life to the server's, and log where that hears
it."""

import logging
import signal
import sys

import structlog

from antiphon.processes.lifeline import die_with_parent


def settle_in(log_level: str) -> None:
    """Ctrl-C in a terminal is not a child's business. Log lines are JSON on stderr, which the
    server's end of the pipe turns back into log events."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[log_level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
