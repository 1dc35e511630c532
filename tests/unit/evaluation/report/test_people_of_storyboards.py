"""What people said about storyboards, in the report and as tables: what was calibrated, and nothing else.

All that a report says of people is pinned once; each other calibration by what it changes of that.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.report.formats import render_page, scores_csv, write_report, written
from fabula.evaluation.report.model import ReportDocument
from fabula.evaluation.report.people import CALIBRATION, SHORT, people_warnings, write_calibration
from fabula.kinds.evaluations import calibrate
from fabula.people.recoverability import Resampling
from fabula.people.study import StudySettings
from fabula.testing.report_documents import HOSTILE
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people

FEW = Definitions(resamples=50)
TWO = (0.1, 0.2)
METHODS = (
    ("alpha", Truth(errors=TWO)),
    ("beta", Truth(image=(0.3,) * 6, errors=TWO)),
    ("gamma", Truth(errors=TWO)),
)
PAIRS = {("alpha", "beta"): ["Q1", "Q2", "Q3", "Q11"], ("alpha", "gamma"): ["calm", "Q1"]}
Json = dict[str, Any]
A, B = "a" * SHORT, "b" * SHORT
POOLED = "of the study's protocol are pooled"
MADE_UP = "a program made them, so that numbers about people are no finding"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return write_simulated(tmp_path_factory.mktemp("simulated"), 36, METHODS)


@pytest.fixture(scope="module")
def document(simulated: Simulated) -> Json:
    """What simulated people say of two of three methods, as a file of a calibration has it."""
    who = SimulatedPeople(pairs=PAIRS)
    human = write_simulated_people(simulated.run.parent / "human.jsonl", simulated.items.records, who)
    settings = StudySettings(resampling=Resampling(50))
    made = calibrate(simulated.run, human, simulated.release, settings)
    return json.loads(write_calibration(simulated.run, made.document).read_bytes())  # type: ignore[no-any-return]


def report_beside(calibration: str, simulated: Simulated, folder: Path) -> ReportDocument:
    """Return the report on the evaluation with this calibration beside it, or with none."""
    for name in ("judgements.jsonl", "evaluation.json"):
        (folder / name).write_bytes((simulated.run / name).read_bytes())
    if calibration:
        (folder / CALIBRATION).write_text(calibration)
    return katha_report(folder, simulated.release, definitions=FEW)


def said(report: ReportDocument) -> str:
    """Return all that a report says of people, as text."""
    spots = [f"{spot.series} {spot.label}: people {spot.across:.2f}, {figure.up} {spot.up:.2f}"
             for figure in report.people_figures for spot in figure.spots]  # fmt: skip
    notes = [figure.note for figure in report.people_figures]
    tables = written([report.headline, *report.people], "markdown")
    return "\n".join([*report.warnings, "", *report.people_missing, "", *notes, *spots, "", tables])


CASES = ("little was asked", "no group is named", "nobody decided", "of an earlier version")


def changed(document: Json, case: str) -> Json:
    """Return a calibration that differs from the whole one in one respect."""
    made = json.loads(json.dumps(document))
    nothing = {"value": None, "status": "undefined", "reason": "nobody"}
    if case == "little was asked":
        alpha = made["methods"]["alpha"]
        alpha["moral"] = {name: {"HMR@1": nothing, "HMR@3": nothing} for name in alpha["moral"]}
        alpha["ratings"] = {"visual": alpha["ratings"]["visual"]}
        people = {**made["people"], "lines": {"rating": 3}, "simulated": 0, "protocols": {}}
        empty: Json = {"preferences": [], "preference_dimensions": [], "judges": {}, "agreement": []}
        return {**made, **empty, "people": people, "methods": {"alpha": alpha}}
    if case == "no group is named":
        for entry in (*made["preferences"], *made["preference_dimensions"]):
            entry["groups"] = {}
    if case == "nobody decided":
        first = made["preferences"][0]
        test = {**first["test"], "count": 0, "p_value": 1.0}
        mean = {**nothing, "counts": {"judgements": 0, "people": 0}}
        first |= {"mean": mean, "values": [0] * 5, "test": test, "by_person": test}
    if case == "of an earlier version":
        del made["preference_dimensions"], made["people"]["simulated"], made["people"]["protocols"]
        for judge in made["judges"].values():
            for compared in judge["answers"].values():
                del compared["storyboards"]
        for entry in made["preferences"]:
            del entry["dimension"], entry["correction"]
    return made


@pytest.fixture(scope="module")
def report(document: Json, simulated: Simulated, tmp_path_factory: pytest.TempPathFactory) -> ReportDocument:
    return report_beside(json.dumps(document), simulated, tmp_path_factory.mktemp("whole"))


def test_report_when_the_calibration_is_whole_says_all_of_it(report: ReportDocument, snapshot: Any) -> None:
    assert said(report) == snapshot
    page = render_page(report)
    assert page.index("come from simulated people") < page.index("<main>")
    assert '<span class="v none">\N{EN DASH}</span><span class="sub why">people were not asked to' in page
    csv = {line.partition(",")[0] for line in scores_csv(report).splitlines()}
    assert {name for name in csv if name.startswith("plot_")} == {
        "plot_gap_ridges", "plot_gap_strips", "plot_people-judges",
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_report_when_the_calibration_lacks_something_says_what_there_is_of_it(
    report: ReportDocument,
    document: Json,
    simulated: Simulated,
    tmp_path: Path,
    case: str,
    snapshot: Any,
    difference: Any,
) -> None:
    other = report_beside(json.dumps(changed(document, case)), simulated, tmp_path)
    text = said(other) if case == "little was asked" else difference(said(report), said(other))
    assert text == snapshot
    assert "Not shown" in render_page(other) or not other.people_missing


def test_report_when_its_calibration_is_of_other_judgements_says_so(document, simulated, report, tmp_path):
    report_beside(json.dumps(document), simulated, tmp_path)
    lines = (tmp_path / "judgements.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "judgements.jsonl").write_bytes(b"".join(lines[:-1]))
    again = katha_report(tmp_path, simulated.release, definitions=FEW)
    assert again.warnings[-1].endswith("calibrate again.") and again.warnings[-1] not in report.warnings


def test_headline_when_no_calibration_lies_beside_has_no_column_of_people(simulated, tmp_path):
    plain = report_beside("", simulated, tmp_path)
    assert [measure.name for measure in plain.headline.measures] == [
        "text", "image", "gap", "latent_gap", "moral_target", "ambiguity"
    ]  # fmt: skip
    assert (plain.people, plain.people_figures, plain.people_missing) == ((), (), ())


BROKEN: tuple[Json, ...] = (
    {"preferences": 5}, {"preferences": [{"method": "a"}]}, {"preference_dimensions": [None]},
    {"people": {"lines_read": 1}}, {"judges": {"a": {"answers": {"image": {"storyboards": [1]}}}}},
    {"methods": {"alpha": {"ratings": {"visual": {"mean": 3}}}}}, {"agreement": [{}]},
)  # fmt: skip


def test_report_when_the_calibration_is_broken_says_what_to_do(document, simulated, tmp_path):
    texts = [json.dumps({**document, **change}) for change in BROKEN]
    preferences = json.loads(json.dumps(document["preferences"]))
    preferences[0]["mean"]["value"] = "NUMBER"
    whole = json.dumps({**document, "preferences": preferences})
    texts += [whole.replace('"NUMBER"', number) for number in ("1e999", "-1e999", '"5"', "[]")]
    for text in texts:
        with pytest.raises(InputError, match="not a calibration of this evaluation"):
            report_beside(text, simulated, tmp_path)


@pytest.mark.slow
def test_page_when_names_are_hostile_keeps_them_text(document, simulated, tmp_path):
    entries = [
        {**entry, "criterion": text, "dimension": text, "groups": {text: entry["mean"]}}
        for entry, text in zip(document["preferences"] * 3, HOSTILE, strict=False)
    ]
    dimensions = [{**entry, "criteria": [entry["criterion"]]} for entry in entries]
    judges = {HOSTILE[0]: document["judges"]["ensemble"]}
    hostile = {"preferences": entries, "preference_dimensions": dimensions, "judges": judges}
    made = report_beside(json.dumps({**document, **hostile}), simulated, tmp_path)
    page = write_report(made, tmp_path / "page.html").files["page"].read_text("utf-8")
    assert page.count("<script>") == 1 and "<img src=x" not in page
    assert "\u202e" not in page.partition('id="people"')[2].partition('id="coverage"')[0]


@pytest.mark.parametrize(
    ("people", "told"),
    [
        ({"protocols": {}}, []),
        ({"protocols": {"a" * 64: 4}}, []),
        ({"simulated": 1}, [f"1 of 4 lines come from simulated people: {MADE_UP}."]),
        ({"protocols": {"a" * 64: 3, "b" * 64: 1}},
         [f"Lines given under 2 versions {POOLED}: {A} (3 lines), {B} (1 line)."]),
        ({"protocols": {"a" * 64: 3}},
         [f"Lines given under 1 version {POOLED}: {A} (3 lines); 1 line names none."]),
    ],
)  # fmt: skip
def test_readers_of_a_calibration_are_warned_of_made_up_people_and_pooled_versions(people, told):
    assert list(people_warnings({"lines_read": 4, **people})) == told
