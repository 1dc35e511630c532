"""Tables of a report on shot images: what was asked for, found and missing; single stories and shots."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....schemas.values import Score
from ...metrics.registry import in_order, metric_of, metrics
from ...report.model import CountRow, CountTable, Measure, ScoreRow, ScoreTable, ShotRow
from ..scores import ImageScores
from ..tables import ShotScore
from .tables import measure_of

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
