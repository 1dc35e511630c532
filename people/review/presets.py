"""Presets: studies as papers describe them, as data: task, plan, rules, what is drawn, and other settings.

What the user says goes before what a preset says. Presets lie in ``people/review/published``.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field, ValidationError

from ...errors import ConfigError
from ...schemas.values import Own
from .exclusions import Rules
from .plan import Plan
from .sources.source import DrawOptions

ENDING = ".toml"


class Preset(Own):
    """A study as a paper describes it."""

    name: str  # the name of its file
    task: str  # what is asked
    source: str = Field(min_length=1)  # where it comes from, and what of it is ours
    training: int = Field(default=0, ge=0)  # training items that the source names; 0: it names none
    plan: Mapping[str, int | float | bool] = {}  # fields of :class:`.plan.Plan`
    rules: Mapping[str, Any] = {}  # fields of :class:`.exclusions.Rules`
    draw: Mapping[str, Any] = {}  # fields of :class:`.sources.source.DrawOptions`
    protocol: Mapping[str, Any] = {}  # other fields of the protocol

    def planned(self, given: Mapping[str, Any]) -> Plan:
        """Return how items are dealt to people."""
        return Plan(**{**self.plan, **given})

    def ruled(self, given: Mapping[str, Any]) -> Rules:
        """Return who is left out, and when; ``given`` goes before the preset."""
        return Rules.model_validate({**self.rules, **given})

    def chosen(self, given: Mapping[str, Any]) -> DrawOptions:
        """Return what of a source becomes items; ``given`` goes before the preset."""
        own = {name: tuple(value) if isinstance(value, list) else value for name, value in self.draw.items()}
        return DrawOptions(**{**own, **given})


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return tuple(
        sorted(
            entry.name.removesuffix(ENDING)
            for entry in (files(__package__) / "published").iterdir()
            if entry.name.endswith(ENDING)
        )
    )


@cache
def load_preset(name: str) -> Preset:
    """Return a preset."""
    if name not in preset_names():
        raise ConfigError(
            "--preset",
            expected=f"one of {', '.join(preset_names())}",
            found=repr(name),
            fix="choose one of them",
        )
    content = (files(__package__) / "published" / f"{name}{ENDING}").read_text("utf-8")
    try:
        return Preset.model_validate({"name": name, **tomllib.loads(content)})
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"the preset {name} is broken: {error}") from error
