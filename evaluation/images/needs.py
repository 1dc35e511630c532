"""Which models each metric needs, and whether all of them are there: checked before anything is looked at."""

from collections.abc import Collection, Iterator

from ...engine.config import RunConfig
from ...errors import ConfigError, MissingRequirement
from ...models.vision.devices import DEVICES, Place
from ...models.vision.looking import VisionSettings
from ...models.vision.needs import lacks_of, listed
from ...models.vision.registry import MODELS, check_vision
from ..metrics.alignment import DIMENSIONS
from .settings import AlignmentSettings

METRICS = ("cids", "copy-paste", "occm", "csd", "aesthetic", "inception", "clip-score", "alignment")
"""Names of what can be chosen; some are several scores."""

Key = tuple[str, str]
"""Stage and setting."""
DETECTOR: Key = ("detect_characters", "model")
CROPS: tuple[Key, ...] = (("encode_crops", "pictures"), ("encode_crops", "faces"))
DEFAULTS: dict[Key, str | tuple[str, ...]] = {
    DETECTOR: "grounding-dino-swin-t",
    CROPS[0]: ("clip-vit-l-14",),
    CROPS[1]: ("arcface-r100", "adaface-ir101", "facenet-vggface2"),
    ("encode_pictures", "style"): "csd-vit-l",
    ("encode_pictures", "aesthetic"): "aesthetic-v2.5",
    ("encode_pictures", "inception"): "inception-v3",
    ("encode_pictures", "clip"): "clip-vit-l-14",
}
"""The models of the paper, each where the settings name no other."""
NEEDS: dict[str, tuple[Key, ...]] = {
    "cids": (DETECTOR, *CROPS),
    "copy-paste": (DETECTOR, *CROPS),
    "occm": (DETECTOR,),
    "csd": (("encode_pictures", "style"),),
    "aesthetic": (("encode_pictures", "aesthetic"),),
    "inception": (("encode_pictures", "inception"),),
    "clip-score": (("encode_pictures", "clip"),),
    "alignment": (DETECTOR, *CROPS),
}
"""Metric -> settings that name its models; the judges see crops of single characters, too."""


def models_needed(metrics: Collection[str], dimensions: Collection[str] = DIMENSIONS) -> frozenset[Key]:
    """Return the settings that name what some metrics need; of alignment, single characters' actions do."""
    idle = () if "action" in dimensions else ("alignment",)
    return frozenset(key for name in metrics if name not in idle for key in NEEDS[name])


def check_needs(config: RunConfig, metrics: Collection[str]) -> None:
    """Check that every model is registered, with its libraries and device here, and that somebody judges.

    Loads no weights.

    Raises:
        ConfigError: there is no judge, no such model or device, or a setting is wrong.
        MissingRequirement: libraries are missing; all that is missing is listed.
    """
    wrong, missing = [], []
    for name, settings in _named(config):
        try:
            check_vision(name, settings.options.get(name))
        except ConfigError as error:
            wrong.append(error)
        except MissingRequirement as error:
            missing.append(f"{error.where.removeprefix('the library ')} for {name}")
    asking = config.stages["judge_alignment"]
    assert isinstance(asking, AlignmentSettings)
    if wrong:
        raise wrong[0]
    lacks_judge = "alignment" in metrics and not asking.judges
    if missing:
        listed = [*dict.fromkeys(missing), *(["a judge for alignment (--judge)"] if lacks_judge else [])]
        raise MissingRequirement(
            "--metrics", what=f"{', '.join(metrics)} cannot be computed here. Missing: {'; '.join(listed)}",
            fix='pip install "fabula[metrics]", or choose others with --metrics',
        )  # fmt: skip
    if lacks_judge:
        raise ConfigError(
            "--judge", what="alignment is judged by a model, and none is named",
            fix="name models with --judge, or choose metrics without alignment: --metrics"
            f" {','.join(name for name in metrics if name != 'alignment') or 'cids'}",
        )  # fmt: skip
    _check_places(config)


def check_weights(config: RunConfig) -> None:
    """Check that every model has its weights, which are fetched where they can be, as on first use.

    Raises:
        ConfigError: there is no such model or device, or an option is wrong. MissingRequirement: weights are
            missing; all that are missing are listed.
    """
    looking = [one for one in config.stages.values() if isinstance(one, VisionSettings)]
    lacks = [lack for one in looking for lack in lacks_of(one, *one.looking())]
    if lacks:
        raise MissingRequirement(
            "models that look at pictures",
            what=f"these weights are not here, and could not be fetched: {listed(lacks)}",
            fix="fetch them where there is a network, or name files of yours (docs/vision.md)",
        )


def _named(config: RunConfig) -> Iterator[tuple[str, VisionSettings]]:
    """Yield every model that looks, with the settings of its stage."""
    for settings in config.stages.values():
        if isinstance(settings, VisionSettings):
            for name in settings.looking():
                yield name, settings


def _check_places(config: RunConfig) -> None:
    """Check that the devices are there; a CPU always is, and models of others may need no torch for it."""
    own = {model.name for model in MODELS}
    for name, settings in _named(config):
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()
