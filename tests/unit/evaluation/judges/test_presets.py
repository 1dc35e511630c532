"""Whose words judges are asked with: our own, a set that was fetched, a folder, or those of a protocol."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine.execute import execute
from fabula.engine.stage import BadReply
from fabula.errors import ConfigError, InputError, MissingRequirement
from fabula.evaluation.archive.archive import check_alike, read_archive
from fabula.evaluation.events.judging import PUBLISHED, read_completion
from fabula.evaluation.events.requests import EventOptions, events_request
from fabula.evaluation.judging.answers import asking_with
from fabula.evaluation.katha.load_items import variant_stories
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.report.formats import write_report
from fabula.prompts.loader import SetManifest, SetText, write_set
from fabula.releases.events.form import suite_bytes
from fabula.schemas.canonical import sha256_bytes
from fabula.testing.drawn import write_video
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import Asked, ModelServer

TEXTS = {
    "system": "Be kind; end with {END}.", "image_token": "<frames>", "describe": "Tell {all}.",
    "score": "{description} | {prompt} | {count} | {events}",
}  # fmt: skip
NAME = "storyeval@d095e63"


@pytest.fixture
def made_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a set into the cache; return its folder."""
    monkeypatch.setattr("fabula.prompts.loader.cache_folder", lambda: tmp_path / "cache")

    def make(without: str = "", **changed: str) -> Path:
        texts = {name: text for name, text in {**TEXTS, **changed}.items() if name != without}
        about = {
            name: SetText(
                file=f"texts/{name}.txt", sha256=sha256_bytes(text.encode()), template=name == "score"
            )
            for name, text in texts.items()
        }
        folder = tmp_path / "cache" / NAME
        write_set(folder, SetManifest(name="storyeval", commit="d095e63", texts=about), texts, None)
        return folder

    return make


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[..., Path]:
    """Judge one video of two events; every scoring says that the first is completed."""
    entry = {
        "prompt": "It falls, and breaks.",
        "event_list": ["It falls.", "It breaks."],
        "class": ["2_events"],
    }
    (tmp_path / "suite.json").write_bytes(suite_bytes({"cup.mp4": entry}) + b"\n")
    (tmp_path / "x").mkdir()
    write_video(tmp_path / "x" / "cup.mp4", 20, size=(48, 48))

    def answer(asked: Asked) -> str:
        return "[COMPLETE_LIST]: 1, 0" if "breaks" in asked.text else "Something."

    def run(out: str, **options: object) -> Path:
        with ModelServer(answer) as server:
            given = EventOptions(
                judges=["openai:tested"], models={"openai:tested": {"base_url": server.openai_url}},
                workers=0,
                created_at="2026-01-01T00:00:00Z", **options,  # type: ignore[arg-type]
            )  # fmt: skip
            execute(events_request(tmp_path / "suite.json", [tmp_path / "x"], tmp_path / out, given))
        return tmp_path / out

    return run


