"""What this server keeps of a model that runs elsewhere: its name, and its tokenizer if it has one.
Blocking: used before Trio starts."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.engine.chat import ModelTokenizer, load_chat_tokenizer, load_hub_tokenizer
from antiphon.engine.models import ModelStore, Progress
from antiphon.ids import ModelName
from antiphon.ports import SamplingDefaults
from antiphon.settings import Settings
from antiphon.upstream_settings import UpstreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamModel:
    """`created` is when this server started: upstreams say when they did, or nothing."""

    name: ModelName
    tokenizer: ModelTokenizer | None
    created: int
    sampling: SamplingDefaults = field(default_factory=SamplingDefaults)
    """OpenAI's own: what is left out is sent in full, since each server has other defaults."""


def prepare_upstream(settings: Settings, progress: Progress) -> UpstreamModel:
    """Nothing is fetched but a tokenizer that is named by a catalogue name. Raises ModelError."""
    upstream = settings.upstream
    return UpstreamModel(
        name=ModelName(upstream.model),
        tokenizer=_shown(_tokenizer(upstream.tokenizer, settings.data_dir, progress), upstream),
        created=int(time.time()),
    )


def _shown(tokenizer: ModelTokenizer | None, upstream: UpstreamSettings) -> ModelTokenizer | None:
    """Messages are sent without tools, which are then told in words: its own template has to count
    the same."""
    if tokenizer is None or upstream.prompts == "tokens":
        return tokenizer
    return tokenizer.without_tools()


def _tokenizer(reference: str | None, data_dir: Path, progress: Progress) -> ModelTokenizer | None:
    if reference is None:
        return None
    folder = Path(reference).expanduser()
    if (folder / "tokenizer.json").is_file():  # as published; converting its weights is not wanted
        return load_hub_tokenizer(folder)
    return load_chat_tokenizer(ModelStore(data_dir).ensure(reference, progress).folder)
