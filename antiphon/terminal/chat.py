"""The chat itself: what is typed, what is asked, what is shown. It blocks, and its one owner is the
command that runs it.

Ctrl-C stops an answer at the server and gives the prompt back; a second one leaves. What is said
of that is what the server has said, never what is hoped.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, assert_never

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.terminal.answer import Answer, Stopped, stop
from antiphon.terminal.attached import Attached, check_seen
from antiphon.terminal.client import ApiClient
from antiphon.terminal.commands import Do, Mistyped, Say, help_lines, read
from antiphon.terminal.screen import Paper, Screen
from antiphon.terminal.telling import (
    advice_on,
    fates,
    figures,
    listed,
    named,
    pictures,
    sources,
    told_of_lost_stop,
    told_of_stop,
    warnings,
)
from antiphon.terminal.wire import Conversation, Event, Item, Part

_LISTED = 20
_SHOWN_ITEMS = 6
"""Of a conversation that is gone on with: its last turns."""
_LEAVE = "Ctrl-C again leaves, and so does /quit."


class Source(Protocol):
    """Where messages come from."""

    def read(self) -> str:
        """Raises KeyboardInterrupt, EOFError."""


class Chat:
    """One session, with one conversation at a time; it is made with the first message."""

    def __init__(self, client: ApiClient, screen: Screen, model: str) -> None:
        self._client = client
        self._screen = screen
        self._model = model
        self._conversation: Conversation | None = None
        self._attached = Attached(client, screen)
        self._listed: Sequence[Conversation] = ()
        self._is_leaving = False
        """Another Ctrl-C leaves."""

    def run(self, source: Source) -> None:
        """Until somebody leaves. What the server refuses or can't do is shown, and the next message
        may be typed."""
        while True:
            try:
                typed = read(source.read())
            except KeyboardInterrupt:
                if self._is_leaving:
                    return
                self._is_leaving = True
                self._screen.note(_LEAVE)
                continue
            except EOFError:
                return
            self._is_leaving = False
            try:
                match typed:
                    case None:
                        pass
                    case Say(text=text):
                        self.say(text)
                    case Mistyped(advice=advice):
                        self._screen.warn(advice)
                    case Do() as done:
                        if done.command.name == "quit":
                            return
                        self._do(done)
                    case _:
                        assert_never(typed)
            except (ApiRefused, ApiUnreachable) as error:
                self._screen.warn(advice_on(error))
            except KeyboardInterrupt:
                self._is_leaving = True
                self._screen.note(_LEAVE)

    @property
    def is_interrupted(self) -> bool:
        """Whether the last thing that happened was a Ctrl-C."""
        return self._is_leaving

    def leave(self) -> None:
        """Nothing is said any more."""
        self._attached.leave()

    def attach(self, typed: str) -> None:
        """Files for the next message. Raises ApiRefused, ApiUnreachable."""
        self._attached.add(typed, self._model)

    def say(self, text: str) -> bool:
        """Ask, with what is attached, and show the answer; whether there is a whole one. Raises
        ApiRefused, ApiUnreachable."""
        files = self._attached.parts
        check_seen(self._client, self._model, files)
        self._attached.note_tried()
        return self._ask(text, files)

    def _ask(self, text: str, files: Sequence[Part]) -> bool:
        began, first_at, last = time.monotonic(), None, None
        answer: Answer | None = None
        try:
            with self._screen.answer() as paper:
                paper.wait("")
                answer = Answer(
                    self._client,
                    text,
                    model=self._model,
                    conversation=self._begun().id,
                    files=files,
                )
                for event in answer.events():
                    if event.response is not None:
                        self._attached.note_sent(files)
                    if event.delta and first_at is None:
                        first_at = time.monotonic()
                    _show(event, paper)
                    last = event
        except KeyboardInterrupt:
            self._is_leaving = True
            self._stop(answer)
            return False
        return self._tell_end(last, began, first_at)

    def open(self, id: str, *, is_shown: bool = True) -> None:
        """Go on with a conversation, and show its last turns. Raises ApiRefused, ApiUnreachable."""
        self._conversation = self._client.conversation(id)
        if not is_shown:
            return
        self._show_items(self._client.items(id, limit=_SHOWN_ITEMS))
        self._screen.note(f"going on with {named(self._conversation)}")

    def open_latest(self, *, is_shown: bool = True) -> None:
        """The same with the one that was used last, if there is one."""
        latest = self._client.conversations(limit=1)
        if latest:
            self.open(latest[0].id, is_shown=is_shown)
        else:
            self._screen.note("There is no conversation yet: this is the first one.")

    def _stop(self, answer: Answer | None) -> None:
        """Say what is known. Another Ctrl-C doesn't wait for that."""
        try:
            self._screen.note(told_of_stop(Stopped.NOT_ASKED if answer is None else answer.stop()))
        except (ApiRefused, ApiUnreachable) as error:
            self._screen.warn(told_of_lost_stop(error.reason))
        except KeyboardInterrupt:
            self._screen.warn(told_of_lost_stop("nobody waited for it"))

    def _tell_end(self, last: Event | None, began: float, first_at: float | None) -> bool:
        response = None if last is None else last.response
        if last is None or response is None:
            reason = "" if last is None else last.message
            self._screen.warn(f"The answer broke off. {reason}".rstrip())
            return False
        for warning in warnings(response, self._model):
            self._screen.warn(warning)
        if unseen := fates(response.context.files, is_seen=False):
            self._screen.warn(unseen)
        for missing in pictures(response.context.images):
            self._screen.warn(missing)
        if cited := sources(response.output):
            self._screen.note(cited)
        if self._screen.is_rich:
            if seen := fates(response.context.files, is_seen=True):
                self._screen.note(seen)
            self._screen.note(figures(response, began, first_at))
        return response.status == "completed"

    def _do(self, done: Do) -> None:
        match done.command.name:
            case "help":
                self._screen.rows(help_lines())
                self._screen.note(
                    "Enter sends. Alt-Enter or a backslash at the end begin another line."
                )
            case "new":
                self._conversation = None
                self._screen.note("a new conversation")
            case "list":
                self._list(done.argument)
            case "open":
                self.open(self._meant(done.argument))
            case "show":
                self._show_items(self._client.items(self._known().id))
            case "regenerate":
                self._regenerate()
            case "attach" if done.argument:
                self.attach(done.argument)
            case "attach":
                self._attached.show()
            case "detach":
                self._attached.drop()
            case "stop":
                self._stop_running()
            case "model" if done.argument:
                self._choose(done.argument)
            case "model":
                self._screen.note(f"{self._model} answers")
            case "models":
                self._screen.rows(
                    [
                        each.id,
                        "sees pictures" if each.vision else "",
                        "answers" if each.id == self._model else "",
                    ]
                    for each in self._client.models()
                )
            case "title":
                self._conversation = self._client.rename(self._known().id, done.argument)
                self._screen.note(f"it is called {named(self._conversation)} now")
            case "export":
                self._export(Path(done.argument).expanduser())
            case "delete":
                self._client.delete(self._known().id)
                self._conversation = None
                self._screen.note("deleted, with all that was made of it; this is a new one")
            case name:
                raise AssertionError(name)

    def _begun(self) -> Conversation:
        if self._conversation is None:
            self._conversation = self._client.create_conversation()
        return self._conversation

    def _known(self) -> Conversation:
        """Raises ApiRefused where nothing was said yet."""
        if self._conversation is None:
            raise ApiRefused(0, "nothing_said", "Nothing was said yet in this conversation.")
        return self._conversation

    def _list(self, search: str) -> None:
        self._listed = self._client.conversations(search=search, limit=_LISTED)
        if not self._listed:
            self._screen.note("none")
        self._screen.rows(
            [
                str(number),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(each.updated_at)),
                each.id,
                each.title or "",
            ]
            for number, each in enumerate(self._listed, 1)
        )
        if self._listed:
            self._screen.note("/open NUMBER goes on with one")

    def _meant(self, argument: str) -> str:
        if not self._listed:
            self._listed = self._client.conversations(limit=_LISTED)
        if argument.isdecimal() and 1 <= int(argument) <= len(self._listed):
            return self._listed[int(argument) - 1].id
        return argument

    def _show_items(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.type == "message" and item.role == "user":
                self._screen.asked("\n".join([*listed(item.files), item.text]))
            elif item.type == "message":
                self._screen.said(item.text)
                if cited := sources([item]):
                    self._screen.note(cited)

    def _regenerate(self) -> None:
        """In a copy of the conversation up to the last message, so that no answer is lost."""
        items = self._client.items(self._known().id)
        asked = [place for place, item in enumerate(items) if item.role == "user"]
        if not asked or not (items[asked[-1]].text or items[asked[-1]].files):
            raise ApiRefused(0, "nothing_said", "There is no message to answer once more.")
        place = asked[-1]
        check_seen(self._client, self._model, items[place].files)
        if place == 0:
            self._conversation = None
        else:
            self._conversation = self._client.branch(self._known().id, items[place - 1].id)
        self._screen.note("once more, in a copy; the first answer is kept in /list")
        self._ask(items[place].text, items[place].files)

    def _stop_running(self) -> None:
        running = self._client.running(self._known().id)
        if running is None:
            self._screen.note("nothing runs in this conversation")
        else:
            self._screen.note(told_of_stop(stop(self._client, running.id)))

    def _choose(self, name: str) -> None:
        known = [each.id for each in self._client.models()]
        if name not in known:
            raise ApiRefused(404, "model_not_found", f"There is {', '.join(known)}; not {name}.")
        self._model = name
        self._screen.note(f"{name} answers from now on")

    def _export(self, file: Path) -> None:
        text = self._client.export(self._known().id)
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            raise ApiRefused(0, "not_written", f"{file}: {error.strerror or error}") from error
        self._screen.note(f"written to {file}")


def _show(event: Event, paper: Paper) -> None:
    match event.type:
        case "response.output_text.delta" | "response.refusal.delta":
            paper.write(event.delta)
        case "response.queued":
            paper.wait("waiting for a free slot")
        case "antiphon.connection_lost":
            paper.wait("connection lost; reading on from where it was")
        case _:
            pass
