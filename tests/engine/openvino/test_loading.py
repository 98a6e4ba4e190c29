"""What the pipeline allocates is what the arithmetic says, for each form of the cache."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from antiphon.engine.config import HostConfig
from antiphon.engine.openvino.kv import MIB
from antiphon.engine.openvino.loading import load
from antiphon.errors import HostStartFailed
from antiphon.openvino_settings import OpenVinoSettings

pytestmark = pytest.mark.engine

KV_MIB = 16


def config(model_dir: Path, **fields: object) -> HostConfig:
    return HostConfig(
        model_dir=model_dir,
        slots=4,
        window=512,
        stop_token_ids=(2,),
        kv_cache_mib=KV_MIB,
        **fields,
    )


@pytest.mark.parametrize(
    ("precision", "group", "bytes_of_block"),
    [("u8", 16, 506_880), ("f16", 32, 737_280)],
)
def test_the_cache_takes_what_was_reckoned(
    model_dir: Path, precision: str, group: int, bytes_of_block: int
):
    openvino = OpenVinoSettings(kv_group=group)

    with capture_logs() as lines:
        loaded = load(config(model_dir, kv_precision=precision, openvino=openvino))

    allocated = loaded.pipeline.get_metrics().kv_cache_size_in_bytes
    assert "kv_block_size_unexpected" not in [line["event"] for line in lines]
    assert allocated == loaded.kv_blocks * bytes_of_block
    assert allocated <= KV_MIB * MIB < allocated + bytes_of_block


def test_a_group_that_the_model_cannot_have_is_told_by_its_setting(model_dir: Path):
    openvino = OpenVinoSettings(kv_group=128)

    with pytest.raises(HostStartFailed, match=r"openvino\.kv_group can't be 128"):
        load(config(model_dir, openvino=openvino))
