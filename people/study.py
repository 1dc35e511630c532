"""A study of people's answers about storyboards, beside the judges of an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import ConfigError
from ..evaluation.recoverability.definitions import NONRESPONSES, Definitions, Nonresponse
from ..schemas.human import HumanRow
from ..schemas.judgement import Judgement
from ..schemas.katha import Question, StoryRecord
from .against import LEVELS, against
from .answers import CONDITIONS, majorities
from .choices import label_agreement, preference_agreement
from .consistency import agreements
from .exclude import Exclusion, Kept, exclude
from .judged import ENSEMBLE, Judged, judged
from .moral import human_moral
from .plain import as_plain
from .preference import preferences
from .ratings import human_ratings
from .recovery import human_recovery
from .resample import Resampling
from .weights import fitted_weights

VALID = ("people", "judges", "all")
LEAST_RATERS = 3
DEFAULTS = Definitions()


@dataclass(frozen=True)
class StudySettings:
    """How a study is evaluated; all of it is told in the result.

    Attributes:
        exclusion: what is left out for carelessness.
        resampling: how participants are drawn for intervals.
        levels: level of confidence -> the probability that it stands for.
        valid: whose text+image answers make a question valid for a method: those of ``people`` (their
            majority is right; where nobody was shown both for the method, all questions count), of the
            ``judges`` together, or nobody's: ``all`` count.
        least_raters: people that every item should have; those with fewer are listed.
        nonresponse: what a judge without an answer counts as, as in ``fabula score``: ``incorrect`` (of
            videos: a rate of zero) or ``excluded``; None for the default of the protocol, which is
            ``excluded`` for storyboards and ``incorrect`` for videos, as in its paper.
        fit_split: split whose answers the judges' weights are fitted on; None: none are fitted.
    """

    exclusion: Exclusion = field(default_factory=Exclusion)
    resampling: Resampling = field(default_factory=Resampling)
    levels: Mapping[str, float] = field(default_factory=lambda: dict(LEVELS))
    valid: str = "people"
    least_raters: int = LEAST_RATERS
    nonresponse: Nonresponse | None = None
    fit_split: str | None = None

    def __post_init__(self) -> None:
        if self.valid not in VALID:
            raise ConfigError(
                "valid", expected=" or ".join(VALID), found=self.valid, fix="choose one of them"
            )
        if self.nonresponse not in (None, *NONRESPONSES):
            raise ConfigError(
                "nonresponse", expected=" or ".join(NONRESPONSES), found=str(self.nonresponse),
                fix="choose one of them",
            )  # fmt: skip


def study_storyboards(
    rows: Sequence[HumanRow],
    records: Sequence[StoryRecord],
    judgements: Sequence[Judgement],
    settings: StudySettings,
) -> dict[str, Any]:
    """Return all that people said about storyboards and how judges compare, as plain JSON.

    Args:
        rows: the lines of a file of answers.
        records: the stories that were asked about.
        judgements: the archive of the evaluation.
        settings: definitions.
    """
    kept = exclude(rows, settings.exclusion)
    questions = {one.question_id: one for record in records for one in record.questions}
    nonresponse = settings.nonresponse or DEFAULTS.nonresponse
    judges = judged(judgements, questions, nonresponse)
    morals = {record.story_id: record.moral_label for record in records}
    methods = sorted({row.method for row in kept.rows if row.method is not None})
    document: dict[str, Any] = {
        "kind": "katha",
        "definitions": definitions(settings, nonresponse),
        "people": people(rows, kept, settings),
        "methods": {
            method: _method(kept.rows, questions, morals, (method, judges), settings) for method in methods
        },
        "preferences": as_plain(preferences(kept.rows, settings.resampling)),
        "agreement": as_plain(agreements(kept.rows, questions)),
        "judges": _judges(kept.rows, questions, judges, settings),
        "weights": None,
    }
    if settings.fit_split is not None:
        split = {record.story_id for record in records if record.split == settings.fit_split}
        fitting = [
            row for row in kept.rows if row.kind == "answer" and questions[str(row.item)].story_id in split
        ]
        document["weights"] = {
            "split": settings.fit_split,
            "weights": fitted_weights(fitting, questions, judges),
        }
    return document


def definitions(settings: StudySettings, nonresponse: str) -> dict[str, Any]:
    """Return the settings as plain JSON, with the definition of no answer that was used."""
    return {
        "exclusion": asdict(settings.exclusion),
        "resampling": asdict(settings.resampling),
        "confidence": dict(settings.levels),
        "valid": settings.valid,
        "least_raters": settings.least_raters,
        "matching": "accepted",
        "ties": "left out",
        "nonresponse": nonresponse,
    }


def people(rows: Sequence[HumanRow], kept: Kept, settings: StudySettings) -> dict[str, Any]:
    """Return who took part, what was left out, and what too few people answered."""
    raters: dict[tuple[object, ...], set[str]] = {}
    for row in kept.rows:
        if not row.repeat:
            raters.setdefault(row.place()[1:], set()).add(row.rater)
    thin = [unit for unit, found in raters.items() if len(found) < settings.least_raters]
    kinds = sorted({row.kind for row in kept.rows})
    return {
        "raters": len({row.rater for row in kept.rows}),
        "lines": {kind: sum(row.kind == kind for row in kept.rows) for kind in kinds},
        "lines_read": len(rows),
        "excluded_raters": kept.people,
        "excluded_as_too_fast": kept.fast,
        "consistency": kept.consistency,
        "items": len(raters),
        "items_with_too_few_raters": sorted(_named(unit) for unit in thin),
    }


def _named(unit: tuple[object, ...]) -> str:
    """Return kind, item and what was shown, for people."""
    return ", ".join(str(part) for part in unit[:-1] if part is not None)


def _method(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    morals: Mapping[str, str | None],
    shown_by: tuple[str, Mapping[str, Judged]],
    settings: StudySettings,
) -> dict[str, Any]:
    method, judges = shown_by
    resampling = settings.resampling
    asked = {
        str(row.item)
        for row in rows
        if row.kind == "answer" and row.method in (method, None) and row.condition is not None
    }
    valid, used = _valid(rows, questions, method, judges, settings.valid)
    chosen = asked if valid is None else asked & valid
    recovery = human_recovery(rows, questions, method, chosen, resampling)
    return {
        "valid_set": used,
        "questions_asked": len(asked),
        "questions_valid": len(chosen),
        **as_plain(recovery),
        "moral": {
            condition: as_plain(human_moral(rows, morals, condition, method, resampling))
            for condition in CONDITIONS
        },
        "ratings": as_plain(human_ratings(rows, method, resampling)),
    }


def _valid(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    method: str,
    judges: Mapping[str, Judged],
    wanted: str,
) -> tuple[set[str] | None, str]:
    """Return the questions that are valid for a method, None for all, and the definition that was used."""
    if wanted == "people":
        found = majorities(rows, questions, "text_image", method)
        if found:
            return {item for item, right in found.items() if right}, "people"
    if wanted == "judges":
        together = judges.get(ENSEMBLE) or next(iter(judges.values()), Judged())
        shown_both = [unit for unit in together.right if unit[0] == "text_image" and unit[1] == method]
        if shown_both:
            return {str(unit[3]) for unit in shown_both if together.right[unit]}, "judges"
    return None, "all"


def _judges(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    judges: Mapping[str, Judged],
    settings: StudySettings,
) -> dict[str, Any]:
    found: dict[str, Any] = {name: {"answers": {}, "moral_label": {}} for name in judges}
    for condition in CONDITIONS:
        told = [row for row in rows if row.condition == condition and not row.repeat]
        answers = [row for row in told if row.kind == "answer"]
        labels = [row for row in told if row.kind == "moral_label"]
        if answers:
            compared = against(answers, questions, judges, settings.levels, settings.resampling)
            for name, one in compared.items():
                found[name]["answers"][condition] = as_plain(one)
        for name, judge in judges.items():
            if labels:
                agreement = label_agreement(labels, judge, settings.resampling)
                found[name]["moral_label"][condition] = as_plain(agreement)
    for name, judge in judges.items():
        found[name]["preferences"] = as_plain(preference_agreement(rows, questions, judge))
    return found
