"""Hosts of the TensorRT-LLM engine over the stand-in library, and a bare client that talks with
one."""

import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import trio

from antiphon.engine.config import EngineKind, HostConfig
from antiphon.engine.process import HostLauncher, HostLink
from antiphon.events import Message, Ready
from antiphon.ids import EngineRequest
from antiphon.testing.vocabularies import END, byte_level_vocabulary
from antiphon.tools import Tool, ToolFormat
from antiphon.trt_settings import TrtSettings
from antiphon.verifying.client import Answer, Client

STAND_IN = Path(__file__).parent / "stand_in"
HOST = "antiphon.engine_trt.host"
WINDOW = 256
PATIENCE_S = 30.0
_REAP_S = 10.0
TOKENIZER = byte_level_vocabulary()


def encode(text: str) -> list[int]:
    """A prompt that the stand-in answers with the same text."""
    return [*TOKENIZER.encode(text).ids, END]


class EchoTokenizer:
    """A ChatTokenizer whose prompts are answered with the last message."""

    longest_token = 1_000
    tool_format: ToolFormat | None = None

    def count_text(self, text: str) -> int:
        return len(TOKENIZER.encode(text).ids)

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        return encode(messages[-1].content)


def stand_in_environment(switches: dict[str, Any]) -> dict[str, str]:
    path = [str(STAND_IN), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "TENSORRT_LLM_STAND_IN": msgspec.json.encode(switches).decode(),
    }


def trt_config(folder: Path, *, slots: int = 4, **settings: Any) -> HostConfig:
    """With patience for a test; `settings` overlays it."""
    TOKENIZER.save(str(folder / "tokenizer.json"))
    return HostConfig(
        model_dir=folder,
        slots=slots,
        window=WINDOW,
        stop_token_ids=(END,),
        engine=EngineKind.TENSORRT_LLM,
        trt=TrtSettings(**{"abort_wait_s": 0.15, "idle_s": 0.6, **settings}),
    )


@dataclass
class TrtLauncher:
    """An EngineLauncher; the switches may differ from one host to the next: the last ones stay."""

    config: HostConfig
    switches: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    links: list[HostLink] = field(default_factory=list)

    async def launch(self) -> HostLink:
        switches = self.switches[min(len(self.links), len(self.switches) - 1)]
        launcher = HostLauncher(
            self.config, module=HOST, environment=stand_in_environment(switches)
        )
        self.links.append(await launcher.launch())
        return self.links[-1]


@dataclass
class EchoClient(Client):
    """A client of the stand-in, which answers with its prompt."""

    pid: int = 0

    async def say(self, text: str, **fields: Any) -> EngineRequest:
        """Admit a prompt that is answered with `text`."""
        prompt = encode(text)
        return await self.admit(**{"prompt": prompt, "max_tokens": len(prompt) + 8, **fields})

    async def ask(self, text: str, **fields: Any) -> Answer:
        return await self.over(await self.say(text, **fields))


@asynccontextmanager
async def talking(config: HostConfig, **switches: Any) -> AsyncIterator[EchoClient]:
    """A ready host, which is gone afterwards whatever the test did."""
    with trio.fail_after(PATIENCE_S):
        link = await TrtLauncher(config, [switches]).launch()
        try:
            ready = await link.receive()
            assert isinstance(ready, Ready), ready
            client = EchoClient(link=link, capabilities=ready.capabilities, pid=ready.pid)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.read)
                yield client
                nursery.cancel_scope.cancel()
            assert client.violations == []
        finally:
            link.kill()
            with trio.move_on_after(_REAP_S, shield=True):
                await link.aclose(grace_s=0)


async def storm(client: EchoClient, admits: int, seed: int, *, guilty: str = "") -> None:
    """Admit, and abort two of three at a random moment: at once, before the first token, in the
    middle, after the end. With `guilty` in their text, one of ten may come to nothing."""
    dice = random.Random(seed)

    async def one(number: int) -> None:
        text = f"word {number} " * dice.randint(1, 4)
        is_guilty = bool(guilty) and number % 10 == 0
        if is_guilty:
            text = f"word {guilty} {text}"
        request = await client.say(text)
        moment = dice.choice(["at once", "soon", "heard", "late", "never", "never"])
        if moment == "soon":
            await trio.sleep(dice.random() * 0.01)
        elif moment == "heard":
            await client.heard(request)
        elif moment == "late":
            await client.over(request)
        if moment != "never":
            await client.abort(request)
        answer = await client.over(request)
        assert text.startswith(answer.text)
        if is_guilty:
            assert moment != "never" or answer.fault is not None
        elif moment == "never":
            assert answer.text == text, answer

    async with trio.open_nursery() as nursery:
        limit = trio.CapacityLimiter(2 * client.capabilities.slots)

        async def bounded(number: int) -> None:
            async with limit:
                await one(number)

        for number in range(admits):
            nursery.start_soon(bounded, number)
