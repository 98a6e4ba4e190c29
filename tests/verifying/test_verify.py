"""The verification finds what is wrong with an engine, and nothing with one that is right."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.errors import HostStartFailed
from antiphon.events import Admit, EndReason, Released, SlotText, Step
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.rig import WordTokenizer
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.subjects import obedient_words
from antiphon.testing.trt import EchoTokenizer, TrtLauncher, trt_config
from antiphon.verifying.checks import CHECKS
from antiphon.verifying.client import Answer, Client
from antiphon.verifying.report import Report, lines_of
from antiphon.verifying.run import verify
from antiphon.verifying.subjects import Subject


async def report_on(tmp_path: Path, **switches: Any) -> Report:
    launcher = TrtLauncher(trt_config(tmp_path, slots=8), [{"kv_blocks": 65, **switches}])
    subject = Subject(model="echo", launcher=launcher, tokenizer=EchoTokenizer())
    return await verify(subject, start_timeout_s=20)


def problems(report: Report) -> dict[str, str]:
    return {finding.check: finding.problem for finding in report.findings if finding.problem}


async def test_an_engine_that_keeps_the_contract_passes_and_is_measured(tmp_path: Path):
    report = await report_on(tmp_path)

    assert problems(report) == {}
    assert report.figures is not None
    assert len(report.findings) == len(CHECKS) + 1


async def test_an_engine_that_leaks_slots_is_found_out(tmp_path: Path):
    report = await report_on(tmp_path, aborts_leak=1.0)

    assert not report.passed
    assert "the engine is lost" in problems(report)["a storm of aborts leaks no slot and no block"]
    assert report.figures is None
    broken = [line for line in lines_of(report) if line.startswith("BROKEN")]
    # The check of stop strings has cost it the first slot.
    assert "all slots work at once" in broken[0]


async def test_an_engine_that_does_not_start_is_an_error(tmp_path: Path):
    with pytest.raises(HostStartFailed, match="during initialization"):
        await report_on(tmp_path, construction_fails=True)


async def test_an_engine_without_schemas_is_not_asked_for_them_and_has_figures(autojump_clock):
    capabilities = msgspec.structs.replace(scripted_capabilities(), json_schema=False)
    launcher = ScriptedLauncher(
        lambda: ScriptedLink(capabilities=capabilities, answer=obedient_words)
    )

    subject = Subject(model="scripted", launcher=launcher, tokenizer=WordTokenizer())
    report = await verify(subject, start_timeout_s=5)

    assert problems(report) == {}
    assert [each.check for each in report.findings if each.skipped] == ["a schema holds"]
    assert report.figures is not None
    assert launcher.link.closed


async def test_an_engine_that_is_lost_is_asked_no_more(autojump_clock):
    def dying(admit: Admit) -> Iterator[str]:
        launcher.link.die("killed by signal 9")
        return iter(["x"])

    launcher = ScriptedLauncher(lambda: ScriptedLink(answer=dying))
    subject = Subject(model="scripted", launcher=launcher, tokenizer=WordTokenizer())
    report = await verify(subject, start_timeout_s=5)

    first, *others = [each.problem or "" for each in report.findings[:-1]]
    assert first.startswith("the engine is lost: killed by signal 9")
    assert set(others) == {"not tried: the engine was lost before"}
    assert not report.passed


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


def test_an_upstream_is_verified_like_any_other_engine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTIPHON_ENGINE_KIND", "upstream")
    monkeypatch.setenv("ANTIPHON_ENGINE_START_TIMEOUT_S", "1")
    monkeypatch.setenv("ANTIPHON_UPSTREAM_URLS", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("ANTIPHON_UPSTREAM_MODEL", "m")

    result = CliRunner().invoke(main, ["engines", "verify", "--storm", "5"])

    assert result.exit_code == 1
    assert "not ready after 1 s" in result.output
