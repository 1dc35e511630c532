"""Tables and the figure of a report on shot images: scores, ranks, kinds, what was asked for, people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....pages.figures import Plot, PlotPoint
from ....pages.grid import Unit, if_intervals, label_text
from ....schemas.text import counted
from ....schemas.values import Score
from ...metrics.metric import in_order, label_of, metric_of, metrics
from ...report.model import (
    Comparison,
    CountRow,
    CountTable,
    LeaderColumn,
    LeaderRow,
    Leaders,
    Measure,
    ScoreRow,
    ScoreTable,
    ShotRow,
)
from ...report.people import between_people, if_any, plain_score, score_of
from ...report.showing import (
    comparison,
)
from ...stats.uncertainty import Paired
from ..scores import CATEGORIES, ImageScores, MethodScores
from ..scoring import Leaderboard, ShotScore
from .cards import (
    mapping_of,
)

MOST_PAIRS = 60
"""Pairs of methods in all scores up to which the page lists every one."""


def unit_of(name: str) -> Unit:
    """Return how a score is printed."""
    return "number" if metric_of(name).digits == 3 else "plain"


def measure_of(name: str) -> Measure:
    """Return the column of a score."""
    return Measure(name=name, label=label_of(name), unit=unit_of(name), better=metric_of(name).better)


def headline(scores: ImageScores, order: Sequence[str]) -> ScoreTable:
    """Return every score of every method."""
    methods = {method.method: method for method in scores.methods}
    names = in_order(dict.fromkeys(name for method in scores.methods for name in method.scores))
    return ScoreTable(
        name="headline", title="Scores",
        note=f"Means over the stories that have a value{_over_stories(methods.values())}.",
        measures=tuple(measure_of(name) for name in names),
        rows=tuple(
            ScoreRow(label=name, scores=dict(methods[name].scores))
            for name in order
        ),
    )  # fmt: skip


def _over_stories(methods: Iterable[MethodScores]) -> str:
    every = (score for method in methods for score in method.scores.values())
    return if_intervals(", with 95 % intervals over stories", every)


def by_official_ranks(scores: ImageScores) -> Iterator[CountTable]:
    """Yield the ranks as the public summary makes them; nothing where it makes none."""
    ranked = scores.official_ranks()
    if ranked:
        yield CountTable(
            name="official_ranks", title="Ranks as ViStoryBench's summary makes them",
            note="Ranks of ranks, without intervals; a missing score has the last place. Ours are by score.",
            columns={"overall": "Overall"} | {category: category.capitalize() for category in CATEGORIES},
            rows=tuple(
                CountRow(label=row.run, values={"overall": row.overall, **row.ranks}) for row in ranked
            ),
        )  # fmt: skip


def leaders(board: Leaderboard) -> Leaders:
    """Return a leaderboard for the page."""
    columns = []
    for name in board.names:
        ranked = sum(name in cells and cells[name].rank is not None for cells in board.cells.values())
        known = metric_of(name)
        columns.append(
            LeaderColumn(
                name=name,
                label=label_of(name),
                digits=known.digits,
                higher=known.higher if known.ranked else None,
                ranked=ranked,
            )
        )
    rows = tuple(
        LeaderRow(
            method=method,
            unranked=board.unranked.get(method),
            places=board.cells[method],
        )
        for method in board.methods
    )  # fmt: skip
    by = "" if board.lead is None else f" Rows are sorted by {label_of(board.lead)}."
    drawn = any(place.low is not None for row in rows for place in row.places.values())
    tested = (
        '; ranks x to y are the 95 % interval of the rank over resampled stories. "Better than n" counts the '
        "methods that this one beats in both paired tests, resampled and signed-rank, at 0.05 with Holm's "
        "correction for the pairs of methods."
        if drawn
        else ". There are no intervals of ranks and no tests: too few stories, or no resamples."
    )
    return Leaders(
        note="Methods are ranked by their mean over the stories for which all ranked methods have a value"
        f"{tested}{by} There is no overall rank: scores measure different things.",
        columns=tuple(columns),
        rows=rows,
    )


def shares(scores: ImageScores, order: Sequence[str]) -> tuple[Plot, ...]:
    """Return scores of all methods beside each other, each as a share of the highest possible value."""
    methods = {method.method: method for method in scores.methods}
    groups = {}
    for name in in_order(dict.fromkeys(name for method in scores.methods for name in method.scores)):
        metric, some = metric_of(name), [method for method in order if name in methods[method].scores]
        if metric.column is not None and metric.top and some:
            groups[f"{label_of(name)}, of {metric.top:g}"] = tuple(
                PlotPoint(series=method, score=_share(methods[method].scores[name], metric.top))
                for method in some
            )
    if not groups:
        return ()
    ends = if_intervals(", with 95 % intervals", (p.score for points in groups.values() for p in points))
    there = in_order(dict.fromkeys(name for method in scores.methods for name in method.scores))
    left_out = [label_of(name) for name in there if metric_of(name).column is None or not metric_of(name).top]
    left = (
        f" Not in the figure, having no full value of their own: {', '.join(left_out)}." if left_out else ""
    )
    return (
        Plot(
            name="shares", title="Scores as a share of the highest possible value", groups=groups,
            axis="Share of the highest possible value",
            note=f"In %{ends}. Further right is better. Scores measure different things: compare methods "
            f"within a score.{left}",
        ),
    )  # fmt: skip


def _share(score: Score, top: float) -> Score:
    parts = {name: getattr(score, name) for name in ("value", "low", "high")}
    return score.model_copy(update={k: None if v is None else v / top for k, v in parts.items()})


def comparisons(pairs: Sequence[Paired], board: Leaderboard) -> tuple[Comparison, ...]:
    """Return every pair in every score; the page shows all, or each method against the first of a score."""
    first = {
        name: next((method for method in board.methods if _rank(board, method, name) == 1), None)
        for name in board.names
    }
    return tuple(
        comparison(
            pair, label_of(name), higher=metric_of(name).higher, unit=unit_of(name),
            shown=len(pairs) <= MOST_PAIRS or first[name] in (pair.first, pair.second),
        )
        for name in board.names
        for pair in pairs
        if pair.about["metric"] == name
    )  # fmt: skip


def _rank(board: Leaderboard, method: str, name: str) -> int | None:
    standing = board.cells[method].get(name)
    return None if standing is None else standing.rank


MOST_CELLS = 4000
"""Values of single stories up to which the page lists them."""


def by_story(scores: ImageScores) -> Iterator[ScoreTable]:
    """Yield a table of every story's scores per method, where that is not too much for a page."""
    names = in_order(
        dict.fromkeys(name for method in scores.methods for story in method.stories for name in story.scores)
    )
    cells = sum(len(method.stories) for method in scores.methods) * len(names)
    if not names or cells > MOST_CELLS:
        return
    for index, method in enumerate(scores.methods):
        yield ScoreTable(
            name=f"stories_{index + 1}", title=f"Stories of {method.method}", heading="Story",
            measures=tuple(measure_of(name) for name in names if name in method.scores),
            rows=tuple(ScoreRow(label=story.story_id, scores=dict(story.scores)) for story in method.stories),
        )  # fmt: skip


