"""Tuning on validation, freezing, applying to test stories: all arms, on drawn pictures with a judge that
reads them; stopped and continued."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from fabula.errors import BudgetStop
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.releases.loading import Release
from fabula.schemas.canonical import sha256_bytes
from fabula.studies.compass.applying import COMPASS, Applied
from fabula.studies.compass.arms import FrameRequest, Frames, frame_maker
from fabula.studies.compass.frozen import FROZEN, Frozen, read_frozen
from fabula.studies.compass.judging import Ledger
from fabula.studies.compass.requests import CompassRequest, apply, tune
from fabula.testing.compass_stories import compass_release, draw_candidates, loses_share
from fabula.testing.drawn_judge import DrawnJudge
from fabula.testing.endurance import rounds
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.slow

CREATED = "2026-01-01T00:00:00Z"
VALIDATION, TEST = 4, 6
ALWAYS = ("random-extra", "non-semantic-extra", "caption-bridge")


@dataclass(frozen=True)
class Stage:
    """A release with candidates, and a judge of them."""

    folder: Path
    release: Release
    server: ModelServer

    def request(self, out: str, splits: Sequence[str], max_cost: float | None = None) -> CompassRequest:
        options = EvaluateOptions(
            judges=(f"{self.server.openai_url}#one",), workers=0, created_at=CREATED, max_cost=max_cost
        )
        return CompassRequest(
            self.release.path, self.folder / "model-x", self.folder / out, options, "drawn-marks", "pixels",
            splits=tuple(splits), ledger=Ledger(max_cost),
        )  # fmt: skip

    def render(self, request: CompassRequest) -> "object":
        return frame_maker(
            request.out / "frames", "image:drawn:faithful", request.options, request.ledger, None
        )

    def tuned(self, out: str = "tuned") -> Frozen:
        request = self.request(out, ["validation"])
        return tune(request, self.render(request))  # type: ignore[arg-type]

    @cached_property
    def done(self) -> Applied:
        """All arms, in the folder applied."""
        return self.applied()

    def applied(self, out: str = "applied", arms: Sequence[str] = ()) -> Applied:
        request = self.request(out, ["public_test"])
        return apply(request, self.render(request), self.folder / "tuned" / FROZEN, arms)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("compass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        release = compass_release(folder / "release", VALIDATION, TEST)
        draw_candidates(folder / "model-x", release.records, loses_share(0.5))
        with ModelServer(DrawnJudge(release.records)) as server:
            made = Stage(folder, release, server)
            made.tuned()
            assert made.done.outputs
            yield made


def files(folder: Path) -> dict[str, str]:
    """Results in a folder by content: everything but runs and what they cost."""
    kept = [folder / COMPASS, *(folder / "outputs").rglob("*")]
    return {str(path.relative_to(folder)): sha256_bytes(path.read_bytes()) for path in kept if path.is_file()}


def test_tuning_when_done_freezes_what_it_stands_on(stage: Stage) -> None:
    frozen = read_frozen(stage.folder / "tuned" / FROZEN)
    assert frozen.stories == tuple(r.story_id for r in stage.release.records if r.split == "validation")
    assert frozen.conditions.encoders == {"coverage": "drawn-marks@1", "copies": "pixels@1"}
    search = frozen.search
    assert search.stories == VALIDATION
    assert search.base is not None and search.reranked is not None
    # Half of what is shown is lost by seed: the best of three candidates shows more than their mean.
    assert search.reranked > search.base
    chosen = search.repaired[f"{frozen.setting.repair_threshold:g}"]
    assert chosen is not None and chosen == max(value or 0 for value in search.repaired.values())
    assert chosen > search.reranked
    assert stage.tuned() == frozen


def test_arms_when_applied_are_outputs_that_evaluations_take(stage: Stage) -> None:
    applied = stage.done
    records = [record for record in stage.release.records if record.split == "public_test"]
    for name, folder in applied.outputs.items():
        checked = check_outputs(folder, records, known=stage.release.records)
        assert not checked.invalid, name
        assert checked.method == name
        assert len(checked.valid) == (3 * TEST if name == "base" else TEST)
    arms = applied.document["arms"]
    assert {arms[name]["inserted"] for name in ALWAYS} == {TEST}
    assert 0 < arms["full"]["inserted"] <= TEST
    for board in (*applied.boards["full"], *applied.boards["bridge-only"]):
        assert len(board.bridges) <= 1
        assert len(board.frames) == 5 + len(board.bridges)


def test_selection_when_explained_is_the_highest_score_and_repair_the_weakest_transition(stage):
    document = json.loads((stage.folder / "applied" / COMPASS).read_bytes())
    setting = document["setting"]
    for story in document["stories"].values():
        best = max(candidate["score"] for candidate in story["candidates"])
        chosen = next(c["seed"] for c in story["candidates"] if c["score"] == best)
        assert story["selected"]["full"] == story["selected"]["rerank-only"] == chosen
        assert story["selected"]["bridge-only"] == story["selected"]["first-seed"] == 42
        for start, repair in story["repairs"].items():
            values = [value for value in repair["transitions"] if value is not None]
            weakest = repair["transitions"][repair["weakest_transition"] - 1]
            assert weakest == min(values)
            assert story["transitions"][start][repair["weakest_transition"] - 1]["value"] == weakest
            accepted = [trial for trial in repair["trials"] if trial["accepted"]]
            assert (repair["verdict"] == "accepted") == bool(accepted)
            assert all(trial["after"] > trial["before"] and not trial["copies"] for trial in accepted)
            assert bool(repair["trials"]) == (weakest < setting["repair_threshold"])
            assert len(repair["trials"]) in (0, 3)
    assert document["reporting"]["final"]["label"] == "Held-out judge prompts, held-out questions"
    assert len(document["reporting"]["cells"]) == 4


def test_judges_when_asked_see_selection_questions_of_test_stories_only_and_pay_nothing_twice(stage):
    before = len(stage.server.log)
    stage.applied()
    assert len(stage.server.log) == before, "everything was answered before"
    halves = json.loads((stage.folder / "applied" / "questions.json").read_bytes())["half_of"]
    for name in ("candidates-selection", "weakest", "bridged"):
        lines = (stage.folder / "applied" / "applying" / name / "judgements.jsonl").read_text().splitlines()
        asked = [json.loads(line) for line in lines]
        assert {halves[line["item"]] for line in asked} == {"selection"}
        assert {line["condition"] for line in asked} == {"image"}
        assert {line["prompt"].split("@")[0] for line in asked} == {"judge/question_image"}


def test_arms_when_judged_on_held_out_questions_show_more_than_the_base(stage: Stage) -> None:
    stage.applied()
    out = stage.folder / "applied"
    options = EvaluateOptions(
        judges=(f"{stage.server.openai_url}#one",), workers=0, created_at=CREATED, prompts="heldout",
        questions_only=True, split=("public_test",),
    )  # fmt: skip
    evaluate_katha(out / "reporting", sorted((out / "outputs").iterdir()), stage.folder / "final", options)
    scores = score_folder(stage.folder / "final", out / "reporting", Definitions(resamples=0))
    image = {
        name: method.gaps["question"]["common"].image.value or 0.0 for name, method in scores.methods.items()
    }
    # Selection questions come in pairs with reporting ones, so that what selection wins shows there, too.
    assert len(image) == 14
    assert image["full"] > image["rerank-only"] > image["base"]
    assert image["bridge-only"] > image["first-seed"]
    assert image["non-semantic-extra"] == image["caption-bridge"] == image["first-seed"]


def test_copied_storyboard_when_a_candidate_loses_to_the_others(stage: Stage, tmp_path: Path) -> None:
    """A candidate that repeats one frame is all copies."""
    shutil.copytree(stage.folder / "model-x", tmp_path / "model-x")
    records = [record for record in stage.release.records if record.split == "public_test"]
    for record in records:
        for seed in (42, 123, 2026):
            below = tmp_path / "model-x" / record.story_id / f"seed_{seed}"
            source = below / "05.png" if seed == 42 else None
            if source is not None:
                for number in range(1, 5):
                    shutil.copyfile(source, below / f"{number:02}.png")
    request = with_outputs(stage, tmp_path / "model-x", tmp_path / "out")
    arms = ("rerank-only", "copies", "recoverability+copies")
    applied = apply(request, _no_frames, stage.folder / "tuned" / FROZEN, arms)
    for story in applied.document["stories"].values():
        copied = next(candidate for candidate in story["candidates"] if candidate["seed"] == 42)
        assert copied["copies"]["value"] == 1
        assert story["selected"]["copies"] != 42
    assert applied.document["arms"]["copies"]["copies"]["above_gamma"] == 0


def _no_frames(requests: Sequence[FrameRequest]) -> Frames:
    raise AssertionError(f"nobody needs frames: {len(requests)}")


def test_generator_when_it_makes_no_frame_leaves_storyboards_as_they_are(stage: Stage) -> None:
    request = stage.request("none", ["public_test"])

    def none(requests: Sequence[FrameRequest]) -> Frames:
        return {request.key: None for request in requests}

    arms = ("first-seed", "random-extra", "bridge-only", "full", "rerank-only")
    applied = apply(request, none, stage.folder / "tuned" / FROZEN, arms)
    verdicts = Counter(
        repair["verdict"]
        for story in applied.document["stories"].values()
        for repair in story["repairs"].values()
    )
    assert set(verdicts) <= {"no-frame", "above-threshold"} and verdicts["no-frame"]
    assert [board.frames for board in applied.boards["full"]] == [
        board.frames for board in applied.boards["rerank-only"]
    ]
    assert {applied.document["arms"][name]["inserted"] for name in ("random-extra", "bridge-only")} == {0}


def test_cost_limit_when_shared_by_all_runs_stops_them(stage: Stage) -> None:
    request = stage.request("dear", ["validation"], max_cost=0.5)
    models = {f"{stage.server.openai_url}#one": {"prices": {"input": 1000.0, "output": 1000.0}}}
    options = EvaluateOptions(
        judges=request.options.judges, workers=0, created_at=CREATED, max_cost=0.5, models=models
    )
    request = CompassRequest(
        request.release, request.outputs, request.out, options, "drawn-marks", "pixels",
        splits=request.splits, ledger=Ledger(0.5),
    )  # fmt: skip
    with pytest.raises(BudgetStop):
        tune(request, _no_frames)


def with_outputs(stage: Stage, outputs: Path, out: Path) -> CompassRequest:
    """A request for the test stories in another folder of outputs."""
    options = stage.request("unused", ["public_test"]).options
    return CompassRequest(
        stage.release.path, outputs, out, options, "drawn-marks", "pixels", splits=("public_test",)
    )


def test_candidates_when_one_is_broken_are_chosen_from_the_others_and_counted(stage, tmp_path):
    shutil.copytree(stage.folder / "model-x", tmp_path / "model-x")
    story = next(record.story_id for record in stage.release.records if record.split == "public_test")
    (tmp_path / "model-x" / story / "seed_42" / "03.png").write_bytes(b"no picture")
    request = with_outputs(stage, tmp_path / "model-x", tmp_path / "out")
    arms = ("base", "first-seed", "rerank-only")
    applied = apply(request, _no_frames, stage.folder / "tuned" / FROZEN, arms)
    document = applied.document
    assert document["invalid"] == [[story, 42]]
    assert story not in {board.story_id for board in applied.boards["first-seed"]}
    assert document["stories"][story]["selected"].keys() == {"rerank-only"}
    counted = {name: (arm["storyboards"], arm["requested"]) for name, arm in document["arms"].items()}
    assert counted == {
        "base": (3 * TEST - 1, 3 * TEST), "first-seed": (TEST - 1, TEST), "rerank-only": (TEST, TEST),
    }  # fmt: skip


PROGRAM = """
import os, sys
from pathlib import Path
from fabula.studies.compass.arms import frame_maker
from fabula.studies.compass.requests import CompassRequest, apply
from fabula.evaluation.katha.requests import EvaluateOptions
import fabula.schemas.canonical as canonical

