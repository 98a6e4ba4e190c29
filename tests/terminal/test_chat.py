"""`antiphon chat` at a terminal and in a pipe, against a whole server with a scripted engine."""

import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from antiphon.events import Admit
from antiphon.testing.pseudo_terminal import Terminal, at_a_terminal
from antiphon.testing.scripted_server import ScriptedServer, scripted_server

pytestmark = pytest.mark.engine

CTRL_C, CTRL_D = "\x03", "\x04"


def four(admit: Admit) -> Iterable[str]:
    return ("one", " two", " three", " four")


def endless(admit: Admit) -> Iterable[str]:
    return itertools.islice(itertools.cycle(("word ", "after ")), 4000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("data")) as server:
        yield server


@pytest.fixture
def scripted(server: ScriptedServer) -> ScriptedServer:
    server.words = four
    return server


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def environment(scripted: ScriptedServer, state: Path) -> dict[str, str]:
    return {"ANTIPHON_API_URL": scripted.api, "XDG_STATE_HOME": str(state)}


@contextmanager
def chatting(environment: dict[str, str], *arguments: str) -> Iterator[Terminal]:
    with at_a_terminal(("chat", *arguments), environment) as terminal:
        terminal.expect("Ctrl-D leaves.")
        yield terminal


def ask(
    environment: dict[str, str], *arguments: str, given: str = ""
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "antiphon", "chat", *arguments],
        input=given,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def settled(server: ScriptedServer) -> int:
    """Requests with a slot, once there are none, or after a while."""
    for _ in range(100):
        if server.running() == 0:
            return 0
        time.sleep(0.02)
    return server.running()


def conversations(server: ScriptedServer) -> list[dict]:
    return httpx2.get(f"{server.api}/v1/conversations").json()["data"]


def test_an_answer_is_streamed_and_the_next_message_asked_for(environment: dict[str, str]):
    with chatting(environment) as terminal:
        terminal.say("hello")
        terminal.expect("one two three four")
        terminal.expect("4 tokens")
        terminal.prompted()
        terminal.type(CTRL_D)

        assert terminal.ended() == 0


def test_ctrl_c_stops_the_answer_frees_its_slot_and_gives_the_prompt_back(
    environment: dict[str, str], scripted: ScriptedServer
):
    scripted.words = endless
    with chatting(environment) as terminal:
        terminal.say("go on")
        terminal.expect("word after word")
        assert scripted.running() == 1

        terminal.type(CTRL_C)
        terminal.expect("the server has ended it")
        assert settled(scripted) == 0

        scripted.words = four
        terminal.say("and now")
        terminal.expect("one two three four")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0


def test_a_second_ctrl_c_leaves(environment: dict[str, str], scripted: ScriptedServer):
    scripted.words = endless
    with chatting(environment) as terminal:
        terminal.say("go on")
        terminal.expect("word after word")
        terminal.type(CTRL_C)
        terminal.expect("the server has ended it")
        terminal.prompted()
        terminal.type(CTRL_C)

        assert terminal.ended() == 0
    assert settled(scripted) == 0


def test_ctrl_c_at_the_prompt_says_how_to_leave(environment: dict[str, str]):
    with chatting(environment) as terminal:
        terminal.prompted()
        terminal.type("never sent" + CTRL_C)
        terminal.expect("Ctrl-C again leaves")
        terminal.say("hello")
        terminal.expect("one two three four")
        terminal.prompted()
        terminal.type(CTRL_C)
        terminal.expect("Ctrl-C again leaves")
        terminal.prompted()
        terminal.type(CTRL_C)

        assert terminal.ended() == 0


def test_markdown_is_drawn_once_however_often_it_grows(
    environment: dict[str, str], scripted: ScriptedServer
):
    scripted.words = lambda admit: (
        "# Title\n\n",
        "Some **bold",
        "** text.\n\n",
        "```python\n",
        "a = 1\n",
        "```\n\n",
        "- one\n",
        "- two\n",
    )
    with chatting(environment) as terminal:
        terminal.say("hello")
        terminal.expect("Title")
        terminal.expect("Some bold text.")
        terminal.expect("a = 1")
        terminal.expect("• two")
        terminal.expect("8 tokens")

        assert "**" not in terminal.shown.partition("Some bold text.")[2]


def test_an_answer_can_do_nothing_to_the_terminal(
    environment: dict[str, str], scripted: ScriptedServer
):
    hostile = (
        "before ",
        "\x1b]0;title\x07",
        "\x1b[2J",
        "\x9b31m",
        "\u202e",
        "[x](javascript:alert)",
        " after",
    )
    scripted.words = lambda admit: hostile
    with chatting(environment) as terminal:
        terminal.say("hello")
        terminal.expect("after")
        terminal.expect("tokens")

        assert b"\x1b]0;title" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw
        assert b"\x1b]8;" not in terminal.raw
        assert "\u202e" not in terminal.shown
        assert "\x9b" not in terminal.shown


