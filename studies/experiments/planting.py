"""Planting losses: the outputs of one method as new methods, each with one known loss a story.

What was done stands in ``plants.jsonl`` beside the new folders, which judges never see. Which scene or
transition of a story is hit follows from the master seed, story and loss, the same for every generation seed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ...errors import InputError, TargetError, UserError
from ...evaluation.outputs.layout import Output, nothing_to_judge
from ...evaluation.outputs.named import MANIFEST, read_manifest
from ...evaluation.outputs.storyboards import OutputsManifest, Storyboards, check_outputs
from ...models.generators.drawn.scene import Box
from ...releases.loading import Release
from ...schemas.canonical import Json, digest, jsonl_lines, pretty_bytes, sha256_file, write_atomic, writing
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import MISSHAPEN, explaining, json_lines, read_plain, reason_of
from ...schemas.text import contains_phrase, normalize_answer, tallied
from ...schemas.values import Own
from .losses import LOSSES, Boxes, CannotPlant, Loss, Panel, Strip, loss_named
from .study import MASTER_SEED

# -- Where things are in pictures: read off what drawn pictures show, or from a file of boxes for others
#
# A file of boxes is JSON Lines: ``{"story_id", "seed", "panel", "kind", "box"}``; ``kind`` is ``decisive``
# for what shows the act of the scene, ``feeling``, or ``transition`` for what shows why another scene
# follows it or what came of the one before; ``box`` is left, top, right and bottom in pixels.

Key = tuple[str, int | None, int]
"""Story, generation seed and panel."""


class BoxLine(Own):
    story_id: str = Field(description="The story.")
    seed: int | None = Field(default=None, description="Generation seed; null where there is one storyboard.")
    panel: int = Field(ge=1, description="Number of the picture, from 1.")
    kind: Literal["decisive", "feeling", "transition"] = Field(description="What the box shows.")
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
        lines = self.lines.get((story_id, seed, panel), ())
        return Boxes(
            tuple(line.box for line in lines if line.kind == "decisive"),
            tuple(line.box for line in lines if line.kind == "feeling"),
            links=tuple(line.box for line in lines if line.kind == "transition"),
        )


def read_boxes(path: Path) -> BoxFile:
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
        what = "the line does not say what a picture shows"
        with explaining(f"{path}:{number}", fix, what=what, of=MISSHAPEN):
            truths[str(row["story_id"]), row["seed"], int(row["panel"])] = dict(row["truth"])
    return truths


def boxes_of_truth(
    truth: Mapping[str, Any], record: StoryRecord, scene_index: int, hit: Sequence[int] = ()
) -> Boxes:
    """Return the boxes that losses need of a drawn picture.

    ``hit``: the scenes that are hit; where they are a transition, marks of its cause and outcome are links.
    Decisive are the marks of the scene's act, where none is annotated all that must be seen, and things
    that accepted answers to questions about that act name. Feelings are all marks of feelings.
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
    shown = [
        normalize_answer(text)
        for each in record.transitions
        if (each.from_scene, each.to_scene) == tuple(hit)
        for text in (each.causality, each.consequence)
        if text
    ]
    links = [box for kind, text, box in drawn if kind in ("cause", "consequence") and text in shown]
    return Boxes(tuple(decisive), tuple(feelings), emblems=True, heads=_boxes(heads), links=tuple(links))


def _boxes(values: list[tuple[Any, ...]]) -> tuple[Box, ...]:
    return tuple((int(left), int(top), int(right), int(bottom)) for left, top, right, bottom in values)


def _rows(path: Path, fix: str) -> Iterator[tuple[int, Any]]:
    with explaining(path, fix):
        yield from enumerate(json_lines(path), 1)


def _problem(where: str, error: ValidationError) -> UserError:
    return UserError(where, what=reason_of(error), fix="see docs/drawn.md for the form of a file of boxes")


# -- Planting losses

PLANTS, UNPLANTED = "plants.jsonl", "unplanted.jsonl"
"""What was planted, one line a storyboard; what could not be, with the reason."""
PLANTING = "planting.json"
"""What the folder was made from."""


