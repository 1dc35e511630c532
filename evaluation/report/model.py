"""What a report shows, as plain data: the page, the JSON and the CSV files are three forms of this.

One adapter per protocol fills it (:mod:`.katha`, :mod:`.events`, :mod:`.images`); the page knows no protocol.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import Field

from ...pages.figures import Heat, Plot, Ridges, Scatter
from ...pages.grid import Unit
from ...schemas.judgement import EvaluationManifest, Protocol
from ...schemas.values import Own, Score
from ..metrics.metric import Quantity


class Place(Own):
    """Where a method stands in one score."""

    score: Score  # its value over the stories that it has
    rank: int | None = None  # from 1; null where it is not ranked
    low: int | None = None  # lowest rank of the 95 % interval
    high: int | None = None  # highest rank of it
    shared: float | None = None  # mean over the stories of all ranked methods, by which it is ranked
    stories: int | None = None  # how many stories those are
    better: tuple[str, ...] = ()  # methods than which it is better, by both tests
    worse: tuple[str, ...] = ()  # methods than which it is worse, by both tests
    why: str | None = None  # why it has no rank


class LeaderRow(Own):
    """One method of a leaderboard."""

    method: str  # the method
    unranked: str | None = None  # why it is in no ranking
    places: dict[str, Place]  # score -> where it stands; one that is not there is blank


class LeaderColumn(Own):
    """One score of a leaderboard."""

    name: str  # name in the data
    label: str  # name for readers
    digits: int  # digits behind the point
    higher: bool | None  # whether the higher value is better; null of a diagnostic
    ranked: int  # how many methods are ranked by it


class Leaders(Own):
    """Several methods by every score."""

    note: str  # how ranks and tests were made
    columns: tuple[LeaderColumn, ...]  # scores, in order
    rows: tuple[LeaderRow, ...]  # methods, in order


class Snap(Own):
    """A picture of a shot, a crop or a reference, as embedded."""

    width: int = 0  # in pixels, as embedded
    height: int = 0  # in pixels, as embedded
    data: str | None = Field(default=None, exclude=True)  # the picture as a data URL
    lost: str | None = None  # why there is no picture


class DrawnBox(Own):
    """A detected character in a picture; positions are shares of its width and height."""

    left: float  # left edge
    top: float  # upper edge
    width: float  # width
    height: float  # height
    character: str | None = None  # who it was taken for; null for nobody
    number: int  # from 1, by the detector's score


class Onstage(Own):
    """An expected character in a shot."""

    character: str  # its key
    box: int | None = None  # number of its box; null where none was matched
    similarity: float | None = None  # mean cosine of crop and references
    missed: str | None = None  # why it has no crop


class ShotCard(Own):
    method: str  # the method
    story_id: str  # the story
    number: int  # of the shot, from 1
    picture: Snap  # its picture
    boxes: tuple[DrawnBox, ...] = ()  # what was detected, where it can be drawn
    onstage: int  # how many characters the script puts on stage
    found: int | None  # how many were detected; null where nobody looked
    cast: tuple[Onstage, ...] = ()  # the expected characters
    values: dict[str, float]  # score -> value
    missing: dict[str, str] = Field(default_factory=dict)  # score -> why it has no value
    texts: dict[str, str] = Field(default_factory=dict)  # what the script asks, by part


class WorstShots(Own):
    name: str  # score
    label: str  # name for readers
    digits: int  # digits behind the point
    total: int  # how many shots have a value
    cards: tuple[ShotCard, ...]  # the worst first


class WallCrop(Own):
    shot: int  # number of the shot
    picture: Snap  # the crop
    similarity: float | None  # mean cosine of crop and references


class WallRow(Own):
    """A character: its references beside every crop that was taken for it."""

    character: str  # its key
    tag: str | None  # kind, such as realistic_human
    references: tuple[Snap, ...]  # its references, as they are cropped
    crops: tuple[WallCrop, ...]  # by shot
    mean: float | None  # mean similarity of its crops
    missed: tuple[str, ...] = ()  # shots without a crop of it, and why


class StyleMatrix(Own):
    """Cosines of the styles of a story's pictures."""

    shots: tuple[int, ...]  # numbers of the shots that have a picture
    rows: tuple[tuple[float | None, ...], ...]  # cosines; null where there is none
    cross: tuple[float | None, ...]  # per shot, the cosine with the references
    score: Score  # CSD self: the mean over all pairs