def accounting(
    scores: ImageScores, subject: Mapping[str, Any], shots: Mapping[str, Sequence[ShotScore]]
) -> Iterator[CountTable]:
    """Yield what was asked for and is there, per method, and what was missed of the characters."""
    columns = {
        "stories_requested": "Stories", "stories_complete": "Complete",
        "stories_without_shot": "Without any shot",
        "shots_requested": "Shots", "shots_valid": "With picture", "missing": "Missing", "boxes": "Boxes",
    }  # fmt: skip
    rows = []
    for method in scores.methods:
        about = {**method.accounting, **mapping_of(subject.get(method.method))}
        values = {name: about.get(name) for name in columns}
        asked, there = about.get("shots_requested"), about.get("shots_valid")
        if isinstance(asked, int) and isinstance(there, int):
            values["missing"] = asked - there
        rows.append(CountRow(label=method.method, values=values))
    yield CountTable(
        name="shots", title="Shots that were asked for, and those with a picture", columns=columns,
        rows=tuple(rows),
        note="A shot without a usable picture has no score; it counts as missing, never as 0.",
    )  # fmt: skip
    yield from _missing(shots)
    yield from _characters(scores)
    yield from _findings(scores, subject)


def _missing(shots: Mapping[str, Sequence[ShotScore]]) -> Iterator[CountTable]:
    rows = []
    for method, every in shots.items():
        gone: dict[str, list[int]] = {}
        for shot in every:
            if shot.sha256 is None:
                gone.setdefault(shot.story_id, []).append(shot.number)
        if gone:
            listed = "; ".join(f"{story}: {', '.join(map(str, some))}" for story, some in gone.items())
            rows.append(
                CountRow(label=method, values={"count": sum(map(len, gone.values())), "which": listed})
            )
    if rows:
        yield CountTable(
            name="missing", title="Shots without a picture", rows=tuple(rows),
            columns={"count": "Shots", "which": "Story: shots"},
        )  # fmt: skip


