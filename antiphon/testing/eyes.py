"""A whole server in a process of its own, in front of two scripted clusters at real sockets, of
which one sees images. They are asked what clients ask, and nothing in the background."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon.testing.images import png
from antiphon.testing.page_server import served_replica
from antiphon.testing.process import ServerProcess, running_server
from antiphon.testing.replicas import ScriptedReplica

_SETTINGS = """\
model_name = "blind"
[engine]
kind = "upstream"
[upstream]
urls = {blind}
model = "m"
window = 4096
[pools.eyes]
model = "m"
model_name = "eyes"
[pools.eyes.engine]
kind = "upstream"
[pools.eyes.upstream]
urls = {eyes}
model = "m"
window = 4096
vision = "on"
[aliases.auto]
models = ["blind", "eyes"]
[context]
titles = false
[files]
images = 3
image_mib = 1
image_megapixels = 1.0
"""
PNG = png(280, 280)
"""A hundred patches."""


@dataclass(slots=True)
class World:
    """Settings of a server, and what is behind it."""

    config: Path
    blind: ScriptedReplica
    eyes: ScriptedReplica

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[ServerProcess]:
        """One that keeps everything there."""
        database = f"sqlite:///{folder}/antiphon.db"
        with running_server(
            self.config, ANTIPHON_DATABASE_URL=database, ANTIPHON_DATA_DIR=str(folder)
        ) as process:
            yield process

    def seen(self) -> list[Any]:
        """What the user's last message was, as the cluster that sees was sent it."""
        content = _last(self.eyes)
        assert isinstance(content, list)
        return content

    def told(self) -> str:
        """The same of the one that doesn't."""
        text = _last(self.blind)
        assert isinstance(text, str)
        return text


@contextlib.contextmanager
def eyes_and_blind(folder: Path) -> Iterator[World]:
    """The clusters, for the length of the block; nothing is in front of them yet."""
    blind, eyes = ScriptedReplica(first_s=0.01), ScriptedReplica(first_s=0.01)
    with served_replica(blind) as one, served_replica(eyes) as other:
        config = folder / "antiphon.toml"
        config.write_text(_SETTINGS.format(blind=json.dumps([one]), eyes=json.dumps([other])))
        yield World(config, blind, eyes)


def _last(replica: ScriptedReplica) -> Any:
    return [each for each in replica.bodies[-1]["messages"] if each["role"] == "user"][-1][
        "content"
    ]
