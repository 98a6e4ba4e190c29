import pytest

from antiphon.engine.openvino.kv import KvHeads, block_bytes, blocks_for, blocks_in

SMOLLM2 = [KvHeads(heads=3, size=64)] * 30


@pytest.mark.parametrize(
    ("precision", "group", "size"),
    [
        ("u8", 0, 437_760),
        ("u8", 64, 437_760),
        ("u8", 32, 460_800),
        ("u8", 16, 506_880),
        ("f16", 0, 737_280),
        ("f16", 16, 737_280),
    ],
)
def test_a_block_of_smollm2_takes_what_the_pipeline_was_seen_to_allocate(precision, group, size):
    assert block_bytes(SMOLLM2, SMOLLM2, precision, group) == size


def test_only_whole_blocks_count_and_never_none_at_all():
    assert blocks_in(1, 400_000) == 2
    assert blocks_in(1, 10**9) == 1


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (32, 1), (33, 2), (64, 2)])
def test_tokens_fill_blocks_from_the_first_one_on(tokens: int, blocks: int):
    assert blocks_for(tokens) == blocks
