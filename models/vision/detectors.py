"""Detectors: Grounding DINO (Swin-T) finds what a word names, YOLO11 finds people.

YOLO11 comes through ultralytics, which is under AGPL-3.0: an extra, behind a protocol.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import ConfigError, needing
from .networks import IMAGENET_MEAN, IMAGENET_STD, loaded_card, settled
from .store import Box, Card, Masks, Points, Rows, identity_of, suppressed
from .weights import (
    Place,
    Source,
    fetch_file,
    library,
    load_pretrained,
    missing,
    needed,
    number_type,
    stored,
    told,
)

if TYPE_CHECKING:
    from PIL.Image import Image

DINO_SOURCE = Source(
    "IDEA-Research/grounding-dino-tiny", "a2bb814dd30d776dcf7e30523b00659f4f141c71",
    also=("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"),
    size=690_000_000,
)  # fmt: skip
DINO_SIDES = (800, 1333)
"""Pixels of the shorter side, and most of the longer one."""
DINO_CARD = Card(
    "grounding-dino-swin-t", DINO_SOURCE.repo, DINO_SOURCE.revision,
    f"RGB, shorter side {DINO_SIDES[0]}, longer at most {DINO_SIDES[1]}, bilinear, mean {IMAGENET_MEAN}, "
    f"std {IMAGENET_STD}", 0, 1e-2, "Apache-2.0",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What is looked for, and what counts as found."""

    prompt: str  # the word or phrase, without a full stop
    threshold: float  # a box is kept if its score is above it
    suppression: float | None  # most overlap (intersection over union) with a better box; None keeps all
    sides: tuple[int, int]  # pixels of the shorter side, and most of the longer one

    @property
    def text(self) -> str:
        """What the text tower reads: lower case, with a full stop."""
        return f"{self.prompt.strip().lower().rstrip('.')}."


_WORDS = ("input_ids", "token_type_ids", "attention_mask")


class Features(NamedTuple):
    """What the backbone makes of one picture: maps with their masks, and positions, level by level."""

    maps: tuple[tuple[Any, Any], ...]
    positions: tuple[Any, ...]


