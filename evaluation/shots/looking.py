"""Stages: what models see in the pictures of a story: people, crops, vectors, and views for judges."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from ...engine.stage import Item, Made, Outcome, Tools, batch_stage, stage
from ...errors import InputError, UserError, mismatch
from ...media.images import Picture, open_picture
from ...models.vision.needs import opened
from ...models.vision.store import Box, Definition, Detector, Rows, VectorStore, cut
from ...schemas.canonical import Json
from ...schemas.paths import format_path
from ...schemas.plain_files import open_plain, parse_json, reason_of, type_reason
from ...schemas.shots import ShotScript, TwoTexts
from ..judging.settings import keep_pictures, prepare_picture
from ..metrics.cids import characters_of, cids, shots_of
from ..metrics.story import FoundStory
from ..metrics.vectors import packed
from ..outputs.layout import VIDEOS
from .judging import CropSettings, DetectSettings, MatchSettings, PictureSettings, ViewSettings
from .load_stories import TextMeans, compare_texts

if TYPE_CHECKING:
    from PIL.Image import Image


# -- What was found in the pictures of an evaluation: the lines of ``images.jsonl``, read and checked
#
# Facts about a story come from the set: its type from the script, the tag of a character from its sheet, all
# else from ``stories.jsonl``. Where nothing says whether it is realistic, its human characters do, if all
# agree.

_FIX = "give the folder that fabula evaluate images wrote"
_problem = partial(mismatch, fix=_FIX)

MOST_BOXES = 64
"""Boxes of a picture that are kept, those of the highest scores."""
_BOX = 5  # left, top, right, bottom, score


def open_shot(file: str | Path) -> "Image":
    """Return a picture as RGB; of a clip, its first frame."""
    path = Path(file)
    if path.suffix.lower() in VIDEOS:
        from ...media.video import first_frame

        return first_frame(path).image
    return open_picture(path).image


class BoxRows:
    """A detector as a predictor, so that the store keeps its boxes: each picture is looked at once.

    A row holds :data:`MOST_BOXES` boxes of five numbers, ``nan`` behind the last.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.card = detector.card

    @property
    def identity(self) -> str:
        return f"{self._detector.identity}/boxes-{MOST_BOXES}"

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return the boxes of each picture, shape (images, 320)."""
        rows = np.full((len(images), MOST_BOXES, _BOX), np.nan, dtype=np.float32)
        for row, boxes in zip(rows, self._detector.detect(images), strict=True):
            best = sorted(boxes, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom))
            for index, box in enumerate(best[:MOST_BOXES]):
                row[index] = (box.left, box.top, box.right, box.bottom, box.score)
        return rows.reshape(len(images), MOST_BOXES * _BOX)


def boxes_of(row: Rows) -> list[list[float]]:
    """Return the boxes in a row of :class:`BoxRows`, highest score first."""
    table = row.reshape(MOST_BOXES, _BOX)
    return [[float(value) for value in line] for line in table[~np.isnan(table[:, 0])]]


def crop_of(image: "Image", box: Sequence[float], definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture in a box; None where no pixel is."""
    left, top, right, bottom = box[:4]
    return cut(image, Box(left, top, right, bottom), definition)


def boxes_are(value: Json) -> None:
    """Check what an archive says of boxes."""
    for number, boxes in {} if value is None else value["shots"].items():
        if not str(number).isdigit() or any(len(box) != _BOX for box in boxes):
            raise ValueError(f"the boxes of shot {number} are not lists of {_BOX} numbers")


Group = tuple[str, str]
"""What is told apart, such as ``gender``, and the kind, such as ``female``."""

STORY_KINDS = ("realism", "story_type", "culture", "style")
CHARACTER_KINDS = ("tag", "gender", "ethnicity")
UNSTATED = "not stated"
_REALISTIC, _HUMANS = "realistic_human", ("realistic_human", "unrealistic_human")


def kinds_of_story(story: FoundStory) -> dict[str, str]:
    """Return of which kind a story is, in each respect of :data:`STORY_KINDS`."""
    facts = story.facts
    realistic = facts.realistic if facts.realistic is not None else _by_tags(story)
    realism = None if realistic is None else "realistic" if realistic else "unrealistic"
    answers = dict(zip(STORY_KINDS, (realism, facts.story_type, facts.culture, facts.style), strict=True))
    return {name: value or UNSTATED for name, value in answers.items()}


