"""Messages to token ids: the model's template, then the model's vocabulary.

Adds no token that the template does not write: a template that wants a beginning-of-sequence token
has it (transformers does the same). Encoding holds no GIL, so a long prompt may go to a thread.
"""

import copy
import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

import jinja2
from tokenizers import Tokenizer

from antiphon.engine.chat.plain_text import AddedTokens
from antiphon.engine.chat.template import ChatTemplate
from antiphon.engine.models.hub_files import read_chat_template, read_facts
from antiphon.engine.models.prepared import Facts, read_manifest
from antiphon.errors import InvalidRequest, ModelUnsupported
from antiphon.events import Message
from antiphon.tools import Tool, ToolFormat

_TRIM_CHARS = 131_072
"""Encoding this much leaves ten megabytes free but held, in a thread that may sleep for long."""


class ModelTokenizer:
    """A `ports.ChatTokenizer`. Immutable after it is made, so any thread may use it."""

    def __init__(self, vocabulary: Tokenizer, template: ChatTemplate) -> None:
        self._vocabulary = vocabulary
        self._template = template
        self._tool_format = template.tool_format
        self._added = AddedTokens(vocabulary.get_added_tokens_decoder())
        # The same merges without any added token; the model inside is shared, not copied.
        self._plain = Tokenizer(vocabulary.model)
        self._plain.normalizer = vocabulary.normalizer
        self._plain.pre_tokenizer = vocabulary.pre_tokenizer
        # Byte-level tokens are spelled with a character a byte, and no text has fewer bytes.
        self._longest_token = max(map(len, vocabulary.get_vocab()))

    @property
    def longest_token(self) -> int:
        return self._longest_token

    @property
    def tool_format(self) -> ToolFormat | None:
        """How its template has calls written; None where it isn't to be shown any."""
        return self._tool_format

    def without_tools(self) -> "ModelTokenizer":
        """The same of a template that knows nothing of tools."""
        plain = copy.copy(self)
        plain._tool_format = None
        return plain

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        """Token ids of the prompt, ready for the assistant's turn. Text that spells a control token
        is encoded as text. Raises InvalidRequest."""
        if not self._added.spelled_in(messages, tools):
            return _encode(self._vocabulary, self._template.render(messages, tools))
        marked, mark = self._added.mark(messages, tools)
        rendered = self._template.render(marked.messages, marked.tools)
        ids: list[int] = []
        for piece in self._added.pieces(rendered, mark):
            ids += [piece] if isinstance(piece, int) else _encode(self._plain, piece)
        return ids

    def count_text(self, text: str) -> int:
        """Tokens of plain text."""
        return len(_encode(self._plain, text))

    def render_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """The prompt as text, for people. Raises InvalidRequest."""
        return self._template.render(messages, tools)


def load_chat_tokenizer(folder: Path) -> ModelTokenizer:
    """The chat tokenizer of a prepared model folder. Raises ModelUnsupported."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise ModelUnsupported(str(folder), "it is not a prepared model folder")
    source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    return _load(manifest.name, folder, source, manifest.facts)


def load_hub_tokenizer(folder: Path) -> ModelTokenizer:
    """The chat tokenizer of a checkpoint folder as published: no weights are looked at. Raises
    ModelUnsupported."""
    name = str(folder)
    return _load(name, folder, read_chat_template(name, folder), read_facts(name, folder))


def _load(model: str, folder: Path, source: str, facts: Facts) -> ModelTokenizer:
    # The library's thread pool would only warn about forks; it splits batches, and ours are of one.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    names = {"bos_token": facts.bos_token, "eos_token": facts.eos_token}
    try:
        special_tokens = {name: text for name, text in names.items() if text is not None}
        template = ChatTemplate(source, special_tokens=special_tokens)
        vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except jinja2.TemplateSyntaxError as error:
        raise ModelUnsupported(model, f"its chat template is malformed: {error}") from error
    # Published files may cut or pad to what some training run used.
    vocabulary.no_truncation()
    vocabulary.no_padding()
    _return_freed_memory()
    return ModelTokenizer(vocabulary, template)


def _encode(vocabulary: Tokenizer, text: str) -> list[int]:
    try:
        # Unlike `encode`, the batch call lets other threads run (measured, tokenizers 0.23).
        ids = vocabulary.encode_batch_fast([text], add_special_tokens=False)[0].ids
    except (TypeError, UnicodeError) as error:
        raise InvalidRequest("the messages hold text that is not Unicode", "messages") from error
    if len(text) > _TRIM_CHARS:
        _return_freed_memory()
    return ids


def _return_freed_memory() -> None:
    """The library's work leaves memory free but held; glibc gives it back when asked."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
