"""The checker process with the real tokenizer."""

import json
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.engine.openvino.schemas import CODE, MAX_SCHEMA_BYTES, SchemaGate, SchemaVerdict

pytestmark = pytest.mark.engine

VOCABULARY = 49_152
PERSON = json.dumps({"type": "object", "properties": {"name": {"type": "string"}}})
ENDLESS = '{"properties":{"a":' * 3_000 + "true" + "}}" * 3_000
"""Valid, 70 kB long, and the grammar compiler eats gigabytes for minutes."""


@pytest.fixture(name="gate", scope="module")
def _gate(model_dir: Path) -> Iterator[SchemaGate]:
    gate = SchemaGate(model_dir, VOCABULARY)
    yield gate
    gate.close()


def judged(gate: SchemaGate, schema: str) -> SchemaVerdict:
    """The verdict, waited for as the host does: on its descriptors."""
    deadline = time.monotonic() + 60
    while (verdict := gate.verdict(schema)) is None:
        assert time.monotonic() < deadline
        select.select(gate.descriptors, [], [], 0.1)
        gate.settle()
    return verdict


def test_a_good_schema_has_no_problem_and_is_remembered(gate: SchemaGate):
    assert judged(gate, PERSON) == SchemaVerdict(None)

    assert gate.verdict(PERSON) == SchemaVerdict(None)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("{", "Failed to parse JSON"),
        ("[]", "should be an object or bool"),
        ('{"type": "nonsense"}', "Unsupported type"),
        ('{"$ref": "#/nowhere"}', "Cannot find field nowhere"),
        ('{"type": "string", "pattern": "(["}', "Unclosed"),
    ],
)
def test_a_bad_schema_is_told_in_plain_words(gate: SchemaGate, schema: str, told: str):
    verdict = judged(gate, schema)

    assert verdict.code == CODE
    assert verdict.problem is not None
    assert told in verdict.problem
    assert ".cc" not in verdict.problem
    assert "/" not in verdict.problem.replace("#\\/", "")


def test_a_schema_after_bad_ones_is_still_judged_well(gate: SchemaGate):
    assert judged(gate, '{"type": 5}').problem is not None

    assert judged(gate, '{"type": "integer"}').problem is None


def test_many_schemas_wait_for_their_turn(gate: SchemaGate):
    schemas = [json.dumps({"type": "string", "minLength": n}) for n in range(20)]
    assert [gate.verdict(schema) for schema in schemas] == [None] * 20

    assert [judged(gate, schema).problem for schema in schemas] == [None] * 20


def test_a_schema_that_takes_all_memory_is_refused_and_the_next_is_not(gate: SchemaGate):
    judged(gate, PERSON)

    verdict = judged(gate, ENDLESS)

    assert verdict.problem is not None
    assert "too complex" in verdict.problem
    assert verdict.code == CODE
    assert judged(gate, '{"type": "number"}').problem is None


def test_a_schema_of_a_silly_length_is_refused_unseen(gate: SchemaGate):
    verdict = gate.verdict(" " * (MAX_SCHEMA_BYTES + 1))

    assert verdict is not None
    assert verdict.code == CODE


def test_a_checker_that_cannot_start_is_not_the_schemas_fault(tmp_path: Path):
    gate = SchemaGate(tmp_path, VOCABULARY)
    try:
        assert judged(gate, PERSON).code == "schema_check_failed"
    finally:
        gate.close()


def test_a_schema_that_takes_too_long_is_refused(gate: SchemaGate, monkeypatch):
    judged(gate, PERSON)
    monkeypatch.setattr("antiphon.engine.openvino.schemas._CHECK_S", 0.0)

    verdict = judged(gate, '{"type": "string", "maxLength": 30000}')

    assert verdict.problem is not None
    assert "takes too long" in verdict.problem
