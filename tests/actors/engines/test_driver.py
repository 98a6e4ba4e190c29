"""A driver between a scripted engine and those it tells: who hears what of a generation that is
paused, resumed, aborted or lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest
import trio
import trio.testing

from antiphon.actors.actor import ActorContext, actor_child
from antiphon.actors.address import Address
from antiphon.actors.engines.driver import EngineDriver
from antiphon.actors.engines.messages import (
    Begin,
    DriverMessage,
    Engine,
    EngineNews,
    FirstToken,
    GenerationLost,
    GenerationNews,
    PauseSlot,
    ResumeSlot,
    SlotReleased,
    TakeOver,
)
from antiphon.actors.engines.status import EngineStatus
from antiphon.errors import HostLost
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    Pause,
    Released,
    Resume,
    Sampling,
    SlotText,
    Step,
)
from antiphon.ids import EngineRequest, ModelName, SlotIndex
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry

ONE, TWO = EngineRequest(1), EngineRequest(2)
A, B = SlotIndex(0), SlotIndex(1)
SILENCE_S = 20.0


@dataclass
class Ear:
    """An actor that keeps what it is told."""

    heard: list = field(default_factory=list)

    def start(self, me: ActorContext) -> None: ...

    def handle(self, message: object) -> None:
        self.heard.append(message)

    def of(self, kind: type) -> list:
        return [message for message in self.heard if isinstance(message, kind)]


@dataclass
class World:
    """A driver in a tree with its scheduler and one owner of all generations, both mere ears."""

    launcher: ScriptedLauncher
    status: EngineStatus
    driver: Address[DriverMessage]
    owner_address: Address[GenerationNews]
    tree: Tree
    owner: Ear
    scheduler: Ear

    @property
    def link(self) -> ScriptedLink:
        return self.launcher.link

    async def tell(self, *messages: DriverMessage) -> None:
        for message in messages:
            self.driver.ref.tell(message)
        await settle()

    async def begin(self, request: EngineRequest, slot: SlotIndex) -> None:
        owner = self.owner_address.ref
        await self.tell(Begin(host=self.status.hosts, admit=admit(request, slot), owner=owner))

    async def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.link.step()
        await settle()

    async def pause(self, request: EngineRequest, slot: SlotIndex) -> None:
        """Until its slot is free."""
        await self.tell(PauseSlot(request=request, slot=slot))
        await self.step()

    async def resume(self, request: EngineRequest, slot: SlotIndex) -> None:
        await self.tell(ResumeSlot(host=self.status.hosts, request=request, slot=slot))

    async def take_over(self) -> Engine:
        return await self.driver.ref.ask(lambda reply: TakeOver(reply=reply), deadline_s=60.0)

    @property
    def text(self) -> str:
        return "".join(text.text for text in self.owner.of(SlotText))

    @property
    def lost(self) -> list[GenerationLost]:
        return self.owner.of(GenerationLost)

    @property
    def released(self) -> list[Released]:
        return [news.released for news in self.scheduler.of(SlotReleased)]

    @property
    def reasons(self) -> list[EndReason]:
        return [released.reason for released in self.released]


def admit(request: EngineRequest, slot: SlotIndex) -> Admit:
    return Admit(
        request=request, slot=slot, prompt=[1] * 10, max_tokens=16, sampling=Sampling(), stop=[]
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def manual(**capabilities: int) -> ScriptedLink:
    """An engine that steps only when the test says so."""
    return ScriptedLink(capabilities=scripted_capabilities(**capabilities), step_s=None)


@asynccontextmanager
async def driving(launcher: ScriptedLauncher | None = None) -> AsyncIterator[World]:
    launcher = launcher or ScriptedLauncher(make=manual)
    status = EngineStatus(model=ModelName("m"), silence_s=SILENCE_S)
    driver: Address[DriverMessage] = Address("root/driver", capacity=64)
    scheduler_address: Address[EngineNews] = Address("root/scheduler", capacity=64)
    owner_address: Address[GenerationNews] = Address("root/owner", capacity=64)
    owner, scheduler = Ear(), Ear()

    def make() -> EngineDriver:
        status.host_starting(SILENCE_S)
        return EngineDriver(
            launcher,
            status,
            scheduler_address.ref,
            RecordingTelemetry(),
            start_timeout_s=10.0,
            stop_grace_s=1.0,
        )

    root = Supervisor(
        SupervisorSpec(),
        [
            actor_child("owner", lambda: owner, owner_address),
            actor_child("scheduler", lambda: scheduler, scheduler_address),
            actor_child("driver", make, driver),
        ],
    )
    async with trio.open_nursery() as nursery:
        tree = await Tree(root).begin(nursery)
        yield World(launcher, status, driver, owner_address, tree, owner, scheduler)
        await tree.end()


async def test_a_paused_generation_goes_on_in_another_slot_and_its_owner_sees_no_seam():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.step(2)

        await world.pause(ONE, A)
        await world.resume(ONE, B)
        await world.step(2)

        assert world.text == "one two three four"
        assert [text.tokens for text in world.owner.of(SlotText)] == [1, 2, 3, 4]
        assert world.lost == []
        assert [(released.reason, released.slot) for released in world.released] == [
            (EndReason.PAUSED, A),
            (EndReason.STOP, B),
        ]
        assert world.released[0].tokens == 2


async def test_the_first_token_is_told_once():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.begin(TWO, B)
        await world.pause(TWO, B)  # it had none yet

        await world.pause(ONE, A)
        await world.resume(ONE, A)
        await world.resume(TWO, B)
        await world.step(2)

        firsts = world.scheduler.of(FirstToken)
        assert [first.request for first in firsts] == [ONE, TWO]
        assert all(first.at <= trio.current_time() for first in firsts)


async def test_a_first_token_is_told_before_the_release_of_its_slot():
    async with driving(ScriptedLauncher(brief)) as world:
        await world.begin(ONE, A)
        await world.step()

        assert [type(news) for news in world.scheduler.heard] == [FirstToken, SlotReleased]


def brief() -> ScriptedLink:
    link = manual()
    link.answer = lambda _: ("word",)
    return link


async def test_a_pause_that_the_end_has_overtaken_is_an_end():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.step(4)

        await world.tell(PauseSlot(request=ONE, slot=A))

        assert world.reasons == [EndReason.STOP]
        assert world.lost == []
        assert world.status.paused == 0


async def test_what_is_paused_is_no_work_that_an_engine_could_be_silent_about(
    autojump_clock: trio.testing.MockClock,
):
    async with driving() as world:
        await world.begin(ONE, A)
        await world.step(1)
        await world.pause(ONE, A)

        await trio.sleep(2 * SILENCE_S)
        assert world.status.problem(trio.current_time()) is None
        assert world.status.paused == 1
        await world.resume(ONE, A)
        await world.step(3)

        assert world.text == "one two three four"
        assert len(world.launcher.links) == 1


async def test_an_abort_makes_the_host_forget_what_is_paused():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.pause(ONE, A)

        await world.tell(Abort(request=ONE, slot=B))
        await world.step()

        assert world.link.sent[-1] == Abort(request=ONE, slot=A)
        assert world.link.paused == ()
        assert world.reasons == [EndReason.PAUSED]
        assert world.status.paused == 0
        assert world.lost == []


async def test_an_abort_that_crosses_the_release_of_a_paused_slot_ends_it():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.tell(PauseSlot(request=ONE, slot=A))
        world.link.step()
        world.driver.ref.tell(Abort(request=ONE, slot=A))

        await settle()

        assert world.link.paused == ()
        assert world.status.paused == 0
        assert world.reasons == [EndReason.PAUSED]
        assert world.lost == []


async def test_an_abort_before_the_slot_is_free_is_told_as_one():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.tell(PauseSlot(request=ONE, slot=A), Abort(request=ONE, slot=A))

        await world.step()

        assert world.reasons == [EndReason.CANCELLED]
        assert world.lost == []


async def test_a_pause_of_what_is_unknown_or_aborted_is_not_passed_on():
    async with driving() as world:
        await world.begin(ONE, A)

        await world.tell(
            Abort(request=ONE, slot=A),
            PauseSlot(request=ONE, slot=A),
            PauseSlot(request=TWO, slot=B),
        )

        assert not any(isinstance(command, Pause) for command in world.link.sent)


async def test_an_engine_that_can_not_pause_is_not_asked_to():
    def make() -> ScriptedLink:
        capabilities = msgspec.structs.replace(scripted_capabilities(), pausable=False)
        return ScriptedLink(capabilities=capabilities, step_s=None)

    async with driving(ScriptedLauncher(make)) as world:
        await world.begin(ONE, A)
        await world.step(1)

        await world.tell(PauseSlot(request=ONE, slot=A))
        await world.step(3)

        assert not any(isinstance(command, Pause) for command in world.link.sent)
        assert world.reasons == [EndReason.STOP]


async def test_a_resume_of_something_unknown_gives_the_slot_back():
    async with driving() as world:
        await world.resume(ONE, B)

        assert world.released == [Released(slot=B, request=ONE, reason=EndReason.FAILED, tokens=0)]
        assert world.link.sent == []


async def test_a_resume_meant_for_a_former_host_is_dropped():
    async with driving() as world:
        await world.tell(ResumeSlot(host=0, request=ONE, slot=A))

        assert world.released == []
        assert world.link.sent == []


async def test_a_refused_resume_is_told_to_the_owner_and_frees_the_slot():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.pause(ONE, A)
        await world.resume(ONE, A)

        world.link.fail(ONE, code="capacity", detail="full")
        await settle()

        assert [lost.request for lost in world.lost] == [ONE]
        assert world.reasons == [EndReason.PAUSED, EndReason.CAPACITY]


async def test_a_host_that_has_lost_what_was_paused_fails_that_one_alone():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.begin(TWO, B)
        await world.pause(ONE, A)
        world.link.emit(Fault(code="lost", detail="gone", request=ONE))
        await world.link.send(Abort(request=ONE, slot=A))  # behind the driver's back

        await world.resume(ONE, A)
        await world.step(4)

        assert [(lost.request, type(lost.error)) for lost in world.lost] == [(ONE, HostLost)]
        assert world.reasons == [EndReason.PAUSED, EndReason.FAILED, EndReason.STOP]


@pytest.mark.parametrize("resumed", [False, True])
async def test_the_death_of_a_host_ends_what_was_paused_in_it(
    resumed: bool, autojump_clock: trio.testing.MockClock
):
    async with driving() as world:
        await world.begin(ONE, A)
        await world.begin(TWO, B)
        await world.step(1)
        await world.pause(ONE, A)
        if resumed:
            await world.resume(ONE, A)

        world.link.die()
        await trio.sleep(1)

        assert sorted(lost.request for lost in world.lost) == [ONE, TWO]
        assert all(isinstance(lost.error, HostLost) for lost in world.lost)
        assert world.status.paused == 0
        assert world.status.ready


async def test_a_driver_that_is_stopped_ends_what_was_paused():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.pause(ONE, A)

        await world.tree.end()

        assert [(lost.request, type(lost.error)) for lost in world.lost] == [(ONE, HostLost)]


async def test_a_new_scheduler_finds_nothing_paused():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.begin(TWO, B)
        await world.pause(ONE, A)
        engines: list[Engine] = []

        async def take_over() -> None:
            engines.append(await world.take_over())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_over)
            await settle()
            assert engines == []
            await world.step()

        assert [engine.host for engine in engines] == [1]
        assert world.link.paused == ()
        assert world.status.paused == 0
        assert world.reasons == [EndReason.PAUSED, EndReason.CANCELLED]


async def test_a_slot_that_is_being_paused_is_free_before_a_new_scheduler_gets_it():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.tell(PauseSlot(request=ONE, slot=A))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.take_over)
            await settle()
            await world.step()

        assert world.link.paused == ()
        assert world.status.paused == 0


async def test_steps_are_told_with_what_they_worked_on():
    async with driving() as world:
        observed: list[tuple[float, int, int]] = []
        world.status.observe_step = lambda step, decoding, now: observed.append(
            (step.duration_s, decoding, step.prefilled)
        )
        await world.begin(ONE, A)
        await world.step(1)
        await world.begin(TWO, B)
        await world.step(1)
        await world.pause(ONE, A)
        await world.resume(ONE, A)
        await world.step(1)

        assert observed == [
            (0.01, 0, 10),  # the prompt of the first
            (0.01, 1, 10),  # the prompt of the second
            (0.01, 1, 0),  # the step that frees the first
            (0.01, 1, 12),  # prompt and answer of the first
        ]


async def test_a_step_whose_duration_nobody_knows_is_not_told():
    async with driving() as world:
        observed: list[float] = []
        world.status.observe_step = lambda step, decoding, now: observed.append(now)

        world.link.emit(Step(number=1, duration_s=0.0, texts=[]))
        await settle()

        assert observed == []


async def test_a_resume_is_sent_with_the_slot_it_was_given():
    async with driving() as world:
        await world.begin(ONE, A)
        await world.pause(ONE, A)

        await world.resume(ONE, B)

        assert world.link.sent[-1] == Resume(request=ONE, slot=B)
        assert world.status.tokens == {ONE: 0}
