"""Words of each server."""

import json

import pytest

from antiphon.engine.upstream.affinity import conversation_key
from antiphon.engine.upstream.dialect import Flavour, body_of, path_of
from antiphon.engine.upstream.trouble import Trouble
from antiphon.engine.upstream.urls import base_of, name_of, root_of
from antiphon.events import Admit, Message, Sampling
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.upstream_settings import UpstreamSettings

SAID = ("be", "hi", "yes", "well", "indeed", "so")
EXTRAS = ("top_k", "min_p", "repetition_penalty", "repeat_penalty", "min_tokens", "ignore_eos")


def an_admit(*contents: str, **fields: object) -> Admit:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    messages = tuple(
        Message(role=role, content=content)  # type: ignore[arg-type]
        for role, content in zip(roles, contents or ("be", "hi"), strict=False)
    )
    return Admit(
        **{
            "request": EngineRequest(1),
            "slot": SlotIndex(0),
            "prompt": [5, 6, 7],
            "max_tokens": 8,
            "sampling": Sampling(),
            "stop": [],
            "messages": messages,
            **fields,
        }
    )


def extras_of(sampling: Sampling, flavour: Flavour, **settings: object) -> dict[str, object]:
    given = UpstreamSettings(model="m", **settings)
    body = body_of(an_admit(sampling=sampling), given, flavour)
    return {name: value for name, value in body.items() if name in EXTRAS}


@pytest.mark.parametrize(
    ("flavour", "said"),
    [
        (Flavour.VLLM, {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        (Flavour.SGLANG, {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        (Flavour.TRTLLM, {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}),
        (Flavour.LLAMA_CPP, {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}),
        (Flavour.UNKNOWN, {}),
    ],
)
def test_what_is_off_is_said_to_whoever_has_another_default(flavour, said):
    assert extras_of(Sampling(), flavour) == said


def test_what_is_wanted_is_said_to_everybody():
    wanted = Sampling(top_k=5, min_p=0.1, repetition_penalty=1.2, min_tokens=3, ignore_eos=True)

    assert extras_of(wanted, Flavour.UNKNOWN) == {
        "top_k": 5,
        "min_p": 0.1,
        "repetition_penalty": 1.2,
        "min_tokens": 3,
        "ignore_eos": True,
    }
    assert extras_of(wanted, Flavour.VLLM) == extras_of(wanted, Flavour.UNKNOWN)


@pytest.mark.parametrize(
    ("sampling", "flavour", "settings"),
    [
        (Sampling(top_k=5), Flavour.UNKNOWN, {"extras": "off"}),
        (Sampling(min_tokens=5), Flavour.LLAMA_CPP, {}),
    ],
)
def test_nothing_that_was_asked_for_is_left_out(sampling, flavour, settings):
    with pytest.raises(Trouble):
        extras_of(sampling, flavour, **settings)


def test_an_api_that_refuses_unknown_fields_gets_none():
    assert extras_of(Sampling(), Flavour.VLLM, extras="off") == {}


def test_a_server_without_seeds_gets_none_and_others_one_that_fits_everywhere():
    settings = UpstreamSettings(model="m")
    admit = an_admit(sampling=Sampling(seed=2**62 + 9))

    assert body_of(admit, settings, Flavour.UNKNOWN)["seed"] == 9
    assert "seed" not in body_of(admit, UpstreamSettings(model="m", seed=False), Flavour.VLLM)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [({"type": "object"}, "json_object"), ({"type": "object", "properties": {}}, "json_schema")],
)
def test_a_schema_is_sent_as_openai_has_it(schema, kind):
    admit = an_admit(sampling=Sampling(json_schema=json.dumps(schema)))

    body = body_of(admit, UpstreamSettings(model="m"), Flavour.UNKNOWN)

    assert body["response_format"]["type"] == kind


def test_tokens_are_sent_without_messages():
    settings = UpstreamSettings(model="m", prompts="tokens", tokenizer="m")

    body = body_of(an_admit(), settings, Flavour.VLLM)

    assert path_of(settings) == "/completions"
    assert (body["prompt"], "messages" in body) == ([5, 6, 7], False)


def test_a_conversation_has_one_key_from_its_first_turn_to_its_last():
    turns = [an_admit(*SAID[:n]) for n in (2, 4, 6)]

    assert len({conversation_key(turn) for turn in turns}) == 1


@pytest.mark.parametrize(
    "other",
    [
        an_admit("be", "ho"),
        an_admit("bee", "hi"),
        an_admit("be", "hi", salt="another tenant"),
        an_admit("be", "hi", affinity="another name"),
        an_admit("", "behi"),
    ],
)
def test_another_conversation_has_another_key(other):
    assert conversation_key(other) != conversation_key(an_admit("be", "hi"))


def test_a_name_counts_for_more_than_how_it_begins():
    named = [an_admit("be", text, affinity="conv_1") for text in ("hi", "ho")]

    assert conversation_key(named[0]) == conversation_key(named[1])


def test_a_prompt_without_messages_has_a_key_by_its_tokens():
    turns = [an_admit(messages=(), prompt=[*range(64), *more]) for more in ([], [1, 2])]

    assert conversation_key(turns[0]) == conversation_key(turns[1])
    assert conversation_key(an_admit(messages=(), prompt=[9])) != conversation_key(turns[0])


@pytest.mark.parametrize(
    ("url", "base", "root", "name"),
    [
        ("http://h:1/v1", "http://h:1/v1", "http://h:1", "h:1"),
        ("http://h:1", "http://h:1/v1", "http://h:1", "h:1"),
        ("https://h/v3/", "https://h/v3", "https://h", "h/v3"),
        ("http://[::1]:8/a/v1", "http://[::1]:8/a/v1", "http://[::1]:8/a", "[::1]:8/a"),
    ],
)
def test_the_parts_of_an_address(url, base, root, name):
    assert (base_of(url), root_of(base_of(url)), name_of(base_of(url))) == (base, root, name)
