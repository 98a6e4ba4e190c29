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
| prefix_cache_off         | engine host | a model without room for a salt: prompts share nothing  |
| kv_block_size_unexpected | engine host | the engine counts blocks otherwise than we do           |
| engine_step_threw        | engine host | a step failed; innocent requests are run again          |
| engine_close_threw       | engine host | the engine failed while it was let go                   |
| engine_release_inferred  | engine host | a request is proved gone, though it never said so       |
| engine_options_left_out  | engine host | this TensorRT-LLM doesn't know them; it runs without    |
| kv_blocks_unknown        | engine host | the engine doesn't say how many; assumed: enough        |
| engine_statistics_failed | engine host | TensorRT-LLM told no figures this time                  |
| engine_shutdown_cut      | engine host | the library didn't end in time; its processes are ended |
| engine_checked           | verifying   | one check of `antiphon engines verify` has ended        |
| schema_checker_died      | engine host | the process that tries JSON schemas crashed on one      |
| engine_ready             | engines     | a host reported Ready: slots, KV blocks, window         |
| engine_lost              | engines     | a host died, fell silent or broke the protocol          |
| engine_fault             | engines     | the host failed one request, or warns of itself         |
| replica_up               | engine      | a replica of the upstream answers; it gets work         |
| replica_down             | engine      | it is out of reach or not well: why; probed until it is |
| upstream_failed          | engine      | one generation failed there: how; the client is told    |
| prompt_cut               | engine      | a replica counted far fewer tokens than it was sent     |
| judge_process_started    | judges      | a judge process was started; its classifier loads next  |
| judge_ready              | moderation  | it judges by the rules in force: which version          |
| judge_lost               | moderation  | it died, fell silent or broke the protocol: texts lost  |
| judge_stderr             | moderation  | the judge, or native code in it, wrote a line           |
| judge_start_failed       | judge       | its classifier could not be loaded                      |
| judge_gives_up           | judge       | the server sent what it can't read; the process ends    |
| judging_failed           | judge       | a matcher failed; the text that it failed on is said so |
| scoring_failed           | judge       | the classifier failed on texts that were to be scored   |
| rules_installed          | moderation  | other rules are in force: which, and those before them  |
| rules_refused            | moderation  | a rules' file is wrong: line, key; the old ones stay    |
| rules_not_loaded         | moderation  | a judge process does not judge by a version: why        |
| moderation_upstream_failed | moderation | a `/v1/moderations` elsewhere failed: how              |
| policy_events_wait       | moderation  | the store is away; they wait in memory                  |
| policy_events_refused    | moderation  | the store refuses some of them; they are lost           |
| policy_events_dropped    | moderation  | there was no room for so many of them                   |
| reader_killed            | readers     | a reader was killed from outside; it may try once more  |
| reader_too_slow          | readers     | a reader was killed when its time was up                |
| reader_crashed           | readers     | a file has crashed its reader: by which signal          |
| reader_broken            | readers     | a reader said what it must not, or too little           |
| reader_stderr            | readers     | a reader, or native code in it, wrote a line            |
| reader_gives_up          | reader      | the server sent what it can't read; the process ends    |
| reader_not_confined      | reader      | this system has no seccomp; the limits must do          |
| reading_failed           | reader      | a parser failed on a file: how, and where in our code   |
| embedder_process_started | embedders   | an embedding process was started, as one was needed     |
| embedder_ready           | embedding   | its model is loaded                                     |
| embedder_lost            | embedding   | it died, fell silent or broke the protocol: work lost   |
| embedder_stderr          | embedding   | it, or native code in it, wrote a line                  |
| embedder_start_failed    | embedder    | its model could not be loaded                           |
| embedder_gives_up        | embedder    | the server sent what it can't read; the process ends    |
| embedding_failed         | embedder    | the model failed on a passage, which has no vector      |
| search_failed            | embedder    | the model failed on a question; words have to do        |
| news_undelivered         | engines     | a session's mailbox was full; its turn fails            |
| lease_cancelled          | scheduling  | a cancelled request's slot is free: cause, time, waste  |
| circuit_opened           | scheduling  | calls failed in a row; refused until the next try       |
| circuit_closed           | scheduling  | a probe was answered; calls pass again                  |
| turn_overdue             | scheduling  | a turn ran into its deadline and is cut                 |
| context_cut              | routing     | old turns are not shown, nor is a summary of them       |
| turn_routed              | routing     | a pool took a turn: which, why, and who was passed over |
| turn_refused             | routing     | no pool took it: which were asked, and why not          |
| submit_failed            | sessions    | no scheduler took the turn in time                      |
| call_not_retried         | sessions    | a malformed call of a function stays so: no room for it |
| faults_active            | faults      | a fault plan is at work: this is a test of the server   |
| fault_injected           | faults      | the plan struck: at which site, and how                 |
| store_opened             | store       | the database is open and its schema up to date          |
| store_waiting            | store       | it can't be opened: why; it is tried again              |
| store_lost               | store       | it doesn't answer: why; the server is not ready         |
| store_back               | store       | it answers again                                        |
| store_failed             | store       | it refused an operation: full disk, damaged file        |
| schema_migrated          | persistence | tables were made or changed: which steps                |
| orphan_unreadable        | persistence | a damaged row, or a newer program's, can't be ended     |
| transaction_repeated     | persistence | PostgreSQL undid it for the sake of another one         |
| tidying_put_off          | persistence | some deleted text stays in SQLite's files for now       |
| interrupted_at_close     | persistence | a statement still ran when the database closed          |
| local_user_not_checked   | accounts    | the local user's row may be missing until it is needed  |
| key_times_not_written    | accounts    | when keys were last used is written later               |
| bill_owed                | metering    | a turn's cost could not be written; it is tried again   |
| bookkeeping_paused       | metering    | the store is away; bills and leases wait                |
| reservations_lapsed      | metering    | what a killed server had reserved is free again         |
| plan_undefined           | accounts    | a user has a plan that the settings don't have          |
| prompt_in_force          | prompts     | other versions of a system prompt count from now on     |
| prompt_unusable          | prompts     | the settings name one that nobody can be given: why     |
| braked                   | http        | an address or a key is refused for a while: why         |
| abuse_acted              | abuse       | somebody is warned, slowed down or suspended: why       |
| abuse_seen               | abuse       | the same, where the settings only watch                 |
| abuse_ended              | abuse       | a suspension is over                                    |
| abuse_lifted             | abuse       | somebody ended a suspension of ours elsewhere           |
| suspensions_not_kept     | abuse       | the store is away; they hold here, and are written then |
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
| work_failed              | workers     | no title, summary or memory yet: why; it is tried again |
| work_given_up            | workers     | the same too often; a conversation is left as it is     |
| work_paused              | workers     | the store is away; titles and summaries wait            |
| work_resumed             | workers     | it is back, and they are made again                     |
| document_made            | files       | the work on a file has ended: how, and how long it took |
| document_failed          | files       | a file isn't read yet: why; it is tried again           |
| document_given_up        | files       | the same too often; the file has failed                 |
| documents_outdated       | files       | another reader or model made them; they are made anew   |
| ingestion_paused         | files       | the store is away; files wait                           |
| ingestion_resumed        | files       | it is back, and they are read again                     |
| search_by_text_alone     | files       | meaning could not be searched for: why                  |
| removal_postponed        | workers     | a file without records stays until the next sweep       |
| response_not_saved       | responses   | the store is away; the reaper will tell it              |
| turn_not_withdrawn       | responses   | a refused turn is stored; the reaper will undo that     |
| response_start_unnoted   | responses   | the store shows it as queued for longer than it was     |
| response_lost            | responses   | the lease ran out; another server ended it              |
| response_reaped          | responses   | ended: the server that worked on it is gone             |
| response_ended_late      | responses   | ended: its run crashed, or found the store away         |
| response_not_ended       | responses   | the store refuses its end, and no other's; tried again  |
| events_unreadable        | responses   | a damaged log, or a newer program's; ended without it   |
| turn_withdrawn_late      | responses   | a refused turn that had been stored is stored no more   |
| recording_paused         | responses   | the store is away; text waits in memory                 |
| recording_resumed        | responses   | what waited is stored                                   |
| reaping_paused           | responses   | the store is away; ends of lost responses wait          |
| expiry_paused            | responses   | the store is away; what is too old stays for now        |
| records_expired          | responses   | rows removed after their time, by table                 |
| drafts_cleared           | responses   | uploads and removals that a dead server left half-done  |
| contents_swept           | responses   | file contents removed that no record named              |
| request_finished         | http        | one request: status, duration, tokens, how it ended     |
| request_failed           | http        | a defect of ours, with its traceback                    |
| connection_crashed       | http        | a defect in one connection; the others go on            |
| slow_reader_dropped      | http        | a client took nothing for the write timeout             |
| accept_paused            | http        | out of file descriptors; accepting again shortly        |
| operator_command         | http        | an operator restarted a child, forgave somebody, …      |
| server_ready             | app         | the tree is up: addresses, model                        |
| banner_unread            | app         | nobody reads standard output; serving goes on           |
| settings_reloaded        | app         | changed keys: applied, or which restart each needs      |
| reload_refused           | app         | the new settings are wrong; the old ones stay           |
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
    """Send every line to `stream`; may be called again with another level or form.

    Loggers of Hypercorn must be the standard library's by name,
    `logging.getLogger("hypercorn.error")`, since given "-" it would add a handler of its own."""
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            # At each line, since loggers are kept and the level may change while they are.
            structlog.stdlib.filter_by_level,
            *common,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
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
    root.setLevel(level.upper())


def writes_json(form: Format, stream: TextIO) -> bool:
    return form == "json" or (form == "auto" and not stream.isatty())


def _renderers(*, json: bool, colors: bool) -> list[Processor]:
    if json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
