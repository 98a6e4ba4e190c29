"""What goes wrong on purpose, and how fast the stand-in is: JSON in one environment variable."""

import os
import random

import msgspec

VARIABLE = "TENSORRT_LLM_STAND_IN"


class Switches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every one off by default. Those that count iterations strike once; odds are those of each
    occasion, by `seed`."""

    seed: int = 0
    main: bool = False
    """The main branch of 2026 instead of 1.2: `priority`, `get_kv_cache_capacity`."""
    salts: bool = True
    """Whether `generate_async` knows `cache_salt`: 1.0 did not."""
    iteration_s: float = 0.002
    kv_blocks: int = 512
    record: str | None = None
    """A file that gets a JSON line for each construction, submit and abort."""
    import_fails: bool = False
    construction_fails: bool = False
    tokens_at_once: int = 1
    """Several responses may have become one by the time somebody looks."""
    cut_end: bool = False
    """The token that ended the answer is cut off the cumulative tokens again (PR 5948)."""
    aborts_unanswered: float = 0.0
    """The slot is free and no final response comes (PR 9280)."""
    aborts_ignored: float = 0.0
    """The request runs on to its own end."""
    aborts_leak: float = 0.0
    """No response, and the slot stays used (issue 9628)."""
    final_delay_s: float = 0.0
    """The answer's end is told, its finality later."""
    finals_lost: float = 0.0
    """The answer's end is told, its finality never."""
    step_throws_each: int | None = None
    """Every n-th iteration fails, and with it everybody who is active (`_handle_errors`)."""
    request_fails_each: int | None = None
    """Every n-th request alone gets an error response at its start, each prompt only once."""
    failing: int | None = None
    """A prompt with this token always gets one."""
    poison: int | None = None
    """A prompt with this token makes every iteration that it is in fail."""
    refuse: int | None = None
    """A prompt with this token is refused by `generate_async`."""
    mute: int | None = None
    """A prompt with this token gets no response, and others theirs."""
    strange_end: int | None = None
    """A prompt with this token is ended by the engine itself, with reason `timeout`."""
    background_error_at: int | None = None
    """A thread of the library fails in this iteration: the next call shuts everything down."""
    worker_dies_at: int | None = None
    hangs_at: int | None = None
    unhealthy_at: int | None = None
    """`_check_health` says so; main only."""
    shutdown_hangs: bool = False
    statistics_fail: bool = False


SWITCHES = msgspec.json.decode(os.environ.get(VARIABLE, "{}"), type=Switches)
DICE = random.Random(SWITCHES.seed)


def note(**facts: object) -> None:
    """Write a line to the record, if there is one."""
    if SWITCHES.record is not None:
        with open(SWITCHES.record, "ab") as record:
            record.write(msgspec.json.encode(facts) + b"\n")
