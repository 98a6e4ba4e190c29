"""Logging: structlog on top of the standard library, so that Hypercorn's and Quart's lines come out
alike.

Lines are facts with fields, never message bodies. Every event name is listed here:

| event                    | said by     | when                                                    |
|--------------------------|-------------|---------------------------------------------------------|
| model_fetch_started      | models      | a package is about to be downloaded                     |
| model_fetched            | models      | its file is here and has the recorded SHA-256           |
| model_fetch_failed       | models      | a damaged download can't be replaced; serving goes on   |
| model_prepare_started    | models      | a source is about to become a prepared folder           |
| model_prepared           | models      | a prepared folder is sealed and in place                |
| model_damaged            | models      | a stored file is not what was recorded                  |
| model_leftover_removed   | models      | a killed process's half-made folder was swept away      |
| host_process_started     | engine      | an engine host was started; its model loads next        |
| host_start_failed        | engine host | the engine could not be loaded                          |
| host_stderr              | engine      | the host, or native code in it, wrote a line            |
| host_gives_up            | engine host | the engine can't be brought back; the process ends      |
| server_gone              | engine host | the server's end of the socket closed; the process ends |
| kv_cache_allocated       | engine host | how many KV blocks fit the memory given                 |
| kv_block_size_unexpected | engine host | the engine counts blocks otherwise than we do           |
| engine_step_threw        | engine host | a step failed; innocent requests are run again          |
| engine_close_threw       | engine host | the engine failed while it was let go                   |
| schema_checker_died      | engine host | the process that tries JSON schemas crashed on one      |
| engine_ready             | engines     | a host reported Ready: slots, KV blocks, window         |
| engine_lost              | engines     | a host died, fell silent or broke the protocol          |
| engine_fault             | engines     | the host failed one request, or warns of itself         |
| news_undelivered         | engines     | a session's mailbox was full; its turn fails            |
| lease_cancelled          | scheduling  | a cancelled request's slot is free: cause, time, waste  |
| turn_overdue             | scheduling  | a turn ran into its deadline and is cut                 |
| submit_failed            | sessions    | no scheduler took the turn in time                      |
| dead_letter              | actors      | a message for an actor that has stopped                 |
| message_dropped          | actors      | a bounded mailbox refused or pushed out a message       |
| handoff_dropped          | actors      | a saved value is not tried again: it may be the cause   |
| terminate_failed         | actors      | an actor's clean-up raised after its crash              |
| terminate_cut            | actors      | an actor's clean-up took too long after its crash       |
| child_started            | supervision | a child is ready                                        |
| child_exited             | supervision | a child ended: how, and whether it was told to          |
| restart_scheduled        | supervision | it will be started again: delay, how often in a row     |
| restart_denied           | supervision | one restart more would exceed a limit                   |
| shutdown_slow            | supervision | the grace ran out; the child is cancelled               |
| child_stuck              | supervision | a child ignored its cancellation                        |
| supervisor_gave_up       | supervision | too many restarts: its parent decides                   |
| tree_stopped             | supervision | the whole tree has ended                                |
| drain_started            | watchman    | no new turns; open ones may run on                      |
| drain_finished           | watchman    | none is open, or the rest were interrupted              |
| request_finished         | http        | one request: status, duration, tokens, how it ended     |
| request_failed           | http        | a defect of ours, with its traceback                    |
| connection_crashed       | http        | a defect in one connection; the others go on            |
| slow_reader_dropped      | http        | a client took nothing for the write timeout             |
| accept_paused            | http        | out of file descriptors; accepting again shortly        |
| operator_command         | http        | an operator stopped, started or restarted a child       |
| server_ready             | app         | the tree is up: addresses, model                        |
| banner_unread            | app         | nobody reads standard output; serving goes on           |
| server_failed            | app         | the tree gave up or did not start                       |
| stop_requested           | app         | the first signal: the ordered stop begins               |
| stop_forced              | app         | the second signal: the process ends now                 |
| stuck_at_exit            | app         | something ignored its cancellation; exit status 70      |
"""

import logging
from typing import Literal, TextIO

import structlog
from structlog.typing import Processor

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "text", "json"]


def configure_logging(level: Level, form: Format, stream: TextIO) -> None:
    """Send every line to `stream`. Loggers of Hypercorn must be the standard library's by name,
    `logging.getLogger("hypercorn.error")`, since given "-" it would add a handler of its own."""
    threshold = logging.getLevelName(level.upper())
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*common, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=common,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(json=writes_json(form, stream), colors=stream.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)


def writes_json(form: Format, stream: TextIO) -> bool:
    return form == "json" or (form == "auto" and not stream.isatty())


def _renderers(*, json: bool, colors: bool) -> list[Processor]:
    if json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
