"""Planted losses: what can be taken from a storyboard, and which dimensions lose by it.

A loss is a value: what is done, what it hits, what it leaves alone, and what it needs. It hits questions of
the dimensions that it names which cannot do without the scenes that are changed (:func:`scenes_needed`); so
which dimensions of a story were hit is read off its questions. A dimension that is neither hit nor spared may
suffer with those who look, and proves nothing.

New here: the KathaTrace paper has no planted losses. They measure judges by interventions whose effect is
known, where people's answers are not at hand.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...engine.estimate import CallPlan
from ...errors import ConfigError
from ...evaluation.katha.requests import estimate_evaluation
from ...media.images import encode_image, open_picture
from ...models.generators.drawn.figures import flatten_face
from ...models.generators.drawn.images import encode_png
from ...models.generators.drawn.scene import NEUTRAL, Box, Canvas, Slot, all_slots, code_of
from ...models.options import options_for
from ...models.spec import parse_spec
from ...releases.loading import Release
from ...schemas.canonical import pretty_bytes, write_atomic
from ...schemas.katha import Question, StoryRecord
from ...schemas.text import tallied, tallies
from ...schemas.values import vocabulary
from ..compass.arms import BASE, FULL, arms_named
from ..compass.frozen import CELLS, Budget, budget, tuning_budget
from ..compass.judging import with_halves
from ..pictures import ORDERS, GenerateOptions, Order, estimate_generation, write_orders
from .evaluators.deriving import derive
from .evaluators.evaluator import evaluator_of
from .study import EVALUATION, GENERATION, Desk, Ordered, chosen_stories, judging_options, orders_of

if TYPE_CHECKING:
    from PIL.Image import Image

# -- Changing a picture where a loss is planted: boxes painted over, feelings made neutral, a corner nudged

RING = 2
"""Pixels around a box by whose colour it is painted over."""
_NUDGE = 8  # levels of 255 by which a control's corner differs


def opened(data: bytes) -> "Image":
    """Return a picture to be changed, as RGB."""
    return open_picture(data).image.copy()


def paint_over(image: "Image", boxes: Sequence[Box]) -> None:
    """Fill boxes, each with the median colour of the pixels around it."""
    import numpy as np

    pixels = np.asarray(image)
    for left, top, right, bottom in boxes:
        low, high = max(0, top - RING), min(image.height, bottom + RING)
        near, far = max(0, left - RING), min(image.width, right + RING)
        ring = np.ones((high - low, far - near), bool)
        ring[max(0, top - low) : bottom - low, max(0, left - near) : right - near] = False
        around = pixels[low:high, near:far][ring]
        levels = np.median(around, axis=0) if len(around) else (128, 128, 128)
        colour = tuple(int(level) for level in levels)
        image.paste(colour, (max(0, left), max(0, top), min(image.width, right), min(image.height, bottom)))


def flatten_emblems(image: "Image", boxes: Sequence[Box]) -> None:
    """Draw the emblem of no feeling over the emblems in boxes of a drawn picture."""
    canvas = Canvas(image)
    for box in boxes:
        canvas.emblem(_slot_in(canvas, box), "emotion", code_of(NEUTRAL))


def flatten_faces(image: "Image", heads: Sequence[Box]) -> None:
    """Take the feelings out of the faces of a drawn picture."""
    canvas = Canvas(image)
    for left, top, right, bottom in heads:
        flatten_face(canvas, (left, top, right, bottom))


def nudge_corner(image: "Image") -> None:
    """Change the colour of the lowest left pixels by little: another file, and nothing that is seen."""
    for x in range(min(2, image.width)):
        for y in range(max(0, image.height - 2), image.height):
            pixel = image.getpixel((x, y))
            assert isinstance(pixel, tuple)
            changed = tuple(int(level) + (_NUDGE if level < 128 else -_NUDGE) for level in pixel)
            image.putpixel((x, y), changed)


def encoded(image: "Image") -> bytes:
    """Return a changed picture as a PNG file, the same bytes everywhere."""
    return encode_png(image)


def _slot_in(canvas: Canvas, box: Box) -> Slot:
    """Return the place whose emblem a box holds: the nearest to its lower part, which the emblem fills."""
    x, y = (box[0] + box[2]) / 2, box[3] - (box[2] - box[0]) / 2
    return min(all_slots(canvas.frame), key=lambda slot: (slot.x - x) ** 2 + (slot.y - y) ** 2)


# -- Planted losses

Chooses = Literal["transition", "scene", "later scene", "nothing"]
"""What is drawn by chance: two neighbouring scenes, one scene, one but the first, or nothing."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a storyboard."""

    scene: int  # which scene it shows, from 1
    data: bytes = field(repr=False)  # the bytes of its file
    suffix: str  # the ending of its name, such as ``png``


