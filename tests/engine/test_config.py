from pathlib import Path

import msgspec
import pytest

from antiphon.engine.config import HostConfig, decode_config, encode_config

CONFIG = HostConfig(model_dir=Path("/m/ü"), slots=2, window=64, stop_token_ids=(0, 2))


def test_a_configuration_survives_the_command_line():
    assert decode_config(encode_config(CONFIG)) == CONFIG


def test_a_configuration_of_another_version_is_refused():
    text = encode_config(CONFIG).replace('"slots"', '"seats"')

    with pytest.raises(msgspec.ValidationError):
        decode_config(text)
