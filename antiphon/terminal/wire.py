"""What a client reads of the API's objects: the fields that it shows, all others ignored, so that
a server may be newer."""

from typing import Any

import msgspec

VISION = "vision"
"""The purpose of an uploaded picture that a model is to see."""
FILE, IMAGE = "input_file", "input_image"


class Model(msgspec.Struct, frozen=True):
    id: str
    vision: bool = False
    """Whether it sees pictures, as far as its server knows."""


class Conversation(msgspec.Struct, frozen=True):
    id: str
    title: str | None = None
    updated_at: int = 0


class Annotation(msgspec.Struct, frozen=True):
    """A place in a text, and where it has that from."""

    type: str = ""
    file_id: str = ""
    filename: str = ""


class Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    refusal: str = ""
    file_id: str = ""
    filename: str = ""
    annotations: tuple[Annotation, ...] = ()


class Item(msgspec.Struct, frozen=True):
    """`content` is absent where it is no message."""

    id: str = ""
    type: str = "message"
    role: str = ""
    content: tuple[Part, ...] | str = ()

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text or part.refusal for part in self.content)

    @property
    def files(self) -> tuple[Part, ...]:
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if part.type in {FILE, IMAGE} and part.file_id)

    @property
    def cited(self) -> tuple[Annotation, ...]:
        """The files that it is from, each once."""
        if isinstance(self.content, str):
            return ()
        annotations = [each for part in self.content for each in part.annotations]
        files = {each.file_id: each for each in annotations if each.type == "file_citation"}
        return tuple(files.values())


class Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0


class Problem(msgspec.Struct, frozen=True):
    message: str = ""
    code: str | None = None


class Incomplete(msgspec.Struct, frozen=True):
    reason: str = ""


class Run(msgspec.Struct, frozen=True):
    """Items in a row that became the same in the context of a response."""

    kind: str = ""
    fate: str = ""
    items: int = 0


class ShownFile(msgspec.Struct, frozen=True):
    """What the model was shown of a file; `reason` says why nothing."""

    filename: str = ""
    fate: str = ""
    excerpts: int = 0
    reason: str | None = None


class ShownImage(msgspec.Struct, frozen=True):
    """What became of a picture of the conversation."""

    fate: str = ""


class Context(msgspec.Struct, frozen=True):
    runs: tuple[Run, ...] = ()
    files: tuple[ShownFile, ...] = ()
    images: tuple[ShownImage, ...] = ()


class Response(msgspec.Struct, frozen=True):
    id: str
    status: str = ""
    model: str = ""
    usage: Usage | None = None
    error: Problem | None = None
    incomplete_details: Incomplete | None = None
    context: Context = Context()
    output: tuple[Item, ...] = ()


class UploadedFile(msgspec.Struct, frozen=True):
    id: str
    filename: str = ""
    bytes: int = 0
    purpose: str = ""

    @property
    def part(self) -> Part:
        """As a message has it."""
        kind = IMAGE if self.purpose == VISION else FILE
        return Part(type=kind, file_id=self.id, filename=self.filename)


class Page(msgspec.Struct, frozen=True):
    """One page of a list; whoever asks knows of what."""

    data: tuple[msgspec.Raw, ...] = ()


class Event(msgspec.Struct, frozen=True):
    """One event of a streamed answer."""

    type: str
    sequence_number: int = -1
    delta: str = ""
    response: Response | None = None
    code: str | None = None
    message: str = ""


class Refusal(msgspec.Struct, frozen=True):
    error: Problem = Problem()


Body = dict[str, Any]
