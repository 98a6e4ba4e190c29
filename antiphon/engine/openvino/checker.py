"""The schema checker's process: reads schemas on stdin, says what the pipeline would say to each.

It asks a real pipeline with the model's own tokenizer and a toy of a language model, which loads in
a tenth of a second: `python -m antiphon.engine.openvino.checker`.
"""

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import openvino_genai

from antiphon.engine.openvino.sampling import NATIVE_ERRORS, plain_reason, prompt_tensor
from antiphon.engine.openvino.toy import toy_model
from antiphon.processes.lifeline import die_with_parent

_TOKENIZER_FILES = (
    "openvino_tokenizer.xml",
    "openvino_tokenizer.bin",
    "openvino_detokenizer.xml",
    "openvino_detokenizer.bin",
)
_ANYTHING = "true"
"""A schema that must be good; a folder without a tokenizer loads, and then nothing is."""
_MEMORY_BYTES = 1024**3
"""Beyond what the process maps already. A valid schema of 70 kB can take more than twice that."""
_TOO_LARGE = "the schema is too complex: compiling it takes too much memory"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What stdout carries for each schema; `last`: this process must not be asked again."""

    problem: str | None
    last: bool = False


class Checker:
    """A pipeline that may be thrown away."""

    def __init__(self, model_dir: Path, vocabulary: int) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.num_kv_blocks = 2
        properties = {"INFERENCE_NUM_THREADS": 1, "sampler_num_threads": 1}
        with tempfile.TemporaryDirectory(prefix="antiphon-checker-") as folder:
            toy_model(vocabulary, Path(folder))
            for name in _TOKENIZER_FILES:
                (Path(folder) / name).symlink_to(model_dir.absolute() / name)
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(
                folder, scheduler, "CPU", properties
            )
        self._next_id = 1

    def problem(self, schema: str) -> str | None:
        """What is wrong with the schema, in the grammar compiler's words; None when nothing is.
        Raises MemoryError, after which the process is of no more use."""
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = 1
        structure = openvino_genai.StructuredOutputConfig()
        structure.json_schema = schema
        config.structured_output_config = structure
        handle: Any = None
        try:
            handle = self._pipeline.add_request(self._next_id, prompt_tensor([0]), config)
            self._pipeline.step()
        except MemoryError:
            raise
        except NATIVE_ERRORS as error:
            if handle is not None:
                handle.cancel()
                self._pipeline.step()
            return plain_reason(error)
        finally:
            self._next_id += 1
        return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, required=True)
    arguments = parser.parse_args()
    die_with_parent()
    # Native code may print on file descriptor 1, which carries our answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    checker = Checker(arguments.model_dir, arguments.vocabulary)
    if (problem := checker.problem(_ANYTHING)) is not None:
        sys.exit(f"the schema checker can't check: {problem}")
    _limit_memory()
    answers.write(b"ready\n")
    for line in sys.stdin.buffer:
        try:
            problem = checker.problem(msgspec.json.decode(line, type=str))
            answer = Answer(problem=problem)
        except MemoryError:
            answer = Answer(problem=_TOO_LARGE, last=True)
        answers.write(msgspec.json.encode(answer) + b"\n")


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + _MEMORY_BYTES, hard))


if __name__ == "__main__":
    main()
