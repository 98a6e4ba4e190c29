"""An engine host with the real model, asked frame by frame: what comes when is counted in steps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from antiphon.engine.config import HostConfig
from antiphon.engine.process import HostLauncher
from antiphon.events import Ready, Sampling
from antiphon.ids import EngineRequest
from antiphon.verifying.client import Answer, Client

END_TOKENS = (0, 2)
"""As the model's own are: the second ends a turn."""
ANSWER_TOKENS = 4
STEP_TOKENS = 64
_PATIENCE_S = 100.0
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks for answers of ANSWER_TOKENS tokens."""

    client: Client

    async def begin(
        self, prompt: list[int], salt: str | None = None, **fields: Any
    ) -> EngineRequest:
        patient = fields.pop("patient", False)
        return await self.client.admit(
            prompt,
            max_tokens=ANSWER_TOKENS,
            salt=salt,
            patient=patient,
            sampling=Sampling(temperature=0, ignore_eos=True, **fields),
        )

    async def ask(self, prompt: list[int], salt: str | None = None, **fields: Any) -> Answer:
        return await self.client.over(await self.begin(prompt, salt, **fields))

    async def steps_to_first_token(self, prompt: list[int], salt: str | None) -> int:
        """Alone in the engine."""
        before = len(self.client.steps)
        answer = await self.ask(prompt, salt)
        assert answer.fault is None
        return len(self.client.steps) - before - (ANSWER_TOKENS - 1)


@asynccontextmanager
async def hosted(model_dir: Path, **config: Any) -> AsyncIterator[Asker]:
    """A host of two slots; `config` overlays its configuration."""
    own: dict[str, Any] = {
        "slots": 2,
        "window": 2048,
        "stop_token_ids": END_TOKENS,
        "kv_cache_mib": 64,
        "step_tokens": STEP_TOKENS,
    }
    with trio.fail_after(_PATIENCE_S):
        link = await HostLauncher(HostConfig(model_dir=model_dir, **(own | config))).launch()
        try:
            ready = await link.receive()
            assert isinstance(ready, Ready)
            client = Client(link, ready.capabilities)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.read)
                yield Asker(client)
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(_STOP_S, shield=True):
                await link.aclose(grace_s=5)
