"""Messages to token ids: the model's template, then the model's vocabulary.

Adds no token that the template does not write: a template that wants a beginning-of-sequence token
has it (transformers does the same). Encoding holds no GIL, so a long prompt may go to a thread.
"""

import copy
import os
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path

import jinja2
from tokenizers import Tokenizer

from antiphon.engine.chat.encoder import Encoder, encoded, return_freed_memory
from antiphon.engine.chat.plain_text import AddedTokens
from antiphon.engine.chat.template import ChatTemplate
from antiphon.engine.models.hub_files import read_chat_template, read_facts
from antiphon.engine.models.prepared import Facts, read_manifest
from antiphon.errors import ModelUnsupported
from antiphon.events import Message
from antiphon.tools import Tool, ToolFormat

_SAMPLE = ("Hi there", " hi", "\n\nhi \n", "1 2", "日本")


class ModelTokenizer:
    """A `ports.ChatTokenizer`. Any thread may use it: what it remembers changes nothing."""

    def __init__(self, vocabulary: Tokenizer, template: ChatTemplate) -> None:
        self._vocabulary = vocabulary
        self._template = template
        self._tool_format = template.tool_format
        self._added = AddedTokens(
            vocabulary.get_added_tokens_decoder(), is_plain=vocabulary.normalizer is None
        )
        # The same merges without any added token; the model inside is shared, not copied.
        self._plain = Tokenizer(vocabulary.model)
        self._plain.normalizer = vocabulary.normalizer
        self._plain.pre_tokenizer = vocabulary.pre_tokenizer
        self._encoder = Encoder(self._plain)
        self._by_pieces = self._added.are_found_by_text and self._pieces_are_alike()
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
            rendered = self._template.render(messages, tools)
            if self._by_pieces:
                return self._joined(self._added.pieces(rendered))
            return encoded(self._vocabulary, [rendered])[0]
        marked, mark = self._added.mark(messages, tools)
        rendered = self._template.render(marked.messages, marked.tools)
        return self._joined(self._added.pieces(rendered, mark))

    def count_text(self, text: str) -> int:
        """Tokens of plain text."""
        return len(encoded(self._plain, [text])[0])

    def render_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """The prompt as text, for people. Raises InvalidRequest."""
        return self._template.render(messages, tools)

    def _joined(self, found: Iterable[int | str]) -> list[int]:
        pieces = list(found)
        texts = iter(self._encoder.encode([each for each in pieces if isinstance(each, str)]))
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids.extend(next(texts))
        return ids

    def _pieces_are_alike(self) -> bool:
        """Whether a text is encoded alike wherever it stands: some vocabularies have the first one
        of a prompt begin with a space."""
        texts = self._added.texts
        sample = "".join(map(str.__add__, texts, cycle(_SAMPLE)))
        return self._joined(self._added.pieces(sample)) == encoded(self._vocabulary, [sample])[0]


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
    return_freed_memory()
    return ModelTokenizer(vocabulary, template)
