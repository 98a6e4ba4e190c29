"""What a reload reads again, whoever asks for it: the settings, then the policy's rules."""

from antiphon.actors.moderation.service import ModerationService
from antiphon.live_settings import Change, LiveSettings


class Reload:
    """`policy` is None where it is off."""

    def __init__(self, live: LiveSettings, policy: ModerationService | None) -> None:
        self._live = live
        self._policy = policy

    async def reload(self, source: str) -> tuple[Change, ...]:
        """What has changed in the settings. `source` is who asked, for the log.

        Raises SettingsError, and then nothing has changed; RulesError, and then the settings are
        in force and the rules are those of before.
        """
        changes = await self._live.reload(source)
        if self._policy is not None:
            await self._policy.reload(source)
        return changes
