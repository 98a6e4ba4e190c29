import random
import string

import pytest

from antiphon.policy.expression import parse
from antiphon.policy.rulebook import parse_rules
from antiphon.policy.secrets import SECRETS
from antiphon.verdicts import PolicyScope, Stage

ALL = parse_rules(
    "rules.toml",
    'format = 1\n[[rules]]\nid = "secret"\nstages = ["input", "output"]\nmatch.kind = "secrets"\n',
    folder=None,
).for_scope(PolicyScope())
RANDOM = random.Random(7)


def letters(count, alphabet=string.ascii_letters + string.digits):
    return "".join(RANDOM.choice(alphabet) for _ in range(count))


HEX = "0123456789abcdef"
BODY = f"\n{letters(64)}\n{letters(64)}\n"
REAL = {
    "openai_key": [f"sk-{letters(48)}", f"sk-proj-{letters(60)}_{letters(40)}-{letters(20)}"],
    "anthropic_key": [f"sk-ant-api03-{letters(93)}AA"],
    "aws_access_key": [f"AKIA{letters(16, string.ascii_uppercase + '234567')}"],
    "aws_secret_key": [
        f"aws_secret_access_key = {letters(40)}",
        f'"SecretAccessKey": "{letters(40)}',
    ],
    "azure_storage_key": [f"AccountKey={letters(86)}=="],
    "google_api_key": [f"AIza{letters(35)}"],
    "google_oauth": [f"ya29.{letters(120)}", f"GOCSPX-{letters(28)}"],
    "github_token": [f"ghp_{letters(36)}", f"github_pat_{letters(22)}_{letters(59)}"],
    "gitlab_token": [f"glpat-{letters(20)}", f"GR1348941{letters(20)}"],
    "slack_token": [f"xoxb-123456789012-1234567890123-{letters(24)}"],
    "slack_webhook": [
        f"hooks.slack.com/services/T0{letters(8, 'ABCDEF12')}/B0ABCDEF12/{letters(24)}"
    ],
    "stripe_key": [f"sk_live_{letters(24)}", f"rk_test_{letters(99)}", f"whsec_{letters(32)}"],
    "private_key": [
        f"-----BEGIN RSA PRIVATE KEY-----{BODY}",
        f"-----BEGIN PRIVATE KEY-----\\n{letters(64)}\\n",
        f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n{BODY}",
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n{BODY}",
        f"-----BEGIN OPENSSH PRIVATE KEY-----{BODY}",
    ],
    "jwt": [
        f"eyJ{letters(33)}.eyJ{letters(70)}.{letters(43)}",
        f"eyJ{letters(33)}.eyJ{letters(900)}",
    ],
    "npm_token": [f"npm_{letters(36)}"],
    "pypi_token": [f"pypi-AgEIcHlwaS5vcmc{letters(150)}"],
    "huggingface_token": [f"hf_{letters(34)}"],
    "twilio_key": [f"SK{letters(32, HEX)}"],
    "sendgrid_key": [f"SG.{letters(22)}.{letters(43)}"],
    "telegram_token": [f"123456789:AA{letters(33)}"],
    "digitalocean_token": [f"dop_v1_{letters(64, HEX)}"],
    "connection_string": [
        "postgres://app:s3cr3t-Horse@db.example.org:5432/app",
        "mongodb+srv://admin:Qw3rty!z@cluster0.mongodb.net",
        "redis://:hunter2hunter2@cache:6379",
    ],
}


def found(text, stage=Stage.INPUT):
    return [text[each.start : each.end] for each in ALL.search(stage, text)]


def test_every_kind_is_tried_here():
    assert REAL.keys() == SECRETS.keys()


@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, secret) for kind, secrets in REAL.items() for secret in secrets]
)
def test_a_secret_is_found_where_it_stands(kind, secret):
    hits = found(f'key="{secret}", and so on')

    assert len(hits) == 1
    if SECRETS[kind].whole:
        assert hits[0] in secret
        assert len(hits[0]) > len(secret) * 0.7
    else:
        assert secret.startswith(hits[0])


@pytest.mark.parametrize(
    "text",
    [
        "sk-" + "x" * 48,
        "sk-this-is-only-a-name-with-hyphens",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "0" * 36,
        "a file that begins with -----BEGIN RSA PRIVATE KEY----- and ends so",
        "-----BEGIN PUBLIC KEY-----\n" + "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA",
        "postgres://user:password@localhost/app",
        "postgres://${USER}:${PASSWORD}@localhost/app",
        "https://example.org:8443/a@b",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "eyJ is how a token begins",
        "The skeleton sk-8 was found in 1984.",
    ],
)
def test_what_only_looks_like_one_is_not_found(text):
    assert found(text) == []


def test_every_form_has_a_longest_match():
    for secret in SECRETS.values():
        for pattern in secret.patterns:
            assert parse(pattern).longest <= 512


def test_a_mask_names_what_was_there():
    scoped = parse_rules(
        "rules.toml",
        'format = 1\n[[rules]]\nid = "secret"\nstages = ["output"]\naction = "transform"\n'
        'replacement = "<{entity}>"\nmatch = { kind = "secrets", kinds = ["npm_token"] }\n',
        folder=None,
    ).for_scope(PolicyScope())
    window = scoped.window("")

    text = f"use npm_{letters(36)} here"
    passed = [window.feed(char).text for char in text]

    assert "".join([*passed, window.finish().text]) == "use <npm_token> here"
