"""The link as its driver sees it: frames in, frames out, whatever the replicas do."""

from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio

from antiphon.engine.upstream.link import UpstreamLink
from antiphon.errors import HostLost, HostProtocolError
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    Halt,
    HostFrame,
    Message,
    Ready,
    Released,
    Sampling,
    SlotText,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.replicas import (
    ScriptedCluster,
    ScriptedReplica,
    a_chunk,
    data_line,
    usage_chunk,
)

HELLO = (Message(role="user", content="hello"),)


def an_admit(number: int = 1, slot: int = 0, **fields: Any) -> Admit:
    return Admit(
        **{
            "request": EngineRequest(number),
            "slot": SlotIndex(slot),
            "prompt": [0] * 9,
            "max_tokens": 16,
            "sampling": Sampling(seed=1),
            "stop": [],
            "messages": HELLO,
            **fields,
        }
    )


def cluster(*replicas: ScriptedReplica) -> ScriptedCluster:
    return ScriptedCluster({f"r{number}": replica for number, replica in enumerate(replicas)})


@asynccontextmanager
async def linked(running, replicas: ScriptedCluster, **settings: Any):
    async with running(replicas, **settings) as upstream:
        link = await upstream.launch()
        ready = await link.receive()
        assert isinstance(ready, Ready)
        while len(upstream.fleet.up) < sum(not r.is_dead for r in replicas.replicas.values()):
            await upstream.fleet.news()
        yield link


async def frames_of(link: UpstreamLink, number: int = 1) -> list[HostFrame]:
    """What concerns one request, up to its Released."""
    frames: list[HostFrame] = []
    while True:
        match await link.receive():
            case Step(texts=texts):
                frames += [text for text in texts if text.request == number]
            case (Fault() | Released()) as frame if frame.request == number:
                frames.append(frame)
                if isinstance(frame, Released):
                    return frames


async def lost(link: UpstreamLink) -> None:
    """Return when the link says that it is lost."""
    try:
        while True:
            await link.receive()
    except HostLost:
        return


def text_of(frames: Sequence[HostFrame]) -> str:
    return "".join(frame.text for frame in frames if isinstance(frame, SlotText))


async def answer(link: UpstreamLink, number: int = 1, **fields: Any) -> list[HostFrame]:
    await link.send(an_admit(number, **fields))
    return await frames_of(link, number)


async def test_an_answer_ends_with_its_usage_and_its_slot_comes_back(running, autojump_clock):
    replicas = cluster(ScriptedReplica())
    async with linked(running, replicas) as link:
        frames = await answer(link)

    *_, last, released = frames
    assert text_of(frames) == "one two three four"
    assert (last.end, last.tokens, last.prompt_tokens) == (EndReason.STOP, 4, 11)
    assert released == Released(
        slot=SlotIndex(0), request=EngineRequest(1), reason=EndReason.STOP, tokens=4
    )
    assert replicas.open == 0


async def test_a_replica_is_asked_in_openais_words(running, autojump_clock):
    replica = ScriptedReplica()
    async with linked(running, cluster(replica), api_key="secret") as link:
        replica.key = "secret"
        await answer(
            link, stop=["x"], sampling=Sampling(temperature=0.5, seed=2**40 + 7), salt="tenant"
        )

    assert replica.bodies == [
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 16,
            "temperature": 0.5,
            "top_p": 1.0,
            "stop": ["x"],
            "seed": 7,
            "top_k": -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
        }
    ]


