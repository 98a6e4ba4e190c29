import json

import pytest

from antiphon.classifier.evaluation import DatasetError
from antiphon.trying.spans import evaluate_spans, span_json, span_lines


def marked(text, *spans):
    return {
        "full_text": text,
        "spans": [
            {"entity_type": entity, "start_position": start, "end_position": end}
            for entity, start, end in spans
        ],
    }


@pytest.fixture
def measured(tmp_path):
    file = tmp_path / "rows.json"
    rows = [
        marked("write to ann@example.org", ("EMAIL_ADDRESS", 9, 24)),
        marked("see https://example.org/", ("DOMAIN_NAME", 4, 20), ("PERSON", 0, 3)),
        marked("ring 450 0840 now", ("PHONE_NUMBER", 5, 13)),
        marked("mine is bob@example.org"),
    ]
    file.write_text(json.dumps(rows))
    return evaluate_spans(file)


def test_right_wrong_and_missed_are_counted_by_entity(measured):
    counted = {each.entity: (each.right, each.wrong, each.missed) for each in measured.entities}

    assert counted == {
        "EMAIL_ADDRESS": (1, 1, 0),
        "URL": (1, 0, 0),
        "PHONE_NUMBER": (0, 0, 1),
        "all together": (2, 1, 1),
    }
    assert measured.exact == 1


def test_f1_has_an_interval_around_it(measured):
    total = measured.entities[-1]

    assert total.f1.value == pytest.approx(2 / 3)
    assert total.f1.low < total.f1.value < total.f1.high
    assert (total.precision.value, total.recall.value) == pytest.approx((2 / 3, 2 / 3))


def test_it_is_shown_as_a_table_and_as_json(measured):
    lines = span_lines(measured)

    assert lines[0].startswith("rows.json: 4 texts; of 2 spans that are right, 1 begin")
    assert lines[-1].startswith("| all together | 2 | 1 | 1 | 0.667 (0.208–")
    assert span_json(measured)["entities"]["URL"]["f1"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("content", ["{", "[1]", '[{"full_text": "a"}]'])
def test_another_form_is_refused(tmp_path, content):
    file = tmp_path / "rows.json"
    file.write_text(content)

    with pytest.raises(DatasetError, match="is no JSON array"):
        evaluate_spans(file)
