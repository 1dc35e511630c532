"""What stands behind the names in settings: versions and hashes of networks, as a run begins with them.

A result depends on the settings of its stage; a name alone would not tell that other weights answer to it
now. So what a run begins with stands in its settings: a build sets it, whatever it was set to.
"""

from dataclasses import replace

from ...engine.config import RunConfig
from ...errors import MissingRequirement
from ...media.shot_network import fingerprint
from ...models.vision.looking import VisionSettings, with_weights
from ...schemas.base import Own
from . import detect_shots, read_subtitles


def pinned(config: RunConfig) -> RunConfig:
    """Return settings with the identity of the network that finds shots, of readers and of files of weights.

    What is missing is left out here: :func:`.needs.check_needs` lists it.

    Raises:
        ConfigError: there is no such model, or an option is wrong.
    """
    return replace(config, stages={name: _pinned(settings) for name, settings in config.stages.items()})


def _pinned(settings: Own) -> Own:
    if isinstance(settings, detect_shots.Settings):
        return settings.model_copy(update={"network": _network(settings)})
    if isinstance(settings, read_subtitles.Settings):
        return settings.model_copy(update={"version": _version(settings.reader)})
    if isinstance(settings, VisionSettings):
        return with_weights(settings)
    return settings


def _network(settings: detect_shots.Settings) -> str | None:
    if settings.method != "transnetv2":
        return None
    try:
        return fingerprint()
    except MissingRequirement:
        return None


def _version(reader: str | None) -> str | None:
    if reader is None:
        return None
    try:
        return read_subtitles.identity_of(reader)
    except ImportError:
        return None
