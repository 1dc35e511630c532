"""The form for people: written, filled, read back."""

import csv

import pytest

from fabula.audits.form import RUBRIC, judged, read_form, units_of, write_form
from fabula.audits.records import read_records
from fabula.errors import InputError, TargetError
from fabula.evaluation.stats.uncertainty import Uncertainty

from .conftest import authored, drafted


@pytest.fixture
def drafts(as_file):
    return read_records(as_file(drafted(authored(8)), "draft"))


def filled(source, target, fill) -> None:
    """Fill a form: ``fill`` gives the columns sound and reason of a row."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row["sound"], row["reason"] = fill(number, row)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_form_when_written_has_parts_of_each_kind_and_the_same_for_the_same_seed(drafts, tmp_path) -> None:
    one, two, other = (tmp_path / name for name in ("one.csv", "two.csv", "other.csv"))
    assert write_form(one, drafts, 5) == write_form(two, drafts, 5) == 20
    write_form(other, drafts, 5, seed=7)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    with one.open(encoding="utf-8", newline="") as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(RUBRIC, 5)
    with pytest.raises(TargetError, match="already"):
        write_form(one, drafts, 5)


def test_form_when_filled_is_counted_with_reasons_and_agreement(drafts, tmp_path) -> None:
    form, first, second = (tmp_path / name for name in ("form.csv", "ana.csv", "ben.csv"))
    write_form(form, drafts, 20)
    said = {"question": "guessable", "variant": "not_fluent", "cause": "wrong", "boundary": "too_late"}

    def by_ana(number, row):
        return ("no", said[row["kind"]]) if number % 4 == 0 else ("yes", "")

    def by_ben(number, row):
        return ("", "") if number % 2 else by_ana(number, row)

    filled(form, first, by_ana)
    filled(form, second, by_ben)
    people = judged([read_form(path, drafts) for path in (first, second)], drafts, Uncertainty())
    ana = people["readers"]["ana.csv"]
    with form.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for kind, row in ana.items():
        places = [place for place, unit in enumerate(rows) if unit["kind"] == kind]
        wrong = sum(place % 4 == 0 for place in places)
        assert row["reasons"] == {said[kind]: wrong}
        assert (row["sound"]["numerator"], row["sound"]["denominator"]) == (len(places) - wrong, len(places))
        assert row["sound"]["low"] < row["sound"]["value"] < row["sound"]["high"]
    assert {row["kind"]: row["kappa"] for row in people["agreement"]} == dict.fromkeys(RUBRIC, 1.0)
    assert sum(row["judged"] for row in people["agreement"]) == (len(rows) + 1) // 2


@pytest.mark.parametrize(
    ("sound", "reason", "expected"),
    [
        ("maybe", "", "yes, no or nothing"),
        ("no", "", "one of not_answerable"),
        ("no", "ugly", "one of not_answerable"),
        ("yes", "guessable", "a reason only where sound is no"),
    ],
)
def test_line_when_it_says_something_else_is_named(drafts, tmp_path, sound, reason, expected) -> None:
    form, path = tmp_path / "form.csv", tmp_path / "filled.csv"
    write_form(form, drafts, 1)
    filled(form, path, lambda _, row: (sound, reason) if row["kind"] == "question" else ("", ""))
    with pytest.raises(InputError, match=expected) as raised:
        read_form(path, drafts)
    assert "filled.csv:" in str(raised.value)


def test_form_of_another_draft_is_refused(drafts, as_file, tmp_path) -> None:
    write_form(tmp_path / "form.csv", drafts, 2)

    def reworded(bundle):
        bundle["record"]["questions"] = [
            {**part, "question": f"{part['question']}!"} for part in bundle["record"]["questions"]
        ]

    other = read_records(as_file(drafted(authored(8), reworded), "other"))
    with pytest.raises(InputError, match="a part of this draft"):
        read_form(tmp_path / "form.csv", other)
    with pytest.raises(InputError, match="cannot be read"):
        read_form(tmp_path / "none.csv", drafts)


def test_units_are_every_part_that_the_rubric_is_about(drafts) -> None:
    kinds = [unit.kind for unit in units_of(drafts)]
    assert {kind: kinds.count(kind) for kind in RUBRIC} == {
        "question": 8 * 6, "variant": 8 * 2, "cause": 8 * 4, "boundary": 8 * 4,
    }  # fmt: skip
