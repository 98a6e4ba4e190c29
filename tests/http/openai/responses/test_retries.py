"""What a request's headers say about having been sent before."""

import json

import pytest

from antiphon.ids import LOCAL_TENANT, UserId
from antiphon.records import Principal, Scope
from antiphon.testing.chat import MODEL

PATH = "responses"


def body(**fields) -> dict:
    return {"model": MODEL, "input": "hi"} | fields


async def test_the_key_and_the_body_make_the_claim(client, responses):
    responses.text = ["x"]
    for spacing in (None, 2):
        await client.post(
            PATH,
            content=json.dumps(body(), indent=spacing, sort_keys=bool(spacing)),
            headers={"Idempotency-Key": "k" * 255, "content-type": "application/json"},
        )
    first, second = (new.claim for new in responses.created)

    assert first.key == "k" * 255
    assert first == second
    assert all(new.retry_fingerprint is None and not new.is_retry for new in responses.created)


@pytest.mark.parametrize("key", ["", "k" * 256, "a b", "é"])
async def test_a_key_that_could_not_be_kept_is_refused(client, responses, key):
    answer = await client.post(
        PATH, json=body(), headers=[(b"Idempotency-Key", key.encode("latin-1"))]
    )

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Idempotency-Key")


async def test_a_retry_with_a_key_is_known_as_one_too(client, responses):
    responses.text = ["x"]
    headers = {"Idempotency-Key": "k", "x-stainless-retry-count": "2"}
    await client.post(PATH, json=body(), headers=headers)

    assert responses.created[0].claim.key == "k"
    assert responses.created[0].is_retry


async def test_a_key_needs_a_store(client):
    answer = await client.post(PATH, json=body(store=False), headers={"Idempotency-Key": "k"})

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("count", "is_retry"), [(None, False), ("0", False), ("1", True), ("x", False), ("²", False)]
)
async def test_an_sdks_retry_is_known_by_its_count(client, responses, count, is_retry):
    responses.text = ["x"]
    headers = [] if count is None else [(b"x-stainless-retry-count", count.encode("latin-1"))]
    await client.post(PATH, json=body(), headers=headers)

    assert responses.created[0].is_retry is is_retry
    assert len(responses.created[0].retry_fingerprint) == 64


async def test_different_users_and_bodies_have_different_fingerprints(client, responses, accounts):
    responses.text = ["x"]
    await client.post(PATH, json=body())
    await client.post(PATH, json=body(input="ho"))
    accounts.principal = Principal(
        user=UserId("user_b"), tenant=LOCAL_TENANT, scopes=frozenset({Scope.USER})
    )
    await client.post(PATH, json=body())

    assert len({new.retry_fingerprint for new in responses.created}) == 3
    assert [new.response.user for new in responses.created] == ["user_local"] * 2 + ["user_b"]
