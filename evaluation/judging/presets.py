"""Whose texts judges are asked with, and published protocols by name: everything that a judge gets at once.

A set of texts lies in the settings of the stages that ask, so that a run is whole without the user's cache.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.config import RUN
from ...engine.execute import RunRequest
from ...engine.manifest import Manifest
from ...errors import ConfigError
from ...prompts.fetching import official
from ...prompts.loader import MANIFEST, TextSet, check_texts, official_set, read_set
from ..archive.replies import labels_of

if TYPE_CHECKING:
    from .settings import JudgeSettings

OFFICIAL, OWN = "official", "main"


@dataclass(frozen=True, slots=True)
class Published:
    """What was published of how a kind of evaluation is judged."""

    noun: str  # what is evaluated, for messages
    texts: str | None  # name of the official set; None where no texts were published
    needed: Collection[str]  # names of the texts that are asked with
    # name of a protocol -> its settings besides the texts, ``stage.key`` -> value. One that names a commit
    # behind ``@`` is asked with the official texts, any other one with ours.
    presets: Mapping[str, Mapping[str, Any]]
    # value of settings that are left out where they have it
    usual: Mapping[str, Any] = field(default_factory=dict)

    def official_texts(self) -> TextSet:
        """Return the official texts."""
        if self.texts is None:
            raise ConfigError(
                f"--prompts {OFFICIAL}",
                what=f"no official prompts were published for {self.noun}",
                fix=f"use {OWN}, or another wording of ours",
            )
        return official_set(self.texts, official(self.texts).commit)

    def protocol(self, settings: "JudgeSettings", run: Manifest) -> dict[str, Any]:
        """Return what the protocol of a run says of its texts, and of its preset if it has one.

        A preset stands there with the settings that depart from it.
        """
        texts = settings.texts
        prompts = labels_of(run.prompts) if texts is None else texts.labels()
        return {"prompts": prompts, **self.chosen(settings.preset, run)}

    def chosen(self, preset: str | None, run: Manifest) -> dict[str, Any]:
        """Return the preset of a run, with the settings that depart from it; nothing where it has none."""
        if preset is None:
            return {}
        departures = []
        for path, value in self.presets[preset].items():
            stage, _, key = path.partition(".")
            actual = getattr(run.run, key) if stage == RUN else run.settings.get(stage, {}).get(key)
            if (self.usual.get(path) if actual is None else actual) != value:
                departures.append(path)
        return {"preset": {"name": preset, "departures": departures}}


@dataclass(frozen=True, slots=True)
class Wording:
    """Whose words an evaluation is to use."""

    texts: TextSet | None = None  # a set of texts; None for our own
    preset: str | None = None  # name of the protocol that was chosen; None for none
    # settings that follow from it, ``stage.key`` -> value
    settings: Mapping[str, Any] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """Return the settings that can be written: null cannot."""
        return {path: value for path, value in self.settings.items() if value is not None}

    def unset(self, stage: str) -> dict[str, None]:
        """Return the settings of a stage that have no value under the protocol."""
        paths = [path.split(".") for path, value in self.settings.items() if value is None]
        return {key: None for named, key in paths if named == stage}

    def put_into(self, request: RunRequest, stages: Collection[str]) -> RunRequest:
        """Return a request whose asking stages hold the texts and the name of the protocol."""
        if self.texts is None and self.preset is None:
            return request
        changed = {}
        for name in stages:
            update = {"texts": self.texts, "preset": self.preset, **self.unset(name)}
            changed[name] = request.config.stages[name].model_copy(update=update)
        config = replace(request.config, stages={**request.config.stages, **changed})
        return replace(request, config=config)


def asking_with(published: Published, prompts: str | None, protocol: str | None) -> Wording:
    """Return whose words an evaluation is to use.

    ``protocol``: a published protocol by name; None for none.
    """
    if protocol is None:
        texts = _texts(published, prompts)
        return Wording(texts)
    if prompts is not None:
        raise ConfigError(
            "--prompts, --protocol", what="a protocol names its prompts itself", fix="leave one out"
        )
    if protocol not in published.presets:
        raise ConfigError(
            f"--protocol {protocol}", what=f"there is no such protocol for {published.noun}",
            fix=f"use {' or '.join(published.presets)}",
        )  # fmt: skip
    texts = published.official_texts() if "@" in protocol else None
    return Wording(texts, protocol, published.presets[protocol])


def _texts(published: Published, prompts: str | None) -> TextSet | None:
    if prompts is None or prompts == OWN:
        return None
    if prompts == OFFICIAL:
        texts = published.official_texts()
    elif (Path(prompts) / MANIFEST).is_file():
        texts = read_set(Path(prompts))
    else:
        raise ConfigError(
            f"--prompts {prompts}", what=f"this is neither a set of prompts nor a folder with {MANIFEST}",
            fix=f"use {OWN}, {OFFICIAL}, or a folder as `fabula prompts fetch` writes it",
        )  # fmt: skip
    check_texts(texts, published.needed, f"--prompts {prompts}")
    return texts
