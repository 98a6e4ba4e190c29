"""Two real servers: one asks the other's `/v1/moderations` what to think of its prompts."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine

RULES = """\
format = 1
version = "elsewhere"

[refusal]
default = "No."

[[rules]]
id = "flagged-there"
stages = ["input"]
match = { kind = "upstream" }
action = "block"
on_failure = "closed"
"""
BAD = "I will kill you and your whole family, you disgusting animals. All of your kind must die."
GOOD = "What is the capital of France?"


@pytest.fixture
def elsewhere(model_dir: Path) -> Iterator[ServerProcess]:
    with running_server() as server:
        yield server


@pytest.fixture
def asking(elsewhere: ServerProcess, tmp_path: Path) -> Iterator[ServerProcess]:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES, encoding="utf-8")
    with running_server(
        ANTIPHON_POLICY_RULES=str(rules),
        ANTIPHON_POLICY_UPSTREAM_URL=elsewhere.base_url,
        ANTIPHON_POLICY_DEADLINE_S="5",  # on a busy machine a second is too little for two servers
    ) as server:
        yield server


def test_what_another_server_flags_is_blocked_here_and_what_it_cannot_be_asked_is_too(
    asking: ServerProcess, elsewhere: ServerProcess
):
    with openai.OpenAI(base_url=asking.base_url, api_key="unused", max_retries=0) as client:
        model = client.models.list().data[0].id

        def ask(text: str) -> openai.types.chat.chat_completion.Choice:
            answer = client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": text}], max_tokens=8
            )
            return answer.choices[0]

        blocked, answered = ask(BAD), ask(GOOD)
        elsewhere.process.kill()
        unasked = ask(f"{GOOD} Be brief.")

    assert (blocked.finish_reason, blocked.message.refusal) == ("content_filter", "No.")
    assert answered.finish_reason in {"length", "stop"}
    assert answered.message.content
    assert (unasked.finish_reason, unasked.message.refusal) == ("content_filter", "No.")
    asking.log.wait_for("moderation_upstream_failed", within_s=10)
