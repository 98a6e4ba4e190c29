"""The settings in force: one owner, and readers that look at the time of use.

A reload takes what may change in a running server, or nothing at all when the new settings are
wrong, and says of every changed key what it needs.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
import trio

from antiphon.errors import SettingsError
from antiphon.settings import Settings, check_settings

log = structlog.get_logger(__name__)


class Effect(enum.StrEnum):
    """From when on a new value counts."""

    NOW = "now"
    """From its next use: the next turn, connection, look at the queue, command."""
    ENGINE = "engine_restart"
    """From the next start of an engine host: a restart of the driver."""
    PROCESS = "process_restart"


EFFECTS: Mapping[str, Effect] = {
    "bind": Effect.PROCESS,
    "ops_bind": Effect.PROCESS,
    "ops_token": Effect.NOW,
    "data_dir": Effect.PROCESS,
    "model": Effect.PROCESS,
    "model_name": Effect.PROCESS,
    "log_level": Effect.NOW,
    "log_format": Effect.NOW,
    "faults": Effect.PROCESS,
    "engine.kind": Effect.PROCESS,
    "engine.slots": Effect.ENGINE,
    "engine.threads": Effect.ENGINE,
    "engine.kv_cache_mib": Effect.ENGINE,
    "engine.kv_precision": Effect.ENGINE,
    "engine.step_tokens": Effect.ENGINE,
    "engine.prefix_cache": Effect.ENGINE,
    "engine.silence_s": Effect.ENGINE,
    # Both are also in the driver's child specification, which is made once.
    "engine.start_timeout_s": Effect.PROCESS,
    "engine.stop_grace_s": Effect.PROCESS,
    "openvino.kv_group": Effect.ENGINE,
    "openvino.compute_precision": Effect.ENGINE,
    "openvino.activation_group": Effect.ENGINE,
    "openvino.pin_threads": Effect.ENGINE,
    "openvino.core_type": Effect.ENGINE,
    "trt.tensor_parallel": Effect.ENGINE,
    "trt.pipeline_parallel": Effect.ENGINE,
    "trt.kv_fraction": Effect.ENGINE,
    "trt.kv_cache_dtype": Effect.ENGINE,
    "trt.block_reuse": Effect.ENGINE,
    "trt.chunked_prefill": Effect.ENGINE,
    "trt.max_step_tokens": Effect.ENGINE,
    "trt.cuda_graphs": Effect.ENGINE,
    "trt.guided_decoding": Effect.ENGINE,
    "trt.iteration_statistics": Effect.ENGINE,
    "trt.abort": Effect.ENGINE,
    "trt.abort_wait_s": Effect.ENGINE,
    "trt.idle_s": Effect.ENGINE,
    # What they call the model is what we call it, and its tokenizer is read once.
    "upstream.model": Effect.PROCESS,
    "upstream.tokenizer": Effect.PROCESS,
    "upstream.urls": Effect.ENGINE,
    "upstream.api_key": Effect.ENGINE,
    "upstream.slots": Effect.ENGINE,
    "upstream.window": Effect.ENGINE,
    "upstream.prompts": Effect.ENGINE,
    "upstream.connect_s": Effect.ENGINE,
    "upstream.idle_s": Effect.ENGINE,
    "upstream.total_s": Effect.ENGINE,
    "upstream.wait_s": Effect.ENGINE,
    "upstream.probe_s": Effect.ENGINE,
    "upstream.balance": Effect.ENGINE,
    "upstream.logprobs": Effect.ENGINE,
    "upstream.json_schema": Effect.ENGINE,
    "upstream.seed": Effect.ENGINE,
    "upstream.extras": Effect.ENGINE,
    "upstream.vision": Effect.ENGINE,
    "upstream.image_tokens": Effect.ENGINE,
    "upstream.cache_salt": Effect.ENGINE,
    "smaller": Effect.PROCESS,
    "pools": Effect.PROCESS,
    "aliases": Effect.NOW,
    "plans": Effect.NOW,
    "default_plan": Effect.NOW,
    "scheduling.policy": Effect.NOW,
    "scheduling.long_prompt_tokens": Effect.NOW,
    "scheduling.long_prefills": Effect.NOW,
    "scheduling.interactive_reserve": Effect.NOW,
    "scheduling.interactive_weight": Effect.NOW,
    "scheduling.tool_weight": Effect.NOW,
    "scheduling.long_weight": Effect.NOW,
    "scheduling.background_weight": Effect.NOW,
    "scheduling.aging_s": Effect.NOW,
    "scheduling.background_deadline_s": Effect.NOW,
    "scheduling.preempt": Effect.NOW,
    "scheduling.interactive_objective_s": Effect.NOW,
    "scheduling.tool_objective_s": Effect.NOW,
    "scheduling.long_objective_s": Effect.NOW,
    "scheduling.background_objective_s": Effect.NOW,
    "queue.max_requests": Effect.NOW,
    "queue.max_tokens": Effect.NOW,
    "queue.deadline_s": Effect.NOW,
    "generation.default_max_tokens": Effect.NOW,
    "generation.max_choices": Effect.NOW,
    "generation.turn_deadline_s": Effect.NOW,
    "http.max_body_bytes": Effect.NOW,
    "http.body_timeout_s": Effect.NOW,
    "http.idle_timeout_s": Effect.NOW,
    "http.write_timeout_s": Effect.NOW,
    "http.heartbeat_s": Effect.NOW,
    "http.headers_after_s": Effect.NOW,
    "http.max_connections": Effect.NOW,
    "http.max_file_bytes": Effect.NOW,
    "brakes.failed_keys_per_minute": Effect.NOW,
    "brakes.failed_keys_burst": Effect.NOW,
    "brakes.address_per_s": Effect.NOW,
    "brakes.address_burst": Effect.NOW,
    "brakes.key_per_s": Effect.NOW,
    "brakes.key_burst": Effect.NOW,
    "brakes.blocked_prompts_per_hour": Effect.NOW,
    "brakes.blocked_prompts_burst": Effect.NOW,
    "brakes.addresses": Effect.NOW,
    "brakes.trusted_proxies": Effect.NOW,
    "policy.enabled": Effect.PROCESS,
    "policy.rules": Effect.NOW,
    "policy.workers": Effect.PROCESS,
    "policy.deadline_s": Effect.NOW,
    "policy.queue": Effect.NOW,
    "policy.upstream_url": Effect.PROCESS,
    "policy.upstream_key_env": Effect.PROCESS,
    "policy.upstream_model": Effect.NOW,
    "policy.events": Effect.NOW,
    "abuse.mode": Effect.NOW,
    "abuse.half_life_s": Effect.NOW,
    "abuse.warn_at": Effect.NOW,
    "abuse.slow_at": Effect.NOW,
    "abuse.suspend_at": Effect.NOW,
    "abuse.slow_per_minute": Effect.NOW,
    "abuse.slow_burst": Effect.NOW,
    "abuse.suspend_s": Effect.NOW,
    "abuse.suspend_addresses": Effect.NOW,
    "abuse.blocked_points": Effect.NOW,
    "abuse.jailbreak_points": Effect.NOW,
    "abuse.minors_points": Effect.NOW,
    "abuse.failed_key_points": Effect.NOW,
    "abuse.flood_points": Effect.NOW,
    "abuse.account_points": Effect.NOW,
    "abuse.address_points": Effect.NOW,
    "abuse.rhythm_points": Effect.NOW,
    "abuse.tolerance": Effect.NOW,
    "abuse.free_accounts": Effect.NOW,
    "abuse.free_addresses": Effect.NOW,
    "abuse.people_plans": Effect.NOW,
    "abuse.jailbreak_rules": Effect.NOW,
    "abuse.exempt": Effect.NOW,
    "abuse.subjects": Effect.NOW,
    "context.truncation": Effect.NOW,
    "context.history_share": Effect.NOW,
    "context.keep_share": Effect.NOW,
    "context.tool_output_tokens": Effect.NOW,
    "context.titles": Effect.NOW,
    "context.summaries": Effect.NOW,
    "context.summarise_at_share": Effect.NOW,
    "context.summary_tokens": Effect.NOW,
    "context.memory": Effect.NOW,
    "context.memory_tokens": Effect.NOW,
    "context.retrieved_tokens": Effect.NOW,
    "context.memory_entries": Effect.NOW,
    "context.workers": Effect.PROCESS,
    "context.model": Effect.NOW,
    "context.prompt": Effect.NOW,
    # How many there may be is settled when the readers are made.
    "reading.processes": Effect.PROCESS,
    "reading.wall_s": Effect.NOW,
    "reading.cpu_s": Effect.NOW,
    "reading.memory_mib": Effect.NOW,
    "reading.file_mib": Effect.NOW,
    "reading.unpacked_mib": Effect.NOW,
    "reading.characters": Effect.NOW,
    "reading.pages": Effect.NOW,
    "reading.nice": Effect.NOW,
    "files.at_once": Effect.NOW,
    "files.chunk_tokens": Effect.NOW,
    "files.chunk_overlap_tokens": Effect.NOW,
    "files.small_file_tokens": Effect.NOW,
    "files.results": Effect.NOW,
    "files.wait_s": Effect.NOW,
    "files.search_s": Effect.NOW,
    "files.attempts": Effect.NOW,
    "files.inline_keep_s": Effect.NOW,
    "files.images": Effect.NOW,
    "files.image_mib": Effect.NOW,
    "files.image_megapixels": Effect.NOW,
    "files.index_mib": Effect.PROCESS,
    "files.embedding_nice": Effect.PROCESS,
    "database.url": Effect.PROCESS,
    "database.deadline_s": Effect.PROCESS,
    "database.start_wait_s": Effect.PROCESS,
    "database.concurrency": Effect.PROCESS,
    "database.durability": Effect.PROCESS,
    "retention.claims_days": Effect.PROCESS,
    "retention.events_days": Effect.PROCESS,
    "retention.responses_days": Effect.PROCESS,
    "retention.traces_days": Effect.PROCESS,
    "shutdown.drain_s": Effect.NOW,
    "shutdown.budget_s": Effect.NOW,
}
"""Of every key of the settings. It is true because of how each is read: a key that is read once,
when something is made, can't be `NOW`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A key whose value is not the one in force; values are left out, since some are secret.
    `needs` is None once it is in force."""

    key: str
    applied: bool
    needs: Effect | None


class LiveSettings:
    """`reread` makes the settings anew from where they came from at the start; `on_change` is told
    of every reload that changed something."""

    def __init__(
        self,
        settings: Settings,
        reread: Callable[[], Settings],
        on_change: Callable[[Settings], None] = lambda settings: None,
    ) -> None:
        self._current = settings
        self._of_engine = settings
        self._reread = reread
        self._on_change = on_change
        self._reloading = trio.Lock()

    @property
    def current(self) -> Settings:
        """Read it when it is needed, and keep no part of it."""
        return self._current

    def for_engine(self) -> Settings:
        """For who starts an engine host now: from here on that host's settings are in force."""
        self._of_engine = self._current
        return self._current

    async def reload(self, source: str) -> tuple[Change, ...]:
        """Read the settings again and apply what can be. `source` is who asked, for the log.

        Raises SettingsError, and then nothing has changed.
        """
        async with self._reloading:
            try:
                # Away from the event loop: the file may be on a disk that doesn't answer.
                new = await trio.to_thread.run_sync(self._reread, abandon_on_cancel=True)
                changes = self._take(new)
            except SettingsError as error:
                log.error("reload_refused", source=source, reason=str(error))
                raise
        log.info(
            "settings_reloaded",
            source=source,
            applied=[change.key for change in changes if change.applied],
            needs_engine_restart=[c.key for c in changes if c.needs is Effect.ENGINE],
            needs_process_restart=[c.key for c in changes if c.needs is Effect.PROCESS],
        )
        return changes

    def _take(self, new: Settings) -> tuple[Change, ...]:
        changes = tuple(self._changes(new))
        taken = [key for key, effect in EFFECTS.items() if effect is not Effect.PROCESS]
        # Each half is right by itself; what is kept of the old one may contradict the new one.
        merged = _overlaid(self._current, {key: value_of(new, key) for key in taken})
        check_settings(merged)
        self._current = merged
        if changes:
            self._on_change(merged)
        return changes

    def _changes(self, new: Settings) -> Iterator[Change]:
        for key, effect in EFFECTS.items():
            in_force = self._of_engine if effect is Effect.ENGINE else self._current
            if value_of(new, key) != value_of(in_force, key):
                applied = effect is Effect.NOW
                yield Change(key=key, applied=applied, needs=None if applied else effect)


def value_of(settings: Settings, key: str) -> Any:
    """The value at a dotted key, as EFFECTS and SettingsError name them."""
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _overlaid(settings: Settings, values: Mapping[str, Any]) -> Settings:
    top: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (sections.setdefault(section, {}) if section else top)[name] = value
    for section, fields in sections.items():
        top[section] = msgspec.structs.replace(getattr(settings, section), **fields)
    return msgspec.structs.replace(settings, **top)
