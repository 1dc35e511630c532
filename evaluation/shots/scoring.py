"""Scoring, comparing and showing evaluations of shot images as the commands ask for it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...schemas.canonical import csv_text, write_atomic, writing
from ...schemas.values import Score
from ..archive.archive import Archive, read_archive
from ..comparing import Comparisons, method_pairs, read_sides
from ..metrics.alignment import DIMENSIONS
from ..metrics.cids import Match
from ..metrics.metric import in_order, lead_of, metric_of, metrics
from ..metrics.story import FoundShot, FoundStory, Story
from ..metrics.vectors import Floats, doubles, unit
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..report.model import LEAST as LEAST_COVERAGE
from ..report.model import Place, ReportDocument, coverages
from ..stats.tables import read_aliases
from ..stats.uncertainty import Pair, Paired, paired, rank_intervals, ranks
from .looking import read_found
from .ratings import Definitions, Panel, collect_panels, read_definitions
from .scores import ImageScores, MethodScores, StoryScore, score_folder, values_of

# -- Scores of shot images as tables: per method, story and metric; by kind of story and character; per shot

NO_PICTURE = "no picture"

Key = tuple[str, str]
"""Method and story."""


@dataclass(frozen=True)
class ShotScore:
    method: str  # the method
    story_id: str  # the story
    number: int  # of the shot, from 1
    sha256: str | None  # hash of its picture; None where there is none
    onstage: int  # how many characters the script puts on stage
    # left, top, right, bottom and score of what was detected; None where nobody looked
    boxes: tuple[tuple[float, ...], ...] | None
    matches: tuple[Match, ...]  # one per expected character
    values: Mapping[str, float]  # score -> value
    # score -> why it has no value here, of those that the method has
    missing: Mapping[str, str] = field(default_factory=dict)


def score_shots(story: FoundStory, scored: StoryScore, panels: Sequence[Panel]) -> tuple[ShotScore, ...]:
    """Return every shot of a story, in order.

    ``cids_cross`` of a shot is the mean over its matched characters; a rating is the mean over judges and
    votes, that of actions over characters too. The others are the terms whose mean is the story's score.
    """
    rated = _ratings(story.story_id, panels)
    looked = Story(story).boxes() or [None] * len(story.shots)
    names = [name for name in shot_scores() if name in scored.terms]
    made = []
    for index, (shot, found_boxes) in enumerate(zip(story.shots, looked, strict=True)):
        values = {name: scored.terms[name].of_shot(index) for name in names}
        for name in DIMENSIONS if panels else ():
            ratings = rated.get((shot.number, name))
            values[name] = _mean(ratings) if ratings is not None else _unasked(shot, name)
        made.append(
            ShotScore(
                story.method, story.story_id, shot.number, shot.sha256, shot.onstage,
                None if found_boxes is None else tuple(tuple(box) for box in found_boxes),
                tuple(match for match in scored.matches if match.shot == shot.number),
                {name: value for name, value in values.items() if isinstance(value, float)},
                {name: value for name, value in values.items() if isinstance(value, str)},
            )
        )  # fmt: skip
    return tuple(made)


def shot_scores() -> tuple[str, ...]:
    """Return the scores that a single shot has, in order."""
    return tuple(metric.name for metric in metrics() if metric.per_shot)


def style_table(story: FoundStory) -> tuple[tuple[int, ...], Floats] | None:
    """Return the numbers of a story's pictures and the cosines of their styles; None where nobody looked.

    Shape (pictures, pictures), in [-1, 1]; ``nan`` for a picture that the model made nothing of.
    """
    if story.pictures is None or story.pictures["style"] is None:
        return None
    rows = unit(doubles(story.pictures["style"]))
    table: Floats = np.clip(rows @ rows.T, -1.0, 1.0)
    return tuple(int(number) for number in story.pictures["numbers"]), table


def _ratings(story: str, panels: Sequence[Panel]) -> dict[tuple[int, str], list[list[int | None]]]:
    """Return shot and dimension -> per judge and vote the ratings."""
    by_shot: dict[tuple[int, str], list[list[int | None]]] = {}
    for panel in panels:
        votes: dict[tuple[int, str], list[int | None]] = {}
        for _, stories in sorted(panel.runs.items()):
            for (number, name, _), rating in sorted(
                stories.get(story, {}).items(),
                key=lambda entry: (entry[0][0], entry[0][1], entry[0][2] or ""),
            ):
                votes.setdefault((number, name), []).append(rating)
        for key, ratings in votes.items():
            by_shot.setdefault(key, []).append(ratings)
    return by_shot


def _mean(judges: Iterable[Sequence[int | None]]) -> float | str:
    means = []
    for ratings in judges:
        known = [rating for rating in ratings if rating is not None]
        if known:
            means.append(sum(known) / len(known))
    return sum(means) / len(means) if means else "no rating"


def _unasked(shot: FoundShot, name: str) -> str:
    if shot.sha256 is None:
        return NO_PICTURE
    if name == "interaction" and len(shot.expected) < 2:
        return "fewer than two characters"
    if name == "action" and not shot.expected:
        return "nobody expected"
    return "not asked"


NAMES = ("method", "story_id", "shot")
"""Columns that name a row."""


def scored_shots(
    archive: Archive, stories: Sequence[FoundStory], scores: ImageScores
) -> tuple[ShotScore, ...]:
    panels = sorted(collect_panels(archive.judgements, stories).items())
    scored = {(method.method, story.story_id): story for method in scores.methods for story in method.stories}
    return tuple(
        shot
        for story in stories
        for shot in score_shots(
            story,
            scored[story.method, story.story_id],
            [panel for (method, _), panel in panels if method == story.method],
        )
    )


def shot_rows(shots: Iterable[ShotScore]) -> list[dict[str, str | int | float | None]]:
    """Return one row per shot: who, which, and a column for every score that any shot has."""
    every = list(shots)
    names = [name for name in shot_scores() if any(name in shot.values for shot in every)]
    return [
        {
            **dict(zip(NAMES, (shot.method, shot.story_id, shot.number), strict=True)),
            **{name: shot.values.get(name) for name in names},
        }
        for shot in every
    ]


TABLE = "scores.csv"
STRATA = "strata.csv"
SHOTS = "shots.csv"


def write_scores(folder: Path, scores: ImageScores, shots: Iterable[ShotScore]) -> tuple[Path, ...]:
    """Write ``scores.csv``, ``strata.csv`` and ``shots.csv`` into a folder, made if missing; return them.

    An empty story is the whole set. An empty cell of a shot is a score that it does not have.
    """
    with writing(folder, "choose another with --tables"):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / TABLE, [_csv(scores.rows(), ())])
        write_atomic(folder / STRATA, [_csv(scores.strata_rows(), ("method", "by", "kind", "metric"))])
        write_atomic(folder / SHOTS, [_csv(shot_rows(shots), NAMES)])
    return folder / TABLE, folder / STRATA, folder / SHOTS


def _csv(rows: Iterable[Mapping[str, object]], names: Iterable[str]) -> bytes:
    every = list(rows)
    columns = list(dict.fromkeys([*names, *(name for row in every for name in row)]))
    return csv_text(columns, ([row.get(name, "") for name in columns] for row in every)).encode("utf-8")


# -- Methods side by side by their shot images: ranks by each score, how sure they are, paired differences

LEAST = 0.5
"""Share of the stories of which a method must have a value to be ranked."""


@dataclass(frozen=True)
class Leaderboard:
    """All methods."""

    names: tuple[str, ...]  # the scores, in order
    lead: str | None  # the score by which rows are sorted
    methods: tuple[str, ...]  # the methods, ranked ones first, by the lead score
    unranked: dict[str, str]  # method -> why it is in no ranking
    cells: dict[str, dict[str, Place]]  # method -> score -> where it stands


def leaderboard(
    methods: Sequence[MethodScores],
    comparisons: Sequence[Paired],
    definitions: Definitions,
    excluded: Collection[str] = (),
    least: float = LEAST_COVERAGE,
) -> Leaderboard:
    """Return where every method stands; one that left out too much stands below the others, unranked."""
    names = in_order(dict.fromkeys(name for method in methods for name in method.scores))
    unranked = {method.method: "excluded from ranking" for method in methods if method.method in excluded}
    for scored in methods:
        if not scored.accounting.get("shots_valid"):
            unranked.setdefault(scored.method, "no picture")
        for coverage in coverages(scored.accounting):
            if why := coverage.too_little(least):
                unranked.setdefault(scored.method, why)
    cells: dict[str, dict[str, Place]] = {method.method: {} for method in methods}
    among = [pair for pair in comparisons if not {pair.first, pair.second} & unranked.keys()]
    for name in names:
        there = [method for method in methods if name in method.scores]
        for method, standing in _standings(name, there, unranked, definitions).items():
            cells[method][name] = _tested(name, method, standing, among)
    lead = lead_of(names)
    return Leaderboard(tuple(names), lead, _sorted(methods, unranked, cells, lead), unranked, cells)


def _standings(
    name: str, methods: Sequence[MethodScores], unranked: dict[str, str], definitions: Definitions
) -> dict[str, Place]:
    made: dict[str, Place] = {}
    ranked = []
    among = [method for method in methods if method.method not in unranked]
    most = max((method.scores[name].counts.get("pictures", 0) for method in among), default=0)
    for method in methods:
        score = method.scores[name]
        why = unranked.get(method.method) or _too_little(name, score, most)
        made[method.method] = Place(score=score, why=why)
        if why is None:
            ranked.append(method)
    if not ranked:
        return made
    higher = metric_of(name).direction == "higher"
    if metric_of(name).whole:
        values = np.array([method.scores[name].value for method in ranked], dtype=np.float64)
        for method, rank in zip(ranked, ranks(values, higher=higher), strict=True):
            made[method.method] = Place(score=method.scores[name], rank=int(rank))
        return made
    table = _shared(name, ranked)
    if not len(table):
        why = "the methods share no story"
        return made | {method.method: Place(score=method.scores[name], why=why) for method in ranked}
    means = table.mean(axis=0)
    drawn = definitions.resamples if definitions.method(len(table)) is not None else 0
    ends = rank_intervals(table, higher=higher, resamples=drawn, seed=definitions.seed)
    for index, (method, rank) in enumerate(zip(ranked, ranks(means, higher=higher), strict=True)):
        low, high = ends[index] if ends else (None, None)
        made[method.method] = Place(
            score=method.scores[name], rank=int(rank), low=low, high=high, shared=float(means[index]),
            stories=len(table),
        )  # fmt: skip
    return made


def _too_little(name: str, score: Score, most: int) -> str | None:
    if score.value is None:
        return score.reason or "no value"
    if not metric_of(name).ranked:
        return "a diagnostic: neither end is better"
    if metric_of(name).whole:
        pictures = score.counts.get("pictures", 0)
        return f"{pictures:,} pictures, others have {most:,}" if pictures < most else None
    stories, counted = score.counts.get("stories", 0), score.counts.get("stories_counted", 0)
    return f"values for {counted} of {stories} stories only" if counted < LEAST * stories else None


def _shared(name: str, methods: Sequence[MethodScores]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return values of the stories that all methods have, shape (stories, methods)."""
    columns = [
        dict(
            zip(
                [story.story_id for story in method.stories],
                values_of(method.stories, [name])[:, 0],
                strict=True,
            )
        )
        for method in methods
    ]
    shared = [key for key in columns[0] if all(not np.isnan(column.get(key, np.nan)) for column in columns)]
    return np.array([[column[key] for column in columns] for key in shared], dtype=np.float64)


