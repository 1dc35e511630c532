"""Models that look at pictures: looked up and pinned before anything is looked at, in any evaluation."""

from collections.abc import Iterator
from dataclasses import replace

from ..engine.config import RunConfig, parse_set, read_settings
from ..engine.run_options import RunOptions
from ..errors import MissingRequirement
from ..models.vision.needs import VisionSettings, lacks_of, listed, with_weights
from ..models.vision.registry import MODELS, check_vision
from ..models.vision.weights import DEVICES, Place

AUTO = "auto"


def given_settings(options: RunOptions) -> set[tuple[str, str]]:
    """Return stage and key of every setting that the user gave, in a file or one by one."""
    toml = options.settings_file
    sections = {} if toml is None else read_settings(toml)
    in_file = {(stage, key) for stage, keys in sections.items() if isinstance(keys, dict) for key in keys}
    return in_file | {parse_set(text)[:2] for text in options.texts}


def device_named(name: str) -> str:
    """Return a device; for ``auto`` the fastest here. Without torch there is the CPU alone."""
    from ..models.vision.weights import available

    if name != AUTO:
        return name
    try:
        return available()[0]
    except MissingRequirement:
        return DEVICES[0]


def pinned(config: RunConfig) -> RunConfig:
    """Return settings with the hashes of the files of weights that they name."""
    stages = {
        name: with_weights(settings) if isinstance(settings, VisionSettings) else settings
        for name, settings in config.stages.items()
    }
    return replace(config, stages=stages)


def missing_libraries(config: RunConfig) -> list[str]:
    """Return what is not installed, and the model that needs it. Loads no weights."""
    missing = []
    for name, settings in _named(config):
        try:
            check_vision(name, settings.options.get(name))
        except MissingRequirement as error:
            missing.append(f"{error.where.removeprefix('the library ')} for {name}")
    return list(dict.fromkeys(missing))


def check_places(config: RunConfig) -> None:
    """Check that the devices are there; a CPU always is, and models of others may need no torch for it."""
    own = {model.name for model in MODELS}
    for name, settings in _named(config):
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()


def check_weights(config: RunConfig) -> None:
    """Check that every model has its weights, which are fetched where they can be, as on first use."""
    looking = [stage for stage in config.stages.values() if isinstance(stage, VisionSettings)]
    lacks = [lack for settings in looking for lack in lacks_of(settings, *settings.looking())]
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
