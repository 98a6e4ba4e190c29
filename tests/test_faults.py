"""Fault plans: what they say, what they do, and that the table of sites is true."""

import ast
import signal
import subprocess
import sys
import timeit
from collections import Counter
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from antiphon import faults
from antiphon.engine.models import PreparedModel
from antiphon.errors import InjectedFault, SettingsError
from antiphon.fault_plan import Action, Fault, FaultPlan, Site
from antiphon.hosts import host_config
from antiphon.ids import ModelName
from antiphon.ports import SamplingDefaults
from antiphon.settings import load_settings

PACKAGE = Path(faults.__file__).parent
IN_HOSTS = {
    *("engine/host.py", "engine/runtime.py", "engine/channel.py", "engine_trt/host.py"),
    *("judge/process.py", "judge/runtime.py", "documents/process.py"),
    *("documents/embedder_process.py", "documents/embedder_runtime.py"),
}
"""What runs in a process of its own, which may be blocked."""


def calls() -> list[tuple[str, str, Site]]:
    """Every call of a site in the source: file, function, site."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="faults"), attr=function),
                    args=[ast.Attribute(value=ast.Name(id="Site"), attr=name), *_],
                ):
                    found.append((str(file.relative_to(PACKAGE)), function, Site[name]))
    return found


def strikes_of(plan: FaultPlan, site: Site, passes: int) -> list[int]:
    """The passes at which it struck, from 1."""
    struck = []
    with faults.injected(plan):
        for number in range(1, passes + 1):
            try:
                faults.maybe(site)
            except InjectedFault:
                struck.append(number)
    return struck


def test_every_site_of_the_table_is_somewhere_in_the_source():
    assert {site for _, _, site in calls()} == set(Site)


def test_every_site_is_called_by_what_can_do_its_actions():
    for file, function, site in calls():
        is_own = Action.STRIKE in site.actions
        assert (function == "strikes") == is_own, (file, site)
        if function == "maybe" and Action.SLOW in site.actions:
            assert file in IN_HOSTS, f"{site} would block every task"
        if function == "pause":
            assert file not in IN_HOSTS, site


def test_names_of_sites_are_unique_and_begin_with_their_room():
    assert max(Counter(site.label for site in Site).values()) == 1
    for site in Site:
        assert site.name.lower().startswith(site.label.partition(".")[0])
        assert site.place


def test_without_a_plan_nothing_happens():
    for site in Site:
        faults.maybe(site)
        assert not faults.strikes(site)


def test_without_a_plan_a_pass_costs_next_to_nothing():
    def passes() -> None:
        for _ in range(10_000):
            faults.maybe(Site.HOST_STEP)

    # About 70 ns; the bound leaves room for machines that are slow or busy.
    assert min(timeit.repeat(passes, number=1, repeat=20)) / 10_000 < 500e-9


def test_a_fault_at_the_nth_pass_strikes_then_and_never_again():
    plan = FaultPlan((Fault(Site.HOST_STEP, nth=3),))

    assert strikes_of(plan, Site.HOST_STEP, 10) == [3]


def test_a_probability_is_about_how_often_it_strikes():
    plan = FaultPlan((Fault(Site.HOST_STEP, probability=0.25),), seed=1)

    assert 200 < len(strikes_of(plan, Site.HOST_STEP, 1000)) < 300


def test_a_plan_strikes_at_the_same_passes_each_time_and_a_seed_changes_them():
    fault = Fault(Site.HOST_STEP, probability=0.5)
    first, again, other = (
        strikes_of(FaultPlan((fault,), seed), Site.HOST_STEP, 50) for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_passes_of_one_site_do_not_move_the_dice_of_another():
    step = Fault(Site.HOST_STEP, probability=0.5)
    alone = strikes_of(FaultPlan((step,)), Site.HOST_STEP, 20)

    with faults.injected(FaultPlan((Fault(Site.HOST_ADMIT_REFUSED), step))):
        struck = []
        for number in range(1, 21):
            faults.strikes(Site.HOST_ADMIT_REFUSED)
            try:
                faults.maybe(Site.HOST_STEP)
            except InjectedFault:
                struck.append(number)

    assert struck == alone


def test_a_drawn_plan_has_each_site_on_or_off_for_the_whole_run():
    on = Counter(fault.site for seed in range(400) for fault in FaultPlan.drawn(seed).faults)

    assert set(on) == set(Site)
    assert all(50 < count < 150 for count in on.values())
    assert FaultPlan.drawn(7) == FaultPlan.drawn(7)
    assert all(fault.probability == 0.25 for fault in FaultPlan.drawn(7).faults)
    assert all(fault.does is not Action.KILL for fault in FaultPlan.drawn(7).faults)


def test_what_is_lifted_strikes_no_more():
    with faults.injected(FaultPlan((Fault(Site.HOST_STEP, probability=1),))) as injector:
        with pytest.raises(InjectedFault, match=r"host\.step"):
            faults.maybe(Site.HOST_STEP)
        injector.disarm()
        faults.maybe(Site.HOST_STEP)
    faults.maybe(Site.HOST_STEP)

    assert injector.struck == {Site.HOST_STEP: 1}


async def test_a_slow_site_takes_its_time_on_the_clock_of_trio(autojump_clock):
    plan = FaultPlan((Fault(Site.DRIVER_FRAME, Action.SLOW, nth=1, pause_s=90),))
    with faults.injected(plan):
        await faults.pause(Site.DRIVER_FRAME)
        await faults.pause(Site.DRIVER_FRAME)

    assert trio.current_time() == 90


async def test_a_path_narrows_a_site_that_every_actor_has():
    plan = FaultPlan((Fault(Site.ACTOR_HANDLE, probability=1, at="root/*/driver"),))
    with faults.injected(plan):
        await faults.pause(Site.ACTOR_HANDLE, "root/pool/scheduler")
        with pytest.raises(InjectedFault):
            await faults.pause(Site.ACTOR_HANDLE, "root/pool/driver")


def test_a_kill_ends_the_process_at_once():
    program = (
        "from antiphon import faults\n"
        "with faults.from_setting('host.step=kill#2'):\n"
        "    for step in range(3):\n"
        "        print(step, flush=True)\n"
        "        faults.maybe(faults.Site.HOST_STEP)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == -signal.SIGKILL
    assert "".join(line for line in done.stdout.splitlines() if line.isdecimal()) == "01"


def test_a_plan_reads_back_from_its_own_text():
    text = "seed=7 host.step=kill#3 driver.frame=slow:0.5@0.01 actor.handle[root/*/driver]@0.1"
    plan = FaultPlan.parse(text)

    assert plan.faults == (
        Fault(Site.HOST_STEP, Action.KILL, nth=3),
        Fault(Site.DRIVER_FRAME, Action.SLOW, probability=0.01, pause_s=0.5),
        Fault(Site.ACTOR_HANDLE, probability=0.1, at="root/*/driver"),
    )
    assert str(FaultPlan.parse(str(plan))) == str(plan)
    drawn = FaultPlan.parse("seed=7 random@0.001")
    assert {fault.probability for fault in drawn.faults} == {0.001}
    assert len(drawn.faults) == len(FaultPlan.drawn(7).faults)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("host.stap", "no such site"),
        ("host.step=strike", "host.step can raise, slow, kill"),
        ("wire.write.cut=raise", "wire.write.cut can strike"),
        ("host.step=explode", "explode"),
        ("host.step@1.5", "from 0 to 1"),
        ("host.step#0", "from 1"),
        ("host.step@0.5#2", "must be"),
        ("host.step seed=7", "must be"),
        ("host.step@0.0.1", "0.0.1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_with_the_word(text, problem):
    with pytest.raises(SettingsError, match=problem) as refusal:
        FaultPlan.parse(text)

    assert refusal.value.key == "faults"


def test_a_plan_at_work_is_announced_and_so_is_each_fault():
    with (
        capture_logs() as lines,
        faults.from_setting("seed=3 host.step#1"),
        pytest.raises(InjectedFault),
    ):
        faults.maybe(Site.HOST_STEP)

    assert [line["event"] for line in lines] == ["faults_active", "fault_injected"]
    assert lines[0]["plan"] == "seed=3 host.step=raise#1"
    assert lines[0]["log_level"] == "warning"


def test_without_a_setting_nothing_is_announced():
    with capture_logs() as lines, faults.from_setting(None):
        faults.maybe(Site.HOST_STEP)

    assert lines == []


def test_a_server_with_a_senseless_plan_does_not_start():
    with pytest.raises(SettingsError, match="no such site"):
        load_settings(None, {"ANTIPHON_FAULTS": "host.stap"})


def test_a_host_is_given_the_plan_of_its_server():
    settings = load_settings(None, {"ANTIPHON_FAULTS": "host.step#3"})
    model = PreparedModel(
        name=ModelName("m"),
        folder=Path("/m"),
        source="m",
        window=64,
        stop_tokens=(0,),
        special_tokens=(0,),
        sampling=SamplingDefaults(),
        created=0,
    )

    assert host_config(settings, model).faults == "host.step#3"
