"""The facts and the chat template of a model folder in Hugging Face's layout, from its JSON files.

Read as plain data, so that it can be done in the server's process.
"""

import json
from pathlib import Path
from typing import Any

from antiphon.engine.models.prepared import Facts
from antiphon.errors import ModelUnsupported
from antiphon.ports import SamplingDefaults


def read_facts(reference: str, folder: Path) -> Facts:
    """Raises ModelUnsupported."""
    config = _read(reference, folder / "config.json")
    # A model of several parts nests the language model's configuration.
    text_config = {**config, **config.get("text_config", {})}
    generation = _read(reference, folder / "generation_config.json", optional=True)
    tokenizer_config = _read(reference, folder / "tokenizer_config.json", optional=True)
    tokenizer = _read(reference, folder / "tokenizer.json")
    added = [t for t in tokenizer.get("added_tokens", []) if t.get("special")]
    ids = {token["content"]: token["id"] for token in added}
    window = text_config.get("max_position_embeddings")
    if not isinstance(window, int):
        raise ModelUnsupported(reference, "config.json has no max_position_embeddings")
    eos_token = _content(tokenizer_config.get("eos_token"))
    ends = _integers(generation.get("eos_token_id")) | _integers(text_config.get("eos_token_id"))
    if eos_token in ids:
        ends.add(ids[eos_token])
    if not ends:
        raise ModelUnsupported(reference, "no eos_token_id in its configuration files")
    return Facts(
        window=window,
        bos_token=_content(tokenizer_config.get("bos_token")),
        eos_token=eos_token,
        stop_tokens=sorted(ends),
        special_tokens=sorted(ids.values()),
        sampling=_sampling(generation),
    )


def read_chat_template(reference: str, folder: Path) -> str:
    """Raises ModelUnsupported."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = _read(reference, folder / "tokenizer_config.json", optional=True).get(
        "chat_template"
    )
    if isinstance(template, list):
        # Several named ones: "default" is what a chat without tools uses.
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
    if not isinstance(template, str):
        raise ModelUnsupported(reference, "it has no chat template: a base model, not a chat model")
    return template


def _read(reference: str, path: Path, *, optional: bool = False) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        if optional:
            return {}
        raise ModelUnsupported(reference, f"{path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise ModelUnsupported(reference, f"{path.name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelUnsupported(reference, f"{path.name} is not a JSON object")
    return value


def _sampling(generation: dict[str, Any]) -> SamplingDefaults:
    silence = SamplingDefaults()
    return SamplingDefaults(
        temperature=float(generation.get("temperature") or silence.temperature),
        top_p=float(generation.get("top_p") or silence.top_p),
        top_k=int(generation.get("top_k") or silence.top_k),
        repetition_penalty=float(
            generation.get("repetition_penalty") or silence.repetition_penalty
        ),
    )


def _content(token: Any) -> str | None:
    """A token is a string, or an object that holds it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _integers(value: Any) -> set[int]:
    values = value if isinstance(value, list) else [value]
    return {number for number in values if isinstance(number, int)}
