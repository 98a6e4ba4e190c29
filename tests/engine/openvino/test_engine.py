"""The OpenVINO engine in a real host process with the real model."""

import io
import json
import random
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from tokenizers import Tokenizer

from antiphon.engine.config import HostConfig, encode_config
from antiphon.engine.process import CONTRACT, HostLink
from antiphon.engine.wire import frame_decoder
from antiphon.events import (
    Abort,
    Admit,
    Capabilities,
    EndReason,
    Fault,
    Ready,
    Released,
    Sampling,
    Step,
    TokenLogprob,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.processes.link import ProcessLink, start_process
from antiphon.processes.stderr import forward_lines

pytestmark = pytest.mark.engine

PATIENCE_S = 100.0
SLOTS = 8
KV_MIB = 64
END_OF_TURN = 2
GREEDY = Sampling(temperature=0)
CAPITAL = "What is the capital of France?"


@dataclass
class Told:
    """All that a host said about one request."""

    text: str = ""
    ends: list[EndReason] = field(default_factory=list)
    released: list[Released] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    released_at_step: int = 0
    pieces: list[str] = field(default_factory=list)


class Bench:
    """A host and the requests that were put to it."""

    def __init__(
        self,
        link: HostLink,
        tokenizer: Tokenizer,
        capabilities: Capabilities,
        requests_before: int,
    ) -> None:
        self.link = link
        self._before = requests_before
        self.tokenizer = tokenizer
        self.capabilities = capabilities
        self.told: dict[int, Told] = {}
        self.steps = 0
        self._free = list(range(SLOTS))
        self._slots: dict[int, int] = {}

    async def ask(
        self,
        question: str,
        *,
        max_tokens: int = 40,
        sampling: Sampling = GREEDY,
        stop: Iterable[str] = (),
    ) -> int:
        text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        prompt = self.tokenizer.encode(text).ids
        return await self.admit(prompt, max_tokens, sampling, stop)

    async def admit(
        self, prompt: list[int], max_tokens: int, sampling: Sampling = GREEDY, stop=()
    ) -> int:
        request = self._before + len(self.told) + 1
        self.told[request] = Told()
        self._slots[request] = self._free.pop()
        await self.link.send(
            Admit(
                request=EngineRequest(request),
                slot=SlotIndex(self._slots[request]),
                prompt=prompt,
                max_tokens=max_tokens,
                sampling=sampling,
                stop=list(stop),
            )
        )
        return request

    async def abort(self, request: int) -> None:
        slot = SlotIndex(self._slots[request])
        await self.link.send(Abort(request=EngineRequest(request), slot=slot))

    async def next_step(self) -> None:
        before = self.steps
        while self.steps == before:
            await self._take()

    async def finished(self, *requests: int) -> list[Told]:
        """Read on until all of these are released."""
        while not all(self.told[request].released for request in requests):
            await self._take()
        return [self.told[request] for request in requests]

    async def _take(self) -> None:
        frame = await self.link.receive()
        match frame:
            case Step():
                self.steps = frame.number
                for text in frame.texts:
                    told = self.told[text.request]
                    assert not told.ends
                    assert not told.released
                    told.text += text.text
                    told.pieces.append(text.text)
                    told.logprobs += text.logprobs or []
                    told.ends += [text.end] if text.end is not None else []
            case Released():
                told = self.told[frame.request]
                told.released.append(frame)
                told.released_at_step = self.steps
                assert len(told.released) == 1
                self._free.append(frame.slot)
            case Fault(request=int()):
                self.told[frame.request].faults.append(frame)
            case Fault() | Ready():
                raise AssertionError(frame)


def config(model_dir: Path) -> HostConfig:
    return HostConfig(
        model_dir=model_dir,
        slots=SLOTS,
        window=8192,
        stop_token_ids=(END_OF_TURN,),
        kv_cache_mib=KV_MIB,
    )


@dataclass
class SharedHost:
    """One host process for all tests of this file; each test has a link of its own to it."""

    process: "subprocess.Popen[bytes]"
    connection: socket.socket
    capabilities: Capabilities
    tokenizer: Tokenizer
    requests: int = 0


@pytest.fixture(name="host", scope="module")
def _host(model_dir: Path) -> Iterator[SharedHost]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process, stderr = start_process(
                "antiphon.engine.host", encode_config(config(model_dir)), theirs, {}
            )
        with process, stderr:
            forward = threading.Thread(
                target=forward_lines, args=(stderr, process.pid, "host", "host_stderr")
            )
            forward.start()
            try:
                ours.settimeout(PATIENCE_S)
                # A quick host's first Stats may be in the same read.
                ready, *_ = frame_decoder().feed(ours.recv(65_536))
                assert isinstance(ready, Ready)
                tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
                ours.setblocking(False)
                yield SharedHost(process, ours, ready.capabilities, tokenizer)
            finally:
                process.kill()
                forward.join()


@pytest.fixture(name="bench")
async def _bench(host: SharedHost) -> AsyncIterator[Bench]:
    with trio.fail_after(PATIENCE_S):
        link = ProcessLink(CONTRACT, host.process, io.BytesIO(), host.connection.dup())
        bench = Bench(link, host.tokenizer, host.capabilities, host.requests)
        yield bench
        await bench.finished(*bench.told)
        host.requests += len(bench.told)
        link._socket.close()


async def test_it_knows_the_capital_and_says_what_it_can_do(bench: Bench):
    [told] = await bench.finished(await bench.ask(CAPITAL))

    assert "Paris" in told.text
    assert "<|" not in told.text
    assert told.released[0].reason is EndReason.STOP
    assert told.ends == [EndReason.STOP]
    capabilities = bench.capabilities
    size = KV_MIB * 1024 * 1024 / capabilities.kv_blocks
    assert 437_760 <= size < 437_760 * 1.02
    assert capabilities.window == capabilities.kv_blocks * capabilities.block_size


async def test_text_streams_in_pieces_up_to_its_length(bench: Bench):
    request = await bench.ask(
        "Count.", max_tokens=12, sampling=Sampling(temperature=0, ignore_eos=True)
    )
    [told] = await bench.finished(request)

    assert told.released[0].reason is EndReason.LENGTH
    assert told.released[0].tokens == 12
    assert len(told.pieces) == 12


async def test_an_emoji_of_several_tokens_is_never_torn(bench: Bench):
    lines = "🎉 👩‍💻 é 漢字 🎉 👩‍💻 é 漢字 🎉 👩‍💻 é 漢字 🎉 👩‍💻"
    request = await bench.ask(f"Repeat after me: {lines}", max_tokens=80)
    [told] = await bench.finished(request)

    assert "👩‍💻" in told.text
    assert not any("\ufffd" in piece for piece in told.pieces)


async def test_a_stop_string_ends_the_answer_before_it(bench: Bench):
    [whole] = await bench.finished(await bench.ask(CAPITAL))
    [told] = await bench.finished(await bench.ask(CAPITAL, stop=["s of a", " Paris", "never"]))

    assert told.text == whole.text.partition(" Paris")[0]
    assert told.ends == [EndReason.STOP]
    assert told.released[0].reason is EndReason.STOP


async def test_logprobs_spell_the_answer(bench: Bench):
    sampling = Sampling(temperature=0, logprobs=True)
    [told] = await bench.finished(await bench.ask(CAPITAL, sampling=sampling))

    assert b"".join(entry.data for entry in told.logprobs).decode() == told.text
    assert all(entry.logprob <= 0 for entry in told.logprobs)
    assert any(entry.logprob < 0 for entry in told.logprobs)


async def test_the_same_seed_repeats_and_another_does_not(bench: Bench):
    texts = []
    for seed in (7, 7, 8):
        sampling = Sampling(temperature=1.0, seed=seed)
        [told] = await bench.finished(await bench.ask("Tell me a story.", sampling=sampling))
        texts.append(told.text)

    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


async def test_every_sampling_parameter_is_taken(bench: Bench):
    everything = Sampling(
        temperature=0.7,
        top_p=0.9,
        top_k=20,
        min_p=0.05,
        repetition_penalty=1.1,
        presence_penalty=-0.5,
        frequency_penalty=0.5,
        seed=2**64 - 1,
        min_tokens=5,
    )
    greedy = Sampling(temperature=0, presence_penalty=0.5, frequency_penalty=0.5, min_tokens=40)
    sampled, penalised = await bench.finished(
        await bench.ask(CAPITAL, sampling=everything), await bench.ask(CAPITAL, sampling=greedy)
    )

    assert sampled.released[0].tokens >= 5
    assert penalised.released[0].tokens == 40


async def test_an_abort_while_decoding_releases_within_two_steps(bench: Bench):
    request = await bench.ask("Count.", max_tokens=500, sampling=Sampling(ignore_eos=True))
    for _ in range(5):
        await bench.next_step()

    step = bench.steps
    await bench.abort(request)
    [told] = await bench.finished(request)

    assert told.released[0].reason is EndReason.CANCELLED
    assert told.released_at_step <= step + 2
    assert told.ends == []


async def test_an_abort_during_prefill_gives_the_blocks_back(bench: Bench):
    capabilities = bench.capabilities
    tokens = capabilities.kv_blocks * capabilities.block_size - 10
    for _ in range(3):
        request = await bench.admit(random.Random(1).choices(range(100, 40_000), k=tokens), 10)
        await bench.next_step()
        await bench.abort(request)
        [told] = await bench.finished(request)
        assert told.released[0].reason is EndReason.CANCELLED
        assert told.released[0].tokens == 0

    [told] = await bench.finished(await bench.ask(CAPITAL))
    assert "Paris" in told.text


async def test_random_admits_and_aborts_are_each_released_once(bench: Bench):
    chance = random.Random(3)
    live: list[int] = []
    for _ in range(64):
        while len(live) == SLOTS:
            await bench.next_step()
            live = [request for request in live if not bench.told[request].released]
        sampling = Sampling(seed=chance.getrandbits(64), ignore_eos=chance.random() < 0.5)
        live.append(await bench.ask("Go on.", max_tokens=chance.randint(1, 30), sampling=sampling))
        if chance.random() < 0.5:
            victim = chance.choice(live)
            for _ in range(chance.randint(1, 2)):
                await bench.abort(victim)
        if chance.random() < 0.5:
            await bench.next_step()
            live = [request for request in live if not bench.told[request].released]
    await bench.finished(*bench.told)

    [told] = await bench.finished(await bench.ask(CAPITAL))
    assert "Paris" in told.text


async def test_what_can_never_fit_is_refused_and_others_go_on(bench: Bench):
    capabilities = bench.capabilities
    innocent = await bench.ask(CAPITAL)
    too_long = await bench.admit([5] * 10, capabilities.window)
    half = capabilities.window // 2
    first = await bench.admit([5] * half, half - 64, Sampling(ignore_eos=True))
    second = await bench.admit([6] * half, half - 64)

    refused, crowded, told = await bench.finished(too_long, second, innocent)
    await bench.abort(first)
    await bench.finished(first)

    assert refused.faults[0].code == "window"
    assert refused.released[0].reason is EndReason.FAILED
    assert crowded.faults[0].code == "capacity"
    assert crowded.released[0].reason is EndReason.CAPACITY
    assert "Paris" in told.text


async def test_a_full_pool_serves_everybody_to_the_end(bench: Bench):
    capabilities = bench.capabilities
    blocks = capabilities.kv_blocks // SLOTS
    length = blocks * capabilities.block_size - 60
    requests = [
        await bench.admit([100 + index] * length, 60, Sampling(seed=index, ignore_eos=True))
        for index in range(SLOTS)
    ]

    for told in await bench.finished(*requests):
        assert told.released[0].reason is EndReason.LENGTH
        assert told.released[0].tokens == 60


PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize("ignore_eos", [False, True])
async def test_an_answer_follows_its_schema(bench: Bench, ignore_eos: bool):
    sampling = Sampling(temperature=0, json_schema=PERSON, ignore_eos=ignore_eos)
    [told] = await bench.finished(
        await bench.ask("Describe Ann, aged 30.", max_tokens=100, sampling=sampling)
    )

    assert set(json.loads(told.text)) == {"name", "age"}


async def test_a_malformed_schema_fails_alone_and_is_remembered(bench: Bench):
    innocent = await bench.ask(CAPITAL)
    for _ in range(2):
        bad = await bench.ask("x", sampling=Sampling(json_schema='{"type": "nonsense"}'))
        good = await bench.ask("x", sampling=Sampling(json_schema=PERSON), max_tokens=5)
        refused, _ = await bench.finished(bad, good)
        assert refused.faults[0].code == "invalid_schema"
        assert refused.released[0].reason is EndReason.FAILED

    [told] = await bench.finished(innocent)
    assert "Paris" in told.text


async def test_an_abort_while_the_schema_is_checked_releases_at_once(bench: Bench):
    request = await bench.ask("x", sampling=Sampling(json_schema=PERSON))
    await bench.abort(request)
    [told] = await bench.finished(request)

    assert told.released[0].reason is EndReason.CANCELLED
    [told] = await bench.finished(await bench.ask(CAPITAL))
    assert "Paris" in told.text
