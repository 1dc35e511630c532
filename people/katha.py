"""Studies of storyboards: what people recover, and how judges follow them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evaluation.archive.archive import check_hash, release_sha256, sources_of
from ..evaluation.recoverability.matching import Definitions
from ..releases.loading import Release, load
from ..schemas.judgement import HumanRow
from ..schemas.katha import StoryRecord
from .against import ENSEMBLE, Judged, against, fitted_weights, judged, label_agreement, preference_agreement
from .ratings import human_ratings, methods_of, preferences, preferred_dimensions
from .read import Known, read_human
from .recoverability import CONDITIONS, human_moral, human_recovery, lines_of, lines_under, majorities
from .study import (
    Evaluated,
    Followed,
    Json,
    Study,
    StudySettings,
    as_plain,
    common_parts,
    number_text,
    percent_text,
    rating_lines,
    score_text,
)

DEFAULTS = Definitions()


def compare_storyboards(evaluated: Evaluated, settings: StudySettings) -> dict[str, Any]:
    """Return all that people said about storyboards and how judges compare, as plain JSON."""
    records = _release(evaluated).records
    known = Known.of_records(records, frozenset(evaluated.archive.manifest.subject.get("methods", ())))
    nonresponse = settings.nonresponse or DEFAULTS.nonresponse
    kept, document = common_parts(
        "katha", read_human(evaluated.human, known), settings, nonresponse, known.questions
    )
    judges = judged(evaluated.archive.judgements, known.questions, nonresponse)
    asked = _Asked(kept.rows, known, judges, settings)
    document |= {
        "methods": {method: asked.about(method) for method in methods_of(kept.rows)},
        "preferences": as_plain(preferences(kept.rows, settings.resampling)),
        "preference_dimensions": as_plain(preferred_dimensions(kept.rows, settings.resampling)),
        "judges": asked.followed(),
        "weights": None,
    }
    if settings.fit_split is not None:
        split = {record.story_id for record in records if record.split == settings.fit_split}
        fitting = [
            row
            for row in kept.rows
            if row.kind == "answer" and known.questions[str(row.item)].story_id in split
        ]
        weights = fitted_weights(fitting, known.questions, judges)
        document["weights"] = {"split": settings.fit_split, "weights": weights}
    return document


def story_ratings(
    path: Path, records: tuple[StoryRecord, ...], methods: frozenset[str]
) -> dict[str, dict[str, float]]:
    """Return method -> story -> the mean of all ratings that people gave of it, over all criteria."""
    ratings: dict[str, dict[str, list[float]]] = {}
    for row in read_human(path, Known.of_records(records, methods)):
        if row.kind == "rating" and row.value is not None:
            ratings.setdefault(str(row.method), {}).setdefault(str(row.item), []).append(float(row.value))
    return {
        method: {story: sum(some) / len(some) for story, some in of.items()} for method, of in ratings.items()
    }


def _release(evaluated: Evaluated) -> Release:
    """Return the release that was judged: the given one, or where the evaluation found it."""
    sources = sources_of(evaluated.folder, evaluated.archive.manifest)
    remembered = next((path for role, path in sources if role == "release"), None)
    folder = evaluated.source or remembered
    if folder is None:
        raise ConfigError(
            "--release", what="the archive does not say which release was judged",
            fix="give its folder with --release",
        )  # fmt: skip
    check_hash(evaluated.archive, "release", release_sha256(folder), str(folder))
    return load(folder)


@dataclass(frozen=True)
class _Asked:
    """What people and judges were asked about, and said."""

    rows: tuple[HumanRow, ...]
    known: Known
    judges: Mapping[str, Judged]
    settings: StudySettings

    def about(self, method: str) -> dict[str, Any]:
        rows, resampling = self.rows, self.settings.resampling
        asked = {
            str(row.item)
            for row in rows
            if row.kind == "answer" and row.method in (method, None) and row.condition is not None
        }
        valid, used = self._valid(method)
        chosen = asked if valid is None else asked & valid
        recovery = human_recovery(rows, self.known.questions, method, chosen, resampling)
        return {
            "valid_set": used,
            "questions_asked": len(asked),
            "questions_valid": len(chosen),
            **as_plain(recovery),
            "moral": {
                condition: as_plain(human_moral(rows, self.known.morals, condition, method, resampling))
                for condition in CONDITIONS
            },
            "ratings": as_plain(human_ratings(rows, method, resampling)),
        }

    def _valid(self, method: str) -> tuple[set[str] | None, str]:
        """Return the questions that are valid for a method, None for all, and the definition used."""
        if self.settings.valid == "people":
            rows = lines_under(self.rows, "answer", "text_image", method)
            if right := majorities(rows, self.known.questions):
                return {str(item) for (item,), yes in right.items() if yes}, "people"
        if self.settings.valid == "judges":
            together = self.judges.get(ENSEMBLE) or next(iter(self.judges.values()), Judged())
            shown_both = [unit for unit in together.right if unit[0] == "text_image" and unit[1] == method]
            if shown_both:
                return {str(unit[3]) for unit in shown_both if together.right[unit]}, "judges"
        return None, "all"

    def followed(self) -> dict[str, Any]:
        """Return judge -> how it follows people's answers, moral labels and preferences."""
        resampling = self.settings.resampling
        parts: dict[str, Any] = {name: {"answers": {}, "moral_label": {}} for name in self.judges}
        for condition in CONDITIONS:
            answers = lines_of(self.rows, "answer", condition=condition)
            labels = lines_of(self.rows, "moral_label", condition=condition)
            compared = against(answers, self.known.questions, self.judges, self.settings.levels, resampling)
            for name, judge in self.judges.items():
                if answers:
                    parts[name]["answers"][condition] = as_plain(compared[name])
                if labels:
                    agreement = label_agreement(labels, judge, resampling)
                    parts[name]["moral_label"][condition] = as_plain(agreement)
        for name, judge in self.judges.items():
            preferred = preference_agreement(self.rows, self.known.questions, judge)
            parts[name]["preferences"] = as_plain(preferred)
        return parts


