"""Plans, the ledger and suspensions on a whole server, as an SDK and an operator see them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import openai
import pytest

from antiphon.actors.accounts.accounts import FOUND_S
from antiphon.testing.process import running_server

pytestmark = pytest.mark.engine

SETTINGS = """
[plans.small]
requests_per_minute = 3
tokens_per_day = 10_000
max_output_tokens = 24
"""
MODEL = "smollm2-135m-instruct"


def test_an_sdk_is_told_of_its_limits_and_billed_what_it_is_told(tmp_path: Path):
    config = tmp_path / "settings.toml"
    config.write_text(SETTINGS)
    database = {"ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db"}

    def antiphon(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "antiphon", "--config", str(config), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=os.environ | database,
        ).stdout.strip()

    secret = antiphon("keys", "create", "--user", "alice")
    antiphon("users", "set-plan", "alice", "small")
    with running_server(config, ANTIPHON_POLICY_ENABLED="false", **database) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0)

        def ask(**options: object):
            return client.chat.completions.with_raw_response.create(
                model=MODEL,
                messages=[{"role": "user", "content": "Tell me about the sea."}],
                **options,  # type: ignore[arg-type]
            )

        first = ask(max_tokens=8)
        second = ask()
        response = client.responses.create(model=MODEL, input="And the sky?", max_output_tokens=16)
        with pytest.raises(openai.RateLimitError) as limited:
            ask(max_tokens=8)
        with pytest.raises(openai.BadRequestError) as too_long:
            client.responses.create(model=MODEL, input="More!", max_output_tokens=25)
        told = [first.parse().usage, second.parse().usage]
        usage = httpx2.get(
            f"{server.base_url}/usage", headers={"authorization": f"Bearer {secret}"}
        ).json()
        antiphon("users", "suspend", "alice", "--reason", "unpaid bill")
        time.sleep(FOUND_S + 0.5)
        with pytest.raises(openai.PermissionDeniedError) as suspended:
            client.models.list()

    assert first.headers["x-ratelimit-limit-requests"] == "3"
    assert first.headers["x-ratelimit-remaining-requests"] == "2"
    assert first.headers["x-ratelimit-limit-tokens"] == "10000"
    assert second.headers["x-ratelimit-remaining-requests"] == "1"
    assert told[1].completion_tokens <= 24, "a client that names no length gets the plan's"
    assert limited.value.code == "rate_limit_exceeded"
    assert limited.value.response.headers["x-ratelimit-remaining-requests"] == "0"
    assert 0 < int(limited.value.response.headers["retry-after-ms"]) <= 61_000
    assert too_long.value.param == "max_output_tokens"
    assert usage["plan"] == "small"
    assert usage["total"]["requests"] == 3
    assert usage["total"]["total_tokens"] == (
        sum(each.total_tokens for each in told) + response.usage.total_tokens
    )
    assert suspended.value.code == "key_suspended"
    assert "unpaid bill" in suspended.value.message
    assert "problem" not in antiphon("db", "check")
