"""What a report on shot images shows beside tables and plots, as plain data."""

from pydantic import Field

from ...schemas.base import Own
from ...schemas.score import Score


class Place(Own):
    """Where a method stands in one score."""

    score: Score = Field(description="Its value over the stories that it has.")
    rank: int | None = Field(default=None, description="From 1; null where it is not ranked.")
    low: int | None = Field(default=None, description="Lowest rank of the 95 % interval.")
    high: int | None = Field(default=None, description="Highest rank of it.")
    shared: float | None = Field(
        default=None, description="Mean over the stories of all ranked methods, by which it is ranked."
    )
    stories: int | None = Field(default=None, description="How many stories those are.")
    better: tuple[str, ...] = Field(default=(), description="Methods than which it is better, by both tests.")
    worse: tuple[str, ...] = Field(default=(), description="Methods than which it is worse, by both tests.")
    why: str | None = Field(default=None, description="Why it has no rank.")


class LeaderRow(Own):
    """One method of a leaderboard."""

    method: str = Field(description="The method.")
    unranked: str | None = Field(default=None, description="Why it is in no ranking.")
    places: dict[str, Place] = Field(description="Score -> where it stands; one that is not there is blank.")


class LeaderColumn(Own):
    """One score of a leaderboard."""

    name: str = Field(description="Name in the data.")
    label: str = Field(description="Name for readers.")
    digits: int = Field(description="Digits behind the point.")
    higher: bool | None = Field(description="Whether the higher value is better; null of a diagnostic.")
    ranked: int = Field(description="How many methods are ranked by it.")


class Leaders(Own):
    """Several methods by every score."""

    note: str = Field(description="How ranks and tests were made.")
    columns: tuple[LeaderColumn, ...] = Field(description="Scores, in order.")
    rows: tuple[LeaderRow, ...] = Field(description="Methods, in order.")


class Sector(Own):
    """One score in a polar chart."""

    name: str = Field(description="Name in the data.")
    radius: float | None = Field(description="0 to 1; null where there is no value.")
    low: float | None = Field(default=None, description="Lower end of the interval, on the same scale.")
    high: float | None = Field(default=None, description="Upper end.")


class PolarAxis(Own):
    """One direction of the polar charts."""

    name: str = Field(description="Name in the data.")
    label: str = Field(description="Name for readers.")
    group: str = Field(description="What it is about; sectors of a group have one colour.")
    digits: int = Field(description="Digits behind the point.")
    full: float = Field(description="Value that reaches the rim.")


class PolarChart(Own):
    """One method."""

    method: str = Field(description="The method.")
    sectors: tuple[Sector, ...] = Field(description="One per axis, in the same order.")
    values: dict[str, Score] = Field(description="Score -> its value.")


class Polar(Own):
    """Polar charts of all methods (Table S6)."""

    note: str = Field(description="How the axes are scaled.")
    axes: tuple[PolarAxis, ...] = Field(description="Anti-clockwise from the top.")
    charts: tuple[PolarChart, ...] = Field(description="One per method.")


class Snap(Own):
    """A picture of a shot, a crop or a reference, as embedded."""

    width: int = Field(default=0, description="In pixels, as embedded.")
    height: int = Field(default=0, description="In pixels, as embedded.")
    data: str | None = Field(default=None, exclude=True, description="The picture as a data URL.")
    lost: str | None = Field(default=None, description="Why there is no picture.")


class DrawnBox(Own):
    """A detected character in a picture; positions are shares of its width and height."""

    left: float = Field(description="Left edge.")
    top: float = Field(description="Upper edge.")
    width: float = Field(description="Width.")
    height: float = Field(description="Height.")
    character: str | None = Field(default=None, description="Who it was taken for; null for nobody.")
    number: int = Field(description="From 1, by the detector's score.")


class Onstage(Own):
    """An expected character in a shot."""

    character: str = Field(description="Its key.")
    box: int | None = Field(default=None, description="Number of its box; null where none was matched.")
    similarity: float | None = Field(default=None, description="Mean cosine of crop and references.")
    missed: str | None = Field(default=None, description="Why it has no crop.")


