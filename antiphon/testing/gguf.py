"""GGUF files of a few hundred bytes: real headers around a model that says nothing.

Imports numpy and gguf, so only tests may import it.
"""

from pathlib import Path

import gguf
import numpy as np

TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab"]
CONTROL, NORMAL = 3, 1


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    tokenizer: str = "gpt2",
    pre: str = "smollm",
    chat_template: str | None = "{{ messages }}",
    tensor_type: gguf.GGMLQuantizationType | None = None,
    temperature: float | None = None,
) -> Path:
    """A file whose header is what the arguments say; with a `tensor_type`, of that one tensor."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_tokenizer_model(tokenizer)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([CONTROL] * 3 + [NORMAL] * 3)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    if temperature is not None:
        writer.add_float32("general.sampling.temp", temperature)
    if tensor_type is None:
        writer.add_tensor("x", np.zeros((4, 4), dtype=np.float32))
    else:
        writer.add_tensor("x", np.zeros((2, 24), dtype=np.uint8), raw_dtype=tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
