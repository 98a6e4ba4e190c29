"""One verification: an engine is started, checked, measured and ended."""

import random
from collections.abc import Sequence

import structlog
import trio

from antiphon.errors import HostLost, HostProtocolError, HostStartFailed
from antiphon.events import Fault, Ready, Sampling
from antiphon.ids import EngineRequest
from antiphon.ports import ChatTokenizer, EngineLauncher, EngineLink
from antiphon.verifying.checks import CHECKS, Broken, Check, Talk
from antiphon.verifying.client import Client
from antiphon.verifying.report import Figures, Finding, Report, make_report

log = structlog.get_logger(__name__)

_CHECK_S = 120.0
"""No check takes longer, on an engine that works."""
_END_S = 10.0
_TOKENS = 64
_ABORTS = 20


async def verify(
    launcher: EngineLauncher, tokenizer: ChatTokenizer, *, model: str, start_timeout_s: float
) -> Report:
    """Raises HostStartFailed; all else is in the report."""
    link = await launcher.launch()
    try:
        ready = await _ready(link, start_timeout_s)
        client = Client(link, ready.capabilities)
        talk = Talk(client, tokenizer, random.Random(1))
        findings: list[Finding] = []
        figures = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, client)
            for check, is_for in CHECKS.items():
                if not is_for(client.capabilities):
                    findings.append(Finding(check=_name(check), skipped=True))
                elif client.lost is None:
                    findings.append(await _checked(check, talk))
            if client.lost is None and all(finding.problem is None for finding in findings):
                figures = await _measured(talk)
            nursery.cancel_scope.cancel()
        findings.append(_books(client))
    except BaseException:
        link.kill()
        raise
    finally:
        with trio.move_on_after(2 * _END_S, shield=True):
            await link.aclose(grace_s=_END_S)
    return make_report(model, ready.capabilities, findings, figures)


async def _ready(link: EngineLink, timeout_s: float) -> Ready:
    with trio.move_on_after(timeout_s):
        match await link.receive():
            case Ready() as ready:
                return ready
            case Fault() as fault:
                raise HostStartFailed(f"{fault.code}: {fault.detail}")
            case other:
                raise HostStartFailed(f"{type(other).__name__} before Ready")
    raise HostStartFailed(f"not ready after {timeout_s:g} s")


async def _read(client: Client) -> None:
    try:
        await client.read()
    except HostProtocolError as error:
        client.violations.append(str(error))
        client.lost = str(error)
        client.ended.set()


async def _checked(check: Check, talk: Talk) -> Finding:
    """An engine that is lost in the middle ends the check at once."""
    problem: str | None = f"no end after {_CHECK_S:g} s"
    client = talk.client

    async def until_lost(scope: trio.CancelScope) -> None:
        await client.ended.wait()
        scope.cancel()

    with trio.move_on_after(_CHECK_S) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_lost, scope)
            problem = await _problem(check, talk)
            nursery.cancel_scope.cancel()
    if client.lost is not None:
        said = "; ".join(fault.detail for fault in client.faults)
        problem = f"the engine is lost: {client.lost} {said}".strip()
    log.info("engine_checked", check=_name(check), passed=problem is None)
    return Finding(check=_name(check), problem=problem)


async def _problem(check: Check, talk: Talk) -> str | None:
    problems: list[str] = []
    try:
        await check(talk)
    except* (Broken, HostLost) as broken:
        problems += [str(error) for error in broken.exceptions]
    return "; ".join(problems) or None


def _books(client: Client) -> Finding:
    wrong = [*client.violations, *(fault.detail for fault in client.faults)]
    return Finding(check="the books are right", problem="; ".join(wrong) or None)


async def _measured(talk: Talk) -> Figures:
    """All slots at once, then aborts one after another in their midst."""
    client = talk.client
    long = Sampling(temperature=0.0, seed=1, ignore_eos=True)

    async def begun(number: int) -> EngineRequest:
        return await talk.begin(f"{number}. Tell a story.", max_tokens=_TOKENS, sampling=long)

    began = trio.current_time()
    requests = [await begun(number) for number in range(client.capabilities.slots)]
    answers = [await client.over(request) for request in requests]
    seconds = trio.current_time() - began
    aborts: list[float] = []
    for number in range(_ABORTS):
        request = await begun(number)
        await client.heard(request)
        at = trio.current_time()
        await client.abort(request)
        aborts.append((await client.over(request)).released_at - at)
    firsts = [answer.first_at - answer.admitted_at for answer in answers if answer.first_at]
    return Figures(
        tokens_per_s=sum(answer.tokens for answer in answers) / seconds,
        first_token_p50_s=_percentile(firsts, 0.5),
        first_token_p99_s=_percentile(firsts, 0.99),
        abort_p50_s=_percentile(aborts, 0.5),
        abort_p99_s=_percentile(aborts, 0.99),
    )


def _percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def _name(check: Check) -> str:
    return getattr(check, "__name__", "?").replace("_", " ")
