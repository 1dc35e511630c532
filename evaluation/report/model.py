"""What a report shows, as plain data: the page, the JSON and the CSV files are three forms of this.

One adapter per protocol fills it (:mod:`.katha`, :mod:`.events`, :mod:`.images`); the page knows no protocol.
"""

from typing import Any, Literal

from pydantic import Field

from ...pages.figures import Heat, Plot, Ridges, Scatter
from ...pages.grid import Unit
from ...schemas.judgement import Protocol
from ...schemas.values import Own, Score
from ..metrics.metric import Quantity


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
    full: float = Field(description="Value that reaches the rim.")


class PolarChart(Own):
    """One method."""

    method: str = Field(description="The method.")
    sectors: tuple[Sector, ...] = Field(description="One per axis, in the same order.")


class Polar(Own):
    """Polar charts of all methods (ViStoryBench, Table S6)."""

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


REPORT_VERSION = "2"


class Measure(Own):
    """One column of scores."""

    name: str = Field(description="Name in the data, such as stg_filtered.")
    label: str = Field(description="Name for readers.")
    unit: Unit = Field(
        default="percent",
        description="How a value is printed: percent and points as 100 times the value, the others as it is; "
        "number with three digits, plain with two, count without, p with three or as smaller than 0.001.",
    )
    better: Literal["low", "high"] | None = Field(default=None, description="Which end is the good one.")

    @classmethod
    def of(cls, quantity: Quantity, **more: Any) -> "Measure":  # noqa: ANN401 - fields of this class
        """Return the column of a share, or of a difference of shares; ``more`` replaces what it says."""
        fields_of = {"name": quantity.name, "label": quantity.label, "better": quantity.better}
        return cls(**{"unit": "points" if quantity.range[0] < 0 else "percent", **fields_of, **more})


class Trace(Own):
    """Something that a number was made of."""

    label: str = Field(description="Which it is, such as an episode, a shot and an entity.")
    text: str = Field(description="Its value, or why it has none.")
    anchor: str | None = Field(default=None, description="Where the page shows it; null where it does not.")


class ScoreRow(Own):
    """The scores of one method, judge, dimension or group."""

    label: str = Field(description="What the scores are of.")
    scores: dict[str, Score] = Field(description="Measure -> score; a measure that is not there is blank.")
    note: str | None = Field(default=None, description="A warning or remark about the row.")
    heading: bool = Field(default=False, exclude=True, description="Whether it heads those that follow.")
    anchor: str | None = Field(default=None, exclude=True, description="Its name in links of the page.")
    traces: tuple[Trace, ...] = Field(default=(), exclude=True, description="What it was made of.")
    traces_note: str = Field(default="", exclude=True, description="How these were chosen, of how many.")


class ScoreTable(Own):
    """Scores by row and measure."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="Definitions: what was counted, what the interval is.")
    heading: str = Field(default="Method", description="Heading of the first column.")
    measures: tuple[Measure, ...] = Field(description="Columns.")
    rows: tuple[ScoreRow, ...] = Field(description="Rows, in order.")


class CountRow(Own):
    """Counts, or other plain values, of one method or judge."""

    label: str = Field(description="What was counted.")
    values: dict[str, int | float | str | None] = Field(description="Column -> value; null where unknown.")
    href: str = Field(default="", exclude=True, description="On a page: where its label leads.")


class CountTable(Own):
    """Counts by row and column."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="What was counted.")
    heading: str = Field(default="Method", description="Heading of the first column.")
    columns: dict[str, str] = Field(description="Name in the data -> name for readers, in order.")
    rows: tuple[CountRow, ...] = Field(description="Rows, in order.")


class Comparison(Own):
    """One paired comparison of two methods by stories."""

    measure: str = Field(description="What is compared.")
    first: str = Field(description="Method.")
    second: str = Field(description="Method.")
    difference: Score = Field(description="First less second, with its paired interval.")
    unit: Unit = Field(default="points", description="How the difference is printed.")
    p: dict[str, float | None] = Field(
        description="Test -> its p-value, corrected for the number of comparisons; null where undefined."
    )
    effects: dict[str, float | None] = Field(description="Name of an effect size -> its value.")
    pairs: int = Field(description="Stories that both have.")
    verdict: str = Field(description="What this says, in words.")
    shown: bool = Field(default=True, description="Whether the page lists it; there may be too many.")


class Frame(Own):
    """One picture of a case."""

    label: str = Field(description="Which it is, such as: Panel 2.")
    text: str | None = Field(default=None, description="What the source says there; readers only see it.")
    width: int = Field(default=0, description="In pixels, as embedded.")
    height: int = Field(default=0, description="In pixels, as embedded.")
    data: str | None = Field(
        default=None, exclude=True, description="The picture as a data URL; null where it is not at hand."
    )


