import msgspec
import pytest

from antiphon.errors import SettingsError
from antiphon.settings import Settings, load_settings, parse_bind


def _keys():
    """Every key as (section or None, name, its default)."""
    for name in Settings.__struct_fields__:
        value = getattr(Settings(), name)
        if isinstance(value, msgspec.Struct):
            for inner in value.__struct_fields__:
                yield name, inner, getattr(value, inner)
        elif not isinstance(value, dict) and name not in {"default_plan", "smaller"}:
            yield None, name, value


def _other(name, default):
    """A valid value that is not the default."""
    match default:
        case bool():
            return not default
        case float() if name in {"kv_fraction", "interactive_reserve"}:
            return 0.5
        case float() if name.endswith("_share"):
            return 0.55  # between those of two others
        case int() if name in {"kv_group", "activation_group"}:
            return 64
        case int() | float():
            # Down, since some bounds only limit upwards; up where the default is the least.
            return default + 1 if default < 2 or name in {"max_tokens", "budget_s"} else default - 1
        case _:
            return {
                "bind": "127.0.0.1:9000",
                "ops_bind": "[::1]:9001",
                "data_dir": "/srv/antiphon",
                "log_level": "debug",
                "log_format": "json",
                "kv_precision": "f16",
                "prefix_cache": "shared",
                "compute_precision": "f32",
                "core_type": "performance",
                "prompts": "messages",
                "extras": "on",
                "durability": "full",
                "policy": "fcfs",
                "truncation": "disabled",
                "mode": "watch",
                "upstream_url": "https://moderation.example/v1",
                "events": "acted",
                "trusted_proxies": "10.0.0.1, 10.1.0.0/16",
                "kind": "tensorrt-llm",
                "kv_cache_dtype": "fp8",
                "guided_decoding": "off",
                "ops_token": "a-secret-of-24-letters-or",
                "faults": "seed=7 host.step=raise@0.01",
                "vision": "off",
            }.get(name, "another")


def _get(settings, section, name):
    value = getattr(getattr(settings, section) if section else settings, name)
    return value if isinstance(value, bool | int | float) else str(value)


def _toml(tmp_path, text):
    path = tmp_path / "antiphon.toml"
    path.write_text(text)
    return path


def _refused(environ=None, file=None):
    with pytest.raises(SettingsError) as refusal:
        load_settings(file, environ or {})
    assert "\n" not in str(refusal.value)
    return refusal.value


def test_the_defaults_hold():
    settings = load_settings(None, {})

    assert settings.bind == "127.0.0.1:8000"
    assert settings.data_dir.is_absolute()


@pytest.mark.parametrize(("section", "name", "default"), list(_keys()))
def test_every_key_can_be_set_by_a_variable(section, name, default):
    value = _other(name, default)
    variable = "_".join(filter(None, ("ANTIPHON", section, name))).upper()

    settings = load_settings(None, {variable: str(value)})

    assert _get(settings, section, name) == value


@pytest.mark.parametrize(("section", "name", "default"), list(_keys()))
def test_every_key_can_be_set_by_the_file(section, name, default, tmp_path):
    value = _other(name, default)
    written = str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'
    text = f"[{section}]\n{name} = {written}\n" if section else f"{name} = {written}\n"

    settings = load_settings(_toml(tmp_path, text), {})

    assert _get(settings, section, name) == value


@pytest.mark.parametrize(("section", "name", "default"), list(_keys()))
def test_every_value_of_a_wrong_type_is_refused_by_its_key(section, name, default, tmp_path):
    text = f"[{section}]\n{name} = [1]\n" if section else f"{name} = [1]\n"

    assert _refused(file=_toml(tmp_path, text)).key == ".".join(filter(None, (section, name)))


def test_a_variable_wins_over_the_file(tmp_path):
    file = _toml(tmp_path, "[engine]\nslots = 4\nthreads = 1\n")

    settings = load_settings(file, {"ANTIPHON_ENGINE_SLOTS": "8"})

    assert (settings.engine.slots, settings.engine.threads) == (8, 1)


def test_an_empty_variable_is_as_none(tmp_path):
    file = _toml(tmp_path, 'model_name = "mine"')

    settings = load_settings(file, {"ANTIPHON_MODEL_NAME": "", "ANTIPHON_ENGINE_SLOTS": ""})

    assert (settings.model_name, settings.engine.slots) == ("mine", 32)


def test_other_variables_are_nobodys_business():
    assert load_settings(None, {"PATH": "/bin", "ANTIPHONY": "x", "bind": "y"}) == load_settings(
        None, {}
    )


