"""What there is to learn from, and how it is kept apart from what is measured."""

import csv
import json
from random import Random

import numpy as np

from antiphon.classifier.model import HEADS
from antiphon.classifier.text import cleaned
from training.disguises import disguised
from training.injections import hidden, learnt_from, own_documents, public_documents
from training.rows import disguised_rows, own_rows, public_rows
from training.validation import FOLDS, folds


def write_sets(folder):
    """The public sets in little: three rows or functions each, all of them harmless words."""
    (folder / "bipia").mkdir()
    rows = [
        {"prompt": f"text {number}", "S": 0, "H": number % 2, "V": 0, "HR": 0}
        for number in range(10)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "openai_moderation_half.jsonl").write_text(lines, "utf-8")
    table(
        folder / "hatecheck_functions.csv",
        ("functionality", "test_case", "label_gold"),
        *(
            (f"f{number}_{'h' if number % 2 else 'nh'}", f"case {number} {each}", label)
            for number in range(6)
            for each in range(4)
            for label in [("hateful" if number % 2 else "non-hateful")]
        ),
    )
    table(
        folder / "xstest_half.csv",
        ("id", "prompt", "type", "label"),
        *((number, f"ask {number}", "homonyms", "safe") for number in range(5)),
    )
    table(
        folder / "simplesafetytests_half.csv",
        ("id", "harm_area", "prompts_final"),
        *((f"s{number}", "Scams and fraud", f"do {number}") for number in range(5)),
    )
    dialogue = {"history": [{"user": "hello", "bot": "good day to you"}] * 3}
    lines = "".join(json.dumps(dialogue) + "\n" for _ in range(8))
    (folder / "mtbench101_half.jsonl").write_text(lines, "utf-8")
    attacks = {"kind a": ["Do this."], "kind b": ["Do that."]}
    (folder / "bipia" / "text_attacks_half.json").write_text(json.dumps(attacks), "utf-8")
    mails = "".join(json.dumps({"context": f"Mail {n}. It is short."}) + "\n" for n in range(4))
    (folder / "bipia" / "email_half.jsonl").write_text(mails, "utf-8")


def table(path, *rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def test_all_rows_of_a_function_are_in_one_fold_and_copies_of_them_too(tmp_path):
    write_sets(tmp_path)
    public = public_rows(tmp_path)
    rows = [*public, *disguised_rows(public, share=1.0)]

    found = folds(rows)

    places = {}
    for row, fold in zip(rows, found, strict=True):
        assert places.setdefault(row.group, fold) == fold
    assert set(found.tolist()) == set(range(FOLDS))


def test_own_rows_are_in_no_fold():
    rows = own_rows(each=1)

    assert set(folds(rows).tolist()) == {-1}
    assert len(rows) > 500


def test_own_rows_are_the_same_every_time():
    first, second = own_rows(), own_rows()

    assert [row.text for row in first] == [row.text for row in second]


def test_every_own_row_says_whether_it_is_to_be_flagged():
    for row in own_rows(each=1):
        assert row.labels[0] in (0.0, 1.0)
        named = [HEADS[at] for at in np.flatnonzero(row.labels[1:] == 1) + 1]
        assert bool(named) == bool(row.labels[0])


def test_a_category_that_a_set_does_not_tell_is_unknown(tmp_path):
    write_sets(tmp_path)
    hateful = next(row for row in public_rows(tmp_path) if row.labels[0] == 1)

    assert np.isnan(hateful.labels[HEADS.index("illicit")])
    assert hateful.labels[HEADS.index("hate")] == 1


def test_a_disguise_changes_the_text_but_hardly_what_is_left_of_it():
    random = Random(0)
    text = "tomorrow we travel together"
    found = [disguised(text, random) for _ in range(60)]

    assert all(each != text for each in found)
    assert sum(cleaned(each) == text for each in found) >= 15


def test_an_attack_is_hidden_where_it_is_said_to_be():
    document = "One. Two. Three. Four."

    assert hidden(document, "Do this.", "start").startswith("Do this.")
    assert hidden(document, "Do this.", "end").endswith("Do this.")
    middle = hidden(document, "Do this.", "middle")
    assert middle == "One. Two. Do this. Three. Four."


def test_every_attack_is_measured_at_every_place_and_learned_from_at_one(tmp_path):
    write_sets(tmp_path)
    found = public_documents(tmp_path)
    attacked = [document for document in found if document.kind]

    assert len(attacked) == 4 * 2 * 3
    assert sum(bool(document.kind) for document in learnt_from(found)) == len(attacked) // 3


def test_own_documents_name_the_attack_in_them():
    for document in own_documents():
        assert document.attack is None or document.attack in document.text
