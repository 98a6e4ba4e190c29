"""axe-core in a page of a browser: what people with disabilities would stumble over."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from antiphon.testing.node import install_node_project

_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
_RUN = "(values) => axe.run(document, { runOnly: { type: 'tag', values } })"


def axe_script(source: Path, folder: Path) -> str:
    """axe-core, whole, from the npm lock in `source`, installed into `folder`."""
    install_node_project(source, folder, ["package.json", "package-lock.json"])
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """What it finds, in short."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate(_RUN, list(_RULES))
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
