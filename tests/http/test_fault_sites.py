"""Each fault site of the HTTP server forced on, one at a time: the turn that was held is given
back, the request is counted once, and the next one is answered."""

import pytest
import trio

from antiphon import faults
from antiphon.events import CancelCause
from antiphon.fault_plan import Action, Fault, FaultPlan, Site
from antiphon.settings import HttpSettings

SITES = [site for site in Site if site.label.startswith("http.")]
CASES = [
    Fault(site, action, nth=1, pause_s=0.05)
    for site in SITES
    for action in site.actions
    if action is not Action.KILL
]


@pytest.fixture
def http_settings():
    return HttpSettings(write_timeout_s=0.1, idle_timeout_s=0.2)


async def ask(server, chat) -> bytes:
    """A stream of one turn, as far as it comes."""
    client = await server.connect()
    try:
        await client.send_chat()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play_a_turn, chat)
            answer = await client.read_to_end()
            nursery.cancel_scope.cancel()
    finally:
        client.close()
    return answer


async def play_a_turn(chat) -> None:
    turn = await chat.next_turn()
    turn.say("Hel", "lo")
    turn.finish()


@pytest.mark.parametrize("fault", CASES, ids=str)
async def test_one_request_pays_and_the_next_is_answered(fault, server, chat, telemetry):
    with faults.injected(FaultPlan((fault,))) as injector:
        if fault.site is Site.HTTP_ACCEPT:
            # What waits already was let in before the plan; the next accept is the one to fail.
            assert (await ask(server, chat)).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        await ask(server, chat)
    assert injector.struck == {fault.site: 1}

    answer = await ask(server, chat)

    assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    await server.end()
    turns = [turn.cancels for turn in chat.turns]
    assert all(len(cancels) <= 1 for cancels in turns)
    requests = telemetry.named("http_request_finished")
    assert len(requests) == len(turns)
    assert turns[-1] == []
    assert len(telemetry.named("sse_opened")) == len(telemetry.named("sse_closed"))


@pytest.mark.parametrize(
    ("site", "cause"),
    [
        (Site.HTTP_WRITE_DROP, CancelCause.DISCONNECT),
        (Site.HTTP_WRITE_STALL, CancelCause.SLOW_READER),
        (Site.HTTP_STREAM, CancelCause.OWNER_LOST),
    ],
)
async def test_a_turn_whose_connection_is_lost_is_given_back_once(site, cause, server, chat):
    with faults.injected(FaultPlan((Fault(site, nth=1),))):
        client = await server.connect()
        await client.send_chat()
        turn = await chat.next_turn()
        turn.say("Hel")
        answer = await client.read_to_end()
        await turn.cancelled.wait()

    assert b"[DONE]" not in answer
    assert turn.cancels == [cause]


async def test_a_handler_that_breaks_before_its_answer_gives_the_turn_back(server, chat):
    with faults.injected(FaultPlan((Fault(Site.HTTP_TURN, nth=1),))):
        client = await server.connect()
        await client.send_chat(stream=False)
        turn = await chat.next_turn()
        head = await client.read_head()
        await turn.cancelled.wait()

    assert head.startswith(b"HTTP/1.1 500 ")
    assert turn.cancels == [CancelCause.OWNER_LOST]
