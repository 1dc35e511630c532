"""Whether models that look at pictures work here: each is loaded, run on small pictures and looked over.

Published weights give what is checked for on two drawings of ours; encoders and detectors of faces and people
are shown a photograph of two that ultralytics carries, because a drawing holds none that they know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...errors import MissingRequirement, UserError
from .fetching import check_files
from .known import SHIFT, SIDE, WEIGHTS, compare_values, draw_pair, record_values, shifted
from .registry import check_vision, open_vision
from .segmenters import LAYOUTS
from .types import Box, Detector, Encoder, Flow, Predictor, Segmenter, TextEncoder, VisionModel, cut
from .weights import Place

if TYPE_CHECKING:
    from PIL.Image import Image

Status = Literal["ok", "warning", "failed", "missing"]
_PHOTOGRAPH = ("ultralytics", "assets/zidane.jpg")
"""Library and file: two people, whose faces are seen."""
CAPTIONS = ("a person in a red coat", "a house under a blue sky")
"""What the two drawings show."""
_ANEW = "remove the file, and fetch it again: fabula models fetch vision"
_NORM = 1e-3  # most by which the length of a vector may differ from 1
_USUAL = {"musiq-spaq": (0, 100)}  # least and greatest value of a predictor; 1 to 10 of others
_DISC = 0.8  # of a drawn disc and its mask together, that both share
_AROUND = 0.4  # of a face's sides, that its crop holds around it


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    model: str  # by which name it was opened
    step: str  # what was looked at
    # ``ok``, ``warning`` (works, but look at it), ``failed``, ``missing`` (something is not there)
    status: Status
    detail: str  # what was found
    fix: str = ""  # what to do, if anything


@dataclass(frozen=True, slots=True)
class VisionCheck:
    """What a check of models found."""

    findings: tuple[Finding, ...]  # everything looked at, model by model

    def has(self, status: Status) -> bool:
        """Whether there is a finding with a status."""
        return any(finding.status == status for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the check as plain JSON."""
        passed = not self.has("failed") and not self.has("missing")
        return {"findings": [asdict(finding) for finding in self.findings], "passed": passed}

    def lines(self) -> Iterator[str]:
        """Yield the check as lines for people."""
        for finding in self.findings:
            yield f"{finding.status:9}{finding.model}: {finding.step}: {finding.detail}"
            if finding.fix:
                yield f"{'':9}fix: {finding.fix}"


def check_models(
    names: Sequence[str],
    place: Place,
    settings: Mapping[str, Mapping[str, Any]],
    *,
    known: bool = False,
    record: bool = False,
) -> VisionCheck:
    """Load models one after the other and look over what they make of small pictures.

    ``settings``: name -> settings of its loader.

    Returns:
        What was found; a model that cannot be opened is a finding as well.
    """
    return VisionCheck(
        tuple(
            finding
            for name in names
            for finding in _check(name, place, settings.get(name, {}), (known, record))
        )
    )


def _check(
    name: str, place: Place, settings: Mapping[str, Any], asked: tuple[bool, bool]
) -> Iterator[Finding]:
    for source, text, sound in check_files(name):
        yield Finding(name, "files", _judged(sound), f"{source.repo}: {text}", "" if sound else _ANEW)
    try:
        check_vision(name, settings)
        model = open_vision(name, place, settings)
    except UserError as error:
        status: Status = "missing" if isinstance(error, MissingRequirement) else "failed"
        text = f"{error.where}: {error.what}"
        yield Finding(name, "load", status, text, _fix(name, error))
        return
    yield Finding(name, "load", "ok", model.identity)
    for step, status, detail in _looked_over(model):
        yield Finding(name, step, status, detail)
    known, record = asked
    if record:
        yield Finding(name, "recorded", "ok", f"values in {record_values(name, model, settings)}")
    if known:
        status, detail = compare_values(name, model, settings)
        yield Finding(name, "known", status, detail)


def _fix(name: str, error: UserError) -> str:
    """Return what to do about a model that cannot be opened; missing weights of ours have a command."""
    lacking = isinstance(error, MissingRequirement) and error.where.startswith("weights of ")
    if not lacking or name not in WEIGHTS:
        return error.fix
    return f"fabula models fetch vision --model {name} (with --plan: what to fetch on another machine)"


