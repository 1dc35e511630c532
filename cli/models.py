"""``fabula models``: see whether language models, and those that look at pictures, can be worked with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, ExitCode
from .command import command
from .common import show


@command("models check")
def check(
    spec: str,
    *,
    model: Sequence[str] = (),
    device: str = "cpu",
    config: Path | None = None,
    as_json: bool = False,
) -> int:
    """Ask a model one small question to see if it can be used.

    The question asks for structured output and costs a fraction of a cent. Exits with 1 if the model cannot
    be used, with 3 if its key is missing. `models check vision` loads the models that look at pictures
    instead (on first use it downloads them) and runs them on two drawings; it exits with 3 if libraries or
    weights are missing.

    Options:
        spec: openai:NAME, google:NAME, anthropic:NAME or http(s)://HOST/v1#NAME; embedding: before it; or
            vision: the models that look at pictures.
        model: With vision: only this model.
        device: With vision: cpu, cuda, mps, or auto for the fastest here.
        config: Settings file; fabula.toml here is used if present.

    Examples:
        fabula models check openai:gpt-4.1-mini
        fabula models check http://localhost:8000/v1#qwen3-vl --config fabula.toml --json
        fabula models check embedding:openai:text-embedding-3-small
        fabula models check vision --model clip-vit-l-14
    """
    if spec == "vision":
        return _check_vision(model, device, config, as_json)
    if model or device != "cpu":
        raise ConfigError(
            "--model, --device", what="these options are for `fabula models check vision`",
            fix="leave them out",
        )  # fmt: skip
    from .model_check import check_model

    checked = check_model(spec, _sections(config))
    show(checked, as_json=as_json)
    return 0 if checked.passed else 1


def _check_vision(names: Sequence[str], device: str, config: Path | None, as_json: bool) -> int:
    from ..engine.config import read_settings
    from ..models.vision.checkup import check_models
    from ..models.vision.registry import MODELS
    from ..models.vision.weights import Place, choose

    path = config or Path("fabula.toml")
    sections = read_settings(path) if config is not None or path.is_file() else {}
    options: dict[str, dict[str, Any]] = {}
    for section in sections.values():  # the stages that open models have their loaders' settings there
        if isinstance(section, dict) and isinstance(section.get("options"), dict):
            for name, given in section["options"].items():
                options.setdefault(name, {}).update(given)
    device_place = Place() if device == "cpu" else choose(device)
    models = check_models(names or [registered.name for registered in MODELS], device_place, options)
    show(models, as_json=as_json)
    if models.has("failed"):
        return int(ExitCode.FINDINGS)
    return int(ExitCode.MISSING if models.has("missing") else ExitCode.OK)


def _sections(named: Path | None) -> dict[str, Any]:
    """Return the settings of models that a settings file has: spec -> key -> value."""
    from ..engine.config import MODELS, read_settings

    path = named or Path("fabula.toml")
    if named is None and not path.is_file():
        return {}
    sections = read_settings(path).get(MODELS, {})
    if not isinstance(sections, dict):
        raise ConfigError(
            f"{path}: {MODELS}", what='it must hold sections such as [models."openai:gpt-4.1-mini"]',
            fix="see docs/models.md",
        )  # fmt: skip
    return sections
