"""What stages that look at pictures share: settings, needs of models, each opened once in a process."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field

from ...errors import MissingRequirement
from ...schemas.canonical import canonical_text, digest
from ...schemas.values import Own
from .known import WEIGHTS
from .registry import MODELS, Kind, check_vision, files_of, libraries_of, open_vision
from .stored import PRETRAINED, Source
from .types import Device, Dtype, VisionModel
from .weights import DEVICES, Place, fetch_file, fetch_pretrained, needed, revision_of


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

    def networks(self) -> dict[str, Any]:
        """Return where those models run, in what precision, and the versions of their libraries.

        Of models that are not ours nobody says which libraries they use: they have all that ours use.
        """
        names, where = self.looking(), {"device": self.device, "dtype": self.dtype}
        return {**where, "libraries": libraries_of(*names)} if names else {}

    def pinned(self) -> Self:
        """Return the settings with what else they name looked up, before the run begins."""
        return self


S = TypeVar("S", bound=VisionSettings)


def with_weights(settings: S) -> S:
    """Return settings with the hashes of the files of weights that they name, whatever was set there.

    What cannot be read is left out: looking up what is missing is for :mod:`.needs`.
    """
    settings = settings.pinned()
    hashes: dict[str, str] = {}
    for name in settings.looking():
        try:
            sha256 = files_hash(name, settings.options.get(name, {}))
        except MissingRequirement:
            continue
        if sha256 is not None:
            hashes[name] = sha256
    return settings.model_copy(update={"weights": hashes})


def opened(
    name: str, settings: VisionSettings, kind: Kind | None, defaults: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process, with the weights that the run began with.

    ``kind``: what it has to be; None takes any.
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
    """Return a hash of the files and folders that a model's options name, None where none is there."""
    files = {key: path for key, path in files_of(name, options).items() if path.exists()}
    hashes = {key: revision_of(Source(name), path) for key, path in sorted(files.items())}
    return digest(hashes) if hashes else None


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing."""

    what: str  # it, in a few words
    wanted_by: str  # the model or setting that it is for
    why: str = ""  # why it cannot be had; empty where that is plain
    comes: bool = False  # whether ``fabula models fetch vision`` brings it


def listed(lacks: Iterable[Lack]) -> str:
    """Return what is missing as one text: each thing once, each reason once behind all that it holds for."""
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for lack in lacks:
        reasons.setdefault(lack.why, {}).setdefault(lack.what, {})[lack.wanted_by] = None
    parts = []
    for why, things in reasons.items():
        listed_things = "; ".join(f"{what}, for {', '.join(wanted)}" for what, wanted in things.items())
        parts.append(f"{listed_things} ({why})" if why else listed_things)
    return "; ".join(parts)


def fetching(lacks: Iterable[Lack]) -> str:
    """Return the command that fetches the weights among what is missing, empty where there are none."""
    models = dict.fromkeys(lack.wanted_by for lack in lacks if lack.comes)
    return f"fabula models fetch vision{''.join(f' --model {name}' for name in models)}" if models else ""


def lacks_of(settings: VisionSettings, *names: str | None) -> Iterator[Lack]:
    """Yield what models lack; nothing for None.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.
    """
    own = {model.name for model in MODELS}
    for name in names:
        if name is None:
            continue
        options = settings.options.get(name, {})
        try:
            check_vision(name, options)
        except MissingRequirement as error:
            yield Lack(error.where.removeprefix("the library "), name)
            continue
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()
        yield from _lacks_of_files(name, options)
        yield from _lacks_of_weights(name, options)


def _lacks_of_files(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    known = {weights.option for weights in WEIGHTS.get(name, ())}
    for key, path in files_of(name, options).items():
        if key not in known and not path.exists():
            yield Lack(f"{path}, which options.{name}.{key} names", name)


def _lacks_of_weights(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    for weights in WEIGHTS.get(name, ()):
        local = options.get(weights.option)
        try:
            _fetch(weights.source, None if local is None else Path(str(local)))
        except MissingRequirement as error:
            reason = error.found.splitlines()[0].rpartition("cannot be used: ")[2]
            if weights.source.on_request and local is None:
                reason = "nothing fetches them unasked"
            file = f"weights {weights.source.file or PRETRAINED[-1]} of {weights.source.repo}"
            yield Lack(file if local is None else error.where, name, reason, comes=local is None)


def _fetch(source: Source, local: Path | None) -> None:
    if local is not None:
        if not local.exists():
            raise needed(source, f"no {local}")
    elif source.file:
        fetch_file(source)
    else:
        fetch_pretrained(source)