async def test_tokens_go_to_completions_where_that_is_wanted(running, autojump_clock):
    script = [
        data_line({"choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]}),
        data_line("[DONE]"),
    ]
    replica = ScriptedReplica(script=script)
    async with linked(
        running, cluster(replica), prompts="tokens", tokenizer="m", cache_salt=True
    ) as link:
        frames = await answer(link, salt="tenant")

    assert text_of(frames) == "hi"
    assert replica.bodies[0]["prompt"] == [0] * 9
    assert replica.bodies[0]["cache_salt"] == "tenant"
    assert "messages" not in replica.bodies[0]


async def test_an_abort_closes_the_socket_before_the_slot_comes_back(running, autojump_clock):
    replicas = cluster(ScriptedReplica(words=lambda _: ["x"] * 1_000))
    async with linked(running, replicas) as link:
        await link.send(an_admit(max_tokens=500))
        while not isinstance(step := await link.receive(), Step) or not step.texts:
            pass
        await link.send(Abort(request=EngineRequest(1), slot=SlotIndex(0)))
        *_, released = await frames_of(link)

        assert released.reason is EndReason.CANCELLED
        assert replicas.open == 0
        assert replicas.replicas["r0"].closed_early == 1
        assert text_of(await answer(link, 2)) == "x" * 16


@pytest.mark.parametrize("when", ["before it is sent", "in the queue there", "after the end"])
async def test_an_abort_is_legal_at_any_time(running, autojump_clock, when):
    replica = ScriptedReplica(first_s=10.0)
    async with linked(running, cluster(replica)) as link:
        await link.send(an_admit())
        abort = Abort(request=EngineRequest(1), slot=SlotIndex(0))
        match when:
            case "before it is sent":
                await link.send(abort)
                assert (await frames_of(link))[-1].reason is EndReason.CANCELLED
            case "in the queue there":
                await trio.sleep(1)
                await link.send(abort)
                assert (await frames_of(link))[-1].reason is EndReason.CANCELLED
            case "after the end":
                await frames_of(link)
                await link.send(abort)
        assert text_of(await answer(link, 2)) == "one two three four"
    assert replica.open == 0


async def test_a_stop_string_that_the_server_leaves_in_is_cut_and_ends_the_work(
    running, autojump_clock
):
    replica = ScriptedReplica(words=lambda _: ["on", "e ST", "OP more", " and more"] * 9)
    async with linked(running, cluster(replica)) as link:
        *_, last, released = frames = await answer(link, stop=["STOP"])

    assert text_of(frames) == "one "
    assert (last.end, released.reason) == (EndReason.STOP, EndReason.STOP)
    assert replica.closed_early == 1


async def test_what_looked_like_a_stop_string_is_let_go_at_the_end(running, autojump_clock):
    async with linked(running, cluster(ScriptedReplica(words=lambda _: ["a ST"]))) as link:
        assert text_of(await answer(link, stop=["STOP"])) == "a ST"


HALF = [data_line(a_chunk("half"))]


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ([], "lost"),  # the stream ends in good order, and the final chunk is missing
        ([data_line("[DONE]")], "upstream_failed"),
        ([data_line({"error": {"message": "boom", "code": 500}})], "upstream_failed"),
        ([b'event: error\ndata: {"message": "boom"}\n\n'], "upstream_failed"),
        ([b'error: {"code": 500, "message": "boom"}\n\n'], "upstream_failed"),
        ([data_line({"object": "error", "message": "queue full", "code": 503})], "unavailable"),
        ([data_line(a_chunk(end="abort"))], "upstream_failed"),
        ([b"data: {nonsense\n\n"], "upstream_failed"),
    ],
)
async def test_an_answer_that_breaks_off_is_a_failure_and_is_not_tried_again(
    running, autojump_clock, rest, code
):
    replicas = cluster(*(ScriptedReplica(script=[*HALF, *rest]) for _ in range(2)))
    async with linked(running, replicas) as link:
        *texts, fault, released = frames = await answer(link)

    assert text_of(frames) == "half"
    assert all(text.end is None for text in texts)
    assert (fault.code, released.reason) == (code, EndReason.FAILED)
    assert sum(len(replica.bodies) for replica in replicas.replicas.values()) == 1


@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize("done", [True, False])
async def test_an_end_is_enough_without_usage_and_without_done(
    running, autojump_clock, usage, done
):
    script = [data_line(a_chunk("hi")), data_line(a_chunk(end="stop"))]
    script += [data_line(usage_chunk(5, 2, cached=4))] if usage else []
    script += [data_line("[DONE]")] if done else []
    async with linked(running, cluster(ScriptedReplica(script=script))) as link:
        *_, last, _ = await answer(link)

    assert (last.end, last.tokens) == (EndReason.STOP, 2 if usage else 1)
    assert (last.prompt_tokens, last.cached_tokens) == ((5, 4) if usage else (None, None))


async def test_a_stream_that_stays_open_after_its_end_is_not_waited_for_long(
    running, autojump_clock
):
    class Lingering(ScriptedReplica):
        async def parts(self, body):
            yield data_line(a_chunk("hi", end="stop"))
            await trio.sleep(3_600)

    async with linked(running, cluster(Lingering())) as link:
        began = trio.current_time()
        *_, last, _ = await answer(link)

    assert last.end is EndReason.STOP
    assert trio.current_time() - began < 5


