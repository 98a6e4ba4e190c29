"""Pictures that `antiphon chat` sends, against a whole server with one model that sees."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.testing.eyes import PNG, World, eyes_and_blind
from antiphon.testing.images import data_url
from antiphon.testing.pseudo_terminal import at_a_terminal


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with eyes_and_blind(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module")
def environment(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("kept")
    with world.running(folder) as process:
        yield {"ANTIPHON_API_URL": process.base_url, "XDG_STATE_HOME": str(folder)}


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "cat.png"
    file.write_bytes(PNG)
    return file


def ask(
    environment: dict[str, str], picture: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "antiphon", "chat", "--file", picture, *arguments, "What is this?"],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_model_that_sees_is_shown_the_picture(
    world: World, environment: dict[str, str], picture: Path
):
    told = ask(environment, picture, "--model", "eyes")

    assert (told.returncode, told.stdout) == (0, "one two three four\n")
    image, text = world.seen()
    assert image["image_url"]["url"] == data_url(PNG)
    assert text["text"] == "What is this?"


def test_one_that_sees_none_is_asked_nothing(
    world: World, environment: dict[str, str], picture: Path
):
    before = len(world.blind.bodies)

    told = ask(environment, picture, "--model", "blind")

    assert (told.returncode, told.stdout) == (1, "")
    assert "blind can't see any. These can: eyes, auto." in told.stderr
    assert len(world.blind.bodies) == before


def test_a_picture_waits_for_a_model_that_sees_and_is_shown_again(
    world: World, environment: dict[str, str], picture: Path
):
    with at_a_terminal(("chat", "--model", "eyes"), environment) as terminal:
        terminal.expect("Ctrl-D leaves.")
        terminal.say("/models")
        terminal.expect("sees pictures")
        terminal.say(f"/attach {picture}")
        terminal.expect("cat.png, 89 bytes: goes with the next message")
        terminal.say("/model blind")
        terminal.expect("blind answers from now on")
        terminal.say("What is this?")
        terminal.expect("These can: eyes, auto.")
        terminal.say("/model eyes")
        terminal.expect("eyes answers from now on")
        terminal.say("And now?")
        terminal.expect("one two three four")
        terminal.say("/show")
        terminal.expect("> + cat.png")
        terminal.expect("one two three four")
        world.eyes.bodies.clear()
        terminal.say("/regenerate")
        terminal.expect("one two three four")
        assert world.seen()[0]["image_url"]["url"] == data_url(PNG)
        terminal.say("/model blind")
        terminal.expect("blind answers from now on")
        terminal.say("Still there?")
        terminal.expect("The model didn't see 1 picture: it can't see any.")
        terminal.say("/quit")

        assert terminal.ended() == 0
