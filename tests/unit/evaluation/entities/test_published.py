"""Results of the public evaluator as an evaluation of ours."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.published import import_results
from fabula.evaluation.entities.scores.scores import compare_folders, score_folder

SCRIPT = {
    "story_name": "film__run1",
    "scenes": [
        {"scene_num": 1, "video_prompts": ["a", "b", "c"], "cut": [True, False, False],
         "action_descriptions": ["Ana waits.", "Ana lifts the cup.", "Ana leaves."]}
    ],
    "entity_schedule": {
        "1:1": {"characters": ["Ana"], "places": ["Hall"], "objects": []},
        "1:2": {"characters": ["Ana"], "places": ["Hall"], "objects": ["the cup"]},
        "1:3": {"characters": ["Ana", "Ben"], "places": [], "objects": []},
    },
    "entity_descriptions": {},
}  # fmt: skip
"""Three shots; Ana in all of them, the hall in two."""


def counted(value: float | None, evaluated: int, failed: int = 0, skipped: int = 0) -> dict[str, Any]:
    return {"value": value, "n_evaluated": evaluated, "n_failed": failed, "n_skipped": skipped}


def result(**changed: Any) -> dict[str, Any]:
    """What the public evaluator writes of that episode."""
    return {
        "episode_id": "film__run1", "tier": "easy", "num_shots": 3,
        "vbench_means": {"aesthetic_quality": counted(0.5, 2, skipped=1)},
        "metrics": {
            "intra_character_presence": counted(0.8, 3), "intra_face_fidelity": counted(0.6, 2),
            "intra_action_overall": counted(0.4, 2, failed=1),
            "cs_face": counted(0.9, 3), "cs_object": counted(None, 0),
            "cs_transition_boundary": counted(0.7, 1, failed=1),
            "vlm_face_accuracy": counted(0.5, 1, failed=1, skipped=2), "llm_scene_accuracy": counted(1.0, 1),
            "_meta_cross_shot_gate": counted(5.0, 6, failed=1, skipped=1),
        },
        "per_entity_scores": {
            "face_Ana": {
                "mean_sim_to_centroid": 0.9, "representative_crop_path": "/home/somebody/crop.png",
                "per_shot_sim_to_centroid": [
                    {"shot": key, "sim_to_centroid": near, "clip_text_sim": 0.3}
                    for key, near in (("1:1", 0.8), ("1:2", 1.0), ("1:3", 0.9))
                ],
                "vlm_anchor_shot": "1:2", "vlm_pair_count": 1, "vlm_pair_accuracy": 0.0,
                "vlm_per_pair_sims": [{"later_shot": "1:1", "similarity": 0.3, "is_same": False}],
            }
        },
        "gap_decay_data": [
            {"entity_name": "Ana", "entity_type": "character", "gap": 2, "similarity": 0.25},
        ],
        **changed,
    }  # fmt: skip


@pytest.fixture
def public(tmp_path: Path) -> Path:
    folder = tmp_path / "storymem"
    folder.mkdir()
    (folder / "film__run1.json").write_text(json.dumps(result()))
    (folder / "report_storymem.json").write_text("{}")
    told = {
        "method_name": "StoryMem",
        "platform": "Linux",
        "n_vlm_keys": 8,
        "config": {"box": 0.25},
        "libraries": {},
    }
    (folder / "run_manifest.json").write_text(json.dumps(told))
    return folder


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "film__run1.json").write_text(json.dumps(SCRIPT))
    return folder


def test_results_when_imported_without_schedule_give_plain_means_and_say_what_is_missing(public, tmp_path):
    made = import_results([public], tmp_path / "run")
    assert (made.method, made.episodes, made.scheduled) == ("StoryMem", 1, False)
    assert "intra_face_hair" in made.without and "cs_face" not in made.without
    (code,) = score_folder(tmp_path / "run", Definitions(coverage="code", resamples=0)).methods
    assert code.numbers["llm_face_accuracy"].value == 0.5  # by its earlier name
    assert code.numbers["llm_face_accuracy"].coverage == 0.25  # 1 of 1 + 1 + 2
    assert "_meta_cross_shot_gate" not in code.numbers
    assert code.episodes[0].gate is not None and code.episodes[0].gate.gated == 1
    scores = score_folder(tmp_path / "run", Definitions(resamples=0))
    number = scores.methods[0].numbers["cs_face"]
    assert number.value is None and "--release" in str(number.score.reason)
    assert any("need the schedule" in note for note in scores.notes)


def test_results_when_something_was_evaluated_without_a_value_have_none_and_no_zero(
    public: Path, scripts: Path, tmp_path: Path
) -> None:
    given = result()
    given["metrics"]["cs_face"] = {"value": None, "n_evaluated": 2, "n_failed": 0, "n_skipped": 0}
    (public / "film__run1.json").write_text(json.dumps(given))
    import_results([public], tmp_path / "run", "mine", scripts)
    for coverage in ("eq23", "code"):
        (method,) = score_folder(tmp_path / "run", Definitions(coverage=coverage, resamples=0)).methods
        assert (method.numbers["cs_face"].value, method.numbers["cs_face"].raw) == (None, None)


def test_results_when_imported_with_schedule_give_corrected_means_but_for_fidelity(public, scripts, tmp_path):
    import_results([public], tmp_path / "run", "mine", scripts)
    (method,) = score_folder(tmp_path / "run", Definitions(resamples=0)).methods
    numbers = {name: (each.value, each.coverage) for name, each in method.numbers.items()}
    assert numbers["cs_face"] == pytest.approx((0.9, 1.0))
    assert numbers["llm_face_accuracy"] == pytest.approx((0.25, 0.5))  # one of two re-appearances
    assert numbers["cs_transition_boundary"] == pytest.approx((0.35, 0.5))
    assert numbers["intra_action_overall"] == pytest.approx((0.4 * 2 / 3, 2 / 3))
    assert numbers["aesthetic_quality"] == pytest.approx((0.5 * 2 / 3, 2 / 3))
    assert numbers["intra_action_object_interaction"] == (None, 0.0)  # one is eligible, and not in the file
    assert numbers["intra_face_fidelity"] == (None, None)
    assert "appearances" in str(method.numbers["intra_face_fidelity"].score.reason)
    assert method.numbers["llm_face_accuracy"].score.counts["failed"] == 1
    curves = {
        curve.signal: {label: score.value for label, score in curve.bins.items()} for curve in method.curves
    }
    assert curves["crops"]["1-2"] == 0.25
    assert curves["judged"]["1-2"] == 0.3
    assert curves["centroid"]["1-2"] == pytest.approx((0.9 + 0.95) / 2)


def test_results_when_two_imports_are_compared_are_paired_by_episode(public: Path, tmp_path: Path) -> None:
    import_results([public], tmp_path / "a", "one")
    (public / "film__run1.json").write_text(
        json.dumps(result(vbench_means={"aesthetic_quality": counted(0.3, 3)}))
    )
    import_results([public], tmp_path / "b", "two")
    made = compare_folders(
        tmp_path / "a", tmp_path / "b", Definitions(coverage="code", resamples=10), (), "b5"
    )
    effects = {each.metric: each for each in made.effects if each.tier == "all"}
    assert effects["aesthetic_quality"].difference == pytest.approx(0.2)
    assert effects["aesthetic_quality"].n == 1
    assert "_meta_cross_shot_gate" not in effects


def test_results_when_several_methods_are_imported_have_a_row_each_and_one_judge(public, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(public, other)
    manifest = json.loads((other / "run_manifest.json").read_text())
    (other / "run_manifest.json").write_text(json.dumps({**manifest, "method_name": "Other"}))
    made = import_results([public, other], tmp_path / "run")
    assert (made.method, made.episodes) == ("StoryMem, Other", 2)
    scores = score_folder(tmp_path / "run", Definitions(coverage="code", resamples=0))
    assert [each.method for each in scores.methods] == ["Other", "StoryMem"]
    assert len({each.numbers["cs_face"].value for each in scores.methods}) == 1
    (other / "run_manifest.json").write_text(json.dumps({"method_name": "Other", "config": {"box": 0.3}}))
    with pytest.raises(InputError, match=r"not judged alike: config\.box"):
        import_results([public, other], tmp_path / "again")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [("{", "the result of an episode"), ("[]", r"run2\.json \$: an object is wanted"),
     ({"metrics": 3}, "metrics"), ({"metrics": {"cs_face": {"value": "good"}}}, "cs_face"),
     ({"metrics": {"cs_face": 0.5}}, "cs_face"),
     ({"metrics": {"cs_face": {"value": 0.5, "n_evaluated": "3"}}}, "n_evaluated"), ({}, "film__run1 again"),
     ({"per_entity_scores": {"face_Ana": 3}}, "face_Ana"),
     ({"gap_decay_data": [{"gap": 1}]}, "gap_decay_data"),
     ({"vbench_means": {"dynamic_degree": {"value": float("nan")}}}, "dynamic_degree")],
)  # fmt: skip
def test_results_when_a_file_is_something_else_are_refused(public, tmp_path, entry, problem):
    text = entry if isinstance(entry, str) else json.dumps(result(**entry))  # type: ignore[arg-type]
    (public / "film__run2.json").write_text(text)
    with pytest.raises(InputError, match=problem):
        import_results([public], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_results_when_an_episode_is_not_of_the_release_are_refused(public, scripts, tmp_path):
    (public / "other.json").write_text(json.dumps(result(episode_id="other__run")))
    with pytest.raises(InputError, match="other__run"):
        import_results([public], tmp_path / "run", None, scripts)
