"""What clients ask of a long conversation, and what they are told became of it."""

import json
from dataclasses import replace

import msgspec
import pytest

from antiphon.testing.chat import MODEL
from antiphon.testing.responses import answered
from antiphon.turn_events import TurnPlaced
from antiphon.views import Fate, Manifest, ManifestRun, PieceKind

RESPONSE = {"model": MODEL, "input": "hi"}
CHAT = {
    "model": MODEL,
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "and?"},
    ],
}
CONVERSATION = {"conversation": "conv_1"}


def manifest(*fates: Fate) -> Manifest:
    return Manifest(
        window=100,
        reserved_for_answer=20,
        prompt_tokens=50,
        template_tokens=10,
        truncation="auto",
        runs=tuple(
            ManifestRun(kind=PieceKind.HISTORY, fate=fate, items=2, tokens=40, shown_tokens=40)
            for fate in fates
        ),
    )


@pytest.mark.parametrize(
    ("fields", "in_force"),
    [
        ({}, "disabled"),
        ({"truncation": "auto"}, "auto"),
        (CONVERSATION, "auto"),
        ({"previous_response_id": "resp_1"}, "auto"),
        (CONVERSATION | {"truncation": "disabled"}, "disabled"),
    ],
)
async def test_the_response_says_what_was_in_force(client, responses, fields, in_force):
    responses.text = ["x"]
    answer = await client.post("responses", json=RESPONSE | fields)

    assert answer.json()["truncation"] == in_force
    assert responses.created[0].turn.truncation == in_force


async def test_a_threshold_reaches_the_turn(client, responses):
    responses.text = ["x"]
    wanted = [{"type": "compaction", "compact_threshold": 500}, {"type": "compaction"}]
    await client.post("responses", json=RESPONSE | {"context_management": wanted})

    assert responses.created[0].turn.compact == 500


async def test_a_response_shows_what_the_model_was_shown(client, shelf, responses):
    responses.text = ["x"]
    first = (await client.post("responses", json=RESPONSE)).json()
    stored = responses.created[0].response
    kept = {"context": msgspec.to_builtins(manifest(Fate.DROPPED, Fate.SHOWN))}
    with_context = replace(stored, request=stored.request | kept)
    shelf.responses_by_id[stored.id] = answered(with_context, "x")
    shown = (await client.get(f"responses/{first['id']}")).json()
    stream = (await client.get(f"responses/{first['id']}?stream=true")).text

    assert "context" not in first
    assert msgspec.convert(shown["context"], Manifest) == manifest(Fate.DROPPED, Fate.SHOWN)
    events = [json.loads(line[6:]) for line in stream.splitlines() if line[:6] == "data: "]
    assert "context" not in events[0]["response"]
    assert events[-1]["response"]["context"] == shown["context"]


@pytest.mark.parametrize(
    ("fates", "told"),
    [
        ((Fate.SHOWN,), None),
        ((Fate.TRIMMED, Fate.SHOWN), "trimmed"),
        ((Fate.SUMMARISED, Fate.TRIMMED), "summarised"),
        ((Fate.SUMMARISED, Fate.DROPPED), "dropped"),
    ],
)
async def test_a_chat_tells_of_its_context_only_where_something_is_missing(
    client, chat, fates, told
):
    chat.text = ["Hello"]
    chat.placed = TurnPlaced(model=MODEL, manifest=manifest(*fates))
    whole = await client.post("chat/completions", json=CHAT | {"truncation": "auto"})
    options = {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post("chat/completions", json=CHAT | options)
    chunks = [json.loads(line[6:]) for line in stream.text.splitlines() if line[:7] == "data: {"]

    for answer, last in ((whole, whole.json()), (stream, chunks[-1])):
        assert answer.headers.get("x-antiphon-context") == told
        assert last.get("context", {}).get("prompt_tokens") == (50 if told else None)
    assert not any("context" in chunk for chunk in chunks[:-1])


async def test_a_chat_is_cut_only_where_it_says_so(client, chat):
    chat.text = ["Hello"]
    for truncation in (None, "disabled", "auto"):
        await client.post("chat/completions", json=CHAT | {"truncation": truncation})
    bad = await client.post("chat/completions", json=CHAT | {"truncation": "some"})

    plain, disabled, auto = (each.turn for each in chat.turns)
    assert (plain.pieces, disabled.pieces) == ((), ())
    assert (plain.truncation, auto.truncation) == ("disabled", "auto")
    assert [piece.kind.value for piece in auto.pieces] == [
        "instructions",
        "history",
        "history",
        "input",
    ]
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "truncation")
