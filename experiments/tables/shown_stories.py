"""The stories of a study's page, with their pictures and what was lost in each (Table 69)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...baselines.compass.arms import ARMS, FIRST, FULL
from ...evaluation.recoverability.items import DIMENSIONS
from ...evaluation.recoverability.score import Judged
from ...evaluation.report.model import Frame
from ...evaluation.report.page import Thumbnails
from ...evaluation.report.pictures import Pictures, pictures_of_run
from ...evaluation.stats.ranks import TOLERANCE
from ...schemas.text import counted
from ...tables.numbers import label_text, value_text
from ..study import EVALUATION
from .compass_results import methods_by_name
from .grids import COMPASS_RULES, LEAST_VALID, RULES, Chosen, Facts, Rule, chosen_stories, facts_of
from .results import StudyResults

SIDE = 240
"""Longer side of a picture in a grid, in pixels."""
COMPASS_ROWS = (FIRST, "rerank-only", "bridge-only", FULL)
"""Arms that are shown beside each other."""
HOW = (
    "Chosen by rules, not by eye, among stories of which every method has a valid generation with one shared "
    f"seed and at least {LEAST_VALID:.0%} of the questions valid for all of these. Gaps are over those "
    "questions alone."
)


@dataclass(frozen=True)
class ShownMethod:
    """One story by one method."""

    label: str  # the method, or arm
    seed: int | None  # of the generation that is shown
    values: Mapping[str, str]  # label -> value, as text
    frames: tuple[Frame, ...] = field(repr=False)  # its pictures


@dataclass(frozen=True)
class ShownStory:
    """One story by several methods."""

    story_id: str  # the story
    title: str  # its title
    label: str  # what it is shown as
    why: str  # why such a story is shown, and by what value it was chosen
    moral: str | None  # its moral label; None where it has none
    scenes: tuple[str, ...]  # the texts of its scenes
    methods: tuple[ShownMethod, ...]  # the methods


def same_stories(results: StudyResults) -> tuple[ShownStory, ...]:
    """Return the stories that the rules choose, by all methods of the evaluation."""
    judged = results.evaluation
    names = {name: name for name in results.judged_methods}
    pictures = _pictures(results.folder / EVALUATION)
    return _stories(judged, names, results.cells, RULES, pictures)


def compass_stories(results: StudyResults) -> tuple[ShownStory, ...]:
    """Return the stories in which Semantic Compass helps most and least, by its arms."""
    compass = results.compass
    judged = compass.reported
    if judged is None:
        return ()
    there = methods_by_name(judged)
    labels = {arm.name: arm.label for arm in ARMS if arm.name in there and arm.name in COMPASS_ROWS}
    folder = next(compass.folders[cell] for cell, each in compass.cells.items() if each is judged)
    return _stories(judged, labels, {}, COMPASS_RULES, _pictures(folder)) if labels else ()


def _pictures(folder: Path) -> Pictures:
    return Pictures(pictures_of_run(folder).shown, Thumbnails(SIDE))


def _stories(
    judged: Judged, labels: Mapping[str, str], cells: Mapping[str, tuple[str, str]], rules: Sequence[Rule],
    pictures: Pictures,
) -> tuple[ShownStory, ...]:  # fmt: skip
    methods = methods_by_name(judged)
    facts = facts_of([methods[name] for name in labels], judged.items, judged.replies.seeds, cells)
    return tuple(_story(judged, labels, facts, each, pictures) for each in chosen_stories(facts, rules))


def _story(
    judged: Judged, labels: Mapping[str, str], facts: Facts, chosen: Chosen, pictures: Pictures
) -> ShownStory:
    record = judged.items.records[chosen.story]
    shown = []
    for position, (name, label) in enumerate(labels.items()):
        seed = facts.seeds[chosen.story]
        frames = pictures.every((name, record.story_id, seed))
        if not frames and (frames := pictures.every((name, record.story_id, None))):
            seed = None
        shown.append(ShownMethod(label, seed, _values(facts, position, chosen.story), frames))
    why = f"{chosen.rule.why} ({value_text(chosen.value, 'points')} points)"
    return ShownStory(
        record.story_id, record.title, chosen.rule.label, why, record.moral_label,
        tuple(scene.scene_text for scene in record.scenes), tuple(shown),
    )  # fmt: skip


def _values(facts: Facts, position: int, story: int) -> dict[str, str]:
    """Return the fields of Table 69 that can be computed; the others need people or a rubric."""
    gaps = facts.dimensions[position, story]
    values = {
        "From images": f"{value_text(float(facts.images[position, story]), 'percent')} %",
        "STG": value_text(float(facts.gaps[position, story]), "points"),
    }
    if not np.isnan(gaps).all() and np.nanmax(gaps) > 0:
        most = np.nanmax(gaps) - TOLERANCE
        worst = [name for name, gap in zip(DIMENSIONS, gaps, strict=True) if gap >= most]
        dimension = label_text(worst[0]).lower() if len(worst) == 1 else counted(len(worst), "dimension")
        values["Lost most"] = f"{dimension} {value_text(float(np.nanmax(gaps)), 'points')}"
    return values
