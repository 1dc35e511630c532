"""The report on an evaluation of shot images, with scores by kind of story and of character."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from ....errors import ConfigError, InputError, UserError
from ....media.images import LIMITS
from ....pages.grid import label_text
from ....releases.loading import evaluated_name
from ....releases.shots.tree import read_shot_set
from ....schemas.judgement import EvaluationManifest
from ....schemas.text import counted
from ....schemas.values import Score
from ...archive.archive import Archive, read_archive
from ...metrics.registry import in_order, label_of, metric_of
from ...metrics.story import FoundStory
from ...report.model import CountTable, Measure, ReportDocument, ScoreRow, ScoreTable, ShotsPart
from ...report.people import between_people, if_any, people_of, plain_score, score_of
from ...report.showing import Accounts, comparison_note
from ..compare import Leaderboard, image_comparisons, leaderboard
from ..definitions import Definitions
from ..found import read_found
from ..scores import ImageScores, score_archive
from ..tables import Key, ShotScore, scored_shots, shot_scores
from .cards import MEGABYTES, Looked, ShotFiles, Snaps
from .stories import Choice, shot_examples, shown_methods, shown_stories, story_grid, worst_shots
from .tables import (
    accounting,
    by_official_ranks,
    by_story,
    comparisons,
    definitions_of,
    facts_of,
    headline,
    leaders,
    measure_of,
    polar,
    reading_of,
    shot_rows,
    stability,
    title_of,
    warnings_of,
)

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
MOST_CELLS = 4000
"""Values up to which the page lists a table; ``fabula score --tables`` writes all of them."""
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


@dataclass(frozen=True)
class ImageReport:
    """What a report on shot images shows."""

    definitions: Definitions = field(default_factory=Definitions)  # how scores are made
    excluded: tuple[str, ...] = ()  # methods that are shown and not ranked
    choice: Choice = field(default_factory=Choice)  # stories and methods that are shown with pictures
    megabytes: float = MEGABYTES  # how large all pictures together may be


def people_tables(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    """Yield the tables of a calibration."""
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


def images_report(
    folder: Path,
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    wanted: ImageReport | None = None,
) -> ReportDocument:
    """Return the report on an evaluation folder of kind images.

    ``release``: the set of scripts; None for the place that the evaluation names, if it is still there.
    ``wanted``: how it is scored and what is shown; None for all defaults.
    """
    wanted = wanted or ImageReport()
    used = wanted.definitions
    people = people_of(folder, "images", people_tables)
    archive, stories = read_archive(folder), read_found(folder)
    manifest = archive.manifest
    _check_release(release, manifest)
    scores = score_archive(archive, stories, used)
    pairs = image_comparisons(list(combinations(scores.methods, 2)), used)
    board = leaderboard(scores.methods, pairs, used, _excluded(wanted.excluded, scores))
    files = ShotFiles.of(folder, manifest, release, outputs)
    looked = _looked(archive, stories, scores, files, wanted)
    part = _part(looked, board, wanted)
    examples = tuple(shot_examples(looked, board.methods)) if looked.snaps.made else ()
    accounts = Accounts.of(archive.judgements)
    listed = manifest.subject.get("methods")
    about = listed if isinstance(listed, Mapping) else {}
    return ReportDocument(
        kind="images",
        protocol="ViStoryBench",
        benchmark=evaluated_name(
            [files.release] if files.release is not None else [],
            lambda place: read_shot_set(place)[0].sha256,
            scores.release_sha256,
        ),
        title=title_of(scores),
        facts=facts_of(scores, accounts, manifest),
        warnings=(*warnings_of(scores, board, accounts, looked), *people.warnings),
        reading=tuple(reading_of(board)),
        headline=headline(scores, board.methods),
        details=(*by_strata(scores), *by_story(scores)),
        controls=tuple(by_official_ranks(scores)),
        comparisons=comparisons(pairs, board),
        comparison_note=comparison_note(
            len(scores.methods),
            len(pairs),
            "a story in common that counts",
            "The first method minus the second, paired by story. p-values are corrected by Holm for the "
            "pairs of methods of one score, not for the number of scores.",
        ),
        accounting=(
            *accounting(scores, about, looked.by_method()),
            *([accounts.outcome_table()] if accounts.total else []),
        ),
        people=people.tables,
        people_note=people.note,
        shots=part,
        examples=examples,
        agreement=tuple(stability(scores)),
        agreement_note="" if accounts.total else "No judge was asked about these pictures.",
        cost=accounts.cost_table() if accounts.total else None,
        definitions=tuple(definitions_of(used, board)),
        manifest=manifest.as_json(),
    )


def _looked(
    archive: Archive,
    stories: Sequence[FoundStory],
    scores: ImageScores,
    files: ShotFiles,
    wanted: ImageReport,
) -> Looked:
    """Return an evaluation with every shot scored, and what finds and makes its pictures."""
    shots: dict[Key, list[ShotScore]] = {(story.method, story.story_id): [] for story in stories}
    for shot in scored_shots(archive, stories, scores):
        shots[shot.method, shot.story_id].append(shot)
    return Looked(
        scores=scores,
        stories={(story.method, story.story_id): story for story in stories},
        shots={key: tuple(some) for key, some in shots.items()},
        files=files,
        snaps=Snaps(int(wanted.megabytes * 1_000_000)),
        side=_side(archive.manifest.protocol.get("views")),
    )


def _side(views: object) -> int:
    """Return from which side on pictures that judges saw may have been made smaller; 0 if not known."""
    if not isinstance(views, Mapping):
        return 0
    side = views.get("max_side", 0)
    return LIMITS.max_side + 1 if side is None else side if isinstance(side, int) else 0


def _part(looked: Looked, board: Leaderboard, wanted: ImageReport) -> ShotsPart:
    methods = shown_methods(board.methods, wanted.choice)
    chosen, note = shown_stories(looked, methods, wanted.choice)
    if len(methods) < len(board.methods):
        note += f" {len(methods)} of {len(board.methods)} methods are shown."
    worst = worst_shots(looked, board.methods)
    stories = tuple(story_grid(looked, story, why, methods) for story, why in chosen)
    every = looked.by_method()
    names = [name for name in shot_scores() if any(
        name in shot.values or name in shot.missing for some in every.values() for shot in some
    )]  # fmt: skip
    story_names = in_order(
        dict.fromkeys(name for story in stories for method in story.methods for name in method.scores)
    )
    labels = {name: label_of(name) for name in in_order(dict.fromkeys((*names, *story_names)))}
    return ShotsPart(
        leaders=leaders(board) if len(board.methods) > 1 else None,
        polar=polar(looked.scores, board),
        labels=labels,
        digits={name: metric_of(name).digits for name in labels},
        worst_note="Per score, the shots with the lowest values, the worst first; equal ones are chosen by a "
        "hash. Shots without a picture have no values: they are listed under Coverage and outcomes.",
        worst=worst,
        stories_note=note,
        pictures_note=_pictures_note(looked.snaps, wanted),
        stories=stories,
        every=tuple(shot_rows(every, names)),
    )


def _pictures_note(snaps: Snaps, wanted: ImageReport) -> str:
    parts = [f"{counted(snaps.made, 'picture')} in this page, of at most {wanted.megabytes:g} MB in all"]
    if snaps.gone:
        parts.append(f"{counted(snaps.gone, 'picture')} not available")
    if snaps.spent:
        parts.append(f"{counted(snaps.spent, 'picture')} left out because of that limit")
    return (
        "; ".join(parts)
        + ". Boxes are what the detector found. A picture is shown only if it has the hash of the one that "
        "was evaluated."
    )


def _check_release(release: Path | None, manifest: EvaluationManifest) -> None:
    """Refuse a set of scripts that is not the one that was evaluated."""
    judged = manifest.protocol.get("release")
    if release is None or not isinstance(judged, Mapping):
        return
    sha256 = read_shot_set(release)[0].sha256
    if sha256 != judged.get("sha256"):
        problem = UserError(
            str(release),
            what=f"this set has SHA-256 {sha256}; the one that was evaluated has {judged.get('sha256')}",
            fix="give that version of the set, or leave --release out",
        )
        raise InputError([problem])


def _excluded(names: Collection[str], scores: ImageScores) -> Collection[str]:
    there = [method.method for method in scores.methods]
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ConfigError(
            "--unranked", what=f"there is no method {', '.join(unknown)}",
            fix=f"use some of {', '.join(there[:20])}",
        )  # fmt: skip
    return names
