"""What a turn's messages want of files, and the turn with what was found of them. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from antiphon.actors.context.material import with_files
from antiphon.events import Message, Turn
from antiphon.ids import FileId, UserId
from antiphon.messages import file_note
from antiphon.ports import ModelCard
from antiphon.retrieval import LOOKED_BACK, FilesAsked, Gathered
from antiphon.sources import FileSearch

_ATTACHED = re.compile(r"^\[Attached file: .*\]$", re.MULTILINE)
_WINDOW_SHARE = 4
"""Files that are shown whole may have that part of a window, all together."""


def asked_of(
    turn: Turn,
    *,
    user: UserId,
    files: Mapping[FileId, str],
    search: FileSearch | None,
    cards: Sequence[ModelCard],
    may_cite: bool,
) -> FilesAsked | None:
    """None where it wants nothing. `cards` are the models that it may be answered by."""
    if not files and search is None:
        return None
    said = _said_by_user(turn.messages)
    question = next(said, "")
    window = next((card.window for card in cards if card.name == turn.model), 0)
    return FilesAsked(
        user=user,
        question=question,
        before=tuple(islice(filter(None, said), LOOKED_BACK)),
        files=files,
        search=search,
        room=window // _WINDOW_SHARE,
        may_cite=may_cite,
    )


def attached(turn: Turn, gathered: Gathered) -> Turn:
    """The turn, whose model is shown what was found."""
    if not gathered.shown and not gathered.files:
        return turn
    made = with_files(turn.messages, turn.pieces, gathered.shown)
    return replace(
        turn,
        messages=made.messages,
        pieces=made.pieces,
        sources=gathered.sources,
        files=gathered.files,
    )


def _said_by_user(messages: Sequence[Message]) -> Iterator[str]:
    """The latest first, which is what is to be answered; each without the names of its files. As
    far back as is asked for: a conversation is long, and a message may be."""
    for each in reversed(messages):
        if each.role == "user":
            yield _ATTACHED.sub("", each.content).strip()


def named(messages: Sequence[Message], files: Mapping[FileId, str]) -> tuple[Message, ...]:
    """Where they name one of these files by its id, they say what it is called instead."""
    notes = {file_note({"file_id": id}): file_note({"filename": files[id]}) for id in files}
    return tuple(
        replace(
            each, content=_ATTACHED.sub(lambda found: notes.get(found[0], found[0]), each.content)
        )
        if notes and each.role == "user"
        else each
        for each in messages
    )
