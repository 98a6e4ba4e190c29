"""Images on their way to a replica: which replicas see them, and their bytes as it is sent them.

Bytes are read once a generation has its slot: what waits for one holds none.
"""

import base64
from collections.abc import Iterable, Sequence

import trio

from antiphon.engine.upstream.fleet import Facts, Replica
from antiphon.engine.upstream.ports import Images
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.errors import StoreError
from antiphon.events import Image, Message
from antiphon.upstream_settings import UpstreamSettings

_INLINE_BYTES = 262_144
"""More is encoded in a thread: every stream would feel it."""


def sees(settings: UpstreamSettings, facts: Iterable[Facts]) -> bool | None:
    """Whether any replica sees images; None while nobody has said anything of itself."""
    if settings.prompts == "tokens" or settings.vision == "off":
        return False
    if settings.vision == "on":
        return True
    known = [each.vision for each in facts]
    return any(known) if known else None


def blind(
    settings: UpstreamSettings, replicas: Iterable[Replica], messages: Sequence[Message]
) -> set[str]:
    """The names of replicas that can't be shown these messages."""
    if settings.vision == "on" or not any(message.images for message in messages):
        return set()
    return {
        replica.name
        for replica in replicas
        if replica.facts is not None and not replica.facts.vision
    }


async def urls_of(messages: Sequence[Message], images: Images | None) -> dict[str, str]:
    """The images of these messages as `data:` URLs, by their hashes. Raises Trouble for one that
    was deleted since, or can't be read."""
    urls: dict[str, str] = {}
    for image in (image for message in messages for image in message.images):
        if image.sha256 in urls:
            continue
        try:
            data = None if images is None else await images.read(image.sha256)
        except StoreError as error:
            raise Trouble(Kind.UNAVAILABLE, f"an image can't be read: {error}") from error
        if data is None:
            raise Trouble(Kind.INVALID, "an image is gone", "An image was deleted meanwhile.")
        urls[image.sha256] = await _url(image, data)
    return urls


async def _url(image: Image, data: bytes) -> str:
    head = f"data:{image.media_type};base64,"
    if len(data) <= _INLINE_BYTES:
        return head + base64.b64encode(data).decode()
    return head + (await trio.to_thread.run_sync(base64.b64encode, data)).decode()