def method_lines(method: str, about: Json) -> Iterator[str]:
    """Return what people recovered from a method's storyboards, and how they rated them, as lines."""
    valid = f"{about['questions_valid']} of {about['questions_asked']} questions valid"
    yield from ("", f"{method}: {valid} (valid set: {about['valid_set']})")
    for condition, scores in about["recoverability"].items():
        yield f"  recoverability, {condition}: {percent_text(scores['overall'])}"
    yield f"  STG: {percent_text(about['stg']['overall'])}"
    for dimension, score in about["stg"].items():
        if dimension != "overall":
            yield f"    {dimension}: {percent_text(score)}"
    for condition, scores in about["moral"].items():
        for name, score in scores.items():
            if score["value"] is not None:
                yield f"  {name}, {condition}: {percent_text(score)}"
    yield from rating_lines(about)


def result_lines(document: Json) -> Iterator[str]:
    """Return how judges follow people, and the weights that were fitted, as lines."""
    for judge, parts in document["judges"].items():
        yield from ("", f"{judge} against people")
        for condition, compared in parts["answers"].items():
            yield from _answer_lines(condition, compared)
        for condition, score in parts["moral_label"].items():
            yield f"  moral label, {condition}: agreement {percent_text(score)}"
        for criterion, score in parts["preferences"].items():
            pairs = score["counts"]["pairs"]
            yield f"  preference, {criterion}: agreement {percent_text(score)} of {pairs} pairs"
    if document["weights"]:
        yield from ("", f"weights fitted on the split {document['weights']['split']}")
        for judge, weight in document["weights"]["weights"].items():
            yield f"  {judge}: {weight:.4f}"


def _answer_lines(condition: str, compared: Json) -> Iterator[str]:
    values = compared["values"]
    yield f"  {condition}: agreement {percent_text(values['agreement'])}"
    accepted, rejected = (percent_text(compared[name]) for name in ("false_acceptance", "false_rejection"))
    yield f"    false acceptance {accepted}, false rejection {rejected}"
    yield f"    calibration error {score_text(values['calibration_error'])}"
    kendall = number_text(compared["kendall"]["value"])
    yield f"    Spearman {score_text(values['spearman'])}, Kendall {kendall}"
    yield f"    mean absolute difference {score_text(values['mean_absolute_difference'])}"
    pairs = compared["pairs"].replace("_", " ")
    yield f"    pairwise agreement ({pairs}) {percent_text(values['pairwise_agreement'])}"
    if compared["silent"]:
        yield f"    {compared['silent']} left out, as the judge gave no answer"
    if compared["not_judged"]:
        yield f"    {compared['not_judged']} things that people answered were not judged"


def followed(document: Json) -> Iterator[Followed]:
    """Yield how each judge agrees with people's answers, and they with each other."""
    between = [agreed for agreed in document["agreement"] if agreed["what"].startswith("answer")]
    shares = [agreed["pairs"]["value"] for agreed in between]
    known = [share for share in shares if share is not None]
    for judge, parts in document["judges"].items():
        for condition, compared in parts["answers"].items():
            agreement = compared["values"]["agreement"]
            what = f"{judge}, answers from {condition.replace('_', ' and ')}"
            people = sum(known) / len(known) if known else None
            yield Followed(what, agreement["value"], int(agreement["denominator"] or 0), people=people)


STUDY = Study(compare_storyboards, method_lines, result_lines, followed)
