import pytest

from antiphon.errors import SettingsError
from antiphon.simulating.engine_model import catalogue, encode_engine, load_engine
from antiphon.testing.engine_models import clockwork


@pytest.mark.parametrize("name", catalogue())
def test_every_engine_model_of_the_catalogue_can_be_read_and_says_where_it_is_from(name):
    model = load_engine(name)

    assert model.name == name
    assert len(model.source) > 20


def test_a_file_is_read_as_it_is_written(tmp_path):
    file = tmp_path / "engine.json"
    file.write_bytes(encode_engine(clockwork(slots=3)))

    assert load_engine(str(file)) == clockwork(slots=3)
    assert load_engine(str(file), slots=5).slots == 5


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 100, "step_tokens": 100}, "step_tokens"),
        ({"step_s": 0.0}, "take time"),
        ({"step_s": -1.0}, "finite"),
        ({"overhead_s": -1.0}, "finite"),
    ],
)
def test_an_engine_that_could_not_work_is_refused(tmp_path, fields, problem):
    file = tmp_path / "engine.json"
    file.write_bytes(encode_engine(clockwork(**fields)))

    with pytest.raises(SettingsError, match=problem):
        load_engine(str(file))


@pytest.mark.parametrize("text", ["", "{}", '{"name": 3}', "\udcff"])
def test_a_file_that_is_no_engine_model_is_refused(tmp_path, text):
    file = tmp_path / "engine.json"
    file.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(SettingsError, match="no engine model"):
        load_engine(str(file))


def test_a_name_that_nobody_knows_is_refused():
    with pytest.raises(SettingsError, match="cpu-openvino"):
        load_engine("no-such-engine")


@pytest.mark.parametrize(
    ("prompt", "answer", "published"),
    [(128, 2048, 6651), (500, 2000, 5222), (1000, 1000, 4205), (2048, 128, 762), (5000, 500, 898)],
)
def test_the_70b_model_has_the_throughput_that_was_published(prompt, answer, published):
    """TensorRT-LLM 1.0, docs/source/performance/perf-overview.md, Llama 3.3 70B, H100 TP2 FP8: a
    batch as large as KV allows, each request a prefill and a part of every decode step."""
    model = load_engine("llama-3.3-70b-2xh100")
    context = prompt + answer // 2
    batch = min(model.kv_tokens // context, 2048)

    decode_s = model.costs.of(decoding=batch, context=batch * context) * answer / batch
    prefill_s = model.costs.prefill_s * prompt + model.costs.prefill_context_s * prompt**2 / 2

    assert answer / (decode_s + prefill_s) == pytest.approx(published, rel=0.08)