def test_several_lines_are_one_message(environment: dict[str, str], scripted: ScriptedServer):
    with chatting(environment) as terminal:
        terminal.say("first\\\rsecond\x1b\rthird")
        terminal.expect("one two three four")
        terminal.say("/show")
        terminal.expect("> first")
        terminal.expect("> second")
        terminal.expect("> third")


def test_a_conversation_is_gone_on_with(environment: dict[str, str], scripted: ScriptedServer):
    with chatting(environment) as terminal:
        terminal.say("remember the word mango")
        terminal.expect("one two three four")
        terminal.expect("4 tokens")
    latest = conversations(scripted)[0]["id"]

    with at_a_terminal(("chat", "--continue"), environment) as terminal:
        terminal.expect("> remember the word mango")
        terminal.expect("one two three four")
        terminal.expect(latest)
        terminal.expect("Ctrl-D leaves.")
        terminal.say("more")
        terminal.expect("one two three four")
        terminal.expect("4 tokens")
    with at_a_terminal(("chat", "--conversation", latest), environment) as terminal:
        terminal.expect("> more")
        terminal.expect("one two three four")

    items = httpx2.get(f"{scripted.api}/v1/conversations/{latest}/items").json()["data"]
    assert len(items) == 4


def test_another_answer_is_made_in_a_copy(environment: dict[str, str], scripted: ScriptedServer):
    with chatting(environment) as terminal:
        for message in ("first", "second"):
            terminal.say(f"{message}")
            terminal.expect("4 tokens")
        scripted.words = lambda admit: ("another", " answer")
        before = len(conversations(scripted))
        terminal.say("/regenerate")
        terminal.expect("in a copy")
        terminal.expect("another answer")
        terminal.expect("2 tokens")
        terminal.say("/show")
        terminal.expect("> first")
        terminal.expect("one two three four")
        terminal.expect("> second")
        terminal.expect("another answer")

    assert len(conversations(scripted)) == before + 1


def test_conversations_are_listed_opened_named_exported_and_deleted(
    environment: dict[str, str], scripted: ScriptedServer, tmp_path: Path
):
    file = tmp_path / "chat.md"
    with chatting(environment) as terminal:
        terminal.say("about pomegranates")
        terminal.expect("4 tokens")
        terminal.say("/title Red fruit")
        terminal.expect("“Red fruit”")
        terminal.say("/new")
        terminal.expect("a new conversation")
        terminal.say("/list Red")
        terminal.expect("Red fruit")
        terminal.say("/open 1")
        terminal.expect("> about pomegranates")
        terminal.say(f"/export {file}")
        terminal.expect("written to")
        terminal.say(f"/export {file}")
        terminal.expect("exists")
        terminal.say("/delete")
        terminal.expect("deleted")

    assert "about pomegranates" in file.read_text()
    assert "Red fruit" not in [each["title"] for each in conversations(scripted)]


def test_help_models_and_mistakes(environment: dict[str, str], scripted: ScriptedServer):
    with chatting(environment) as terminal:
        terminal.say("/help")
        terminal.expect("/regenerate")
        terminal.expect("Alt-Enter")
        terminal.say("/models")
        terminal.expect(scripted.model)
        terminal.say("/model nothing")
        terminal.expect("not nothing")
        terminal.say("/hlep")
        terminal.expect("did you mean /help?")
        terminal.say("/show")
        terminal.expect("Nothing was said yet")
        terminal.say("/open conv_0")
        terminal.expect("conv_0")
        terminal.say("/quit")

        assert terminal.ended() == 0


def test_what_is_typed_is_kept_for_its_owner_alone(environment: dict[str, str], state: Path):
    with chatting(environment) as terminal:
        terminal.say("a secret thought")
        terminal.expect("4 tokens")
    file = state / "antiphon" / "chat_history"

    assert "a secret thought" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with chatting(environment, "--no-history") as terminal:
        terminal.say("another thought")
        terminal.expect("4 tokens")
    assert "another thought" not in file.read_text()


def test_a_file_goes_with_the_next_message_alone(
    environment: dict[str, str], scripted: ScriptedServer, tmp_path: Path
):
    file = tmp_path / "the word.txt"
    file.write_text("The code word is PELICAN.")
    with chatting(environment) as terminal:
        terminal.say("/attach")
        terminal.expect("nothing is attached")
        terminal.say(f"/attach {tmp_path / 'none.txt'}")
        terminal.expect("No such")
        terminal.say(f"/attach {file}")
        terminal.expect("the word.txt, 25 bytes: goes with the next message")
        terminal.say("/attach")
        terminal.expect("the word.txt")
        terminal.say("What is it?")
        terminal.expect("one two three four")
        terminal.expect("the word.txt: shown whole")
        terminal.say("/attach")
        terminal.expect("nothing is attached")
        terminal.say("/show")
        terminal.expect("> + the word.txt")
        terminal.say("/regenerate")
        terminal.expect("the word.txt: shown whole")
        terminal.say("/quit")

        assert terminal.ended() == 0
    for conversation in conversations(scripted)[:2]:
        path = f"{scripted.api}/v1/conversations/{conversation['id']}/items"
        asked = httpx2.get(path).json()["data"][-1]
        assert [part["type"] for part in asked["content"]] == ["input_file", "input_text"]