@dataclass(frozen=True, slots=True)
class PlantOptions:
    """How to plant."""

    losses: Sequence[str] = ()  # names of the losses; all where none is named
    split: Sequence[str] = ()  # only stories of these splits; all where none is named
    truth: Path | None = None  # what drawn pictures show, as ``truth/METHOD.jsonl`` has it
    boxes: Path | None = None  # the same for other pictures; see :mod:`.boxes`
    seed: int = MASTER_SEED  # master seed, which decides what is hit


@dataclass(frozen=True, slots=True)
class Planted:
    """What was planted."""

    # loss -> the folder of its outputs; a loss that could be planted nowhere has none
    methods: Mapping[str, Path]
    rows: tuple[dict[str, Json], ...] = field(repr=False)  # lines of ``plants.jsonl``
    unplanted: tuple[dict[str, Json], ...] = field(repr=False)  # lines of ``unplanted.jsonl``

    def told(self) -> str:
        """Return how often each loss was planted, in words."""
        counts = Counter(str(row["loss"]) for row in self.rows)
        missed = Counter(str(row["loss"]) for row in self.unplanted)
        lines = [
            f"{name}: {tallied(counts[name], 'storyboards')}"
            + (f", not in {missed[name]}" if missed[name] else "")
            for name in dict.fromkeys([*counts, *missed])
        ]
        return "\n".join(lines)


def plant(outputs: Path, release: Release, out: Path, options: PlantOptions = PlantOptions()) -> Planted:
    """Make a method of each loss from the outputs of one method.

    A folder that was begun with the same outputs and options is continued; files that are right stay.
    """
    losses = [loss_named(name) for name in options.losses] or list(LOSSES)
    records = [record for record in release if not options.split or record.split in options.split]
    boards = check_outputs(outputs, records, known=release)
    if not boards.valid:
        raise nothing_to_judge("storyboard", [boards])
    known = Known(
        boards.method, boards,
        read_manifest(outputs, OutputsManifest),
        {} if options.truth is None else read_truth(options.truth),
        BoxFile({}) if options.boxes is None else read_boxes(options.boxes),
    )  # fmt: skip
    about = {
        "method": boards.method, "outputs": boards.sha256, "losses": [loss.name for loss in losses],
        "seed": options.seed, "stories": sorted(record.story_id for record in records),
        "questions": digest([record.as_json()["questions"] for record in records]),
        "truth": None if options.truth is None else sha256_file(options.truth),
        "boxes": None if options.boxes is None else sha256_file(options.boxes),
    }  # fmt: skip
    with writing(out):
        return _write(out, about, losses, known, {record.story_id: record for record in records})


@dataclass(frozen=True)
class Known:
    """What is known of the outputs that losses are planted in."""

    method: str  # their name
    boards: Storyboards  # the storyboards, checked
    manifest: OutputsManifest  # what ``outputs.json`` says
    # story, seed and panel -> what a drawn picture shows
    truth: Mapping[tuple[str, int | None, int], Mapping[str, Json]] = field(repr=False)
    boxes: "BoxFile" = field(repr=False)  # boxes that somebody drew

    def strip(self, board: Output, record: StoryRecord) -> Strip:
        if board.codes:
            raise CannotPlant(f"the storyboard cannot be judged: {', '.join(board.codes)}")
        scenes = self.manifest.scenes_of(record)
        if None in scenes:
            raise CannotPlant("it is not known which scene each picture shows: there is not one for each")
        return tuple(
            Panel(scene or 0, read_plain(file.file, follow=True), file.file.suffix.lstrip(".").lower())
            for scene, file in zip(scenes, board.files, strict=True)
        )

    def boxes_in(self, board: Output, record: StoryRecord, hit: Sequence[int]) -> tuple[Boxes, ...]:
        """Return where things are in the picture of each scene that is hit."""
        order = [scene.scene_index for scene in record.scenes]
        located = []
        for scene in hit:
            panel = order.index(scene) + 1
            truth = self.truth.get((board.unit, board.seed, panel))
            located.append(
                self.boxes.of(board.unit, board.seed, panel)
                if truth is None
                else boxes_of_truth(truth, record, scene, hit)
            )
        return tuple(located)


