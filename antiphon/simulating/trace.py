"""What is simulated: requests with their arrival, tokens and class, read from a trace file.

Four formats: Azure's LLM inference traces (CSV), BurstGPT (CSV), Mooncake (JSON lines), and our own
(JSON lines of `Arrival`), which also holds what the others don't know.
"""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from antiphon.errors import SettingsError

_MOONCAKE_BLOCK = 512
"""Tokens that one of its hashes stands for."""
_LONGEST = 10_000_000
"""Tokens: more than any model's window, so what is above it is no token count."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One request. `at` is in seconds from the start of the trace; 0 `output_tokens` is a request
    that failed when the trace was made, and is left out."""

    at: float
    prompt_tokens: int
    output_tokens: int
    max_tokens: int = 0
    """The longest answer that it asks for; 0 is that of the policy."""
    background: bool = False
    continues_tool: bool = False
    tenant: str = ""
    priority: int = 0
    conversation: str = ""
    """Requests of one have a prefix in common; empty is a conversation of one turn."""
    shared_tokens: int = 0
    """How much of the prompt is the conversation as it stood after its last request."""
    common_tokens: int = 0
    """How much of the prompt all requests begin with, such as a system prompt."""
    leaves_after_s: float | None = None
    """The client hangs up so long after its arrival, if the answer isn't there by then."""


def encode_arrivals(arrivals: Iterable[Arrival]) -> Iterator[bytes]:
    """Lines of our own format."""
    encoder = msgspec.json.Encoder()
    return (encoder.encode(arrival) + b"\n" for arrival in arrivals)


class Trace:
    """The requests of one file in the order of their arrival, and what could not be read of it."""

    def __init__(self, arrivals: list[Arrival], broken: tuple[int, ...], failed: int = 0) -> None:
        self.arrivals = arrivals
        self.broken = broken
        """Numbers of lines that hold no request."""
        self.failed = failed
        """Requests without an answer in the trace."""

    @property
    def seconds(self) -> float:
        return self.arrivals[-1].at if self.arrivals else 0.0


