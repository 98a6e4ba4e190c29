"""What clients see of the policy: refusals, the `moderation` field, the version that judged."""

import json
from dataclasses import replace

import msgspec
import openai
import openai.types.chat.chat_completion as chat_types
import pytest
import trio
import trio.lowlevel
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from antiphon.errors import InvalidRequest
from antiphon.http.openai.moderations.scoring import scoring_of
from antiphon.http.openai.schema import ModerationOptions
from antiphon.ids import ItemId
from antiphon.judged import judged_json, judged_of
from antiphon.narration import (
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    Started,
)
from antiphon.records import Item, ResponseStatus, TokenUsage
from antiphon.testing.chat import MODEL
from antiphon.testing.judging import MODEL as CLASSIFIER
from antiphon.testing.judging import scores_of
from antiphon.turn_events import ChoiceEnded, FinishReason, Refused, TurnEnded, TurnPlaced, Usage
from antiphon.verdicts import (
    CATEGORIES,
    Action,
    Failure,
    Finding,
    Judged,
    NotRun,
    OnFailure,
    Scoring,
    Stage,
    Verdict,
)

MESSAGES = [{"role": "user", "content": "hi"}]
ASKED = {"moderation": {"model": "omni-moderation-latest"}}
CUT = FinishReason.CONTENT_FILTER
FOUND = Finding(rule="hate", stage=Stage.INPUT, action=Action.BLOCK, category="hate", score=0.9)
BLOCKED = Judged(
    version="v7",
    input=Verdict(version="v7", findings=(FOUND,), scores=scores_of("kill", ("kill",))),
    output=(Verdict(version="v7"),),
)
PASSED = Judged(
    version="v7",
    input=Verdict(version="v7", scores=scores_of("hi")),
    output=(Verdict(version="v7", scores=scores_of("ho")),),
)


def body(**fields) -> dict:
    return {"model": MODEL, "messages": MESSAGES} | fields


def chunks_of(text: str) -> list[dict]:
    datas = [line.removeprefix("data: ") for line in text.splitlines() if line[:5] == "data:"]
    assert datas[-1] == "[DONE]"
    return [json.loads(data) for data in datas[:-1]]


@pytest.fixture
def ask(client, chat):
    """Post a chat, play its turn, and give back what the client got."""

    async def asked(*events, headers=None, **fields):
        got = []

        async def post():
            sent = body(**fields)
            got.append(await client.post("chat/completions", json=sent, headers=headers))

        chat.placed = TurnPlaced(model=MODEL, policy="v7")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post)
            (await chat.next_turn()).feed(*events)
        return got[0]

    return asked


def refusal(*, judged: Judged | None = BLOCKED, choices: int = 1):
    return (
        *(
            event
            for choice in range(choices)
            for event in (
                Refused(choice=choice, text="Sorry."),
                ChoiceEnded(choice=choice, finish_reason=CUT),
            )
        ),
        TurnEnded(usage=Usage(prompt_tokens=0, completion_tokens=0), judged=judged),
    )


async def test_a_blocked_chat_is_a_refusal_in_the_apis_own_shape(ask):
    answer = await ask(*refusal())

    ChatCompletion.model_validate(answer.json(), strict=True)
    [choice] = answer.json()["choices"]
    assert (answer.status_code, choice["finish_reason"]) == (200, "content_filter")
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": "Sorry."}
    assert answer.headers["x-antiphon-policy"] == "v7"
    assert "moderation" not in answer.json()


async def test_what_was_delivered_before_a_cut_stays_and_the_refusal_follows(client, chat, ask):
    for stream in (False, True):
        turns = len(chat.turns)

        async def play(before=turns):
            while len(chat.turns) == before:
                await trio.lowlevel.checkpoint()
            chat.turns[-1].say("So ", "far")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play)
            answer = await ask(*refusal(), stream=stream)
        if stream:
            deltas = [each["choices"][0]["delta"] for each in chunks_of(answer.text)]
            assert "".join(each.get("content") or "" for each in deltas) in ("So far", "")
            assert {"refusal": "Sorry."}.items() <= next(
                each for each in deltas if "refusal" in each
            ).items()
        else:
            [choice] = answer.json()["choices"]
            assert choice["message"]["refusal"] == "Sorry."


async def test_a_blocked_stream_says_so_in_its_delta_and_ends_as_filtered(ask):
    answer = await ask(*refusal(choices=2), stream=True, n=2)

    chunks = chunks_of(answer.text)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "refusal": "Sorry."},
        {},
        {"role": "assistant", "refusal": "Sorry."},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, CUT, None, CUT]
    assert answer.headers["x-antiphon-policy"] == "v7"


