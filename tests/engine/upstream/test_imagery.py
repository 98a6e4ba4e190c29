"""Images on their way to replicas that see them, and past those that don't."""

import base64

import pytest
import trio

from antiphon.actors.breaker import Breaker
from antiphon.engine.upstream import Upstream
from antiphon.engine.upstream.affinity import conversation_key
from antiphon.engine.upstream.dialect import Flavour, body_of
from antiphon.engine.upstream.fleet import Facts
from antiphon.engine.upstream.imagery import sees
from antiphon.errors import StoreFailed
from antiphon.events import (
    Admit,
    Fault,
    HostFrame,
    Image,
    Message,
    Ready,
    Released,
    Sampling,
    SlotText,
    Step,
)
from antiphon.ids import EngineRequest, FileId, SlotIndex
from antiphon.testing.replicas import ScriptedCluster, ScriptedReplica
from antiphon.upstream_settings import UpstreamSettings

PICTURE = b"\x89PNG, as far as anybody here can tell"
URL = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
IMAGE = Image(file=FileId("file-a"), media_type="image/png", width=3, height=2, line=1, sha256="a")


class Kept:
    """Where the bytes of images are."""

    def __init__(self, **images: bytes) -> None:
        self.images = images
        self.is_broken = False

    async def read(self, sha256: str) -> bytes | None:
        await trio.lowlevel.checkpoint()
        if self.is_broken:
            raise StoreFailed("the disk is gone")
        return self.images.get(sha256)


def an_admit(*images: Image) -> Admit:
    return Admit(
        request=EngineRequest(1),
        slot=SlotIndex(0),
        prompt=[0] * 9,
        max_tokens=8,
        sampling=Sampling(),
        stop=[],
        messages=(Message(role="user", content="Look:\nWell?", images=images),),
    )


async def answered(
    replicas: ScriptedCluster, kept: Kept, admit: Admit, **settings: object
) -> list[HostFrame]:
    """What concerns the request, up to its Released."""
    given = UpstreamSettings(
        urls=replicas.urls, model="m", slots=4, probe_s=0.1, wait_s=0.5, **settings
    )
    upstream = Upstream(lambda: given, Breaker, connect=replicas.connect, images=kept)
    stopping, frames = trio.Event(), list[HostFrame]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, lambda: None, stopping)
        await trio.testing.wait_all_tasks_blocked()
        link = await upstream.launch()
        assert isinstance(await link.receive(), Ready)
        while len(upstream.fleet.up) < len(replicas.replicas):
            await upstream.fleet.news()
        await link.send(admit)
        while not any(isinstance(frame, Released) for frame in frames):
            frame = await link.receive()
            frames += frame.texts if isinstance(frame, Step) else [frame]
        stopping.set()
    return frames


@pytest.mark.parametrize("owner", ["llamacpp", "sglang", "antiphon"])
@pytest.mark.parametrize("vision", [True, False])
async def test_what_a_server_says_of_itself_is_believed(autojump_clock, owner, vision):
    replica = ScriptedReplica(owned_by=owner, vision=vision)
    upstream = Upstream(
        lambda: UpstreamSettings(urls="http://r0/v1", model="m"),
        Breaker,
        connect=ScriptedCluster({"r0": replica}).connect,
    )
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, lambda: None, stopping)
        await trio.testing.wait_all_tasks_blocked()
        assert upstream.sees() is None
        link = await upstream.launch()
        ready = await link.receive()

        assert upstream.sees() is vision
        assert isinstance(ready, Ready)
        assert ready.capabilities.vision is vision
        stopping.set()


@pytest.mark.parametrize(
    ("settings", "known", "told"),
    [
        ({}, [], None),
        ({}, [None], False),
        ({}, [False, True], True),
        ({"vision": "on"}, [], True),
        ({"vision": "on"}, [False], True),
        ({"vision": "off"}, [True], False),
        ({"prompts": "tokens"}, [True], False),
    ],
)
def test_settings_say_it_for_servers_that_do_not(settings, known, told):
    facts = [
        Facts(flavour=Flavour.VLLM, engine=None, window=1, health="", vision=each) for each in known
    ]

    assert sees(UpstreamSettings(**settings), facts) is told


async def test_images_are_sent_as_parts_where_they_stand(autojump_clock):
    replica = ScriptedReplica()

    frames = await answered(
        ScriptedCluster({"r0": replica}), Kept(a=PICTURE), an_admit(IMAGE), vision="on"
    )

    [body] = replica.bodies
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}},
                {"type": "text", "text": "Well?"},
            ],
        }
    ]
    assert "".join(each.text for each in frames if isinstance(each, SlotText)) == (
        "one two three four"
    )


async def test_only_replicas_that_see_are_asked(autojump_clock):
    blind = ScriptedReplica(owned_by="llamacpp", vision=False)
    seeing = ScriptedReplica(owned_by="llamacpp", vision=True)
    replicas = ScriptedCluster({"r0": blind, "r1": seeing, "r2": blind})

    await answered(replicas, Kept(a=PICTURE), an_admit(IMAGE))

    assert (len(blind.bodies), len(seeing.bodies)) == (0, 1)


@pytest.mark.parametrize(("is_broken", "code"), [(False, "invalid_request"), (True, "unavailable")])
async def test_an_image_that_is_gone_fails_that_one_alone(autojump_clock, is_broken, code):
    replica, kept = ScriptedReplica(), Kept()
    kept.is_broken = is_broken

    frames = await answered(ScriptedCluster({"r0": replica}), kept, an_admit(IMAGE), vision="on")

    [fault] = [frame for frame in frames if isinstance(frame, Fault)]
    assert (fault.code, replica.bodies) == (code, [])


def test_conversations_that_begin_with_other_images_are_others():
    other = an_admit(Image(**{**_fields(IMAGE), "sha256": "b"}))

    assert conversation_key(an_admit(IMAGE)) != conversation_key(other)
    assert conversation_key(an_admit(IMAGE)) == conversation_key(an_admit(IMAGE))


def test_a_detail_that_others_do_not_know_is_left_out():
    admit = an_admit(Image(**{**_fields(IMAGE), "detail": "original"}))

    body = body_of(admit, UpstreamSettings(model="m"), Flavour.VLLM, {"a": URL})

    assert body["messages"][0]["content"][1] == {"type": "image_url", "image_url": {"url": URL}}


def _fields(image: Image) -> dict[str, object]:
    return {name: getattr(image, name) for name in Image.__slots__}
