"""The real process and socket around an engine that spells "hello"."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from antiphon.engine.config import HostConfig
from antiphon.engine.process import HostLauncher, HostLink
from antiphon.errors import HostLost, HostProtocolError
from antiphon.events import Abort, Admit, Fault, HostFrame, Ready, Released, Sampling, Stats, Step
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.spelling import HANG
from antiphon.testing.vocabularies import END, byte_level_vocabulary

PATIENCE_S = 60.0


SERVER = """
import sys
from pathlib import Path

import trio

from antiphon.engine.config import HostConfig
from antiphon.engine.process import HostLauncher
from antiphon.events import Admit, Sampling
from antiphon.testing.spelling import HANG

async def main():
    config = HostConfig(model_dir=Path(sys.argv[1]), slots=2, window=64, stop_token_ids=(0,))
    link = await HostLauncher(config, module="antiphon.testing.spelling").launch()
    ready = await link.receive()
    admit = Admit(
        request=1, slot=0, prompt=[HANG], max_tokens=1, sampling=Sampling(), stop=[]
    )
    await link.send(admit)
    print(ready.pid, file=sys.stderr, flush=True)
    await trio.sleep_forever()

trio.run(main)
"""


def admit(request: int = 1, slot: int = 0, prompt: int = 1) -> Admit:
    return Admit(
        request=EngineRequest(request),
        slot=SlotIndex(slot),
        prompt=[prompt],
        max_tokens=50,
        sampling=Sampling(),
        stop=[],
    )


def spelling_launcher(folder: Path) -> HostLauncher:
    byte_level_vocabulary().save(str(folder / "tokenizer.json"))
    config = HostConfig(model_dir=folder, slots=2, window=64, stop_token_ids=(END,))
    return HostLauncher(config, module="antiphon.testing.spelling")


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[HostLink]:
    """A ready host, which is gone afterwards whatever the test did."""
    with trio.fail_after(PATIENCE_S):
        link = await spelling_launcher(folder).launch()
        try:
            assert isinstance(await link.receive(), Ready)
            yield link
        finally:
            link.kill()
            await link.aclose(grace_s=0)


async def until(link: HostLink, kind: type[HostFrame]) -> list[HostFrame]:
    frames = [await link.receive()]
    while not isinstance(frames[-1], kind):
        frames.append(await link.receive())
    return frames


def is_gone(pid: int) -> bool:
    """No process of that number, not even a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_an_answer_comes_back_through_the_socket(tmp_path: Path):
    async with running(tmp_path) as link:
        await link.send(admit())
        frames = await until(link, Released)

    texts = [text.text for frame in frames if isinstance(frame, Step) for text in frame.texts]
    assert "".join(texts) == "hello"


async def test_an_idle_host_says_that_it_lives(tmp_path: Path):
    async with running(tmp_path) as link:
        assert isinstance((await until(link, Stats))[-1], Stats)
        assert isinstance((await until(link, Stats))[-1], Stats)


async def test_closing_halts_the_host_and_reaps_it(tmp_path: Path):
    async with running(tmp_path) as link:
        await link.aclose(grace_s=PATIENCE_S)

        assert link._process.returncode == 0
        assert is_gone(link.pid)
        await link.aclose(grace_s=1)


async def test_a_host_that_does_not_halt_is_killed_after_the_grace(tmp_path: Path):
    async with running(tmp_path) as link:
        await link.send(admit(prompt=HANG))
        await link.aclose(grace_s=0.05)

        assert link._process.returncode == -signal.SIGKILL
        assert is_gone(link.pid)


async def test_closing_works_inside_a_cancelled_scope(tmp_path: Path):
    async with running(tmp_path) as link:
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.aclose(grace_s=PATIENCE_S)

        assert scope.cancelled_caught
        assert is_gone(link.pid)


async def test_a_killed_host_is_lost_with_the_signal_as_the_reason(tmp_path: Path):
    async with running(tmp_path) as link:
        os.kill(link.pid, signal.SIGKILL)

        with pytest.raises(HostLost, match="killed by signal 9"):
            await until(link, Released)
        with pytest.raises(HostLost):
            await link.send(admit())
        link.kill()


async def test_a_breach_of_the_protocol_is_told_and_ends_the_host(tmp_path: Path):
    async with running(tmp_path) as link:
        await link.send(admit(1, 0))
        await link.send(admit(1, 1))

        fault = (await until(link, Fault))[-1]
        assert isinstance(fault, Fault)
        assert (fault.code, fault.request) == ("protocol", None)
        with pytest.raises(HostLost, match="status 4"):
            await link.receive()


async def test_an_interrupt_from_the_terminal_is_not_the_hosts_business(tmp_path: Path):
    async with running(tmp_path) as link:
        os.kill(link.pid, signal.SIGINT)
        await link.send(admit())

        assert isinstance((await until(link, Released))[-1], Released)
    assert os.getpgid(0) != link.pid


async def test_a_host_ends_when_the_server_closes_its_socket(tmp_path: Path):
    async with running(tmp_path) as link:
        link._socket.close()
        with trio.fail_after(PATIENCE_S):
            await trio.to_thread.run_sync(link._process.wait)

        assert link._process.returncode == 0


def test_a_host_dies_with_a_server_that_is_killed_even_when_it_hangs(tmp_path: Path):
    byte_level_vocabulary().save(str(tmp_path / "tokenizer.json"))
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        host = os.pidfd_open(int(server.stderr.readline()))
        try:
            server.kill()
            ended, _, _ = select.select([host], [], [], PATIENCE_S)
        finally:
            os.close(host)

    assert ended


async def test_a_cancelled_send_still_arrives_whole_with_the_next(tmp_path: Path):
    async with running(tmp_path) as link:
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.send(admit(1, 0))
        await link.send(Abort(request=EngineRequest(9), slot=SlotIndex(1)))

        released = (await until(link, Released))[-1]
        assert isinstance(released, Released)
        assert released.request == 1


async def test_a_malformed_frame_breaks_the_protocol(tmp_path: Path):
    async with running(tmp_path) as link:
        link._decoder.feed(b"\x00\x00")

        with pytest.raises(HostProtocolError):
            await until(link, Released)


async def test_a_host_without_a_model_says_why_it_does_not_start(tmp_path: Path):
    config = HostConfig(model_dir=tmp_path, slots=2, window=64, stop_token_ids=(END,))
    link = await HostLauncher(config).launch()
    try:
        with trio.fail_after(PATIENCE_S):
            fault = await link.receive()
            assert isinstance(fault, Fault)
            assert fault.code == "start_failed"
            assert str(tmp_path) in fault.detail
            with pytest.raises(HostLost, match="status 3"):
                await link.receive()
    finally:
        await link.aclose(grace_s=1)


async def test_a_host_does_not_inherit_the_servers_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTIPHON_OPS_TOKEN", "a-secret-of-the-server")

    async with running(tmp_path) as link:
        environment = await trio.Path(f"/proc/{link.pid}/environ").read_bytes()

    assert b"PATH=" in environment
    assert b"a-secret-of-the-server" not in environment