class StoryOfMethod(Own):
    method: str  # the method
    scores: dict[str, Score]  # scores of the story
    cards: tuple[ShotCard, ...]  # its shots, in order
    wall: tuple[WallRow, ...] = ()  # its characters
    styles: StyleMatrix | None = None  # styles of its pictures


class StoryGrid(Own):
    """One story, by several methods."""

    story_id: str  # the story
    why: str  # why it is shown: lowest, typical, highest, chosen or all
    methods: tuple[StoryOfMethod, ...]  # the methods that are shown


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

    leaders: Leaders | None = None  # ranking; null with one method
    polar: None = None  # charts that earlier reports had; never filled
    labels: dict[str, str]  # score of a shot or story -> name for readers
    digits: dict[str, int]  # score -> digits behind the point
    worst_note: str = ""  # how the worst shots were chosen
    worst: tuple[WorstShots, ...] = ()  # the worst shots by each score
    stories_note: str = ""  # how the stories were chosen
    pictures_note: str = ""  # where pictures come from, and how many there are
    stories: tuple[StoryGrid, ...] = ()  # the stories that are shown
    every: tuple[ShotRow, ...] = Field(default=(), exclude=True)  # every shot of every method


REPORT_VERSION = "2"


class Measure(Own):
    """One column of scores."""

    name: str  # name in the data, such as stg_filtered
    label: str  # name for readers
    # how a value is printed: percent and points as 100 times the value, the others as it is; number with
    # three digits, plain with two, count without, p with three or as smaller than 0.001
    unit: Unit = "percent"
    better: Literal["low", "high"] | None = None  # which end is the good one

    @classmethod
    def of(cls, quantity: Quantity, **more: Any) -> "Measure":  # noqa: ANN401 - fields of this class
        """Return the column of a share, or of a difference of shares; ``more`` replaces what it says."""
        fields_of = {"name": quantity.name, "label": quantity.label, "better": quantity.better}
        return cls(**{"unit": "points" if quantity.range[0] < 0 else "percent", **fields_of, **more})


class ScoreRow(Own):
    """The scores of one method, judge, dimension or group."""

    label: str  # what the scores are of
    scores: dict[str, Score]  # measure -> score; a measure that is not there is blank
    note: str | None = None  # a warning or remark about the row
    # measure -> a sign behind its value, which the note of the table explains
    marks: dict[str, str] = Field(default_factory=dict, exclude_if=lambda marks: not marks)
    heading: bool = Field(default=False, exclude=True)  # whether it heads those that follow


class ScoreTable(Own):
    """Scores by row and measure."""

    name: str  # name in the data
    title: str  # caption
    note: str = ""  # definitions: what was counted, what the interval is
    heading: str = "Method"  # heading of the first column
    measures: tuple[Measure, ...]  # columns
    rows: tuple[ScoreRow, ...]  # rows, in order


class CountRow(Own):
    """Counts, or other plain values, of one method or judge."""

    label: str  # what was counted
    values: dict[str, int | float | str | None]  # column -> value; null where unknown
    href: str = Field(default="", exclude=True)  # on a page: where its label leads


class CountTable(Own):
    """Counts by row and column."""

    name: str  # name in the data
    title: str  # caption
    note: str = ""  # what was counted
    heading: str = "Method"  # heading of the first column
    columns: dict[str, str]  # name in the data -> name for readers, in order
    rows: tuple[CountRow, ...]  # rows, in order


class Comparison(Own):
    """One paired comparison of two methods by stories."""

    measure: str  # what is compared
    first: str  # method
    second: str  # method
    difference: Score  # first less second, with its paired interval
    unit: Unit = "points"  # how the difference is printed
    # test -> its p-value, corrected for the number of comparisons; null where undefined
    p: dict[str, float | None]
    effects: dict[str, float | None]  # name of an effect size -> its value
    pairs: int  # stories that both have
    verdict: str  # what this says, in words
    shown: bool = True  # whether the page lists it; there may be too many