async def test_openais_helper_sees_a_refusal(server, chat):
    chat.placed = TurnPlaced(model=MODEL)

    def talk():
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            whole = client.chat.completions.create(model=MODEL, messages=MESSAGES)  # type: ignore[arg-type]
            stream = client.chat.completions.stream(model=MODEL, messages=MESSAGES)  # type: ignore[arg-type]
            with stream as events:
                kinds = [event.type for event in events]
                with pytest.raises(openai.ContentFilterFinishReasonError) as caught:
                    events.get_final_completion()
                return whole, kinds, caught.value.completion

    said = []
    async with trio.open_nursery() as nursery:

        async def run():
            said.append(await trio.to_thread.run_sync(talk))

        nursery.start_soon(run)
        for _ in range(2):
            (await chat.next_turn()).feed(*refusal())
    [(whole, kinds, final)] = said
    assert "refusal.delta" in kinds
    for completion in (whole, final):
        assert completion.choices[0].message.refusal == "Sorry."
        assert completion.choices[0].finish_reason == "content_filter"


async def test_a_client_that_asks_is_told_what_its_texts_were_judged_to_be(ask, chat):
    answer = await ask(
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
        TurnEnded(usage=Usage(prompt_tokens=1, completion_tokens=1), judged=PASSED),
        **ASKED,
    )

    assert chat.turns[0].turn.scoring == Scoring()
    completion = ChatCompletion.model_validate(answer.json(), strict=True)
    assert isinstance(completion.moderation, chat_types.Moderation)
    shown = answer.json()["moderation"]
    assert (shown["input"]["type"], shown["input"]["model"]) == ("moderation_results", CLASSIFIER)
    [result] = shown["output"]["results"]
    assert (result["type"], result["flagged"]) == ("moderation_result", False)
    assert set(result["categories"]) == set(result["category_scores"]) == set(CATEGORIES)
    assert result["category_applied_input_types"]["hate"] == ["text"]
    assert result["policy"] == "v7"


async def test_the_moderation_of_a_stream_has_a_chunk_of_its_own_before_the_usage(ask):
    answer = await ask(*refusal(), stream=True, stream_options={"include_usage": True}, **ASKED)

    *_, judged, usage = chunks_of(answer.text)
    ChatCompletionChunk.model_validate(judged, strict=True)
    assert (judged["choices"], usage["choices"]) == ([], [])
    assert judged["usage"] is None
    [result] = judged["moderation"]["input"]["results"]
    assert result["flagged"]
    assert result["rules"] == [{"id": "hate", "action": "block", "category": "hate", "score": 0.9}]
    # Nothing was generated, so nothing was judged.
    assert judged["moderation"]["output"]["type"] == "error"
    assert usage["usage"]["total_tokens"] == 0
    assert "moderation" not in usage


async def test_a_text_that_could_not_be_judged_is_an_error_and_not_a_pass(ask):
    missing = NotRun(
        rule="hate", stage=Stage.INPUT, failure=Failure.DEADLINE, on_failure=OnFailure.OPEN
    )
    judged = replace(PASSED, input=Verdict(version="v7", not_run=(missing,)))
    answer = await ask(
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
        TurnEnded(usage=Usage(prompt_tokens=1, completion_tokens=1), judged=judged),
        **ASKED,
    )

    shown = answer.json()["moderation"]["input"]
    assert shown == {
        "type": "error",
        "code": "deadline",
        "message": "The text could not be judged: deadline.",
    }
    ChatCompletion.model_validate(answer.json(), strict=True)


@pytest.mark.parametrize(
    ("policy", "scoring"),
    [
        (None, Scoring()),
        ({}, Scoring()),
        ({"input": None, "output": {"mode": "score"}}, Scoring()),
        ({"input": {"mode": "block"}}, Scoring(blocks_input=True)),
        ({"output": {"mode": "block"}}, Scoring(blocks_output=True)),
    ],
)
@pytest.mark.parametrize("model", ["omni-moderation-latest", "text-moderation-stable", CLASSIFIER])
async def test_what_a_client_asks_of_the_classifier_goes_with_its_turn(
    client, chat, responses, policy, scoring, model
):
    chat.text = responses.text = ["x"]
    asked = {"moderation": {"model": model, "policy": policy}}
    await client.post("chat/completions", json=body(**asked))
    await client.post("responses", json={"model": MODEL, "input": "hi"} | asked)

    assert chat.turns[0].turn.scoring == scoring
    assert responses.created[0].turn.scoring == scoring


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"model": "nobody"}, "moderation.model"),
        ({}, "moderation.model"),
        ({"model": CLASSIFIER, "policy": {"input": {"mode": "x"}}}, "moderation.policy.input.mode"),
        ({"model": CLASSIFIER, "other": 1}, "moderation.other"),
    ],
)
async def test_what_is_not_there_is_refused_by_name(client, path, asked, param):
    sent = body() if path[0] == "c" else {"model": MODEL, "input": "hi"}
    answer = await client.post(path, json=sent | {"moderation": asked})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_null_is_the_same_as_absent(client, chat):
    chat.text = ["x"]
    await client.post("chat/completions", json=body(moderation=None))

    assert chat.turns[0].turn.scoring is None


async def test_the_readers_languages_go_with_the_turn(client, chat, responses):
    chat.text = responses.text = ["x"]
    headers = {"Accept-Language": "de-CH, en;q=0.5, fr;q=0.8"}
    await client.post("chat/completions", json=body(), headers=headers)
    await client.post("responses", json={"model": MODEL, "input": "hi"}, headers=headers)

    assert chat.turns[0].turn.languages == ("de-CH", "fr", "en")
    assert responses.created[0].turn.languages == ("de-CH", "fr", "en")