def read_trace(file: Path, *, limit: int | None = None) -> Trace:
    """Read a file of any known format; lines that make no sense are counted and left out. Raises
    SettingsError when it can't be read or holds no request at all."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            trace = _parse(lines, limit)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("trace", f"cannot read {file}: {error}") from error
    if not trace.arrivals:
        raise SettingsError("trace", f"{file} holds no request of a known format")
    return trace


def _parse(lines: Iterable[str], limit: int | None) -> Trace:
    numbered = enumerate(lines, start=1)
    head = next(((number, line) for number, line in numbered if line.strip()), (0, ""))
    columns = {name.strip().lower() for name in head[1].split(",")}
    if {"timestamp", "contexttokens", "generatedtokens"} <= columns:
        rows = _csv_rows(head[1], numbered, _azure)
    elif {"timestamp", "request tokens", "response tokens"} <= columns:
        rows = _csv_rows(head[1], numbered, _burstgpt)
    else:
        rows = _json_rows(head, numbered)
    return _collect(rows, limit)


def _collect(rows: Iterator[tuple[int, Arrival | None]], limit: int | None) -> Trace:
    arrivals: list[Arrival] = []
    broken: list[int] = []
    failed = 0
    for number, arrival in rows:
        if arrival is None:
            broken.append(number)
        elif arrival.output_tokens == 0:
            failed += 1
        else:
            arrivals.append(arrival)
            if limit is not None and len(arrivals) >= limit:
                break
    arrivals.sort(key=lambda arrival: arrival.at)
    start = arrivals[0].at if arrivals else 0.0
    if start:
        arrivals = [msgspec.structs.replace(each, at=each.at - start) for each in arrivals]
    return Trace(arrivals, tuple(broken), failed)


Row = dict[str, str]


def _csv_rows(
    head: str, numbered: Iterator[tuple[int, str]], make: Callable[[Row], Arrival]
) -> Iterator[tuple[int, Arrival | None]]:
    names = [name.strip().lower() for name in next(csv.reader([head]))]
    for number, line in numbered:
        if not line.strip():
            continue
        values = next(csv.reader([line]))
        try:
            yield number, _checked(make(dict(zip(names, values, strict=True))))
        except (ValueError, KeyError):
            yield number, None


def _azure(row: Row) -> Arrival:
    """AzurePublicDataset, AzureLLMInferenceTrace_*.csv of 2023 and 2024: a date, with or without an
    offset, and 100 ns."""
    moment, _, rest = row["timestamp"].strip().partition(".")
    fraction = rest.partition("+")[0].partition("Z")[0]
    at = datetime.fromisoformat(f"{moment.partition('+')[0]}+00:00").timestamp()
    return Arrival(
        at=at + (int(fraction) / 10 ** len(fraction) if fraction else 0.0),
        prompt_tokens=int(row["contexttokens"]),
        output_tokens=int(row["generatedtokens"]),
    )


def _burstgpt(row: Row) -> Arrival:
    """HPMLL/BurstGPT: seconds, maybe with a session."""
    return Arrival(
        at=float(row["timestamp"]),
        prompt_tokens=int(row["request tokens"]),
        output_tokens=int(row["response tokens"]),
        conversation=row.get("session id", "") or row.get("sessionid", ""),
    )


def _json_rows(
    head: tuple[int, str], numbered: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, Arrival | None]]:
    prefixes = _Prefixes()
    for number, line in [head, *numbered]:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise TypeError(record)
            if "input_length" in record:
                yield number, _checked(_mooncake(record, prefixes))
            else:
                yield number, _checked(msgspec.convert(record, Arrival))
        except (ValueError, TypeError, KeyError):  # msgspec's and json's are ValueErrors
            yield number, None


def _mooncake(record: dict[str, object], prefixes: "_Prefixes") -> Arrival:
    """kvcache-ai/Mooncake: milliseconds, and a hash for each 512 tokens of the prompt and all that
    comes before them."""
    hashes = record.get("hash_ids", [])
    if not isinstance(hashes, list):
        raise TypeError(hashes)
    conversation, shared, common = prefixes.find(hashes)
    return Arrival(
        at=float(str(record["timestamp"])) / 1000,
        prompt_tokens=int(str(record["input_length"])),
        output_tokens=int(str(record["output_length"])),
        conversation=conversation,
        shared_tokens=shared,
        common_tokens=common,
    )


class _Prefixes:
    """Conversations found again in hashes: who goes on from whose prefix. What is no more than the
    first block is common to all."""

    def __init__(self) -> None:
        self._owner: dict[object, str] = {}
        self._conversations = 0

    def find(self, hashes: list[object]) -> tuple[str, int, int]:
        """The conversation, and the tokens shared with it and with everybody."""
        known = 0
        while known < len(hashes) and hashes[known] in self._owner:
            known += 1
        common = _MOONCAKE_BLOCK if known else 0
        if known > 1:
            conversation = self._owner[hashes[known - 1]]
        else:
            self._conversations += 1
            conversation = str(self._conversations)
        for hashed in hashes[known:]:
            self._owner[hashed] = conversation
        return conversation, known * _MOONCAKE_BLOCK if known > 1 else 0, common


def _checked(arrival: Arrival) -> Arrival:
    """Raises ValueError for what is no request."""
    if not math.isfinite(arrival.at):
        raise ValueError(arrival.at)
    if not 0 < arrival.prompt_tokens <= _LONGEST or not 0 <= arrival.output_tokens <= _LONGEST:
        raise ValueError(arrival.prompt_tokens)
    if arrival.max_tokens < 0 or arrival.shared_tokens < 0 or arrival.common_tokens < 0:
        raise ValueError(arrival.max_tokens)
    return arrival
