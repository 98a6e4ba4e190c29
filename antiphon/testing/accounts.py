"""Accounts for tests of what lies behind them: everybody is who the test says."""

import trio

from antiphon.actors.accounts.accounts import LOCAL_PRINCIPAL
from antiphon.errors import AntiphonError
from antiphon.records import Principal


class ScriptedAccounts:
    """Answers with `principal`, or raises `error`; `secrets` are those that were shown."""

    def __init__(self, principal: Principal = LOCAL_PRINCIPAL) -> None:
        self.principal = principal
        self.error: AntiphonError | None = None
        self.secrets: list[str | None] = []
        self.remembered: set[str] = set()

    async def authenticate(self, secret: str | None) -> Principal:
        await trio.lowlevel.checkpoint()
        self.secrets.append(secret)
        if self.error is not None:
            raise self.error
        return self.principal

    def remembers(self, secret: str) -> bool:
        return secret in self.remembered
