"""Figures as plain data: how often a step was chosen, points on two axes, ridges, strips of values."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ...schemas.values import Own, Score


class Spread(Own):
    """How often each step of a scale was chosen for one thing, such as a criterion."""

    label: str = Field(description="What was judged.")
    counts: tuple[Annotated[int, Field(ge=0)], ...] = Field(description="Judgements per step, in order.")
    mean: Score = Field(description="Mean step, with its interval.")
    unclear: int = Field(default=0, description="Judgements without a step; they are part of no share.")


class Distribution(Own):
    """Steps of an ordinal scale, a band per thing that was judged.

    ``stacked`` draws bars that diverge at the middle step, of which half lies on either side; ``violin`` a
    column per step around the middle of the band, as high as its share, and the mean with its interval.
    """

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="How to read it.")
    shape: Literal["stacked", "violin"] = Field(description="How it is drawn.")
    steps: tuple[int, ...] = Field(
        description="The steps, in order; an odd number, the middle one is neutral."
    )
    labels: tuple[str, ...] = Field(description="What each step says.")
    bands: tuple[Spread, ...] = Field(description="What was judged, in order.")

    @model_validator(mode="after")
    def _bands_have_every_step(self) -> "Distribution":
        if any(len(part) != len(self.steps) for part in (self.labels, *(band.counts for band in self.bands))):
            raise ValueError("every band has a count, and every step a label")
        return self


class Spot(Own):
    """One point of a scatter plot."""

    label: str = Field(description="What it is, such as a story.")
    series: str = Field(description="What its colour and shape stand for, such as a method.")
    across: float = Field(ge=0, le=1, description="From left to right.")
    up: float = Field(ge=0, le=1, description="From the bottom.")


class Scatter(Own):
    """Points on two axes that are shares, with the line on which both are the same."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="How to read it.")
    across: str = Field(description="What goes from left to right.")
    up: str = Field(description="What goes from the bottom up.")
    noun: str = Field(default="point", description="What a point is, in the singular.")
    spots: tuple[Spot, ...] = Field(description="The points, in order.")


class Ridge(Own):
    """How often values fall between the edges of a figure, for one thing, such as a method."""

    label: str = Field(description="Whose values they are.")
    counts: tuple[Annotated[int, Field(ge=0)], ...] = Field(description="Values between two edges, in order.")
    middle: float | None = Field(description="Median of all values; null where there is none.")


class Ridges(Own):
    """Distributions on one axis, one above the other; nothing is smoothed."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="How to read it.")
    unit: Literal["percent", "points", "number"] = Field(description="Unit of the axis.")
    edges: tuple[float, ...] = Field(description="Edges, ascending, one more than counts of a ridge.")
    ridges: tuple[Ridge, ...] = Field(description="From the top.")

    @model_validator(mode="after")
    def _ridges_have_every_step(self) -> "Ridges":
        if any(len(ridge.counts) != len(self.edges) - 1 for ridge in self.ridges):
            raise ValueError("every ridge has a count between two edges")
        return self


class HeatRow(Own):
    """The values of one thing, such as an entity, from left to right."""

    label: str = Field(description="Whose values they are.")
    values: tuple[float | None, ...] = Field(description="By column; null where there is no value.")
    missing: tuple[str, ...] = Field(
        default=(), description="By column, why there is none; empty: nothing is due."
    )


class Heat(Own):
    """A strip of cells for each thing, the darker the higher its value."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="How to read it.")
    unit: Literal["percent", "points", "number"] = Field(description="Unit of the values.")
    low: float = Field(default=0.0, description="Value of the lightest cell.")
    high: float = Field(default=1.0, description="Value of the darkest cell.")
    heading: str = Field(description="What the rows are.")
    columns: tuple[str, ...] = Field(description="Names of the columns, in order.")
    rows: tuple[HeatRow, ...] = Field(description="From the top.")