class Frame(Own):
    """One picture of a case."""

    label: str  # which it is, such as: Scene 2, Panel 2 or Frame 2
    text: str | None = None  # what the source says there; readers only see it
    width: int = 0  # in pixels, as embedded
    height: int = 0  # in pixels, as embedded
    # the picture as a data URL; null where it is not at hand
    data: str | None = Field(default=None, exclude=True)


class Example(Own):
    """What has one value of a score."""

    level: Literal["low", "middle", "high"]  # where its value stands among all
    value: float  # its value
    text: str  # what it is, such as: story 03 by model-a, shot 2
    frames: tuple[Frame | Snap, ...] = ()  # its pictures in order


class Examples(Own):
    """A score, and what its values look like in this evaluation."""

    name: str  # name in the data
    label: str  # name for readers
    note: str  # what it measures, and of what these are values
    unit: Unit = "number"  # how a value is printed
    total: int  # how many values there are
    shown: tuple[Example, ...]  # lowest, middle and highest; fewer where there are fewer


class Verdict(Own):
    """One reply of a judge to one question, and what it counts as."""

    judge: str  # spec of the judge, or the name of a way of combining them
    condition: str  # evidence condition
    vote: int = 0  # which answer of this judge
    outcome: str  # answered, refused, blocked, ...; combined for an ensemble
    answer: str | None  # what it answered; the reason where there is no answer
    status: str | None = None  # evidence status or image support, as stated
    confidence: str | None = None  # as stated
    correct: bool | None  # whether that counts as correct; null where it counts as neither


class CaseItem(Own):
    """One question, or one event, of a case."""

    id: str  # question id, or number of the event
    group: str  # dimension of the question, or place of the event
    text: str  # the question, or the event
    accepted: tuple[str, ...] = ()  # accepted answers, the canonical one first
    verdicts: tuple[Verdict, ...]  # per judge and condition
    combined: dict[str, bool | None]  # condition -> what all judges together count as; null where neither
    valid: bool | None = None  # whether it is in the method's valid set


class Case(Own):
    """One transition, or one prompt, with the frames behind its score."""

    unit: str  # story id, or file name of the video
    title: str  # title of the story, or the prompt
    place: str  # which part, such as: scene 2 to 3
    method: str  # method whose output is shown
    seed: int | None = None  # seed of the generation
    why: str  # why it is shown: worst, typical, or all
    score: Score  # its gap, or completion rate
    frames: tuple[Frame, ...] = ()  # pictures in order
    items: tuple[CaseItem, ...]  # its questions or events


class Cases(Own):
    """The transitions or prompts that a report shows."""

    title: str  # heading of the section
    note: str  # how they were chosen, out of how many
    measure: Measure  # what their score is
    total: int  # how many there are
    conditions: dict[str, str]  # condition -> name for readers, in order
    right: str = "correct"  # what a verdict that counts is called
    wrong: str = "incorrect"  # what one that does not is called
    asked: str = "Question about"  # what the groups of items are called
    shown: tuple[Case, ...]  # those that are shown


class SeenCell(Own):
    """A scheduled entity in a shot."""

    shot: str  # key of the shot
    picture: Snap  # its crop
    status: str  # present, weak or absent; missing without a video; not looked for
    fidelity: float | None  # overall fidelity, 0 to 1
    gate: str  # whether it is compared across shots
    values: dict[str, float] = Field(default_factory=dict)  # what was measured -> value
    missing: dict[str, str] = Field(default_factory=dict)  # what has no value -> why
    replies: tuple[Verdict, ...] = ()  # what judges said of it


class SeenEntity(Own):
    """An entity of the registry in the shots of an episode."""

    name: str  # its name
    type: str  # character, object or location
    description: str  # what the registry says of it
    where: str = ""  # method and episode, where it stands by itself
    value: float | None = None  # by what it was chosen
    cells: tuple[SeenCell | None, ...]  # by shot; null where it is not scheduled
    replies: tuple[Verdict, ...] = ()  # what judges said of all its shots at once


class SeenShot(Own):
    shot: str  # its key
    picture: Snap  # its frames as the judge of actions saw them, or one of them
    action: str  # what the script says
    continues: bool  # whether it continues the shot before
    values: dict[str, float] = Field(default_factory=dict)  # what was measured -> value
    missing: dict[str, str] = Field(default_factory=dict)  # what has no value -> why
    replies: tuple[Verdict, ...] = ()  # what judges said of it


