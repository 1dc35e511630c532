"""The report on shot images: numbers as scored, per shot and per story; what is missing is said."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.metrics.metric import metrics
from fabula.evaluation.report.formats import coverage_text, render_page, scores_csv, shots_csv, write_report
from fabula.evaluation.report.model import ReportDocument, ShotCard, ShotsPart, Snap
from fabula.evaluation.report.people import write_calibration
from fabula.evaluation.report.showing import GONE, METHODS, SPENT, Wanted
from fabula.evaluation.shots.looking import IMAGES, read_found
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.report.cards import CARDS, EACH
from fabula.evaluation.shots.report.page import images_report
from fabula.evaluation.shots.scores import score_folder
from fabula.evaluation.shots.scoring import compare_folders
from fabula.kinds.evaluations import calibrate, export_archive
from fabula.people.recoverability import Resampling
from fabula.people.study import StudySettings
from fabula.schemas.values import Score
from fabula.testing.drawn_evaluations import draw_evaluation
from fabula.testing.drawn_shots import FIGURE, HEIGHT, WIDTH, boxes_in, draw_shot, draw_shot_set
from fabula.testing.simulated_images import Simulated, write_images

FEW = Definitions(resamples=200)
TWO = {"alpha": 0.4, "beta": 0.9}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three drawn stories of five shots by two methods; one picture is missing."""
    folder = tmp_path_factory.mktemp("drawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield draw_evaluation(folder)


@pytest.fixture(scope="module")
def report(drawn: Path) -> ReportDocument:
    return images_report(drawn, wanted=Wanted(FEW, unranked=("copy-paste",), least=0.8))


@pytest.fixture(scope="module")
def plain(drawn: Path) -> str:
    """What is told of the drawn evaluation where nothing else is wanted."""
    return told(images_report(drawn, wanted=Wanted(FEW)))


def part_of(document: ReportDocument) -> ShotsPart:
    assert document.shots is not None
    return document.shots


def card_of(part: ShotsPart, method: str, story: str, number: int) -> ShotCard:
    grid = next(one for one in part.stories if one.story_id == story)
    return next(one for one in grid.methods if one.method == method).cards[number - 1]


def told(document: ReportDocument) -> str:
    """What a report says of ranks, counts, shots and walls, in lines; numbers as people read them."""

    def number(value: float | None) -> str:
        return "none" if value is None else f"{value:.2f}"

    def shown(snap: Snap) -> str:
        return f"{snap.width} x {snap.height}" if snap.data else str(snap.lost)

    def of_card(card: ShotCard) -> str:
        parts = [f"{card.number}: {shown(card.picture)}", f"{len(card.boxes)} boxes"]
        parts += [f"{card.found} found of {card.onstage}"]
        parts += [f"{who.character} {who.missed or number(who.similarity)}" for who in card.cast]
        parts += [f"{name} {number(value)}" for name, value in card.values.items()]
        return ", ".join([*parts, *(f"no {name}: {why}" for name, why in card.missing.items())])

    part = part_of(document)
    lines = [f"warning: {warning}" for warning in document.warnings]
    lines += [f"{one.name}: {one.value}" for one in document.definitions]
    for row in part.leaders.rows if part.leaders else ():
        ranks = ", ".join(f"{name} {place.rank}" for name, place in row.places.items())
        lines.append(f"{row.method} ({row.unranked}) has ranks {ranks}")
    for table in document.accounting:
        lines += [f"{table.name} of {row.label}: {row.values}" for row in table.rows]
    for grid in part.stories[:2]:
        one = next(one for one in grid.methods if one.method == "model-a")
        lines += [f"story {grid.story_id} by {one.method}", *map(of_card, one.cards)]
        for row in one.wall:
            crops = [f"{crop.shot} {shown(crop.picture)}" for crop in row.crops]
            like = f"{row.character}, {row.tag}: {[*map(shown, row.references)]}"
            lines.append(f"{like} {crops} {number(row.mean)}")
    return "\n".join(lines)


def simulated(folder: Path, **more: object) -> Path:
    return write_images(folder, Simulated(**{"methods": TWO, **more}))  # type: ignore[arg-type]


def test_report_when_compared_with_the_scores_has_their_numbers(drawn: Path, report: ReportDocument) -> None:
    scores = {one.method: one for one in score_folder(drawn, FEW).methods}
    leaders = part_of(report).leaders
    assert leaders is not None and {row.method for row in leaders.rows} == set(scores)
    for row in leaders.rows:
        for name, place in row.places.items():
            assert place.score == scores[row.method].scores[name]
    for row in report.headline.rows:
        for name, score in row.scores.items():
            assert (score.value, score.low, score.high) == (
                (one := scores[row.label].scores[name]).value, one.low, one.high,
            )  # fmt: skip
    (expected,) = (
        one for one in compare_folders(drawn, drawn, FEW).comparisons if one.about["metric"] == "csd_self"
    )
    (found,) = (one for one in report.comparisons if one.measure == "CSD self")
    assert (found.difference.value, found.difference.low) == (expected.difference, expected.low)
    assert found.p == {
        "Wilcoxon": expected.p_wilcoxon_corrected, expected.resampled_test: expected.p_bootstrap_corrected
    }  # fmt: skip


def test_shots_when_averaged_are_the_scores_of_their_story(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", missing=frozenset({("alpha", "02", 3)}), refused=0.2)
    part = part_of(images_report(run, wanted=Wanted(FEW)))
    checked = 0
    for grid in part.stories:
        for one in grid.methods:
            for name in ("occm", "csd_cross", "aesthetic", "scene", "shot", "interaction"):
                values = [card.values[name] for card in one.cards if name in card.values]
                assert np.mean(values) == pytest.approx(one.scores[name].value)
                checked += 1
            pairs = [who.similarity for card in one.cards for who in card.cast if who.similarity is not None]
            assert np.mean(pairs) == pytest.approx(one.scores["cids_cross"].value)
            wall = [crop.similarity for row in one.wall for crop in row.crops]
            assert sorted(wall) == sorted(pairs)
            assert one.styles is not None
            table = np.array(one.styles.rows)
            assert (table == table.T).all()
            assert table[np.triu_indices(len(table), 1)].mean() == pytest.approx(one.scores["csd_self"].value)
            assert np.mean(one.styles.cross) == pytest.approx(one.scores["csd_cross"].value)
    assert checked == 3 * 2 * 6


def test_report_when_a_picture_is_missing_and_a_method_excluded_says_so(report, snapshot) -> None:
    assert told(report) == snapshot
    page = render_page(report)
    assert "no picture was generated" in page
    assert "not ranked: excluded from ranking" in page and "copy-paste is shown, but not ranked" in page
    assert "rank,model-a,occm,1,,,,3,ok," in scores_csv(report)


def test_boxes_when_drawn_stand_where_the_figures_do(report: ReportDocument) -> None:
    card = card_of(part_of(report), "model-a", "01", 2)  # two on stage
    assert [who.character for who in card.cast] == ["Mira", "Old Tomas"]
    assert (card.found, card.onstage, card.picture.width) == (2, 2, 240)
    for box, (left, top, _, _) in zip(card.boxes, boxes_in(("Mira", "Old Tomas")), strict=True):
        assert (box.left * WIDTH, box.top * HEIGHT) == pytest.approx((left, top))
        assert (box.width * WIDTH, box.height * HEIGHT) == pytest.approx(FIGURE)
    assert [box.character for box in card.boxes] == ["Mira", "Old Tomas"]
    assert card.texts["Description"] == "Mira stands still, Old Tomas stands still"


def test_figure_when_scores_have_other_ranges_shows_shares_of_the_highest_value(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", methods={"alpha": 0.5})
    document, (scores,) = images_report(run, wanted=Wanted(FEW)), score_folder(run, FEW).methods
    assert part_of(document).leaders is None and part_of(document).polar is None
    (plot,) = document.plots
    assert list(plot.groups)[:2] == ["CIDS self, of 1", "CIDS cross, of 1"]
    for label, name, top in (("Scene, of 4", "scene", 4), ("OCCM, of 100", "occm", 100)):
        (point,) = plot.groups[label]
        assert point.series == "alpha" and point.score.value == pytest.approx(scores.scores[name].value / top)
    page = render_page(document)
    assert "There is only one method" in page and 'class="sortable headline"' in page


def test_worst_shots_when_listed_are_the_lowest_and_never_perfect_ones(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", stories=6, methods={"alpha": 0.5})
    part = part_of(images_report(run, wanted=Wanted(FEW)))
    every = {name: [] for name in ("scene", "cids_cross", "csd_cross")}
    for row in part.every:
        for name, values in every.items():
            if row.values[name] is not None:
                values.append(row.values[name])
    for some in part.worst:
        if some.name in every:
            shown = [card.values[some.name] for card in some.cards]
            assert shown == sorted(shown) == pytest.approx(sorted(every[some.name])[:EACH])
            assert some.total == len(every[some.name])
    assert "occm" not in [some.name for some in part.worst]  # all of them are 100


def test_worst_shots_when_lower_is_better_are_the_highest(tmp_path: Path, monkeypatch) -> None:
    lower = [replace(metric, direction="lower") for metric in metrics() if metric.name == "scene"]
    monkeypatch.setattr("fabula.evaluation.shots.report.cards.metrics", lambda: lower)
    part = part_of(
        images_report(simulated(tmp_path / "run", stories=6, methods={"alpha": 0.5}), wanted=Wanted(FEW))
    )
    (worst,) = part.worst
    shown = [card.values["scene"] for card in worst.cards]
    every = [row.values["scene"] for row in part.every if row.values["scene"] is not None]
    assert shown == sorted(every, reverse=True)[:EACH] != sorted(every)[:EACH]


def test_page_when_pictures_are_gone_says_so_and_draws_no_box(
    tmp_path: Path, drawn: Path, plain: str, difference, snapshot
) -> None:
    export_archive(drawn, tmp_path / "archive")
    document = images_report(tmp_path / "archive", None, (), Wanted(FEW))
    assert difference(plain, told(document)) == snapshot
    page = render_page(document)
    assert GONE in page and "data:image" not in page
    outputs = (drawn.parent / "model-a",)
    assert told(images_report(tmp_path / "archive", drawn.parent / "data", outputs, Wanted(FEW))) == plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a picture changed", "definitions of the code"])
def test_report_when_asked_for_otherwise_differs_by_that(
    name: str, tmp_path: Path, drawn: Path, plain: str, difference, snapshot
) -> None:
    outputs: tuple[Path, ...] = ()
    wanted = Wanted(Definitions(chosen={"occm": "code", "cids": "code"}, resamples=20))
    if name == "a picture changed":
        outputs, wanted = (shutil.copytree(drawn.parent / "model-a", tmp_path / "model-a"),), Wanted(FEW)
        (outputs[0] / "01/shots/shot_02.png").write_bytes(draw_shot(("The Fox",), 7))
    assert difference(plain, told(images_report(drawn, None, outputs, wanted))) == snapshot


def test_report_when_given_what_was_not_evaluated_is_refused(tmp_path: Path, drawn: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="none of the methods that were evaluated: copy-paste, model-a"):
        images_report(drawn, None, (tmp_path / "elsewhere",))
    with pytest.raises(InputError, match="the one that was evaluated has"):
        images_report(drawn, draw_shot_set(tmp_path / "other", 2))
    for wanted in (
        Wanted(FEW, unranked=("nobody",)),
        Wanted(FEW, units=("99",)),
        Wanted(FEW, methods=("nobody",)),
    ):
        with pytest.raises(ConfigError, match="is not in the evaluation"):
            images_report(drawn, wanted=wanted)


@pytest.mark.slow
def test_pictures_when_their_budget_is_spent_are_left_out_and_counted(drawn: Path) -> None:
    whole = part_of(images_report(drawn, wanted=Wanted(FEW)))
    document = images_report(drawn, wanted=Wanted(FEW, megabytes=0.02))
    part = part_of(document)
    page = render_page(document)
    assert sum(len(text) for text in page.split('src="')[1:] if text.startswith("data:image")) < 400_000
    assert SPENT in page and "because of that limit" in part.pictures_note
    assert "left out" not in whole.pictures_note
    none = render_page(images_report(drawn, wanted=Wanted(FEW, megabytes=0)))
    assert "data:image" not in none


@pytest.mark.slow
def test_stories_when_there_are_many_are_the_lowest_typical_and_highest(tmp_path: Path) -> None:
    methods = {f"method-{number:02d}": number / 20 for number in range(20)}
    run = simulated(tmp_path / "run", methods=methods, stories=12, shots=12, rated=False)
    document = images_report(run, wanted=Wanted(Definitions(resamples=20)))
    part = part_of(document)
    assert len(part.stories) * METHODS * 12 <= CARDS
    assert [grid.why for grid in part.stories] == sorted(
        (grid.why for grid in part.stories), key=["lowest", "typical", "highest"].index
    )
    assert {grid.why for grid in part.stories} == {"lowest", "typical", "highest"}
    means = [np.mean([one.scores["cids_cross"].value for one in grid.methods]) for grid in part.stories]
    assert means == sorted(means)
    assert all(len(grid.methods) == METHODS for grid in part.stories)
    assert len(part.every) == 20 * 12 * 12
    shown = [one for one in document.comparisons if one.shown]
    assert len(document.comparisons) == 190 * 7 and len(shown) <= 19 * 7
    page = render_page(document)
    assert len(page) < 2_500_000
    asked = images_report(
        run, wanted=Wanted(Definitions(resamples=20), units=("07",), methods=("method-03",))
    )
    assert [(one.story_id, one.why) for one in part_of(asked).stories] == [("07", "chosen")]
    assert [one.method for one in part_of(asked).stories[0].methods] == ["method-03"]


def test_report_when_there_is_no_story_is_a_page_that_says_so(tmp_path: Path) -> None:
    document = images_report(simulated(tmp_path / "run", methods={}, stories=0))
    assert "The evaluation has no story." in document.warnings
    page = render_page(document)
    assert "Shot images of no method" in page
    written = write_report(document, tmp_path / "page.html")
    assert json.loads(written.files["JSON"].read_bytes())["kind"] == "images"


def test_report_when_no_shot_has_a_picture_ranks_nobody_and_shows_no_zero(tmp_path: Path) -> None:
    gone = frozenset(("alpha", f"{story:02d}", shot) for story in (1, 2, 3) for shot in (1, 2, 3, 4))
    document = images_report(simulated(tmp_path / "run", missing=gone), wanted=Wanted(FEW))
    leaders = part_of(document).leaders
    assert leaders is not None
    (row,) = (row for row in leaders.rows if row.method == "alpha")
    assert row.unranked == "no picture"
    assert all(place.score.value is None for place in row.places.values())
    assert "12 of 12 shots of alpha have no picture." in document.warnings
    drawn = [point for points in document.plots[0].groups.values() for point in points]
    assert all(point.score.value is None for point in drawn if point.series == "alpha")


def test_files_when_written_hold_every_shot_and_no_picture(tmp_path: Path, report: ReportDocument) -> None:
    written = write_report(report, tmp_path / "page.html")
    assert list(written.files) == ["page", "JSON", "scores as CSV", "shots as CSV"]
    assert b"data:image" not in written.files["JSON"].read_bytes()
    rows = list(csv.DictReader(io.StringIO(shots_csv(report))))
    assert len(rows) == 2 * 3 * 5
    gone = next(
        row for row in rows if (row["method"], row["story_id"], row["shot"]) == ("model-a", "02", "3")
    )
    assert (gone["picture"], gone["occm"], gone["found"], gone["expected"]) == ("false", "", "", "3")
    first = (tmp_path / "page.html").read_bytes()
    write_report(report, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == first


def test_archive_when_hostile_names_files_outside_shows_none_of_them(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", methods={"alpha": 0.5})
    (tmp_path / "secret.png").write_bytes(draw_shot(("Mira",)))
    lines = []
    for one in read_found(run):
        line = one.as_json()
        line["views"] = {
            "shots": {"1": {"file": "../secret.png", "width": 320, "height": 180}, "2": "no mapping"},
            "crops": [7, {"file": 8}],
        }
        line["boxes"]["references"] = {"Mira": "no list", "Tomas": [[1]]}
        lines.append(json.dumps(line))
    (run / IMAGES).write_text("\n".join(lines) + "\n")
    assert "data:image" not in render_page(images_report(run, wanted=Wanted(FEW)))


@pytest.mark.slow
def test_report_when_judges_kept_the_pictures_shows_those_where_outputs_are_gone(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", methods={"alpha": 0.5})
    (run / "store").mkdir()
    (run / "store/one.png").write_bytes(draw_shot(("Mira",)))
    lines = []
    for one in read_found(run):
        line = one.as_json()
        line["views"]["shots"]["1"] = {"file": "store/one.png", "width": 320, "height": 180}
        line["views"]["crops"] = [
            {"shot": 2, "character": key, "box": box, "file": "store/one.png"}
            for key in ("Mira", "Tomas")
            for box in line["boxes"]["shots"]["2"]
        ]
        lines.append(json.dumps(line))
    (run / IMAGES).write_text("\n".join(lines) + "\n")
    manifest = json.loads((run / "evaluation.json").read_bytes())
    # At the limit the picture may have been made smaller; without a limit none was.
    for views, boxes in (({"max_side": 768}, 2), ({"max_side": 320}, 0), ({"max_side": None}, 2), (None, 0)):
        manifest["protocol"]["views"] = views
        (run / "evaluation.json").write_text(json.dumps(manifest))
        part = part_of(images_report(run, wanted=Wanted(FEW)))
        card = card_of(part, "alpha", "01", 1)
        assert card.picture.data is not None and len(card.boxes) == boxes
        crops = {crop.shot: crop.picture.data for crop in part.stories[0].methods[0].wall[0].crops}
        assert crops[2] is not None and crops[3] is None  # of shot 2 a judge saw the crop alone


def test_report_when_people_rated_the_pictures_shows_them_beside_the_scores(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", stories=4)
    human = tmp_path / "human.jsonl"
    rows = [
        {"kind": "rating", "rater": f"p{person}", "item": item, "method": method, "criterion": "alignment",
         "value": value}
        for person in (1, 2) for method, value in (("alpha", 1), ("beta", 3))
        for item in ("01", "02", "03", "01/shot_01")
    ]  # fmt: skip
    human.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = calibrate(run, human, settings=StudySettings(resampling=Resampling(20))).as_json()
    write_calibration(run, found)
    document = images_report(run, wanted=Wanted(FEW))
    tables = {table.name: table for table in document.people}
    assert {row.label: row.scores["alignment"].value for row in tables["people"].rows} == {
        "alpha": 1, "beta": 3,
    }  # fmt: skip
    against = {row.label: row.scores for row in tables["scores_people"].rows}
    expected = found["scores"]["alignment"]["stories"]["occm"]["stories"]["spearman"]
    assert against["Alignment · OCCM · over stories"]["spearman"].value == expected["value"]
    assert "What people said" in render_page(document)


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({"stories": 80, "stories_counted": 79, "expected": 9, "matched": 7},
         "79 of 80 stories, 2 of 9 not matched"),
        ({"stories": 2, "stories_counted": 2, "asked": 9, "answered": 8},
         "2 stories, 1 of 9 ratings missing"),
        ({"stories": 2, "stories_counted": 2, "shots": 9, "without_image": 1},
         "2 stories, 1 shot without picture"),
        ({"stories": 1, "stories_counted": 1, "characters": 3, "counted": 1, "one_reference": 2},
         "1 story, 1 of 3 characters"),
        ({"expected": 9, "matched": 7}, "7 of 9 matched"), ({"shots": 9, "without_image": 2}, "7 of 9 shots"),
        ({"pictures": 9, "valued": 8}, "8 of 9 pictures"), ({"pictures": 9}, "9 pictures"), ({}, ""),
        ({"questions": 1, "left_out": 2, "pairs": 3}, "1 question, 2 left out"),
        ({"stories": 1200}, "1,200 stories"),
    ],
)  # fmt: skip
def test_coverage_of_a_score_is_told_in_words(counts: dict[str, int], told: str) -> None:
    assert coverage_text(Score(value=1.0, status="ok", counts=counts)) == told
