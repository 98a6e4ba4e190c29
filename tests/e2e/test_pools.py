"""A real server with two pools of the default model: aliases, and a move when one is busy."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine
CONFIG = """
model_name = "big"
smaller = "small"
[engine]
slots = 1
threads = 1
kv_cache_mib = 64
[queue]
max_requests = 1
[pools.second]
model = "smollm2-135m-instruct"
model_name = "small"
[pools.second.engine]
slots = 2
threads = 1
kv_cache_mib = 64
[aliases.auto]
models = ["big"]
[aliases.fast]
models = ["small"]
"""
MESSAGES = [{"role": "user", "content": "Count to a hundred."}]


@pytest.fixture(scope="module")
def pools(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = tmp_path_factory.mktemp("pools") / "antiphon.toml"
    config.write_text(CONFIG)
    with running_server(config, ANTIPHON_POLICY_ENABLED="false") as server:
        yield server


@pytest.fixture
def client(pools: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=pools.base_url, api_key="unused", max_retries=0) as client:
        yield client


def test_every_name_answers_as_the_model_behind_it(pools: ServerProcess, client: openai.OpenAI):
    answers = {
        name: client.chat.completions.create(
            model=name, messages=MESSAGES, max_tokens=4, temperature=0
        )
        for name in ("big", "small", "auto", "fast")
    }

    assert [model.id for model in client.models.list()] == ["big", "small", "auto", "fast"]
    assert {name: answer.model for name, answer in answers.items()} == {
        "big": "big",
        "small": "small",
        "auto": "big",
        "fast": "small",
    }
    assert len({answer.choices[0].message.content for answer in answers.values()}) == 1
    assert [(slot["model"], slot["slot"]) for slot in pools.slots()] == [
        ("big", 0),
        ("small", 0),
        ("small", 1),
    ]
    assert {"root/pools/pool:big/driver", "root/pools/pool:small/driver"} <= pools.tree().keys()
    assert "models      big, small, auto, fast" in pools.banner


def test_when_one_pool_is_busy_the_smaller_model_answers_and_says_so(
    pools: ServerProcess, client: openai.OpenAI
):
    def ask(_: int) -> tuple[str | None, str]:
        raw = client.chat.completions.with_raw_response.create(
            model="auto", messages=MESSAGES, max_tokens=150, extra_body={"ignore_eos": True}
        )
        return raw.headers.get("x-antiphon-model-moved"), raw.parse().model

    # One slot, and one place to wait: of three at once, one at least must go elsewhere.
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(ask, range(3)))
    decisions = json.loads(pools.get("/ops/routing")[1])

    assert set(answers) == {(None, "big"), ("overload", "small")}
    moved = [each for each in decisions if each["moved"] == "overload"]
    assert {(each["asked"], each["model"]) for each in moved} == {("auto", "small")}
    assert pools.metric("antiphon_routed_total") >= 6
