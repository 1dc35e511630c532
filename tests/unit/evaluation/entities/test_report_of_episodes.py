"""The report on an evaluation of episodes, as data."""

from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.report.page import episodes_report
from fabula.evaluation.entities.scores.scores import score_folder
from fabula.evaluation.report.formats import verdicts_csv
from fabula.evaluation.report.showing import Wanted, kept_picture
from fabula.kinds.evaluations import make_report, score
from fabula.testing.simulated_episodes import write_run

FEW = Wanted(Definitions(resamples=0))


def test_cells_when_a_value_is_missing_say_why(tmp_path: Path) -> None:
    document = episodes_report(write_run(tmp_path / "run"), FEW)
    assert document.episodes is not None
    shown = document.episodes.episodes[0]
    cup = next(entity for entity in shown.entities if entity.name == "the cup")
    first, second, third = (cell for cell in cup.cells if cell is not None)
    assert (first.status, first.fidelity, first.gate[:10]) == ("present", 0.9, "the anchor")
    assert second.missing["fidelity: overall"] == "the reply is refused"
    assert second.values["beside the anchor"] == 0.8
    assert next(reply.answer for reply in second.replies) == "it would not judge this"
    assert (third.status, third.missing["fidelity: overall"]) == ("missing", "no readable video")
    assert third.picture.lost == "no crop" and first.picture.data is not None
    assert shown.shots[0].missing["dynamic degree"] == "fewer than two frames"
    assert "it would not judge this" in verdicts_csv(document)


def test_page_when_scored_shows_the_numbers_of_score(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    document, scores = episodes_report(folder, FEW), score_folder(folder, FEW.definitions)
    every = next(table for table in document.details if table.name == "metrics_1")
    shown = {row.note.split(":")[0]: row.scores for row in every.rows if row.note}
    numbers = scores.methods[0].numbers
    assert shown.keys() == numbers.keys()
    for name, number in numbers.items():
        values = tuple(shown[name][part].value for part in ("value", "raw", "coverage"))
        assert values == (number.value, number.raw, number.coverage)
    fidelity = next(row for row in every.rows if (row.note or "").startswith("intra_face_fidelity"))
    # Three shots: 0.6, 0.9, and one without a video.
    assert fidelity.scores["raw"].value == pytest.approx(0.75)
    assert fidelity.note == "intra_face_fidelity: passed 2, skipped 0, failed 0, missing 1"
    (plot,) = document.plots
    assert plot.title == "Similarity of characters by gap, as judged"
    assert document.episodes is not None
    assert next(worst.title for worst in document.episodes.worst) == "Least like their description"


def test_page_when_definitions_are_chosen_has_the_numbers_that_score_gives_with_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    chosen = {"coverage": "table15", "gap": "intervening", "actions": "outside"}
    document = make_report(folder, options=chosen)
    numbers = score(folder, chosen).methods[0].numbers  # type: ignore[attr-defined]
    main = {row.note: row for row in document.headline.rows if not row.heading}
    assert main["intra_face_fidelity"].scores["model-a"].value == numbers["intra_face_fidelity"].value
    assert {one.name: one.value for one in document.definitions}.items() >= chosen.items()
    assert "Gap 0" in document.plots[0].groups


def test_page_when_asked_for_unknown_episodes_or_methods_refuses(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="--story"):
        episodes_report(folder, Wanted(FEW.definitions, units=("other",)))
    with pytest.raises(ConfigError, match="--method"):
        episodes_report(folder, Wanted(FEW.definitions, methods=("other",)))


def test_pictures_when_the_budget_is_spent_or_they_lie_elsewhere_are_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (tmp_path / "secret.png").write_bytes((folder / "store/crop.png").read_bytes())
    assert kept_picture(folder, "../secret.png") is None
    assert kept_picture(folder, "store/crop.png") is not None
    document = episodes_report(folder, Wanted(FEW.definitions, megabytes=0))
    assert document.episodes is not None and "left out because of the limit" in document.episodes.note
