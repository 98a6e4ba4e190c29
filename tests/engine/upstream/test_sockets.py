"""The same on real sockets: what httpx2 and the kernel add to it."""

import gc
import socket
from contextlib import asynccontextmanager

import pytest
import trio

from antiphon.actors.breaker import Breaker
from antiphon.engine.upstream import Upstream
from antiphon.engine.upstream.exchange import Exchange, connector
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.events import Abort, Admit, EndReason, Message, Released, Sampling, SlotText, Step
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.replicas import ScriptedReplica, data_line, serve_replica
from antiphon.upstream_settings import UpstreamSettings

SOON = 5.0


def an_admit(number: int, max_tokens: int = 16) -> Admit:
    return Admit(
        request=EngineRequest(number),
        slot=SlotIndex(number),
        prompt=[0],
        max_tokens=max_tokens,
        sampling=Sampling(seed=number),
        stop=[],
        messages=(Message(role="user", content=f"conversation {number}"),),
    )


@asynccontextmanager
async def linked(*replicas: ScriptedReplica, **settings):
    """A link to servers on this machine."""
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            urls = tuple([await serve_replica(replica, nursery) for replica in replicas])
            given = UpstreamSettings(
                **{"urls": urls, "model": "m", "slots": 64, "probe_s": 0.1, **settings}
            )
            upstream = Upstream(lambda: given, Breaker)
            stopping = trio.Event()
            nursery.start_soon(upstream.run, lambda: None, stopping)
            await trio.lowlevel.checkpoint()
            link = await upstream.launch()
            await link.receive()
            while len(upstream.fleet.up) < len(replicas):
                await upstream.fleet.news()
            yield link
            stopping.set()
            await link._ended.wait()
            nursery.cancel_scope.cancel()


async def ask(url: str) -> bytes:
    """The body of one answer. Raises Trouble."""
    async with Exchange(connector(), url, {}, connect_s=2.0, body={}) as exchange:
        await exchange.open(SOON)
        return await exchange.read(1_000, SOON)


async def read(link, *, until: int):
    """Texts by request, and how each ended, up to so many Released."""
    texts: dict[int, str] = {}
    ends: dict[int, EndReason] = {}
    while len(ends) < until:
        match await link.receive():
            case Step(texts=news):
                for text in news:
                    assert isinstance(text, SlotText)
                    texts[text.request] = texts.get(text.request, "") + text.text
            case Released(request=request, reason=reason):
                ends[request] = reason
    return texts, ends


async def test_many_answers_at_once_stay_apart():
    replica = ScriptedReplica(words=lambda body: [f"<{body['seed']}>"] * 3)
    async with linked(replica) as link:
        for number in range(32):
            await link.send(an_admit(number))
        texts, ends = await read(link, until=32)

    assert texts == {number: f"<{number}>" * 3 for number in range(32)}
    assert set(ends.values()) == {EndReason.STOP}


async def test_an_abort_is_seen_by_the_server_as_a_closed_socket():
    replica = ScriptedReplica(words=lambda body: ["x"] * 10_000, step_s=0.02)
    async with linked(replica) as link:
        for number in range(8):
            await link.send(an_admit(number, max_tokens=9_999))
        await replica.until(lambda replica: len(replica.bodies) == 8)
        for number in range(8):
            await link.send(Abort(request=EngineRequest(number), slot=SlotIndex(number)))
        _, ends = await read(link, until=8)
        await replica.until(lambda replica: replica.closed_early >= 8)

    assert set(ends.values()) == {EndReason.CANCELLED}
    gc.collect()  # a generator that was only dropped would warn, and warnings are errors


async def test_what_a_killed_server_had_not_begun_is_done_by_the_other_one():
    slow = ScriptedReplica(first_s=30.0)
    other = ScriptedReplica()
    async with linked(slow, other) as link:
        for number in range(12):
            await link.send(an_admit(number))
        await slow.until(lambda replica: len(replica.bodies) > 0)
        slow.kill()
        texts, ends = await read(link, until=12)

    assert set(ends.values()) == {EndReason.STOP}
    assert set(texts.values()) == {"one two three four"}
    assert len(other.bodies) == 12


async def test_a_stream_that_breaks_off_within_a_chunk_is_lost():
    replica = ScriptedReplica(script=[data_line({"choices": [{"delta": {"content": "a"}}]}), b"da"])
    async with linked(replica) as link:
        await link.send(an_admit(1))
        texts, ends = await read(link, until=1)

    assert (texts, ends) == ({1: "a"}, {1: EndReason.FAILED})


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (b"", Kind.LOST),
        (b"SSH-2.0-OpenSSH_9.6\r\n", Kind.LOST),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", Kind.LOST),
        (b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", Kind.BUSY),
        (b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", Kind.BROKEN),
    ],
)
async def test_what_a_server_may_answer_instead(reply, kind):
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        await stream.send_all(reply)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(Trouble) as caught:
            await ask(f"http://127.0.0.1:{port}/v1/x")
        nursery.cancel_scope.cancel()

    assert caught.value.kind is kind


async def test_nobody_there_is_unreachable():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(Trouble) as caught:
            await ask(f"http://127.0.0.1:{taken.getsockname()[1]}/")

    assert caught.value.kind is Kind.UNREACHABLE


async def test_a_server_without_tls_is_unreachable_by_https():
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(Trouble) as caught:
            await ask(f"https://127.0.0.1:{port}/")
        nursery.cancel_scope.cancel()

    assert caught.value.kind is Kind.UNREACHABLE
