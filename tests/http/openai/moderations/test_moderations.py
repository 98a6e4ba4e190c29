"""`POST /v1/moderations`: OpenAI's body, this server's classifier."""

import openai
import pytest
import trio

from antiphon.errors import ModerationUnavailable
from antiphon.http.openai.moderations.parse import MAX_CHARACTERS
from antiphon.http.openai.moderations.schema import MAX_INPUTS
from antiphon.testing.judging import MODEL
from antiphon.verdicts import CATEGORIES


async def test_the_answer_is_openais_body(client, moderation):
    moderation.flagged = ("kill",)
    answer = await client.post("moderations", json={"input": "I want to kill them."})

    shown = answer.json()
    [result] = shown["results"]
    assert answer.status_code == 200
    assert shown["id"].startswith("modr-")
    assert shown["model"] == MODEL
    assert list(result) == [
        "flagged",
        "categories",
        "category_scores",
        "category_applied_input_types",
    ]
    assert result["flagged"] is True
    assert list(result["categories"]) == list(result["category_scores"]) == list(CATEGORIES)
    assert (result["categories"]["violence"], result["categories"]["hate"]) == (True, False)
    assert result["category_scores"]["violence"] == 0.97
    assert set(map(tuple, result["category_applied_input_types"].values())) == {("text",)}


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("one", ("one",)),
        ("", ("",)),
        (["one", "two"], ("one", "two")),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ("a\nb",)),
    ],
    ids=["string", "empty", "strings", "parts"],
)
async def test_strings_are_one_input_each_and_parts_are_one_together(
    client, moderation, given, texts
):
    answer = await client.post("moderations", json={"input": given})

    assert len(answer.json()["results"]) == len(texts)
    assert moderation.scored == [texts]


@pytest.mark.parametrize("model", ["omni-moderation-latest", "text-moderation-stable", MODEL, None])
async def test_openais_names_and_our_own_are_one_classifier(client, model):
    answer = await client.post("moderations", json={"input": "x", "model": model})

    assert answer.json()["model"] == MODEL


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/x.jpg"}}


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "input"),
        ({"input": None}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": 7}, 400, "input"),
        ({"input": ["x", {"type": "text", "text": "y"}]}, 400, "input"),
        ({"input": ["x"] * (MAX_INPUTS + 1)}, 400, "input"),
        ({"input": "x" * (MAX_CHARACTERS + 1)}, 400, "input"),
        ({"input": ["x" * MAX_CHARACTERS, "y"]}, 400, "input"),
        ({"input": [{"type": "text", "text": "x"}, IMAGE]}, 400, "input[1].type"),
        ({"input": "x", "other": 1}, 400, "other"),
        ({"input": "x", "model": "nobody"}, 404, "model"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_cannot_be_judged_is_refused_by_name(client, body, status, param):
    answer = await client.post("moderations", json=body)

    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param


async def test_where_nobody_can_judge_a_client_is_told_to_come_back(client, moderation):
    moderation.unavailable = ModerationUnavailable("the worker is being restarted", 2.0)
    answer = await client.post("moderations", json={"input": "x"})

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["x-should-retry"] == "true"
    assert answer.json()["error"]["code"] == "moderation_unavailable"


async def test_openai_python_reads_it(server, moderation):
    moderation.flagged = ("kill",)

    def talk():
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            return client.moderations.create(input=["kill", "fine"], model="omni-moderation-latest")

    answer = await trio.to_thread.run_sync(talk)

    assert [result.flagged for result in answer.results] == [True, False]
    assert answer.results[0].categories.violence
    assert answer.results[0].category_scores.harassment_threatening == 0.01
    assert answer.results[0].category_applied_input_types.self_harm_intent == ["text"]


async def test_it_is_in_the_document(server, client):
    document = (await client.get(f"{server.url}/openapi.json")).json()

    operation = document["paths"]["/v1/moderations"]["post"]
    assert operation["operationId"] == "create_moderation"
    assert {"200", "400", "404", "429", "503"} <= set(operation["responses"])
