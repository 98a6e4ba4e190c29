"""One verification: an engine is started, checked, measured and ended."""

import random
from collections.abc import Collection, Sequence

import structlog
import trio

from antiphon.errors import HostLost, HostProtocolError, HostStartFailed
from antiphon.events import Fault, Ready
from antiphon.ids import EngineRequest
from antiphon.ports import EngineLink
from antiphon.progress import Told, telling, untold
from antiphon.verifying.checks import CHECKS, Check, name_of
from antiphon.verifying.client import Client
from antiphon.verifying.report import Figures, Finding, Report, make_report
from antiphon.verifying.subjects import Subject
from antiphon.verifying.talk import SIZES, Broken, Sizes, Talk

log = structlog.get_logger(__name__)

_CHECK_S = 120.0
"""No check takes longer, on an engine that works; more where it is made larger."""
BOOKS = "the books are right"
_END_S = 10.0
_TOKENS = 64
_LIKE_CHECKS = 4
_ABORTS = 20


async def verify(
    subject: Subject,
    *,
    start_timeout_s: float,
    sizes: Sizes = SIZES,
    checks: Collection[Check] = CHECKS,
    measured: bool = True,
    told: Told = untold,
) -> Report:
    """Some checks, or all, and how fast it is. Raises HostStartFailed; all else is in the
    report."""
    link = await subject.launcher.launch()
    try:
        ready = await _ready(link, start_timeout_s)
        client = Client(link, ready.capabilities)
        talk = Talk(client, subject.tokenizer, random.Random(1), sizes)
        figures = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, client)
            # The measurements take about as long as a few checks.
            steps = len(checks) + (_LIKE_CHECKS if measured else 0)
            findings = [await _finding(check, talk) for check in telling(checks, steps, told)]
            is_sound = not any(finding.problem for finding in findings)
            if measured and client.lost is None and is_sound:
                figures = await _measured(talk)
            told(1.0)
            nursery.cancel_scope.cancel()
        findings.append(_books(client))
    except BaseException:
        link.kill()
        raise
    finally:
        with trio.move_on_after(2 * _END_S, shield=True):
            await link.aclose(grace_s=_END_S)
    return make_report(subject.model, ready.capabilities, findings, figures)


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


async def _finding(check: Check, talk: Talk) -> Finding:
    if not CHECKS[check](talk.capabilities):
        return Finding(check=name_of(check), skipped=True)
    if talk.client.lost is not None:
        return Finding(check=name_of(check), problem="not tried: the engine was lost before")
    return await _checked(check, talk)


async def _checked(check: Check, talk: Talk) -> Finding:
    """An engine that is lost in the middle ends the check at once."""
    patience_s = _CHECK_S * max(1.0, talk.sizes.storm / SIZES.storm)
    problem: str | None = f"no end after {patience_s:g} s"
    client = talk.client

    async def until_lost(scope: trio.CancelScope) -> None:
        await client.ended.wait()
        scope.cancel()

    began = trio.current_time()
    with trio.move_on_after(patience_s) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_lost, scope)
            problem = await _problem(check, talk)
            nursery.cancel_scope.cancel()
    if client.lost is not None:
        said = "; ".join(fault.detail for fault in client.faults)
        problem = f"the engine is lost: {client.lost} {said}".strip()
    log.info("engine_checked", check=name_of(check), passed=problem is None)
    took_s = round(trio.current_time() - began, 3)
    return Finding(check=name_of(check), problem=problem, took_s=took_s)


async def _problem(check: Check, talk: Talk) -> str | None:
    problems: list[str] = []
    try:
        await check(talk)
    except* (Broken, HostLost) as broken:
        problems += [str(error) for error in broken.exceptions]
    return "; ".join(problems) or None


def _books(client: Client) -> Finding:
    wrong = [*client.violations, *(fault.detail for fault in client.faults)]
    return Finding(check=BOOKS, problem="; ".join(wrong) or None)


async def _measured(talk: Talk) -> Figures:
    """All slots at once, then aborts one after another in their midst."""
    client = talk.client
    long = talk.endless()

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
