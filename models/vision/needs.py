"""What stages that look at pictures share: settings, needs of models, each opened once in a process."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import Field

from ...errors import ConfigError, MissingRequirement, UserError
from ...schemas.canonical import canonical_text, digest
from ...schemas.plain_files import MISSHAPEN, explaining
from ...schemas.values import Own
from .detectors import LAYOUTS
from .fetching import check_files
from .registry import (
    MODELS,
    SHIFT,
    SIDE,
    WEIGHTS,
    Kind,
    check_vision,
    compare_values,
    draw_pair,
    files_of,
    libraries_of,
    open_vision,
    record_values,
    shifted,
)
from .store import (
    Box,
    Detector,
    Device,
    Dtype,
    Encoder,
    Flow,
    Predictor,
    Segmenter,
    TextEncoder,
    VisionModel,
    cut,
)
from .weights import (
    DEVICES,
    PRETRAINED,
    Place,
    Source,
    fetch_file,
    fetch_pretrained,
    needed,
    revision_of,
    weights_folder,
)

if TYPE_CHECKING:
    from PIL.Image import Image


class VisionSettings(Own):
    """Where models run, what they are given besides their name, and what they were when the run began."""

    device: Device = Field(default="cpu", description="Class of device: cpu, cuda or mps.")
    dtype: Dtype = Field(default="float32", description="Numbers of the models: float32, float16, bfloat16.")
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Name of a model -> settings of its loader, such as local."
    )
    batch: int = Field(default=16, ge=1, le=1024, description="Pictures that a model gets at once.")
    weights: dict[str, str] = Field(
        default_factory=dict,
        description="Name of a model -> hash of the files that its options name, as the run began with them.",
    )

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        return ()

    def networks(self) -> dict[str, Any]:
        """Return where those models run, in what precision, and the versions of their libraries.

        Of models that are not ours nobody says which libraries they use: they have all that ours use.
        """
        names, where = self.looking(), {"device": self.device, "dtype": self.dtype}
        return {**where, "libraries": libraries_of(*names)} if names else {}

    def pinned(self) -> Self:
        """Return the settings with what else they name looked up, before the run begins."""
        return self


S = TypeVar("S", bound=VisionSettings)


def with_weights(settings: S) -> S:
    """Return settings with the hashes of the files of weights that they name, whatever was set there.

    What cannot be read is left out: looking up what is missing is for :mod:`.needs`.
    """
    settings = settings.pinned()
    hashes: dict[str, str] = {}
    for name in settings.looking():
        try:
            sha256 = files_hash(name, settings.options.get(name, {}))
        except MissingRequirement:
            continue
        if sha256 is not None:
            hashes[name] = sha256
    return settings.model_copy(update={"weights": hashes})


def opened(
    name: str, settings: VisionSettings, kind: Kind | None, defaults: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process, with the weights that the run began with.

    ``kind``: what it has to be; None takes any.
    """
    given = settings.options.get(name, {})
    began = settings.weights.get(name)
    now = None if began is None else _files_hash(name, canonical_text(given))
    if began != now:
        raise MissingRequirement(
            f"weights of {name}",
            what="the files that the run began with are gone" if now is None else
            f"these are not the files that the run began with ({str(began)[:12]}, now {now[:12]})",
            fix="put them back, or give the command that began the run again: it looks at everything anew",
        )  # fmt: skip
    options = {**(defaults or {}), **given}
    return _opened(name, Place(settings.device, settings.dtype), canonical_text(options), kind)


@cache
def _opened(name: str, place: Place, options: str, kind: Kind | None) -> VisionModel:
    return open_vision(name, place, json.loads(options), kind)


@cache
def _files_hash(name: str, options: str) -> str | None:
    return files_hash(name, json.loads(options))


