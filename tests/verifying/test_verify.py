"""The verification finds what is wrong with an engine, and nothing with one that is right."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import HostStartFailed
from antiphon.events import EndReason, Released, SlotText, Step
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.trt import EchoTokenizer, TrtLauncher, trt_config
from antiphon.verifying.client import Answer, Client
from antiphon.verifying.report import Report, lines_of
from antiphon.verifying.run import verify


async def report_on(tmp_path: Path, **switches: Any) -> Report:
    launcher = TrtLauncher(trt_config(tmp_path), [switches])
    return await verify(launcher, EchoTokenizer(), model="echo", start_timeout_s=20)


def problems(report: Report) -> dict[str, str]:
    return {finding.check: finding.problem for finding in report.findings if finding.problem}


async def test_an_engine_that_keeps_the_contract_passes_and_is_measured(tmp_path: Path):
    report = await report_on(tmp_path)

    # The stand-in repeats its prompt, whatever the schema.
    assert list(problems(report)) == ["a schema holds"]
    assert len(report.findings) == 10


async def test_an_engine_that_leaks_slots_is_found_out(tmp_path: Path):
    report = await report_on(tmp_path, aborts_leak=1.0)

    assert not report.passed
    assert "the engine is lost" in problems(report)["a storm of aborts leaks no slot"]
    assert report.figures is None
    broken = [line for line in lines_of(report) if line.startswith("BROKEN")]
    assert "a storm of aborts leaks no slot" in broken[0]


async def test_an_engine_that_does_not_start_is_an_error(tmp_path: Path):
    with pytest.raises(HostStartFailed, match="during initialization"):
        await report_on(tmp_path, construction_fails=True)


async def test_an_engine_without_schemas_is_not_asked_for_them_and_has_figures(autojump_clock):
    capabilities = scripted_capabilities(slots=4, window=512)
    launcher = ScriptedLauncher(lambda: ScriptedLink(capabilities=capabilities))

    report = await verify(launcher, EchoTokenizer(), model="scripted", start_timeout_s=5)

    # Four words whatever it is asked: no bound, no stop string, no schema.
    assert "a stop string never leaves" in problems(report)
    assert launcher.link.closed


async def test_the_books_notice_what_breaks_the_contract(autojump_clock):
    link = ScriptedLink()
    client = Client(link, scripted_capabilities())
    one, slot = EngineRequest(1), SlotIndex(0)
    client.answers[one] = Answer(slot, 0.0)
    text = SlotText(slot=slot, request=one, text="late", tokens=1)
    gone = Released(slot=slot, request=one, reason=EndReason.STOP, tokens=1)
    for frame in (
        Released(slot=SlotIndex(2), request=one, reason=EndReason.STOP, tokens=1),
        gone,
        Step(number=1, duration_s=0.1, texts=[text]),
        Step(number=3, duration_s=0.1, texts=[]),
    ):
        link.emit(frame)
    link.die()

    await client.read()

    assert client.violations == [
        "a second Ready",
        "request 1 released from another slot",
        "request 1 released twice",
        "text of request 1, which is over",
        "step 3 after 1",
    ]
    assert client.lost == "exited with status 1"
