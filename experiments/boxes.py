"""Where things are in pictures: read off what drawn pictures show, or from a file of boxes for others.

A file of boxes is JSON Lines: ``{"story_id", "seed", "panel", "kind", "box"}``; ``kind`` is ``decisive`` for
what shows the act of the scene, or ``feeling``; ``box`` is left, top, right and bottom in pixels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ..errors import InputError, UserError
from ..models.generators.drawn.layout import Box
from ..schemas.canonical import Json
from ..schemas.katha import StoryRecord
from ..schemas.plain_files import json_lines, reason_of
from ..schemas.text import contains_phrase, normalize_answer
from ..schemas.values import Own
from .losses import Boxes

Key = tuple[str, int | None, int]
"""Story, generation seed and panel."""


class BoxLine(Own):
    """One line of a file of boxes."""

    story_id: str = Field(description="The story.")
    seed: int | None = Field(default=None, description="Generation seed; null where there is one storyboard.")
    panel: int = Field(ge=1, description="Number of the picture, from 1.")
    kind: Literal["decisive", "feeling"] = Field(description="What the box shows.")
    box: tuple[int, int, int, int] = Field(description="Left, top, right, bottom, in pixels.")

    @model_validator(mode="after")
    def _has_an_inside(self) -> "BoxLine":
        left, top, right, bottom = self.box
        if not (left < right and top < bottom):
            raise ValueError("a box has left < right and top < bottom, in pixels")
        return self


@dataclass(frozen=True)
class BoxFile:
    """Boxes that somebody drew."""

    # story, seed and panel -> the boxes of that picture
    lines: Mapping[Key, tuple[BoxLine, ...]] = field(repr=False)

    def of(self, story_id: str, seed: int | None, panel: int) -> Boxes:
        """Return the boxes of a picture."""
        lines = self.lines.get((story_id, seed, panel), ())
        return Boxes(
            tuple(line.box for line in lines if line.kind == "decisive"),
            tuple(line.box for line in lines if line.kind == "feeling"),
        )


def read_boxes(path: Path) -> BoxFile:
    """Return the boxes in a file."""
    lines: dict[Key, tuple[BoxLine, ...]] = {}
    problems = []
    for number, row in _rows(path, "see docs/drawn.md for the form of a file of boxes"):
        try:
            line = BoxLine.model_validate(row)
        except ValidationError as error:
            problems.append(_problem(f"{path}:{number}", error))
            continue
        key = (line.story_id, line.seed, line.panel)
        lines[key] = (*lines.get(key, ()), line)
    if lines and all(max(line.box) <= 1 for some in lines.values() for line in some):
        what = "no box exceeds one pixel: boxes are in pixels of the picture, not in shares of it"
        problems.append(
            UserError(str(path), what=what, fix="see docs/drawn.md for the form of a file of boxes")
        )
    if problems:
        raise InputError(problems)
    return BoxFile(lines)


def read_truth(path: Path) -> dict[Key, Mapping[str, Json]]:
    """Return what drawn pictures show, as a file of truth says it."""
    truths: dict[Key, Mapping[str, Json]] = {}
    fix = "give the file that the study wrote below truth/, or let the pictures be drawn again"
    for number, row in _rows(path, fix):
        try:
            truths[str(row["story_id"]), row["seed"], int(row["panel"])] = dict(row["truth"])
        except (KeyError, TypeError, ValueError) as error:
            what = f"the line does not say what a picture shows: {reason_of(error)}"
            raise InputError([UserError(f"{path}:{number}", what=what, fix=fix)]) from error
    return truths


def boxes_of_truth(truth: Mapping[str, Any], record: StoryRecord, scene_index: int) -> Boxes:
    """Return the boxes that losses need of a drawn picture.

    Decisive are the marks of the scene's act, where none is annotated all that must be seen, and things that
    accepted answers to questions about that act name. Feelings are all marks of feelings.
    """
    scene = next(scene for scene in record.scenes if scene.scene_index == scene_index)
    act = {normalize_answer(text) for text in ((scene.action,) if scene.action else scene.visual_must_show)}
    answers = [
        normalize_answer(text)
        for question in record.questions
        if question.question_type == "action_visibility" and question.target_scene == scene_index
        for text in question.accepted_answers
    ]
    drawn = [(mark["kind"], normalize_answer(mark["text"]), tuple(mark["box"])) for mark in truth["drawn"]]
    decisive = [box for kind, text, box in drawn if text in act]
    if decisive:
        decisive += [
            box
            for kind, text, box in drawn
            if kind == "object" and any(contains_phrase(answer, text) for answer in answers)
        ]
    feelings = [box for kind, _, box in drawn if kind == "emotion"]
    heads = [tuple(face["box"]) for face in truth["faces"]]
    return Boxes(tuple(decisive), tuple(feelings), emblems=True, heads=_boxes(heads))


def _boxes(values: list[tuple[Any, ...]]) -> tuple[Box, ...]:
    return tuple((int(left), int(top), int(right), int(bottom)) for left, top, right, bottom in values)


def _rows(path: Path, fix: str) -> Iterator[tuple[int, Any]]:
    try:
        yield from enumerate(json_lines(path), 1)
    except (OSError, ValueError) as error:
        what = f"it cannot be read: {reason_of(error)}"
        raise InputError([UserError(str(path), what=what, fix=fix)]) from error


def _problem(where: str, error: ValidationError) -> UserError:
    detail = error.errors(include_url=False)[0]
    field_name = ".".join(map(str, detail["loc"]))
    fix = "see docs/drawn.md for the form of a file of boxes"
    return UserError(where, what=f"{field_name}: {detail['msg']}", fix=fix)