class SeenEpisode(Own):
    method: str  # the method
    episode_id: str  # the episode
    tier: str | None  # its tier
    shots: tuple[SeenShot, ...]  # its shots, in order
    entities: tuple[SeenEntity, ...]  # what is scheduled in it


class WorstEntities(Own):
    title: str  # heading
    label: str  # what the value is
    total: int  # how many have a value
    entities: tuple[SeenEntity, ...]  # the worst first


class EpisodesPart(Own):
    """What a report on episodes shows beside tables and plots."""

    worst: tuple[WorstEntities, ...] = ()  # the worst entities
    note: str = ""  # how the episodes were chosen, and where pictures come from
    episodes: tuple[SeenEpisode, ...] = ()  # those that are shown


class Definition(Own):
    """A named definition that the numbers use."""

    name: str  # what is defined
    value: str  # which of its variants is used
    meaning: str = ""  # what that means


class ReportDocument(Own):
    """All that a report shows."""

    schema_version: str = REPORT_VERSION  # version of this form
    kind: Protocol  # katha, events, images, or that of a package
    protocol: str = Field(default="Own", exclude=True)  # name of the protocol for readers
    units: str = Field(default="stories", exclude=True)  # what methods are paired over, in the plural
    # name and version of the release that was evaluated; empty where it is not at hand
    benchmark: str = Field(default="", exclude_if=lambda value: not value)
    title: str  # title of the page
    facts: dict[str, str]  # label -> what the evaluation is about, in short
    warnings: tuple[str, ...] = ()  # what readers must know first
    reading: tuple[str, ...] = ()  # how to read the main numbers, by sentence
    headline: ScoreTable  # the main numbers
    plots: tuple[Plot, ...] = ()  # plots of the results
    # distributions and strips of the results
    figures: tuple[Ridges | Heat, ...] = Field(default=(), exclude_if=lambda value: not value)
    # per score, what was evaluated at its low end, in its middle and at its high end
    examples: tuple[Examples, ...] = Field(default=(), exclude_if=lambda value: not value)
    details: tuple[ScoreTable, ...] = ()  # scores by dimension, group and judge
    comparisons: tuple[Comparison, ...] = ()  # between methods
    comparison_note: str = ""  # how methods were compared, or why they were not
    # what else could explain the numbers, and what speaks for or against it
    controls: tuple[CountTable, ...] = ()
    people: tuple[ScoreTable, ...] = ()  # what people said, where a calibration lies beside the evaluation
    people_note: str = ""  # who was asked
    # what no table of what people said shows
    people_figures: tuple[Scatter, ...] = Field(default=(), exclude_if=lambda value: not value)
    # what is not shown of people, and why, by sentence
    people_missing: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    accounting: tuple[CountTable, ...] = ()  # what was asked, answered, valid and left out
    cases: Cases | None = None  # what is behind the scores
    shots: ShotsPart | None = None  # what is shown of shot images alone
    episodes: EpisodesPart | None = None  # what is shown of episodes alone
    agreement: tuple[ScoreTable, ...] = ()  # between judges
    agreement_note: str = ""  # how agreement was measured, or why it was not
    cost: CountTable | None = None  # per judge
    definitions: tuple[Definition, ...] = ()  # named definitions in use
    manifest: dict[str, Any]  # protocol, subject and environment of the evaluation

    @property
    def heading(self) -> str:
        """Title of the page, with the benchmark and its version where they are known."""
        return f"{self.benchmark}: {self.title}" if self.benchmark else self.title


# -- How much of what was asked for a method made, beside its scores; who left out too much stands below
#
# A score over what is there may rise where hard parts are left out. The rule: a method of whose outputs less
# than a least share (95 %) is there and can be judged stands below the complete ones, whatever its scores.

LEAST = 0.95
"""Share of the outputs that a method must have to stand above the line."""
COUNTS = (
    ("generations_valid", "generations_requested"), ("stories_valid", "stories_requested"),
    ("shots_valid", "shots_requested"), ("valid", "requested"),
)  # fmt: skip
"""What is valid of outputs, and what was asked for, as the manifests of the protocols call it."""
_MEASURE = Measure(name="coverage", label="Coverage", better="high")
AnyTable = TypeVar("AnyTable", bound=ScoreTable | CountTable)


