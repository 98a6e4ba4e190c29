import gguf
import pytest

from antiphon.engine.models.preparing.gguf_file import Unusable, read_gguf
from antiphon.testing.gguf import write_gguf


def test_a_header_becomes_facts(tmp_path):
    model = read_gguf(write_gguf(tmp_path / "m.gguf", temperature=0.25))

    assert model.pre == "smollm"
    assert model.merges == ["a b"]
    assert model.facts.window == 64
    assert (model.facts.bos_token, model.facts.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert model.facts.special_tokens == [0, 1, 2]
    assert model.facts.sampling.temperature == 0.25


def test_tokens_that_end_an_answer_by_name_stop_it_beside_the_named_one(tmp_path):
    assert read_gguf(write_gguf(tmp_path / "m.gguf")).facts.stop_tokens == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"architecture": "gemma3"}, "architecture gemma3"),
        ({"pre": "deepseek-llm"}, "pre-tokenizer deepseek-llm"),
        ({"tokenizer": "llama"}, "tokenizer llama"),
        ({"chat_template": None}, "no chat template"),
        ({"tensor_type": gguf.GGMLQuantizationType.Q5_1}, "tensor type Q5_1"),
    ],
)
def test_what_the_engine_cannot_read_is_named_before_it_is_tried(tmp_path, arguments, named):
    path = write_gguf(tmp_path / "m.gguf", **arguments)

    with pytest.raises(Unusable, match=named):
        read_gguf(path)


def test_a_file_cut_short_anywhere_is_called_damaged(tmp_path):
    path = write_gguf(tmp_path / "m.gguf")
    whole = path.read_bytes()

    for length in range(4, len(whole) - 64, 41):
        path.write_bytes(whole[:length])
        with pytest.raises(Unusable):
            read_gguf(path)


def test_text_that_is_not_unicode_is_called_damaged(tmp_path):
    path = write_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes().replace(b"smollm", b"smo\xfflm"))

    with pytest.raises(Unusable, match="damaged"):
        read_gguf(path)
