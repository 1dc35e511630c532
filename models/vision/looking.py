"""What all stages that look at pictures share: where their models run, and each opened once in a process."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import Field

from ...schemas.base import Own
from ...schemas.canonical import canonical_text
from .devices import Place
from .registry import Kind, open_vision
from .types import Device, Dtype, VisionModel


class VisionSettings(Own):
    """Where models run, and what they are given besides their name."""

    device: Device = Field(default="cpu", description="Class of device: cpu, cuda or mps.")
    dtype: Dtype = Field(default="float32", description="Numbers of the models: float32, float16, bfloat16.")
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Name of a model -> settings of its loader, such as local."
    )
    batch: int = Field(default=16, ge=1, le=1024, description="Pictures that a model gets at once.")


def opened(name: str, settings: VisionSettings, kind: Kind, defaults: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process.

    Args:
        name: of the model.
        settings: where it runs, and its options.
        kind: what it has to be.
        defaults: options where the settings give none.

    Raises:
        ConfigError, MissingRequirement: as :func:`.registry.open_vision`.
    """
    options = {**(defaults or {}), **settings.options.get(name, {})}
    return _opened(name, Place(settings.device, settings.dtype), canonical_text(options), kind)


@cache
def _opened(name: str, place: Place, options: str, kind: Kind) -> VisionModel:
    return open_vision(name, place, json.loads(options), kind)
