"""A metric of a user's own package: found by its entry point, looked for, kept, scored and reported."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.metrics.metric import names, registered
from fabula.evaluation.report.formats import render_page
from fabula.evaluation.report.showing import Wanted
from fabula.evaluation.shots.looking import read_found
from fabula.evaluation.shots.ratings import Definitions, read_definitions
from fabula.evaluation.shots.report.page import images_report
from fabula.evaluation.shots.scores import score_folder
from fabula.evaluation.shots.scoring import scored_shots, shot_rows

Evaluate = Callable[..., Any]
PACKAGE = '''
"""How bright pictures are."""
from fabula.evaluation.metrics.metric import Choice, Metric, Term, Terms, of_pictures

SCALE = Choice("house-scale", ("ten", "one"))


def terms(story, chosen):
    rows = story.rows("house")
    if rows is None:
        return None
    scale = 10.0 if chosen.of(SCALE) == "one" else 1.0
    made = [
        Term("no picture" if row is None else float(row[0]) / scale, place) for place, row in enumerate(rows)
    ]
    return Terms(made, {"shots": len(rows)}, "no picture")


METRIC = Metric(
    name="house_light", version=2, label="House light", group="House", direction="higher", range=(0.0, 10.0),
    needs=(of_pictures("house", "fabula.testing.table_detector:load_brightness"),), terms=terms,
    per_shot=True, choices=(SCALE,), meaning="Mean brightness.",
)
'''


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "site"
    info = folder / "house_metrics-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-metrics\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fabula.metrics]\nhouse-light = house_metrics:METRIC\n")
    (folder / "house_metrics.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))
    registered.cache_clear()
    yield
    monkeypatch.undo()
    registered.cache_clear()


@pytest.mark.slow
def test_metric_of_a_plug_in_goes_through_evaluation_scores_and_report(
    house: None, evaluate: Evaluate, model_x: Path, copies: Path, tmp_path: Path
) -> None:
    assert names()[-1] == "house-light"
    evaluate(model_x, copies, metrics="house-light")
    run = tmp_path / "run"
    protocol = json.loads((run / "evaluation.json").read_text())["protocol"]
    assert protocol["metrics"] == {"house_light": 2}
    assert list(protocol["models"]) == ["house"]
    scores = score_folder(run, Definitions(resamples=0))
    assert list(scores.methods[0].scores) == ["house_light"]
    value = scores.methods[0].scores["house_light"].value
    tenth = score_folder(run, read_definitions(["house-scale=one"], resamples=0)).methods[0]
    assert value and tenth.scores["house_light"].value == pytest.approx(value / 10)
    shots = scored_shots(read_archive(run), read_found(run), scores)
    assert all("house_light" in row for row in shot_rows(shots))
    gone = next(one for one in shots if one.sha256 is None)
    assert gone.missing == {"house_light": "no picture"}
    document = images_report(run, wanted=Wanted(Definitions(resamples=20)))
    assert [one.label for one in document.headline.measures] == ["House light"]
    assert "House light" in render_page(document)


def test_further_model_when_it_looks_beside_others_is_added_to_what_they_found(
    house: None, evaluate: Evaluate, model_x: Path, tmp_path: Path
) -> None:
    evaluate(model_x, metrics="csd")
    before = read_found(tmp_path / "run")
    evaluate(model_x, metrics="csd,house-light", out="more")
    for old, new in zip(before, read_found(tmp_path / "more"), strict=True):
        assert old.pictures is not None and new.pictures is not None
        added = {"house", "scenes"}
        assert {name: value for name, value in new.pictures.items() if name not in added} == {
            **old.pictures, "models": {**old.pictures["models"], "house": new.pictures["models"]["house"]}
        }  # fmt: skip
        assert new.pictures.keys() - old.pictures.keys() == added


def test_plug_in_when_it_is_no_metric_is_refused(house: None, tmp_path: Path) -> None:
    (tmp_path / "site/house_metrics-1.0.dist-info/entry_points.txt").write_text(
        "[fabula.metrics]\nocccm = house_metrics:terms\n"
    )
    with pytest.raises(ConfigError, match="it is no Metric"):
        registered()


def test_metric_of_pictures_when_a_file_is_not_there_names_it() -> None:
    with pytest.raises(InputError, match=r"nowhere\.png: there is no such file"):
        fabula.metric("occm", device="cpu")(["nowhere.png"])
