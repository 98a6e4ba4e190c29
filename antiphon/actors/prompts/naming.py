"""Which system prompts the settings name. Pure."""

from antiphon.settings import Settings


def prompt_for(settings: Settings, model: str) -> str | None:
    """The one that turns begin with for which a client asked for this model, and for no prompt."""
    alias = settings.aliases.get(model)
    if alias is not None and alias.prompt is not None:
        return alias.prompt
    return settings.context.prompt


def named_prompts(settings: Settings) -> frozenset[str]:
    """All of them."""
    named = (settings.context.prompt, *(alias.prompt for alias in settings.aliases.values()))
    return frozenset(name for name in named if name is not None)