def _characters(scores: ImageScores) -> Iterator[CountTable]:
    columns = {
        "expected": "Expected", "matched": "Matched", "no_image": "No picture",
        "no_reference": "No reference",
        "nothing_detected": "Nothing detected", "not_matched": "Not matched",
    }  # fmt: skip
    rows = [
        CountRow(
            label=method.method,
            values={name: method.scores["cids_cross"].counts.get(name, 0) for name in columns},
        )
        for method in scores.methods
        if "cids_cross" in method.scores
    ]
    if rows:
        yield CountTable(
            name="characters", title="Characters on stage, shot by shot", columns=columns, rows=tuple(rows),
            note="How many of the expected characters were matched to a crop, and why the others were not.",
        )  # fmt: skip


def _findings(scores: ImageScores, subject: Mapping[str, Any]) -> Iterator[CountTable]:
    counts = dict[str, Counter[str]]()
    for method in scores.methods:
        codes = mapping_of(mapping_of(subject.get(method.method)).get("findings"))
        counts[method.method] = Counter({str(k): v for k, v in codes.items() if isinstance(v, int)})
    columns = sorted({code for some in counts.values() for code in some})
    if columns:
        yield CountTable(
            name="findings", title="Findings about the outputs",
            columns={code: code for code in columns}, note="fabula outputs check lists them.",
            rows=tuple(
                CountRow(label=method, values={code: some.get(code, 0) for code in columns})
                for method, some in counts.items()
            ),
        )  # fmt: skip


def stability(scores: ImageScores) -> Iterator[ScoreTable]:
    """Yield the sub-scores over repeated runs of the judges (section H.6), where there are several."""
    rows = []
    for method in scores.methods:
        for judge, dimensions in method.stability.items():
            values = {
                f"{name}_{kind}": Score(value=value, status="ok", counts={"runs": len(runs.runs)})
                for name, runs in dimensions.items()
                for kind, value in (("mean", runs.mean), ("deviation", runs.deviation))
                if value is not None and runs.deviation is not None
            }
            if values:
                rows.append(ScoreRow(label=f"{method.method} · {judge}", scores=values))
    if rows:
        kinds = ("mean", "deviation")
        names = [metric.name for metric in metrics() if metric.judged]
        yield ScoreTable(
            name="stability", title="Ratings over repeated runs", heading="Method and judge",
            note="Mean and sample standard deviation over runs of the same judge.",
            measures=tuple(
                Measure(name=f"{name}_{kind}", label=f"{metric_of(name).label}, {kind}", unit="plain")
                for name in names for kind in kinds
            ),
            rows=tuple(rows),
        )  # fmt: skip


