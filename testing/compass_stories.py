"""Made-up stories for Semantic Compass, and pictures that lose some of them.

What a candidate loses follows from a share and a hash, so that what selection can win is known before where
:class:`.drawn_judge.DrawnJudge` reads the pictures.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from ..models.generators.drawn.figures import draw_scene
from ..models.generators.drawn.scene import DrawnScene, Mark
from ..releases.loading import Release
from ..schemas.canonical import Json, digest
from ..schemas.katha import StoryRecord
from .drawn import picture_bytes
from .drawn_storyboards import judged_release
from .katha_samples import sample_bundles

SIDE = 256
_ASKED = (("causal", "causality", "Why"), ("consequence", "consequence", "What came of it"))
_WORDINGS = ("that one sees first", "that a viewer is told by it")


def compass_release(folder: Path, validation: int = 4, test: int = 4) -> Release:
    """Write a release whose stories have four questions about each transition, two of each dimension.

    The first ``validation`` stories are of that split, the next ``test`` of ``public_test``.
    """
    bundles = sample_bundles(validation + test)
    for number, bundle in enumerate(bundles):
        record = bundle["record"]
        split = "validation" if number < validation else "public_test"
        record["split"] = split
        for variant in bundle["variants"]:
            variant["subset"] = split
        record["questions"] = list(_questions(record))
    return judged_release(folder, bundles)


def _questions(record: Json) -> Iterable[Json]:
    for transition in record["transitions"]:
        link = [transition["from_scene"], transition["to_scene"]]
        for kind, name, begin in _ASKED:
            for wording in _WORDINGS:
                number = f"t{link[0]}_{kind}_{_WORDINGS.index(wording)}"
                yield {
                    "question_id": f"{record['story_id']}_{number}",
                    "story_id": record["story_id"],
                    "question_type": kind,
                    "question": f"{begin}, from picture {link[0]} to {link[1]}, {wording}?",
                    "gold_answer": transition[name],
                    "accepted_answers": [transition[name]],
                    "target_scene": link[1],
                    "target_transition": link,
                    "evidence_scenes": link,
                    "required_evidence": f"scene {link[1]}",
                    "answerability": "text_supported",
                }


Loses = Callable[[str, int | None, int, str], bool]
"""Story id, seed, transition from 1, field -> whether a candidate does not show it."""


def loses_share(share: float) -> Loses:
    """Return what loses a share of causes and outcomes, by a hash of where they are."""
    return lambda story, seed, at, name: int(digest([story, seed, at, name])[:12], 16) / 16**12 < share


def draw_candidates(
    folder: Path, records: Iterable[StoryRecord], loses: Loses, seeds: Sequence[int] = (42, 123, 2026)
) -> Path:
    """Write a drawn storyboard for every story and seed; return the folder."""
    for record in records:
        for seed in seeds:
            below = folder / record.story_id / f"seed_{seed}"
            below.mkdir(parents=True, exist_ok=True)
            for number in range(1, len(record.scenes) + 1):
                (below / f"{number:02}.png").write_bytes(_drawn(_panel(record, seed, number, loses)))
    return folder


def _panel(record: StoryRecord, seed: int, number: int, loses: Loses) -> tuple[Mark, ...]:
    scene = record.scenes[number - 1]
    marks = [Mark(kind="character", text=name) for name in scene.characters]
    marks.append(Mark(kind="action", text=str(scene.action)))
    if number > 1:
        transition = record.transitions[number - 2]
        marks += [
            Mark(kind="cause" if name == "causality" else "consequence", text=str(getattr(transition, name)))
            for name in ("causality", "consequence")
            if not loses(record.story_id, seed, number - 1, name)
        ]
    return tuple(marks)


@cache
def _drawn(marks: tuple[Mark, ...]) -> bytes:
    return picture_bytes(draw_scene(DrawnScene(marks=marks), (SIDE, SIDE)).canvas.image)
