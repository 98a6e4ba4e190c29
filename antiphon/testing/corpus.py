"""A person who says one marker in every text that the API takes, and what came of it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from antiphon.testing.markers import Marker

MODEL = "smollm2-135m-instruct"
_SHORT = {"model": MODEL, "temperature": 0, "max_output_tokens": 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Ids by the name that URLs have for them, and all of them."""

    marker: Marker
    conversation_id: str
    item_id: str
    response_id: str
    completion_id: str
    file_id: str
    memory_id: str
    vector_store_id: str
    batch_id: str
    others: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        own = (
            self.conversation_id,
            self.item_id,
            self.response_id,
            self.completion_id,
            self.file_id,
            self.memory_id,
            self.vector_store_id,
            self.batch_id,
        )
        return [*own, *self.others]


def answered(reply: httpx2.Response) -> Any:
    """The body of an answer that must be a success."""
    assert reply.status_code == 200, (reply.request.method, reply.request.url, reply.text)
    return reply.json()


def upload(person: httpx2.Client, marker: Marker, content: bytes = b"") -> str:
    """A file with the marker in its name and its content."""
    form = {
        "file": (
            f"{marker.word} {marker.wide}.txt",
            content or marker.said.encode() * 20,
            f"text/{marker.word}",
        )
    }
    file = answered(person.post("/files", files=form, data={"purpose": "user_data"}))
    return str(file["id"])


def items_of(marker: Marker, file: str) -> list[dict[str, Any]]:
    """One of every kind that a conversation takes."""
    m = marker.said
    return [
        {"role": "user", "content": f"Remember {m}"},
        {"role": "system", "content": [{"type": "input_text", "text": m}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": m},
                {"type": "input_file", "file_id": file, "filename": f"{marker.word}.txt"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": m, "annotations": [{"title": m}]},
                {"type": "refusal", "refusal": m},
            ],
        },
        {"type": "function_call", "call_id": m, "name": m, "arguments": m, "namespace": m},
        {"type": "function_call_output", "call_id": m, "output": m},
        {"type": "custom_tool_call", "call_id": m, "name": m, "input": m},
        {"type": "custom_tool_call_output", "call_id": m, "output": m},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": m}],
            "content": [{"type": "reasoning_text", "text": m}],
            "encrypted_content": m,
        },
    ]


def request_for(marker: Marker, **fields: Any) -> dict[str, Any]:
    """A request for a response with the marker in all of its texts."""
    m = marker.said
    return {
        **_SHORT,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": f"Say {m}"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": m}]},
            {"role": "developer", "content": m},
        ],
        "instructions": f"Always say {m}",
        "metadata": {marker.word: m, "wide": marker.wide},
        "user": m,
        "safety_identifier": marker.word,
        "prompt_cache_key": m,
        "text": {
            "format": {
                "type": "json_schema",
                "name": marker.word,
                "description": m,
                "schema": {"type": "string", "description": m, "enum": [marker.word]},
            }
        },
        **fields,
    }


def converse(person: httpx2.Client, marker: Marker, file: str) -> tuple[str, list[str], list[str]]:
    """A conversation, its items and its responses."""
    m, key = marker.said, {"idempotency-key": marker.word}
    title = {"title": m, "metadata": {marker.word: m}}
    readable, *rest = items_of(marker, file)
    conversation = answered(
        person.post("/conversations", headers=key, json=title | {"items": [readable]})
    )["id"]
    answered(person.post(f"/conversations/{conversation}", json={"title": f"Not only {m}"}))
    here = request_for(marker, conversation=conversation)
    whole = answered(person.post("/responses", headers=key, json=here))["id"]
    streamed = respond_streamed(person, here)
    feedback = {"rating": "down", "reason": m}
    answered(person.post(f"/responses/{whole}/feedback", json=feedback))
    # What no model here can read comes last.
    url = f"/conversations/{conversation}/items"
    answered(person.post(url, headers=key, json={"items": rest}))
    page = answered(person.get(url, params={"limit": 100}))
    return conversation, [item["id"] for item in page["data"]], [whole, streamed]


def respond_streamed(person: httpx2.Client, body: dict[str, Any]) -> str:
    """The id of a response that was read to its end."""
    with person.stream("POST", "/responses", json=body | {"stream": True}) as reply:
        text = "".join(reply.iter_text())
    assert reply.status_code == 200, text
    assert '"response.completed"' in text or '"response.incomplete"' in text, text
    return text.partition('"id":"')[2].partition('"')[0]


