"""Evaluating drawn shots with models that know the drawings: what is found, stored, asked and scored."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import read_archive, read_manifest
from fabula.evaluation.shots.looking import read_found
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.evaluation.shots.scores import score_folder
from fabula.kinds.evaluations import export_archive
from fabula.models.vision.store import VectorStore
from fabula.releases.shots.tree import read_shot_set
from fabula.studies.copy_paste import write_copy_paste
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.drawn_shots import CAST, draw_reference, draw_shot_outputs
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import AlignmentModel
from fabula.testing.table_detector import SETTINGS

Evaluate = Callable[..., Any]
FEW = Definitions(resamples=200)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")


def judged(server: ModelServer, **more: Any) -> dict[str, Any]:
    models = {"openai:tested": {"base_url": server.openai_url, "attempts": 2}}
    return {"judges": ("openai:tested",), "models": models, "metrics": "alignment", **more}


@pytest.mark.slow
def test_images_when_evaluated_find_everybody_and_count_what_is_missing(evaluate, model_x, tmp_path):
    evaluate(model_x)
    (method,) = score_folder(tmp_path / "run", FEW).methods
    assert method.accounting["shots_valid"] == 14
    counts = method.scores["cids_cross"].counts
    # on stage in 1, 2, 3, 0 and 1 shots' order: 7 expected in a story, three of them in the missing shot
    assert (counts["expected"], counts["matched"], counts["no_image"]) == (21, 18, 3)
    assert method.scores["occm"].value == 100
    assert method.scores["occm"].counts["without_image"] == 1
    assert method.scores["cids_cross"].value == pytest.approx(1.0, abs=0.02)
    assert method.scores["aesthetic"].counts == {
        "pictures": 15, "valued": 14, "stories": 3, "stories_counted": 3,
    }  # fmt: skip
    assert method.scores["inception"].counts == {"pictures": 14, "shots": 15, "without_image": 1}
    assert method.scores["csd_self"].counts["without_image"] == 1
    assert method.scores["cids_cross"].low is None  # of three stories


@pytest.mark.slow
def test_copies_when_references_differ_have_a_rate_near_1_and_the_highest_similarity(
    evaluate: Evaluate, shot_set: Path, tmp_path: Path
) -> None:
    colours = {key: colour for key, _, _, colour in CAST}
    for second in shot_set.rglob("01.png"):  # the same figure, its colours the other way round; Mira headless
        image = Image.new("RGB", (160, 160), (235, 235, 235))
        colour = colours[second.parent.name]
        image.paste(colour, (50, 40, 98, 60))
        if second.parent.name != "Mira":
            image.paste(tuple(255 - part for part in colour), (50, 60, 98, 160))
        second.write_bytes(picture_bytes(image))
    write_copy_paste(read_shot_set(shot_set)[0], tmp_path / "copy-paste")
    evaluate(draw_shot_outputs(tmp_path / "model-y", 3), tmp_path / "copy-paste")
    copies, other = score_folder(tmp_path / "run", FEW).methods
    rate = copies.scores["copy_paste_rate"]
    assert rate.value is not None and rate.value > 0.99
    assert rate.counts["one_reference"] == 3  # Mira, whose face is in one reference only
    cross = [one.scores["cids_cross"].value for one in (copies, other)]
    assert None not in cross and cross[0] > cross[1]  # type: ignore[operator]
    mirrored = score_folder(
        tmp_path / "run", Definitions(chosen={"copy-paste": "code"}, resamples=0)
    ).methods[0]
    assert mirrored.scores["copy_paste_rate"].value == pytest.approx(0.5)  # colours are the same in a mirror


@pytest.mark.slow
def test_pictures_when_a_method_is_added_are_not_encoded_again(evaluate, model_x, copies, tmp_path):
    evaluate(model_x, out="one")
    with VectorStore.of_user() as store:
        before = store.size()
    evaluate(model_x, out="again")
    with VectorStore.of_user() as store:
        assert store.size() == before
    evaluate(model_x, copies, out="two")
    with VectorStore.of_user() as store:
        assert store.size() > before


@pytest.mark.slow
def test_metrics_when_some_are_chosen_leave_the_others_out(evaluate, model_x, tmp_path):
    evaluate(model_x, metrics="occm")
    (method,) = score_folder(tmp_path / "run", FEW).methods
    assert list(method.scores) == ["occm"]
    evaluate(model_x, metrics="csd,aesthetic", out="other")
    (method,) = score_folder(tmp_path / "other", FEW).methods
    assert list(method.scores) == ["csd_cross", "csd_self", "aesthetic"]


@pytest.mark.slow
def test_alignment_when_judged_asks_each_dimension_of_the_right_shots(evaluate, model_x, tmp_path):
    model = AlignmentModel({"scene": 4, "shot": 3, "interaction": 2, "action": 1})
    with ModelServer(model) as server:
        evaluate(model_x, **judged(server))
        texts = [one.asked.text for one in server.log]
        assert {len(one.asked.images) for one in server.log} == {1}
    # 14 shots; two characters or more in 2 of 5, one of them missing; 18 crops
    kinds = Counter(one.item.split("/")[1] for one in read_archive(tmp_path / "run").judgements)
    assert kinds == {"scene": 14, "shot": 14, "interaction": 5, "action": 18}
    assert model.asked == kinds - Counter(action=3)  # what is the same in two stories is asked once
    assert not any("model-x" in text or ".png" in text for text in texts)
    assert any("medium shot: A person from the waist up." in text for text in texts)
    (method,) = score_folder(tmp_path / "run", FEW).methods
    values = {name: score.value for name, score in method.scores.items()}
    assert [values[name] for name in ("scene", "shot", "interaction", "action", "alignment")] == [
        4, 3, 2, 1, 2.5,
    ]  # fmt: skip
    lines = list(score_folder(tmp_path / "run", FEW).lines())
    assert any(line.startswith("  shot ") and "75.0 of 100" in line for line in lines)
    assert score_folder(tmp_path / "run", FEW).as_json()["methods"][0]["of_100"]["alignment"] == 62.5
    assert method.scores["action"].counts["matched"] == 18
    assert method.scores["scene"].counts["without_image"] == 1
    first = read_archive(tmp_path / "run").judgements[0]
    assert (first.kind, first.item, first.condition) == ("alignment", "shot_01/action/Mira", "image")
    assert first.parsed == {"rating": 1, "reason": "as the table says"}
    export_archive(tmp_path / "run", tmp_path / "copy")
    assert "path" not in json.dumps(read_archive(tmp_path / "copy").manifest.environment["sources"])


def test_alignment_when_a_reply_is_no_rating_is_left_out_and_counted(evaluate, model_x, tmp_path):
    def handler(asked: Any) -> Any:
        return (
            {"reason": "far off", "rating": 9}
            if "Daytime, a dry well" in asked.text
            else AlignmentModel()(asked)
        )

    with ModelServer(handler) as server:
        evaluate(model_x, **judged(server, settings=('judge_alignment.dimensions=["scene"]',)))
    (method,) = score_folder(tmp_path / "run", FEW).methods
    assert method.scores["scene"].value == 2
    assert method.scores["scene"].counts["asked"] - method.scores["scene"].counts["answered"] == 3
    assert method.outcomes["openai:tested"] == {"answered": 11, "malformed": 3}


@pytest.mark.slow
def test_definitions_when_code_is_chosen_count_what_it_counts(evaluate, model_x, tmp_path):
    with ModelServer(AlignmentModel()) as server:
        evaluate(model_x, **judged(server, metrics="alignment,occm,cids"))
    named = Definitions(chosen=dict.fromkeys(("cids", "occm", "alignment"), "code"), resamples=0)
    (method,) = score_folder(tmp_path / "run", named).methods
    assert method.scores["occm"].counts["left_out"] == 3  # the shot without anybody, in each story
    assert "asked only of shots with 2" in str(method.scores["interaction"].reason)
    assert method.scores["scene"].low is None


def test_needs_when_something_is_missing_are_listed_at_once(shot_set, model_x, tmp_path):
    with pytest.raises(ConfigError, match=r"(?s)--metrics: there is no metric fid.*all, or some of cids"):
        EVALUATING.evaluate(shot_set, [model_x], tmp_path / "run", ImageOptions(metrics=("cids,fid",)))
    with pytest.raises(ConfigError, match="judged by a model, and none is named"):
        EVALUATING.evaluate(
            shot_set, [model_x], tmp_path / "run", ImageOptions(metrics=("alignment",), settings=SETTINGS)
        )
    with pytest.raises(ConfigError, match="there is no such model"):
        given = ImageOptions(metrics=("occm",), settings=("detect_characters.model=nobody",))
        EVALUATING.evaluate(shot_set, [model_x], tmp_path / "run", given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda place: (place / "shot_01.png").rename(place / "shot_x1_1.png"), "unnumbered"),
        (lambda place: (place / "img_01.png").write_bytes(picture_bytes(draw_panel(1))), "repeated"),
    ],
)
def test_outputs_when_a_picture_could_be_of_another_shot_stop_the_evaluation(
    evaluate: Evaluate, model_x: Path, spoil: Callable[[Path], Any], expected: str
) -> None:
    spoil(model_x / "01/shots")
    with pytest.raises(InputError, match=expected):
        evaluate(model_x)


def test_script_when_shots_are_misnumbered_stops_the_evaluation(evaluate, shot_set, model_x):
    script = shot_set / "ViStory/02/story.json"
    document = json.loads(script.read_text("utf-8"))
    document["Shots"][2]["index"] = 2
    script.write_text(json.dumps(document), "utf-8")
    with pytest.raises(InputError, match="shot-order"):
        evaluate(model_x)
    evaluate(model_x, stories=("01", "03"))


@pytest.mark.slow
def test_evaluation_when_the_folder_holds_more_keeps_it_unless_replaced(evaluate, model_x, copies, tmp_path):
    evaluate(model_x, copies, metrics="occm,csd")
    first = read_found(tmp_path / "run")
    evaluate(model_x, metrics="occm,csd", limit=2)
    assert read_found(tmp_path / "run") == first
    evaluate(model_x, metrics="aesthetic")
    (united, *_), (known, *_) = (
        [one for one in found if one.method == "model-x"] for found in (read_found(tmp_path / "run"), first)
    )
    assert united.boxes == known.boxes and united.pictures["style"] == known.pictures["style"]
    assert united.pictures["aesthetic"] is not None
    assert not [*(tmp_path / "run").glob("earlier*")]
    evaluate(model_x, metrics="occm", replace=True)
    assert [one.method for one in score_folder(tmp_path / "run", FEW).methods] == ["model-x"]


def test_references_when_generated_ones_are_chosen_are_those_of_the_method(evaluate, model_x, tmp_path):
    for story in ("01", "02", "03"):
        folder = model_x / story / "characters"
        (folder / "the fox").mkdir(parents=True)
        (folder / "Old_Tomas_1.png").write_bytes(draw_reference("Old Tomas"))
        (folder / "Old_Tomas_2.png").write_bytes(b"no picture")
        (folder / "the fox" / "a.png").write_bytes(draw_reference("The Fox"))
    evaluate(model_x, metrics="cids", outputs={"references": "generated"})
    (method,) = score_folder(tmp_path / "run", FEW).methods
    counts = method.scores["cids_cross"].counts
    assert (counts["no_reference"], counts["no_image"]) == (11, 3)  # Mira has none
    assert method.scores["cids_cross"].value == pytest.approx(1.0, abs=0.02)
    assert read_manifest(tmp_path / "run").protocol["references"] == "generated"
    found = read_found(tmp_path / "run")[0].references
    assert {key: len(images) for key, images in found.items()} == {"Mira": 0, "Old Tomas": 1, "The Fox": 1}
