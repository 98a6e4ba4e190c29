"""openai-node, unmodified, on vector stores and `file_search`, on both databases, with the real
model and the real embedder."""

from typing import Any

import openai
import pytest

from antiphon.testing.node import NodeProject
from antiphon.testing.process import ServerProcess

pytestmark = pytest.mark.engine

QUESTION = "At which pressure does the feed pump run?"


@pytest.fixture(scope="module")
def said(kept: ServerProcess, node_project: NodeProject) -> dict[str, Any]:
    """What each check of the script said."""
    with openai.OpenAI(base_url=kept.base_url, api_key="unused") as client:
        model = client.models.list().data[0].id
    return node_project.said("files.mjs", kept.base_url, model)


def test_files_come_into_a_store_one_by_one_and_together(said: dict[str, Any]):
    assert said["filled"] == {
        "added": "completed",
        "uploaded": "completed",
        "batch": "completed",
        "completed": 3,
        "is_listed": True,
        "says": True,
    }


def test_a_search_finds_what_answers_first_and_keeps_to_its_filter(said: dict[str, Any]):
    found = said["search"]

    assert found["is_first"]
    assert "40 bar" in found["text"]
    assert 0 < found["score"] <= 1
    assert found["count"] == 2
    assert (found["with_year"], found["without"]) == (1, [])


def test_a_response_searches_before_it_answers(said: dict[str, Any]):
    response = said["response"]

    assert response["types"] == ["file_search_call", "message"]
    assert response["queries"] == [QUESTION]
    assert response["is_found"]
    assert response["is_kept"]
    assert response["text"]
    assert not response["marks"]


def test_a_streamed_search_has_its_events(said: dict[str, Any]):
    streamed = said["streamed"]

    assert streamed["types"] == [
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
    ]
    assert streamed["last"] in {"response.completed", "response.incomplete"}
    assert streamed["helper"] == ["file_search_call", "message"]


def test_a_file_that_a_message_brings_along_is_shown(said: dict[str, Any]):
    assert said["shown"] == [{"is_it": True, "fate": "whole"}]


def test_what_was_taken_out_is_not_found_and_the_file_stays(said: dict[str, Any]):
    missing = {"class": "NotFoundError", "status": 404}

    assert said["gone"] == {
        "gone": True,
        "is_left": False,
        "deleted": True,
        "store": missing,
        "search": missing,
        "file": True,
    }
