"""The files of the chat page: read once, compressed once, and named by what is in them.

All of them stand under one version, made of every byte they have, so that modules find each other
by relative paths and any change of one changes the address of all.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_ROOM = "antiphon.http.web"
_FOLDERS = ("static", "libraries")
_PAGE = "static/index.html"
_LEAST_COMPRESSED = 512
"""Below that a packet is a packet."""
_LAZY = "libraries/highlight/languages/"
"""Asked for where an answer has code in that language, and not before."""
_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file, as it is and as it travels."""

    body: bytes
    packed: bytes | None
    """By gzip; None where that gains nothing."""
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """The page, and what it asks for by `/web/<version>/<name>`."""

    version: str
    page: Asset
    files: Mapping[str, Asset]


@cache
def load_assets() -> Assets:
    """Everything, from the package."""
    found = {name: path.read_bytes() for name, path in _walk(files(_ROOM)) if _kind(name)}
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(found[name]), found[name]))
    version = digest.hexdigest()[:16]
    page = _with_places(found.pop(_PAGE).decode("utf-8"), version, sorted(found))
    return Assets(
        version=version,
        page=_asset(_PAGE, page.encode("utf-8")),
        files={name: _asset(name, body) for name, body in found.items()},
    )


def _walk(room: Traversable) -> Iterator[tuple[str, Traversable]]:
    waiting = [(name, room / name) for name in _FOLDERS]
    while waiting:
        name, path = waiting.pop()
        if path.is_dir():
            waiting += [(f"{name}/{each.name}", each) for each in path.iterdir()]
        else:
            yield name, path


def _kind(name: str) -> str | None:
    return _MEDIA_TYPES.get(name.rpartition(".")[2])


def _with_places(page: str, version: str, names: list[str]) -> str:
    """The page with its addresses filled in. A browser would find modules only one after another,
    each by reading the one before it: it is told of all of them at once."""
    modules = [name for name in names if name.endswith(".js") and not name.startswith(_LAZY)]
    preloads = "\n    ".join(
        f'<link rel="modulepreload" href="/web/{version}/{name}">' for name in modules
    )
    return page.replace("{modules}", preloads).replace("{web}", f"/web/{version}")


def _asset(name: str, body: bytes) -> Asset:
    # No time in it: the same file is the same bytes on every server.
    packed = gzip.compress(body, 9, mtime=0) if len(body) >= _LEAST_COMPRESSED else body
    return Asset(
        body=body,
        packed=packed if len(packed) < len(body) else None,
        media_type=_kind(name) or "application/octet-stream",
        etag=hashlib.sha256(body).hexdigest()[:32],
    )