class Example(Own):
    """What has one value of a score."""

    level: Literal["low", "middle", "high"] = Field(description="Where its value stands among all.")
    value: float = Field(description="Its value.")
    text: str = Field(description="What it is, such as: story 03 by model-a, shot 2.")
    frames: tuple[Frame | Snap, ...] = Field(default=(), description="Its pictures in order.")


class Examples(Own):
    """A score, and what its values look like in this evaluation."""

    name: str = Field(description="Name in the data.")
    label: str = Field(description="Name for readers.")
    note: str = Field(description="What it measures, and of what these are values.")
    unit: Unit = Field(default="number", description="How a value is printed.")
    total: int = Field(description="How many values there are.")
    shown: tuple[Example, ...] = Field(description="Lowest, middle and highest; fewer where there are fewer.")


class Verdict(Own):
    """One reply of a judge to one question, and what it counts as."""

    judge: str = Field(description="Spec of the judge, or the name of a way of combining them.")
    condition: str = Field(description="Evidence condition.")
    vote: int = Field(default=0, description="Which answer of this judge.")
    outcome: str = Field(description="answered, refused, blocked, ...; combined for an ensemble.")
    answer: str | None = Field(description="What it answered; the reason where there is no answer.")
    status: str | None = Field(default=None, description="Evidence status or image support, as stated.")
    confidence: str | None = Field(default=None, description="As stated.")
    correct: bool | None = Field(
        description="Whether that counts as correct; null where it counts as neither."
    )


class CaseItem(Own):
    """One question, or one event, of a case."""

    id: str = Field(description="Question id, or number of the event.")
    group: str = Field(description="Dimension of the question, or place of the event.")
    text: str = Field(description="The question, or the event.")
    accepted: tuple[str, ...] = Field(default=(), description="Accepted answers, the canonical one first.")
    verdicts: tuple[Verdict, ...] = Field(description="Per judge and condition.")
    combined: dict[str, bool | None] = Field(
        description="Condition -> what all judges together count as; null where neither."
    )
    valid: bool | None = Field(default=None, description="Whether it is in the method's valid set.")


class Case(Own):
    """One transition, or one prompt, with the frames behind its score."""

    unit: str = Field(description="Story id, or file name of the video.")
    title: str = Field(description="Title of the story, or the prompt.")
    place: str = Field(description="Which part, such as: scene 2 to 3.")
    method: str = Field(description="Method whose output is shown.")
    seed: int | None = Field(default=None, description="Seed of the generation.")
    why: str = Field(description="Why it is shown: worst, typical, or all.")
    score: Score = Field(description="Its gap, or completion rate.")
    frames: tuple[Frame, ...] = Field(default=(), description="Pictures in order.")
    items: tuple[CaseItem, ...] = Field(description="Its questions or events.")


class Cases(Own):
    """The transitions or prompts that a report shows."""

    title: str = Field(description="Heading of the section.")
    note: str = Field(description="How they were chosen, out of how many.")
    measure: Measure = Field(description="What their score is.")
    total: int = Field(description="How many there are.")
    conditions: dict[str, str] = Field(description="Condition -> name for readers, in order.")
    right: str = Field(default="correct", description="What a verdict that counts is called.")
    wrong: str = Field(default="incorrect", description="What one that does not is called.")
    asked: str = Field(default="Question about", description="What the groups of items are called.")
    shown: tuple[Case, ...] = Field(description="Those that are shown.")


class SeenCell(Own):
    """A scheduled entity in a shot."""

    shot: str = Field(description="Key of the shot.")
    anchor: str = Field(default="", exclude=True, description="Its name in links of the page.")
    picture: Snap = Field(description="Its crop.")
    status: str = Field(description="present, weak or absent; missing without a video; not looked for.")
    fidelity: float | None = Field(description="Overall fidelity, 0 to 1.")
    gate: str = Field(description="Whether it is compared across shots.")
    values: dict[str, float] = Field(default_factory=dict, description="What was measured -> value.")
    missing: dict[str, str] = Field(default_factory=dict, description="What has no value -> why.")
    replies: tuple[Verdict, ...] = Field(default=(), description="What judges said of it.")


class SeenEntity(Own):
    """An entity of the registry in the shots of an episode."""

    name: str = Field(description="Its name.")
    type: str = Field(description="character, object or location.")
    description: str = Field(description="What the registry says of it.")
    where: str = Field(default="", description="Method and episode, where it stands by itself.")
    value: float | None = Field(default=None, description="By what it was chosen.")
    anchor: str = Field(default="", exclude=True, description="Its name in links of the page.")
    cells: tuple[SeenCell | None, ...] = Field(description="By shot; null where it is not scheduled.")
    replies: tuple[Verdict, ...] = Field(default=(), description="What judges said of all its shots at once.")