class GroundingDino:
    """An open-vocabulary detector.

    ``module``: of transformers, in evaluation mode. ``tokenizer``: of the same model. ``asked``: what is
    looked for where no texts are given.
    """

    def __init__(self, card: Card, place: Place, module: Any, tokenizer: Any, asked: Asked) -> None:  # noqa: ANN401 - the library's own
        self.card, self.place = card, place
        self._module, self._tokenizer, self._asked = module, tokenizer, asked
        self._backbone = kept_backbone(module)

    @property
    def identity(self) -> str:
        asked = self._asked
        most = "all" if asked.suppression is None else f"{asked.suppression:g}"
        plain = identity_of(self.card, self.place.dtype, self.place.device)
        return f"{plain}/{asked.text}/{asked.threshold:g}/{most}/{asked.sides[0]}-{asked.sides[1]}"

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first.

        Pictures of one size go through the network together, so that none is padded and what is found in
        one does not depend on the others.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        for index, image in enumerate(images):
            groups.setdefault(fitted(image.size, self._asked.sides), []).append(index)
        boxes_of: dict[int, tuple[Box, ...]] = {}
        for size, places in groups.items():
            pixels = self._prepared([images[index] for index in places], size)
            scores, boxes = self._forward(pixels, [self._asked.text] * len(places))
            for row, index in enumerate(places):
                boxes_of[index] = self._kept(scores[row], boxes[row], images[index].size)
        return [boxes_of[index] for index in range(len(images))]

    def ground(
        self, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture, highest score first.

        Each text is looked for by itself. What depends on a picture alone, the backbone, is computed once for
        all texts of the picture; the rest starts with fusing picture and text, and nothing of it is shared.

        ``texts``: of each picture, what is looked for; beyond 256 tokens the network reads nothing.
        """
        boxes_of: dict[tuple[int, int], tuple[Box, ...]] = {}
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for index, image in enumerate(images):
            pairs = groups.setdefault(fitted(image.size, self._asked.sides), [])
            pairs.extend((index, number) for number in range(len(texts[index])))
        for size, pairs in groups.items():
            kept: dict[int, Features] = {}
            for start in range(0, len(pairs), batch):
                some = pairs[start : start + batch]
                there = list(dict.fromkeys(index for index, _ in some))
                fresh = [index for index in there if index not in kept]
                features = self._features([images[index] for index in fresh], size)
                kept = {index: kept[index] for index in there if index in kept} | dict(
                    zip(fresh, features, strict=True)
                )
                asked = [Asked(texts[index][number], 0, None, size).text for index, number in some]
                scores, boxes = self._fused([kept[index] for index, _ in some], asked, size)
                for row, pair in enumerate(some):
                    boxes_of[pair] = self._kept(scores[row], boxes[row], images[pair[0]].size)
        return [[boxes_of[index, number] for number in range(len(some))] for index, some in enumerate(texts)]

    def _prepared(self, images: "Sequence[Image]", size: tuple[int, int]) -> Any:  # noqa: ANN401 - torch's own
        pixels = library().from_numpy(np.stack([_pixels(image, size) for image in images]))
        return pixels.to(self.place.device, number_type(self.place.dtype))

    def _features(self, images: "Sequence[Image]", size: tuple[int, int]) -> list["Features"]:
        """Return what the backbone makes of each picture."""
        if not images:
            return []
        torch = library()
        with torch.inference_mode():
            pixels = self._prepared(images, size)
            mask = torch.ones((len(images), *pixels.shape[-2:]), dtype=torch.long, device=pixels.device)
            maps, positions = self._backbone(pixels, mask)
        return [
            Features(tuple((level[row : row + 1], seen[row : row + 1]) for level, seen in maps),
                     tuple(level[row : row + 1] for level in positions))
            for row in range(len(images))
        ]  # fmt: skip

    def _fused(
        self, features: Sequence["Features"], texts: Sequence[str], size: tuple[int, int]
    ) -> tuple[Rows, Rows]:
        """Return what :meth:`_forward` does, of pictures that went through the backbone before."""
        torch = library()
        with torch.inference_mode():
            levels = range(len(features[0].maps))
            maps = [tuple(torch.cat([of_pair.maps[level][part] for of_pair in features]) for part in (0, 1))
                    for level in levels]  # fmt: skip
            self._backbone.given = (
                maps,
                [torch.cat([of_pair.positions[level] for of_pair in features]) for level in levels],
            )
            stand_in = torch.zeros(1, device=self.place.device, dtype=number_type(self.place.dtype))
            try:
                return self._forward(stand_in.expand(len(texts), 3, size[1], size[0]), texts)
            finally:
                self._backbone.given = None

    def _forward(self, pixels: Any, texts: Sequence[str]) -> tuple[Rows, Rows]:  # noqa: ANN401 - torch's own
        """Return scores, shape (pairs, queries), and boxes in shares, shape (pairs, queries, 4)."""
        words = self._tokenizer(list(texts), return_tensors="pt", padding=True)
        given = {name: words[name].to(self.place.device) for name in _WORDS}
        with library().inference_mode():
            output = self._module(pixel_values=pixels, **given)
            scores = output.logits.float().sigmoid().amax(dim=-1)
            return scores.cpu().numpy(), output.pred_boxes.float().cpu().numpy()

    def _kept(self, scores: Rows, boxes: Rows, size: tuple[int, int]) -> tuple[Box, ...]:
        made = []
        for score, (x, y, width, height) in zip(scores.tolist(), boxes.tolist(), strict=True):
            if score > self._asked.threshold:
                edges = ((x - width / 2) * size[0], (y - height / 2) * size[1])
                ends = ((x + width / 2) * size[0], (y + height / 2) * size[1])
                made.append(Box(*edges, *ends, score, self._asked.prompt).within(*size))
        most = 1.0 if self._asked.suppression is None else self._asked.suppression
        return suppressed([box for box in made if box.area > 0], most)


def load_grounding_dino(
    place: Place,
    local: Path | None = None,
    prompt: str = "character",
    threshold: float = 0.25,
    suppression: float | None = None,
    sides: tuple[int, int] = DINO_SIDES,
) -> GroundingDino:
    """Return the detector.

    ``local``: folder with the weights; None for the pinned ones of the Hub. ``threshold``: a box is kept if
    its score is above it. ``sides``: pixels of the shorter side, and most of the longer one.
    """
    with needing(missing("transformers")):
        from transformers import AutoTokenizer, GroundingDinoForObjectDetection
    asked = Asked(prompt, threshold, suppression, sides)
    module = settled(load_pretrained(GroundingDinoForObjectDetection, DINO_SOURCE, local), place.checked())
    tokenizer = load_pretrained(AutoTokenizer, DINO_SOURCE, local)
    return GroundingDino(loaded_card(DINO_CARD, DINO_SOURCE, local), place, module, tokenizer, asked)


def kept_backbone(module: Any) -> Any:  # noqa: ANN401 - torch's own
    """Put a backbone in the place of that of a Grounding DINO, and return it.

    It gives what stands in its ``given``, where something does, and else what the one before gives.
    """

    class Kept(library().nn.Module):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:  # noqa: ANN401 - torch's own
            super().__init__()
            self.inner, self.position_embedding, self.given = inner, inner.position_embedding, None

        def forward(self, pixels: Any, mask: Any) -> Any:  # noqa: ANN401 - torch's own
            return self.inner(pixels, mask) if self.given is None else self.given

    kept = Kept(module.model.backbone)
    module.model.backbone = kept
    return kept


def fitted(size: tuple[int, int], sides: tuple[int, int]) -> tuple[int, int]:
    """Return the width and height that a picture is scaled to; the ratio of its sides is kept."""
    shorter, longer = min(size), max(size)
    short = sides[0] if longer * sides[0] <= sides[1] * shorter else round(sides[1] * shorter / longer)
    short = max(1, short)
    long = max(1, int(short * longer / shorter))
    return (short, long) if size[0] < size[1] else (long, short)


def _pixels(image: "Image", size: tuple[int, int]) -> Rows:
    from PIL import Image as Pillow

    plain = image if image.mode == "RGB" else image.convert("RGB")
    values = np.asarray(plain.resize(size, Pillow.Resampling.BILINEAR), dtype=np.float32) / np.float32(255)
    mean, std = np.array(IMAGENET_MEAN, dtype=np.float32), np.array(IMAGENET_STD, dtype=np.float32)
    return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))


PEOPLE_SOURCE = Source(
    "Ultralytics/YOLO11", file="yolo11n.pt",
    sha256="0ebbc80d4a7680d14987a577cd21342b65ecfd94632bd9a8da63ae6417644ee1", size=5_600_000,
)  # fmt: skip
PEOPLE_SIZE = 640
PEOPLE_CARD = Card(
    "people-yolo11n", PEOPLE_SOURCE.repo, PEOPLE_SOURCE.sha256,
    f"longer side {PEOPLE_SIZE}, padded to {PEOPLE_SIZE} x {PEOPLE_SIZE}, in [0, 1]", 0, 1e-2, "AGPL-3.0",
)  # fmt: skip
_PERSON = "person"
_IMPORTING = Lock()
_QUIET = {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "0", "YOLO_VERBOSE": "0"}


class Limits(NamedTuple):
    """What counts as somebody: least score, most overlap with a better box, pixels of a side, and classes."""

    score: float
    overlap: float
    side: int
    classes: tuple[str, ...] = (_PERSON,)


class PeopleDetector:
    """A detector of people.

    ``model``: of ultralytics. ``limits``: what counts as somebody.
    """

    def __init__(self, card: Card, place: Place, model: Any, limits: Limits) -> None:  # noqa: ANN401 - the library's own
        self.card, self.place = card, place
        self._model, self._limits = model, limits
        self._classes = {number: name for number, name in model.names.items() if name in limits.classes}

    @property
    def identity(self) -> str:
        plain = identity_of(self.card, self.place.dtype, self.place.device)
        limits = "/".join(f"{limit:g}" for limit in self._limits[:3])
        named = ",".join(sorted(self._classes.values()))
        return f"{plain}/{limits}" if named == _PERSON else f"{plain}/{limits}/{named}"

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first.

        Every picture is padded to a square, so that what is found in one does not depend on the others.
        """
        if not images:
            return []
        predictions = self._model.predict(
            [image.convert("RGB") for image in images], batch=len(images), classes=sorted(self._classes),
            conf=self._limits.score, iou=self._limits.overlap, imgsz=self._limits.side, rect=False,
            device=self.place.device, verbose=False, save=False,
        )  # fmt: skip
        return [
            _boxes(prediction.boxes.data.tolist(), image.size, self._classes)
            for prediction, image in zip(predictions, images, strict=True)
        ]


def load_people(
    place: Place,
    local: Path | None = None,
    threshold: float = 0.25,
    suppression: float = 0.7,
    size: int = PEOPLE_SIZE,
    classes: tuple[str, ...] = (_PERSON,),
) -> PeopleDetector:
    """Return the detector.

    ``place``: where it runs, in float32. ``local``: a file of the user's own, which is unpickled and so must
    be trusted; None for the published one, which is checked by its hash before that. ``threshold``: least
    score. ``size``: pixels a side. ``classes``: what is looked for, by the names of the model's classes, such
    as ``person`` and ``dog``.
    """
    model_of = ultralytics_library()
    if place.checked().dtype != "float32":
        raise ConfigError(
            "dtype",
            expected="float32 for the detector of people",
            found=place.dtype,
            fix="set dtype to float32",
        )
    source = PEOPLE_SOURCE if local is None else replace(PEOPLE_SOURCE, sha256="")
    path = fetch_file(source, local)
    model = told(source, path, lambda: model_of(str(path), task="detect"))
    known = sorted(model.names.values())
    if not classes or (strange := sorted({*classes} - {*known})):
        raise ConfigError(
            'options."people-yolo11n".classes',
            what=f"the detector has no class {', '.join(strange)}" if classes else "no class is named",
            fix=f"name some of its classes: {', '.join(known)}",
        )
    return PeopleDetector(
        loaded_card(PEOPLE_CARD, source, local), place, model, Limits(threshold, suppression, size, classes)
    )


def ultralytics_library() -> Any:  # noqa: ANN401 - the library's own
    """Return the class of ultralytics that loads a model."""
    for key, value in _QUIET.items():  # read at import: nothing is sent, installed or printed
        os.environ.setdefault(key, value)
    from PIL import Image

    with _IMPORTING:
        plain = Image.open
        try:
            with needing(missing("ultralytics")):
                from ultralytics import YOLO
        finally:  # it replaces this function for the whole process by one that installs packages
            Image.open = plain
    return YOLO


def _boxes(
    rows: Sequence[Sequence[float]], size: tuple[int, int], classes: Mapping[int, str]
) -> tuple[Box, ...]:
    boxes = [Box(row[0], row[1], row[2], row[3], row[4], classes[int(row[5])]).within(*size) for row in rows]
    kept = [box for box in boxes if box.area > 0]
    return tuple(sorted(kept, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom)))


