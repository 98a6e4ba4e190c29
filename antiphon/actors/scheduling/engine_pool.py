"""One pool put together: an engine driver and its scheduler under one supervisor, with all that
others need to use them and to look at them. It decides how they depend on each other, and no rule.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.breaker import Breaker, BreakerSpec, Verdict, verdict_on
from antiphon.actors.engines.driver import EngineDriver
from antiphon.actors.engines.messages import DriverMessage
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.scheduling.messages import SchedulerMessage
from antiphon.actors.scheduling.pool import CountPrompt, Pool
from antiphon.actors.scheduling.pool_forecast import PoolForecast
from antiphon.actors.scheduling.schedule import Policy, QueueBounds
from antiphon.actors.scheduling.scheduler import Scheduler, ScheduleView
from antiphon.actors.scheduling.tickets import Room
from antiphon.errors import ActorStopped, AskTimeout, MailboxFull
from antiphon.ports import ChatTokenizer, EngineLauncher, ModelCard, SamplingDefaults
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.supervision.spec import ChildSpec, Grace, Strategy, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.telemetry import Telemetry

REAP_S = 2.0
"""What a driver is given beyond its host's own grace, to kill it and to reap it."""
_LOAD_S = 10.0
"""What a driver is given to start beyond its own patience with the host."""
_DRIVER_MAILBOX = 4096
"""A Begin and an Abort for each slot, many times over: the scheduler never waits for the driver."""
_SCHEDULER_MAILBOX = 1024
"""Turns that may arrive while an engine is being restarted."""
_STEP_TOKENS = 128
_CIRCUIT = BreakerSpec(failures=5, reset_s=1.0, max_reset_s=5.0)
"""A probe waits for up to 15 s, so that an open circuit of 5 s adds little to a long outage, and an
engine that is back is found soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """What may change while the pool runs: the scheduler and the sessions ask for it when it
    matters, `silence_s` counts from the next start of a driver."""

    bounds: QueueBounds
    turn_deadline_s: float
    default_max_tokens: int
    silence_s: float
    scheduling: SchedulingSettings = SchedulingSettings()

    @property
    def policy(self) -> Policy:
        return Policy(bounds=self.bounds, scheduling=self.scheduling)


class EnginePool:
    """Wired, and not yet running: its `supervisor` is somebody's child at `path`."""

    def __init__(
        self,
        path: str,
        card: ModelCard,
        launcher: EngineLauncher,
        telemetry: Telemetry,
        limits: Callable[[], PoolLimits],
        *,
        tokenizer: ChatTokenizer,
        sampling_defaults: SamplingDefaults,
        start_timeout_s: float,
        stop_grace_s: float,
        service: ChildSpec | None = None,
        sends_messages: bool = False,
        count_prompt: CountPrompt | None = None,
        sees: Callable[[], bool | None] = lambda: False,
        step_tokens: int = _STEP_TOKENS,
        scheduler_mailbox: int = _SCHEDULER_MAILBOX,
        rng: random.Random | None = None,
    ) -> None:
        self._launcher = launcher
        self._telemetry = telemetry
        self._limits = limits
        self._start_timeout_s = start_timeout_s
        self._stop_grace_s = stop_grace_s
        self._driver: Address[DriverMessage] = Address(f"{path}/driver", capacity=_DRIVER_MAILBOX)
        self.scheduler: Address[SchedulerMessage] = Address(
            f"{path}/scheduler", capacity=scheduler_mailbox
        )
        self.status = EngineStatus(model=card.name, silence_s=limits().silence_s)
        self.view = ScheduleView()
        self.forecast = PoolForecast(
            self.status, lambda: self.view.schedule, telemetry, step_tokens=step_tokens
        )
        self.pool = Pool(
            card=card,
            scheduler=self.scheduler.ref,
            breaker=Breaker(f"engine {card.name}", _CIRCUIT, judge=self._judge),
            status=self.status,
            tokenizer=tokenizer,
            sampling_defaults=sampling_defaults,
            default_max_tokens=lambda: limits().default_max_tokens,
            sends_messages=sends_messages,
            count_prompt=count_prompt,
            sees=sees,
            predict=self.forecast.predict,
        )
        self.supervisor = self._supervisor(service, rng)

    def room(self) -> Room:
        schedule = self.view.schedule
        return schedule.room() if schedule is not None and self.status.ready else Room()

    def _supervisor(self, service: ChildSpec | None, rng: random.Random | None) -> Supervisor:
        """Driver before scheduler, whose leases mean nothing once its driver has been restarted;
        and before both the service that the driver's engine lives in, if it has one."""
        return Supervisor(
            SupervisorSpec(strategy=Strategy.REST_FOR_ONE, intensity=5, period_s=60.0),
            [
                *([] if service is None else [service]),
                actor_child(
                    "driver",
                    self._make_driver,
                    self._driver,
                    init_timeout_s=self.start_s,
                    # It waits for its host that long by itself, and then kills and reaps it.
                    shutdown=Grace(self._stop_grace_s + REAP_S),
                ),
                actor_child("scheduler", self._make_scheduler, self.scheduler),
            ],
            rng=rng,
        )

    @property
    def start_s(self) -> float:
        """The longest that a driver takes to become ready."""
        return self._start_timeout_s + _LOAD_S

    @property
    def restart_s(self) -> float:
        """The longest that a driver, the slowest child there is, takes to stop and to start."""
        return self._stop_grace_s + REAP_S + self.start_s

    def _make_driver(self) -> EngineDriver:
        self.status.host_starting(self._limits().silence_s)
        return EngineDriver(
            self._launcher,
            self.status,
            self.scheduler.ref,
            self._telemetry,
            start_timeout_s=self._start_timeout_s,
            stop_grace_s=self._stop_grace_s,
        )

    def _make_scheduler(self) -> Scheduler:
        return Scheduler(
            self._driver.ref,
            self.status,
            self.view,
            self.forecast,
            self._telemetry,
            policy=lambda: self._limits().policy,
            turn_deadline_s=lambda: self._limits().turn_deadline_s,
        )

    def _judge(self, error: Exception) -> Verdict:
        """What the failure of a Submit says about the engine. The breaker is there to save turns a
        long wait for nothing: what is refused at once needs none, and to wait while one lost host
        is replaced is not for nothing."""
        match error:
            case ActorStopped() | MailboxFull():
                return Verdict.NOTHING
            case AskTimeout() if self.status.is_restarting:
                return Verdict.NOTHING
            case _:
                return verdict_on(error)