async def test_a_server_that_does_not_stream_is_read_whole(running, autojump_clock):
    class Whole(ScriptedReplica):
        def answer(self, request):
            if not request.url.path.endswith("/completions"):
                return super().answer(request)
            message = {"role": "assistant", "content": "all at once"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 5, "completion_tokens": 3}
            return httpx2.Response(
                200,
                headers={"content-type": "application/json"},
                json={"choices": [choice], "usage": usage},
            )

    async with linked(running, cluster(Whole())) as link:
        *_, last, _ = frames = await answer(link)

    assert (text_of(frames), last.tokens, last.end) == ("all at once", 3, EndReason.STOP)


async def test_silence_ends_a_generation_and_it_is_not_tried_elsewhere(running, autojump_clock):
    replicas = cluster(ScriptedReplica(first_s=1e6), ScriptedReplica(first_s=1e6))
    async with linked(running, replicas, idle_s=30.0) as link:
        began = trio.current_time()
        fault, released = await answer(link)

    assert fault.code == "lost"
    assert released.reason is EndReason.FAILED
    assert 29 < trio.current_time() - began < 33
    assert sum(len(replica.bodies) for replica in replicas.replicas.values()) == 1
    assert replicas.open == 0


async def test_comments_show_life_in_a_queue_and_none_after_the_first_token(
    running, autojump_clock
):
    class Pinging(ScriptedReplica):
        async def parts(self, body):
            for _ in range(10):
                await trio.sleep(20)
                yield b": ping\n\n"
            yield data_line(a_chunk("at last"))
            while True:
                await trio.sleep(20)
                yield b": ping\n\n"

    async with linked(running, cluster(Pinging()), idle_s=30.0) as link:
        began = trio.current_time()
        frames = await answer(link)

    assert text_of(frames) == "at last"
    assert frames[-2].code == "lost"
    assert 229 < trio.current_time() - began < 245


async def test_no_generation_takes_longer_than_it_may(running, autojump_clock):
    replica = ScriptedReplica(words=lambda _: iter(lambda: "x", None), step_s=1.0)
    async with linked(running, cluster(replica), total_s=50.0, idle_s=10.0) as link:
        *_, fault, _ = await answer(link, max_tokens=4_000)

    assert fault.code == "lost"
    assert replica.open == 0


async def test_a_slow_replica_does_not_look_like_a_hung_engine(running, autojump_clock):
    async with linked(running, cluster(ScriptedReplica(first_s=100.0)), idle_s=200.0) as link:
        await link.send(an_admit())
        began = trio.current_time()
        numbers = []
        while trio.current_time() - began < 90:
            if isinstance(frame := await link.receive(), Step):
                numbers.append(frame.number)

    assert len(numbers) > 80
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "busy",
    [
        (503, b'{"object": "error", "message": "queue full", "code": 503}'),
        (429, b'{"error": "Model is overloaded", "error_type": "overloaded"}'),
    ],
)
async def test_a_replica_that_is_busy_sends_the_work_to_another_one(running, autojump_clock, busy):
    replicas = cluster(ScriptedReplica(refuse=busy), ScriptedReplica())
    async with linked(running, replicas) as link:
        for number in range(1, 6):
            messages = (Message(role="user", content=f"conversation {number}"),)
            assert text_of(await answer(link, number, messages=messages)) == "one two three four"

    assert len(replicas.replicas["r1"].bodies) == 5


async def test_a_queue_that_is_full_within_a_good_stream_is_busy_too(running, autojump_clock):
    script = [data_line({"object": "error", "message": "The request queue is full.", "code": 503})]
    replicas = cluster(ScriptedReplica(script=script), ScriptedReplica())
    async with linked(running, replicas) as link:
        for number in range(1, 6):
            messages = (Message(role="user", content=f"conversation {number}"),)
            assert text_of(await answer(link, number, messages=messages)) == "one two three four"


