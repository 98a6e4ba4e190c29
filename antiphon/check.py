"""What `antiphon check` looks at: whether this machine can serve, and with what.

Native libraries are asked in a child process, so that one that crashes is a finding.
"""

import enum
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from antiphon.engine.cores import usable_cores
from antiphon.engine.models import ModelStore, use_checkpoint
from antiphon.engine_trt.installed import INSTALL, PACKAGE, is_installed
from antiphon.errors import ModelError, RulesError
from antiphon.policy.rulebook import default_rules, read_rules
from antiphon.policy_settings import PolicySettings
from antiphon.settings import Settings, parse_bind, pool_settings

_MIB = 1024 * 1024
_OLDEST_PYTHON = (3, 11)
_PREPARE_BYTES = 400 * _MIB
"""A wheel, the GGUF file out of it and the IR made of that, all at once, for the default model."""
_HOST_BYTES = 600 * _MIB
"""What an engine host of the default model holds beside its KV cache."""
_JUDGE_BYTES = 230 * _MIB
_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16")
_ASK_OPENVINO = """
import json, openvino, openvino_genai
core = openvino.Core()
print(json.dumps([openvino_genai.__version__, core.get_property("CPU", "FULL_DEVICE_NAME")]))
"""


_ASK_CLASSIFIER = "from antiphon.classifier import load; print(load().name)"


class Verdict(enum.Enum):
    OK = "ok"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report. Only MISSING keeps the server from working."""

    subject: str
    verdict: Verdict
    fact: str


def examine(settings: Settings) -> list[Finding]:
    pools = {name: pool_settings(settings, name) for name in ("", *settings.pools)}
    remote = {name: pool for name, pool in pools.items() if pool.engine.kind == "upstream"}
    local = {name: pool for name, pool in pools.items() if name not in remote}
    replicas = [each for name, pool in remote.items() for each in _replicas(pool, name)]
    if not local:
        return [
            _python(),
            *replicas,
            *_policy(settings.policy),
            _data_dir(settings.data_dir, needs_room=False),
            *_ports(settings),
        ]
    models = [_model(pool, name) for name, pool in local.items()]
    return [
        _python(),
        _openvino(),
        _cpu(local.values()),
        _memory(local.values(), settings.policy),
        *(model for _, model in models),
        *replicas,
        *_policy(settings.policy),
        _data_dir(settings.data_dir, needs_room=not all(cached for cached, _ in models)),
        *_ports(settings),
        _trt(local.values()),
        _extra("convert", "optimum-intel", "Hugging Face checkpoints"),
    ]


def _subject(what: str, pool: str) -> str:
    return f"pool {pool}: {what}" if pool else what


def _finding(subject: str, fine: bool, fact: str, otherwise: Verdict = Verdict.MISSING) -> Finding:
    return Finding(subject=subject, verdict=Verdict.OK if fine else otherwise, fact=fact)


def _python() -> Finding:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return _finding("python", sys.version_info >= _OLDEST_PYTHON, f"{version}, {sys.executable}")


def _openvino() -> Finding:
    fine, line = _ask(_ASK_OPENVINO)
    if not fine:
        return _finding("openvino", False, f"can't be loaded: {line}")
    version, device = json.loads(line)
    return _finding("openvino", True, f"GenAI {version} on {device}")


def _policy(policy: PolicySettings) -> Iterator[Finding]:
    """The rules, and the classifier as a judge loads it."""
    if not policy.enabled:
        yield _finding("policy", False, "off: nothing is judged", Verdict.NOTE)
        return
    try:
        rulebook = default_rules() if policy.rules is None else read_rules(policy.rules)
    except RulesError as error:
        yield _finding("policy", False, str(error))
        return
    shadows = sum(rule.shadow for rule in rulebook.rules)
    where = policy.rules or "those that come with the server"
    fact = f"version {rulebook.version}, {len(rulebook.rules)} rules, {shadows} of them shadows"
    yield _finding("policy", True, f"{fact}: {where}")
    fine, line = _ask(_ASK_CLASSIFIER)
    yield _finding("classifier", fine, line if fine else f"can't be loaded: {line}")


def _ask(program: str) -> tuple[bool, str]:
    """Whether a child process ran this program to its end, and the last line that it wrote."""
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    fine = child.returncode == 0
    lines = (child.stdout if fine else child.stderr).strip().splitlines()
    return fine, lines[-1] if lines else f"it ended with status {child.returncode}"


def _cpu(pools: Iterable[Settings]) -> Finding:
    cores = usable_cores()
    flags = _fields(Path("/proc/cpuinfo")).get("flags", "").split()
    features = [feature for feature in _FEATURES if feature in flags]
    threads = max(pool.engine.threads for pool in pools)
    enough = threads <= cores
    fact = f"{cores} cores, {platform.machine()}, {', '.join(features) or 'no AVX2'}"
    if not enough:
        fact += f"; engine.threads is {threads}"
    return _finding("cpu", enough and bool(features), fact, Verdict.NOTE)


def _memory(pools: Iterable[Settings], policy: PolicySettings) -> Finding:
    words = _fields(Path("/proc/meminfo")).get("MemAvailable", "0 kB").split()
    available = min(int(words[0]) * 1024, _cgroup_limit())
    # Each pool has a host of its own, also where two of them serve the same model.
    needed = sum(pool.engine.kv_cache_mib * _MIB + _HOST_BYTES for pool in pools)
    if policy.enabled:
        needed += policy.workers * _JUDGE_BYTES
    fact = f"{available // _MIB} MiB available; about {needed // _MIB} MiB needed"
    return _finding("memory", available >= needed, fact, Verdict.NOTE)


def _cgroup_limit() -> int:
    """A container's own limit, which /proc/meminfo does not know."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return sys.maxsize
    return int(text) if text.isdecimal() else sys.maxsize