def files_hash(name: str, options: Mapping[str, Any]) -> str | None:
    """Return a hash of the files and folders that a model's options name, None where none is there."""
    files = {key: path for key, path in files_of(name, options).items() if path.exists()}
    hashes = {key: revision_of(Source(name), path) for key, path in sorted(files.items())}
    return digest(hashes) if hashes else None


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing."""

    what: str  # it, in a few words
    wanted_by: str  # the model or setting that it is for
    why: str = ""  # why it cannot be had; empty where that is plain
    comes: bool = False  # whether ``fabula models fetch vision`` brings it


def listed(lacks: Iterable[Lack]) -> str:
    """Return what is missing as one text: each thing once, each reason once behind all that it holds for."""
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for lack in lacks:
        reasons.setdefault(lack.why, {}).setdefault(lack.what, {})[lack.wanted_by] = None
    parts = []
    for why, things in reasons.items():
        listed_things = "; ".join(f"{what}, for {', '.join(wanted)}" for what, wanted in things.items())
        parts.append(f"{listed_things} ({why})" if why else listed_things)
    return "; ".join(parts)


def fetching(lacks: Iterable[Lack]) -> str:
    """Return the command that fetches the weights among what is missing, empty where there are none."""
    models = dict.fromkeys(lack.wanted_by for lack in lacks if lack.comes)
    return f"fabula models fetch vision{''.join(f' --model {name}' for name in models)}" if models else ""


def lacks_of(settings: VisionSettings, *names: str | None) -> Iterator[Lack]:
    """Yield what models lack; nothing for None.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.
    """
    own = {model.name for model in MODELS}
    for name in names:
        if name is None:
            continue
        options = settings.options.get(name, {})
        try:
            check_vision(name, options)
        except MissingRequirement as error:
            yield Lack(error.where.removeprefix("the library "), name)
            continue
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()
        yield from _lacks_of_files(name, options)
        yield from _lacks_of_weights(name, options)


def _lacks_of_files(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    known = {weights.option for weights in WEIGHTS.get(name, ())}
    for key, path in files_of(name, options).items():
        if key not in known and not path.exists():
            yield Lack(f"{path}, which options.{name}.{key} names", name)


def _lacks_of_weights(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    for weights in WEIGHTS.get(name, ()):
        local = options.get(weights.option)
        try:
            _fetch(weights.source, None if local is None else Path(str(local)))
        except MissingRequirement as error:
            reason = error.found.splitlines()[0].rpartition("cannot be used: ")[2]
            if weights.source.on_request and local is None:
                reason = "nothing fetches them unasked"
            file = f"weights {weights.source.file or PRETRAINED[-1]} of {weights.source.repo}"
            yield Lack(file if local is None else error.where, name, reason, comes=local is None)


def _fetch(source: Source, local: Path | None) -> None:
    if local is not None:
        if not local.exists():
            raise needed(source, f"no {local}")
    elif source.file:
        fetch_file(source)
    else:
        fetch_pretrained(source)


# -- What models that look at pictures were measured to take: memory, and time per picture at a resolution
#
# ``measured.json`` beside this file has what ``benchmarks/vision_needs.py`` measured for everybody; a file of
# that name in the folder of weights has what was measured on this machine, and goes before it. Nothing is
# guessed: a model, device or kind of number that nobody measured is unknown.

FILE = "measured.json"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a model took on some hardware."""

    model: str  # its name
    device: str  # class of device: cpu, cuda or mps
    dtype: str  # numbers of the model
    width: int  # of the pictures, in pixels
    height: int  # of the pictures, in pixels
    batch: int  # pictures at once
    seconds: float  # per picture; on a CPU seconds of all cores together
    ram: int  # most bytes of memory of the process, libraries included
    gpu: int | None  # most bytes of memory on the device that were taken; None on a CPU
    hardware: str  # what it ran on, in words
    weights: str  # the published ones, or ``random`` ones of the same size
    day: str  # when, such as ``2026-11-28``

    @property
    def case(self) -> tuple[object, ...]:
        """What was measured; a newer measurement of the same takes its place."""
        return (self.model, self.device, self.dtype, self.width, self.height, self.batch)