def kinds_of_characters(story: FoundStory) -> Mapping[Group, frozenset[str]]:
    """Return which characters of a story are of each kind, in each respect of :data:`CHARACTER_KINDS`."""
    kinds: dict[Group, set[str]] = {}
    for key, tag in story.characters.items():
        facts = story.facts.characters.get(key)
        answers = (tag, facts.gender if facts else None, facts.ethnicity if facts else None)
        for name, value in zip(CHARACTER_KINDS, answers, strict=True):
            kinds.setdefault((name, value or UNSTATED), set()).add(key)
    return {group: frozenset(keys) for group, keys in sorted(kinds.items())}


def _by_tags(story: FoundStory) -> bool | None:
    humans = {tag == _REALISTIC for tag in story.characters.values() if tag in _HUMANS}
    return humans.pop() if len(humans) == 1 else None


IMAGES = "images.jsonl"
"""One line per method and story: boxes, vectors and values, from which everything but ratings is scored."""


def read_found(folder: str | Path) -> tuple[FoundStory, ...]:
    """Return the stories of an evaluation folder, sorted by method and story."""
    path = Path(folder) / IMAGES
    problems: list[UserError] = []
    stories: dict[tuple[str, str], FoundStory] = {}
    for where, line in _lines(path, problems):
        try:
            story = FoundStory.model_validate(parse_json(line))
            boxes_are(story.boxes)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                field = f"{where} {format_path(detail['loc'])}"
                problems.append(UserError(field, what=type_reason(detail), fix=_FIX))
            continue
        except ValueError as error:
            problems.append(_problem(where, "a line of an evaluation of images", str(error)))
            continue
        if (story.method, story.story_id) in stories:
            problems.append(_problem(where, "each story of a method once", f"{story.story_id} again"))
        stories[story.method, story.story_id] = story
    if problems:
        raise InputError(problems)
    return tuple(stories[key] for key in sorted(stories))


def _lines(path: Path, problems: list[UserError]) -> Iterator[tuple[str, bytes]]:
    try:
        with open_plain(path, follow=True) as handle:
            for number, line in enumerate(handle, 1):
                yield f"{path}:{number}", line
    except OSError as error:
        problems.append(_problem(str(path), f"the file {IMAGES} of an evaluation folder", reason_of(error)))


# -- Stage: pictures and crops as judges get them: encoded once, kept by content, without metadata


@stage(version=2, reads=("shots", "matches"), writes=("views",), libraries=("pillow",), settings=ViewSettings)
def prepare_views(item: Item, tools: Tools) -> Outcome:
    """Return the file in the run's store of every picture and every matched crop; none without judges."""
    settings = tools.own(ViewSettings)
    shots: dict[str, Json] = {}
    crops: list[Json] = []
    for shot in item["shots"] if settings.wanted else ():
        if shot["file"] is None:
            continue
        image = open_shot(shot["file"])
        shots[str(shot["number"])] = _view(image, settings, tools)
        for match in item["matches"]:
            if match["shot"] != shot["number"]:
                continue
            cut = image if match["box"] is None else crop_of(image, match["box"])
            if cut is not None:
                crops.append({**match, **_view(cut, settings, tools)})
    return Made({"views": {"shots": shots, "crops": crops}})


def _view(image: "Image", settings: ViewSettings, tools: Tools) -> dict[str, Json]:
    prepared = prepare_picture(Picture(image, "PNG"), settings)
    if tools.store is not None:
        keep_pictures([prepared], tools.store)
    return {"file": prepared.file_name, "width": prepared.width, "height": prepared.height}


# -- Stage: what models say of whole pictures: style, aesthetic value, classes, likeness to the shot's text