# -- SAM 2: what hangs together with points in a picture, as a mask
#
# The network is that of transformers. No commit of the published weights has been confirmed by us yet, so
# that they are taken from a folder: the user's own, or the one that ``fabula models fetch vision`` filled.

SAM2_SOURCE = Source("facebook/sam2.1-hiera-tiny", size=156_000_000, on_request=True)
SAM2_CARD = Card(
    "sam2.1-hiera-tiny", SAM2_SOURCE.repo, SAM2_SOURCE.revision,
    "RGB, stretched to the network's square (1024), bilinear, ImageNet mean and std", 0, 2e-2, "Apache-2.0",
)  # fmt: skip
_MASK_SHARE = 4
"""The network's masks have a fourth of its pixels a side."""

LAYOUTS: Mapping[str, Points] = {
    "character": Points(
        inside=((0.5, 0.2), (0.5, 0.35), (0.5, 0.5), (0.5, 0.65), (0.5, 0.8)),
        outside=((0.03, 0.03), (0.97, 0.03), (0.03, 0.97), (0.97, 0.97), (0.05, 0.5), (0.95, 0.5)),
    ),
    "object": Points(
        inside=((0.5, 0.5), (0.42, 0.5), (0.58, 0.5), (0.5, 0.42), (0.5, 0.58)),
        outside=((0.03, 0.03), (0.97, 0.03), (0.03, 0.97), (0.97, 0.97)),
    ),
}
"""Type of an entity -> where its portrait is sure to show it, and where it is not: down the middle for a
standing figure, around the centre for a thing (the paper has points by type, and does not say which)."""


