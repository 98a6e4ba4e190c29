"""Vector stores and `file_search` through openai-python, unmodified, on both databases, with the
real model and the real embedder; and what two people have of the same content."""

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from antiphon.testing.tenants import GuardedServer

pytestmark = pytest.mark.engine

MANUAL = "# Pumps\n\nThe feed pump in hall seven runs at 40 bar.\n\n# Lamps\n\nLamps last a year.\n"
QUESTION = "At which pressure does the feed pump run?"
SHORT = {"type": "json_schema", "name": "pressure", "schema": {"enum": ["40 bar", "50 bar"]}}
"""Whatever the model makes of it, the answer has an end."""


def filled(client: openai.OpenAI, text: str = MANUAL) -> tuple[str, str]:
    """A vector store with one file that is ready, and that file."""
    store = client.vector_stores.create(name="plant")
    added = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=("pumps.md", text.encode()), max_wait_seconds=60
    )
    assert added.status == "completed", added
    return store.id, added.id


def found(client: openai.OpenAI, store: str, query: str = QUESTION) -> list[str]:
    return [each.file_id for each in client.vector_stores.search(store, query=query)]


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_response_searches_and_is_kept_with_what_it_found(keeper: openai.OpenAI, way: str):
    store, file = filled(keeper)
    asked: dict[str, Any] = {
        "model": keeper.models.list().data[0].id,
        "input": QUESTION,
        "tools": [{"type": "file_search", "vector_store_ids": [store]}],
        "include": ["file_search_call.results"],
        "text": {"format": SHORT},
    }

    if way == "whole":
        response = keeper.responses.create(**asked)
    else:
        with keeper.responses.stream(**asked) as stream:
            response = stream.get_final_response()
    kept = keeper.responses.retrieve(response.id, include=["file_search_call.results"])

    call, message = response.output
    assert call.type == "file_search_call"
    assert message.type == "message"
    assert (call.status, call.queries) == ("completed", [QUESTION])
    assert call.results is not None
    assert call.results[0].file_id == file
    assert "40 bar" in (call.results[0].text or "")
    again, answer = kept.output
    assert again == call
    assert answer.id == message.id
    assert kept.output_text == response.output_text


@pytest.fixture
def people(guarded: GuardedServer) -> Iterator[tuple[openai.OpenAI, openai.OpenAI]]:
    """Two of one tenant."""
    with guarded.person("--user", "one") as one, guarded.person("--user", "other") as other:
        yield client_of(one), client_of(other)


def client_of(person: httpx2.Client) -> openai.OpenAI:
    key = person.headers["authorization"].removeprefix("Bearer ")
    return openai.OpenAI(base_url=str(person.base_url), api_key=key, max_retries=0)


def test_each_finds_their_own_of_the_same_content_and_keeps_it(
    people: tuple[openai.OpenAI, openai.OpenAI],
):
    one, other = people
    (mine, my_file), (theirs, their_file) = filled(one), filled(other)

    assert found(one, mine) == [my_file]
    assert found(other, theirs) == [their_file]
    with pytest.raises(openai.NotFoundError):
        found(one, theirs)
    with pytest.raises(openai.NotFoundError):
        one.vector_stores.files.create(mine, file_id=their_file)
    with pytest.raises(openai.NotFoundError):
        one.responses.create(
            input=QUESTION, tools=[{"type": "file_search", "vector_store_ids": [mine, theirs]}]
        )

    one.files.delete(my_file)

    assert found(one, mine) == []
    assert found(other, theirs) == [their_file]
    one.vector_stores.delete(mine)
    assert found(other, theirs) == [their_file]