def _write(
    out: Path, about: Mapping[str, Json], losses: Sequence[Loss], known: Known,
    records: Mapping[str, StoryRecord],
) -> Planted:  # fmt: skip
    _begin(out, about)
    rows: list[dict[str, Json]] = []
    unplanted: list[dict[str, Json]] = []
    methods: dict[str, Path] = {}
    for loss in losses:
        folder = out / f"{known.method}-{loss.name}"
        panels: dict[str, int] = {}
        for board in known.boards.outputs:
            record = records[board.unit]
            head = {"story_id": board.unit, "seed": board.seed, "loss": loss.name, "base": known.method}
            try:
                hit = chosen(loss, record, int(about["seed"]))
                strip = known.strip(board, record)
                changed = loss.change(strip, hit, known.boxes_in(board, record, hit))
            except CannotPlant as reason:
                unplanted.append({**head, "reason": str(reason)})
                continue
            _write_strip(folder, board, changed)
            if len(changed) != len(record.scenes):
                panels[board.unit] = len(changed)
            rows.append({**head, "method": folder.name, **_row(loss, record, hit, changed)})
        if any(row["method"] == folder.name for row in rows):
            _finish(folder, known, panels)
            methods[loss.name] = folder
    write_atomic(out / UNPLANTED, jsonl_lines(unplanted))
    write_atomic(out / PLANTS, jsonl_lines(rows))
    return Planted(methods, tuple(rows), tuple(unplanted))


def chosen(loss: Loss, record: StoryRecord, seed: int) -> tuple[int, ...]:
    """Return the scenes of a story that a loss hits, drawn by the master seed."""
    choices = loss.choices(record)
    if not choices:
        raise CannotPlant(f"no question of the story is of what it hits: {', '.join(loss.hits)}")
    return min(choices, key=lambda hit: digest([seed, "plant", record.story_id, loss.name, list(hit)]))


def _row(loss: Loss, record: StoryRecord, hit: tuple[int, ...], changed: Strip) -> dict[str, Json]:
    questions = loss.questions(record, hit)
    transitions = loss.transitions(record, hit)
    names = {question.question_type for question in questions}
    return {
        "panels": list(hit),
        "transition": list(transitions[0]) if len(transitions) == 1 else None,
        "transitions": [list(pair) for pair in transitions],
        "dimensions": [name for name in loss.hits if name in names],
        "questions": sorted(question.question_id for question in questions),
        "shown": [panel.scene for panel in changed],
    }


def _begin(out: Path, about: Mapping[str, Json]) -> None:
    """Make the folder, or see that it was made from the same."""
    mark, note = out / PLANTING, pretty_bytes(dict(about))
    if mark.is_file():
        if read_plain(mark) != note:
            raise TargetError(
                str(out), what="losses of other outputs, questions or options were planted into this folder",
                fix="choose another folder with --out",
            )  # fmt: skip
        return
    if out.is_dir() and any(not path.name.startswith(f".{PLANTING}.") for path in out.iterdir()):
        raise TargetError(str(out), what="the folder holds something else", fix="choose another with --out")
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(mark, [note])


def _write_strip(folder: Path, board: Output, strip: Strip) -> None:
    below = folder / board.unit / ("" if board.seed is None else f"seed_{board.seed}")
    below.mkdir(parents=True, exist_ok=True)
    wanted = {f"{number:02}.{panel.suffix}": panel.data for number, panel in enumerate(strip, 1)}
    for path in below.iterdir():
        if path.name not in wanted and path.is_file():
            path.unlink()  # what a killed call left half written
    for name, data in wanted.items():
        if not (below / name).is_file() or read_plain(below / name) != data:
            write_atomic(below / name, [data])


def _finish(folder: Path, known: Known, panels: Mapping[str, int]) -> None:
    """Write ``outputs.json``: the seeds, and how many pictures stories with one less have."""
    manifest: dict[str, Json] = {"method": folder.name}
    seeds = [seed for seed in known.boards.seeds if seed is not None]
    manifest |= {"seeds": seeds} if seeds else {}
    manifest |= {"panels": dict(panels)} if panels else {}
    write_atomic(folder / MANIFEST, [pretty_bytes(manifest)])
