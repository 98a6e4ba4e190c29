"""Each fault site of a host forced on, one at a time, in a real host process under the real driver,
scheduler and sessions: each turn hears one end, and what comes after it is answered."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import trio
from structlog.testing import capture_logs

from antiphon import faults
from antiphon.engine.config import HostConfig
from antiphon.engine.process import HostLauncher, HostLink
from antiphon.fault_plan import Action, Fault, FaultPlan, Site
from antiphon.testing.history import TurnRecord, check_one_ending
from antiphon.testing.rig import Rig, running_rig
from antiphon.testing.vocabularies import END, byte_level_vocabulary
from antiphon.turn_events import TurnEnded

PATIENCE_S = 60.0
SILENCE_S = 2.5
"""More than a heartbeat, less than anybody's patience."""
PASSES = {Site.HOST_START: (1,), Site.WIRE_READ: (3,), Site.HOST_ADMIT_REFUSED: (2,)}
"""The first frame that is written is Ready; by the fourth one there is text."""
CASES = [
    Fault(site, action, nth=nth, pause_s=0.1)
    for site in Site
    if site.label.partition(".")[0] in {"host", "wire"}
    for action in site.actions
    for nth in PASSES.get(site, (1, 4) if site.label.startswith("wire.") else (2,))
]


@dataclass
class FaultyOnce:
    """Starts one host under the plan, the next one once `due`, and sound ones before and after."""

    config: HostConfig
    plan: str
    due: bool = False
    links: list[HostLink] = field(default_factory=list)

    async def launch(self) -> HostLink:
        plan, self.due = (self.plan if self.due else None), False
        config = msgspec.structs.replace(self.config, faults=plan)
        launcher = HostLauncher(config, module="antiphon.testing.spelling")
        self.links.append(await launcher.launch())
        return self.links[-1]


@pytest.fixture(name="launcher")
def _launcher(tmp_path: Path) -> FaultyOnce:
    byte_level_vocabulary().save(str(tmp_path / "tokenizer.json"))
    config = HostConfig(model_dir=tmp_path, slots=2, window=64, stop_token_ids=(END,))
    return FaultyOnce(config, "")


async def a_turn(rig: Rig, name: str, records: list[TurnRecord]) -> None:
    record = TurnRecord(name=name, choices=1, opened_at=trio.current_time())
    records.append(record)
    stream = await rig.open(name)
    while not record.terminal:
        record.add(await stream.next_event(), trio.current_time())


async def some_turns(rig: Rig, name: str) -> list[TurnRecord]:
    records: list[TurnRecord] = []
    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(a_turn, rig, f"{name}-{number}", records)
    return records


async def settled(rig: Rig) -> None:
    """Turns are over before the engine has come back, or has let go of the last slot."""
    await rig.directory.wait_idle()

    # The host is a process, so nothing in this one says when it has caught up.
    def is_settled() -> bool:
        return rig.view.schedule is not None and not rig.running and rig.status.ready

    while not is_settled():  # noqa: ASYNC110
        await trio.sleep(0.02)


def are_gone(links: list[HostLink]) -> bool:
    return all(link._process.returncode is not None for link in links)


@pytest.mark.parametrize("fault", CASES, ids=str)
async def test_turns_of_a_faulty_host_end_once_and_the_next_are_answered(fault, launcher):
    launcher.plan = f"seed=1 {fault}"
    # Nothing is retried at boot, so there the host that can't get ready must not be the first.
    launcher.due = begins_faulty = fault.nth != 1
    with trio.fail_after(PATIENCE_S), capture_logs() as lines:
        async with running_rig(launcher, silence_s=SILENCE_S) as rig:
            records = []
            if not begins_faulty:
                launcher.due = True
                launcher.links[0].kill()
                records += await some_turns(rig, "first")
            records += await some_turns(rig, "under the plan")
            await settled(rig)
            after = await some_turns(rig, "after")
            await settled(rig)

            assert rig.directory.open_turns == 0
            assert (rig.running, rig.waiting, rig.status.tokens) == (0, 0, {})
            assert are_gone(launcher.links[:-1])

    assert [broken for record in records for broken in check_one_ending(record)] == []
    assert [record.text.get(0) for record in after] == ["hello"] * 4
    assert all(isinstance(record.terminal[0], TurnEnded) for record in after)
    assert are_gone(launcher.links)
    refused = [record for record in records if record.outcome == "GenerationFailed"]
    assert len(refused) == (fault.site is Site.HOST_ADMIT_REFUSED)
    is_harmless = fault.does is Action.SLOW or fault.site is Site.HOST_ADMIT_REFUSED
    assert len(launcher.links) == 1 + (not begins_faulty) + (not is_harmless)
    if is_harmless:
        # Of the others the number of hosts tells; what they log last may come too late.
        struck = [line["site"] for line in lines if line["event"] == "fault_injected"]
        assert struck == [fault.site.label]


async def test_a_garbled_command_costs_one_host(launcher):
    with trio.fail_after(PATIENCE_S):
        async with running_rig(launcher) as rig:
            plan = FaultPlan((Fault(Site.LINK_SEND_GARBLED, nth=2),))
            with faults.injected(plan) as injector:
                records = await some_turns(rig, "garbled")
            await settled(rig)
            after = await some_turns(rig, "after")

            assert injector.struck == {Site.LINK_SEND_GARBLED: 1}
            assert [broken for record in records for broken in check_one_ending(record)] == []
            assert [record.outcome for record in after] == ["completed"] * 4
            assert len(launcher.links) == 2
