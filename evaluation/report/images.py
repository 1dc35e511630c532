"""The report on an evaluation of shot images."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...releases.shot_tree import read_shot_set
from ...schemas.judgement import EvaluationManifest
from ..archive import read_archive
from ..images.compare import paired
from ..images.definitions import NAMED, Definitions
from ..images.found import read_found
from ..images.leaderboard import Leaderboard, leaderboard
from ..images.naming import SCORES, base_of, in_order, known_of
from ..images.per_shot import SHOT_SCORES, ShotScore, score_shots
from ..images.ratings import collect_panels
from ..images.score import score_archive
from ..images.scores import ImageScores
from ..words import counted
from .accounts import Accounts
from .model import Definition, Plot, PlotPoint, ReportDocument
from .shot_cards import Looked
from .shot_files import ShotFiles
from .shot_stories import Choice, shown_methods, shown_stories, story_grid, worst_shots
from .shot_tables import (
    accounting,
    by_story,
    comparisons,
    headline,
    leaders,
    measure_of,
    polar,
    shot_rows,
    stability,
    unit_of,
)
from .shots_model import ShotsPart
from .snaps import MEGABYTES, Snaps

FEW_STORIES = 20
"""Number of stories below which the page says that intervals are not to be relied on."""
FEW_ANSWERS = 0.95
"""Share of answers of a judge below which the page says so at its top."""
MOST_LINES = 8
"""Methods up to which scores are drawn on lines, too."""


@dataclass(frozen=True)
class ImageReport:
    """What a report on shot images shows.

    Attributes:
        definitions: how scores are made.
        excluded: methods that are shown and not ranked.
        choice: stories and methods that are shown with pictures.
        megabytes: how large all pictures together may be.
    """

    definitions: Definitions = field(default_factory=Definitions)
    excluded: tuple[str, ...] = ()
    choice: Choice = field(default_factory=Choice)
    megabytes: float = MEGABYTES


def images_report(
    folder: Path,
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    wanted: ImageReport | None = None,
) -> ReportDocument:
    """Return the report on an evaluation folder of kind images.

    Args:
        folder: the evaluation folder.
        release: the set of scripts; None for the place that the evaluation names, if it is still there.
        outputs: folders of outputs; of other methods, the places that the evaluation names.
        wanted: how it is scored and what is shown; None for all defaults.

    Raises:
        InputError: the archive, the set or outputs cannot be used, or do not belong together.
        ConfigError: a story or method that was asked for is not in the evaluation.
    """
    wanted = wanted or ImageReport()
    used = wanted.definitions
    archive, found = read_archive(folder), read_found(folder)
    manifest = archive.manifest
    _check_release(release, manifest)
    scores = score_archive(archive, found, used)
    panels = collect_panels(archive.judgements, found)
    scored = {(one.method, story.story_id): story for one in scores.methods for story in one.stories}
    shots = {
        (one.method, one.story_id): score_shots(
            one,
            scored[one.method, one.story_id],
            [panel for (method, _), panel in sorted(panels.items()) if method == one.method],
            used,
        )
        for one in found
    }
    pairs = paired(list(combinations(scores.methods, 2)), used)
    board = leaderboard(scores.methods, pairs, used, _excluded(wanted.excluded, scores))
    views = manifest.protocol.get("views")
    side = views.get("max_side") if isinstance(views, Mapping) else None
    looked = Looked(
        scores, {(one.method, one.story_id): one for one in found}, shots,
        ShotFiles.of(folder, manifest, release, outputs), Snaps(int(wanted.megabytes * 1_000_000)),
        side if isinstance(side, int) else None,
    )  # fmt: skip
    part = _part(looked, board, wanted)
    accounts = Accounts()
    for judgement in archive.judgements:
        accounts.add(judgement)
    told = manifest.subject.get("methods")
    by_method = {
        one.method: [shot for (method, _), some in shots.items() for shot in some if method == one.method]
        for one in scores.methods
    }
    about = told if isinstance(told, Mapping) else {}
    return ReportDocument(
        kind="images",
        title=_title(scores),
        facts=_facts(scores, accounts, manifest),
        warnings=tuple(_warnings(scores, board, accounts, looked)),
        reading=tuple(_reading(board)),
        headline=headline(scores, board.methods),
        plots=tuple(_plots(scores, board)),
        details=tuple(by_story(scores)),
        comparisons=comparisons(pairs, board),
        comparison_note=_comparison_note(scores, len(pairs)),
        accounting=(
            *accounting(scores, about, by_method),
            *([accounts.outcome_table()] if accounts.total else []),
        ),
        shots=part,
        agreement=tuple(stability(scores)),
        agreement_note="" if accounts.total else "Nobody was asked about these pictures.",
        cost=accounts.cost_table() if accounts.total else None,
        definitions=tuple(_definitions(used, board)),
        manifest=manifest.as_json(),
    )


def _part(looked: Looked, board: Leaderboard, wanted: ImageReport) -> ShotsPart:
    methods = shown_methods(board.methods, wanted.choice)
    chosen, note = shown_stories(looked, methods, wanted.choice)
    if len(methods) < len(board.methods):
        note += f" {len(methods)} of {len(board.methods)} methods are shown."
    worst = worst_shots(looked, board.methods)
    stories = tuple(story_grid(looked, story, why, methods) for story, why in chosen)
    every: dict[str, list[ShotScore]] = {}
    for (method, _), some in looked.shots.items():
        every.setdefault(method, []).extend(some)
    names = [name for name in SHOT_SCORES if any(
        name in shot.values or name in shot.missing for some in every.values() for shot in some
    )]  # fmt: skip
    story_names = in_order(
        dict.fromkeys(name for one in stories for method in one.methods for name in method.scores)
    )
    labels = {name: measure_of(name).label for name in in_order(dict.fromkeys((*names, *story_names)))}
    return ShotsPart(
        leaders=leaders(board) if len(board.methods) > 1 else None,
        polar=polar(looked.scores, board),
        labels=labels,
        digits={name: known_of(name).digits for name in labels},
        worst_note="Per score, the shots with the lowest values, the worst first; equal ones are chosen by a "
        "hash. Shots without a picture have no values: they are listed under Coverage and outcomes.",
        worst=worst,
        stories_note=note,
        pictures_note=_pictures_note(looked.snaps, wanted),
        stories=stories,
        every=tuple(shot_rows(every, names)),
    )


def _pictures_note(snaps: Snaps, wanted: ImageReport) -> str:
    told = [f"{counted(snaps.made, 'picture')} in this page, of at most {wanted.megabytes:g} MB in all"]
    if snaps.gone:
        told.append(f"{counted(snaps.gone, 'picture')} not at hand")
    if snaps.spent:
        told.append(f"{counted(snaps.spent, 'picture')} left out because of that limit")
    return (
        "; ".join(told)
        + ". Boxes are what the detector found. A picture is shown only if it has the hash of the one that "
        "was evaluated."
    )


def _check_release(release: Path | None, manifest: EvaluationManifest) -> None:
    """Refuse a set of scripts that is not the one that was evaluated.

    Raises:
        InputError: it is another, or cannot be read.
    """
    told = manifest.protocol.get("release")
    if release is None or not isinstance(told, Mapping):
        return
    found = read_shot_set(release)[0].sha256
    if found != told.get("sha256"):
        problem = UserError(
            str(release), expected=f"the set that was evaluated, SHA-256 {told.get('sha256')}",
            found=f"SHA-256 {found}", fix="give that version of the set, or leave --release out",
        )  # fmt: skip
        raise InputError([problem])


def _excluded(names: Collection[str], scores: ImageScores) -> Collection[str]:
    from ...errors import ConfigError

    there = [one.method for one in scores.methods]
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ConfigError(
            "--unranked", expected=f"one of {', '.join(there[:20])}", found=", ".join(unknown),
            fix="check the spelling",
        )  # fmt: skip
    return names


def _title(scores: ImageScores) -> str:
    methods = [one.method for one in scores.methods]
    if not methods:
        return "Shot images of no method"
    return f"Shot images of {methods[0]}" if len(methods) == 1 else f"Shot images of {len(methods)} methods"


def _facts(scores: ImageScores, accounts: Accounts, manifest: EvaluationManifest) -> dict[str, str]:
    created = manifest.environment.get("created_at")
    stories = {story.story_id for one in scores.methods for story in one.stories}
    asked = [int(one.accounting.get("shots_requested") or 0) for one in scores.methods]
    there = [int(one.accounting.get("shots_valid") or 0) for one in scores.methods]
    return {
        "Stories": f"{len(stories):,}",
        "Methods": f"{len(scores.methods):,}",
        "Shots asked for": f"{sum(asked):,}",
        "With picture": f"{sum(there):,}",
        "Judges": f"{len(accounts.replies):,}",
        "Replies": f"{accounts.total:,}",
        **({"Evaluated": str(created)[:10]} if created else {}),
    }


def _reading(board: Leaderboard) -> Iterator[str]:
    yield (
        "Models look for characters in every picture, compare them and its style with the references and "
        "with each other, and judges rate what the script asks for."
    )
    yield (
        "Every score is a mean over stories; what has no picture, no crop or no rating is left out of it and "
        "counted beside it. Nothing that failed is a 0."
    )
    if len(board.methods) > 1:
        yield "Intervals that overlap do not mean that methods are alike: the paired tests say that."


def _warnings(scores: ImageScores, board: Leaderboard, accounts: Accounts, looked: Looked) -> Iterator[str]:
    stories = len({story.story_id for one in scores.methods for story in one.stories})
    if not stories:
        yield "The evaluation has no story."
    elif stories < FEW_STORIES:
        few = f"Only {counted(stories, 'story')} {'was' if stories == 1 else 'were'} evaluated"
        yield f"{few}: intervals and tests on so few are not to be relied on."
    yield from (f"{note[:1].upper()}{note[1:]}." for note in scores.notes)
    for one in scores.methods:
        asked, there = one.accounting.get("shots_requested"), one.accounting.get("shots_valid")
        if isinstance(asked, int) and isinstance(there, int) and there < asked:
            yield f"{asked - there:,} of {asked:,} shots of {one.method} have no picture."
    for method, why in board.unranked.items():
        yield f"{method} is shown and not ranked: {why}."
    for judge, count in sorted(accounts.replies.items()):
        answered = accounts.outcomes[judge]["answered"]
        if answered < FEW_ANSWERS * count:
            yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."
    if looked.files.changed:
        yield (
            f"{counted(len(looked.files.changed), 'picture')} changed since the evaluation and "
            f"{'is' if len(looked.files.changed) == 1 else 'are'} not shown."
        )
    if looked.snaps.gone and not looked.snaps.made:
        yield "The pictures are not at hand: give their folders with --outputs and the set with --release."


def _plots(scores: ImageScores, board: Leaderboard) -> Iterator[Plot]:
    if not 1 < len(board.methods) <= MOST_LINES:
        return
    methods = {one.method: one for one in scores.methods}
    alike: dict[str, list[str]] = {"similarities": [], "ratings": []}
    for name in board.names:
        if base_of(name).startswith(("cids", "csd")):
            alike["similarities"].append(name)
        elif known_of(name).top == 4.0:
            alike["ratings"].append(name)
    titles = {
        "similarities": "Similarities of characters and style",
        "ratings": "Ratings of prompt alignment, 0 to 4",
    }
    for kind, names in alike.items():
        if names:
            groups = {
                measure_of(name).label: tuple(
                    PlotPoint(series=method, score=methods[method].scores[name])
                    for method in board.methods
                    if name in methods[method].scores
                )
                for name in names
            }
            yield Plot(
                name=kind, title=titles[kind], unit=unit_of(names[0]), groups=groups,
                note="With 95 % intervals over stories.",
            )  # fmt: skip


def _comparison_note(scores: ImageScores, pairs: int) -> str:
    if len(scores.methods) < 2:
        return "There is one method only; fabula compare holds it against other evaluations."
    if not pairs:
        return "No two methods have a story in common that counts."
    return (
        "The first method less the second, paired by story. p-values are corrected by Bonferroni for the "
        "pairs of methods of one score, not for the number of scores."
    )


def _definitions(used: Definitions, board: Leaderboard) -> Iterator[Definition]:
    present = {base_of(name) for name in board.names}
    settings = used.as_json()
    for name, known in SCORES.items():
        if name in present:
            value = "as published" if known.variant is None else str(settings[known.variant])
            yield Definition(name=known.label, value=value, meaning=known.meaning)
    least = "no lower limit" if used.least is None else f"{used.least:g}"
    yield Definition(
        name="least similarity of a match", value=least,
        meaning="Crops are assigned to expected characters so that the sum of similarities is largest.",
    )  # fmt: skip
    yield Definition(
        name="bootstrap", value=f"{used.resamples:,} resamples, seed {used.seed}",
        meaning="Stories are drawn with replacement; intervals are percentiles.",
    )  # fmt: skip
    choices: dict[str, Any] = {name: getattr(used, name.replace("-", "_")) for name in NAMED}
    listed = ", ".join(f"{name}={value}" for name, value in choices.items())
    yield Definition(name="chosen with --define", value=listed, meaning="docs/images.md says what they are.")
