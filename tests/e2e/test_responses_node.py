"""openai-node, unmodified, on what a server keeps, on both databases, with the real model."""

from typing import Any

import openai
import pytest

from antiphon.testing.dialogue import QUESTIONS, text_of
from antiphon.testing.node import NodeProject
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def said(kept: ServerProcess, node_project: NodeProject) -> dict[str, Any]:
    """What each check of the script said."""
    with openai.OpenAI(base_url=kept.base_url, api_key="unused") as client:
        model = client.models.list().data[0].id
    return node_project.said("responses.mjs", kept.base_url, model)


@pytest.mark.parametrize("stream", ["whole", "streamed"])
@pytest.mark.parametrize("way", ["conversation", "chain"])
def test_six_turns_are_held_and_kept(
    said: dict[str, Any], keeper: openai.OpenAI, way: str, stream: str
):
    dialogue = said[f"{way}_{stream}"]
    sides = [
        (role, text)
        for turn in zip(QUESTIONS, dialogue["texts"], strict=True)
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    spelled = [{"role": role, "content": text} for role, text in sides[:-1]]

    assert "Paris" in dialogue["texts"][0]
    assert dialogue["kept"] == dialogue["texts"]
    assert dialogue["tokens"][-1] == keeper.responses.input_tokens.count(input=spelled).input_tokens
    if way == "conversation":
        assert dialogue["items"] == [text for _, text in sides]


def test_a_cancelled_stream_ends_and_keeps_what_it_said(said: dict[str, Any]):
    assert said["cancelled"] == {
        "status": "cancelled",
        "last": "response.incomplete",
        "kept": "cancelled",
        "is_whole": True,
    }


def test_an_aborted_stream_is_cancelled_and_what_was_read_is_kept(
    said: dict[str, Any], kept: ServerProcess, keeper: openai.OpenAI
):
    id = said["left"]["id"]
    finished = kept.log.wait_for(
        "request_finished", within_s=10, matching=lambda line: line.get("response_id") == id
    )
    ended = list(keeper.responses.retrieve(id, stream=True))

    assert finished["cancelled"] == "disconnect"
    assert ended[-1].response.status == "cancelled"
    assert text_of(ended).startswith(said["left"]["text"])


def test_several_watch_one_stream_until_it_is_cancelled(said: dict[str, Any]):
    assert said["watched"] == {
        "status": "cancelled",
        "is_whole": True,
        "is_same": True,
        "again": "cancelled",
    }


def test_a_stream_is_resumed_at_every_event_and_by_the_helper(said: dict[str, Any]):
    resumed = said["resumed"]

    assert resumed["places"] > 10
    assert (resumed["is_same"], resumed["helper"], resumed["first"]) == (True, True, 4)


def test_a_background_response_survives_its_client(said: dict[str, Any]):
    assert said["survived"]["status"] in {"completed", "incomplete"}
    assert said["survived"]["text"]


def test_one_turn_at_a_time(said: dict[str, Any]):
    assert said["locked"]["class"] == "BadRequestError"
    assert said["locked"]["code"] == "conversation_locked"
    assert said["unlocked"] is True


def test_what_is_sent_twice_is_done_once(said: dict[str, Any]):
    assert said["same_key"] == {"ids": 1, "is_same": True}
    assert said["other_body"]["class"] == "UnprocessableEntityError"
    assert said["retried"] == {"lost": 1, "is_once": True}


def test_stored_chats_are_shown_listed_changed_and_deleted(said: dict[str, Any]):
    chat = said["stored_chat"]

    assert chat["is_same"]
    assert chat["listed"] == [True]
    assert chat["messages"] == [QUESTIONS[0]]
    assert chat["metadata"] == {"mark": "moved"}
    assert chat["deleted"]
    assert chat["gone"]["class"] == "NotFoundError"


def test_files_come_back_as_they_were_and_go(said: dict[str, Any]):
    file = said["file"]

    assert (file["is_same"], file["listed"], file["deleted"]) == (True, True, True)
    assert file["gone"]["class"] == "NotFoundError"


def test_conversations_are_listed_branched_exported_and_deleted(said: dict[str, Any]):
    conversation = said["conversation"]

    assert conversation["newest"]
    assert conversation["exported"] == ["Remember me.", "Who?", conversation["answer"]]
    assert conversation["deleted"]
    assert conversation["gone"]["status"] == conversation["turn_gone"]["status"] == 404