class SeenShot(Own):
    """One shot of an episode."""

    shot: str = Field(description="Its key.")
    anchor: str = Field(exclude=True, description="Its name in links of the page.")
    picture: Snap = Field(description="Its frames as the judge of actions saw them, or one of them.")
    action: str = Field(description="What the script says.")
    continues: bool = Field(description="Whether it continues the shot before.")
    values: dict[str, float] = Field(default_factory=dict, description="What was measured -> value.")
    missing: dict[str, str] = Field(default_factory=dict, description="What has no value -> why.")
    replies: tuple[Verdict, ...] = Field(default=(), description="What judges said of it.")


class SeenEpisode(Own):
    """One episode by one method."""

    method: str = Field(description="The method.")
    episode_id: str = Field(description="The episode.")
    tier: str | None = Field(description="Its tier.")
    shots: tuple[SeenShot, ...] = Field(description="Its shots, in order.")
    entities: tuple[SeenEntity, ...] = Field(description="What is scheduled in it.")


class WorstEntities(Own):
    """The entities that are worst in one respect."""

    title: str = Field(description="Heading.")
    label: str = Field(description="What the value is.")
    total: int = Field(description="How many have a value.")
    entities: tuple[SeenEntity, ...] = Field(description="The worst first.")


class EpisodesPart(Own):
    """What a report on episodes shows beside tables and plots."""

    worst: tuple[WorstEntities, ...] = Field(default=(), description="The worst entities.")
    note: str = Field(default="", description="How the episodes were chosen, and where pictures come from.")
    episodes: tuple[SeenEpisode, ...] = Field(default=(), description="Those that are shown.")


class Definition(Own):
    """A named definition that the numbers use."""

    name: str = Field(description="What is defined.")
    value: str = Field(description="Which of its variants is used.")
    meaning: str = Field(default="", description="What that means.")


class ReportDocument(Own):
    """All that a report shows."""

    schema_version: str = Field(default=REPORT_VERSION, description="Version of this form.")
    kind: Protocol = Field(description="katha, events, images, or that of a package.")
    protocol: str = Field(default="Own", exclude=True, description="Name of the protocol for readers.")
    units: str = Field(
        default="stories", exclude=True, description="What methods are paired over, in the plural."
    )
    benchmark: str = Field(
        default="", exclude_if=lambda value: not value,
        description="Name and version of the release that was evaluated; empty where it is not at hand.",
    )  # fmt: skip
    title: str = Field(description="Title of the page.")
    facts: dict[str, str] = Field(description="Label -> what the evaluation is about, in short.")
    warnings: tuple[str, ...] = Field(default=(), description="What readers must know first.")
    reading: tuple[str, ...] = Field(default=(), description="How to read the main numbers, by sentence.")
    headline: ScoreTable = Field(description="The main numbers.")
    plots: tuple[Plot, ...] = Field(default=(), description="Plots of the results.")
    figures: tuple[Ridges | Heat, ...] = Field(
        default=(), exclude_if=lambda value: not value, description="Distributions and strips of the results."
    )
    examples: tuple[Examples, ...] = Field(
        default=(), exclude_if=lambda value: not value,
        description="Per score, what was evaluated at its low end, in its middle and at its high end.",
    )  # fmt: skip
    details: tuple[ScoreTable, ...] = Field(default=(), description="Scores by dimension, group and judge.")
    comparisons: tuple[Comparison, ...] = Field(default=(), description="Between methods.")
    comparison_note: str = Field(default="", description="How methods were compared, or why they were not.")
    controls: tuple[CountTable, ...] = Field(
        default=(), description="What else could explain the numbers, and what speaks for or against it."
    )
    people: tuple[ScoreTable, ...] = Field(
        default=(), description="What people said, where a calibration lies beside the evaluation."
    )
    people_note: str = Field(default="", description="Who was asked.")
    people_figures: tuple[Scatter, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="What no table of what people said shows.",
    )
    people_missing: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="What is not shown of people, and why, by sentence.",
    )
    accounting: tuple[CountTable, ...] = Field(
        default=(), description="What was asked, answered, valid and left out."
    )
    cases: Cases | None = Field(default=None, description="What is behind the scores.")
    shots: ShotsPart | None = Field(default=None, description="What is shown of shot images alone.")
    episodes: EpisodesPart | None = Field(default=None, description="What is shown of episodes alone.")
    agreement: tuple[ScoreTable, ...] = Field(default=(), description="Between judges.")
    agreement_note: str = Field(default="", description="How agreement was measured, or why it was not.")
    cost: CountTable | None = Field(default=None, description="Per judge.")
    definitions: tuple[Definition, ...] = Field(default=(), description="Named definitions in use.")
    manifest: dict[str, Any] = Field(description="protocol, subject and environment of the evaluation.")

    @property
    def heading(self) -> str:
        """Title of the page, with the benchmark and its version where they are known."""
        return f"{self.benchmark}: {self.title}" if self.benchmark else self.title
