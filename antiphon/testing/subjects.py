"""The engines that keep one contract, each ready to be started by a test."""

import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from antiphon.events import Admit
from antiphon.settings import EngineSettings, Settings
from antiphon.testing.clusters import KV_MIB, antiphons, llamas
from antiphon.testing.instances import instance_of
from antiphon.testing.models import prepared_default_model
from antiphon.testing.rig import WordTokenizer
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.trt import EchoTokenizer, TrtLauncher, trt_config
from antiphon.verifying.subjects import Subject, subject_of

SLOTS = 8


@asynccontextmanager
async def openvino(folder: Path) -> AsyncIterator[Subject]:
    """The real model in its host process."""
    engine = EngineSettings(slots=SLOTS, kv_cache_mib=KV_MIB)
    async with subject_of(Settings(engine=engine), prepared_default_model()) as subject:
        yield subject


@asynccontextmanager
async def stand_in(folder: Path, **switches: Any) -> AsyncIterator[Subject]:
    """TensorRT-LLM's stand-in in its host process, with as many blocks as its slots can use."""
    await trio.lowlevel.checkpoint()
    config = trt_config(folder, slots=SLOTS)
    blocks = SLOTS * config.window // 32 + 1
    launcher = TrtLauncher(config, [{"kv_blocks": blocks, **switches}])
    yield Subject(model="echo", launcher=launcher, tokenizer=EchoTokenizer())


@asynccontextmanager
async def upstream_of_llama(folder: Path) -> AsyncIterator[Subject]:
    """An upstream in front of llama-server, which counts its prompts by itself."""
    async with llamas(1) as cluster:
        yield cluster.subject


@asynccontextmanager
async def upstream_of_antiphon(folder: Path) -> AsyncIterator[Subject]:
    """An upstream in front of another Antiphon, which has the real model."""
    async with antiphons(1) as cluster:
        yield cluster.subject


@asynccontextmanager
async def scripted(folder: Path) -> AsyncIterator[Subject]:
    """No model at all, in this process."""
    await trio.lowlevel.checkpoint()
    launcher = ScriptedLauncher(scripted_link)
    yield Subject(model="scripted", launcher=launcher, tokenizer=WordTokenizer())


def scripted_link() -> ScriptedLink:
    """One that does as it is told, fast."""
    capabilities = scripted_capabilities(slots=SLOTS, kv_blocks=SLOTS * 16)
    return ScriptedLink(capabilities=capabilities, answer=obedient_words, step_s=0.001)


SUBJECTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Subject]]] = {
    "openvino": openvino,
    "tensorrt-llm": stand_in,
    "upstream-llama-server": upstream_of_llama,
    "upstream-antiphon": upstream_of_antiphon,
    "scripted": scripted,
}
REAL = frozenset({"openvino", "upstream-llama-server", "upstream-antiphon"})
"""Those that run the real model."""


def obedient_words(admit: Admit) -> Iterator[str]:
    """The last message again, word by word; with a schema, what is of it; as long as is wanted."""
    sampling = admit.sampling
    text = admit.messages[-1].content
    if sampling.json_schema is not None:
        value = instance_of(json.loads(sampling.json_schema))
        yield from _words(json.dumps(value, ensure_ascii=False))
        return
    words = _words(text) or [text]
    endless = itertools.cycle(words)
    bound = max(len(words), sampling.min_tokens)
    yield from endless if sampling.ignore_eos else itertools.islice(endless, bound)


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+", text)
