import json
import random
import unicodedata

import pytest
from tokenizers import Tokenizer

from antiphon.engine.models.preparing.vocabulary import PRE_TOKENIZERS, TokenType, tokenizer_json

_TEXTS = [
    "What is the capital of France?",
    "  leading", "trailing  ", "a  b   c    d", "\n\n\nx\n\n", "\t\ttabs\t", "\r\nwin\r\n lines",
    "1234567890 12 3.14 1,000", "émigré naïve e\u0301", "日本語テキスト、漢字かな", "한국어 텍스트",
    "🎉🎊 👨‍👩‍👧‍👦 flag 🇫🇷 👍🏽", "Привет мир", "مرحبا بالعالم", "ไทย", "हिन्दी", "İstanbul ß",
    "def f(x):\n    return x**2  # square\n", "don't I'll you're WE'VE they'd 's", "snake_case__x",
    "<|im_start|>user\nhi<|im_end|>\n", "a<|im_end|>b <|endoftext|> <repo_name>", "<|im_start",
    "١٢٣ ２３ Ⅷ ½ ²", "\u00a0nbsp\u2003em\u3000ideo", "\x00\x01\x7f", "\u200b\ufeffzw", "",
    "a" * 300, " " * 90 + "x", "#" * 95, "http://ex.com/a?b=c&d=%20", "∑∫√ ≤ 𝒳𝔸", "\n", " ",
]  # fmt: skip
_ALPHABET = (
    "abc XYZ  \n\t019'’.,!?-—éüßñçøжщ中文日本語のカ한글🎉👍🏽١५½²<|>_{}[]()\u00a0\u2009\u200d\r"
)


def _texts():
    dice = random.Random(7)
    noise = ["".join(dice.choices(_ALPHABET, k=dice.randrange(1, 60))) for _ in range(400)]
    mixed = [" ".join(dice.choices(_TEXTS, k=3)) for _ in range(100)]
    return [*_TEXTS, *noise, *mixed]


@pytest.mark.engine
def test_a_vocabulary_from_gguf_encodes_exactly_as_the_engines_own_tokenizer(model_dir):
    openvino_genai = pytest.importorskip("openvino_genai")
    engine = openvino_genai.Tokenizer(str(model_dir))
    ours = Tokenizer.from_file(str(model_dir / "tokenizer.json"))

    for text in _texts():
        theirs = engine.encode(text, add_special_tokens=False).input_ids.data.ravel().tolist()
        assert ours.encode(text, add_special_tokens=False).ids == theirs, repr(text)


@pytest.mark.engine
def test_what_is_encoded_decodes_to_itself(model_dir):
    ours = Tokenizer.from_file(str(model_dir / "tokenizer.json"))

    for text in _texts():
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ours.decode(ids, skip_special_tokens=False) == text


def _bytes_vocabulary(pre, words=()):
    """The 256 byte tokens, words that no merges lead to, and one control token."""
    letters = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256))]
    letters += [chr(256 + n) for n in range(256 - len(letters))]
    tokens = [*letters, *words, "<|end|>"]
    types = [TokenType.NORMAL] * (len(tokens) - 1) + [TokenType.CONTROL]
    described = tokenizer_json(pre=pre, tokens=tokens, types=types, merges=[])
    return Tokenizer.from_str(json.dumps(described))


def _words(pre, text):
    """Where the pre-tokenizer cuts."""
    tokenizer = _bytes_vocabulary(pre)
    return [text[a:b] for _, (a, b) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_known_scheme_keeps_every_byte(pre):
    tokenizer = _bytes_vocabulary(pre)

    for text in _TEXTS[:24]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        kept = tokenizer.decode(ids, skip_special_tokens=False)
        assert unicodedata.normalize("NFC", kept) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("gpt-2", ["It", "'s", " 1234", " yes", "\n", "\n", "ok"]),
        ("smollm", ["It", "'s", " ", "1", "2", "3", "4", " yes", "\n", "\n", "ok"]),
        ("llama-bpe", ["It", "'s", " ", "123", "4", " yes", "\n\n", "ok"]),
        ("qwen2", ["It", "'s", " ", "1", "2", "3", "4", " yes", "\n\n", "ok"]),
    ],
)
def test_each_scheme_cuts_words_where_its_model_learned_to(pre, words):
    assert _words(pre, "It's 1234 yes\n\nok") == words


@pytest.mark.parametrize(("pre", "tokens"), [("llama-bpe", ["abc"]), ("qwen2", ["a", "b", "c"])])
def test_a_word_in_the_vocabulary_wins_over_its_merges_only_for_llama(pre, tokens):
    assert _bytes_vocabulary(pre, ["abc"]).encode("abc").tokens == tokens


def test_a_control_token_is_one_token_and_special():
    tokenizer = _bytes_vocabulary("gpt-2")

    assert tokenizer.encode("a<|end|>").tokens == ["a", "<|end|>"]
    assert tokenizer.decode(tokenizer.encode("a<|end|>").ids) == "a"
