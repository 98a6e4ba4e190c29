"""Images in a view: shown, or told of in words."""

from dataclasses import replace

import msgspec
import trio

from antiphon.actors.context.material import joined, with_files
from antiphon.actors.context.seeing import Sight, as_seen, settled, wanted
from antiphon.actors.context.viewing import Means, Viewer
from antiphon.engine.upstream import EstimatingTokenizer
from antiphon.events import Image, Message, Sampling, Turn
from antiphon.ids import FileId, ItemId, ModelName, RequestId, UserId
from antiphon.messages import text_and_images
from antiphon.records import File
from antiphon.views import ImageFate, Piece, PieceKind

SEES = Sight(sees=True, count=lambda image: 100)
BLIND = Sight()


def an_image(key: str = "a", /, line: int = 0, **fields: object) -> Image:
    given = {"file": FileId(f"file-{key}"), "media_type": "image/png", "width": 4, "height": 3}
    return Image(**{**given, "sha256": key, "line": line, **fields})


def said(content: str, *images: Image) -> Message:
    return Message(role="user", content=content, images=images)


def a_turn(*messages: Message, **fields: object) -> Turn:
    kinds = [PieceKind.HISTORY] * (len(messages) - 1) + [PieceKind.INPUT]
    pieces = tuple(
        Piece(kind=kind, item=ItemId(f"msg_{place}")) for place, kind in enumerate(kinds)
    )
    given = {"request": RequestId("r"), "model": ModelName("m"), "sampling": Sampling()}
    return Turn(**{**given, "messages": messages, "pieces": pieces, **fields})


def a_file(name: str, size: int) -> File:
    return File(
        id=FileId(f"file-{name}"),
        user=UserId("u"),
        filename=f"{name}.png",
        purpose="vision",
        media_type="image/png",
        bytes=size,
        sha256=f"hash-{name}",
        created_ms=0,
    )


def means(sight: Sight, window: int = 4096) -> Means:
    return Means(
        tokenizer=EstimatingTokenizer(),
        window=window,
        default_max_tokens=64,
        threads=trio.CapacityLimiter(1),
        sight=sight,
    )


def test_a_message_is_its_text_with_the_images_where_they_stand():
    first, second = an_image("a"), an_image("b", line=1)

    assert list(text_and_images(said("left\nright", first, second))) == [
        first,
        "left",
        second,
        "right",
    ]
    assert list(text_and_images(said("", first))) == [first]


def test_a_model_that_sees_none_is_told_what_there_was_in_its_place():
    turn = a_turn(said("Look:\nWell?", an_image(line=1, name="cat", file=FileId("file-c"))))

    [message] = as_seen(turn, BLIND).messages

    assert message.images == ()
    first, told, last = message.content.split("\n")
    assert (first, last) == ("Look:", "Well?")
    assert told.startswith('[Picture: "cat", PNG, 4 × 3 pixels. You can\'t see pictures')


def test_what_is_gone_is_told_where_the_rest_is_shown():
    turn = a_turn(said("x", an_image("a", missing="deleted"), an_image("b")))

    [message] = as_seen(turn, SEES).messages

    assert "It was deleted" in message.content.split("\n")[0]
    assert [(image.file, image.line) for image in message.images] == [("file-b", 1)]


def test_words_are_about_what_a_judge_has_changed_without_a_shift():
    message = said("my number is 12345678\nand this", an_image(line=1))
    changed = replace(message, content="my number is [gone]\nand this")

    assert list(text_and_images(changed))[1] == an_image(line=1)


def test_what_is_found_in_files_stands_before_the_message_and_its_images():
    turn = a_turn(said("one\ntwo", an_image(line=1)))
    made = with_files(turn.messages, turn.pieces, [(said("found\nmore"), None)])

    [message] = joined(list(zip(made.messages, [each.kind for each in made.pieces], strict=True)))

    texts = [each for each in text_and_images(message) if isinstance(each, str)]
    assert texts == ["found\nmore\n\none", "two"]


def test_the_newest_are_looked_for_and_the_others_are_left_out():
    turn = a_turn(said("1", an_image("a"), an_image("b")), said("2", an_image("c")))
    files = {FileId(f"file-{name}"): a_file(name, 10) for name in "abc"}

    ids = wanted(turn, 2)
    found = settled(turn, {id: files[id] for id in ids}, most_bytes=100)

    assert ids == ("file-c", "file-b")
    images = [image for message in found.messages for image in message.images]
    assert [image.missing for image in images] == ["left_out", None, None]
    assert [image.sha256 for image in images] == ["a", "hash-b", "hash-c"]


def test_together_they_have_no_more_bytes_than_may_be():
    turn = a_turn(said("1", an_image("a")), said("2", an_image("b")), said("3", an_image("c")))
    files = {
        FileId("file-c"): a_file("c", 60),
        FileId("file-b"): None,
        FileId("file-a"): a_file("a", 41),
    }

    found = settled(turn, files, most_bytes=100)

    assert [message.images[0].missing for message in found.messages] == [
        "left_out",
        "deleted",
        None,
    ]


async def test_images_count_into_the_prompt_and_into_the_manifest():
    turn = a_turn(said("hello", an_image()))

    plain = await Viewer().view(a_turn(said("hello")), means(SEES))
    view = await Viewer().view(turn, means(SEES))

    assert len(view.prompt) == len(plain.prompt) + 100
    assert view.manifest is not None
    assert view.manifest.prompt_tokens == len(view.prompt)
    [shown] = view.manifest.images
    assert (shown.fate, shown.tokens) == (ImageFate.SHOWN, 100)
    assert not view.manifest.is_missing_images
    assert view.messages[0].images == turn.messages[0].images


async def test_what_a_message_with_images_has_is_counted_for_each_model_anew():
    turn = a_turn(said("hello", an_image()))
    viewer = Viewer()

    seen = await viewer.view(turn, means(SEES))
    blind = await viewer.view(turn, means(BLIND))

    assert seen.counts == blind.counts == ()
    assert blind.manifest.images[0].fate is ImageFate.NO_VISION
    assert blind.manifest.is_missing_images
    assert blind.messages[0].images == ()
    assert "can't see" in blind.messages[0].content


async def test_what_is_dropped_for_want_of_room_is_told_with_its_images():
    turns = [said("look", an_image()), Message(role="assistant", content="I see. " * 40)] * 8
    turn = a_turn(*turns, said("and?"), truncation="auto")

    view = await Viewer().view(turn, means(SEES, window=600))

    assert len(view.prompt) + view.max_tokens <= 600
    fates = [each.fate for each in view.manifest.images]
    assert fates[0] is ImageFate.DROPPED
    assert fates == sorted(fates, key=lambda fate: fate is not ImageFate.DROPPED)
    kept = sum(len(message.images) for message in view.messages)
    assert kept == fates.count(ImageFate.SHOWN)


async def test_a_count_of_the_text_alone_does_not_hold_for_what_is_told_beside_it():
    turn = a_turn(said("hello", an_image()))
    counted = replace(turn, pieces=(msgspec.structs.replace(turn.pieces[0], tokens=1),))

    view = await Viewer().view(counted, means(BLIND))

    assert view.manifest is not None
    assert view.manifest.runs[0].tokens > 20