@pytest.mark.parametrize(
    "name",
    ["ANTIPHON_", "ANTIPHON_PORT", "ANTIPHON_ENGINE", "ANTIPHON_ENGINE_", "ANTIPHON_ENGINE_SLOT"],
)
def test_an_unknown_variable_is_refused_by_its_name(name):
    assert _refused({name: "1"}).key == name


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("port = 1", "port"),
        ("[engine]\nslot = 1", "engine.slot"),
        ("[engines]\nslots = 1", "engines"),
        ("engine = 1", "engine"),
        ("[model]\nname = 1", "model"),
    ],
)
def test_an_unknown_or_misplaced_key_is_refused_by_its_name(tmp_path, text, key):
    assert _refused(file=_toml(tmp_path, text)).key == key


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[engine]\nslot = 1", "engine.slots"),
        ("[engines]\nslots = 1", "engine"),
        ("log_levle = 'info'", "log_level"),
    ],
)
def test_a_key_that_is_nearly_one_is_told_which(tmp_path, text, meant):
    assert _refused(file=_toml(tmp_path, text)).problem.endswith(f"; did you mean {meant}?")


def test_a_variable_that_is_nearly_one_is_told_which():
    refused = _refused({"ANTIPHON_ENGINE_SLOT": "1"})

    assert refused.problem.endswith("; did you mean ANTIPHON_ENGINE_SLOTS?")
    assert _refused({"ANTIPHON_PORRIDGE": "1"}).problem == "unknown variable"


def test_where_the_file_is_may_stand_beside_the_settings():
    assert load_settings(None, {"ANTIPHON_CONFIG": "antiphon.toml"}) == load_settings(None, {})


@pytest.mark.parametrize("text", ["TRUE", "1", "yes", "On"])
def test_a_truth_may_be_written_as_people_do(text):
    off = load_settings(None, {"ANTIPHON_TRT_BLOCK_REUSE": "off"})

    assert load_settings(None, {"ANTIPHON_TRT_BLOCK_REUSE": text}).trt.block_reuse
    assert not off.trt.block_reuse


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ANTIPHON_ENGINE_SLOTS", "many", "a whole number"),
        ("ANTIPHON_ENGINE_SLOTS", "4.5", "a whole number"),
        ("ANTIPHON_ENGINE_SLOTS", "9" * 5000, "a whole number"),
        ("ANTIPHON_QUEUE_DEADLINE_S", "soon", "a number"),
        ("ANTIPHON_TRT_BLOCK_REUSE", "maybe", "true or false"),
        ("ANTIPHON_LOG_LEVEL", "INFO", "one of debug, info, warning, error"),
    ],
)
def test_a_variable_of_a_wrong_type_is_refused_by_its_name(name, value, said):
    refusal = _refused({name: value})

    assert refusal.key == name
    assert said in refusal.problem
    assert len(str(refusal)) < 200


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e300"])
def test_a_time_must_be_a_sensible_number(value):
    assert _refused({"ANTIPHON_QUEUE_DEADLINE_S": value}).key == "queue.deadline_s"


def test_only_what_may_be_zero_may(tmp_path):
    assert load_settings(None, {"ANTIPHON_ENGINE_THREADS": "0"}).engine.threads == 0
    assert _refused({"ANTIPHON_ENGINE_THREADS": "-1"}).key == "engine.threads"
    assert _refused({"ANTIPHON_ENGINE_SLOTS": "0"}).key == "engine.slots"


def test_the_file_is_as_strict_as_toml(tmp_path):
    assert _refused(file=_toml(tmp_path, '[engine]\nslots = "4"')).key == "engine.slots"
    assert _refused(file=_toml(tmp_path, "[engine]\nslots = true")).key == "engine.slots"
    assert "u8, f16" in _refused(file=_toml(tmp_path, '[engine]\nkv_precision = "x"')).problem


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"ANTIPHON_BIND": "127.0.0.1:8001"}, "ops_bind"),
        ({"ANTIPHON_BIND": "localhost:8001"}, "ops_bind"),
        ({"ANTIPHON_BIND": "0.0.0.0:8001"}, "ops_bind"),
        ({"ANTIPHON_SHUTDOWN_DRAIN_S": "30"}, "shutdown.drain_s"),
        ({"ANTIPHON_ENGINE_STEP_TOKENS": "16"}, "engine.step_tokens"),
        ({"ANTIPHON_QUEUE_MAX_TOKENS": "100"}, "queue.max_tokens"),
        ({"ANTIPHON_MODEL": " "}, "model"),
        ({"ANTIPHON_MODEL_NAME": " "}, "model_name"),
    ],
)
def test_contradictions_are_refused_by_their_key(environ, key):
    assert _refused(environ).key == key


def test_two_listeners_may_both_ask_for_any_port():
    load_settings(None, {"ANTIPHON_BIND": "127.0.0.1:0", "ANTIPHON_OPS_BIND": "127.0.0.1:0"})


@pytest.mark.parametrize(
    ("value", "pair"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("[::1]:0", ("::1", 0)),
        ("example.org:65535", ("example.org", 65535)),
    ],
)
def test_an_address_is_host_and_port(value, pair):
    assert parse_bind("bind", value) == pair


@pytest.mark.parametrize(
    "value",
    ["", "8000", ":8000", "host", "host:", "host:x", "host:65536", "host:-1", "host:٣", "::1:80",
     "[::1:80", "[host]:80", "a b:80", "[]:80", "host:80:"],
)  # fmt: skip
def test_anything_else_is_no_address(value):
    with pytest.raises(SettingsError) as refusal:
        parse_bind("bind", value)

    assert refusal.value.key == "bind"


