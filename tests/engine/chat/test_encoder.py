"""What was encoded lately is remembered, within bounds, and changes nothing."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from antiphon.engine.chat import load_chat_tokenizer
from antiphon.engine.chat.encoder import Encoder
from antiphon.engine.chat.template import ChatTemplate
from antiphon.engine.chat.tokenizer import ModelTokenizer
from antiphon.errors import InvalidRequest
from antiphon.events import Message

_CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
_LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())


class Counted:
    """A vocabulary that says what it was given."""

    def __init__(self, vocabulary):
        self._vocabulary = vocabulary
        self.given = []

    def encode_batch_fast(self, texts, *, add_special_tokens):
        self.given += texts
        return self._vocabulary.encode_batch_fast(texts, add_special_tokens=add_special_tokens)


def a_vocabulary(*added, merges=()):
    vocabulary = {letter: index for index, letter in enumerate(_LETTERS)}
    vocabulary |= {"".join(merge): 1000 + index for index, merge in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def chat_of(vocabulary):
    return ModelTokenizer(vocabulary, ChatTemplate(_CHATML, special_tokens={}))


def whole(vocabulary, messages):
    """By the library itself, the prompt as one text."""
    text = ChatTemplate(_CHATML, special_tokens={}).render(messages)
    return vocabulary.encode(text, add_special_tokens=False).ids


def said(*texts):
    roles = ("user", "assistant")
    return [
        Message(role=roles[place % 2], content=text, name=None) for place, text in enumerate(texts)
    ]


def test_of_a_turn_only_what_is_new_is_encoded():
    counted = Counted(a_vocabulary())
    encoder = Encoder(counted)

    encoder.encode(["one", "two"])
    encoder.encode(["one", "two", "three", "three"])

    assert counted.given == ["one", "two", "three"]


def test_what_was_not_said_for_long_is_forgotten_and_what_is_said_again_is_not():
    counted = Counted(a_vocabulary())
    encoder = Encoder(counted, remembered_chars=10)

    for number in range(10):
        encoder.encode(["often", f"seldom {number}"])
    encoder.encode(["seldom 0"])

    assert counted.given.count("often") == 1
    assert counted.given.count("seldom 0") == 2


def test_it_holds_no_more_than_two_generations():
    encoder = Encoder(a_vocabulary(), remembered_chars=100)

    for number in range(500):
        encoder.encode([f"text number {number}"])

    held = {*encoder._young, *encoder._old}
    assert sum(map(len, held)) <= 200


def test_a_long_text_is_not_remembered():
    counted = Counted(a_vocabulary())
    encoder = Encoder(counted)
    long = "a" * 5000

    first, again = encoder.encode([long, long]), encoder.encode([long])

    assert counted.given == [long, long]
    assert first == [*again, *again]


def test_one_text_that_is_none_leaves_the_others_as_they_are():
    encoder = Encoder(a_vocabulary())

    with pytest.raises(InvalidRequest):
        encoder.encode(["fine", "\ud800"])

    assert list(encoder.encode(["fine"])[0]) == a_vocabulary().encode("fine").ids


_PARTS = ["a", "b", " ", "\n", "é", "日", "<|im", "<tool>", "0", "'s"]
_TEXTS = st.lists(
    st.lists(st.sampled_from(_PARTS), max_size=6).map("".join), min_size=1, max_size=6
)


@given(_TEXTS)
@settings(max_examples=150, deadline=None)
def test_a_conversation_that_grows_is_encoded_as_the_library_encodes_it_whole(texts):
    for vocabulary, chat in _KINDS:
        for count in range(1, len(texts) + 1):
            messages = said(*texts[:count])
            assert chat.encode_chat(messages) == whole(vocabulary, messages)


def _metaspace():
    """The first text of a prompt begins with a space, others don't."""
    vocabulary = {letter: index for index, letter in enumerate(_LETTERS)} | {"▁": 999}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return tokenizer


def _folding():
    """Tokens are looked for in text that was changed before."""
    tokenizer = a_vocabulary(AddedToken("<tool>", special=False, normalized=True))
    tokenizer.normalizer = normalizers.Replace("b", "a")
    return tokenizer


_VOCABULARIES = (
    a_vocabulary(),
    a_vocabulary(merges=[("a", "b"), ("Ġ", "a")]),
    a_vocabulary(AddedToken("<tool>", special=False)),
    a_vocabulary(AddedToken("a", special=False, single_word=True)),
    _metaspace(),
    _folding(),
)
_KINDS = [(vocabulary, chat_of(vocabulary)) for vocabulary in _VOCABULARIES]


def test_where_a_text_s_ids_depend_on_its_place_prompts_are_encoded_whole():
    by_pieces = [chat._by_pieces for _, chat in _KINDS]

    assert by_pieces == [True, True, True, False, False, False]


@pytest.mark.engine
def test_a_real_conversation_is_encoded_as_its_model_s_vocabulary_does(model_dir):
    chat = load_chat_tokenizer(model_dir)
    texts = ["What's new, 日本?", "  Nothing\n\n", "<b>Why</b> 12,345.6 ?!", "Hm 👋", " \t "]

    prompts = [chat.encode_chat(said(*texts[:count])) for count in range(1, len(texts) + 1)]

    vocabulary = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    for count, prompt in enumerate(prompts, 1):
        rendered = chat.render_chat(said(*texts[:count]))
        assert prompt == vocabulary.encode(rendered, add_special_tokens=False).ids
    assert all(len(one) < len(other) for one, other in pairwise(prompts))