def _model(settings: Settings, pool: str) -> tuple[bool, Finding]:
    subject = _subject("model", pool)
    try:
        if settings.engine.kind == "tensorrt-llm":
            published = use_checkpoint(settings.model)
            return True, _finding(subject, True, f"{published.name}, in {published.folder}")
        found = ModelStore(settings.data_dir).find(settings.model)
    except ModelError as error:
        return True, _finding(subject, False, str(error))
    if found is not None:
        return True, _finding(subject, True, f"{found.name}, prepared in {found.folder}")
    fact = f"{settings.model} is not prepared yet; the first start does it"
    if importlib.util.find_spec("pip") is None:
        return False, _finding(subject, False, f"{fact}, and fetching needs pip")
    return False, _finding(subject, False, fact, Verdict.NOTE)


def _replicas(settings: Settings, pool: str) -> list[Finding]:
    """The server starts without them where it knows its window; they are what it is for."""
    from antiphon.engine.upstream import survey  # not before it is asked for: it loads Trio

    known = bool(settings.upstream.window)
    otherwise = Verdict.NOTE if known else Verdict.MISSING
    looks = survey(settings.upstream)
    if any(look.is_well for look in looks):
        otherwise = Verdict.NOTE
    return [
        _finding(_subject(f"replica {look.name}", pool), look.is_well, look.fact, otherwise)
        for look in looks
    ]


def _data_dir(folder: Path, *, needs_room: bool) -> Finding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        return _finding("data_dir", False, f"{folder} can't be written")
    fact = f"{folder}, {free // _MIB} MiB free"
    if needs_room and free < _PREPARE_BYTES:
        return _finding("data_dir", False, f"{fact}; {_PREPARE_BYTES // _MIB} MiB needed")
    return _finding("data_dir", True, fact)


def _ports(settings: Settings) -> Iterator[Finding]:
    for key in ("bind", "ops_bind"):
        value = getattr(settings, key)
        host, port = parse_bind(key, value)
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            yield _finding(key, False, f"{value}: {error.strerror}")
        else:
            yield _finding(key, True, f"{value} is free")


def _trt(pools: Iterable[Settings]) -> Finding:
    if any(pool.engine.kind == "tensorrt-llm" for pool in pools) and not is_installed():
        fact = f"engine.kind is tensorrt-llm and {PACKAGE} is not installed: {INSTALL}"
        return _finding("extra trt", False, fact)
    return _extra("trt", PACKAGE, "NVIDIA GPUs through TensorRT-LLM")


def _extra(name: str, package: str, purpose: str) -> Finding:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        fact = f"{package} is not installed (optional: {purpose})"
        return _finding(f"extra {name}", False, fact, Verdict.NOTE)
    return _finding(f"extra {name}", True, f"{package} {version}: {purpose}")


def _fields(file: Path) -> dict[str, str]:
    """`name : value` lines, as /proc writes them; empty where there is no such file."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}
