"""The settings of what models are shown of conversations, and of what is made of them in the
background: the section `context`, read and checked by `settings`."""

from typing import Literal

import msgspec

from antiphon.errors import SettingsError


class ContextSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a prompt is made of a long conversation. Numbers of tokens are the model's own."""

    truncation: Literal["auto", "disabled"] = "auto"
    """For turns of a conversation whose request says nothing of it: whether old turns may be left
    out where not all fit. Requests that bring all their messages are never cut."""
    history_share: float = 0.75
    """Of the room that the window leaves for old turns, how much is used before the oldest of them
    are left out; 0…1. Answers need some of it, too."""
    keep_share: float = 0.35
    """Of what may be used, how much is left when turns are left out. Less makes that rarer, and
    the prompt's beginning, which engines remember, is the same for longer."""
    tool_output_tokens: int = 512
    """The longest result of a tool that is shown whole once another turn has followed it."""
    titles: bool = True
    """Whether conversations without a title get one."""
    summaries: bool = True
    """Whether old turns are summarised before they would have to be left out."""
    summarise_at_share: float = 0.4
    """Of what may be used: with more than that in old turns, the older ones are summarised. Less
    makes long conversations cheaper and quicker, more has more of them word for word."""
    summary_tokens: int = 192
    """The longest summary."""
    memory: bool = False
    """Whether conversations that don't say it have a memory: what their users say of themselves is
    kept, and shown in later ones. One user may stand for many people behind a program, so it is
    off until somebody asks for it."""
    memory_tokens: int = 256
    """The most that is shown of what is remembered."""
    retrieved_tokens: int = 2048
    """The most that is shown of what was found in files for a message, beside files that are shown
    whole; and never more than half of the room that there is."""
    memory_entries: int = 200
    """The most that is kept for one user."""
    workers: int = 1
    """How many conversations are worked on at once, to title and summarise them. More where a
    hundred people chat at once and slots are plenty: each may hold one of them while it is free."""
    model: str | None = None
    """Who writes titles and summaries: a model or an alias; the first model, if none is named."""
    prompt: str | None = None
    """The name of the system prompt, of those that `antiphon prompts` keeps, that every turn
    begins with whose request and alias name none."""


def check_context(settings: ContextSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    for name in ("history_share", "keep_share", "summarise_at_share"):
        if not 0 < getattr(settings, name) <= 1:
            raise SettingsError(f"context.{name}", "must be more than 0, and at most 1")
    for name in (
        *("tool_output_tokens", "summary_tokens", "memory_tokens", "memory_entries"),
        *("retrieved_tokens", "workers"),
    ):
        if getattr(settings, name) < 1:
            raise SettingsError(f"context.{name}", "must be at least 1")