def _tested(name: str, method: str, standing: Place, comparisons: Sequence[Paired]) -> Place:
    metric = metric_of(name)
    better: list[str] = []
    worse: list[str] = []
    for pair in comparisons if metric.ranked else ():
        winner = pair.winner(higher=metric.direction == "higher") if pair.about["metric"] == name else None
        if winner is None or method not in (pair.first, pair.second):
            continue
        other = pair.second if pair.first == method else pair.first
        (better if winner == method else worse).append(other)
    return standing.model_copy(update={"better": tuple(better), "worse": tuple(worse)})


def _sorted(
    methods: Sequence[MethodScores],
    unranked: dict[str, str],
    cells: dict[str, dict[str, Place]],
    lead: str | None,
) -> tuple[str, ...]:
    def place(method: str) -> tuple[bool, bool, float, str]:
        standing = cells[method].get(lead or "")
        value = None if standing is None else standing.score.value
        signed = 0.0 if value is None else -value if metric_of(lead or "").higher else value
        return method in unranked, standing is None or standing.rank is None, signed, method

    return tuple(sorted((method.method for method in methods), key=place))


def compare_folders(
    first: Path, second: Path, definitions: Definitions, allowed: Collection[str] = ()
) -> Comparisons:
    """Compare the methods of two evaluation folders of kind images; of one, its methods with each other."""
    sides = read_sides(first, second, lambda folder: score_folder(folder, definitions), allowed)
    comparisons = image_comparisons(method_pairs([scores.methods for scores in sides.scores]), definitions)
    if not comparisons:
        raise InputError.one(
            str(second), what="no two methods have values for the same stories",
            fix="compare evaluations of the same stories and metrics",
        )  # fmt: skip
    heading = f"differences of means over stories ({definitions.named()})"
    return Comparisons(
        "images", definitions, heading, comparisons, sides.differences, sides.notes, percent=False
    )


