"""Two tenants on one real server, on both databases: to each, what is the other's doesn't exist.

Routes are taken from the server's own document, so that a new one is tried as well.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from antiphon.testing.corpus import MODEL, Corpus, answered, request_for, speak_everywhere
from antiphon.testing.dialogue import ENDLESS
from antiphon.testing.markers import Marker
from antiphon.testing.tenants import GuardedServer

pytestmark = pytest.mark.engine
BODIES: dict[str, dict[str, Any]] = {
    "update_conversation": {"title": "mine now"},
    "branch_conversation": {},
    "create_conversation_items": {"items": [{"role": "user", "content": "let me in"}]},
    "rate_response": {"rating": "up"},
    "update_chat_completion": {"metadata": {"owner": "me"}},
    "update_memory": {"text": "mine now"},
    "update_vector_store": {"name": "mine now"},
    "search_vector_store": {"query": "what does it say?"},
    "create_vector_store_file": {"file_id": "file-000000000000000000000000"},
    "create_vector_store_file_batch": {"file_ids": ["file-000000000000000000000000"]},
    "update_vector_store_file": {"attributes": {"owner": "me"}},
}
"""A valid one for each operation that takes one."""
NOBODYS = {
    "conversation_id": "conv_00000000000000000000000000000000",
    "item_id": "msg_00000000000000000000000000000000",
    "response_id": "resp_00000000000000000000000000000000",
    "completion_id": "chatcmpl-00000000000000000000000000000000",
    "file_id": "file-00000000000000000000000000000000",
    "memory_id": "mem_000000000000000000000000",
    "vector_store_id": "vs_000000000000000000000000",
    "batch_id": "vsfb_000000000000000000000000",
    "user_id": "user_00000000000000000000000000000000",
}
"""Ids that never were; those of somebody else are answered in the same way."""


@dataclass(frozen=True)
class Tenant:
    client: httpx2.Client
    user: str
    corpus: Corpus

    @property
    def ids(self) -> dict[str, str]:
        return {name: getattr(self.corpus, name, self.user) for name in NOBODYS}

    def betrayed_by(self, text: str) -> list[str]:
        """Everything of this tenant's that the text gives away."""
        known = [id for id in [self.user, *self.corpus.ids] if id in text]
        return known + self.corpus.marker.found_in(text.encode())


def tenant(guarded: GuardedServer) -> Tenant:
    marker = Marker()
    names = ("--user", marker.said, "--tenant", f"tenant {marker.word}", "--name", marker.said)
    client = guarded.person(*names, "--scope", "user", "--scope", "operator")
    user = answered(client.get("/users/me"))["id"]
    return Tenant(client, user, speak_everywhere(client, marker))


@pytest.fixture(scope="module")
def tenants(guarded: GuardedServer) -> Iterator[tuple[Tenant, Tenant]]:
    """The first is spied upon by the second."""
    with ThreadPoolExecutor() as pool:
        one, other = pool.map(tenant, [guarded, guarded])
    yield one, other
    for each in (one, other):
        each.client.delete("/users/me")
        each.client.close()


@pytest.fixture
def owner(tenants: tuple[Tenant, Tenant]) -> Tenant:
    return tenants[0]


@pytest.fixture
def spy(tenants: tuple[Tenant, Tenant]) -> Tenant:
    return tenants[1]


