"""Scoring an evaluation of storyboards: archive and release in, scores and the tables behind them out."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError, InputError
from ...releases.loading import Release, load
from ...schemas.canonical import Json, jsonl_lines, write_atomic, writing
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import counted, normalize_answer
from ...schemas.values import Score
from ..archive.archive import (
    JUDGEMENTS,
    Archive,
    check_hash,
    lines_of,
    read_manifest,
    release_sha256,
    sources_of,
)
from ..archive.replies import TRAIN, archive_notes, last_attempts, not_judged, trained_on
from ..stats.uncertainty import TOLERANCE
from . import columns
from .columns import CHANCE, NO_LABEL, majority_share, moral_columns, question_counts
from .matching import CONDITIONS, DIMENSIONS, GROUPINGS, PROTOCOL, Definitions, Items, items_of
from .method import (
    GROUP_SETS,
    JUDGE_SETS,
    JUDGE_VALUES,
    Method,
    add_columns,
    add_group_columns,
    comparisons,
    evidence_control,
    filtering_control,
    half_data_control,
    judge_control,
    methods_of,
    range_over,
    story_gaps,
)
from .pooling import (
    LEVELS,
    RIGHT_VERDICT,
    SETS,
    UNJUDGED,
    GapScores,
    GroupScores,
    KathaScores,
    Level,
    Mask,
    MethodScores,
    SetName,
    Sums,
    Verdicts,
    boards,
    sums_of,
    triples_of,
)
from .recoverability import METRICS, Estimates, Rate, Sheet
from .replies import (
    KINDS,
    Replies,
    coverage_of,
    extended,
    generations,
    invalid_generations,
    marker_for,
    moved,
    read_replies,
    requested_of,
)

# -- From estimates to the scores that are reported


def method_scores(
    method: Method, estimates: Estimates, loose: Verdicts, groups: Mapping[str, Mapping[str, GroupScores]],
    items: Items,
) -> MethodScores:  # fmt: skip
    """Return the scores of one method.

    ``loose``: verdicts by the answers alone, shape (seeds, conditions, questions).
    """
    gaps = {
        level: {name: gap_scores(method, estimates, level, name, items) for name in SETS} for level in LEVELS
    }
    judges = {
        judge: {
            name: {rate.name: estimates.score(f"judge.{judge}.{name}.{rate.name}") for rate in JUDGE_VALUES}
            for name in JUDGE_SETS
        }
        for judge in method.single
    }
    return MethodScores(
        generations=method.made.as_json(),
        questions=question_counts(method.outcomes),
        ambiguity=estimates.score("ambiguity", counts=_checked(method)),
        ambiguity_by_dimension={name: estimates.score(f"ambiguity.{name}") for name in DIMENSIONS},
        gaps=gaps,
        moral_target=_moral(method, estimates, items),
        pairs={
            rate.name: estimates.score(f"pairs.{rate.name}", counts=counts)
            for rates, counts in _beside_pairs(method, items)
            for rate in rates
        },
        triples=triples_of(method.outcomes),
        judges=judges,
        groups=groups,
        negative=_negative(method, gaps, items),
        evidence=tuple(evidence_control(method, loose, items)),
    )


def gap_scores(
    method: Method, estimates: Estimates, level: Level, name: SetName, items: Items,
    stories: Mask | None = None,
) -> GapScores:  # fmt: skip
    """Return recoverability and gaps of one level and set, with what they stand on.

    ``stories``: which stories count, shape (stories,); None for all.
    """
    chosen = method.outcomes.sets[name]
    sums = sums_of(method.outcomes, chosen, items, level)
    if stories is not None:
        chosen = chosen[:, stories[items.story]]
        sums = Sums(sums.text[stories], sums.image[stories], sums.counted[stories])
    counts = {
        "questions": int(chosen.sum()),  # seeds counted apart
        "stories": int(sums.counted.any(axis=1).sum()),
        "dimensions": int(sums.counted.any(axis=0).sum()),
    }
    prefix, total = f"{level}.{name}", sums.total()
    return GapScores(
        **{rate.name: estimates.score(f"{prefix}.{rate.name}", counts=counts) for rate in METRICS},
        dimensions={
            dimension: _dimension(estimates, f"{prefix}.{{}}.{dimension}", total, index)
            for index, dimension in enumerate(DIMENSIONS)
        },
    )


def group_scores(
    methods: tuple[Method, ...], items: Items, definitions: Definitions
) -> dict[str, dict[str, dict[str, GroupScores]]]:
    """Return method -> grouping -> group -> scores, resampled within each group."""
    scores_of_groups: dict[str, dict[str, dict[str, GroupScores]]] = {method.name: {} for method in methods}
    sheet = Sheet(items.stories)
    for method in methods:
        add_group_columns(sheet, method, items)
    for grouping in GROUPINGS:
        for group, stories in items.groups(grouping).items():
            drawn = sheet.resampled(definitions, stories)
            for method in methods:
                values = sheet.estimates(drawn, method.name)
                gaps = {
                    name: gap_scores(method, values, "question", name, items, stories) for name in GROUP_SETS
                }
                scores = GroupScores(int(stories.sum()), gaps, values.score("ambiguity"))
                scores_of_groups[method.name].setdefault(grouping, {})[group] = scores
    return scores_of_groups


def _dimension(estimates: Estimates, pattern: str, sums: Sums, index: int) -> dict[str, Score]:
    counted = float(sums.counted[index])
    over = {"text": float(sums.text[index]), "image": float(sums.image[index])}
    over["gap"] = over["text"] - over["image"]
    return {
        value: estimates.score(pattern.format(value), numerator=number, denominator=counted)
        for value, number in over.items()
    }


def _moral(method: Method, estimates: Estimates, items: Items) -> dict[str, Score]:
    stories = moral_columns(method.labels, method.made, items)[:, 2] > 0
    counts = {"stories": int(stories.sum()), "with_label": int((items.moral >= 0).sum())}
    scores = {rate.name: estimates.score(f"moral.{rate.name}", counts=counts) for rate in columns.MORAL}
    most, number = majority_share(items, stories)
    scores["chance"] = Score(value=CHANCE, status="ok")
    scores["majority"] = Score.ratio(most, number, NO_LABEL)
    return scores


def _checked(method: Method) -> dict[str, int]:
    return {"ambiguous": int(method.outcomes.ambiguous.sum()), "checked": int(method.outcomes.checked.sum())}


def _beside_pairs(method: Method, items: Items) -> Iterator[tuple[tuple[Rate, ...], dict[str, int]]]:
    yield columns.CONTRASTS, _pairs(method)
    yield columns.TWINS, _twins(method, items)
    outcomes = method.contrasted(items)
    if outcomes is not None:
        counted = int(outcomes.sets["filtered"].sum())
        yield columns.TRAJECTORIES, {"questions": counted, "asked": int(outcomes.requested.sum())}


def _pairs(method: Method) -> dict[str, int]:
    return {"judged": int((method.choices[:, 1] != UNJUDGED).sum())}


def _twins(method: Method, items: Items) -> dict[str, int]:
    """Return how many outputs of variants were judged, and how many pairs there are."""
    judged = method.variant_choices[:, 1] != UNJUDGED
    return {"judged": int(judged.sum()), "pairs": len(judged) * len(items.pairs)}


def _negative(
    method: Method, gaps: Mapping[Level, Mapping[SetName, GapScores]], items: Items
) -> dict[str, object]:
    """Return the names of the scores below zero, and the stories whose raw gap is."""
    named = []
    for level, sets in gaps.items():
        for name, scores in sets.items():
            parts = {"overall": scores.gap} | {
                name: dimension["gap"] for name, dimension in scores.dimensions.items()
            }
            named += [
                f"{level}.{name}.{part}"
                for part, score in parts.items()
                if score.value is not None and score.value < -TOLERANCE
            ]
    below = story_gaps(method, method.outcomes.sets["raw"], items) < -TOLERANCE
    stories = [items.records[index].story_id for index in np.flatnonzero(below)]
    return {"scores": named, "stories": stories}


# -- Scoring an evaluation of storyboards


@dataclass(frozen=True)
class Judged:
    """An evaluation ready to be scored."""

    manifest: EvaluationManifest = field(repr=False)  # of the evaluation
    release: Release = field(repr=False)  # what was judged
    sha256: str  # of the release
    items: Items = field(repr=False)  # the stories that are scored
    replies: Replies = field(repr=False)  # what the judges said
    methods: tuple[Method, ...] = field(repr=False)  # the verdicts, per method
    # method -> verdicts on questions by the answers alone, shape (seeds, conditions, questions)
    loose: Mapping[str, Verdicts] = field(repr=False)
    training: int = 0  # stories of the split for training, where nobody chose splits or stories by name


def score_folder(
    folder: str | Path,
    release: str | Path | None = None,
    definitions: Definitions | None = None,
    *,
    splits: Sequence[str] = (),
    read: Callable[[Path], Release] = load,
) -> KathaScores:
    """Score an evaluation folder of kind katha.

    ``release``: the release that was judged; None for the place that the manifest names. ``definitions``: how
    replies become numbers; None for the paper's.
    """
    used = definitions or Definitions()
    return scores_of(judged_folder(folder, release, used, splits=splits, read=read), used)


def judged_folder(
    folder: str | Path,
    release: str | Path | None,
    definitions: Definitions,
    *,
    splits: Sequence[str] = (),
    stories: Container[str] | None = None,
    read: Callable[[Path], Release] = load,
) -> Judged:
    """Return what :func:`score_folder` scores, of some stories only where given; it raises the same."""
    evaluation = Path(folder)
    manifest = read_manifest(evaluation)
    if manifest.kind != PROTOCOL:
        raise _unusable(evaluation, f"an evaluation of kind {PROTOCOL}", manifest.kind)
    path = release_path(evaluation, manifest, release)
    sha256 = release_sha256(path)
    check_hash(Archive(manifest, ()), "release", sha256, str(path))
    loaded = read(path)
    records = [record for record in _records(loaded, splits) if stories is None or record.story_id in stories]
    every = items_of(records, loaded.variants)
    replies = read_replies(evaluation, every, frozenset(loaded.by_id), definitions)
    replies = extended(replies, *requested_of(manifest))
    if not replies.methods:
        raise _unusable(evaluation, "judgements about the outputs of a method", "none")
    _check_weights(replies, definitions)
    invalid = {story for method in replies.methods for story, _ in invalid_generations(manifest, method)}
    items = every.chosen([*replies.units, *invalid])
    replies = moved(replies, every, items)
    made = generations(manifest, replies, items)
    board_of_kind = {kind: boards(replies, items, kind, definitions) for kind in KINDS}
    loose = boards(replies, items, "question", definitions, loose=True)
    given = manifest.environment.get("selection")
    chosen = splits or (isinstance(given, Mapping) and (given.get("split") or given.get("stories")))
    return Judged(
        manifest, loaded, sha256, items, replies,
        methods_of(board_of_kind, made, items, replies.judges, definitions.common),
        {name: board.together for name, board in loose.items()},
        0 if chosen else sum(record.split == TRAIN for record in items.records),
    )  # fmt: skip


def scores_of(judged: Judged, definitions: Definitions) -> KathaScores:
    items, methods = judged.items, judged.methods
    sheet, estimates = estimated(methods, items, definitions)
    groups = group_scores(methods, items, definitions)
    scores = {
        method.name: method_scores(
            method, estimates[method.name], judged.loose[method.name], groups[method.name], items
        )
        for method in methods
    }
    robustness: dict[str, Any] = {
        "filtering": filtering_control(estimates),
        "judges": judge_control(methods, estimates, items),
        "half_data": half_data_control(sheet, methods, definitions),
        "source_family": {name: range_over(groups[name].get("source_family", {})) for name in groups},
    }
    return KathaScores(
        definitions=definitions,
        release={"sha256": judged.sha256, "version": judged.release.version},
        scope={
            "stories": items.stories,
            "questions": items.questions,
            "pairs": len(items.pairs),
            "judges": judged.replies.judges,
            "judgements_outside": judged.replies.outside,
        },
        methods=scores,
        comparisons=comparisons(list(combinations(methods, 2)), estimates, items, definitions),
        robustness=robustness,
        coverage=coverage_of(judged.replies),
        notes=(*_notes(judged), *_ambiguous(scores), *definitions.notes(items.stories, "story")),
    )


def estimated(
    methods: Sequence[Method], items: Items, definitions: Definitions
) -> tuple[Sheet, dict[str, Estimates]]:
    """Return the sheet of all methods and method -> its values, all resampled together."""
    sheet = Sheet(items.stories)
    for method in methods:
        add_columns(sheet, method, items)
    drawn = sheet.resampled(definitions)
    return sheet, {method.name: sheet.estimates(drawn, method.name) for method in methods}


def release_path(folder: Path, manifest: EvaluationManifest, given: str | Path | None) -> Path:
    """Return where the release is: as given, else where the manifest says that it was."""
    if given is not None:
        return Path(given)
    for role, path in sources_of(folder, manifest):
        if role == "release" and path.is_dir():
            return path
    raise ConfigError(
        "--release", what=f"the release that was judged is not where {folder} says",
        fix="give its folder with --release",
    )  # fmt: skip


def read_weights(path: Path) -> dict[str, float]:
    """Return judges' weights in a JSON file: ``{"split": "validation", "weights": {judge: weight}}``."""
    try:
        document = read_json(path, follow=True)
        weights = {str(judge): float(weight) for judge, weight in document["weights"].items()}
        split = document["split"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unusable(
            path, "weights of judges with the split that they were fitted on", reason_of(error)
        ) from error
    if split != "validation":
        raise _unusable(path, "weights fitted on the validation split only", str(split))
    if not weights or min(weights.values()) < 0 or max(weights.values()) <= 0:
        raise _unusable(path, "weights from 0, at least one above 0", str(weights)[:80])
    return weights


def _records(release: Release, splits: Sequence[str]) -> list[StoryRecord]:
    unknown = [name for name in splits if name not in release.splits]
    if unknown:
        raise ConfigError(
            "--split",
            what=f"the release has no split {', '.join(unknown)}",
            fix=f"choose from {', '.join(release.splits)}",
        )
    return [record for record in release.records if not splits or record.split in splits]


def _check_weights(replies: Replies, definitions: Definitions) -> None:
    missing = (
        []
        if definitions.weights is None
        else [judge for judge in replies.judges if judge not in definitions.weights]
    )
    if missing:
        raise ConfigError(
            "--weights", what=f"there is no weight for {', '.join(missing)}",
            fix="fit the weights for these judges, or leave them out",
        )  # fmt: skip


def judge_notes(judged: Judged) -> Iterator[str]:
    """Yield which methods a judge did not judge, text alone aside, and that they may have learned stories."""
    shown = {(method, judge) for judge, method, *_ in judged.replies.outcomes if method is not None}
    yield from not_judged(
        {name: {judge for method, judge in shown if method == name} for name in judged.replies.methods}
    )
    if judged.training:
        yield trained_on(judged.training, judged.items.stories)


def _notes(judged: Judged) -> list[str]:
    selection = judged.manifest.protocol.get("stories")
    count = selection.get("count") if isinstance(selection, Mapping) else None
    notes = list(archive_notes(judged.manifest))
    notes += judge_notes(judged)
    there = judged.items.stories
    if isinstance(count, int) and count != there and not judged.replies.outside:
        notes.append(
            f"the manifest says that {counted(count, 'story')} {'was' if count == 1 else 'were'} judged; "
            f"there are judgements about {there}"
        )
    methods = judged.manifest.subject.get("methods")
    for name, about in methods.items() if isinstance(methods, Mapping) else ():
        if isinstance(about, Mapping) and isinstance(about.get("leaks"), list) and about["leaks"]:
            notes.append(
                f"{name}: judges were not shown {counted(len(about['leaks']), 'storyboard')}, as the leakage "
                "scan found something there; the questions are unjudged"
            )
    if judged.replies.outside:
        outside, verb = judged.replies.outside, "is" if judged.replies.outside == 1 else "are"
        notes.append(f"{counted(outside, 'judgement')} {verb} about stories that are not scored here")
    return notes


def _ambiguous(scores: Mapping[str, MethodScores]) -> Iterator[str]:
    for name, method in scores.items():
        if method.ambiguity.value == 1:
            yield (
                f"{name}: every question that was checked is ambiguous (text and images together give no "
                "accepted answer), so none is valid, and there is no filtered STG"
            )


def _unusable(where: Path, expected: str, found: str) -> InputError:
    return InputError.one(str(where), expected=expected, found=found, fix="see docs/scoring.md")


MATCHES, QUESTIONS = "matches.jsonl", "questions.jsonl"


def write_tables(target: Path, folder: Path, judged: Judged, definitions: Definitions) -> None:
    """Write both tables into a folder: a line per reply to a question, and per question that was scored."""
    with writing(target, "choose another --tables"):
        target.mkdir(parents=True, exist_ok=True)
        write_atomic(target / MATCHES, jsonl_lines(match_rows(folder, judged, definitions)))
        write_atomic(target / QUESTIONS, jsonl_lines(question_rows(judged)))


def match_rows(folder: Path, judged: Judged, definitions: Definitions) -> Iterator[dict[str, Json]]:
    """Yield what each reply to a question said, normalised, and whether it is right (null: no answer)."""
    path = folder / JUDGEMENTS
    marker, places = marker_for(path, definitions), judged.items.question_places
    for attempt in last_attempts(lines_of(path)):
        if attempt.kind != "question" or attempt.item not in places:
            continue
        right = None
        if attempt.parsed is not None:
            right = bool(
                marker.marks(judged.items.keys[places[attempt.item]], attempt.condition, attempt.parsed)[0]
            )
        yield {
            "method": attempt.method, "unit": attempt.unit, "seed": attempt.seed, "item": attempt.item,
            "condition": attempt.condition, "judge": attempt.judge.spec, "vote": attempt.vote,
            "outcome": attempt.outcome, "answer": _said(attempt), "matched": right,
        }  # fmt: skip


def question_rows(judged: Judged) -> Iterator[dict[str, Json]]:
    """Yield the verdicts on each question for each method and seed, and which sets it is in."""
    for method in judged.methods:
        yield from _question_rows(method, judged)


def _question_rows(method: Method, judged: Judged) -> Iterator[dict[str, Json]]:
    items, outcomes = judged.items, method.outcomes
    ambiguous = outcomes.ambiguous
    for seed, question in zip(*np.nonzero(outcomes.requested), strict=True):
        verdicts = outcomes.verdicts[seed, :, question]
        yield {
            "method": method.name, "seed": judged.replies.seeds[seed],
            "unit": items.records[items.story[question]].story_id, "item": items.keys[question].question_id,
            "dimension": DIMENSIONS[items.dimension[question]],
            **{
                name: None if verdict == UNJUDGED else bool(verdict == RIGHT_VERDICT)
                for name, verdict in zip(CONDITIONS, verdicts, strict=True)
            },
            "ambiguous": bool(ambiguous[seed, question]),
            "generation_valid": bool(outcomes.valid[seed, question]),
            **{name: bool(outcomes.sets[name][seed, question]) for name in SETS},
        }  # fmt: skip


def _said(judgement: Judgement) -> str | None:
    name = "final_answer" if judgement.condition == "text_image" else "answer"
    said = None if judgement.parsed is None else judgement.parsed.get(name)
    return normalize_answer(said) if isinstance(said, str) else None
