"""Which host process serves a model with these settings, and what it is told: the one module that
brings settings and engine hosts together, for the server and for the commands beside it."""

from antiphon.engine.chat import ModelTokenizer, load_chat_tokenizer, load_hub_tokenizer
from antiphon.engine.config import EngineKind, HostConfig
from antiphon.engine.models import PreparedModel
from antiphon.engine.process import HostLauncher
from antiphon.settings import Settings

_MODULES = {
    EngineKind.OPENVINO: "antiphon.engine.host",
    EngineKind.TENSORRT_LLM: "antiphon.engine_trt.host",
}
"""What the child process of each engine runs."""


def engine_launcher(settings: Settings, model: PreparedModel) -> HostLauncher:
    """Starts engine hosts of this model, with these settings."""
    config = host_config(settings, model)
    return HostLauncher(config, module=_MODULES[config.engine])


def model_tokenizer(settings: Settings, model: PreparedModel) -> ModelTokenizer:
    """Raises ModelUnsupported."""
    is_published = settings.engine.kind == "tensorrt-llm"
    return (load_hub_tokenizer if is_published else load_chat_tokenizer)(model.folder)


def host_config(settings: Settings, model: PreparedModel) -> HostConfig:
    """What the engine host of this model is told."""
    engine = settings.engine
    prefix_cache = engine.prefix_cache
    if engine.kind == "openvino" and prefix_cache == "tenant":
        # A salt would cost the penalty that the model's publisher wants for every answer.
        prefix_cache = "tenant" if model.sampling.repetition_penalty == 1 else "off"
    return HostConfig(
        model_dir=model.folder,
        slots=engine.slots,
        window=model.window,
        stop_token_ids=model.stop_tokens,
        engine=EngineKind(engine.kind),
        threads=engine.threads,
        kv_cache_mib=engine.kv_cache_mib,
        kv_precision=engine.kv_precision,
        step_tokens=engine.step_tokens,
        prefix_cache=prefix_cache,
        openvino=settings.openvino,
        trt=settings.trt,
        log_level=settings.log_level,
        faults=settings.faults,
    )