@dataclass(frozen=True, slots=True)
class Boxes:
    """Where something is in a picture, in pixels of its file."""

    # what shows the scene's act: marks of it and of things that the answer names
    decisive: tuple[Box, ...] = ()
    feelings: tuple[Box, ...] = ()  # what shows a feeling
    # whether ``feelings`` are emblems of a drawn picture, which are replaced and not painted over
    emblems: bool = False
    heads: tuple[Box, ...] = ()  # heads of a drawn picture whose faces show a feeling
    # what shows why one scene follows another and what comes of it, for the transition that is hit
    links: tuple[Box, ...] = ()


class CannotPlant(Exception):
    """A loss cannot be planted in a storyboard; the message says why."""


Strip = tuple[Panel, ...]
Change = Callable[[Strip, tuple[int, ...], Sequence[Boxes]], Strip]
"""A storyboard, the scenes that are hit, and the boxes of each of them -> the changed storyboard."""


@dataclass(frozen=True)
class Loss:
    """Something that can be taken from a storyboard."""

    name: str  # by which studies name it
    title: str  # for tables
    definition: str  # what is done, in a sentence
    hits: tuple[str, ...]  # dimensions that lose
    spares: tuple[str, ...]  # dimensions that lose nothing; what is in neither may suffer
    chooses: Chooses  # what is drawn by chance in each story
    change: Change = field(repr=False)  # does it; raises CannotPlant
    needs_boxes: bool = False  # whether it must know where things are in the pictures

    def choices(self, record: StoryRecord) -> list[tuple[int, ...]]:
        """Return what may be hit in a story, as scenes: where a question of a hit dimension asks for it."""
        scenes = [scene.scene_index for scene in record.scenes]
        options: dict[Chooses, list[tuple[int, ...]]] = {
            "transition": [(each.from_scene, each.to_scene) for each in record.transitions],
            "scene": [(scene,) for scene in scenes],
            "later scene": [(scene,) for scene in scenes[1:]],
            "nothing": [()],
        }
        return [
            hit for hit in options[self.chooses] if self.chooses == "nothing" or self.questions(record, hit)
        ]

    def questions(self, record: StoryRecord, hit: Sequence[int]) -> tuple[Question, ...]:
        """Return the questions that lose: of a hit dimension, in need of all scenes that are hit."""
        if not hit:
            return ()
        return tuple(
            question
            for question in record.questions
            if question.question_type in self.hits and set(hit) <= set(scenes_needed(record, question))
        )

    def transitions(self, record: StoryRecord, hit: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the transitions that are hit: the one between two scenes, or those on both sides of one."""
        pairs = [(each.from_scene, each.to_scene) for each in record.transitions]
        if self.chooses == "transition":
            return tuple(pair for pair in pairs if pair == tuple(hit))
        if self.needs_boxes or not hit:
            return ()
        return tuple(pair for pair in pairs if hit[0] in pair)


def scenes_needed(record: StoryRecord, question: Question) -> tuple[int, ...]:
    """Return the scenes whose pictures a question cannot do without, in story order.

    ``action_visibility``: its target scene, else the last that holds evidence. ``causal`` and
    ``consequence``: both scenes of its transition, else of the one into its target scene, else out of it.
    ``emotional``: those of its evidence scenes (else its target scene) that have a feeling; where none has,
    both of its transition. ``temporal_order``: its evidence scenes, where it names fewer than two both of its
    transition. ``moral``: none, as the whole tells it.
    """
    kind, asked = question.question_type, scene_asked(question)
    pair = transition_asked(record, question)
    if kind == "action_visibility":
        return () if asked is None else (asked,)
    if kind == "emotional":
        felt = {scene.scene_index for scene in record.scenes if scene.emotion}
        named = question.evidence_scenes or (() if asked is None else (asked,))
        return tuple(sorted(felt & set(named))) or pair
    if kind == "temporal_order":
        named = tuple(sorted(set(question.evidence_scenes)))
        return named if len(named) > 1 else tuple(question.target_transition or ())
    return pair if kind in ("causal", "consequence") else ()


def scene_asked(question: Question) -> int | None:
    """Return the scene that a question is about: its target, else the last that holds evidence."""
    if question.target_scene is not None:
        return question.target_scene
    return max(question.evidence_scenes, default=None)


def transition_asked(record: StoryRecord, question: Question) -> tuple[int, ...]:
    """Return the transition that a question is about, as its two scenes; none where the story has none."""
    pairs = [(each.from_scene, each.to_scene) for each in record.transitions]
    if question.target_transition is not None and question.target_transition in pairs:
        return question.target_transition
    scene = scene_asked(question)
    beside = [pair for pair in pairs if pair[1] == scene] + [pair for pair in pairs if pair[0] == scene]
    return beside[0] if beside else ()


def loss_named(name: str) -> Loss:
    for loss in LOSSES:
        if loss.name == name:
            return loss
    there = ", ".join(loss.name for loss in LOSSES)
    raise ConfigError(
        f"loss {name}", what=f"there is no such loss; there are: {there}", fix="use one of them"
    )


def _position_of(strip: Strip, scene: int) -> int:
    for position, panel in enumerate(strip):
        if panel.scene == scene:
            return position
    raise CannotPlant(f"no picture shows scene {scene}")


def _swap(strip: Strip, hit: tuple[int, ...], _boxes: Sequence[Boxes]) -> Strip:
    first, second = (_position_of(strip, scene) for scene in hit)
    changed = list(strip)
    changed[first], changed[second] = strip[second], strip[first]
    return tuple(changed)


def _remove(strip: Strip, hit: tuple[int, ...], _boxes: Sequence[Boxes]) -> Strip:
    if len(strip) < 3:
        raise CannotPlant("fewer than two pictures would be left")
    position = _position_of(strip, hit[0])
    return (*strip[:position], *strip[position + 1 :])


def _repeat(strip: Strip, hit: tuple[int, ...], _boxes: Sequence[Boxes]) -> Strip:
    position = _position_of(strip, hit[0])
    return (*strip[:position], strip[position - 1], *strip[position + 1 :])


def _with_picture(strip: Strip, position: int, data: bytes) -> Strip:
    return (*strip[:position], Panel(strip[position].scene, data, "png"), *strip[position + 1 :])


def _erase(strip: Strip, hit: tuple[int, ...], boxed: Sequence[Boxes]) -> Strip:
    position, boxes = _position_of(strip, hit[0]), boxed[0]
    if not boxes.decisive:
        raise CannotPlant(f"the picture of scene {hit[0]} has nothing that is known to show its act")
    image = opened(strip[position].data)
    paint_over(image, boxes.decisive)
    return _with_picture(strip, position, encoded(image))


def _flatten(strip: Strip, hit: tuple[int, ...], boxed: Sequence[Boxes]) -> Strip:
    position, boxes = _position_of(strip, hit[0]), boxed[0]
    if not boxes.feelings:
        raise CannotPlant(f"the picture of scene {hit[0]} has nothing that is known to show a feeling")
    image = opened(strip[position].data)
    if boxes.emblems:
        flatten_emblems(image, boxes.feelings)
        flatten_faces(image, boxes.heads)
    else:
        paint_over(image, boxes.feelings)
    return _with_picture(strip, position, encoded(image))


def _unlink(strip: Strip, hit: tuple[int, ...], boxed: Sequence[Boxes]) -> Strip:
    positions = [_position_of(strip, scene) for scene in hit]
    if not any(boxes.links for boxes in boxed):
        raise CannotPlant(f"nothing is known to show how scene {hit[1]} follows scene {hit[0]}")
    for position, boxes in zip(positions, boxed, strict=True):
        if boxes.links:
            image = opened(strip[position].data)
            paint_over(image, boxes.links)
            strip = _with_picture(strip, position, encoded(image))
    return strip


def _leave(strip: Strip, _hit: tuple[int, ...], _boxes: Sequence[Boxes]) -> Strip:
    changed = []
    for panel in strip:
        image = opened(panel.data)
        nudge_corner(image)
        changed.append(Panel(panel.scene, encoded(image), "png"))
    return tuple(changed)


DIMENSIONS = vocabulary("question_type").values
_SHOWN = ("action_visibility", "causal", "emotional", "consequence", "temporal_order")


def _all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in DIMENSIONS if name not in names)


LOSSES: tuple[Loss, ...] = (
    Loss(
        "swapped", "Two frames swapped", "The pictures of two neighbouring scenes change places.",
        ("temporal_order",), ("action_visibility", "emotional", "moral"), "transition", _swap,
    ),
    Loss(
        "removed", "Frame removed", "The picture of a scene is taken out; the storyboard has one less.",
        _SHOWN, (), "scene", _remove,
    ),
    Loss(
        "repeated", "Frame repeated", "The picture of a scene is replaced by a copy of the one before it.",
        _SHOWN, (), "later scene", _repeat,
    ),
    Loss(
        "object_erased", "Decisive object erased",
        "What shows the act of a scene, and things that the answer names, are painted over.",
        ("action_visibility",), ("emotional", "temporal_order", "moral"), "scene", _erase, needs_boxes=True,
    ),
    Loss(
        "emotion_flattened", "Emotion flattened", "What shows a feeling in a picture is made neutral.",
        ("emotional",), _all_but("emotional"), "scene", _flatten, needs_boxes=True,
    ),
    Loss(
        "transition_erased", "Transition erased",
        "What shows why one scene follows another, and what comes of it, is painted over in both pictures.",
        ("causal", "consequence"), ("action_visibility", "temporal_order"), "transition", _unlink,
        needs_boxes=True,
    ),
    Loss(
        "none", "No loss (control)",
        "Nothing is lost: each picture is stored anew, four pixels in a corner a little lighter or darker.",
        (), _all_but(), "nothing", _leave,
    ),
)  # fmt: skip
"""All losses; the control is the last."""
NAMES = tuple(loss.name for loss in LOSSES)


# -- What a study would ask for, before anything is asked: pictures, calls, USD and hours

# -- What Semantic Compass, other evaluators and planted losses of a study would ask for at most

OF_PICTURES = ("judge_images", "judge_both", "judge_contrasts")
"""Stages that ask about pictures: those that ask about the story alone ask once for all methods."""


@dataclass(frozen=True, slots=True)
class Most:
    """What a part of a study asks for at most."""

    part: str  # of the study
    stage: str  # what of it
    calls: int  # of judges; of a writer of questions one a story
    usd: float | None  # what they cost; None where the price is not known
    pictures: int = 0  # that have to be made besides


def compass_budgets(desk: Desk) -> tuple[Budget, Budget]:
    """Return what tuning and applying Semantic Compass ask for at most."""
    part = desk.study.compass
    assert part is not None
    release, halves = with_halves(desk.release, selection_set=part.selection_set)
    seeds, each = len(desk.study.seeds), len(desk.study.judges)
    tuned = _records(desk, release, (part.tuned_on,))
    reported = _records(desk, release, desk.study.split)
    return (
        tuning_budget(tuned, halves, seeds, each, part.weakest),
        budget(reported, halves, arms_named(part.arms), seeds, each, part.weakest),
    )


def compass_most(desk: Desk, each: float | None) -> list[Most]:
    """Return what Semantic Compass asks for at most.

    ``each``: USD of one call of a judge about pictures; None where the price is not known.
    """
    tuning, applying = compass_budgets(desk)
    whole = [applying.arms[name].reporting for name in (BASE, FULL) if name in applying.arms]
    reporting = applying.together.reporting + applying.text + sum(whole) * (len(CELLS) - 1)
    rows = {
        "tune": (tuning.together.calls, tuning.together.pictures),
        "apply": (applying.together.calls, applying.together.pictures),
        "report": (reporting, 0),
    }
    return [
        Most("compass", stage, calls, None if each is None else calls * each, pictures)
        for stage, (calls, pictures) in rows.items()
    ]


def other_most(desk: Desk, outputs: Mapping[str, Path], scratch: Path) -> list[Most]:
    """Return what other evaluators and planted losses ask for at most, as rules would make the questions.

    ``outputs``: method -> pictures, or what stands for them.
    """
    releases = {"katha": desk.release.path}
    rows = []
    for name in desk.study.evaluators:
        evaluator = evaluator_of(name)
        if evaluator.reuses:
            continue
        releases[name] = derive(desk.release, evaluator, scratch / "questions" / name, desk.study.split)
        rows += _estimated(desk, "evaluators", name, releases[name], list(outputs.values()))
    plants = desk.study.plants
    for name, release in releases.items() if plants is not None else ():
        losses = len(plants.losses or LOSSES)  # type: ignore[union-attr]
        shown = [outputs[plants.method]]  # type: ignore[union-attr]
        rows += [
            replace(row, calls=row.calls * losses, usd=None if row.usd is None else row.usd * losses)
            for row in _estimated(desk, "plants", name, release, shown, OF_PICTURES)
        ]
    return rows


def _estimated(
    desk: Desk, part: str, name: str, release: Path, outputs: Sequence[Path], stages: Iterable[str] = ()
) -> list[Most]:
    options = judging_options(desk, desk.folder / part / name)
    if part == "evaluators" or name != "katha":
        options = replace(options, questions_only=True)
    plan = estimate_evaluation(release, outputs, desk.folder / part / name, options)
    chosen = [stage for stage in plan.stages if not stages or stage.stage in stages]
    costs = [stage.cost for stage in chosen]
    usd = None if None in costs else sum(cost for cost in costs if cost is not None)
    return [Most(part, name, sum(stage.calls for stage in chosen), usd)]


def _records(desk: Desk, release: Release, splits: Sequence[str]) -> list[StoryRecord]:
    names = {story for split in splits for story in chosen_stories(desk.study, release, split)}
    return [record for record in release.records if record.story_id in names]


# --

STAND_IN = (512, 512)
"""Width and height of the grey pictures that stand for those that are not made yet."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one model would be asked in one part of a study."""

    part: str  # of the study
    stage: str  # that asks
    model: str  # spec of the model
    calls: int  # expected calls; of a generator one for each picture
    known: int  # calls that a journal answers for nothing, besides
    usd: float | None  # expected cost; None where the price is not known
    # at the model's limit of requests per minute; None where it has none, as nobody knows
    hours: float | None


@dataclass(frozen=True, slots=True)
class StudyForecast:
    """What a study would ask for."""

    cells: dict[str, int]  # methods with their storyboards, stories and seeds
    pictures: int  # how many pictures there will be
    rows: tuple[Forecast, ...]  # what each model would be asked
    most: tuple[Most, ...] = ()  # what Semantic Compass, evaluators and planted losses ask for at most
    arms: tuple[str, ...] = ()  # what each arm of Semantic Compass takes at most, by itself, in words
    notes: tuple[str, ...] = ()  # what is not counted, and why

    @property
    def usd(self) -> float | None:
        """Expected USD in all; None where a price is not known."""
        costs = [*(row.usd for row in self.rows), *(row.usd for row in self.most)]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def as_json(self) -> dict[str, Any]:
        return {
            "cells": self.cells, "pictures": self.pictures, "calls": sum(row.calls for row in self.rows),
            "usd": self.usd, "rows": [asdict(row) for row in self.rows],
            "most": [asdict(row) for row in self.most], "arms": list(self.arms), "notes": list(self.notes),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        boards = sum(self.cells.values())
        yield tallies({"methods": len(self.cells), "storyboards": boards, "pictures": self.pictures})
        width = max((len(row.stage) for row in self.rows), default=5)
        line = f"{{:12}}  {{:{width}}}  {{:>8}}  {{:>10}}  {{:>8}}  {{}}".format
        yield line("part", "stage", "calls", "USD", "hours", "model")
        for row in self.rows:
            usd = "unknown" if row.usd is None else f"{row.usd:.4f}"
            hours = "unknown" if row.hours is None else f"{row.hours:.2f}"
            yield line(row.part, row.stage, row.calls, usd, hours, row.model)
        for most in self.most:
            usd = "unknown" if most.usd is None else f"{most.usd:.4f}"
            pictures = f"and {tallied(most.pictures, 'pictures')}" if most.pictures else ""
            yield line(most.part, most.stage, f"<= {most.calls}", usd, "", pictures).rstrip()
        if self.arms:
            yield "each arm of Semantic Compass by itself:"
            yield from self.arms
        known = sum(row.known for row in self.rows)
        total = "price unknown" if self.usd is None else f"about {self.usd:.4f} USD"
        calls = sum(row.calls for row in self.rows) + sum(row.calls for row in self.most)
        yield f"{tallied(calls, 'calls')} at most, {total}" + (
            f"; {known} more are answered from journals" if known else ""
        )
        if any(row.hours is None for row in self.rows):
            yield "hours are known where a model's settings have requests_per_minute"
        yield from (f"note: {note}" for note in self.notes)


def forecast(desk: Desk) -> StudyForecast:
    """Return what a study would ask for now. Nothing is asked.

    Judges are forecast on grey pictures of the size that was ordered, where pictures are not there yet.
    """
    ordered = orders_of(desk.study, desk.release)
    cells: dict[str, int] = defaultdict(int)
    for order in ordered.orders:
        cells[order.method] += 1
    cells |= {method: len(boards) for method, boards in desk.finished_boards().items()}
    with tempfile.TemporaryDirectory(prefix="fabula-forecast-") as name:
        scratch = Path(name)
        write_orders(scratch / ORDERS, ordered.orders)
        run = desk.folder / GENERATION
        options = GenerateOptions(**desk.run_options(run), replace_sources=True)
        rows = []
        if ordered.orders:
            rows = _rows(desk, "pictures", estimate_generation(scratch / ORDERS, run, options))
        outputs = _stand_ins(desk, ordered, scratch)
        judging = judging_options(desk, desk.folder / EVALUATION)
        plan = estimate_evaluation(desk.release.path, outputs, desk.folder / EVALUATION, judging)
        judged = _rows(desk, "judgements", plan)
        most = other_most(desk, dict(zip(desk.study.methods(), outputs, strict=True)), scratch)
        arms: tuple[str, ...] = ()
        if desk.study.compass is not None:
            most = [*compass_most(desk, _each(judged)), *most]
            arms = tuple(compass_budgets(desk)[1].lines())
    notes = ["repairs are not counted"]
    if desk.study.question_writer is not None:
        notes.append("questions of evaluators that a model writes are counted as rules would make them")
    return StudyForecast(dict(cells), ordered.pictures, (*rows, *judged), tuple(most), arms, tuple(notes))


def _each(judged: Sequence[Forecast]) -> float | None:
    """Return the USD of a call of a judge about pictures."""
    shown = [row for row in judged if row.stage == "judge_images"]
    calls = sum(row.calls + row.known for row in shown)
    if not calls or any(row.usd is None for row in shown):
        return None
    return sum(row.usd or 0.0 for row in shown) / calls


def _rows(desk: Desk, part: str, plan: CallPlan) -> list[Forecast]:
    rows = []
    for stage in plan.stages:
        options = options_for(parse_spec(stage.model), {**desk.options.models, **desk.models})
        limit = options.requests_per_minute
        hours = None if limit is None else stage.calls / limit / 60
        rows.append(Forecast(part, stage.stage, stage.model, stage.calls, stage.known, stage.cost, hours))
    return rows


def _stand_ins(desk: Desk, ordered: Ordered, scratch: Path) -> list[Path]:
    """Return a folder of outputs for each method: its own where it is there, else grey pictures."""
    folders: list[Path] = []
    numbers = count()
    for method in desk.study.methods():
        if desk.outputs(method).is_dir():
            folders.append(desk.outputs(method))
            continue
        folder = scratch / method
        orders = [order for order in ordered.orders if order.method == method]
        _grey(folder, [order for order in orders if order.story_id in desk.reported], numbers)
        seeds = sorted({order.seed for order in orders if order.seed is not None})
        manifest = {"method": method, **({"seeds": seeds} if seeds else {})}
        write_atomic(folder / "outputs.json", [pretty_bytes(manifest)])
        folders.append(folder)
    return folders


def _grey(folder: Path, orders: Sequence[Order], numbers: Iterator[int]) -> None:
    """Write pictures of the size that was ordered; by its number no storyboard has the pixels of another."""
    from PIL import Image

    for order, number in zip(orders, numbers, strict=False):
        size = (order.width or STAND_IN[0], order.height or STAND_IN[1])
        folder_of = folder / order.story_id / ("" if order.seed is None else f"seed_{order.seed}")
        folder_of.mkdir(parents=True, exist_ok=True)
        for panel in order.panels:
            shade = (number % 256, number // 256 % 256, panel.number % 256)
            data = encode_image(Image.new("RGB", size, shade), format="png")
            (folder_of / f"{panel.number:02}.png").write_bytes(data)