def refused_response(response, judged: Judged):
    """As it is kept."""
    item = Item(
        id=ItemId("msg_1"),
        type="message",
        role="assistant",
        body={
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "Sorry."}],
            "withheld": ["msg_0"],
        },
        created_ms=response.created_ms,
        status="incomplete",
    )
    return replace(
        response,
        status=ResponseStatus.INCOMPLETE,
        incomplete_reason="content_filter",
        completed_ms=response.created_ms + 1,
        usage=TokenUsage(),
        output=(item,),
        request=response.request | {"judged": judged_json(judged)},
    )


REFUSAL_EVENTS = (
    Opened(status=ResponseStatus.IN_PROGRESS),
    Started(),
    ItemOpened(index=0, item=ItemId("msg_1")),
    RefusalOpened(index=0),
    RefusalAdded(index=0, text="Sorry."),
    RefusalClosed(index=0),
    PartClosed(index=0),
    ItemClosed(index=0, finish=CUT),
)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_blocked_response_is_incomplete_and_says_why(client, responses, shelf, stream):
    answers = []

    async def post():
        sent = {"model": MODEL, "input": "hi", "stream": stream}
        answers.append(await client.post("responses", json=sent))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.placed = TurnPlaced(model=MODEL, policy="v7")
        watcher.feed(*REFUSAL_EVENTS)
        final = refused_response(watcher.response, BLOCKED)
        shelf.put(final)
        watcher.end(final)

    [answer] = answers
    assert answer.headers["x-antiphon-policy"] == "v7"
    if stream:
        lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
        events = [json.loads(line.removeprefix("data: ")) for line in lines]
        assert [event["type"].removeprefix("response.") for event in events] == [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "refusal.delta",
            "refusal.done",
            "content_part.done",
            "output_item.done",
            "incomplete",
        ]
        assert "moderation" not in events[0]["response"]
        assert events[4] | {"sequence_number": 0} == {
            "type": "response.refusal.delta",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": "Sorry.",
            "sequence_number": 0,
        }
        assert events[5]["refusal"] == "Sorry."
        assert events[6]["part"] == {"type": "refusal", "refusal": "Sorry."}
        shown = events[-1]["response"]
    else:
        shown = answer.json()
    stored = (await client.get(f"responses/{shown['id']}")).json()
    for each in (shown, stored):
        Response.model_validate(each)
        assert (each["status"], each["incomplete_details"]) == (
            "incomplete",
            {"reason": "content_filter"},
        )
        assert each["output"][0]["content"] == [{"type": "refusal", "refusal": "Sorry."}]
        assert each["moderation"]["input"]["flagged"] is True
        assert each["moderation"]["input"]["type"] == "moderation_result"
        assert each["moderation"]["output"]["type"] == "error"
    assert shown == stored


async def test_openai_python_reads_a_refusal_from_a_stream(server, responses):
    def talk():
        with (
            openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client,
            client.responses.stream(model=MODEL, input="hi") as stream,
        ):
            return list(stream)

    said = []
    async with trio.open_nursery() as nursery:

        async def run():
            said.append(await trio.to_thread.run_sync(talk))

        nursery.start_soon(run)
        watcher = await responses.next_watcher()
        watcher.feed(*REFUSAL_EVENTS)
        watcher.end(refused_response(watcher.response, BLOCKED))
    [events] = said
    assert "response.refusal.delta" in {event.type for event in events}
    final = events[-1].response
    assert final.output[0].content[0].refusal == "Sorry."
    assert final.moderation.input.flagged


async def test_judgements_come_back_from_json_as_they_were():
    text = msgspec.json.encode(judged_json(BLOCKED))

    assert judged_of(msgspec.json.decode(text)) == BLOCKED


async def test_a_kept_chat_that_was_refused_is_shown_as_it_was(client, responses, shelf):
    answers = []

    async def post():
        sent = body(store=True, **ASKED)
        answers.append(await client.post("chat/completions", json=sent))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(post)
        watcher = await responses.next_watcher()
        watcher.feed(*REFUSAL_EVENTS)
        final = refused_response(watcher.response, BLOCKED)
        final = replace(
            final,
            status=ResponseStatus.COMPLETED,
            incomplete_reason=None,
            output=tuple(
                replace(item, body=item.body | {"finish_reason": CUT}) for item in final.output
            ),
        )
        shelf.put(final)
        watcher.end(final)

    [answer] = answers
    stored = (await client.get(f"chat/completions/{answer.json()['id']}")).json()
    for shown in (answer.json(), stored):
        ChatCompletion.model_validate(shown)
        [choice] = shown["choices"]
        assert choice["message"] == {"role": "assistant", "content": None, "refusal": "Sorry."}
        assert choice["finish_reason"] == "content_filter"
        assert shown["moderation"]["input"]["results"][0]["flagged"] is True


def test_without_a_policy_the_field_is_refused():
    with pytest.raises(InvalidRequest, match="not supported by this server"):
        scoring_of(ModerationOptions(model=CLASSIFIER), None)