def measurements() -> tuple[Measurement, ...]:
    """Return all measurements: those of this machine first."""
    path = weights_folder() / FILE
    own: list[Measurement] = []
    if path.is_file():
        with explaining(
            path, "remove the file", what="these measurements cannot be read", kind=ConfigError, of=MISSHAPEN
        ):
            own = read_measurements(path.read_text("utf-8"))
    mine = {measured.case for measured in own}
    shipped = read_measurements(files(__package__).joinpath(FILE).read_text("utf-8"))
    return (*own, *(measured for measured in shipped if measured.case not in mine))


def read_measurements(text: str) -> list[Measurement]:
    return [Measurement(**entry) for entry in json.loads(text)]


def as_document(measured: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Return measurements as a file holds them, sorted."""
    return sorted(
        (asdict(each) for each in measured), key=lambda each: [str(value) for value in each.values()]
    )


@dataclass(frozen=True, slots=True)
class VisionPlan:
    """What the models of a run take."""

    # how many each of them looks at, if each picture is looked at once; None if not known
    pictures: int | None
    # name, device and kind of numbers of each, with what was measured: empty for unknown
    models: tuple[tuple[str, str, str, tuple[Measurement, ...]], ...]

    def as_json(self) -> list[dict[str, Any]]:
        """Return it as plain JSON; ``hours`` are for one look at each picture."""
        return [
            {
                "model": name, "device": device, "dtype": dtype,
                "measured": [{**asdict(each), "hours": self._hours(each)} for each in measured],
            }
            for name, device, dtype, measured in self.models
        ]  # fmt: skip

    def lines(self) -> Iterator[str]:
        for name, device, dtype, measured in self.models:
            if not measured:
                yield f"{name} on {device}, {dtype}: memory and time are unknown, nobody measured them"
            for each in measured:
                card = "" if each.gpu is None else f", {each.gpu / 1e9:.1f} GB on the device"
                hours = self._hours(each)
                unit = "core " if each.device == "cpu" else ""
                time = (
                    f"{each.seconds:.3g} {unit}seconds a picture"
                    if hours is None
                    else f"{hours:.2g} {unit}hours for {self.pictures} pictures"
                )
                yield (
                    f"{name} on {device}, {dtype}, {each.width} x {each.height}: {each.ram / 1e9:.1f} GB of"
                    f" memory{card}, {time} (measured on {each.hardware}, {each.batch} at once)"
                )

    def _hours(self, measured: Measurement) -> float | None:
        return None if self.pictures is None else round(measured.seconds * self.pictures / 3600, 4)


def vision_plan(settings: Iterable[object], pictures: int | None = None) -> VisionPlan:
    """Return what is known of the models that the settings of stages name.

    ``pictures``: how many there are; None if that is not known.
    """
    known = measurements()
    named = {
        (name, looking.device, looking.dtype): None
        for looking in settings
        if isinstance(looking, VisionSettings)
        for name in looking.looking()
    }
    return VisionPlan(pictures, tuple((*case, _of(known, *case)) for case in named))


def _of(known: Sequence[Measurement], name: str, device: str, dtype: str) -> tuple[Measurement, ...]:
    wanted = (name, device, dtype)
    return tuple(each for each in known if (each.model, each.device, each.dtype) == wanted)


# -- Whether models that look at pictures work here: each is loaded, run on small pictures and looked over
#
# Published weights give what is checked for on two drawings of ours; encoders and detectors of faces and
# people are shown a photograph of two that ultralytics carries, because a drawing holds none that they know.

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
        return any(finding.status == status for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        passed = not self.has("failed") and not self.has("missing")
        return {"findings": [asdict(finding) for finding in self.findings], "passed": passed}

    def lines(self) -> Iterator[str]:
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

    Returned: what was found; a model that cannot be opened is a finding as well.
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
