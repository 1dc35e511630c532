"""Planted losses: what was done to which storyboard, as ``plants.jsonl`` says it."""

from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from ...errors import InputError, UserError
from ...evaluation.recoverability.items import DIMENSIONS
from ...schemas.plain_files import json_lines, reason_of
from ...schemas.values import Own

NONE = "none"
"""The loss of a storyboard in which nothing was changed: a control."""


class Plant(Own):
    """One storyboard in which a loss was planted, or none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    story_id: str = Field(description="The story.")
    seed: int | None = Field(default=None, description="Seed of the storyboard that was changed.")
    loss: str = Field(description="What was done; none where nothing was.")
    panels: tuple[int, ...] = Field(default=(), description="Panels that were changed, from 1.")
    transition: int | tuple[int, int] | None = Field(
        default=None, description="Transition that was hit, as its earlier scene or as both; null for none."
    )
    transitions: tuple[tuple[int, int], ...] = Field(
        default=(), description="All transitions that were hit, each as both scenes, where there are several."
    )
    dimensions: tuple[str, ...] = Field(default=(), description="Dimensions that were hit.")
    method: str = Field(description="Name of the changed outputs, as they are judged.")
    base: str | None = Field(default=None, description="Name of the outputs that were changed.")

    @property
    def links(self) -> tuple[int, ...]:
        """The earlier scenes of the transitions that were hit."""
        if self.transitions:
            return tuple(earlier for earlier, _ in self.transitions)
        if self.transition is None:
            return ()
        return (self.transition[0] if isinstance(self.transition, tuple) else self.transition,)

    @property
    def is_control(self) -> bool:
        """Whether nothing was changed."""
        return self.loss == NONE


def read_plants(path: Path) -> tuple[Plant, ...]:
    """Return the lines of a file of plants.

    Raises:
        InputError: it cannot be read, or lines are of another form; all of them are named.
    """
    problems: list[UserError] = []
    plants: list[Plant] = []
    fix = "write the plants again with `fabula experiment plant`"
    try:
        for number, row in enumerate(json_lines(path), 1):
            try:
                plant = Plant.model_validate(row)
            except ValidationError as error:
                detail = error.errors(include_url=False)[0]
                where, field = f"{path}:{number}", ".".join(map(str, detail["loc"]))
                problems.append(UserError(where, what=f"{field}: {detail['msg']}", fix=fix))
                continue
            strange = sorted(set(plant.dimensions) - set(DIMENSIONS))
            if strange:
                what = f"{strange[0]} is no scored dimension"
                problems.append(UserError(f"{path}:{number}", what=what, fix=fix))
            plants.append(plant)
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix))
    if problems:
        raise InputError(problems)
    return tuple(plants)
