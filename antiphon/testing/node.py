"""Node.js for tests of JavaScript clients: the virtual environment's own, from a Python package."""

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_INSTALL_S = 300.0
_SCRIPT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProject:
    """A folder with its locked npm packages installed; `node` is the interpreter's path."""

    folder: Path
    node: str

    def said(self, script: str, *args: str) -> dict[str, Any]:
        """Run a script that prints a line of JSON a check, `{"check": …, "value": …}`; what each
        said."""
        result = subprocess.run(
            [self.node, script, *args],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_SCRIPT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        return {line["check"]: line["value"] for line in lines}


def install_node_project(source: Path, folder: Path, files: Sequence[str]) -> NodeProject:
    """Copy `files`, among them package.json and package-lock.json, and install what the lock names.

    Raises FileNotFoundError without Node.js, subprocess.CalledProcessError when npm fails.
    """
    scripts = sysconfig.get_path("scripts")
    search = os.pathsep.join([scripts, os.environ["PATH"]])
    node, npm = shutil.which("node", path=search), shutil.which("npm", path=search)
    if node is None or npm is None:
        raise FileNotFoundError("node and npm; the development lock installs both")
    for name in files:
        shutil.copy(source / name, folder / name)
    subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        env=os.environ | {"PATH": search},
        check=True,
        timeout=_INSTALL_S,
        capture_output=True,
    )
    return NodeProject(folder=folder, node=node)
