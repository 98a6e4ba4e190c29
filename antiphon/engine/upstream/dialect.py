"""What a generation is called in the words of each server. Pure.

They agree on OpenAI's fields and on little else: how "off" is spelled, how large a seed may be,
whose default counts where nothing is said.
"""

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.events import Admit, Image, Message, Sampling
from antiphon.messages import text_and_images
from antiphon.upstream_settings import UpstreamSettings

_SEED_MASK = 2**31 - 1
"""llama.cpp's seeds have 32 bits, and a JSON number above 2^53 is somebody's float."""


class Flavour(enum.Enum):
    """Which server it is, by the `owned_by` of its models."""

    ANTIPHON = "antiphon"
    DYNAMO = "nvidia"
    LLAMA_CPP = "llamacpp"
    SGLANG = "sglang"
    TRTLLM = "tensorrt_llm"
    VLLM = "vllm"
    UNKNOWN = ""

    @classmethod
    def of(cls, owned_by: str) -> "Flavour":
        try:
            return cls(owned_by.lower())
        except ValueError:
            return cls.UNKNOWN


_NO_TOP_K = {Flavour.LLAMA_CPP: 0, Flavour.TRTLLM: 0}
"""Elsewhere -1: SGLang refuses 0, the others take either."""
_ANY_SCHEMA = {"type": "object"}


def path_of(settings: UpstreamSettings) -> str:
    return "/completions" if settings.prompts == "tokens" else "/chat/completions"


def body_of(
    admit: Admit,
    settings: UpstreamSettings,
    flavour: Flavour,
    urls: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The JSON body; `urls` are of images, by their hashes. Raises Trouble for what this server has
    no word for."""
    sampling = admit.sampling
    body: dict[str, Any] = {
        "model": settings.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": admit.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    if settings.prompts == "tokens":
        body["prompt"] = admit.prompt
    else:
        body["messages"] = [
            {"role": message.role, "content": _content(message, urls)}
            | ({} if message.name is None else {"name": message.name})
            for message in admit.messages
        ]
    if admit.stop:
        body["stop"] = admit.stop
    if sampling.presence_penalty:
        body["presence_penalty"] = sampling.presence_penalty
    if sampling.frequency_penalty:
        body["frequency_penalty"] = sampling.frequency_penalty
    if settings.seed:
        body["seed"] = sampling.seed & _SEED_MASK
    if sampling.logprobs:
        body["logprobs"] = 1 if settings.prompts == "tokens" else True
    if sampling.json_schema is not None:
        body["response_format"] = _format(json.loads(sampling.json_schema))
    if settings.cache_salt and admit.salt is not None:
        body["cache_salt"] = admit.salt
    return body | _extras(sampling, settings, flavour)


def _content(message: Message, urls: Mapping[str, str]) -> str | list[dict[str, Any]]:
    """Parts where there are images."""
    if not message.images:
        return message.content
    return [
        {"type": "text", "text": each}
        if isinstance(each, str)
        else {"type": "image_url", "image_url": _reference(each, urls)}
        for each in text_and_images(message)
    ]


def _reference(image: Image, urls: Mapping[str, str]) -> dict[str, str]:
    # vLLM and llama-server know no such field and ignore it; SGLang knows these three.
    detail = {} if image.detail == "original" else {"detail": image.detail}
    return {"url": urls[image.sha256], **detail}


def _format(schema: Any) -> dict[str, Any]:
    if schema == _ANY_SCHEMA:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _extras(sampling: Sampling, settings: UpstreamSettings, flavour: Flavour) -> dict[str, Any]:
    """What OpenAI has no field for."""
    neutral = Sampling()
    wanted = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "min_tokens": sampling.min_tokens,
        "ignore_eos": sampling.ignore_eos,
    }
    asked = {name: value for name, value in wanted.items() if value != getattr(neutral, name)}
    if settings.extras == "off":
        if asked:
            names = ", ".join(asked)
            raise Trouble(Kind.INVALID, "it has no such field", f"it does not support {names}")
        return {}
    if flavour is Flavour.UNKNOWN and settings.extras == "auto":
        return asked
    # Said in full, since what is left out has the server's default: llama-server's top_k is 40,
    # vLLM's is whatever the model's generation_config.json says.
    said = {
        "top_k": sampling.top_k or _NO_TOP_K.get(flavour, -1),
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
    }
    if flavour is Flavour.LLAMA_CPP:
        said["repeat_penalty"] = said.pop("repetition_penalty")
        if "min_tokens" in asked:
            raise Trouble(Kind.INVALID, "it has no such field", "it does not support min_tokens")
    spelled = {name: value for name, value in asked.items() if name in ("min_tokens", "ignore_eos")}
    return spelled | said
