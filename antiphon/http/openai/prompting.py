"""The system prompt of a turn: the one that its request names, or the one of the settings; which of
its versions; and what becomes of the turn by it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from antiphon.actors.prompts.arms import arm_of
from antiphon.context_records import PromptActivation, PromptVersion
from antiphon.errors import InvalidRequest, PromptUnavailable, RecordNotFound
from antiphon.events import Message, Turn
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.schema import PromptReference, TextPart
from antiphon.http.openai.responses.wire import PromptBody
from antiphon.ids import ModelName
from antiphon.ports import NewAnswer
from antiphon.prompts import filled, is_prompt_name, label_of, variables_of, version_number
from antiphon.views import Piece, PieceKind

KEY = "prompt_key"
"""Where a response keeps by which conversation its version was chosen, for those that follow."""
_RETRY_S = 5.0

FindKey = Callable[[], Awaitable[str]]
"""Of the conversation: it is asked for only where there is a choice."""


class Prompts(Protocol):
    """The operator's system prompts. Both raise StoreError where nobody knows."""

    async def activation(self, name: str) -> PromptActivation | None:
        """Which of its versions are in force."""

    async def version(self, name: str, number: int) -> PromptVersion | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """A version that was chosen for a turn, its variables filled in."""

    version: PromptVersion
    text: str
    asked: PromptReference | None = None
    key: str | None = None
    """By which it was chosen, where there was a choice."""

    @property
    def message(self) -> Message:
        return Message(role="system", content=self.text)

    def marked(self, turn: Turn) -> Turn:
        """The turn, which says that it will begin with it. What a client put into its variables is
        judged, and so is what is around."""
        is_all_ours = self.asked is None or not self.asked.variables
        return replace(
            turn,
            prompt_version=label_of(self.version.name, self.version.version),
            unjudged=1 if is_all_ours else 0,
        )

    def begun(self, turn: Turn) -> Turn:
        """The turn, which begins with it; where nothing was said of what may be left out, all else
        is shown, too."""
        pieces = turn.pieces or (Piece(kind=PieceKind.INPUT),) * len(turn.messages)
        return replace(
            self.marked(turn),
            messages=(self.message, *turn.messages),
            pieces=(Piece(kind=PieceKind.PROMPT), *pieces),
        )

    def answering(self, new: NewAnswer) -> NewAnswer:
        """The answer, which will begin with it, and shows which one it was."""
        shown: dict[str, Any] = {"prompt": msgspec.to_builtins(self._shown())}
        if self.key is not None and new.response.conversation is None:
            shown[KEY] = self.key
        return replace(
            new,
            prompt=self.message,
            turn=self.marked(new.turn),
            response=replace(new.response, request=new.response.request | shown),
        )

    def _shown(self) -> PromptBody:
        return PromptBody(
            id=self.version.name,
            version=str(self.version.version),
            variables=UNSET if self.asked is None else _as_given(self.asked.variables),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompting:
    """`default` is the name of the prompt for those who ask for a model and for no prompt."""

    prompts: Prompts
    default: Callable[[ModelName], str | None]

    async def choose(
        self, model: ModelName, asked: PromptReference | None, find_key: FindKey
    ) -> Prompted | None:
        """None where there is to be none. Raises InvalidRequest, RecordNotFound, PromptUnavailable,
        StoreError."""
        if asked is not None:
            return await self._asked(asked, find_key)
        name = self.default(model)
        return None if name is None else await self._of_settings(name, find_key)

    async def _asked(self, asked: PromptReference, find_key: FindKey) -> Prompted:
        values = _values(asked.variables or {})
        key: str | None = None
        if not is_prompt_name(asked.id):
            raise RecordNotFound("prompt", asked.id, "prompt.id")
        if asked.version is None:
            number, key = await self._chosen(asked.id, find_key)
            if number is None:
                raise await self._not_in_force(asked.id)
        else:
            number = version_number(asked.version)
        version = None if number is None else await self.prompts.version(asked.id, number)
        if version is None:
            kind = f"version of prompt '{asked.id}'"
            raise RecordNotFound(kind, asked.version or str(number), "prompt.version")
        text = filled(version.text, values)
        return Prompted(version=version, text=text, asked=asked, key=key)

    async def _not_in_force(self, name: str) -> RecordNotFound | InvalidRequest:
        if await self.prompts.version(name, 1) is None:
            return RecordNotFound("prompt", name, "prompt.id")
        return InvalidRequest(
            f"No version of prompt '{name}' is in force. Please name one.",
            "prompt.version",
            "prompt_not_in_force",
        )

    async def _of_settings(self, name: str, find_key: FindKey) -> Prompted:
        """Never without it: an operator's prompt may be what keeps a model from doing harm."""
        number, key = await self._chosen(name, find_key)
        version = None if number is None else await self.prompts.version(name, number)
        if version is None or variables_of(version.text):
            raise PromptUnavailable(retry_after_s=_RETRY_S)
        return Prompted(version=version, text=version.text, key=key)

    async def _chosen(self, name: str, find_key: FindKey) -> tuple[int | None, str | None]:
        """The version in force, and by which key it was chosen among several."""
        activation = await self.prompts.activation(name)
        if activation is None:
            return None, None
        if len(activation.arms) == 1:
            return next(iter(activation.arms)), None
        key = await find_key()
        return arm_of(activation, key), key


def _as_given(variables: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if variables is None:
        return None
    return {
        name: value if isinstance(value, str) else {"type": "input_text", "text": value.text}
        for name, value in variables.items()
    }


def _values(variables: Mapping[str, Any]) -> dict[str, str]:
    """Raises InvalidRequest for what no text can stand for."""
    found = {}
    for name, value in variables.items():
        match value:
            case str():
                found[name] = value
            case TextPart(text=text):
                found[name] = text
            case _:
                param = f"prompt.variables.{name[:64]}.type"
                kind = type(value).__struct_config__.tag
                raise unsupported_value(param, kind, "'input_text'")
    return found