class Sam2:
    """SAM 2 on single pictures.

    ``where``: it runs. ``module``: a ``Sam2Model`` in evaluation mode.
    """

    def __init__(self, card: Card, where: Place, module: Any) -> None:  # noqa: ANN401 - torch's own
        from transformers import Sam2ImageProcessor, Sam2Processor

        self.card, self.place, self._module = card, where, module
        height, width = module.config.vision_config.backbone_config.image_size
        pictures = Sam2ImageProcessor(
            size={"height": height, "width": width},
            mask_size={"height": height // _MASK_SHARE, "width": width // _MASK_SHARE},
        )
        self._processor = Sam2Processor(pictures, target_size=height)

    @property
    def identity(self) -> str:
        return identity_of(self.card, self.place.dtype, self.place.device)

    def segment(self, images: "Sequence[Image]", points: Sequence[Points]) -> list[Masks]:
        """Return for each picture the mask that the network rates best of three, shape (height, width)."""
        return [self._mask(image, some) for image, some in zip(images, points, strict=True)]

    def _mask(self, image: "Image", points: Points) -> Masks:
        torch = library()
        plain = image if image.mode == "RGB" else image.convert("RGB")
        spots = [[x * plain.width, y * plain.height] for x, y in (*points.inside, *points.outside)]
        labels = [1] * len(points.inside) + [0] * len(points.outside)
        given = self._processor(
            images=plain, input_points=[[spots]], input_labels=[[labels]], return_tensors="pt"
        ).to(self.place.device)
        given["pixel_values"] = given["pixel_values"].to(number_type(self.place.dtype))
        with torch.inference_mode():
            made = self._module(
                pixel_values=given["pixel_values"], input_points=given["input_points"],
                input_labels=given["input_labels"], multimask_output=True,
            )  # fmt: skip
        masks = self._processor.post_process_masks(
            made.pred_masks.float().cpu(), [[plain.height, plain.width]]
        )[0][0]
        best = int(made.iou_scores[0, 0].float().argmax())
        return np.asarray(masks[best].numpy(), dtype=np.bool_)


def load_sam2(where: Place, local: Path | None = None) -> Sam2:
    """Return the segmenter.

    ``local``: folder with the weights; None for the one in the folder of weights.
    """
    with needing(missing("transformers")):
        from transformers import Sam2Model
    folder = local or stored(SAM2_SOURCE)
    if folder is None:
        raise needed(SAM2_SOURCE, "no folder with them is named, and nobody fetched them")
    module = settled(load_pretrained(Sam2Model, SAM2_SOURCE, folder), where.checked())
    return Sam2(loaded_card(SAM2_CARD, SAM2_SOURCE, folder), where, module)
