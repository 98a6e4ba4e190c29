"""`python -m antiphon.engine.models.preparing <source> <folder>`: fill the folder from a GGUF file,
or only put an IR folder's model into it, in the form that the engine wants; the two may be the
same folder.

Reports to its parent as JSON lines on standard output: a step, or the facts, or why not. Native
libraries print there too, so their output goes to standard error, and a native crash is only this
process's end.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from antiphon.engine.models.preparing.gguf_file import Unusable, read_gguf
from antiphon.engine.models.preparing.vocabulary import tokenizer_json
from antiphon.engine.models.reports import Failed, Prepared, Report, Stepped

_LINK = "source.gguf"

Tell = Callable[[Report], None]


def main(source: Path, folder: Path, out: BinaryIO) -> None:
    def tell(report: Report) -> None:
        out.write(msgspec.json.encode(report) + b"\n")
        out.flush()

    try:
        if source.is_dir():
            _write_model(source, folder, tell)
        else:
            _write_from_gguf(source, folder, tell)
    except Unusable as error:
        tell(Failed(reason=str(error)))
    except RuntimeError as error:
        # OpenVINO's messages are C++ paths and a sentence; the sentence comes last.
        tell(Failed(reason=f"OpenVINO can't load it: {str(error).strip().splitlines()[-1]}"))


def _write_from_gguf(source: Path, folder: Path, tell: Tell) -> None:
    """Raises Unusable, RuntimeError."""
    tell(Stepped(fraction=0.05))
    model = read_gguf(source)
    tell(Stepped(fraction=0.3))
    tokenizer = tokenizer_json(
        pre=model.pre, tokens=model.tokens, types=model.types, merges=model.merges
    )
    _write(folder / "tokenizer.json", json.dumps(tokenizer, ensure_ascii=False))
    _write(folder / "chat_template.jinja", model.chat_template)
    tell(Stepped(fraction=0.4))
    _write_ir(source, folder)
    _write_model(folder, folder, tell)
    tell(Prepared(facts=model.facts))


def _write_ir(source: Path, folder: Path) -> None:
    """OpenVINO saves the IR beside the file it loaded, so it loads a link inside the folder."""
    import openvino_genai  # loading it takes a second, and a refusal needs none

    link = folder / _LINK
    link.symlink_to(source)
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.num_kv_blocks = 1
    save = {"enable_save_ov_model": True}
    openvino_genai.ContinuousBatchingPipeline(str(link), scheduler, "CPU", save, save)
    link.unlink()


def _write_model(source: Path, folder: Path, tell: Tell) -> None:
    from antiphon.engine.openvino.aliases import write_with_aliases

    tell(Stepped(fraction=0.8))
    write_with_aliases(source, folder)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as reports:
        os.dup2(2, 1)
        main(Path(sys.argv[1]), Path(sys.argv[2]), reports)