def test_the_data_dir_may_be_written_with_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert load_settings(None, {"ANTIPHON_DATA_DIR": "~/x"}).data_dir == tmp_path / "x"
    assert _refused({"ANTIPHON_DATA_DIR": "~nobody-by-this-name/x"}).key == "data_dir"


def test_a_file_that_is_missing_a_folder_or_not_toml_is_one_line(tmp_path):
    assert _refused(file=tmp_path / "none.toml").key == "--config"
    assert _refused(file=tmp_path).key == "--config"
    assert "not TOML" in _refused(file=_toml(tmp_path, "a = ")).problem
    (tmp_path / "antiphon.toml").write_bytes(b"\xff\xfe")
    assert "not TOML" in _refused(file=tmp_path / "antiphon.toml").problem


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("fifteen-letters", "at least 16"),
        ("sixteen letters!!", "visible ASCII"),
        ("sixteen-letters-é", "visible ASCII"),
        ("sixteen-letters-\n", "visible ASCII"),
    ],
)
def test_a_short_or_unsendable_operator_token_is_refused_and_not_shown(token, problem):
    refusal = _refused({"ANTIPHON_OPS_TOKEN": token})

    assert refusal.key == "ops_token"
    assert problem in str(refusal)
    assert token.strip() not in str(refusal)


def test_an_operator_token_is_never_part_of_the_settings_text(tmp_path):
    secret = "sixteen-letters-"
    settings = load_settings(_toml(tmp_path, f'ops_token = "{secret}"'), {})

    assert settings.ops_token == secret
    assert secret not in f"{settings} {settings!r}"
    assert "ops_bind" in repr(settings)


def test_a_databases_password_is_never_part_of_the_settings_text():
    settings = load_settings(None, {"ANTIPHON_DATABASE_URL": "postgresql://me:hunter2@host/name"})

    assert settings.database.url == "postgresql://me:hunter2@host/name"
    assert "hunter2" not in f"{settings} {settings!r}"


def test_an_operator_token_of_the_wrong_type_is_not_shown(tmp_path):
    refusal = _refused(file=_toml(tmp_path, "ops_token = 1234567890123456789"))

    assert refusal.key == "ops_token"
    assert "1234567890123456789" not in str(refusal)


UPSTREAM = {
    "ANTIPHON_ENGINE_KIND": "upstream",
    "ANTIPHON_UPSTREAM_URLS": "http://10.0.0.1:8000/v1, https://b.example/v1/,",
    "ANTIPHON_UPSTREAM_MODEL": "m",
}


def test_replicas_are_a_list_or_a_text_with_commas(tmp_path):
    text = '[upstream]\nurls = ["http://10.0.0.1:8000/v1", "https://b.example/v1"]\n'

    replicas = load_settings(None, UPSTREAM).upstream.replicas

    assert replicas == ("http://10.0.0.1:8000/v1", "https://b.example/v1")
    assert load_settings(_toml(tmp_path, text), {}).upstream.replicas == replicas


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"URLS": ""}, "urls"),
        ({"URLS": "10.0.0.1:8000"}, "urls"),
        ({"URLS": "ftp://a/v1"}, "urls"),
        ({"URLS": "http://a:x/v1"}, "urls"),
        ({"URLS": "http://me:secret@a/v1"}, "urls"),
        ({"MODEL": " "}, "model"),
        ({"PROMPTS": "tokens"}, "prompts"),
        ({"BALANCE": "0.5"}, "balance"),
        ({"API_KEY": "a\nb"}, "api_key"),
    ],
)
def test_an_upstream_that_could_not_work_is_refused(changes, key):
    changed = {f"ANTIPHON_UPSTREAM_{name}": value for name, value in changes.items()}

    refusal = _refused(UPSTREAM | changed)

    assert refusal.key == f"upstream.{key}"
    assert "secret" not in str(refusal)


def test_an_upstream_is_not_looked_at_by_another_engine():
    load_settings(None, {"ANTIPHON_UPSTREAM_URLS": "nonsense"})


def test_the_upstreams_key_is_never_shown():
    settings = load_settings(None, UPSTREAM | {"ANTIPHON_UPSTREAM_API_KEY": "sk-secret"})

    assert settings.upstream.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


@pytest.mark.parametrize("key", ["kv_group", "activation_group"])
def test_a_group_is_a_power_of_two_or_none(key):
    for size in ("8", "48", "100"):
        refusal = _refused({f"ANTIPHON_OPENVINO_{key.upper()}": size})
        assert refusal.key == f"openvino.{key}"

    settings = load_settings(None, {f"ANTIPHON_OPENVINO_{key.upper()}": "0"})
    assert getattr(settings.openvino, key) == 0


def test_no_engine_gets_more_than_all_of_a_gpus_memory():
    refusal = _refused({"ANTIPHON_TRT_KV_FRACTION": "1.5"})

    assert refusal.key == "trt.kv_fraction"
