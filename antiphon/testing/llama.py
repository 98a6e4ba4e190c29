"""llama-server, of the package `xllamacpp`, in a process of its own: somebody else's server, for
tests of upstream engines. Run as a module it is that process."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from antiphon.testing.models import downloaded_default_model

MODEL = "smollm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaServer:
    """A running one. Killing it is allowed."""

    process: "subprocess.Popen[str]"
    base_url: str


@contextlib.contextmanager
def running_llama(*, slots: int = 4, window: int = 256, port: int = 0) -> Iterator[LlamaServer]:
    """Serve the default model's own file, `window` tokens a slot. Raises RuntimeError when it does
    not start."""
    arguments = [str(downloaded_default_model()), str(slots), str(window), str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon.testing.llama", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        try:
            yield LlamaServer(process=process, base_url=f"{_address(process.stdout)}/v1")
        finally:
            process.kill()
            process.wait()


def _address(stdout: IO[str]) -> str:
    for line in stdout:
        if line.startswith("http://"):
            return line.strip()
    raise RuntimeError("llama-server did not start")


def _serve(model: Path, slots: int, window: int, port: int) -> None:
    """Until standard input ends: a test that is killed leaves no server behind."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {MODEL}
    params.port = port
    params.n_parallel = slots
    params.n_ctx = slots * window
    params.kv_unified = False
    # Its threads spin while they wait for each other: beside tests, two are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - it is how its starter learns of it
    sys.stdin.read()


if __name__ == "__main__":
    file, *numbers = sys.argv[1:]
    _serve(Path(file), *map(int, numbers))
