"""Evaluations that were asked as a published protocol asks are scored by its code's definitions."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import Item, Made, Tools
from fabula.evaluation.entities.scoring import SCORING as EPISODES
from fabula.evaluation.entities.scoring import definitions_of as episode_definitions
from fabula.evaluation.metrics.story import FoundShot, FoundStory, Story
from fabula.evaluation.metrics.vectors import packed, unpacked
from fabula.evaluation.protocol import Chosen
from fabula.evaluation.shots import looking
from fabula.evaluation.shots.judging import CropSettings
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.report.tables import by_official_ranks
from fabula.evaluation.shots.scores import ImageScores, MethodScores, official_ranks, score_story
from fabula.evaluation.stats.tables import read_aliases
from fabula.kinds.evaluations import compare, definitions_said, score
from fabula.models.vision.store import VectorStore
from fabula.schemas.values import Score

NAME = "vistorybench@514cc31"


def named(folder: Path, preset: str | None) -> Path:
    """Write into an evaluation under which protocol its judges were asked."""
    path = folder / "evaluation.json"
    document = json.loads(path.read_text())
    document["protocol"]["preset"] = None if preset is None else {"name": preset, "departures": []}
    path.write_text(json.dumps(document))
    return folder


def scored(folder: Path, *define: str) -> ImageScores:
    made = score(folder, {"define": define, "resamples": 0})
    assert isinstance(made, ImageScores)
    return made


@pytest.mark.slow
def test_scores_when_asked_as_published_are_the_codes_and_what_is_given_wins(
    evaluate: Callable[..., object], model_x: Path, copies: Path, tmp_path: Path
) -> None:
    evaluate(model_x, copies, metrics="cids,occm")
    folder, code = tmp_path / "run", ("cids", "copy-paste", "occm", "csd", "alignment")
    ours = scored(folder)
    chosen = scored(folder, *(f"{name}=code" for name in code))
    assert not list(definitions_said(folder)) and set(ours.definitions.all().values()) & {"paper"}
    named(folder, NAME)
    official = scored(folder)
    assert official.as_json() == chosen.as_json() != ours.as_json()
    (line,) = definitions_said(folder)
    assert line.startswith(f"definitions of the protocol {NAME}: --define cids=code")
    mine = scored(folder, "occm=paper").definitions
    assert (mine.all()["occm"], mine.all()["cids"]) == ("paper", "code")
    assert "cids=code" in "\n".join(compare(folder, folder, {"resamples": 0}).lines())
    assert not list(definitions_said(named(folder, "vistorybench@other")))


def test_episodes_when_asked_as_published_are_aggregated_as_the_code_does() -> None:
    (options,) = EPISODES.published.values()
    assert episode_definitions(Chosen(options)).coverage == "code"


# Ranks of the public summary, by hand, and aliases as data.

BOTH = {"shot": 2.0, "interaction": 2.0, "scene": 2.0, "action": 2.0, "aesthetic": 5.0, "inception": 9.0}


def test_ranks_when_one_method_leads_two_categories_are_ranks_of_ranks() -> None:
    a = {**BOTH, "cids_self": 0.6, "cids_cross": 0.5, "csd_self": 0.6, "csd_cross": 0.5}
    b = {**BOTH, "cids_self": 0.5, "cids_cross": 0.4, "csd_self": 0.6, "csd_cross": 0.5, "aesthetic": 6.0}
    first, second = official_ranks({"a": a, "b": b})
    # a leads characters, b quality; level in the rest: both have places 1, 1, 1, 1, 2 in the mean
    assert (first.overall, second.overall) == (1, 1)
    assert first.ranks == {"character": 1, "style": 1, "prompt": 1, "quality": 2, "diversity": 1}


def test_ranks_when_a_score_is_missing_put_it_last() -> None:
    rows = official_ranks({"a": {"inception": 3.0}, "b": {}, "c": {"inception": 9.0}})
    assert {row.method: row.ranks["diversity"] for row in rows} == {"c": 1, "a": 2, "b": 3}
    assert [row.overall for row in rows] == [1, 2, 3]


def test_ranks_when_a_method_has_several_runs_count_the_best_one() -> None:
    runs = {"x text": {"inception": 3.0}, "x image": {"inception": 9.0}, "y": {"inception": 5.0}}
    rows = official_ranks(runs, {"x text": "x", "x image": "x"})
    assert [(row.method, row.run) for row in rows] == [("x", "x image"), ("y", "y")]


def test_aliases_when_given_as_texts_and_files_are_joined(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("# spelled in two ways\nMMSStoryAgent = MMStoryAgent\n", "utf-8")
    named = read_aliases(["a=b", str(tmp_path / "names.txt")])
    assert named == {"a": "b", "MMSStoryAgent": "MMStoryAgent"}


def test_scores_when_there_are_two_methods_have_the_official_ranks_under_their_name() -> None:
    def method(name: str, aesthetic: float) -> MethodScores:
        return MethodScores(name, {"aesthetic": Score(value=aesthetic, status="ok")}, (), {})

    both = (method("a", 4.0), method("b", 5.0))
    scores = ImageScores(Definitions(), None, both)
    assert [row["run"] for row in scores.as_json()["official_ranks"]] == ["b", "a"]
    (table,) = by_official_ranks(scores)
    assert [(row.label, row.values["quality"]) for row in table.rows] == [("b", 1), ("a", 2)]
    assert [row.values["style"] for row in table.rows] == [None, None]
    joined = ImageScores(Definitions(), None, both, variants={"a": "x", "b": "x"})
    assert [(row.method, row.run) for row in joined.official_ranks()] == [("x", "b")]
    assert "official_ranks" not in ImageScores(Definitions(), None, both[:1]).as_json()


# References whose crops show no face: all of them count whole.


class Faces:
    """An encoder that finds a face in pictures of one width only."""

    card = SimpleNamespace(name="faces")

    def __init__(self, width: int) -> None:
        self.width, self.identity = width, f"faces-{width}"

    def encode(self, images: Any) -> Any:
        rows = [(1.0, 0.0) if image.width == self.width else (np.nan, np.nan) for image in images]
        return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("width", "whole", "known"),
    [(20, ["Ann"], [True, True]), (8, [], [True, False]), (3, ["Ann"], [False] * 2)],
)
def test_references_when_no_crop_has_a_face_count_whole(width, whole, known, tmp_path, monkeypatch):
    files = []
    for number in range(2):
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / f"{number}.png")
        files.append({"file": str(tmp_path / f"{number}.png")})
    story = {"script": {"Characters": {"Ann": {"tag": "realistic_human"}}}, "references": {"Ann": files}}
    boxes = {"shots": {}, "references": {"Ann": [[[0, 0, 8, 20, 0.9]], []]}}
    monkeypatch.setattr(looking, "opened", lambda *_: Faces(width))
    monkeypatch.setattr(VectorStore, "of_user", VectorStore)
    settings = CropSettings(pictures=(), faces=("faces",))
    item = Item("m/01", {"story": story, "shots": [], "boxes": boxes})
    (made,) = looking.encode_crops([item], Tools(settings, "2026-01-01T00:00:00Z"))
    assert isinstance(made, Made)
    crops = made.fields["crops"]
    rows = unpacked(crops["references"]["Ann"]["faces"])
    assert (crops["whole_references"], (~np.isnan(rows).any(axis=1)).tolist()) == (whole, known)
    assert bool(crops["mirrors"]["Ann"]) == any(known)


# The metrics of one story from an archive's line: what models made nothing of, missing pictures.

NAN = float("nan")


def line(style: list[list[float]], aesthetic: list[float]) -> FoundStory:
    """Three shots with one character, the last without a picture; one reference."""
    shots = tuple(
        FoundShot(number=number, onstage=1, expected=("A",), sha256=None if number == 3 else "0")
        for number in (1, 2, 3)
    )
    pictures = {
        "numbers": [1, 2], "models": {}, "style": packed(np.array(style, dtype=np.float32)),
        "aesthetic": packed(np.array(aesthetic, dtype=np.float32)[:, None]),
        "inception": packed(np.array([[0.5, 0.5], [NAN, NAN]], dtype=np.float32)),
        "references": {"A": packed(np.array([[1, 0]], dtype=np.float32))},
    }  # fmt: skip
    return FoundStory(
        method="m", story_id="01", characters={"A": None}, references={"A": ("0",)}, shots=shots,
        boxes=None, crops=None, pictures=pictures,
    )  # fmt: skip


def test_story_when_all_pictures_are_known_has_means_by_hand() -> None:
    scores = score_story(line([[1, 0], [0.6, 0.8]], [5, 6]), Definitions()).scores
    assert abs((scores["csd_cross"].value or 0) - 0.8) < 1e-6  # (1 + 0.6) / 2
    assert abs((scores["csd_self"].value or 0) - 0.6) < 1e-6
    assert scores["csd_cross"].counts["without_image"] == 1
    assert scores["aesthetic"].value == 5.5
    assert "cids_cross" not in scores and "occm" not in scores


def test_story_when_a_model_made_nothing_of_a_picture_leaves_it_out_and_counts_it() -> None:
    found = line([[1, 0], [NAN, NAN]], [NAN, 6])
    scores = score_story(found, Definitions()).scores
    assert scores["csd_cross"].value == 1
    assert scores["csd_self"].status == "undefined"
    assert (scores["aesthetic"].value, scores["aesthetic"].counts) == (6, {"pictures": 3, "valued": 1})
    rows = Story(found).rows("inception")
    assert rows is not None and [None if row is None else row.tolist() for row in rows] == [
        [0.5, 0.5],
        None,
        None,
    ]
