"""System prompts on two whole servers that share a database: put in force by the command, and seen
by an SDK."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import openai
import pytest

from antiphon.actors.prompts.prompts import FRESH_S
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine

MODEL = "smollm2-135m-instruct"
ALIAS = "tutor-model"
SETTINGS = f"""
[context]
prompt = "house"

[aliases.{ALIAS}]
models = ["{MODEL}"]
prompt = "tutor"
"""
SECONDS = FRESH_S + 2
"""With what a busy machine takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two servers, the commands beside them, and the database below them."""

    servers: tuple[ServerProcess, ServerProcess]
    environment: dict[str, str]
    config: Path
    postgres: PrivatePostgres

    def prompts(self, *arguments: str, text: str = "") -> str:
        return subprocess.run(
            [sys.executable, "-m", "antiphon", "--config", str(self.config), "prompts", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=os.environ | self.environment,
        ).stdout

    def clients(self) -> list[openai.OpenAI]:
        return [
            openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
            for server in self.servers
        ]

    def await_activation(self, name: str, said: str) -> None:
        """Until both servers have said that it is in force."""
        number = json.loads(said)["activation"]
        for server in self.servers:
            server.log.wait_for(
                "prompt_in_force",
                within_s=SECONDS,
                matching=lambda line: (line["prompt"], line["activation"]) == (name, number),
            )


@pytest.fixture(scope="module")
def pair(
    model_dir: Path, postgres: PrivatePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """`house` is in force for everybody, and `tutor` for the alias."""
    config = tmp_path_factory.mktemp("prompts") / "settings.toml"
    config.write_text(SETTINGS)
    environment = {"ANTIPHON_DATABASE_URL": postgres.another()}
    with (
        running_server(config, **environment) as one,
        running_server(config, **environment) as other,
    ):
        pair = Pair(servers=(one, other), environment=environment, config=config, postgres=postgres)
        for name, texts in {
            "house": ["You speak of the sea.", "You speak of the sky."],
            "tutor": ["You teach."],
            "guide": ["Greet {{name}}."],
        }.items():
            for text in texts:
                pair.prompts("add", name, "-", text=text)
        with pytest.raises(openai.InternalServerError) as early:
            ask(pair.clients()[0])
        assert early.value.code == "prompt_unavailable"
        assert b"no version of prompt 'house'" in one.get("/health/ready")[1]
        for name in ("house", "tutor"):
            pair.await_activation(name, pair.prompts("activate", name, "1", "--json"))
        pair.prompts("activate", "guide", "1")
        yield pair


def ask(
    client: openai.OpenAI, model: str = MODEL, **options: object
) -> openai.types.responses.Response:
    return client.responses.create(  # type: ignore[call-overload,no-any-return]
        model=model, input="Hello!", max_output_tokens=16, **options
    )


def version_of(response: openai.types.responses.Response) -> tuple[str, str | None]:
    assert response.prompt is not None
    return response.prompt.id, response.prompt.version


def traced(pair: Pair) -> Counter[str]:
    """Responses by the version that the database has of them."""
    database = urlsplit(pair.environment["ANTIPHON_DATABASE_URL"]).path.removeprefix("/")
    rows = pair.postgres.sql("SELECT prompt_version FROM inference_traces", database=database)
    return Counter(rows.splitlines())


def test_each_response_says_which_version_it_began_with(pair: Pair):
    one, other = pair.clients()
    before = traced(pair)

    shown = [version_of(ask(one)), version_of(ask(other, model=ALIAS))]
    asked = ask(one, prompt={"id": "guide", "version": "1", "variables": {"name": "Ada"}})

    assert shown == [("house", "1"), ("tutor", "1")]
    assert version_of(asked) == ("guide", "1")
    assert version_of(other.responses.retrieve(asked.id)) == ("guide", "1")
    assert traced(pair) - before == {"house@1": 1, "tutor@1": 1, "guide@1": 1}
    metrics = pair.servers[0].get("/metrics")[1].decode()
    assert 'antiphon_prompt_turns_total{finished_reason="' in metrics
    assert 'prompt="guide",version="1"' in metrics
    assert 'antiphon_prompt_share{prompt="house",version="1"} 1.0' in metrics


def test_the_model_is_shown_it_and_it_counts(pair: Pair):
    client, _ = pair.clients()
    plain = client.responses.create(
        model=MODEL, input="Hello!", max_output_tokens=16, prompt={"id": "tutor"}
    )
    longer = client.responses.create(
        model=MODEL,
        input="Hello!",
        max_output_tokens=16,
        prompt={"id": "guide", "variables": {"name": "Ada Lovelace, who wrote the first programs"}},
    )
    chat = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hello!"}], max_tokens=4
    )
    counted = client.responses.input_tokens.count(model=MODEL, input="Hello!")

    assert plain.usage is not None
    assert longer.usage is not None
    assert chat.usage is not None
    assert longer.usage.input_tokens > plain.usage.input_tokens + 5
    assert chat.usage.prompt_tokens == counted.input_tokens


def test_what_is_wrong_with_a_prompt_is_said(pair: Pair):
    client, _ = pair.clients()
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(client, prompt={"id": "nothing"})
    with pytest.raises(openai.BadRequestError) as missing:
        ask(client, prompt={"id": "guide"})

    assert unknown.value.param == "prompt.id"
    assert (missing.value.param, missing.value.code) == (
        "prompt.variables",
        "missing_prompt_variable",
    )


def test_a_rollback_is_one_command_and_both_servers_follow(pair: Pair):
    clients = pair.clients()
    pair.await_activation("house", pair.prompts("activate", "house", "2", "--json"))
    after = [version_of(ask(client)) for client in clients]

    pair.await_activation("house", pair.prompts("rollback", "house", "--json"))

    assert after == [("house", "2")] * 2
    assert [version_of(ask(client)) for client in clients] == [("house", "1")] * 2


def test_a_canary_has_its_share_of_conversations_and_keeps_them_on_both_servers(pair: Pair):
    said = pair.prompts("activate", "house", "1", "--canary", "2=0.4", "--json")
    pair.await_activation("house", said)
    one, other = pair.clients()
    conversations = [one.conversations.create().id for _ in range(16)]

    rounds = [
        [version_of(ask(client, conversation=id))[1] for id in conversations]
        for client in (one, other, one)
    ]

    assert rounds[0] == rounds[1] == rounds[2]
    assert 1 <= rounds[0].count("2") <= 13
    pair.await_activation("house", pair.prompts("rollback", "house", "--json"))
    assert [version_of(ask(one, conversation=id))[1] for id in conversations] == ["1"] * 16