@dataclass(frozen=True)
class Coverage:
    """How much of a method's outputs is there."""

    made: int  # outputs that can be judged
    wanted: int  # outputs that were asked for
    what: str  # what they are: shots, generations

    @property
    def share(self) -> float:
        """The part that is there, 0 to 1."""
        return self.made / self.wanted

    def __str__(self) -> str:
        return f"{self.made:,} of {self.wanted:,} {self.what}"

    def too_little(self, least: float = LEAST) -> str | None:
        """Return why a method stands below the line; None where it does not."""
        return f"{self}: less than {least:.0%}" if self.share < least else None


def coverages(about: Mapping[str, object]) -> Iterator[Coverage]:
    """Yield what a method has of each kind of output that its manifest counts."""
    stated = any(made in about for made, _ in COUNTS)  # which ones are, depends on the protocol
    for made, wanted in COUNTS:
        there, asked = about.get(made, 0), about.get(wanted)
        if (made in about or not stated) and isinstance(asked, int) and isinstance(there, int) and asked:
            yield Coverage(there, asked, made.removesuffix("_valid").replace("valid", "outputs"))


def least_covered(manifest: EvaluationManifest) -> dict[str, Coverage]:
    """Return method -> that of its coverages with the smallest share; without those that count nothing."""
    methods = manifest.subject.get("methods") or {}
    known = {method: [*coverages(about)] for method, about in methods.items() if isinstance(about, Mapping)}
    return {method: min(some, key=lambda each: each.share) for method, some in known.items() if some}


def with_coverage(table: AnyTable, covered: Mapping[str, Coverage], least: float = LEAST) -> AnyTable:
    """Return a table of methods with their coverage, and those that left out too much below a line.

    A table stays as it is where everything is there, and where its rows are not methods, or methods and
    judges.
    """
    if not isinstance(table, ScoreTable) or any(_method(row) not in covered for row in table.rows):
        return table
    if all(covered[_method(row)].share == 1 and not _found(row) for row in table.rows):
        return table
    complete, below = list[ScoreRow](), list[ScoreRow]()
    for row in table.rows:
        coverage = covered[_method(row)]
        score = Score.ratio(coverage.made, coverage.wanted, "nothing was asked for")
        said = [*filter(None, (row.note, str(coverage) if coverage.share < 1 else "", _found(row)))]
        told = {"scores": {**row.scores, _MEASURE.name: score}, "note": "; ".join(said) or None}
        (below if coverage.share < least else complete).append(row.model_copy(update=told))
    heading = ScoreRow(label=f"Incomplete: less than {least:.0%} of the outputs", scores={}, heading=True)
    rule = f" Methods with less than {least:.0%} of their outputs stand below the others." if below else ""
    return table.model_copy(update={
        "measures": (*table.measures, _MEASURE), "note": f"{table.note}{rule}".strip(),
        "rows": (*complete, *([heading] if below else []), *below),
    })  # fmt: skip


def below_the_line(covered: Mapping[str, Coverage], least: float = LEAST) -> Iterator[str]:
    """Yield a line for each method that left out too much."""
    for method, coverage in covered.items():
        if why := coverage.too_little(least):
            yield f"incomplete: {method} has {why}; it does not rank with the complete ones"


def compared_over(manifests: Iterable[EvaluationManifest]) -> list[str]:
    """Return a line for each method of evaluations that left out something: over what it is compared."""
    lines = {
        f"{method} has {coverage}: it is compared over the units that both have, each as far as it is there"
        for manifest in manifests
        for method, coverage in least_covered(manifest).items()
        if coverage.share < 1
    }
    return sorted(lines)


def _method(row: ScoreRow) -> str:
    return row.label.partition(" · ")[0]


def _found(row: ScoreRow) -> str:
    """Return how many of the expected characters were found, where some were not."""
    counts: Iterable[Mapping[str, int]] = [score.counts for score in row.scores.values()]
    known = [(each["matched"], each["expected"]) for each in counts if {"matched", "expected"} <= each.keys()]
    matched, expected = min(known, default=(0, 0))
    return f"{matched} of {expected} expected characters found" if matched < expected else ""