def shot_rows(shots: Mapping[str, Sequence[ShotScore]], names: Sequence[str]) -> Iterator[ShotRow]:
    """Yield every shot of every method, for the CSV."""
    for every in shots.values():
        for shot in every:
            cast = shot.matches
            yield ShotRow(
                method=shot.method, story_id=shot.story_id, number=shot.number,
                picture=shot.sha256 is not None, onstage=shot.onstage,
                found=None if shot.boxes is None else len(shot.boxes),
                matched=sum(member.crop is not None for member in cast) if cast else None,
                expected=len(cast) if cast else None,
                values={name: shot.values.get(name) for name in names},
            )  # fmt: skip


# -- By kind of story and of character, and what people said

TITLES = {
    "realism": "By realistic and unrealistic stories",
    "story_type": "By type of story",
    "culture": "By culture of the story",
    "style": "By style of the references",
    "tag": "By kind of character",
    "gender": "By gender of characters",
    "ethnicity": "By ethnicity of characters, as the set's author gives it",
}
"""What is told apart -> caption, in order."""
_OF_STORIES = (
    "Means over the stories of a kind, with 95 % intervals over them. The inception score grows with the "
    "number of pictures and is not split by kind."
)
_OF_CHARACTERS = (
    "Scores of single characters, over the characters of a kind; which crop shows whom was decided among "
    "all characters of a story."
)


def by_strata(scores: ImageScores) -> Iterator[ScoreTable]:
    """Yield a table for each respect in which stories or characters of an evaluation differ."""
    for by, title in TITLES.items():
        some = [(each.method, part) for each in scores.methods for part in each.strata if part.by == by]
        names = in_order(dict.fromkeys(name for _, stratum in some for name in stratum.scores))
        if len({stratum.kind for _, stratum in some}) < 2 or len(some) * len(names) > MOST_CELLS:
            continue
        ordered = sorted(some, key=lambda entry: entry[1].kind)
        yield ScoreTable(
            name=f"by_{by}", title=title, heading="Kind and method",
            note=_OF_STORIES if some[0][1].characters is None else _OF_CHARACTERS,
            measures=tuple(measure_of(name) for name in names),
            rows=tuple(
                ScoreRow(
                    label=f"{label_text(stratum.kind)} · {method}", scores=dict(stratum.scores),
                    note=counted(stratum.stories, "story")
                    if stratum.characters is None
                    else f"{counted(stratum.characters, 'character')}, {counted(stratum.stories, 'story')}",
                )
                for method, stratum in ordered
            ),
        )  # fmt: skip


def score_tables(scores: ImageScores) -> Iterator[ScoreTable | CountTable]:
    """Yield the scores as tables: of every method, and by kind of story and character."""
    yield headline(scores, [method.method for method in scores.methods])
    yield from by_official_ranks(scores)
    yield from by_strata(scores)


def people_tables(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=method,
            scores={name: score_of(rating["mean"]) for name, rating in ratings["ratings"].items()},
        )
        for method, ratings in document["methods"].items()
    ]
    criteria = list(dict.fromkeys(name for row in rows for name in row.scores))
    measures = [Measure(name=name, label=label_text(name), unit="plain", better="high") for name in criteria]
    yield from if_any("people", "Mean ratings of people, 0 to 4", "Method", measures, rows)
    compared = [
        ScoreRow(
            label=f"{label_text(criterion)} · {label_of(name)} · over {over}",
            scores={kind: _correlation(correlation) for kind, correlation in correlations[over].items()},
        )
        for criterion, parts in document["scores"].items()
        for part in parts.values()
        for name, correlations in part.items()
        for over in ("stories", "shots", "methods")
        if over in correlations
    ]
    kinds = ("pearson", "spearman", "kendall")
    against = [Measure(name=name, label=label_text(name), unit="number", better="high") for name in kinds]
    heading = "Criterion, score and what is compared"
    yield from if_any("scores_people", "Scores against people", heading, against, compared)
    yield from between_people(document["agreement"])


def _correlation(correlation: Mapping[str, Any]) -> Score:
    if correlation["value"] is None:
        return plain_score(None, correlation["reason"])
    low, high = correlation["low"], correlation["high"]
    return Score(
        value=correlation["value"], status="ok", low=low, high=high, counts={"pairs": correlation["pairs"]}
    )
