"""Tables, polar charts and words of a report on shot images: title, warnings, definitions.

What was asked for, found and missing; single stories and shots.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....pages.grid import Unit, if_intervals
from ....schemas.judgement import EvaluationManifest
from ....schemas.text import counted
from ....schemas.values import Score
from ...metrics.registry import base_of, in_order, label_of, metric_of, metrics
from ...report.model import (
    Comparison,
    CountRow,
    CountTable,
    Definition,
    LeaderColumn,
    LeaderRow,
    Leaders,
    Measure,
    Polar,
    PolarAxis,
    PolarChart,
    ScoreRow,
    ScoreTable,
    Sector,
    ShotRow,
)
from ...report.showing import Accounts, comparison, day_of, resampling_definition, sentences
from ...stats.paired import Paired
from ..compare import Leaderboard
from ..definitions import Definitions
from ..scores import CATEGORIES, ImageScores, MethodScores
from ..tables import ShotScore
from .cards import Looked


def title_of(scores: ImageScores) -> str:
    """Return the title of the page."""
    methods = [method.method for method in scores.methods]
    if not methods:
        return "Shot images of no method"
    return f"Shot images of {methods[0]}" if len(methods) == 1 else f"Shot images of {len(methods)} methods"


def facts_of(scores: ImageScores, accounts: Accounts, manifest: EvaluationManifest) -> dict[str, str]:
    """Return what the evaluation is about, in short."""
    stories = {story.story_id for method in scores.methods for story in method.stories}
    asked = [int(method.accounting.get("shots_requested") or 0) for method in scores.methods]
    there = [int(method.accounting.get("shots_valid") or 0) for method in scores.methods]
    return {
        "Stories": f"{len(stories):,}",
        "Methods": f"{len(scores.methods):,}",
        "Shots asked for": f"{sum(asked):,}",
        "With picture": f"{sum(there):,}",
        "Judges": f"{len(accounts.replies):,}",
        "Replies": f"{accounts.total:,}",
        **day_of("Evaluated", manifest),
    }


def reading_of(board: Leaderboard) -> Iterator[str]:
    """Yield how to read the main numbers."""
    yield (
        "Models look for characters in every picture, compare them and its style with the references and "
        "with each other, and judges rate what the script asks for."
    )
    yield (
        "Every score is a mean over stories; shots without a picture, crop or rating are left out of it and "
        "counted separately. A failure is never counted as 0."
    )
    if len(board.methods) > 1:
        yield "Intervals that overlap do not mean that methods are equally good: look at the paired tests."


def warnings_of(scores: ImageScores, board: Leaderboard, accounts: Accounts, looked: Looked) -> Iterator[str]:
    """Yield what readers must know first."""
    stories = len({story.story_id for method in scores.methods for story in method.stories})
    if not stories:
        yield "The evaluation has no story."
    yield from sentences(scores.notes)
    for scored in scores.methods:
        asked, there = scored.accounting.get("shots_requested"), scored.accounting.get("shots_valid")
        if isinstance(asked, int) and isinstance(there, int) and there < asked:
            yield f"{asked - there:,} of {asked:,} shots of {scored.method} have no picture."
    for method, why in board.unranked.items():
        yield f"{method} is shown, but not ranked: {why}."
    yield from accounts.warnings()
    if looked.files.changed:
        yield (
            f"{counted(len(looked.files.changed), 'picture')} changed since the evaluation and "
            f"{'is' if len(looked.files.changed) == 1 else 'are'} not shown."
        )
    if looked.snaps.gone and not looked.snaps.made:
        yield "The pictures were not found: give their folders with --outputs and the set with --release."


def definitions_of(used: Definitions, board: Leaderboard) -> Iterator[Definition]:
    """Yield every score with its definition, and how intervals were made."""
    present = {base_of(name) for name in board.names}
    for name in in_order(metric.name for metric in metrics()):
        if name in present:
            known = metric_of(name)
            value = ", ".join(used.of(choice) for choice in known.choices) or "as published"
            yield Definition(name=known.label, value=value, meaning=known.meaning)
    yield resampling_definition(used, "story")
    listed = ", ".join(f"{name}={value}" for name, value in used.all().items())
    yield Definition(name="chosen with --define", value=listed, meaning="docs/images.md says what they are.")


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


def polar(scores: ImageScores, board: Leaderboard) -> Polar | None:
    """Return the polar charts; None where there are fewer than three scores to show."""
    names = [name for name in in_order(board.names) if metric_of(name).column is not None]
    methods = {method.method: method for method in scores.methods}
    several = len(methods) > 1
    full: dict[str, float] = {}
    for name in names:
        top = _best(name, methods, board) if several else metric_of(name).top
        if top is not None and top > 0:
            full[name] = top
    if len(full) < 3:
        return None
    axes = tuple(
        PolarAxis(
            name=name, label=label_of(name), group=metric_of(name).group, full=top,
        )
        for name, top in full.items()
    )  # fmt: skip
    charts = tuple(
        PolarChart(
            method=method,
            sectors=tuple(_sector(methods[method].scores.get(axis.name), axis) for axis in axes),
        )
        for method in board.methods
    )
    note = (
        "A sector's length is the score as a share of the best score of all ranked methods, which reaches "
        "the outer circle (Table S6 of the ViStoryBench paper)."
        if several
        else "With one method there is no best to compare with: a sector's length is the score as a share of "
        "the highest possible value (1 for similarities, 4 for ratings, 100 for OCCM, 10 for "
        "aesthetics); the inception score has none and is left out."
    )
    drawn = any(sector.low is not None for chart in charts for sector in chart.sectors)
    line = (
        "The line across a sector is its 95 % interval; what is beyond the outer circle or below 0 is cut "
        "off. "
        if drawn
        else ""
    )
    return Polar(
        note=f"{note} {line}A score without a value has no sector. The copy-paste rate (lower is better) "
        "and the CLIP score (not in Table S6) are not shown.",
        axes=axes, charts=charts,
    )  # fmt: skip


def _best(name: str, methods: Mapping[str, MethodScores], board: Leaderboard) -> float | None:
    ranked = [scored for method, scored in methods.items() if method not in board.unranked]
    values = [
        score.value
        for method in ranked or methods.values()
        if (score := method.scores.get(name)) is not None and score.value is not None
    ]
    return max(values, default=None)


def _sector(score: Score | None, axis: PolarAxis) -> Sector:
    def share(value: float | None) -> float | None:
        return None if value is None else min(1.0, max(0.0, value / axis.full))

    if score is None:
        return Sector(name=axis.name, radius=None)
    return Sector(name=axis.name, radius=share(score.value), low=share(score.low), high=share(score.high))


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
        about = {**method.accounting, **_plain(subject.get(method.method))}
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
    listed = {
        method.method: _plain(_plain(subject.get(method.method)).get("findings")) for method in scores.methods
    }
    counts = {
        name: Counter({str(code): count for code, count in codes.items() if isinstance(count, int)})
        for name, codes in listed.items()
    }
    codes = sorted({code for some in counts.values() for code in some})
    if codes:
        yield CountTable(
            name="findings", title="Findings about the outputs",
            columns={code: code for code in codes}, note="fabula outputs check lists them.",
            rows=tuple(
                CountRow(label=method, values={code: some.get(code, 0) for code in codes})
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


def _plain(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