class ShotCard(Own):
    """One shot of one method."""

    method: str = Field(description="The method.")
    story_id: str = Field(description="The story.")
    number: int = Field(description="Of the shot, from 1.")
    picture: Snap = Field(description="Its picture.")
    boxes: tuple[DrawnBox, ...] = Field(default=(), description="What was detected, where it can be drawn.")
    onstage: int = Field(description="How many characters the script puts on stage.")
    found: int | None = Field(description="How many were detected; null where nobody looked.")
    cast: tuple[Onstage, ...] = Field(default=(), description="The expected characters.")
    values: dict[str, float] = Field(description="Score -> value.")
    missing: dict[str, str] = Field(default_factory=dict, description="Score -> why it has no value.")
    texts: dict[str, str] = Field(default_factory=dict, description="What the script asks, by part.")


class WorstShots(Own):
    """The shots that are worst by one score."""

    name: str = Field(description="Score.")
    label: str = Field(description="Name for readers.")
    digits: int = Field(description="Digits behind the point.")
    total: int = Field(description="How many shots have a value.")
    cards: tuple[ShotCard, ...] = Field(description="The worst first.")


class WallCrop(Own):
    """One crop of a character."""

    shot: int = Field(description="Number of the shot.")
    picture: Snap = Field(description="The crop.")
    similarity: float | None = Field(description="Mean cosine of crop and references.")


class WallRow(Own):
    """A character: its references beside every crop that was taken for it."""

    character: str = Field(description="Its key.")
    tag: str | None = Field(description="Kind, such as realistic_human.")
    references: tuple[Snap, ...] = Field(description="Its references, as they are cropped.")
    crops: tuple[WallCrop, ...] = Field(description="By shot.")
    mean: float | None = Field(description="Mean similarity of its crops.")
    missed: tuple[str, ...] = Field(default=(), description="Shots without a crop of it, and why.")


class StyleMatrix(Own):
    """Cosines of the styles of a story's pictures."""

    shots: tuple[int, ...] = Field(description="Numbers of the shots that have a picture.")
    rows: tuple[tuple[float | None, ...], ...] = Field(description="Cosines; null where there is none.")
    cross: tuple[float | None, ...] = Field(description="Per shot, the cosine with the references.")
    score: Score = Field(description="CSD self: the mean over all pairs.")


class StoryOfMethod(Own):
    """One story by one method."""

    method: str = Field(description="The method.")
    scores: dict[str, Score] = Field(description="Scores of the story.")
    cards: tuple[ShotCard, ...] = Field(description="Its shots, in order.")
    wall: tuple[WallRow, ...] = Field(default=(), description="Its characters.")
    styles: StyleMatrix | None = Field(default=None, description="Styles of its pictures.")


class StoryGrid(Own):
    """One story, by several methods."""

    story_id: str = Field(description="The story.")
    why: str = Field(description="Why it is shown: lowest, typical, highest, chosen or all.")
    methods: tuple[StoryOfMethod, ...] = Field(description="The methods that are shown.")


class ShotRow(Own):
    """One shot of one method, for the CSV."""

    method: str
    story_id: str
    number: int
    picture: bool
    onstage: int
    found: int | None
    matched: int | None
    expected: int | None
    values: dict[str, float | None]


class ShotsPart(Own):
    """What a report on shot images shows beside tables and plots."""

    leaders: Leaders | None = Field(default=None, description="Ranking; null with one method.")
    polar: Polar | None = Field(default=None, description="Polar charts.")
    labels: dict[str, str] = Field(description="Score of a shot or story -> name for readers.")
    digits: dict[str, int] = Field(description="Score -> digits behind the point.")
    worst_note: str = Field(default="", description="How the worst shots were chosen.")
    worst: tuple[WorstShots, ...] = Field(default=(), description="The worst shots by each score.")
    stories_note: str = Field(default="", description="How the stories were chosen.")
    pictures_note: str = Field(default="", description="Where pictures come from, and how many there are.")
    stories: tuple[StoryGrid, ...] = Field(default=(), description="The stories that are shown.")
    every: tuple[ShotRow, ...] = Field(default=(), exclude=True, description="Every shot of every method.")
