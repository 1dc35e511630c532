"""What people said about storyboards, in the report and as tables: what was calibrated, and nothing else."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.katha.report.people import COLUMNS, people_tables
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.report.formats import written
from fabula.evaluation.report.model import ReportDocument, ScoreTable
from fabula.evaluation.report.page import render_page
from fabula.evaluation.report.people import CALIBRATION, write_calibration
from fabula.evaluation.report.writing import scores_csv, write_report
from fabula.kinds.evaluations import calibrate
from fabula.people.participants import Resampling
from fabula.people.study import StudySettings
from fabula.testing.report_documents import HOSTILE
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people

FEW = Definitions(resamples=50)
METHODS = (("alpha", Truth()), ("beta", Truth(image=(0.3,) * 6)), ("gamma", Truth()))
PAIRS = {("alpha", "beta"): [f"Q{n}" for n in range(1, 16)], ("alpha", "gamma"): ["Q15", "calm", "Q1"]}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return write_simulated(tmp_path_factory.mktemp("simulated"), 72, METHODS)


@pytest.fixture(scope="module")
def document(simulated: Simulated) -> Json:
    """What simulated people say of two of three methods, as a file of a calibration has it."""
    who = SimulatedPeople(pairs=PAIRS)
    human = write_simulated_people(simulated.run.parent / "human.jsonl", simulated.items.records, who)
    settings = StudySettings(resampling=Resampling(50))
    made = calibrate(simulated.run, human, simulated.release, settings)
    return json.loads(write_calibration(simulated.run, made.document).read_bytes())  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def report(simulated: Simulated, document: Json) -> ReportDocument:
    assert document["people"]["simulated"]
    return katha_report(simulated.run, simulated.release, definitions=FEW)


def tables_of(document: Json) -> dict[str, ScoreTable]:
    return {table.name: table for table in people_tables(document)}


def rows_of(table: ScoreTable) -> dict[str, dict[str, float | None]]:
    return {row.label: {name: score.value for name, score in row.scores.items()} for row in table.rows}


def asked_of(document: Json, simulated: Simulated, folder: Path, **changes: Any) -> ReportDocument:
    """Return the report on a calibration that was changed."""
    return report_beside(json.dumps({**document, **changes}), simulated, folder)


def report_beside(calibration: str, simulated: Simulated, folder: Path) -> ReportDocument:
    """Return the report on the evaluation with this calibration beside it."""
    for name in ("judgements.jsonl", "evaluation.json"):
        (folder / name).write_bytes((simulated.run / name).read_bytes())
    (folder / CALIBRATION).write_text(calibration)
    return katha_report(folder, simulated.release, definitions=FEW)


def test_tables_when_read_hold_what_was_calibrated(document: Json) -> None:
    tables, alpha = tables_of(document), document["methods"]["alpha"]
    assert list(tables) == [
        "people_asked", "people", "people_dimensions", "people_morals", "ratings", "preferences",
        "preference_tests", "preference_dimensions", "preference_groups", "judges_people", "judges_choices",
        "reliability", "people_agreement",
    ]  # fmt: skip
    causal = rows_of(tables["people_dimensions"])["alpha · Causal"]
    assert causal["gap"] == alpha["stg"]["causal"]["value"]
    assert causal["text_image"] == alpha["recoverability"]["text_image"]["causal"]["value"]
    hmr = rows_of(tables["people_morals"])["alpha · Images"]
    assert hmr["HMR@1"] == alpha["moral"]["image"]["HMR@1"]["value"]
    assert hmr["judgements"] == 12 * 3
    rated = rows_of(tables["ratings"])["beta · Narrative coherence (NCS)"]
    beta = document["methods"]["beta"]["ratings"]["NCS"]
    assert rated == {
        "mean": beta["mean"]["value"], "deviation": beta["deviation"], "judgements": 36, "people": 8,
        "stories": 12,
    }  # fmt: skip
    judge = document["judges"]["ensemble"]
    compared = rows_of(tables["judges_people"])["ensemble · Images"]
    assert compared["false_acceptance"] == judge["answers"]["image"]["false_acceptance"]["value"]
    assert compared["kendall"] == judge["answers"]["image"]["kendall"]["value"]
    chosen = rows_of(tables["judges_choices"])
    assert chosen["Preference by Q2"]["ensemble"] == judge["preferences"]["Q2"]["value"]
    assert chosen["Moral label, images"]["ensemble"] == judge["moral_label"]["image"]["value"]
    bins = [
        row for name, row in rows_of(tables["reliability"]).items() if name.startswith("ensemble · Text ·")
    ]
    assert [row["answers"] for row in bins] == [one["count"] for one in judge["answers"]["text"]["bins"]]


def test_preferences_when_tabled_have_each_pair_with_its_own_tests(document: Json) -> None:
    tables = tables_of(document)
    preferred = {(one["baseline"], one["criterion"]): one for one in document["preferences"]}
    means, tests = rows_of(tables["preferences"]), rows_of(tables["preference_tests"])
    assert len(means) == len(tests) == 15 + 3
    entry = preferred["beta", "Q3"]
    row = means["alpha over beta · Q3 · intention"]
    assert [row[f"value_{step:+d}"] for step in (-2, -1, 0, 1, 2)] == entry["values"]
    assert (row["mean"], row["unclear"]) == (entry["mean"]["value"], entry["unclear"])
    row = tests["alpha over beta · Q3 · intention"]
    assert row["p"] == entry["test"]["p_value"]
    assert row["p_corrected"] == pytest.approx(min(1.0, 15 * entry["test"]["p_value"]))
    assert row["p_corrected_by_person"] == entry["p_corrected_by_person"]
    assert row["rank_biserial_by_person"] == entry["rank_biserial_by_person"]
    own = tests["alpha over gamma · calm"]
    assert own["p_corrected"] == pytest.approx(min(1.0, 3 * preferred["gamma", "calm"]["test"]["p_value"]))
    assert "Bonferroni" in tables["preference_tests"].note
    assert "alpha over beta 15, alpha over gamma 3" in tables["preference_tests"].note
    groups = rows_of(tables["preference_groups"])
    assert (
        groups["alpha over beta · Q1 · causality · experts"]["mean"]
        == (preferred["beta", "Q1"]["groups"]["experts"]["value"])
    )
    assert "alpha over beta · trajectory · novices" in groups
    assert "alpha over beta · Q11 · trajectory · novices" not in groups, (
        "it is the dimension's only criterion"
    )


def test_headline_when_people_rated_has_their_columns_as_the_mapping_says(
    report: ReportDocument, document: Json
) -> None:
    names = [measure.name for measure in report.headline.measures]
    assert (names[0], names[-1]) == ("visual", "human_score")
    assert {"text", "image", "gap", "moral_target"} < set(names)
    assert {criterion: measure.name for criterion, measure in COLUMNS.items()} == {
        "visual": "visual", "overall": "human_score"
    }  # fmt: skip
    rows = {row.label: row.scores for row in report.headline.rows}
    mean = document["methods"]["beta"]["ratings"]["overall"]["mean"]
    assert rows["beta"]["human_score"].value == mean["value"]
    assert rows["beta"]["human_score"].low == mean["low"]
    unasked = rows["gamma"]["visual"]
    assert (unasked.status, unasked.reason) == ("undefined", "people were not asked to rate “visual”")
    page = render_page(report)
    assert (
        '<span class="v none">\N{EN DASH}</span><span class="sub why">people were not asked to rate' in page
    )


def test_headline_when_no_calibration_lies_beside_has_no_column_of_people(
    simulated: Simulated, tmp_path: Path
) -> None:
    for name in ("judgements.jsonl", "evaluation.json"):
        (tmp_path / name).write_bytes((simulated.run / name).read_bytes())
    plain = katha_report(tmp_path, simulated.release, definitions=FEW)
    assert [measure.name for measure in plain.headline.measures] == [
        "text", "image", "gap", "latent_gap", "moral_target", "ambiguity"
    ]  # fmt: skip
    assert (plain.people, plain.people_figures, plain.people_missing) == ((), (), ())


def test_storyboards_when_drawn_are_those_of_all_judges_together(
    report: ReportDocument, document: Json
) -> None:
    (scatter,) = report.people_figures
    compared = document["judges"]["ensemble"]["answers"]["image"]
    assert [(spot.series, spot.label, spot.across, spot.up) for spot in scatter.spots] == [
        (board["method"], board["story"], board["people"], board["judge"])
        for board in compared["storyboards"]
    ]
    assert f"Spearman's correlation {compared['spearman']['value']:.2f} [" in scatter.note.replace("−", "-")
    assert "n = 24 storyboards" in scatter.note


def test_csv_when_written_has_the_numbers_of_the_figure_alone(report: ReportDocument) -> None:
    rows = list(csv.DictReader(io.StringIO(scores_csv(report))))
    of_figures = {row["table"] for row in rows if row["table"].startswith("plot_")}
    assert of_figures == {"plot_gap_ridges", "plot_gap_strips", "plot_people-judges"}


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_tables_when_written_in_a_form_are_all_there(document: Json, form: Any) -> None:
    text = written(people_tables(document), form)
    for told in ("HMR@1", "Emotional expressiveness (EES)", "overall recoverability"):
        assert told in text
    assert ("simulated people" in text) == (form != "csv")
    assert "people_asked,Of these simulated,number" in text or form != "csv"


def test_report_when_people_are_simulated_begins_with_that(report: ReportDocument, document: Json) -> None:
    lines, people = document["people"]["lines_read"], document["people"]
    assert f"{lines:,} of {lines:,} lines come from simulated people" in " ".join(report.warnings)
    pooled = next(text for text in report.warnings if "pooled" in text)
    for name, count in people["protocols"].items():
        assert f"{name[:12]} ({count:,} lines)" in pooled
    page = render_page(report)
    assert page.index("come from simulated people") < page.index("<main>")


def test_report_when_little_was_asked_draws_nothing_of_the_rest_and_says_why(
    document: Json, simulated: Simulated, tmp_path: Path
) -> None:
    people = {**document["people"], "lines": {"rating": 3}, "simulated": 0, "protocols": {}}
    about = document["methods"]["alpha"]
    nothing = {"value": None, "status": "undefined", "reason": "nobody"}
    unasked = {condition: {"HMR@1": nothing, "HMR@3": nothing} for condition in about["moral"]}
    alpha = {**about, "moral": unasked, "ratings": {"visual": about["ratings"]["visual"]}}
    made = asked_of(
        document, simulated, tmp_path, people=people, methods={"alpha": alpha}, preferences=[],
        preference_dimensions=[], judges={}, agreement=[],
    )  # fmt: skip
    assert made.people_figures == ()
    assert [table.name for table in made.people] == ["people_asked", "people", "people_dimensions", "ratings"]
    assert made.people_missing == (
        "What people recover (Table 38, Figure 10): nobody was asked a question.",
        "Moral targets that people name (HMR): nobody named one for a story that has a label.",
        "Human Score (Table 2): nobody was asked to rate “overall”.",
        "Preferences: nobody was asked to compare two methods.",
    )
    assert not any("simulated people" in warning for warning in made.warnings)
    assert "Not shown" in render_page(made)


def test_report_when_no_group_is_named_or_nobody_decided_says_so(
    document: Json, simulated: Simulated, tmp_path: Path
) -> None:
    def without(entry: Json) -> Json:
        return {**entry, "groups": {}}

    first, *others = map(without, document["preferences"])
    nobody = {"value": None, "status": "undefined", "reason": "no", "counts": {"judgements": 0, "people": 0}}
    test = {**first["test"], "count": 0, "p_value": 1.0}
    first |= {"mean": nobody, "values": [0] * 5, "test": test, "by_person": test}
    dimensions = [*map(without, document["preference_dimensions"])]
    made = asked_of(
        document, simulated, tmp_path, preferences=[first, *others], preference_dimensions=dimensions
    )
    assert made.people_missing == ("Preferences by group of people: no line of a preference names a group.",)
    tests = next(table for table in made.people if table.name == "preference_tests")
    assert tests.rows[0].scores["p"].reason == "every preference is 0, or nobody decided"
    render_page(made)


def test_report_when_the_calibration_is_of_an_earlier_version_says_what_it_lacks(
    document: Json, simulated: Simulated, tmp_path: Path
) -> None:
    old = json.loads(json.dumps(document))
    del old["preference_dimensions"], old["people"]["simulated"], old["people"]["protocols"]
    for judge in old["judges"].values():
        for compared in judge["answers"].values():
            del compared["storyboards"]
    for entry in old["preferences"]:
        del entry["dimension"], entry["correction"]
    made = report_beside(json.dumps(old), simulated, tmp_path)
    assert made.people_figures == ()
    assert [text.partition(":")[0] for text in made.people_missing] == [
        "Preferences by dimension", "People and judges per storyboard (Figure 10)"
    ]  # fmt: skip
    render_page(made)


@pytest.mark.parametrize(
    "change",
    [
        {"preferences": 5}, {"preferences": [{"method": "a"}]}, {"preference_dimensions": [None]},
        {"people": {"lines_read": 1}}, {"judges": {"a": {"answers": {"image": {"storyboards": [1]}}}}},
        {"methods": {"alpha": {"ratings": {"visual": {"mean": 3}}}}}, {"agreement": [{}]},
    ],
)  # fmt: skip
def test_report_when_the_calibration_is_broken_says_what_to_do(
    document: Json, simulated: Simulated, tmp_path: Path, change: Json
) -> None:
    with pytest.raises(InputError, match="not a calibration of this evaluation"):
        asked_of(document, simulated, tmp_path, **change)


@pytest.mark.parametrize("number", ["1e999", "-1e999", '"5"', "[]"])
def test_report_when_a_mean_is_no_number_says_what_to_do(
    document: Json, simulated: Simulated, tmp_path: Path, number: str
) -> None:
    changed = json.loads(json.dumps(document))
    changed["preferences"][0]["mean"]["value"] = "NUMBER"
    with pytest.raises(InputError, match="not a calibration of this evaluation"):
        report_beside(json.dumps(changed).replace('"NUMBER"', number), simulated, tmp_path)


@pytest.mark.slow
def test_page_when_names_are_hostile_keeps_them_text(
    document: Json, simulated: Simulated, tmp_path: Path
) -> None:
    entries = [
        {**entry, "criterion": text, "dimension": text, "groups": {text: entry["mean"]}}
        for entry, text in zip(document["preferences"], HOSTILE, strict=False)
    ]
    dimensions = [{**entry, "criteria": [entry["criterion"]]} for entry in entries]
    judges = {HOSTILE[0]: document["judges"]["ensemble"]}
    made = asked_of(
        document, simulated, tmp_path, preferences=entries, preference_dimensions=dimensions, judges=judges
    )
    page = write_report(made, tmp_path / "page.html").files["page"].read_text("utf-8")
    assert page.count("<script>") == 1 and "<img src=x" not in page
    assert "\u202e" not in page.partition('id="people"')[2].partition('id="coverage"')[0]