def operations(client: httpx2.Client) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path below /v1, and description of every one."""
    root = str(client.base_url).removesuffix("v1/")
    document = answered(client.get(f"{root}openapi.json"))
    return [
        (method.upper(), path.removeprefix("/v1"), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    ]


def variables(operation: dict[str, Any]) -> list[str]:
    return [each["name"] for each in operation["parameters"] if each["in"] == "path"]


def test_no_route_knows_what_is_anothers(owner: Tenant, spy: Tenant):
    tried = 0
    for method, path, operation in operations(spy.client):
        names = [name for name in variables(operation) if name != "model"]
        if not names:
            continue
        assert set(names) <= set(NOBODYS), f"{path} has an id that this test doesn't know"
        body = BODIES[operation["operationId"]] if "requestBody" in operation else None
        queries: list[dict[str, str]] = [{}]
        if any(each["name"] == "stream" for each in operation["parameters"]):
            queries.append({"stream": "true"})
        # Another's id alone, and below an id of one's own.
        for mixed in itertools.product(("theirs", "own"), repeat=len(names)):
            if set(mixed) == {"own"}:
                continue
            chosen = {"theirs": owner.ids, "own": spy.ids}
            ids = {name: chosen[who][name] for name, who in zip(names, mixed, strict=True)}
            for query in queries:
                reply = spy.client.request(method, path.format(**ids), json=body, params=query)
                never = spy.client.request(method, path.format(**NOBODYS), json=body, params=query)
                error = reply.json()["error"]
                assert reply.status_code == never.status_code == 404, (method, path, reply.text)
                assert error["code"] == never.json()["error"]["code"] == "not_found"
                assert owner.corpus.marker.found_in(reply.content) == []
                tried += 1

    assert tried >= 24
    assert answered(owner.client.get(f"/conversations/{owner.ids['conversation_id']}"))


def test_no_list_shows_what_is_anothers(owner: Tenant, spy: Tenant):
    word = owner.corpus.marker.word
    tried = 0
    for method, path, operation in operations(spy.client):
        if method != "GET" or variables(operation):
            continue
        known = {each["name"] for each in operation["parameters"]}
        for query in (
            {},
            {"limit": "100"},
            {"order": "asc"},
            {"search": word},
            {"query": word},
            {"archived": "true"},
            {"purpose": "user_data"},
            {"model": MODEL},
            {"metadata[x]": word},
        ):
            if {name.partition("[")[0] for name in query} <= known:
                reply = spy.client.get(path, params=query)
                assert reply.status_code == 200, (path, query, reply.text)
                assert owner.betrayed_by(reply.text) == [], (path, query)
                tried += 1
    for name in ("conversation_id", "item_id"):
        own = spy.client.get(f"/conversations/{spy.ids['conversation_id']}/items?limit=100")
        assert owner.ids[name] not in own.text

    assert tried >= 20


def test_a_cursor_of_anothers_leads_nowhere(owner: Tenant, spy: Tenant):
    lists = {
        "/conversations": "conversation_id",
        "/responses": "response_id",
        "/chat/completions": "completion_id",
        "/files": "file_id",
        "/memory": "memory_id",
        "/vector_stores": "vector_store_id",
        f"/vector_stores/{spy.ids['vector_store_id']}/files": "file_id",
        f"/conversations/{spy.ids['conversation_id']}/items": "item_id",
        f"/responses/{spy.ids['response_id']}/input_items": "item_id",
        f"/chat/completions/{spy.ids['completion_id']}/messages": "item_id",
    }
    for path, name in lists.items():
        theirs = spy.client.get(path, params={"after": owner.ids[name]})
        never = spy.client.get(path, params={"after": NOBODYS[name]})

        assert theirs.status_code == never.status_code == 400, (path, theirs.text)
        assert theirs.json()["error"]["code"] == never.json()["error"]["code"] == "invalid_cursor"


def test_nothing_refers_to_what_is_anothers(owner: Tenant, spy: Tenant):
    own = f"/conversations/{spy.ids['conversation_id']}"

    def file_in(ids: dict[str, str], name: str = "items") -> dict[str, Any]:
        part = {"type": "input_file", "file_id": ids["file_id"]}
        return {name: [{"role": "user", "content": [part]}]}

    def chat_with(ids: dict[str, str]) -> dict[str, Any]:
        part = {"type": "file", "file": {"file_id": ids["file_id"]}}
        return {"model": MODEL, "messages": [{"role": "user", "content": [part]}]}

    def searching(ids: dict[str, str]) -> dict[str, Any]:
        tool = {"type": "file_search", "vector_store_ids": [ids["vector_store_id"]]}
        return {"input": "Go on.", "tools": [tool]}

    def attempts(ids: dict[str, str]) -> Iterator[httpx2.Response]:
        post = spy.client.post
        for field in (
            {"previous_response_id": ids["response_id"]},
            {"conversation": ids["conversation_id"]},
            {"conversation": {"id": ids["conversation_id"]}},
            {"input": [{"type": "item_reference", "id": ids["item_id"]}]},
        ):
            yield post("/responses", json={"input": "Go on."} | field)
            yield post("/responses", json={"input": "Go on."} | field | {"stream": True})
            yield post("/responses/input_tokens", json={"input": "Go on."} | field)
        yield post("/conversations", json=file_in(ids))
        yield post(f"{own}/items", json=file_in(ids))
        yield post(f"{own}/branch", json={"after_item": ids["item_id"]})
        yield post("/responses", json=file_in(ids, "input"))
        yield post("/responses", json=searching(ids))
        yield post("/responses", json=searching(ids) | {"stream": True})
        yield post("/responses/input_tokens", json=searching(ids))
        yield post("/chat/completions", json=chat_with(ids))
        yield post("/vector_stores", json={"file_ids": [ids["file_id"]]})
        mine = f"/vector_stores/{spy.ids['vector_store_id']}"
        yield post(f"{mine}/files", json={"file_id": ids["file_id"]})
        yield post(f"{mine}/file_batches", json={"file_ids": [ids["file_id"]]})

    for theirs, never in zip(attempts(owner.ids), attempts(NOBODYS), strict=True):
        request = theirs.request.content
        assert theirs.status_code == never.status_code == 404, (request, theirs.text)
        assert theirs.json()["error"]["code"] == never.json()["error"]["code"], request
        assert owner.corpus.marker.found_in(theirs.content) == []
    filters = [
        answered(spy.client.get("/responses", params={"conversation": ids["conversation_id"]}))
        for ids in (owner.ids, NOBODYS)
    ]
    assert filters[0] == filters[1]
    assert filters[0]["data"] == []


def test_the_same_request_with_the_same_key_is_each_ones_own(owner: Tenant, spy: Tenant):
    key, again = {"idempotency-key": Marker().word}, {"x-stainless-retry-count": "1"}

    for first, second in ((key, key), ({}, again)):
        body = request_for(Marker(), max_output_tokens=16)
        made = [
            answered(each.client.post("/responses", json=body, headers=headers))["id"]
            for headers in (first, second)
            for each in (owner, spy)
        ]

        assert made[:2] == made[2:]
        assert made[0] != made[1]


def test_an_answer_that_runs_is_neither_seen_nor_stopped_by_another(owner: Tenant, spy: Tenant):
    body = ENDLESS | {"background": True}
    id = answered(owner.client.post("/responses", json=body))["id"]

    refused = [
        spy.client.get(f"/responses/{id}"),
        spy.client.get(f"/responses/{id}", params={"stream": "true"}),
        spy.client.get(f"/responses/{id}", params={"stream": "true", "starting_after": "1"}),
        spy.client.post(f"/responses/{id}/cancel"),
        spy.client.delete(f"/responses/{id}"),
    ]
    status = answered(owner.client.get(f"/responses/{id}"))["status"]
    cancelled = answered(owner.client.post(f"/responses/{id}/cancel"))["status"]

    assert [each.status_code for each in refused] == [404] * 5
    assert status in {"queued", "in_progress"}
    assert cancelled == "cancelled"


def test_a_user_without_the_scope_learns_nothing_of_who_there_is(
    guarded: GuardedServer, owner: Tenant
):
    with guarded.person("--user", "plain", "--tenant", f"tenant {owner.corpus.marker.word}") as one:
        for method, path in (("DELETE", ""), ("GET", "/export")):
            there = one.request(method, f"/users/{owner.user}{path}")
            never = one.request(method, f"/users/{NOBODYS['user_id']}{path}")
            assert there.status_code == never.status_code == 403
            assert there.json()["error"]["message"] == never.json()["error"]["message"]
        assert one.get("/users").status_code == 403
        # Users of a tenant share nothing either.
        assert one.get(f"/conversations/{owner.ids['conversation_id']}").status_code == 404
        assert one.get(f"/files/{owner.ids['file_id']}/content").status_code == 404
        one.delete("/users/me")
