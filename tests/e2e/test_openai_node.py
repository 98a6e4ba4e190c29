"""openai-node, unmodified, against the real model."""

from typing import Any

import openai
import pytest

from antiphon.testing.node import NodeProject
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def said(server: ServerProcess, node_project: NodeProject) -> dict[str, Any]:
    """What each check of the script said."""
    with openai.OpenAI(base_url=server.base_url, api_key="unused") as client:
        model = client.models.list().data[0].id
    return node_project.said("openai.mjs", server.base_url, model)


def test_a_streamed_answer_equals_the_whole_one_and_names_paris(said: dict[str, Any]):
    assert "Paris" in said["whole"]["text"]
    assert said["streamed"] == said["whole"]
    assert said["helper"]["text"] == said["whole"]["text"]


def test_stop_strings_never_show(said: dict[str, Any]):
    assert said["stop"]["finish"] == "stop"
    assert said["whole"]["text"].startswith(said["stop"]["text"] + "of France")


def test_an_answer_fits_the_json_schema(said: dict[str, Any]):
    assert set(said["schema"]) == {"name", "capital"}


def test_models_are_listed_and_found(said: dict[str, Any]):
    assert said["model"] in said["models"]


def test_refusals_raise_the_sdks_own_classes(said: dict[str, Any]):
    assert said["not_found"]["class"] == "NotFoundError"
    assert said["not_found"]["code"] == "model_not_found"
    assert said["bad_request"]["class"] == "BadRequestError"
    assert said["bad_request"]["param"] == "messages"
    assert said["bad_type"]["param"] == "temperature"
    assert all(said[name]["request_id"] for name in ("not_found", "bad_request", "bad_type"))


def test_an_aborted_stream_frees_its_slot(said: dict[str, Any], server: ServerProcess):
    assert said["aborted"] is True
    # Others cancel on this server, too, in other ways.
    server.log.wait_for(
        "lease_cancelled", within_s=10, matching=lambda line: line["cause"] == "disconnect"
    )


def test_moderations_are_read(said: dict[str, Any]):
    judged = said["moderations"]

    assert judged["id"].startswith("modr-")
    assert (judged["results"], judged["categories"], judged["types"]) == (2, 13, ["text"])
    assert isinstance(judged["flagged"], bool)