def image_comparisons(
    pairs: Sequence[tuple[MethodScores, MethodScores]], definitions: Definitions
) -> tuple[Paired, ...]:
    """Return every pair compared in every metric in which the two share a story.

    P-values are corrected for the number of pairs of a metric.
    """
    names = list(dict.fromkeys(name for a, b in pairs for name in a.scores if name in b.scores))
    made: list[Paired] = []
    for name in names:
        shared = [pair for a, b in pairs if len((pair := _pair(name, a, b)).differences)]
        made += paired(shared, "story", definitions)
    return tuple(made)


def _pair(name: str, a: MethodScores, b: MethodScores) -> Pair:
    theirs = {story.story_id: story for story in b.stories}
    shared = [(story, theirs[story.story_id]) for story in a.stories if story.story_id in theirs]
    ours = values_of([story for story, _ in shared], [name])[:, 0]
    gaps = ours - values_of([story for _, story in shared], [name])[:, 0]
    lowest, highest = metric_of(name).range
    return Pair(a.method, b.method, gaps[~np.isnan(gaps)], {"metric": name}, reach=highest - lowest)


# --

OF_REPORT = ("define", "unranked", "stories", "methods", "megabytes")

CODE = ("cids=code", "copy-paste=code", "occm=code", "csd=code", "alignment=code")
"""What the public code of ViStoryBench computes; docs/images.md says where it and the paper differ."""


