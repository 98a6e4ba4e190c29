from dataclasses import replace

import pytest

from antiphon.http.openai.users.wire import usage_list
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, ModelName, ResponseId, UserId
from antiphon.records import Principal, Scope, TokenUsage, UsageEntry, User

ANN = User(id=UserId("user_ann"), tenant=LOCAL_TENANT, name="Ann", created_ms=5000)


@pytest.fixture
async def ann(api):
    await api.store.run(lambda store: store.add_user(ANN))
    return Principal(user=ANN.id, tenant=ANN.tenant, scopes=frozenset({Scope.USER}))


async def test_a_caller_sees_who_they_are(api, ann):
    api.accounts.principal = ann

    answer = await api.client.get("/v1/users/me")

    assert answer.json() == {
        "id": "user_ann",
        "object": "user",
        "name": "Ann",
        "tenant": "local",
        "created_at": 5,
        "training": True,
    }


async def test_a_caller_decides_about_training(api):
    changed = await api.client.post("/v1/users/me", json={"training": False})

    assert changed.json()["training"] is False
    assert (await api.client.get("/v1/users/me")).json()["training"] is False


@pytest.mark.parametrize("body", [{}, {"training": None}, {"training": True, "name": "x"}])
async def test_nothing_else_of_a_user_can_be_set(api, body):
    assert (await api.client.post("/v1/users/me", json=body)).status_code == 400


async def test_an_export_holds_what_was_said_and_is_a_file(api):
    items = [{"role": "user", "content": "a marker of mine"}]
    await api.client.post("/v1/conversations", json={"title": "Ducks", "items": items})

    answer = await api.client.get("/v1/users/me/export")

    assert "a marker of mine" in answer.text
    assert answer.json()
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert int(answer.headers["content-length"]) == len(answer.content)


async def test_erasing_oneself_leaves_nothing_but_the_receipt(api, ann):
    api.accounts.principal = ann
    made = (
        await api.client.post(
            "/v1/conversations", json={"items": [{"role": "user", "content": "x"}]}
        )
    ).json()["id"]
    await api.client.post(
        "/v1/files", files={"file": ("a", b"mine")}, data={"purpose": "user_data"}
    )

    body = (await api.client.delete("/v1/users/me")).json()

    assert (body["id"], body["object"], body["deleted"]) == ("user_ann", "user.deleted", True)
    assert body["receipt"]["rows"]["users"] == 1
    assert len(body["receipt"]["contents"]) == 1
    assert api.files() == []
    for path in ("/v1/users/me", "/v1/users/me/export", f"/v1/conversations/{made}"):
        assert (await api.client.get(path)).status_code == 404
    assert (await api.client.delete("/v1/users/me")).status_code == 404


async def test_the_local_user_is_erased_and_can_go_on(api):
    await api.client.post("/v1/conversations")

    assert (await api.client.delete("/v1/users/me")).json()["id"] == LOCAL_USER

    assert (await api.client.get("/v1/users/me")).status_code == 200
    assert (await api.client.get("/v1/conversations")).json()["data"] == []
    assert (await api.client.post("/v1/conversations")).status_code == 200


async def test_an_operator_lists_exports_and_erases_the_users_of_their_tenant(api, ann, mallory):
    listed = (await api.client.get("/v1/users")).json()
    exported = await api.client.get(f"/v1/users/{ANN.id}/export")
    erased = await api.client.delete(f"/v1/users/{ANN.id}")

    assert {user["id"] for user in listed["data"]} == {LOCAL_USER, ANN.id}
    assert exported.status_code == 200
    assert erased.json()["receipt"]["subject"] == ANN.id
    assert (await api.client.get(f"/v1/users/{ANN.id}/export")).status_code == 404


async def test_another_tenants_user_is_not_found_by_an_operator(api, mallory):
    for method, path in [("DELETE", ""), ("GET", "/export")]:
        answer = await api.client.request(method, f"/v1/users/{mallory.user}{path}")
        unknown = await api.client.request(method, f"/v1/users/user_none{path}")
        assert answer.status_code == unknown.status_code == 404

    api.accounts.principal = replace(mallory, scopes=frozenset(Scope))
    listed = (await api.client.get("/v1/users")).json()["data"]
    assert [user["id"] for user in listed] == [mallory.user]


async def test_what_is_for_operators_is_forbidden_to_others(api, ann):
    api.accounts.principal = ann

    for method, path in [
        ("GET", "/v1/users"),
        ("DELETE", f"/v1/users/{ANN.id}"),
        ("GET", f"/v1/users/{LOCAL_USER}/export"),
    ]:
        answer = await api.client.request(method, path)
        assert answer.status_code == 403
        assert answer.json()["error"]["type"] == "permission_error"


def entry(day, model, usage):
    return UsageEntry(
        response=ResponseId("resp_1"),
        user=ANN.id,
        model=ModelName(model),
        reserved_tokens=9,
        created_ms=day * 86_400_000 + 1,
        usage=usage,
    )


def test_usage_is_summed_by_day_and_model_newest_day_first():
    rows = usage_list(
        [
            entry(0, "b", TokenUsage(input=1, cached=1, output=2)),
            entry(1, "b", TokenUsage(input=10, output=20)),
            entry(1, "a", TokenUsage(input=5, output=5)),
            entry(1, "b", TokenUsage(input=1, output=1)),
            entry(1, "b", None),
        ]
    ).data

    assert [(row.date, row.model, row.requests, row.total_tokens) for row in rows] == [
        ("1970-01-02", "a", 1, 10),
        ("1970-01-02", "b", 3, 32),
        ("1970-01-01", "b", 1, 3),
    ]
    assert rows[-1].cached_tokens == 1


async def test_usage_has_a_beginning(api):
    assert (await api.client.get("/v1/usage")).json() == {
        "object": "list",
        "data": [],
        "has_more": False,
    }
    wrong = await api.client.get("/v1/usage", params={"start_time": "-1"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "start_time")
