"""A Hugging Face checkpoint served where it lies, for engines that read one themselves: nothing is
converted, copied or sealed."""

from antiphon.engine.models.hub_files import read_chat_template, read_facts
from antiphon.engine.models.prepared import PreparedModel
from antiphon.engine.models.references import CheckpointFolder, resolve
from antiphon.errors import ModelUnsupported
from antiphon.ids import ModelName


def use_checkpoint(reference: str) -> PreparedModel:
    """Raises ModelError."""
    source = resolve(reference)
    if not isinstance(source, CheckpointFolder):
        raise ModelUnsupported(
            reference, "this engine takes the folder of a Hugging Face checkpoint, and only that"
        )
    facts = read_facts(reference, source.path)
    read_chat_template(reference, source.path)
    return PreparedModel(
        name=ModelName(source.name),
        folder=source.path,
        source=str(source.path),
        window=facts.window,
        stop_tokens=tuple(facts.stop_tokens),
        special_tokens=tuple(facts.special_tokens),
        sampling=facts.sampling,
        created=int((source.path / "config.json").stat().st_mtime),
    )