def definitions_of(chosen: Chosen) -> Definitions:
    return read_definitions(chosen.options.get("define", ()), **chosen.of("resamples", *UNCERTAINTY))


def score(folder: Path, chosen: Chosen) -> ImageScores:
    """Return the scores, and write them as tables where these are asked for."""
    scores, tables = score_folder(folder, definitions_of(chosen)), chosen.options.get("tables")
    scores = replace(scores, variants=read_aliases(chosen.options.get("alias", ())))
    if tables is not None:
        write_scores(tables, scores, scored_shots(read_archive(folder), read_found(folder), scores))
    return scores


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> Comparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, definitions_of(chosen), allowed)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    from ..report.model import LEAST
    from ..report.showing import MEGABYTES, Wanted

    given = chosen.options
    shown, methods = tuple(given.get("stories", ())), tuple(given.get("methods", ()))
    megabytes, unranked = given.get("megabytes", MEGABYTES), tuple(given.get("unranked", ()))
    least = given.get("least_coverage", LEAST)
    wanted = Wanted(definitions_of(chosen), shown, methods, megabytes, unranked, least)
    page, outputs = later("shots.report.page:images_report"), given.get("outputs", ())
    document: ReportDocument = page(folder, given.get("release"), outputs, wanted)
    return document


SCORING = Scoring(
    "shots (images)",
    score,
    compare,
    report,
    None,
    ("define", "tables", "alias"),
    ("release", "outputs", *OF_REPORT),
    tables=later("shots.report.tables:score_tables"),
    of_people=later("shots.report.tables:people_tables"),
    unit="number",
    published={"vistorybench@514cc31": {"define": CODE}},
)
