from dataclasses import replace

import pytest

from antiphon.http.openai.users.wire import usage_list
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, ModelName, NodeId, ResponseId, UserId
from antiphon.quotas import Reservation, UsageSum
from antiphon.records import Principal, Scope, TokenUsage, User

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
        "plan": None,
        "suspended": None,
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


def a_sum(day, model, requests=1, **tokens):
    counted = {"input": 0, "cached": 0, "output": 0, "reasoning": 0} | tokens
    return UsageSum(day=day, model=ModelName(model), requests=requests, **counted)


def test_usage_is_told_newest_day_first_with_the_sum_of_all():
    told = usage_list(
        [
            a_sum(0, "b", input=1, cached=1, output=2),
            a_sum(1, "a", input=5, output=5),
            a_sum(1, "b", 3, input=11, output=21),
        ],
        start_time=0,
        end_time=9,
        plan="paid",
    )

    rows = [(row.date, row.model, row.requests, row.total_tokens) for row in told.data]
    assert rows == [
        ("1970-01-02", "a", 1, 10),
        ("1970-01-02", "b", 3, 32),
        ("1970-01-01", "b", 1, 3),
    ]
    assert told.data[-1].cached_tokens == 1
    assert (told.total.requests, told.total.total_tokens) == (5, 45)


async def test_usage_has_a_beginning_and_an_end(api):
    user = api.accounts.principal.user
    api.accounts.principal = replace(api.accounts.principal, plan="paid")
    for second in (100, 200, 300):
        held = Reservation(
            id=ResponseId(f"chatcmpl-{second}"),
            user=user,
            model=ModelName("m"),
            tokens=9,
            now_ms=second * 1000,
            owner=NodeId("node_1"),
            lease_ms=second * 1000,
        )
        await api.store.store.reserve(held)
        cost = TokenUsage(input=second, output=1)
        await api.store.store.settle(held.id, cost, held.now_ms)

    async def asked(**query: int):
        return (await api.client.get("/v1/usage", params=query)).json()

    total = (await asked(start_time=200, end_time=300))["total"]
    assert (total["requests"], total["input_tokens"], total["total_tokens"]) == (1, 200, 201)
    everything = await asked()
    assert everything["total"]["input_tokens"] == 600
    assert (everything["plan"], everything["start_time"]) == ("paid", 0)
    assert (await asked(start_time=301))["data"] == []
    wrong = await api.client.get("/v1/usage", params={"end_time": "-1"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "end_time")


async def test_a_users_plan_and_suspension_are_shown(api):
    user = api.accounts.principal.user
    await api.store.run(lambda store: store.set_plan(user, "paid"))
    await api.store.run(lambda store: store.suspend_user(user, "unpaid bill"))

    (shown,) = (await api.client.get("/v1/users")).json()["data"]

    assert (shown["plan"], shown["suspended"]) == ("paid", "unpaid bill")
