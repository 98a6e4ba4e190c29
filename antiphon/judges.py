"""Who judges texts with these settings, and what they are told: the one module that brings
settings, judge processes and judges elsewhere together."""

import os
import sys
from collections.abc import Callable, Sequence

import structlog
import trio

from antiphon import moderating
from antiphon.actors.moderation.reloading import check_edition, first_edition
from antiphon.actors.moderation.remote import Remote
from antiphon.actors.moderation.service import ModerationService
from antiphon.errors import JudgeLost, JudgeStartFailed, SettingsError
from antiphon.judge.config import JudgeConfig, encode_config
from antiphon.judge.wire import encode_command, frame_decoder
from antiphon.judging import HaltJudge, JudgeCommand, JudgeFrame
from antiphon.ports import Chat
from antiphon.processes.link import Contract, ProcessLink, launch
from antiphon.settings import Settings
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry

log = structlog.get_logger(__name__)

JudgeProcess = ProcessLink[JudgeCommand, JudgeFrame]
"""One running judge process: a JudgeLink. Raises JudgeLost."""

_MODULE = "antiphon.judge.process"
_ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("OV_NUM_THREADS", "RAYON_NUM_THREADS"),
    ),
    "1",
)
"""More would be taken from the engine's cores, for scores that take a millisecond."""

CONTRACT: Contract[JudgeCommand, JudgeFrame] = Contract(
    child="judge",
    stderr_event="judge_stderr",
    encode=encode_command,
    decoder=frame_decoder,
    halt=HaltJudge(),
    lost=JudgeLost,
)


class JudgeLauncher:
    """Starts judge processes, each with the settings of that moment. `module` is what the child
    runs."""

    def __init__(self, settings: Callable[[], Settings], *, module: str = _MODULE) -> None:
        self._settings = settings
        self._module = module

    async def launch(self) -> JudgeProcess:
        """Start a judge process; it reports JudgeReady as its first frame. Raises
        JudgeStartFailed."""
        await trio.lowlevel.checkpoint()
        config = encode_config(judge_config(self._settings()))
        try:
            link = launch(CONTRACT, self._module, config, _ONE_THREAD)
        except OSError as error:
            problem = f"cannot start {sys.executable}: {error.strerror}"
            raise JudgeStartFailed(problem) from error
        log.info("judge_process_started", judge_pid=link.pid)
        return link


def judge_config(settings: Settings) -> JudgeConfig:
    """What a judge process is told."""
    return JudgeConfig(log_level=settings.log_level, faults=settings.faults)


def make_moderation(
    settings: Callable[[], Settings],
    store: StoreAccess,
    telemetry: Telemetry,
    *,
    chat: Callable[[], Chat],
    served: Callable[[], Sequence[str]],
    now_ms: Callable[[], int],
    launcher: moderating.JudgeLauncher | None = None,
) -> ModerationService | None:
    """What stands at `root/moderation`, None where the policy is off. `launcher` takes the place of
    the one that the settings would give. Raises RulesError when the rules can't be used, and
    SettingsError."""
    policy = settings().policy
    if not policy.enabled:
        return None
    remote = _upstream(settings)
    edition = first_edition(policy.rules)
    check_edition(edition, served(), has_remote=remote is not None)
    return ModerationService(
        "root/moderation",
        edition,
        launcher or JudgeLauncher(settings),
        lambda: settings().policy,
        store,
        telemetry,
        chat=chat,
        served=served,
        now_ms=now_ms,
        remote=remote,
    )


def _upstream(settings: Callable[[], Settings]) -> Remote | None:
    """The `/v1/moderations` elsewhere that the settings name. Raises SettingsError when the key
    that it needs isn't there."""
    policy = settings().policy
    if policy.upstream_url is None:
        return None
    key = None
    if policy.upstream_key_env is not None:
        # A setting says its name; what it holds is in no file, and read but once.
        key = os.environ.get(policy.upstream_key_env)
        if not key:
            problem = f"the environment has no variable {policy.upstream_key_env}"
            raise SettingsError("policy.upstream_key_env", problem)
    return Remote(policy.upstream_url, key, lambda: settings().policy.upstream_model)
