"""Lighthouse on pages of a running server: points for accessibility and for best practices, as a
phone sees a page and as a desktop does."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from antiphon.testing.node import NodeProject, install_node_project

Form = Literal["phone", "desktop"]

FORMS: tuple[Form, ...] = ("phone", "desktop")
FEWEST_POINTS = 95
_CATEGORIES = "accessibility,best-practices"
_CHROME = "--headless --no-sandbox --disable-background-networking"
_AUDIT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a page got in one category. `lost` names the audits that cost it points."""

    category: str
    points: int
    lost: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        return self.points >= FEWEST_POINTS


@dataclass(frozen=True, slots=True)
class Lighthouse:
    """One that is installed, and the browser that it drives."""

    project: NodeProject
    chromium: str

    def marks(self, url: str, form: Form) -> list[Mark]:
        """Raises subprocess.CalledProcessError with what it said, where it could not judge."""
        command = [
            *(self.project.node, "node_modules/lighthouse/cli/index.js", url),
            *("--output=json", "--output-path=stdout", "--quiet", "--no-enable-error-reporting"),
            *(f"--only-categories={_CATEGORIES}", f"--chrome-flags={_CHROME}"),
            # How fast a page is has tests of its own, and slowing it down takes time.
            "--throttling-method=provided",
            *(("--preset=desktop",) if form == "desktop" else ()),
        ]
        told = subprocess.run(
            command,
            cwd=self.project.folder,
            env=os.environ | {"CHROME_PATH": self.chromium},
            check=True,
            capture_output=True,
            text=True,
            timeout=_AUDIT_S,
        )
        return marks_of(json.loads(told.stdout))


def install_lighthouse(source: Path, folder: Path, chromium: str) -> Lighthouse:
    """The one that the npm lock in `source` names, whole, into `folder`."""
    project = install_node_project(source, folder, ["package.json", "package-lock.json"])
    return Lighthouse(project, chromium)


def marks_of(report: dict[str, Any]) -> list[Mark]:
    """A page that could not be loaded, or judged in all that counts, has no points."""
    return [_mark(each, report["audits"]) for each in report["categories"].values()]


def _mark(category: dict[str, Any], audits: dict[str, Any]) -> Mark:
    counted = [audits[each["id"]] for each in category["auditRefs"] if each["weight"]]
    lost = tuple(
        audit.get("errorMessage") or audit["title"]
        for audit in counted
        if audit["scoreDisplayMode"] == "error"
        or (audit["score"] is not None and audit["score"] < 1)
    )
    points = round(100 * (category["score"] or 0))
    return Mark(category=category["title"], points=points, lost=lost)