def chat(person: httpx2.Client, marker: Marker, *, stream: bool = False) -> str:
    """The id of a stored chat completion."""
    m = marker.said
    body = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": m, "name": marker.word},
            {"role": "user", "content": [{"type": "text", "text": m}], "name": marker.word},
            {"role": "assistant", "content": m, "refusal": m},
            {"role": "user", "content": f"Say {m}"},
        ],
        "store": True,
        "metadata": {marker.word: m},
        "user": m,
        "safety_identifier": marker.word,
        "prompt_cache_key": m,
        "stop": [m],
        "temperature": 0,
        "max_tokens": 8,
        "stream": stream,
    }
    reply = person.post(
        "/chat/completions", headers={"idempotency-key": f"chat-{marker.word}"}, json=body
    )
    assert reply.status_code == 200, reply.text
    if stream:
        return reply.text.partition('"id":"')[2].partition('"')[0]
    return str(reply.json()["id"])


def remember(person: httpx2.Client, marker: Marker) -> str:
    """The id of a memory that was changed."""
    id = answered(person.post("/memory", json={"text": f"Remember {marker.said}"}))["id"]
    answered(person.post(f"/memory/{id}", json={"text": f"Not only {marker.said}"}))
    return str(id)


def search(person: httpx2.Client, marker: Marker, file: str) -> tuple[str, str, str]:
    """A vector store with the file in it, a batch, and a response that was made with a search."""
    m = marker.said
    named = {"name": m, "metadata": {marker.word: m}}
    store = answered(person.post("/vector_stores", json=named))["id"]
    path = f"/vector_stores/{store}"
    files = [{"file_id": file, "attributes": {marker.word: m}}]
    batch = answered(person.post(f"{path}/file_batches", json={"files": files}))["id"]
    while answered(person.get(path))["status"] == "in_progress":
        time.sleep(0.1)
    tool = {
        "type": "file_search",
        "vector_store_ids": [store],
        "filters": {"type": "eq", "key": marker.word, "value": m},
    }
    found = answered(person.post(f"{path}/search", json={"query": m}))
    assert found["data"], "the file is not found by what is in it"
    asked = {"input": m, "tools": [tool], "include": ["file_search_call.results"]}
    response = answered(person.post("/responses", json=_SHORT | asked))
    return store, batch, response["id"]


def speak_everywhere(person: httpx2.Client, marker: Marker) -> Corpus:
    """Everything above, and more than one of what may refer to each other."""
    file = upload(person, marker)
    conversation, items, responses = converse(person, marker, file)
    branch = answered(
        person.post(f"/conversations/{conversation}/branch", json={"title": marker.said})
    )["id"]
    alone = answered(person.post("/responses", json=request_for(marker)))["id"]
    chained = answered(
        person.post("/responses", json=request_for(marker, previous_response_id=alone))
    )["id"]
    store, batch, searched = search(person, marker, file)
    return Corpus(
        marker=marker,
        vector_store_id=store,
        batch_id=batch,
        conversation_id=conversation,
        item_id=items[0],
        response_id=responses[0],
        completion_id=chat(person, marker),
        file_id=file,
        memory_id=remember(person, marker),
        others=[
            *(branch, *items[1:], *responses[1:], alone, chained, searched),
            upload(person, marker, b"x"),
        ],
    )


def mumble(person: httpx2.Client, marker: Marker) -> Iterable[int]:
    """The marker in everything that is refused, or forgotten at once; the statuses."""
    m, word = marker.said, marker.word
    forgotten = {"store": False, "metadata": {}}
    messages = [{"role": "user", "content": m}]
    replies = [
        person.post("/responses", json=request_for(marker, **forgotten)),
        person.post("/responses/input_tokens", json={"input": m, "instructions": m}),
        person.post(
            "/chat/completions", json={"model": MODEL, "messages": messages, "max_tokens": 4}
        ),
        person.get("/conversations", params={"search": m}),
        person.post("/responses", json=request_for(marker, model=m)),
        person.post("/responses", json={m: m}),
        person.post("/responses", content=f'{{"input": "{word}'),
        person.post("/responses", json=request_for(marker, previous_response_id=f"resp_{word}")),
        person.post("/responses", json={"input": [{"role": m, "content": m}]}),
        person.post("/chat/completions", json={"model": m, "messages": messages}),
        person.post("/conversations", json={"items": [{"type": m}]}),
        person.post("/conversations", json={"metadata": {word: m * 100}}),
        person.get(f"/responses/resp_{word}"),
        person.get(f"/conversations/conv_{word}"),
        person.get(f"/files/{m}"),
        person.post("/memory", json={"text": f"{m}\n{m}"}),
        person.post("/memory", json={m: m}),
        person.get(f"/memory/mem_{word}"),
        person.post("/responses", json={"input": "x", "prompt": {"id": m, "variables": {word: m}}}),
        person.get("/files", params={"after": f"file-{word}"}),
        person.get("/chat/completions", params={f"metadata[{word}]": m}),
        person.get(f"/{word}", params={word: m}, headers={word: word, "user-agent": word}),
        person.post("/files", files={"file": (m, m.encode())}, data={"purpose": m}),
        person.post("/files", files={m: (m, m.encode())}, data={m: m}),
        person.get("/models", headers={"authorization": f"Bearer {word}"}),
        person.request(word.upper(), "/models"),
    ]
    return [reply.status_code for reply in replies]