def _looked_over(model: VisionModel) -> Iterator[tuple[str, Status, str]]:
    if isinstance(model, Encoder):
        yield from _encoder(model)
        if isinstance(model, TextEncoder):
            yield from _texts(model)
    elif isinstance(model, Predictor):
        yield from _predictor(model)
    elif isinstance(model, Detector):
        yield from _detector(model)
    elif isinstance(model, Flow):
        yield from _flow(model)
    elif isinstance(model, Segmenter):
        yield from _segmenter(model)
    else:
        yield "kind", "failed", "neither encoder nor predictor nor detector nor flow nor segmenter"


def _encoder(model: Encoder) -> Iterator[tuple[str, Status, str]]:
    """Check shape, lengths, batches, and that a picture and a copy of it are closer than two pictures."""
    drawings, what = list(draw_pair()), "drawing"
    if hasattr(model, "finder"):
        drawings, what = _face_crops(model), "face"
        if len(drawings) < 2:
            yield (
                "faces",
                "warning",
                "no photograph with two faces is at hand: its vectors were not looked at",
            )
            return
    copies = [_moved(drawing) for drawing in drawings]
    rows = model.encode([*drawings, *copies])
    wanted = (2 * len(drawings), model.card.dimensions)
    yield "shape", _judged(rows.shape == wanted), f"{rows.shape}, {wanted} wanted"
    lengths = np.linalg.norm(rows, axis=1)
    sound = bool(np.isfinite(rows).all() and (np.abs(lengths - 1) <= _NORM).all())
    yield "lengths", _judged(sound), f"{lengths.min():.4f} to {lengths.max():.4f}, 1 wanted"
    alone = np.concatenate([model.encode([drawing]) for drawing in drawings])
    apart = float(np.abs(alone - rows[: len(drawings)]).max())
    limit = model.card.tolerance
    yield "batches", _judged(apart <= limit), f"differ by {apart:.1e}, at most {limit:.0e} wanted"
    alike = float(rows[0] @ rows[len(drawings)])
    other = float(rows[0] @ rows[1])
    yield "order", _judged(alike > other), f"a {what} and its copy {alike:.3f}, two {what}s {other:.3f}"


def _texts(model: TextEncoder) -> Iterator[tuple[str, Status, str]]:
    """Check shape, lengths and batches of texts, what is cut, and that each is closer to its own drawing."""
    encoded = model.encode_texts(CAPTIONS)
    wanted = (len(CAPTIONS), model.card.dimensions)
    yield "texts", _judged(encoded.rows.shape == wanted), f"{encoded.rows.shape}, {wanted} wanted"
    lengths = np.linalg.norm(encoded.rows, axis=1)
    sound = bool(np.isfinite(encoded.rows).all() and (np.abs(lengths - 1) <= _NORM).all())
    yield "lengths of texts", _judged(sound), f"{lengths.min():.4f} to {lengths.max():.4f}, 1 wanted"
    apart = float(
        np.abs(
            np.concatenate([model.encode_texts([caption]).rows for caption in CAPTIONS]) - encoded.rows
        ).max()
    )
    limit = model.card.tolerance
    yield "batches of texts", _judged(apart <= limit), f"differ by {apart:.1e}, at most {limit:.0e} wanted"
    short, long = encoded.cut[0], model.encode_texts([" ".join(CAPTIONS * 50)]).cut[0]
    yield "cut", _judged(short == 0 < long), f"{short} tokens of a short text, {long} of a long one"
    likeness = encoded.rows @ model.encode(draw_pair()).T
    own, other = float(np.trace(likeness)), float(likeness[0, 1] + likeness[1, 0])
    status: Status = "ok" if own > other else "warning"
    yield "captions", status, f"{own / 2:.3f} to their own drawings, {other / 2:.3f} to the others"


