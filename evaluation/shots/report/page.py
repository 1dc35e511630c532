"""The report on an evaluation of shot images: what it shows, and the words around it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from ....errors import InputError
from ....media.images import LIMITS
from ....releases.loading import evaluated_name
from ....releases.shots.tree import read_shot_set
from ....schemas.judgement import EvaluationManifest
from ....schemas.text import counted
from ...archive.archive import Archive, read_archive
from ...metrics.metric import base_of, in_order, label_of, metric_of, metrics
from ...metrics.story import FoundStory
from ...report.model import (
    Definition,
    ReportDocument,
    ShotsPart,
)
from ...report.people import people_of
from ...report.showing import (
    Accounts,
    Thumbnails,
    Wanted,
    comparison_note,
    day_of,
    resampling_definition,
    sentences,
)
from ..looking import read_found
from ..ratings import Definitions
from ..scores import ImageScores, score_archive
from ..scoring import Key, Leaderboard, ShotScore, image_comparisons, leaderboard, scored_shots, shot_scores
from .cards import (
    Looked,
    ShotFiles,
    shot_examples,
    shown_stories,
    story_grid,
    worst_shots,
)
from .tables import (
    accounting,
    by_official_ranks,
    by_story,
    by_strata,
    comparisons,
    headline,
    leaders,
    people_tables,
    shares,
    shot_rows,
    stability,
)


def images_report(
    folder: Path,
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    wanted: Wanted[Definitions] | None = None,
) -> ReportDocument:
    """Return the report on an evaluation folder of kind images.

    ``release``: the set of scripts; None for the place that the evaluation names, if it is still there.
    ``wanted``: how it is scored and what is shown; None for all defaults.
    """
    wanted = wanted or Wanted(Definitions())
    used = wanted.definitions
    people = people_of(folder, "images", people_tables)
    archive, stories = read_archive(folder), read_found(folder)
    manifest = archive.manifest
    _check_release(release, manifest)
    scores = score_archive(archive, stories, used)
    wanted.check([story.story_id for story in stories], [method.method for method in scores.methods])
    pairs = image_comparisons(list(combinations(scores.methods, 2)), used)
    board = leaderboard(scores.methods, pairs, used, wanted.unranked, wanted.least)
    files = ShotFiles.of(folder, manifest, release, outputs)
    looked = _looked(archive, stories, scores, files, wanted)
    part = _part(looked, board, wanted)
    examples = tuple(shot_examples(looked, board.methods)) if looked.snaps.made else ()
    accounts = Accounts.of(archive.judgements)
    listed = manifest.subject.get("methods")
    about = listed if isinstance(listed, Mapping) else {}
    outcomes = [accounts.outcome_table()] if accounts.total else []
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
        plots=shares(scores, board.methods),
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
        accounting=(*accounting(scores, about, looked.by_method()), *outcomes),
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
    wanted: Wanted[Definitions],
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
        snaps=Thumbnails.within(wanted.megabytes),
        side=_side(archive.manifest.protocol.get("views")),
    )


def _side(views: object) -> int:
    """Return from which side on pictures that judges saw may have been made smaller; 0 if not known."""
    if not isinstance(views, Mapping):
        return 0
    side = views.get("max_side", 0)
    return LIMITS.max_side + 1 if side is None else side if isinstance(side, int) else 0


def _part(looked: Looked, board: Leaderboard, wanted: Wanted[Definitions]) -> ShotsPart:
    methods = wanted.shown(board.methods)
    chosen, note = shown_stories(looked, methods, wanted.units)
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
        labels=labels,
        digits={name: metric_of(name).digits for name in labels},
        worst_note="Per score, the worst first; equal ones are chosen by a hash. Shots without a picture "
        "have no values: they are listed under Coverage and outcomes.",
        worst=worst,
        stories_note=note,
        pictures_note=_pictures_note(looked.snaps, wanted),
        stories=stories,
        every=tuple(shot_rows(every, names)),
    )


def _pictures_note(snaps: Thumbnails, wanted: Wanted[Definitions]) -> str:
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
        raise InputError.one(
            str(release),
            what=f"this set has SHA-256 {sha256}; the one that was evaluated has {judged.get('sha256')}",
            fix="give that version of the set, or leave --release out",
        )


def title_of(scores: ImageScores) -> str:
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
    yield from sentences(scores.notes, (method.method for method in scores.methods))
    for scored in scores.methods:
        asked, there = scored.accounting.get("shots_requested"), scored.accounting.get("shots_valid")
        if isinstance(asked, int) and isinstance(there, int) and there < asked:
            yield f"{asked - there:,} of {asked:,} shots of {scored.method} have no picture."
    for method, why in board.unranked.items():
        yield f"{method} is shown, but not ranked: {why}."
    yield from accounts.warnings()
    if looked.files.changed:
        yield (
            f"{counted(len(looked.files.changed), 'picture')} changed, or gone, since the evaluation, and "
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
