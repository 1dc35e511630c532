"""What all stages that look at pictures share: where their models run, and each opened once in a process.

A result depends on the settings of its stage, and the name of a file does not tell that other weights lie in
it now. So what a run begins with stands in its settings: :func:`with_weights` puts it there.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import Field

from ...errors import MissingRequirement
from ...schemas.base import Own
from ...schemas.canonical import canonical_text, digest
from .devices import Place
from .registry import Kind, files_of, open_vision
from .types import Device, Dtype, VisionModel
from .weights import Source, revision_of


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


S = TypeVar("S", bound=VisionSettings)


def with_weights(settings: S) -> S:
    """Return settings with the hashes of the files of weights that they name, whatever was set there.

    What cannot be read is left out: looking up what is missing is for :mod:`.needs`.

    Raises:
        ConfigError: there is no such model, or an option is wrong.
    """
    hashes: dict[str, str] = {}
    for name in settings.looking():
        try:
            found = files_hash(name, settings.options.get(name, {}))
        except MissingRequirement:
            continue
        if found is not None:
            hashes[name] = found
    return settings.model_copy(update={"weights": hashes})


def opened(
    name: str, settings: VisionSettings, kind: Kind | None, defaults: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process, with the weights that the run began with.

    Args:
        name: of the model.
        settings: where it runs, and its options.
        kind: what it has to be; None takes any.
        defaults: options where the settings give none.

    Raises:
        ConfigError: as :func:`.registry.open_vision`.
        MissingRequirement: as there; or its files are others than those that the run began with.
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
    """Return a hash of the files and folders that a model's options name, None where none of them is there.

    Raises:
        ConfigError: there is no such model, or an option is wrong. MissingRequirement: one cannot be read.
    """
    files = {key: path for key, path in files_of(name, options).items() if path.exists()}
    hashes = {key: revision_of(Source(name), path) for key, path in sorted(files.items())}
    return digest(hashes) if hashes else None
