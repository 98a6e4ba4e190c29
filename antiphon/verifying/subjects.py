"""Which engine is verified: that of the settings, ready to be started without a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from antiphon.engine.models import PreparedModel
from antiphon.engine.upstream import EstimatingTokenizer, UpstreamModel
from antiphon.hosts import engine_launcher, model_tokenizer
from antiphon.ports import ChatTokenizer, EngineLauncher
from antiphon.settings import Settings
from antiphon.upstreams import running_upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An engine that can be launched, and how prompts are made for it."""

    model: str
    launcher: EngineLauncher
    tokenizer: ChatTokenizer


@asynccontextmanager
async def subject_of(
    settings: Settings, model: PreparedModel | UpstreamModel
) -> AsyncIterator[Subject]:
    """Whatever has to run beside the engine runs while inside. Raises ModelUnsupported."""
    if isinstance(model, UpstreamModel):
        async with running_upstream(settings, model) as upstream:
            tokenizer = model.tokenizer or EstimatingTokenizer()
            yield Subject(model=model.name, launcher=upstream, tokenizer=tokenizer)
    else:
        await trio.lowlevel.checkpoint()
        yield Subject(
            model=model.name,
            launcher=engine_launcher(settings, model),
            tokenizer=model_tokenizer(settings, model),
        )
