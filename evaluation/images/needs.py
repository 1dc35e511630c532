"""Which models each metric needs, and whether all of them are there: checked before anything is looked at."""

from collections.abc import Collection, Iterator, Mapping

from ...engine.config import RunConfig
from ...errors import ConfigError, MissingRequirement
from ...models.vision.devices import DEVICES, Place
from ...models.vision.looking import VisionSettings
from ...models.vision.needs import lacks_of, listed
from ...models.vision.registry import MODELS, check_vision
from ...schemas.base import Own
from ..metrics.alignment import DIMENSIONS
from ..metrics.metric import Need
from ..metrics.registry import metrics
from .settings import AlignmentSettings


def models_needed(names: Collection[str], dimensions: Collection[str] = DIMENSIONS) -> frozenset[Need]:
    """Return the models that some metrics need; judges need crops for actions alone."""
    return frozenset(
        need
        for metric in metrics(names)
        if not metric.judged or metric.name in dimensions
        for need in metric.needs
    )


def named_by(settings: Own, need: Need) -> str | tuple[str, ...] | None:
    """Return which models the settings of its stage name for a need; nothing or None for none."""
    if need.setting in type(settings).model_fields:
        named: str | tuple[str, ...] | None = getattr(settings, need.setting)
        return named
    more: Mapping[str, str] = getattr(settings, "more", {})
    return more.get(need.setting)


def check_needs(config: RunConfig, names: Collection[str]) -> None:
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
    judged = {name for name in names if any(metric.judged for metric in metrics([name]))}
    lacks_judge = bool(judged) and not asking.judges
    if missing:
        listed = [*dict.fromkeys(missing), *(["a judge for alignment (--judge)"] if lacks_judge else [])]
        raise MissingRequirement(
            "--metrics", what=f"{', '.join(names)} cannot be computed here. Missing: {'; '.join(listed)}",
            fix='pip install "fabula[metrics]", or choose others with --metrics',
        )  # fmt: skip
    if lacks_judge:
        raise ConfigError(
            "--judge", what="alignment is judged by a model, and none is named",
            fix="name models with --judge, or choose metrics without alignment: --metrics"
            f" {','.join(name for name in names if name not in judged) or 'cids'}",
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