def test_what_was_attached_and_never_sent_is_not_kept(
    environment: dict[str, str], scripted: ScriptedServer, tmp_path: Path
):
    file = tmp_path / "never_sent.txt"
    file.write_text("text")
    with chatting(environment) as terminal:
        terminal.say(f"/attach {file}")
        terminal.expect("goes with the next message")
        terminal.say("/quit")
        assert terminal.ended() == 0

    kept = httpx2.get(f"{scripted.api}/v1/files").json()["data"]
    assert "never_sent.txt" not in [each["filename"] for each in kept]


def test_a_file_goes_with_one_message_in_a_pipe(
    environment: dict[str, str], scripted: ScriptedServer, tmp_path: Path
):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.bin").write_bytes(bytes(range(256)) * 8)
    files = [option for name in ("a.txt", "b.bin") for option in ("--file", str(tmp_path / name))]

    told = ask(environment, *files, "What", "is", "this?")

    assert (told.returncode, told.stdout) == (0, "one two three four\n")
    assert "b.bin: not shown, it couldn't be read: " in told.stderr
    assert "a.txt: not shown" not in told.stderr


def test_only_the_answer_is_written_to_a_pipe(
    environment: dict[str, str], scripted: ScriptedServer
):
    ask(environment, "first")

    told = ask(environment, "--continue", "second")

    assert told.stdout == "one two three four\n"


def test_one_message_is_answered_in_a_pipe(environment: dict[str, str]):
    told = ask(environment, "What", "is", "this?")

    assert (told.returncode, told.stdout) == (0, "one two three four\n")
    assert told.stderr == ""


def test_ctrl_c_ends_the_one_answer_as_it_ends_other_commands(
    environment: dict[str, str], scripted: ScriptedServer
):
    scripted.words = endless
    with at_a_terminal(("chat", "--plain", "go", "on"), environment) as terminal:
        terminal.expect("word after word")
        assert scripted.running() == 1

        terminal.type(CTRL_C)

        assert terminal.ended() == 130
        assert "the server has ended it" in terminal.shown
    assert settled(scripted) == 0


def test_ctrl_c_in_a_pipe_ends_it_in_the_same_way(
    environment: dict[str, str], scripted: ScriptedServer
):
    scripted.words = endless
    command = [sys.executable, "-m", "antiphon", "chat", "go", "on"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(10) == b"word after"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in told
    assert settled(scripted) == 0


def test_the_files_that_an_answer_is_from_are_named(
    environment: dict[str, str], scripted: ScriptedServer, tmp_path: Path
):
    (tmp_path / "plan.txt").write_text("The meeting is on Monday.")
    scripted.words = lambda admit: ("On", " Monday", "【1】", ".")

    told = ask(environment, "--file", str(tmp_path / "plan.txt"), "When", "is", "it?")

    assert (told.returncode, told.stdout) == (0, "On Monday.\n")
    assert "from plan.txt" in told.stderr.splitlines()
    with chatting(environment, "--continue") as terminal:
        assert "from plan.txt" in terminal.shown


def test_conversations_are_found_by_what_was_said(environment: dict[str, str]):
    with chatting(environment) as terminal:
        terminal.say("about persimmons")
        terminal.expect("4 tokens")
        terminal.say("/list PERSIMMONS")
        terminal.expect("/open NUMBER")
        terminal.say("/list no such words")
        terminal.expect("none")


def test_what_comes_from_a_pipe_follows_the_message(
    environment: dict[str, str], scripted: ScriptedServer
):
    told = ask(environment, "Explain:", given="line one\nline two\n")

    latest = conversations(scripted)[0]["id"]
    items = httpx2.get(f"{scripted.api}/v1/conversations/{latest}/items").json()["data"]
    assert told.returncode == 0
    assert items[-1]["content"][0]["text"] == "Explain:\n\nline one\nline two"


def test_an_empty_pipe_is_no_question(environment: dict[str, str]):
    told = ask(environment)

    assert told.returncode == 2
    assert "there is nothing to ask" in told.stderr


def test_without_a_server_it_says_how_to_start_one(environment: dict[str, str]):
    told = ask(environment | {"ANTIPHON_API_URL": "http://127.0.0.1:9"}, "hello")

    assert told.returncode == 1
    assert "no answer from http://127.0.0.1:9" in told.stderr
    assert "antiphon serve" in told.stderr
    assert "Traceback" not in told.stderr


def test_an_answer_that_is_not_whole_has_a_status(
    environment: dict[str, str], scripted: ScriptedServer
):
    told = ask(environment, "--model", "nothing", "hello")

    assert told.returncode == 1
    assert "nothing" in told.stderr
