"""An evaluation of pictures in shards, merged: the files of one run, and nothing is looked at again."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.machines.merging import Merge
from fabula.engine.status import RunReport
from fabula.errors import InputError
from fabula.evaluation.archive.archive import read_archive, read_manifest
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.shots.judging import PUBLISHED
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.scores import score_folder
from fabula.kinds.evaluations import merge_archives
from fabula.kinds.verbs import merge_runs
from fabula.models.vision import store
from fabula.prompts.loader import SetManifest, SetText, write_set
from fabula.schemas.canonical import sha256_bytes
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.stand_in_models import AlignmentModel

PRICES = {"input": 1.0, "output": 10.0}


def files_of(run: Path) -> dict[str, bytes]:
    """Every file of a run but its journal and its lock."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(("journal.sqlite", ".lock"))
    }


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModelServer, dict[str, Any]]]:
    """A server, and options with it as the judge."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    with ModelServer(AlignmentModel()) as server:
        models = {"openai:tested": {"base_url": server.openai_url, "attempts": 2, "prices": PRICES}}
        yield server, {"judges": ("openai:tested",), "models": models, "metrics": "cids,csd,alignment"}


def evaluate_shards(evaluate: Callable[..., Any], of: int, *outputs: Path, **options: Any) -> list[str]:
    """Evaluate in so many shards; return their folders' names."""
    parts = [f"part{number}" for number in range(1, of + 1)]
    for number, part in enumerate(parts, 1):
        evaluate(*outputs, out=part, shard=f"{number}/{of}", **options)
    return parts


@pytest.mark.slow
def test_images_when_evaluated_in_shards_merge_into_the_bytes_of_one_run(
    evaluate: Callable[..., Any], model_x: Path, tmp_path: Path, judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = judged
    evaluate(model_x, out="whole", **options)
    asked = server.count
    parts = evaluate_shards(evaluate, 3, model_x, **options)
    assert server.count == 2 * asked, "each question once by all shards together"

    def look(*_: Any, **__: Any) -> Any:
        raise AssertionError("a picture was looked at again")

    monkeypatch.setattr(store.VectorStore, "_rows", look)
    merged = merge_runs([tmp_path / part for part in parts], tmp_path / "merged", Merge(workers=0))
    assert server.count == 2 * asked
    assert files_of(tmp_path / "merged") == files_of(tmp_path / "whole")
    assert merged.spent == pytest.approx(sum(use.cost for use in merged.report.models)) and merged.spent > 0


@pytest.mark.slow
def test_shards_when_they_ask_alike_keep_one_reply_and_book_both(evaluate, model_x, copies, tmp_path, judged):
    server, options = judged
    parts = evaluate_shards(evaluate, 2, model_x, copies, **options)
    merged = merge_runs([tmp_path / part for part in parts], tmp_path / "merged", Merge(workers=0))
    (use,) = merged.report.models
    assert use.attempts == server.count > use.calls, "some pictures are in both shards"
    assert use.cost == pytest.approx(merged.spent)


# Shots rated with a set of texts in the form of the public code's: what is sent, read and asked again.

TEXTS = {name: f"Rate the {name}." for name in PUBLISHED.needed} | {"character": "Who: {name}"}


def test_shots_when_asked_in_other_words_are_rated_again_and_warmer_without_a_score(
    evaluate: Callable[..., RunReport], model_x: Path, tmp_path: Path
) -> None:
    about = {
        name: SetText(
            file=f"texts/{name}.txt", sha256=sha256_bytes(text.encode()), template=name == "character"
        )
        for name, text in TEXTS.items()
    }
    write_set(tmp_path / "mine", SetManifest(name="mine", commit="1", texts=about), TEXTS, None)
    times: Counter[str] = Counter()

    def answer(asked: Asked) -> str:
        times[asked.text] += 1
        return "No number." if "Rate the scene." in asked.text and times[asked.text] == 1 else "Score: 3"

    with ModelServer(answer) as server:
        evaluate(
            model_x, metrics="alignment", judges=[f"{server.openai_url}#judge"], limit=1,
            prompts=str(tmp_path / "mine"), settings=("run.attempts=2",),
        )  # fmt: skip
        log = server.log
    archive = read_archive(tmp_path / "run")
    assert {(one.parsed or {}).get("rating") for one in last_attempts(archive.judgements)} == {3}
    scenes = [one.asked for one in log if "Rate the scene." in one.asked.text]
    assert {(asked.attempt, asked.params["temperature"]) for asked in scenes} == {(1, 0.0), (1, 0.1)}
    details = {
        part["image_url"].get("detail")
        for one in log for part in one.asked.body["messages"][-1]["content"] if part["type"] == "image_url"
    }  # fmt: skip
    assert details == {None, "low"}
    assert {bool(one.asked.system) for one in log if "Who: " in one.asked.text} == {True}


# -- Evaluations of drawn shots become one that is scored like a single run's

Evaluate = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")


def scores(folder: Path) -> Any:
    return score_folder(folder, Definitions(resamples=50)).as_json()


@pytest.mark.slow
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


@pytest.mark.slow
def test_merge_when_pictures_or_models_differ_is_refused(evaluate, model_x, tmp_path):
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


@pytest.mark.slow
def test_merge_when_boxes_of_one_model_differ_is_refused_unless_the_first_wins(evaluate, model_x, tmp_path):
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