def test_evaluations_when_asked_in_other_words_are_not_compared_unless_told(made_set, evaluate, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    folder = made_set()
    own, official = evaluate("own"), evaluate("official", prompts="official")
    first, second = (read_archive(run).manifest for run in (own, official))
    label = f"storyeval/score@d095e63#{sha256_bytes(TEXTS['score'].encode())[:12]}"
    assert second.protocol["prompts"]["storyeval/score"] == label
    assert {one.prompt for one in read_archive(official).judgements} == {label}
    assert {tuple(one.parsed["completion"]) for one in read_archive(official).judgements if one.parsed} == {
        (1, 0)
    }
    with pytest.raises(InputError, match="--allow prompts"):
        check_alike(first, second)
    assert check_alike(first, second, ["prompts"])
    assert read_archive(evaluate("folder", prompts=str(folder))).manifest.protocol == second.protocol
    judge, another = first.protocol["judges"][0], "openai:another"
    renamed = json.loads(json.dumps(first.protocol).replace(judge, another))
    swapped = first.model_copy(update={"protocol": {**renamed, "models": {another: {"temperature": 1}}}})
    with pytest.raises(InputError, match="--allow judges") as refused:
        check_alike(first, swapped)
    assert "protocol models" not in str(refused.value), "settings of other judges are no other difference"
    assert check_alike(first, swapped, ["judges"])
    made_set(describe="Tell more.")
    other = read_archive(evaluate("other", prompts="official")).manifest
    with pytest.raises(InputError, match=r"protocol prompts\.storyeval/describe: the evaluations differ"):
        check_alike(second, other)


def test_protocol_when_chosen_sets_everything_and_departures_are_named(made_set, evaluate, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    made_set()
    archive = read_archive(evaluate("preset", protocol=NAME, votes=1))
    protocol = archive.manifest.protocol
    assert protocol["preset"] == {"name": NAME, "departures": ["judge_events.votes"]}
    assert protocol["frames"]["size"] == [512, 320] and protocol["attempts"] == 3
    frames = json.loads((evaluate("preset", protocol=NAME, votes=1) / "frames.jsonl").read_text())["frames"]
    assert {(frame["width"], frame["height"]) for frame in frames} == {(512, 320)}


def test_choice_when_it_cannot_be_made_says_why(made_set: Callable[..., Path], tmp_path: Path) -> None:
    assert (
        asking_with(PUBLISHED, None, None).texts is None
        and asking_with(PUBLISHED, "main", None).texts is None
    )
    for prompts, protocol, told in (
        ("main", NAME, "a protocol names its prompts itself"),
        (None, "storyeval@0000000", f"use {NAME}"),
        (str(tmp_path), None, "use main, official, or a folder"),
    ):
        with pytest.raises(ConfigError, match=told):
            asking_with(PUBLISHED, prompts, protocol)
    with pytest.raises(MissingRequirement, match="fabula prompts fetch storyeval"):
        asking_with(PUBLISHED, None, NAME)
    made_set(without="score")
    with pytest.raises(ConfigError, match="the set storyeval lacks score"):
        asking_with(PUBLISHED, "official", None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Nothing.", "no .COMPLETE_LIST. in the reply"),
        ("[COMPLETE_LIST]: 1", "1 flags for 2 events"),
        ("[COMPLETE_LIST]: event 1: 1", None),
        ("[COMPLETE_LIST]: 0, 2", "neither 0 nor 1: 0, 2"),
    ],
)
def test_list_when_read_as_the_public_code_does_takes_every_number(text: str, told: str | None) -> None:
    if told is None:
        assert read_completion(text, 2).flags == (1, 1)
        return
    with pytest.raises(BadReply, match=told):
        read_completion(text, 2)


# A whole evaluation by judges whose service keeps prompts: what it reads once, it is paid for once.


# A method that drew the variants, too: each is asked about, and scored against what it was made of.


@pytest.mark.slow
def test_variants_when_drawn_are_scored_by_which_text_their_pictures_show(tmp_path: Path) -> None:
    release = drawn_release(tmp_path / "release", 8)
    told = variant_stories(release, release.records)
    stories = [*release.records, *told]
    boards = draw_outputs(tmp_path / "model-x", stories)
    # The method drew every second variant as if nothing had changed, and left out those of the last story.
    for record in told[1::2]:
        shutil.rmtree(boards / record.story_id)
        base = record.story_id.rpartition("_")[0]
        shutil.copytree(boards / base, boards / record.story_id)
    for record in told[-2:]:
        shutil.rmtree(boards / record.story_id)
    with ModelServer(JudgeModel(stories)) as server:
        options = EvaluateOptions(
            judges=(f"{server.openai_url}#one",), workers=0, created_at="2026-01-01T00:00:00Z"
        )
        evaluate_katha(release.path, boards, tmp_path / "run", options)
    archive = read_archive(tmp_path / "run")
    asked = [one for one in archive.judgements if one.kind == "variant"]
    assert len(asked) == len(told) - 2
    assert {one.unit for one in asked} == {record.story_id for record in release.records[:-1]}
    method = score_folder(tmp_path / "run", release.path).methods["model-x"]
    assert method.pairs["accuracy"].value == 1
    # Each story has one right and one wrong variant: half of them, and as many pairs told apart.
    assert method.pairs["variant_accuracy"].value == pytest.approx(0.5)
    assert method.pairs["both_accuracy"].value == pytest.approx(0.5)
    assert archive.manifest.subject["methods"]["model-x"]["generations_requested"] == len(release.records)
    (table,) = [one for one in katha_report(tmp_path / "run", release.path).details if one.name == "variants"]
    (row,) = table.rows
    assert [measure.label for measure in table.measures] == ["Variant accuracy", "Both told apart"]
    for name in ("variant_accuracy", "both_accuracy"):
        score = row.scores[name]
        assert score == method.pairs[name]
        assert score.low is not None and score.high is not None and score.low <= 0.5 <= score.high
        assert score.counts == {"judged": len(told) - 2, "pairs": len(told)}
    assert "choose the variant" in (table.note or "")
    write_report(katha_report(tmp_path / "run", release.path), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"{len(told) - 2} judged, {len(told)} pairs" in page


@pytest.fixture
def release(tmp_path):
    (tmp_path / "subsets").mkdir()
    (tmp_path / "subsets" / "lite.jsonl").write_text('{"story_id":"kb25k_0002"}\n{"story_id":"kb25k_0003"}\n')
    (tmp_path / "strict_gold_400.jsonl").write_text('{"story_id":"kb25k_0004"}\n')
    (tmp_path / "annotations.jsonl").write_text('{"story_id":"kb25k_0005"}\n')
    return tmp_path