@pytest.mark.parametrize("advice", ["1", None])
async def test_work_that_nobody_takes_in_time_was_never_begun(running, autojump_clock, advice):
    replica = ScriptedReplica(refuse=(503, b""), retry_after=advice)
    async with linked(running, cluster(replica), wait_s=5.0) as link:
        began = trio.current_time()
        fault, released = await answer(link)

    assert (fault.code, released.reason) == ("unavailable", EndReason.FAILED)
    assert 4 < trio.current_time() - began < 7
    assert 2 < len(replica.bodies) < 10  # asked again, and not all the time


async def test_work_waits_for_a_replica_that_comes_back(running, autojump_clock):
    replica = ScriptedReplica()
    async with linked(running, cluster(replica), wait_s=5.0) as link:
        replica.kill()
        await trio.sleep(2)
        await link.send(an_admit())
        await trio.sleep(2)
        replica.revive()

        assert text_of(await frames_of(link)) == "one two three four"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, b'{"error": {"message": "bad top_k", "code": 400}}', "invalid_request"),
        (400, b'{"error": {"message": "maximum context length is 5"}}', "context_length"),
        (500, b"boom", "upstream_failed"),
    ],
)
async def test_a_refusal_of_the_request_itself_is_told_and_not_tried_elsewhere(
    running, autojump_clock, status, body, code
):
    replicas = cluster(*(ScriptedReplica(refuse=(status, body)) for _ in range(2)))
    async with linked(running, replicas) as link:
        fault, _ = await answer(link)

    assert fault.code == code
    assert sum(len(replica.bodies) for replica in replicas.replicas.values()) == 1


@pytest.mark.parametrize(("status", "state"), [(400, "up"), (503, "up"), (500, "ejected")])
async def test_refusals_in_good_order_eject_nobody_and_failures_do(
    running, autojump_clock, status, state
):
    replica = ScriptedReplica(refuse=(status, b'{"error": {"message": "no"}}'))
    async with running(cluster(replica), wait_s=0.1) as upstream:
        link = await upstream.launch()
        await link.receive()
        for number in range(1, 9):
            await answer(link, number)

        assert [replica.state for replica in upstream.statistics()] == [state]


async def test_a_request_that_may_kill_replicas_meets_two_of_them_at_most(running, autojump_clock):
    class Fragile(ScriptedReplica):
        async def parts(self, body):
            yield data_line(a_chunk(choices=[{"delta": {"role": "assistant"}}]))
            self.kill()
            await self._wait(1)

    replicas = cluster(*(Fragile() for _ in range(4)))
    async with linked(running, replicas) as link:
        fault, _ = await answer(link)

    assert fault.code == "lost"
    assert sum(replica.is_dead for replica in replicas.replicas.values()) == 2


async def test_what_the_servers_have_no_word_for_is_refused(running, autojump_clock):
    replica = ScriptedReplica()
    async with linked(running, cluster(replica), extras="off") as link:
        fault, _ = await answer(link, sampling=Sampling(top_k=5, seed=1))

    assert (fault.code, "top_k" in fault.detail) == ("invalid_request", True)
    assert replica.bodies == []


async def test_a_second_admit_to_a_slot_is_a_breach(running, autojump_clock):
    async with linked(running, cluster(ScriptedReplica())) as link:
        await link.send(an_admit(1))
        with pytest.raises(HostProtocolError):
            await link.send(an_admit(2))
        await frames_of(link)


@pytest.mark.parametrize("how", ["halt", "kill", "aclose", "its service stops"])
async def test_an_end_of_the_link_closes_every_socket(running, autojump_clock, how):
    replicas = cluster(ScriptedReplica(words=lambda _: ["x"] * 900))
    async with linked(running, replicas) as link:
        for number in range(1, 6):
            await link.send(an_admit(number, slot=number, max_tokens=800))
        await trio.sleep(1)
        assert replicas.open == 5
        match how:
            case "halt":
                await link.send(Halt())
            case "kill":
                link.kill()
            case "aclose":
                await link.aclose(grace_s=1)
                assert replicas.open == 0
            case _:
                pass
        if how != "its service stops":
            await lost(link)
            with pytest.raises(HostLost):
                await link.send(an_admit(9))
    await lost(link)
    assert replicas.open == 0


async def test_a_closing_that_is_cancelled_still_closes(running, autojump_clock):
    replicas = cluster(ScriptedReplica(words=lambda _: ["x"] * 900))
    async with linked(running, replicas) as link:
        await link.send(an_admit(max_tokens=800))
        await trio.sleep(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.aclose(grace_s=1)

        assert replicas.open == 0
