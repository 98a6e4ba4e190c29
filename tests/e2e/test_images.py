"""Images through openai-python, unmodified: a whole server in a process of its own, in front of two
scripted clusters at real sockets, of which one sees images."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from antiphon.testing.eyes import PNG, World, eyes_and_blind
from antiphon.testing.images import GIF, WEBP, data_url, jpeg, png
from antiphon.testing.process import ServerProcess


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with eyes_and_blind(tmp_path_factory.mktemp("images")) as world:
        yield world


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with world.running(tmp_path_factory.mktemp("kept")) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0) as client:
        yield client


@contextlib.contextmanager
def reached(world: World, folder: Path) -> Iterator[openai.OpenAI]:
    with (
        world.running(folder) as process,
        openai.OpenAI(base_url=process.base_url, api_key="unused", max_retries=0) as client,
    ):
        yield client


def asked(*parts: Any, text: str = "What is this?") -> list[Any]:
    """The input of a response."""
    return [{"role": "user", "content": [*parts, {"type": "input_text", "text": text}]}]


def given(data: bytes = PNG, **fields: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(data), **fields}


def chatted(*urls: str, text: str = "What is this?") -> list[Any]:
    images = [{"type": "image_url", "image_url": {"url": url, "detail": "high"}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": text}, *images]}]


def images_of(response: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = response.model_dump()["context"].get("images", [])
    return found


def test_models_say_whether_they_see(client: openai.OpenAI):
    told = {each.id: each.model_dump()["vision"] for each in client.models.list()}

    assert told == {"blind": False, "eyes": True, "auto": True}


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_sees_an_image(client: openai.OpenAI, world: World, stream: bool):
    answer = client.responses.create(
        model="eyes", input=asked(given(detail="low")), stream=stream, max_output_tokens=16
    )
    response = list(answer)[-1].response if stream else answer

    assert response.output_text == "one two three four"
    assert world.seen() == [
        {"type": "image_url", "image_url": {"url": data_url(PNG), "detail": "low"}},
        {"type": "text", "text": "What is this?"},
    ]
    [image] = images_of(response)
    assert image["fate"] == "shown"
    assert (image["width"], image["height"], image["tokens"]) == (280, 280, 100)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_a_chat_sees_an_image(client: openai.OpenAI, world: World, stream: bool, store: bool):
    answer = client.chat.completions.create(
        model="eyes", messages=chatted(data_url(PNG)), stream=stream, store=store, max_tokens=16
    )
    if stream:
        text = "".join(each.choices[0].delta.content or "" for each in answer if each.choices)
    else:
        text = answer.choices[0].message.content

    assert text == "one two three four"
    assert world.seen() == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": data_url(PNG), "detail": "high"}},
    ]


def test_a_kept_chat_shows_its_images(client: openai.OpenAI):
    kept = client.chat.completions.create(
        model="eyes", messages=chatted(data_url(PNG)), store=True, max_tokens=16
    )

    [message] = client.chat.completions.messages.list(kept.id).data
    told = message.model_dump()

    assert told["content"] == "What is this?"
    text, image = told["content_parts"]
    assert (text["type"], text["text"]) == ("text", "What is this?")
    _, _, _, file, _ = image["image_url"]["url"].split("/")
    assert client.files.content(file).read() == PNG


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(jpeg(), "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")],
    ids=["jpeg", "gif", "webp"],
)
def test_the_type_is_what_the_bytes_say_and_not_what_is_declared(
    client: openai.OpenAI, world: World, data: bytes, media_type: str
):
    lie = {"type": "input_image", "image_url": data_url(data, "text/html")}

    client.responses.create(model="eyes", input=asked(lie), store=False)

    assert world.seen()[0]["image_url"]["url"] == data_url(data, media_type)


def test_an_uploaded_file_is_seen_by_its_id(client: openai.OpenAI, world: World):
    file = client.files.create(file=("cat.png", PNG), purpose="vision")

    response = client.responses.create(
        model="eyes", input=asked({"type": "input_image", "file_id": file.id, "detail": "auto"})
    )

    assert world.seen()[0]["image_url"]["url"] == data_url(PNG)
    [item] = client.responses.input_items.list(response.id).data
    part = item.model_dump()["content"][0]
    assert (part["type"], part["file_id"], part["detail"]) == ("input_image", file.id, "auto")
    assert (part["media_type"], part["width"], part["height"]) == ("image/png", 280, 280)


def test_what_items_say_of_images_can_be_sent_back(client: openai.OpenAI, world: World):
    first = client.responses.create(model="eyes", input=asked(given()))
    [item] = client.responses.input_items.list(first.id).data
    sent = {"role": "user", "content": [each.model_dump() for each in item.content]}
    sent["content"][0] |= {"width": 1, "media_type": "text/plain"}

    again = client.responses.create(model="eyes", input=[sent])

    assert world.seen()[0]["image_url"]["url"] == data_url(PNG)
    assert images_of(again)[0]["width"] == 280


@pytest.mark.parametrize("model", ["blind"])
def test_a_model_that_sees_none_refuses_images(client: openai.OpenAI, world: World, model: str):
    before = len(world.blind.bodies)
    for create in (
        lambda: client.responses.create(model=model, input=asked(given())),
        lambda: client.responses.create(model=model, input=asked(given()), stream=True),
        lambda: client.chat.completions.create(model=model, messages=chatted(data_url(PNG))),
        lambda: client.responses.input_tokens.count(model=model, input=asked(given())),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            create()
        assert "can't see images; these can: eyes, auto" in str(refused.value)
        assert refused.value.code == "unsupported_value"
    assert len(world.blind.bodies) == before


def test_an_alias_goes_to_who_sees(client: openai.OpenAI, world: World):
    response = client.responses.create(model="auto", input=asked(given()))
    text = client.responses.create(model="auto", input="no image")

    assert (response.model, text.model) == ("eyes", "blind")


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"image_url": "https://example.com/x.png"}, "invalid_image_url"),
        ({"image_url": "file:///etc/passwd"}, "invalid_image_url"),
        ({"image_url": data_url(b"<svg/>", "image/png")}, "invalid_image_format"),
        ({"image_url": data_url(PNG[:-12])}, "image_parse_error"),
        ({"image_url": data_url(png(1001, 1000))}, "image_too_large"),
        ({"image_url": data_url(png(100_000, 100_000))}, "image_too_large"),
        ({"image_url": data_url(PNG + bytes(1 << 20))}, "image_file_too_large"),
        ({"image_url": "data:image/png;base64,%%%"}, "invalid_value"),
        ({"image_url": "data:image/png,abc"}, "invalid_value"),
        ({}, "missing_required_parameter"),
        ({"image_url": data_url(PNG), "file_id": "file-x"}, "mutually_exclusive_parameters"),
    ],
)
def test_what_can_not_be_shown_is_refused(client: openai.OpenAI, part: Any, code: str):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="eyes", input=asked({"type": "input_image", **part}))

    assert refused.value.code == code
    assert str(refused.value.param).startswith("input[0].content[0]")


def test_files_for_other_purposes_and_of_other_kinds_are_refused(client: openai.OpenAI):
    text = client.files.create(file=("a.png", b"no picture"), purpose="vision")
    batch = client.files.create(file=("b.png", PNG), purpose="batch")
    for file, error, code in (
        (text.id, openai.BadRequestError, "invalid_image_format"),
        (batch.id, openai.BadRequestError, "invalid_value"),
        ("file-nope", openai.NotFoundError, None),
    ):
        part = {"type": "input_image", "file_id": file}
        with pytest.raises(error) as refused:
            client.responses.create(model="eyes", input=asked(part))
        assert code is None or refused.value.code == code


def test_more_images_than_may_be_are_refused(client: openai.OpenAI):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="eyes", input=asked(*[given()] * 4))

    assert refused.value.code == "array_above_max_length"


def test_what_tokens_an_image_takes_is_counted(client: openai.OpenAI):
    plain = client.responses.input_tokens.count(model="eyes", input=asked()).input_tokens
    seeing = client.responses.input_tokens.count(model="eyes", input=asked(given())).input_tokens

    assert seeing == plain + 100


def test_an_image_is_refused_where_it_does_not_fit(client: openai.OpenAI):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(
            model="eyes", input=asked(given(), given(), given()), max_output_tokens=3900
        )

    assert refused.value.code == "context_length_exceeded"


def test_a_later_turn_sees_the_image_again(client: openai.OpenAI, world: World):
    first = client.responses.create(model="eyes", input=asked(given()))

    second = client.responses.create(
        model="eyes", input="And the colour?", previous_response_id=first.id
    )

    sent = world.eyes.bodies[-1]["messages"]
    assert sent[0]["content"][0]["image_url"]["url"] == data_url(PNG)
    assert sent[-1]["content"] == "And the colour?"
    assert images_of(second)[0]["fate"] == "shown"


def test_a_later_model_that_sees_none_is_told_and_so_is_the_client(
    client: openai.OpenAI, world: World
):
    conversation = client.conversations.create()
    client.responses.create(model="eyes", input=asked(given()), conversation=conversation.id)

    raw = client.responses.with_raw_response.create(
        model="blind", input="And the colour?", conversation=conversation.id
    )

    first = world.blind.bodies[-1]["messages"][0]["content"]
    assert first.startswith("[Picture: PNG, 280 × 280 pixels. You can't see pictures")
    assert first.endswith("\nWhat is this?")
    [image] = images_of(raw.parse())
    assert (image["fate"], image["tokens"]) == ("no_vision", 0)
    assert raw.headers["x-antiphon-context"] == "images"


def test_a_conversation_that_has_images_stays_with_who_sees(client: openai.OpenAI):
    conversation = client.conversations.create(items=asked(given()))

    response = client.responses.create(
        model="auto", input="And the colour?", conversation=conversation.id
    )

    assert response.model == "eyes"
    assert images_of(response)[0]["fate"] == "shown"


def test_only_the_newest_images_are_shown_and_the_others_told(client: openai.OpenAI, world: World):
    conversation = client.conversations.create()
    for shade in range(2):
        client.responses.create(
            model="eyes",
            input=asked(given(png(28, 28, shade=shade)), given(png(56, 28, shade=shade))),
            conversation=conversation.id,
        )

    response = client.responses.create(model="eyes", input="?", conversation=conversation.id)

    fates = [each["fate"] for each in images_of(response)]
    assert fates == ["left_out", "shown", "shown", "shown"]
    assert "too many pictures" in json.dumps(world.eyes.bodies[-1]["messages"][0])


def test_an_image_that_was_deleted_is_told(client: openai.OpenAI, world: World):
    file = client.files.create(file=("cat.png", PNG), purpose="user_data")
    conversation = client.conversations.create()
    client.responses.create(
        model="eyes",
        input=asked({"type": "input_image", "file_id": file.id}),
        conversation=conversation.id,
    )
    client.files.delete(file.id)

    response = client.responses.create(model="eyes", input="?", conversation=conversation.id)

    assert '"cat.png"' in world.eyes.bodies[-1]["messages"][0]["content"]
    assert "It was deleted" in world.eyes.bodies[-1]["messages"][0]["content"]
    assert images_of(response)[0]["fate"] == "deleted"


def test_images_go_with_their_conversation(client: openai.OpenAI):
    conversation = client.conversations.create(items=asked(given(png(33, 44))))
    [item] = client.conversations.items.list(conversation.id).data
    file = item.content[0].file_id
    assert client.files.content(file).read() == png(33, 44)

    client.conversations.delete(conversation.id)

    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file)


def test_an_image_among_files_is_told_by_its_size(client: openai.OpenAI, world: World):
    data = base64.b64encode(PNG).decode()
    part = {"type": "input_file", "filename": "plan.png", "file_data": data}

    client.responses.create(model="blind", input=asked(part))

    assert "A PNG picture of 280 × 280 pixels." in world.told()


def test_conversations_and_their_images_outlive_the_server(world: World, tmp_path: Path):
    with reached(world, tmp_path) as client:
        stored = client.responses.create(model="eyes", input=asked(given()))
    with reached(world, tmp_path) as client:
        replayed = client.responses.retrieve(stored.id)
        events = list(client.responses.retrieve(stored.id, stream=True))
        client.responses.create(model="eyes", input="Again?", previous_response_id=stored.id)

    assert images_of(replayed) == images_of(stored)
    assert events[-1].response.output_text == "one two three four"
    first = world.eyes.bodies[-1]["messages"][0]["content"]
    assert first[0]["image_url"]["url"] == data_url(PNG)
