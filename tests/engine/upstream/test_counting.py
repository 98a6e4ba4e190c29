"""Who counts tokens, and what happens when nobody does."""

import json

import httpx2
import pytest
import structlog.testing

from antiphon.actors.breaker import Breaker
from antiphon.engine.upstream.counting import Counter, EstimatingTokenizer
from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.fleet import Facts, Fleet, Replica
from antiphon.engine.upstream.generation import Generation, Means
from antiphon.events import Admit, Message, Sampling, SlotText
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.replicas import ScriptedCluster, ScriptedReplica, a_chunk, data_line
from antiphon.upstream_settings import UpstreamSettings

HELLO = (Message(role="user", content="hello there"),)
NO_USAGE = [data_line(a_chunk("one two")), data_line(a_chunk(end="stop")), data_line("[DONE]")]


class Tokenizing(ScriptedReplica):
    """Has `/tokenize`, as vLLM and llama-server have it; a token is a word."""

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if path not in ("/tokenize", "/apply-template"):
            return super().answer(request)
        body = json.loads(request.content)
        if path == "/apply-template":
            if self.owned_by != "llamacpp":
                return httpx2.Response(404)
            text = "".join(f"<|user|> {message['content']} " for message in body["messages"])
            return httpx2.Response(200, json={"prompt": text})
        if self.owned_by == "llamacpp":
            return httpx2.Response(200, json={"tokens": body["content"].split()})
        text = body.get("prompt") or " ".join(m["content"] for m in body["messages"])
        return httpx2.Response(200, json={"count": len(text.split()), "max_model_len": 4096})


class Words:
    def count_text(self, text: str) -> int:
        return len(text.split())


@pytest.mark.parametrize(("owner", "prompt"), [("vllm", 2), ("sglang", 2), ("llamacpp", 3)])
async def test_without_usage_the_replica_is_asked(running, autojump_clock, owner, prompt):
    cluster = ScriptedCluster({"a": Tokenizing(owned_by=owner, script=NO_USAGE)})

    last = await answer(running, cluster)

    assert (last.tokens, last.prompt_tokens) == (2, prompt)


async def test_where_nobody_counts_a_chunk_is_a_token(running, autojump_clock):
    last = await answer(running, ScriptedCluster({"a": ScriptedReplica(script=NO_USAGE)}))

    assert (last.tokens, last.prompt_tokens) == (1, None)


async def test_a_replica_that_cannot_count_is_not_asked_again(autojump_clock):
    cluster = ScriptedCluster({"a": ScriptedReplica()})
    counter = Counter(cluster.connect, {}, "m", connect_s=1.0)
    replica = Replica("http://a/v1", "a", None)  # type: ignore[arg-type]

    assert await counter.count_text(replica, "a b") is None
    cluster.replicas["a"].kill()  # would be seen as a failure to connect
    assert await counter.count_text(replica, "a b") is None
    cluster.replicas["a"] = Tokenizing()
    assert await counter.count_text(replica, "a b") is None


async def test_a_replica_that_was_away_is_asked_again(autojump_clock):
    cluster = ScriptedCluster({"a": Tokenizing()})
    counter = Counter(cluster.connect, {}, "m", connect_s=1.0)
    replica = Replica("http://a/v1", "a", None)  # type: ignore[arg-type]
    cluster.replicas["a"].kill()
    assert await counter.count_text(replica, "a b") is None
    cluster.replicas["a"].revive()

    assert await counter.count_text(replica, "a b") == 2


async def test_the_models_own_tokenizer_comes_first_and_sees_a_prompt_that_was_cut(autojump_clock):
    cluster = ScriptedCluster({"a": ScriptedReplica()})
    means, replica = own_means(cluster)
    said: list[SlotText] = []
    with structlog.testing.capture_logs() as logs:
        await Generation(an_admit(prompt=[0] * 2_000), means, said.append).run()

    assert said[-1].prompt_tokens is None  # it stays as it was counted here
    cut = next(line for line in logs if line["event"] == "prompt_cut")
    assert (cut["replica"], cut["tokens"], cut["counted"]) == (replica.name, 2_000, 11)


async def test_a_few_tokens_of_a_template_are_no_cut(autojump_clock):
    means, _ = own_means(ScriptedCluster({"a": ScriptedReplica()}))
    with structlog.testing.capture_logs() as logs:
        await Generation(an_admit(prompt=[0] * 12), means, lambda _: None).run()

    assert [line["event"] for line in logs] == []


async def test_the_api_counts_prompts_as_the_replica_does(running, autojump_clock):
    async with running(ScriptedCluster({"a": Tokenizing()})) as upstream:
        assert await upstream.count_prompt(HELLO) is None
        await (await upstream.launch()).receive()

        assert await upstream.count_prompt(HELLO) == 2


def test_an_estimate_grows_with_the_text_and_with_the_messages():
    def estimate(*contents: str) -> int:
        messages = [Message(role="user", content=content) for content in contents]
        return len(EstimatingTokenizer().encode_chat(messages))

    assert estimate("word " * 400) == 500 + 8
    assert estimate("文字" * 100) > estimate("ab" * 100)
    assert estimate("", "", "") > estimate("")
    assert estimate("\ud800") > 0


def an_admit(**fields: object) -> Admit:
    return Admit(
        **{
            "request": EngineRequest(1),
            "slot": SlotIndex(0),
            "prompt": [0],
            "max_tokens": 16,
            "sampling": Sampling(seed=1),
            "stop": [],
            "messages": HELLO,
            **fields,
        }
    )


def own_means(cluster: ScriptedCluster) -> tuple[Means, Replica]:
    """Means with a tokenizer of our own, and its one replica up."""
    replica = Replica("http://a/v1", "a", Breaker("a"))
    fleet = Fleet([replica], slots=1, balance=1.25, clock=lambda: 0.0)
    replica.facts = Facts(flavour=Flavour.VLLM, engine="vllm", window=4096, health="http://a/x")
    replica.is_up = True
    counter = Counter(cluster.connect, {}, "m", connect_s=1.0, tokenizer=Words())
    settings = UpstreamSettings(model="m")
    return (
        Means(settings=settings, fleet=fleet, connect=cluster.connect, headers={}, counter=counter),
        replica,
    )


async def answer(running, cluster: ScriptedCluster) -> SlotText:
    """The last text of one answer."""
    said: list[SlotText] = []
    async with running(cluster) as upstream:
        link = await upstream.launch()
        await link.receive()
        await Generation(an_admit(), link._means, said.append).run()
    return said[-1]
