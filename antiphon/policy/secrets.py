"""Keys and tokens of well-known services, by the form that each service gives them.

Forms, not a measure of randomness: what is found can be named, and ordinary text is never held for
it. Every form has a longest match.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon.policy.bounded import BoundedRule
from antiphon.policy.expression import parse
from antiphon.policy.rules import Rule

Confirm = Callable[[str], bool]

_LEAST_DIFFERENT = 8
"""Real keys have more different characters; placeholders such as sk-xxxxxxxxxxxx don't."""
_PLACEHOLDER = re.compile(r"example|placeholder|x{6}|\*{3}|your[-_]|<|\$\{", re.IGNORECASE)
_PASSWORDS = frozenset({"password", "passwd", "pass", "pwd", "secret", "user", "changeme"})


def _random(text: str) -> bool:
    return len(set(text)) >= _LEAST_DIFFERENT and _PLACEHOLDER.search(text) is None


def _mixed(text: str) -> bool:
    """Letters and digits, since a word with hyphens may look like a key otherwise."""
    return _random(text) and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _real_password(text: str) -> bool:
    """Whether an address has a password that is not one of a manual."""
    login = text.partition("://")[2].rpartition("@")[0]
    password = login.partition(":")[2]
    return password.lower() not in _PASSWORDS and _PLACEHOLDER.search(password) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One kind. `whole` tells whether a match has all of it: of what may be longer only the
    beginning is found, so it can be blocked and not replaced."""

    patterns: tuple[str, ...]
    confirm: Confirm = _random
    whole: bool = True


SECRETS: Mapping[str, Secret] = {
    "openai_key": Secret(
        patterns=(
            r"\bsk-[A-Za-z0-9]{20,64}\b",
            r"\bsk-(?:proj|svcacct|admin|service)-[A-Za-z0-9_-]{20,200}",
        ),
        confirm=_mixed,
    ),
    "anthropic_key": Secret(patterns=(r"\bsk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,200}",)),
    "aws_access_key": Secret(patterns=(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",)),
    "aws_secret_key": Secret(
        patterns=(
            r"(?:[Ss]ecret_?[Aa]ccess_?[Kk]ey|SECRET_ACCESS_KEY)"
            r"[\"']?[ \t]{0,8}[=:][ \t]{0,8}[\"']?[A-Za-z0-9/+]{40}\b",
        )
    ),
    "azure_storage_key": Secret(patterns=(r"\bAccountKey=[A-Za-z0-9+/]{86}==",)),
    "google_api_key": Secret(patterns=(r"\bAIza[A-Za-z0-9_-]{35}",)),
    "google_oauth": Secret(
        patterns=(r"\bya29\.[A-Za-z0-9_-]{20,400}", r"\bGOCSPX-[A-Za-z0-9_-]{28}")
    ),
    "github_token": Secret(
        patterns=(r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b", r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b")
    ),
    "gitlab_token": Secret(
        patterns=(
            r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,64}",
            r"\bGR1348941[\w-]{20}",
        )
    ),
    "slack_token": Secret(
        patterns=(
            r"\bxox[abeoprs]-[A-Za-z0-9-]{16,250}",
            r"\bxapp-\d-[A-Z0-9]{6,20}-\d{6,20}-[a-z0-9]{32,128}\b",
        ),
        confirm=_mixed,
    ),
    "slack_webhook": Secret(
        patterns=(
            r"\bhooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,32}\b",
        )
    ),
    "stripe_key": Secret(
        patterns=(
            r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}\b",
            r"\bwhsec_[A-Za-z0-9+/]{24,128}",
        )
    ),
    "private_key": Secret(
        patterns=(
            r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:\s|\\[rn]){1,4}[A-Z][A-Za-z-]{2,16}: [^\n\\]{0,80}){0,3}"
            r"(?:\s|\\[rn]){1,8}[A-Za-z0-9+/]{24,64}",
        ),
        whole=False,
    ),
    "jwt": Secret(
        patterns=(
            r"\beyJ[A-Za-z0-9_-]{12,120}\.eyJ[A-Za-z0-9_-]{12,300}(?:\.[A-Za-z0-9_-]{8,64})?",
        ),
        whole=False,
    ),
    "npm_token": Secret(patterns=(r"\bnpm_[A-Za-z0-9]{36}\b",)),
    "pypi_token": Secret(patterns=(r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,400}",)),
    "huggingface_token": Secret(patterns=(r"\bhf_[A-Za-z0-9]{34,40}\b",)),
    "twilio_key": Secret(patterns=(r"\bSK[0-9a-f]{32}\b",)),
    "sendgrid_key": Secret(patterns=(r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",)),
    "telegram_token": Secret(patterns=(r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}",)),
    "digitalocean_token": Secret(patterns=(r"\bdo[opr]_v1_[0-9a-f]{64}\b",)),
    "connection_string": Secret(
        patterns=(
            r"\b(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|oracle"
            r"|ftp|sftp|smtp|ldap|ldaps|http|https)(?:\+[a-z0-9]{1,16})?://"
            r"[^\s:/@\"'<>]{0,64}:[^\s:/@\"'<>]{1,128}@[A-Za-z0-9._-]{1,128}\b",
        ),
        confirm=_real_password,
    ),
}
"""By the name that rules use."""


def secret_rule(rule: Rule, kinds: Sequence[str]) -> BoundedRule:
    """What a rule that looks for these kinds is run as; for all where none is named."""
    wanted = {kind: SECRETS[kind] for kind in kinds or SECRETS}
    return BoundedRule(
        rule=rule.id,
        action=rule.action,
        expressions=tuple(
            parse(pattern) for secret in wanted.values() for pattern in secret.patterns
        ),
        disguises=False,
        replacement=rule.replacement,
        confirm=_Confirmation(wanted),
        shadow=rule.shadow,
    )


class _Confirmation:
    """Tells of which kind a candidate is, and whether it is more than a placeholder."""

    def __init__(self, secrets: Mapping[str, Secret]) -> None:
        self._kinds = [
            (kind, re.compile("|".join(secret.patterns)), secret.confirm)
            for kind, secret in secrets.items()
        ]

    def __call__(self, text: str, before: str) -> tuple[int, int, str] | None:
        for kind, pattern, confirm in self._kinds:
            if pattern.fullmatch(text) and confirm(text):
                return 0, len(text), kind
        return None
