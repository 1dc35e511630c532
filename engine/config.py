"""Settings of a run: ``fabula.toml`` and ``--set stage.key=value`` become one checked RunConfig."""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ..errors import ConfigError
from ..models.spec import ModelSettings
from ..schemas.plain_files import read_plain, reason_of, type_reason
from ..schemas.values import Own
from .pipeline import LoadedPipeline, Pipeline, load_pipeline

if TYPE_CHECKING:
    from ..models.options import ModelOptions

RUN = "run"
"""The section of ``fabula.toml`` for the run itself."""
MODELS = "models"
"""What the sections of ``fabula.toml`` for models start with: ``[models."SPEC"]``."""


S = TypeVar("S", bound=Own)
MOST_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of the run itself, section ``[run]``."""

    # worker processes; None means one per available core, 0 means none: everything runs in the main process,
    # where a crash of a stage ends the run
    workers: int | None = None
    # seconds that one item may take in one stage, times its patience, before it fails with ``timeout``
    item_timeout: float = 120.0
    # share of the items not rejected that must be made for the run to succeed, 0 to 1; above 0, a run that
    # rejects every item does not succeed either
    threshold: float = 0.95
    seed: int = 42  # master seed
    attempts: int = 1  # most times that a question is asked while no reply to it can be used


@dataclass(frozen=True, slots=True)
class RunConfig:
    """All settings of a run: the run's own, one slice per stage, and those of the models that stages name."""

    run: RunSettings
    stages: Mapping[str, Own]
    models: "Mapping[str, ModelOptions]" = field(default_factory=dict)

    def own(self, stage: str, kind: type[S]) -> S:
        """Return the settings of a stage as the type that they have."""
        settings = self.stages[stage]
        assert isinstance(settings, kind)
        return settings

    def as_json(self) -> dict[str, Any]:
        """Return the stages' settings as they stand in ``run.json``: stage -> settings."""
        return {name: settings.as_json() for name, settings in self.stages.items()}


def resolve_config(
    pipeline: Pipeline,
    toml: Path | None = None,
    sets: Sequence[str] = (),
    models: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    others: Callable[[], Collection[str]] = frozenset,
) -> RunConfig:
    """Return the settings of a run: the stages' defaults, then ``fabula.toml``, then ``--set``."""
    loaded = load_pipeline(pipeline)
    given: dict[str, dict[str, Any]] = {}
    if toml is not None:
        known, read = (RUN, MODELS, *loaded.names()), read_settings(toml)
        foreign = others() if read.keys() - set(known) else frozenset()
        for section, values in read.items():
            if section in foreign and section not in known:
                continue
            if not isinstance(values, dict):
                raise ConfigError(
                    f"{toml}: {section}", what="this key is outside of any section such as [run]",
                    fix="move it under the stage that it belongs to",
                )  # fmt: skip
            given[section] = dict(values)
    for text in sets:
        section, key, value = parse_set(text)
        if section == MODELS:
            raise ConfigError(
                f"--set {text}", what="settings of a model cannot be given with --set",
                fix='write them into fabula.toml, under [models."SPEC"]',
            )  # fmt: skip
        given.setdefault(section, {})[key] = value
    for spec, values in (models or {}).items():
        sections = given.setdefault(MODELS, {})
        sections[spec] = {**sections.get(spec, {}), **values}
    return config_from(loaded, given, where=str(toml) if toml is not None and not sets else "settings")


def config_from(
    loaded: LoadedPipeline, given: Mapping[str, Mapping[str, Any]], *, where: str = "settings"
) -> RunConfig:
    """Return checked settings from plain values by section: a stage's name, or ``run``."""
    known = (RUN, MODELS, *loaded.names())
    for section in given:
        if section not in known:
            raise ConfigError(
                f"{where}: [{section}]", what=f"there is no such stage; there are: {', '.join(known)}",
                fix="use one of these names",
            )  # fmt: skip
    stages = {
        stage.name: _stage_settings(
            stage.spec.settings, given.get(stage.name, {}), f"{where}: [{stage.name}]"
        )
        for stage in loaded.stages
    }
    run = _run_settings(given.get(RUN, {}), f"{where}: [{RUN}]")
    return RunConfig(run, stages, _model_options(stages, given.get(MODELS, {})))


