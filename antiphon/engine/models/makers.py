"""How each kind of source becomes a folder's files: in a child process where native code is
needed."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import msgspec

from antiphon.engine.models.hub_files import read_chat_template, read_facts
from antiphon.engine.models.prepared import Facts
from antiphon.engine.models.progress import Progress
from antiphon.engine.models.reports import Failed, Prepared, Report, Stepped
from antiphon.errors import ModelUnsupported

_IR_FILES = tuple(
    f"openvino_{part}.{kind}"
    for part in ("model", "tokenizer", "detokenizer")
    for kind in ("xml", "bin")
)
_MODEL_FILES = _IR_FILES[:2]
_NEEDED = (*_IR_FILES, "tokenizer.json")
_TEMPLATE = "chat_template.jinja"
_LOG = "prepare.log"


def from_gguf(reference: str, source: Path, folder: Path, progress: Progress) -> Facts:
    """Fill `folder` from a GGUF file. Raises ModelUnsupported."""
    step = f"preparing {source.name}"
    facts = _prepare(reference, source, folder, step, progress)
    if facts is None:
        raise ModelUnsupported(reference, "preparing it ended, and it said nothing")
    _require_all(reference, folder, "OpenVINO wrote no")
    progress.advance(step, 1.0)
    return facts


def from_ir(reference: str, source: Path, folder: Path, progress: Progress) -> Facts:
    """Use an IR folder where it is: the prepared folder holds links to it, and the model in the
    engine's form. Raises ModelUnsupported."""
    _require_all(reference, source, "the folder has no")
    facts = read_facts(reference, source)
    template = read_chat_template(reference, source)
    step = f"preparing {source.name}"
    _prepare(reference, source, folder, step, progress)
    _require_all(reference, folder, "OpenVINO wrote no", _MODEL_FILES)
    for name in _NEEDED:
        if name not in _MODEL_FILES:
            (folder / name).symlink_to(source / name)
    (folder / _TEMPLATE).write_text(template, encoding="utf-8")
    progress.advance(step, 1.0)
    return facts


def from_checkpoint(reference: str, source: Path, folder: Path, progress: Progress) -> Facts:
    """Convert a Hugging Face checkpoint with optimum-intel. Raises ModelUnsupported."""
    try:
        importlib.metadata.version("optimum-intel")
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelUnsupported(
            reference,
            "converting a Hugging Face checkpoint needs optimum-intel, the extra `convert`: "
            f"{sys.executable} -m pip install 'optimum-intel[openvino]'",
        ) from error
    step = f"converting {source.name}"
    progress.advance(step, 0.0)
    messages = folder / _LOG
    # `-m optimum.exporters.openvino` ends at once without a word; this is what optimum-cli runs.
    command = [sys.executable, "-m", "optimum.commands.optimum_cli", "export", "openvino"]
    command += ["--model", str(source), "--task", "text-generation-with-past", str(folder)]
    with messages.open("wb") as output:
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
    if status != 0:
        raise ModelUnsupported(
            reference, f"converting it {_ending(status)}; {_last_line(messages)}"
        )
    messages.unlink()
    _require_all(reference, folder, "optimum-intel wrote no")
    _prepare(reference, folder, folder, step, progress)
    facts = read_facts(reference, folder)
    (folder / _TEMPLATE).write_text(read_chat_template(reference, folder), encoding="utf-8")
    progress.advance(step, 1.0)
    return facts


def _prepare(
    reference: str, source: Path, folder: Path, step: str, progress: Progress
) -> Facts | None:
    """Have a child fill `folder`; its facts, if the source holds any. Raises ModelUnsupported."""
    progress.advance(step, 0.0)
    command = [sys.executable, "-m", "antiphon.engine.models.preparing", str(source), str(folder)]
    messages = folder / _LOG
    with (
        messages.open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as child,
    ):
        try:
            facts = _listen(reference, step, child, progress)
            status = child.wait()
        except BaseException:
            child.kill()
            raise
    if status != 0:
        raise ModelUnsupported(reference, f"preparing it {_ending(status)}; {_last_line(messages)}")
    messages.unlink()
    return facts


def _listen(
    reference: str, step: str, child: "subprocess.Popen[bytes]", progress: Progress
) -> Facts | None:
    if child.stdout is None:
        return None
    for line in child.stdout:
        match msgspec.json.decode(line, type=Report):
            case Stepped(fraction=fraction):
                progress.advance(step, fraction)
            case Prepared(facts=facts):
                return facts
            case Failed(reason=reason):
                raise ModelUnsupported(reference, reason)
    return None


def _require_all(
    reference: str, folder: Path, complaint: str, names: tuple[str, ...] = _NEEDED
) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise ModelUnsupported(reference, f"{complaint} {name}")


def _ending(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"failed with status {status}"


def _last_line(messages: Path) -> str:
    lines = messages.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