@batch_stage(
    version=3,
    reads=("story", "shots"),
    writes=("pictures",),
    libraries=("pillow", "numpy"),
    settings=PictureSettings,
    patience=20,
)
def encode_pictures(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return rows by model, one per picture in the order of ``numbers``; null for a model that is not named.

    What further metrics need stands there only if it is named, and with it which shots share a setting.
    References are encoded for style alone. Of the encoder of texts, cosines are kept.
    """
    settings = tools.own(PictureSettings)
    models = {
        "style": _model(settings.style, settings, "encoder"),
        "aesthetic": _model(settings.aesthetic, settings, "predictor"),
        "inception": _model(settings.inception, settings, "predictor"),
        "clip": _model(settings.clip, settings, "text encoder"),
        **{part: opened(name, settings, None) for part, name in settings.more.items()},
    }
    if not any(model is not None for model in models.values()):
        return [Made({"pictures": None}) for _ in items]
    with VectorStore.of_user() as store:
        means = _PictureModels(models, store, settings.batch)
        return [Made({"pictures": _pictures(item, means, settings.more)}) for item in items]


@dataclass(frozen=True)
class _PictureModels:
    """The models by what they are for, and what keeps their rows."""

    models: Mapping[str, Any]
    store: VectorStore
    batch: int

    def rows(self, name: str, images: "Sequence[Image]") -> Json:
        """Return the packed rows of pictures; null without a model."""
        model = self.models[name]
        return None if model is None else packed(self.store.rows(model, images, self.batch))


def _pictures(item: Item, means: _PictureModels, more: Collection[str]) -> Json:
    there = [shot for shot in item["shots"] if shot["file"] is not None]
    images = [open_shot(shot["file"]) for shot in there]
    numbers = [shot["number"] for shot in there]
    clip, likeness = means.models["clip"], None
    if clip is not None:
        likeness = compare_texts(item["story"], numbers, images, TextMeans(clip, means.store, means.batch))
    references = item["story"]["references"] if means.models["style"] is not None else {}
    return {
        "numbers": numbers,
        "models": {name: None if model is None else model.identity for name, model in means.models.items()},
        **{name: means.rows(name, images) for name in ("style", "aesthetic", "inception", *more)},
        "clip": likeness,
        "references": {
            key: means.rows("style", [open_shot(image["file"]) for image in some])
            for key, some in references.items()
        },
        **({"scenes": _scenes(item["story"])} if more else {}),
    }


def _scenes(story: Json) -> Json:
    """Return for each shot the number of the first one that has the same setting; one without is alone."""
    first: dict[str, int] = {}
    shots = ShotScript.model_validate(story["script"]).shots
    texts = [(shot.setting or TwoTexts()).of("en") or (shot.setting or TwoTexts()).of("ch") for shot in shots]
    return [
        first.setdefault(text.strip(), shot.index) if text.strip() else shot.index
        for shot, text in zip(shots, texts, strict=True)
    ]


def _model(name: str | None, settings: PictureSettings, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    return None if name is None else opened(name, settings, kind)


# -- Stage: where characters are in the pictures of a story, and in the references of its characters


@batch_stage(
    version=2,
    reads=("story", "shots"),
    writes=("boxes",),
    libraries=("pillow", "numpy"),
    settings=DetectSettings,
    patience=20,
)
def detect_characters(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the boxes of every picture, as left, top, right, bottom and score; null where nobody looks."""
    settings = tools.own(DetectSettings)
    if settings.model is None:
        return [Made({"boxes": None}) for _ in items]
    detector = BoxRows(opened(settings.model, settings, "detector"))
    with VectorStore.of_user() as store:
        return [Made({"boxes": _boxes(item, detector, store, settings.batch)}) for item in items]


def _boxes(item: Item, detector: BoxRows, store: VectorStore, batch: int) -> Json:
    def found(files: Sequence[str]) -> list[list[list[float]]]:
        images = [open_shot(file) for file in files]
        return [boxes_of(row) for row in store.rows(detector, images, batch)]

    there = [shot for shot in item["shots"] if shot["file"] is not None]
    shots = found([shot["file"] for shot in there])
    return {
        "model": detector.identity,
        "shots": {str(shot["number"]): boxes for shot, boxes in zip(there, shots, strict=True)},
        "references": {
            key: [boxes[:1] for boxes in found([image["file"] for image in images])]
            for key, images in item["story"]["references"].items()
        },
    }


# -- Stage: vectors of the crops of a story's pictures and of its characters' references
#
# A reference is cropped to its best box. Where no reference of a character has a box, or no crop of any has a
# vector, all of them count whole, as the public code has it; a reference without a box beside others that
# have one has no vector.


@dataclass(frozen=True)
class _CropModels:
    """The encoders by name, and what keeps their vectors."""

    models: Mapping[str, Any]
    store: VectorStore
    settings: CropSettings

    def rows(self, name: str, images: "Sequence[Image | None]") -> Rows:
        """Return a row for every picture, ``nan`` where there is none."""
        there = [index for index, image in enumerate(images) if image is not None]
        some = [image for image in images if image is not None]
        made = self.store.rows(self.models[name], some, self.settings.batch)
        rows = np.full((len(images), max(1, made.shape[1])), np.nan, dtype=np.float32)
        if there:
            rows[there] = made
        return rows

    def all(self, names: Sequence[str], images: "Sequence[Image | None]") -> dict[str, Rows]:
        """Return the rows of several encoders."""
        return {name: self.rows(name, images) for name in names}


@batch_stage(
    version=3,
    reads=("story", "shots", "boxes"),
    writes=("crops",),
    libraries=("pillow", "numpy"),
    settings=CropSettings,
    patience=20,
)
def encode_crops(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the vectors by encoder; null where nobody looked for characters or nobody encodes."""
    settings = tools.own(CropSettings)
    names = tuple(dict.fromkeys((*settings.pictures, *settings.faces)))
    if not names or all(item["boxes"] is None for item in items):
        return [Made({"crops": None}) for _ in items]
    models = {name: opened(name, settings, "encoder") for name in names}
    with VectorStore.of_user() as store:
        means = _CropModels(models, store, settings)
        return [
            Made({"crops": None if item["boxes"] is None else _crops(item, names, means)}) for item in items
        ]


def _crops(item: Item, names: Sequence[str], means: _CropModels) -> Json:
    sheets = item["story"]["script"].get("Characters", {})
    encoders = {key: means.settings.encoders(sheet.get("tag")) for key, sheet in sheets.items()}
    references, mirrors, whole = {}, {}, []
    for key, images in item["story"]["references"].items():
        opened_images = [open_shot(image["file"]) for image in images]
        boxes = item["boxes"]["references"][key]
        pictures = _cut_references(opened_images, boxes, means.settings.reference_crop)
        rows = means.all(encoders[key], pictures)
        if images and encoders[key] and not _known(rows):
            whole.append(key)
            pictures = [*opened_images]
            rows = means.all(encoders[key], pictures)
        references[key] = {name: packed(table) for name, table in rows.items()}
        mirrors[key] = _mirror(pictures, rows, means)
    shots = {}
    for shot in item["shots"]:
        if shot["file"] is not None:
            wanted = {name for key in shot["expected"] for name in encoders[key]}
            shots[str(shot["number"])] = _shot(item, shot, names, wanted, means)
    return {
        "encoders": {key: list(some) for key, some in encoders.items()},
        "models": {name: means.models[name].identity for name in names},
        "shots": shots, "references": references, "mirrors": mirrors, "whole_references": whole,
    }  # fmt: skip


def _cut_references(
    images: "Sequence[Image]", boxes: Sequence[Json], definition: Definition
) -> "list[Image | None]":
    """Return each reference cropped to its best box; None where it has none."""
    pairs = zip(images, boxes, strict=True)
    return [crop_of(image, some[0], definition) if some else None for image, some in pairs]


def _known(rows: Mapping[str, Rows]) -> bool:
    """Whether any picture has a vector by any of the encoders."""
    return any(bool((~np.isnan(table).any(axis=1)).any()) for table in rows.values())


def _mirror(pictures: "Sequence[Image | None]", rows: Mapping[str, Rows], means: _CropModels) -> Json:
    """Return the vectors of the mirror image of the first reference that an encoder knows."""
    from PIL import ImageOps

    for index, picture in enumerate(pictures):
        if picture is not None and any(not np.isnan(table[index]).any() for table in rows.values()):
            made = means.all(tuple(rows), [ImageOps.mirror(picture)])
            return {name: packed(table) for name, table in made.items()}
    return {}


def _shot(item: Item, shot: Json, names: Sequence[str], wanted: set[str], means: _CropModels) -> Json:
    """Return a shot's rows by encoder; those that tell nobody on stage have no vectors."""
    image = open_shot(shot["file"])
    cut = [crop_of(image, box) for box in item["boxes"]["shots"][str(shot["number"])]]
    nothing = np.full((len(cut), 1), np.nan, dtype=np.float32)
    return {name: packed(means.rows(name, cut) if name in wanted else nothing) for name in names}


# -- Stage: which crop of a shot shows which character on stage, for the judges of individual actions
#
# Scoring matches anew, under its own definition; this is what the judges were shown.


@stage(
    version=1,
    reads=("shots", "boxes", "crops"),
    writes=("matches",),
    libraries=("numpy", "scipy"),
    settings=MatchSettings,
)
def match_crops(item: Item, tools: Tools) -> Outcome:
    """Return shot, character and box of every match; a box that is null is the whole picture."""
    settings = tools.own(MatchSettings)
    if settings.whole:
        there = [shot for shot in item["shots"] if shot["file"] is not None]
        triples = [(shot["number"], key, None) for shot in there for key in shot["expected"]]
    elif item["crops"] is None:
        triples = []
    else:
        crops = item["crops"]
        matched = cids(characters_of(crops), shots_of(item["shots"], crops))
        boxes = item["boxes"]["shots"]
        triples = [
            (match.shot, match.character, boxes[str(match.shot)][match.crop])
            for match in matched.matches
            if match.crop is not None
        ]
    rows = [{"shot": shot, "character": key, "box": box} for shot, key, box in triples]
    return Made({"matches": rows})