def _model_options(
    stages: Mapping[str, Own], given: Mapping[str, Mapping[str, Any]]
) -> "dict[str, ModelOptions]":
    """Return the settings of every model that a stage names; those of others are only looked over."""
    named = {spec for settings in stages.values() for spec in models_of(settings)}
    if not named and not given:
        return {}
    from ..models.options import options_for
    from ..models.spec import parse_spec

    return {spec: options_for(parse_spec(spec), given) for spec in sorted({*named, *given}) if spec in named}


def models_of(settings: Own) -> tuple[str, ...]:
    """Return the specs of the models that a stage with these settings asks; none for most stages."""
    return settings.models() if isinstance(settings, ModelSettings) else ()


def read_settings(path: Path) -> dict[str, Any]:
    """Return what a settings file says, by section; only its form is checked."""
    try:
        return tomllib.loads(read_plain(path, follow=True).decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            str(path),
            what=f"the settings file cannot be read: {reason_of(error)}",
            fix="check the path",
        ) from error
    except ValueError as error:
        raise ConfigError(
            str(path), what=f"not valid TOML in UTF-8: {error}", fix="correct that place"
        ) from error


def parse_set(text: str) -> tuple[str, str, Any]:
    """Return section, key and value of ``stage.key=value``; the value is read as TOML, else as a string."""
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(
            f"--set {text}", what="a setting is written stage.key=value",
            fix="for example --set draft_scenes.scenes=6",
        )  # fmt: skip
    try:
        return section, key, tomllib.loads(f"value = {value}")["value"]
    except ValueError:
        return section, key, value


_CURES = {"model_missing": "name a model: --model SPEC, or model = SPEC in this section of the settings file"}
"""Kind of a settings error -> what to do, where changing the value is not the thing to do."""


def _stage_settings(kind: type[Own], values: Mapping[str, Any], where: str) -> Own:
    _check_keys(where, values, tuple(kind.model_fields))
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{where} {key}".rstrip(), what=type_reason(first),
            fix=_CURES.get(first["type"], "change the value"),
        ) from error  # fmt: skip


def _check_keys(where: str, values: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in values:
        if key not in known:
            exists = f"there are: {', '.join(known)}" if known else "this stage has no settings"
            raise ConfigError(
                f"{where} {key}", what=f"there is no such setting; {exists}", fix="check the spelling"
            )


def _run_settings(values: Mapping[str, Any], where: str) -> RunSettings:
    _check_keys(where, values, tuple(entry.name for entry in fields(RunSettings)))
    checks = {
        "workers": (_is_count, "a number of processes, 0 or more"),
        "item_timeout": (_is_positive, "seconds, more than 0"),
        "threshold": (_is_share, "a share from 0 to 1"),
        "seed": (_is_count, "a whole number, 0 or more"),
        "attempts": (_is_attempts, f"a number of attempts, 1 to {MOST_ATTEMPTS}"),
    }
    for key, value in values.items():
        good, expected = checks[key]
        if not good(value):
            raise ConfigError(f"{where} {key}", expected=expected, found=repr(value), fix="change the value")
    return replace(RunSettings(), **values)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_attempts(value: object) -> bool:
    return _is_count(value) and value in range(1, MOST_ATTEMPTS + 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:  # noqa: ANN401 - any TOML value
    return _is_number(value) and 0 < value < float("inf")


def _is_share(value: Any) -> bool:  # noqa: ANN401 - any TOML value
    return _is_number(value) and 0 <= value <= 1
