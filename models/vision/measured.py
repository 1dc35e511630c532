"""What models that look at pictures were measured to take: memory, and time per picture at a resolution.

``measured.json`` beside this file has what ``benchmarks/vision_needs.py`` measured for everybody; a file of
that name in the folder of weights has what was measured on this machine, and goes before it. Nothing is
guessed: a model, device or kind of number that nobody measured is unknown.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from ...errors import ConfigError
from .needs import VisionSettings
from .stored import weights_folder

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
        try:
            own = read_measurements(path.read_text("utf-8"))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                str(path), what=f"these measurements cannot be read: {error}", fix="remove the file"
            ) from error
    mine = {measured.case for measured in own}
    shipped = read_measurements(files(__package__).joinpath(FILE).read_text("utf-8"))
    return (*own, *(measured for measured in shipped if measured.case not in mine))


def read_measurements(text: str) -> list[Measurement]:
    """Return the measurements in a file's text."""
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
        """Yield it as lines for people."""
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