def _segmenter(model: Segmenter) -> Iterator[tuple[str, Status, str]]:
    """Check the shape of a mask, and that of a light disc on a dark ground it has the disc alone."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (SIDE, SIDE), (30, 60, 50))
    quarter = SIDE // 4
    ImageDraw.Draw(picture).ellipse((quarter, quarter, 3 * quarter, 3 * quarter), fill=(235, 215, 180))
    disc = np.asarray(picture.convert("L")) > 120
    mask = model.segment([picture], [LAYOUTS["object"]])[0]
    yield "shape", _judged(mask.shape == disc.shape), f"{mask.shape}, {disc.shape} wanted"
    overlap = float((mask & disc).sum() / max(1, (mask | disc).sum()))
    yield "disc", "ok" if overlap > _DISC else "warning", f"shares {overlap:.2f} with a drawn disc"


def _predictor(model: Predictor) -> Iterator[tuple[str, Status, str]]:
    """Check shape and range: probabilities of classes, or one value."""
    drawings = draw_pair()
    rows = model.predict(drawings)
    finite = bool(rows.shape[0] == len(drawings) and np.isfinite(rows).all())
    yield "shape", _judged(finite), f"{rows.shape}, {'all' if finite else 'not all'} numbers finite"
    apart = float(np.abs(np.concatenate([model.predict([drawing]) for drawing in drawings]) - rows).max())
    limit = model.card.tolerance
    yield "batches", _judged(apart <= limit), f"differ by {apart:.1e}, at most {limit:.0e} wanted"
    if rows.shape[1] > 1:
        sums = rows.sum(axis=1)
        sound = bool((np.abs(sums - 1) <= _NORM).all() and (rows >= 0).all())
        yield "range", _judged(sound), f"sums {sums.min():.4f} to {sums.max():.4f}, 1 wanted"
    else:
        least, most = _USUAL.get(model.card.name, (1, 10))
        usual = bool(((rows > least - 1) & (rows < most + 1)).all())
        text = f"{rows.min():.2f} to {rows.max():.2f}, {least} to {most} usual"
        yield "range", "ok" if usual else "warning", text


def _flow(model: Flow) -> Iterator[tuple[str, Status, str]]:
    """Check shape and batches, and that a drawing that is moved to the right is seen to be."""
    drawings = draw_pair()
    pairs = [(drawing, shifted(drawing)) for drawing in drawings]
    flows = model.flows(pairs)
    wanted = (len(pairs), 2, SIDE, SIDE)
    sound = flows.shape == wanted and bool(np.isfinite(flows).all())
    yield "shape", _judged(sound), f"{flows.shape}, {wanted} wanted"
    apart = float(np.abs(np.concatenate([model.flows([pair]) for pair in pairs]) - flows).max())
    limit = model.card.tolerance
    yield "batches", _judged(apart <= limit), f"differ by {apart:.1e}, at most {limit:.0e} wanted"
    across, down = (float(np.median(flows[:, axis])) for axis in (0, 1))
    seen = abs(across - SHIFT) < 1 and abs(down) < 1
    text = f"median {across:.1f} to the right, {down:.1f} down; {SHIFT} and 0 are true"
    yield "movement", "ok" if seen else "warning", text


def _detector(model: Detector) -> Iterator[tuple[str, Status, str]]:
    """Check that boxes lie in their picture, best first, and that something is found."""
    shown = photograph()
    pictures = [*draw_pair(), *([] if shown is None else [shown])]
    detected = model.detect(pictures)
    sound = len(detected) == len(pictures) and all(map(_sound, detected, pictures))
    yield "boxes", _judged(sound), "lie in their pictures, best first" if sound else "are no sound boxes"
    counts = [len(boxes) for boxes in detected]
    yield "found", "ok" if any(counts) else "warning", f"{counts} in {len(pictures)} pictures"


def _sound(boxes: Sequence[Box], image: "Image") -> bool:
    scores = [box.score for box in boxes]
    within = all(box.area > 0 and box == box.within(image.width, image.height) for box in boxes)
    return within and scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)


def _judged(sound: bool) -> Status:
    return "ok" if sound else "failed"


def photograph() -> "Image | None":
    """Return the photograph of two people that a library carries; None where that is not installed."""
    from PIL import Image

    library, file = _PHOTOGRAPH
    spec = find_spec(library)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(location) / file
        if path.is_file():
            with Image.open(path) as image:
                return image.convert("RGB")
    return None


def _face_crops(model: Any) -> "list[Image]":  # noqa: ANN401 - an encoder with a finder of faces
    picture = photograph()
    if picture is None:
        return []
    crops = []
    for box in model.finder.detect([picture])[0][:2]:
        across, down = _AROUND * (box.right - box.left), _AROUND * (box.bottom - box.top)
        around = Box(box.left - across, box.top - down, box.right + across, box.bottom + down)
        crops.append(cut(picture, around))
    return [crop for crop in crops if crop is not None]


def _moved(image: "Image") -> "Image":
    """Return a copy of a picture that is a little larger."""
    from PIL import Image

    return image.resize((image.width * 17 // 16, image.height * 17 // 16), Image.Resampling.BICUBIC)
