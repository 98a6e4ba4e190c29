"""Small vocabularies of the kinds that models use, for tests of what turns tokens into text."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

END = 0
"""`<|end|>`, a special token, in both vocabularies."""


def byte_level_vocabulary() -> Tokenizer:
    """As GPT-2 and SmolLM have it: one token for each byte, and a few for pairs of them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<|end|>": END}
    vocabulary |= {symbol: index + 1 for index, symbol in enumerate(alphabet)}
    merges = [("h", "e"), ("Ġ", "w"), ("ð", "Ł"), ("l", "l")]
    vocabulary |= {left + right: len(vocabulary) + i for i, (left, right) in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    return tokenizer


def word_piece_vocabulary() -> Tokenizer:
    """As Llama has it: `▁` for a blank, `<0xF0>` for a byte that has no token of its own."""
    vocabulary = {"<|end|>": END, "<unk>": 1}
    vocabulary |= {f"<0x{byte:02X}>": byte + 2 for byte in range(256)}
    words = ["▁", "a", "b", "é", "▁a", "▁b", "ab", "▁ab"]
    vocabulary |= {word: len(vocabulary) + index for index, word in enumerate(words)}
    merges = [("▁", "a"), ("▁", "b"), ("a", "b"), ("▁", "ab")]
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    return tokenizer
