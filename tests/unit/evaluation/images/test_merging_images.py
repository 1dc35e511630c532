"""Evaluations of drawn shots become one that is scored like a single run's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import read_manifest
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.scores import score_folder
from fabula.kinds.evaluations import merge_archives

pytestmark = pytest.mark.slow

Evaluate = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")


def scores(folder: Path) -> Any:
    return score_folder(folder, Definitions(resamples=50)).as_json()


@pytest.mark.parametrize("split", ["methods", "stories", "metrics"])
def test_merge_when_parts_are_those_of_one_evaluation_scores_as_the_whole(
    evaluate: Evaluate, model_x: Path, copies: Path, tmp_path: Path, split: str
) -> None:
    metrics = "cids,occm,csd,aesthetic,clip-score"
    given: list[tuple[tuple[Path, ...], dict[str, Any]]] = {
        "methods": [((model_x,), {}), ((copies,), {})],
        "stories": [
            ((model_x, copies), {"stories": ("01", "02")}), ((model_x, copies), {"stories": ("03",)}),
        ],
        "metrics": [
            ((model_x, copies), {"metrics": "occm,csd,clip-score"}),
            ((model_x, copies), {"metrics": "cids,aesthetic"}),
        ],
    }[split]  # fmt: skip
    for name, (outputs, more) in zip("ab", given, strict=True):
        evaluate(*outputs, out=name, **{"metrics": metrics, **more})
    evaluate(model_x, copies, out="whole", metrics=metrics)
    told = merge_archives([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert told.stories == 6
    assert scores(tmp_path / "merged") == scores(tmp_path / "whole")
    one, other = (read_manifest(tmp_path / name) for name in ("merged", "whole"))
    assert one.protocol == other.protocol
    assert one.subject == other.subject
    turned = merge_archives([tmp_path / "b", tmp_path / "a"], tmp_path / "turned")
    assert turned.manifest.subject == one.subject
    names = ("images.jsonl", "judgements.jsonl")
    assert [(tmp_path / "turned" / name).read_bytes() for name in names] == [
        (tmp_path / "merged" / name).read_bytes() for name in names
    ]


def test_merge_when_pictures_or_models_differ_is_refused(
    evaluate: Evaluate, model_x: Path, tmp_path: Path
) -> None:
    evaluate(model_x, out="a", metrics="occm,aesthetic")
    other = "encode_pictures.aesthetic=fabula.testing.table_detector:load_colour_classes"
    evaluate(model_x, out="c", metrics="aesthetic", settings=(other,))
    with pytest.raises(
        InputError, match=r"protocol models\.aesthetic: the evaluations differ: colour-brightness"
    ):
        merge_archives([tmp_path / "a", tmp_path / "c"], tmp_path / "merged")
    first, second = sorted((model_x / "01/shots").iterdir())[:2]
    second.write_bytes(first.read_bytes())
    evaluate(model_x, out="b", metrics="csd")
    with pytest.raises(InputError, match=r"model-x/01: .*/a and .* differ in shots"):
        merge_archives([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert not list((tmp_path / "merged").iterdir() if (tmp_path / "merged").exists() else ())


def test_merge_when_boxes_of_one_model_differ_is_refused_unless_the_first_wins(
    evaluate: Evaluate, model_x: Path, tmp_path: Path
) -> None:
    evaluate(model_x, out="a", metrics="occm")
    evaluate(model_x, out="b", metrics="cids")
    path = tmp_path / "a/images.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0]["boxes"]["shots"]["1"] = [[1.0, 2.0, 30.0, 40.0, 0.5]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(InputError, match=r"model-x/01: .* have other boxes"):
        merge_archives([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    merge_archives([tmp_path / "a", tmp_path / "b"], tmp_path / "kept", first_wins=True)
    merged = [json.loads(line) for line in (tmp_path / "kept/images.jsonl").read_text("utf-8").splitlines()]
    assert merged[0]["boxes"] == lines[0]["boxes"] and merged[0]["crops"] is None
    assert merged[1]["crops"] is not None