url, release, outputs, frozen, out, limit = sys.argv[1:]
writes, real = 0, canonical.os.fsync

def fsync(handle):
    global writes
    writes += 1
    if writes > int(limit):
        os._exit(9)
    real(handle)

canonical.os.fsync = fsync
options = EvaluateOptions(judges=(url,), workers=0, created_at="2026-01-01T00:00:00Z")
request = CompassRequest(Path(release), Path(outputs), Path(out), options, "drawn-marks", "pixels",
                         splits=("public_test",))
frames = frame_maker(Path(out) / "frames", "image:drawn:faithful", options, request.ledger, None)
apply(request, frames, Path(frozen))
"""


@pytest.mark.endurance
def test_applying_when_killed_at_any_write_and_continued_gives_the_same_bytes(stage, starter):
    wanted = files(stage.folder / "applied")
    out = stage.folder / "killed"
    codes = []
    for limit in (2, 7, 12, 17, 22, 30, 40, 60, 80, 100)[: rounds(10) + 3]:
        done = starter.run_code(
            PROGRAM, f"{stage.server.openai_url}#one", stage.release.path,
            stage.folder / "model-x", stage.folder / "tuned" / FROZEN, out, limit,
        )  # fmt: skip
        assert done.returncode in (0, 9), done.stderr
        codes.append(done.returncode)
    assert 9 in codes
    stage.applied("killed")
    assert files(out) == wanted
