"""The page's files: what is served, how, and what it weighs."""

import gzip
import hashlib
import re
import shutil
import subprocess
import tomllib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from antiphon.http.app import make_api_app
from antiphon.http.web.assets import load_assets
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import Served, serving
from antiphon.testing.node import install_node_project
from antiphon.testing.telemetry import RecordingTelemetry

WEB = Path(__file__).resolve().parents[2] / "antiphon/http/web"
HERE = Path(__file__).parent
MOST_BYTES = 250_000


@dataclass(frozen=True, slots=True)
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


class Site:
    """Asks byte for byte: a client would put a path in order before it sends it."""

    def __init__(self, served: Served) -> None:
        self.served = served

    async def get(self, path: str, method: str = "GET", **headers: str) -> Got:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = [f"{method} {path} HTTP/1.1", "host: test", "connection: close", *lines]
        client = await self.served.connect()
        await client.send("\r\n".join([*head, "", ""]).encode())
        status, _, rest = (await client.read_head()).decode().partition("\r\n")
        told = [line.partition(": ") for line in rest.strip().split("\r\n")]
        named = {name.lower(): value for name, _, value in told}
        return Got(int(status.split()[1]), named, await client.read_to_end())


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    app = make_api_app(
        ScriptedChat(),
        HttpSettings,
        GenerationSettings,
        RecordingTelemetry(),
        accounts=ScriptedAccounts(),
    )
    async with serving(app, HttpSettings()) as served:
        yield Site(served)


def names() -> list[str]:
    return sorted(load_assets().files)


async def test_the_page_may_do_nothing_but_what_it_does(site):
    answer = await site.get("/")
    policy = answer.headers["content-security-policy"]

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(site):
    text = (await site.get("/")).body.decode()

    assert re.findall(r"<script(?![^>]* src=)", text) == []
    assert "<style" not in text
    assert re.findall(r" (?:on\w+|style)=", text) == []
    assert [
        url for url in re.findall(r'(?:src|href)="([^"]*)"', text) if not url.startswith("/web/")
    ] == []


async def test_a_conversation_s_address_is_the_page_too_and_tells_nothing(site):
    page, one = await site.get("/"), await site.get("/c/conv_whoever")

    assert (one.status, one.body) == (200, page.body)
    assert one.headers["content-security-policy"] == page.headers["content-security-policy"]


async def test_a_page_that_is_known_is_not_sent_again(site):
    first = await site.get("/")
    again = await site.get("/", if_none_match=first.headers["etag"])

    assert (again.status, again.body) == (304, b"")
    assert first.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("encoding", ["gzip", "br, gzip;q=0.8", "", "gzip;q=0"])
async def test_files_are_kept_for_ever_and_sent_small_to_those_who_can_read_that(site, encoding):
    assets = load_assets()
    name = "static/main.js"
    answer = await site.get(f"/web/{assets.version}/{name}", accept_encoding=encoding)
    is_packed = encoding not in {"", "gzip;q=0"}

    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert ("content-encoding" in answer.headers) == is_packed
    assert (gzip.decompress(answer.body) if is_packed else answer.body) == assets.files[name].body


@pytest.mark.parametrize(
    "path",
    [
        "/web/{version}/../routes.py",
        "/web/{version}/static/../../routes.py",
        "/web/{version}/%2e%2e/routes.py",
        "/web/{version}/static/%2e%2e/%2e%2e/%2e%2e/app.py",
        "/web/{version}//etc/passwd",
        "/web/{version}/static/",
        "/web/{version}/libraries/libraries.toml",
        "/web/0000000000000000/static/main.js",
        "/web/{version}/static/index.html",
        "/web/",
    ],
)
async def test_there_is_nothing_beside_the_files(site, path):
    answer = await site.get(path.format(version=load_assets().version))

    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"


async def test_nothing_but_reading_is_possible(site):
    file = f"/web/{load_assets().version}/static/main.js"

    assert (await site.get("/", "POST")).status == 405
    assert (await site.get(file, "DELETE")).status == 405
    assert (await site.get(file, "HEAD")).status == 200


async def test_every_module_that_is_imported_is_there_and_preloaded(site):
    text = (await site.get("/")).body.decode()
    assets = load_assets()
    for name in names():
        if not name.startswith("static/") or not name.endswith(".js"):
            continue
        assert f"/web/{assets.version}/{name}" in text
        for path in re.findall(r'(?:from|import) "([^"]+)"', assets.files[name].body.decode()):
            found = (Path("/") / name).parent.joinpath(path).resolve()
            assert str(found).removeprefix("/") in assets.files, (name, path)


def test_all_of_it_weighs_little():
    assets = load_assets()
    weight = sum(len(each.packed or each.body) for each in [assets.page, *assets.files.values()])

    assert weight <= MOST_BYTES


def test_libraries_are_what_was_published():
    pins = tomllib.loads((WEB / "libraries/libraries.toml").read_text())["libraries"]
    pinned = {name: file["sha256"] for each in pins for name, file in each["files"].items()}
    there = {
        str(path.relative_to(WEB / "libraries")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (WEB / "libraries").rglob("*")
        if path.is_file() and path.name != "libraries.toml"
    }

    assert there == pinned


def test_modules_are_short():
    lengths = {
        str(path.relative_to(WEB)): len(path.read_text().splitlines())
        for path in (WEB / "static").rglob("*.js")
    }

    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_types_fit(tmp_path):
    files = ["package.json", "package-lock.json", "tsconfig.json"]
    project = install_node_project(HERE / "node", tmp_path, files)
    shutil.copytree(WEB / "static", tmp_path / "static")
    shutil.copytree(HERE / "node/libraries", tmp_path / "libraries")
    checked = subprocess.run(
        [project.node, tmp_path / "node_modules/typescript/bin/tsc", "-p", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.stdout == ""
    assert checked.returncode == 0
