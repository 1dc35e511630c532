"""A study of what people said, whatever they were shown: settings, who counts, and what every kind has.

What was not answered with care is left out; every exclusion is counted and named, never silent.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InputError
from ..evaluation.archive.archive import Archive
from ..evaluation.recoverability.matching import NONRESPONSES, Nonresponse
from ..evaluation.report.people import people_warnings
from ..schemas.canonical import pretty_bytes, write_atomic, writing
from ..schemas.judgement import HumanRow
from ..schemas.katha import Question
from ..schemas.text import tallied, tallies
from ..schemas.values import Own
from .against import LEVELS
from .ratings import agreements
from .recoverability import Resampling

Json = Mapping[str, Any]
VALID = ("people", "judges", "all")
LEAST_RATERS = 3


@dataclass(frozen=True)
class Exclusion:
    """What is left out (KathaTrace, section F.1, names the three reasons and no thresholds).

    Attributes:
        attention_failures: most attention checks that a person may fail; with more, all their lines go.
        min_seconds: leave out lines that were answered faster [none].
        min_consistency: least share of repeated controls answered as before; below it, all lines of the
            person go [none].
    """

    attention_failures: int = 0
    min_seconds: float | None = None
    min_consistency: float | None = None


@dataclass(frozen=True)
class StudySettings:
    """How a study is evaluated; all of it is told in the result."""

    exclusion: Exclusion = field(default_factory=Exclusion)  # what is left out for carelessness
    resampling: Resampling = field(default_factory=Resampling)  # how participants are drawn for intervals
    # level of confidence -> the probability that it stands for
    levels: Mapping[str, float] = field(default_factory=lambda: dict(LEVELS))
    # whose text+image answers make a question valid for a method: those of ``people`` (their majority is
    # right; where nobody was shown both for the method, all questions count), of the ``judges`` together, or
    # nobody's: ``all`` count
    valid: str = "people"
    least_raters: int = LEAST_RATERS  # people that every item should have; those with fewer are listed
    # what a judge without an answer counts as, as in ``fabula score``: ``incorrect`` (of videos: a rate of
    # zero) or ``excluded``; None for the default of the protocol, which is ``excluded`` for storyboards and
    # ``incorrect`` for videos, as in its paper
    nonresponse: Nonresponse | None = None
    # split whose answers the judges' weights are fitted on; None: none are fitted
    fit_split: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("valid", VALID), ("nonresponse", tuple(NONRESPONSES))):
            value = getattr(self, name)
            if value not in allowed and (name, value) != ("nonresponse", None):
                expected = " or ".join(allowed)
                raise ConfigError(name, expected=expected, found=str(value), fix="choose one of them")


@dataclass(frozen=True)
class Evaluated:
    """An evaluation, and the file of what people said about it."""

    archive: Archive  # what judges said
    folder: Path  # the evaluation folder
    human: Path  # people's answers, ``.jsonl`` or ``.csv``
    # the release or suite that was judged with; None: where the evaluation found it
    source: Path | None = None
    key: Path | None = None  # the key of anonymised tasks, if the answers name tasks
    # named definitions of how it is scored, as ``cids=code``; none for the defaults
    define: tuple[str, ...] = ()


@dataclass(frozen=True)
class Followed:
    """How one judge or score follows people, in the number that a conclusion is drawn from."""

    what: str  # who follows, in what, such as "gpt-4o, answers from text and pictures"
    value: float | None  # share of the things on which both agree, or a rank correlation
    n: int  # how many things that is over
    ranks: bool = False  # whether it is a correlation
    people: float | None = None  # the same between people, where it is known

    def line(self) -> str:
        """Return what to conclude, in a sentence."""
        if self.value is None or self.n < (LEAST_RANKED if self.ranks else LEAST_AGREED):
            return f"{self.what}: {self.n} are too few to conclude anything; ask people about more"
        if self.ranks:
            ranked = f"rank correlation {self.value:.2f} over {self.n}"
            if self.value >= CLOSE:
                return f"{self.what}: it follows people ({ranked}); its ranks may be read as theirs"
            said = "follows people loosely" if self.value >= LOOSE else "does not follow people"
            return f"{self.what}: it {said} ({ranked}); do not rank by it without people"
        agreed = f"it agrees with people on {self.value:.0%} of {self.n}"
        if self.people is None:
            return f"{self.what}: {agreed}; how far people agree among themselves is not known"
        apart = f"they agree with each other on {self.people:.0%}"
        if self.value >= self.people - MARGIN:
            return f"{self.what}: {agreed}, and {apart}: it may stand in for a person here"
        return f"{self.what}: {agreed}, but {apart}: do not let it stand in for people here"


LEAST_AGREED, LEAST_RANKED = 30, 6
"""Things, and ranked things, from which on a conclusion is drawn."""
CLOSE, LOOSE, MARGIN = 0.7, 0.4, 0.05
"""Rank correlations that are close and loose; by so much a judge may agree less than people do."""


@dataclass(frozen=True)
class Study:
    """How evaluations of one kind are compared with what people said."""

    # returns all that people said and how judges or scores compare, as plain JSON
    compare: Callable[[Evaluated, StudySettings], dict[str, Any]]
    # a method and what people said of it -> lines for people
    method_lines: Callable[[str, Json], Iterator[str]]
    # the whole document -> how judges or scores compare, as lines for people
    result_lines: Callable[[Json], Iterator[str]]
    # the whole document -> what its conclusion rests on
    followed: Callable[[Json], Iterator[Followed]]
    # options of ``fabula calibrate`` that it has and not every study
    options: tuple[str, ...] = ("release", "suite", "key", "nonresponse", "confidence", "fit_weights", "save")


@dataclass(frozen=True)
class Kept:
    """What is left of the lines."""

    rows: tuple[HumanRow, ...]  # the lines that count, without attention checks
    people: dict[str, str]  # person -> why all their lines were left out
    fast: int  # how many lines of other people were left out as too fast
    # person -> share of repeated controls answered as before; only people who had some
    consistency: dict[str, float]


def exclude(rows: Sequence[HumanRow], rule: Exclusion) -> Kept:
    """Return the lines that count, and what was left out and why."""
    failed: dict[str, int] = {}
    for row in rows:
        if row.kind == "attention" and row.value == 0:
            failed[row.rater] = failed.get(row.rater, 0) + 1
    consistency = _consistency(rows)
    people = {
        rater: f"attention checks failed: {count}"
        for rater, count in failed.items()
        if count > rule.attention_failures
    }
    if rule.min_consistency is not None:
        for rater, share in consistency.items():
            if share < rule.min_consistency and rater not in people:
                people[rater] = f"answered {share:.0%} of the repeated controls as before"
    careful = [row for row in rows if row.rater not in people and row.kind != "attention"]
    slow = [row for row in careful if not _too_fast(row, rule)]
    return Kept(tuple(slow), dict(sorted(people.items())), len(careful) - len(slow), consistency)


def _too_fast(row: HumanRow, rule: Exclusion) -> bool:
    return rule.min_seconds is not None and row.seconds is not None and row.seconds < rule.min_seconds


def _consistency(rows: Sequence[HumanRow]) -> dict[str, float]:
    """Return person -> share of repetitions that say what the first answer said."""
    first = {row.place(): _said(row) for row in rows if not row.repeat}
    same: dict[str, list[bool]] = {}
    for row in rows:
        before = first.get((*row.place()[:-1], 0))
        if row.repeat and before is not None:
            same.setdefault(row.rater, []).append(before == _said(row))
    return {rater: sum(alike) / len(alike) for rater, alike in sorted(same.items())}


def _said(row: HumanRow) -> tuple[object, ...]:
    return (row.answer, row.labels[:1], row.value, row.completion)


def common_parts(
    kind: str,
    rows: Sequence[HumanRow],
    settings: StudySettings,
    nonresponse: str,
    questions: Mapping[str, Question] | None = None,
) -> tuple[Kept, dict[str, Any]]:
    """Return the lines that count; and, as plain JSON, what studies of all kinds have.

    That is the definitions, who took part, what was left out, what too few people answered, and how far
    people agree. Of all lines of the file it is told how many a program made, and how many were given under
    each protocol of a study.

    ``questions``: question id -> question, where people answered some.
    """
    kept = exclude(rows, settings.exclusion)
    raters: dict[tuple[object, ...], set[str]] = {}
    for row in kept.rows:
        if not row.repeat:
            raters.setdefault(row.place()[1:], set()).add(row.rater)
    thin = [unit[:-1] for unit, who in raters.items() if len(who) < settings.least_raters]
    kinds = sorted({row.kind for row in kept.rows})
    return kept, {
        "kind": kind,
        "definitions": {
            "exclusion": asdict(settings.exclusion),
            "resampling": asdict(settings.resampling),
            "confidence": dict(settings.levels),
            "valid": settings.valid,
            "least_raters": settings.least_raters,
            "matching": "accepted",
            "ties": "left out",
            "nonresponse": nonresponse,
        },
        "people": {
            "raters": len({row.rater for row in kept.rows}),
            "lines": {kind: sum(row.kind == kind for row in kept.rows) for kind in kinds},
            "lines_read": len(rows),
            "simulated": sum(row.simulated for row in rows),
            "protocols": _protocols(rows),
            "excluded_raters": kept.people,
            "excluded_as_too_fast": kept.fast,
            "consistency": kept.consistency,
            "items": len(raters),
            "items_with_too_few_raters": sorted(
                ", ".join(str(part) for part in unit if part is not None) for unit in thin
            ),
        },
        "agreement": as_plain(agreements(kept.rows, questions or {})),
    }


def _protocols(rows: Sequence[HumanRow]) -> dict[str, int]:
    """Return SHA-256 of a study's protocol -> the lines that were given under it; lines may name none."""
    counts: dict[str, int] = {}
    for row in rows:
        if row.protocol is not None:
            counts[row.protocol] = counts.get(row.protocol, 0) + 1
    return dict(sorted(counts.items()))


def as_plain(value: object) -> Any:  # noqa: ANN401 - a JSON value
    """Return results, with what they hold, as plain JSON; numbers that are undefined become null."""
    if isinstance(value, Own):
        return value.as_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: as_plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [as_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def score_text(score: Json) -> str:
    """Return a score with its interval, or why there is none."""
    if score["value"] is None:
        return f"- ({score['reason']})"
    return f"{score['value']:.3f}{_interval(score, 1, 3)}"


def percent_text(score: Json) -> str:
    """Return a share in per cent with its interval, or why there is none."""
    if score["value"] is None:
        return f"- ({score['reason']})"
    return f"{100 * score['value']:.1f} %{_interval(score, 100, 1)}"


def _interval(score: Json, factor: int, digits: int) -> str:
    if score["low"] is None:
        return ""
    return f" [{factor * score['low']:.{digits}f}, {factor * score['high']:.{digits}f}]"


def number_text(value: float | None) -> str:
    """Return a number with three digits."""
    return "-" if value is None else f"{value:.3f}"


def rating_lines(about: Json) -> Iterator[str]:
    for criterion, rated in about["ratings"].items():
        deviation = f"standard deviation {number_text(rated['deviation'])}"
        yield f"  {criterion}: {score_text(rated['mean'])}, {deviation}"


# -- Calibrating an evaluation with people: the archive and the release or suite, beside a file of answers


@dataclass(frozen=True)
class HumanReport:
    """What people said and how judges compare."""

    document: dict[str, Any] = field(repr=False)  # all of it, as plain JSON
    study: Study = field(repr=False)  # how it was compared

    def as_json(self) -> dict[str, Any]:
        return self.document

    def lines(self) -> Iterator[str]:
        yield from (f"warning: {warning}" for warning in people_warnings(self.document["people"]))
        yield from _people_lines(self.document["people"])
        for method, about in self.document.get("methods", {}).items():
            yield from self.study.method_lines(method, about)
        yield from _rater_lines(self.document)
        yield from self.study.result_lines(self.document)
        conclusions = list(self.study.followed(self.document))
        yield from ("", "what to conclude") if conclusions else ()
        yield from (f"  {followed.line()}" for followed in conclusions)


def calibrate(evaluated: Evaluated, study: Study, settings: StudySettings | None = None) -> HumanReport:
    """Compare an evaluation with what people said.

    ``settings``: definitions; None for the defaults.
    """
    return HumanReport(study.compare(evaluated, settings or StudySettings()), study)


def write_weights(report: HumanReport, path: Path) -> None:
    """Write the fitted weights as ``fabula score --weights`` reads them."""
    fitted = report.document.get("weights")
    if not fitted or not any(fitted["weights"].values()):
        raise InputError.one(
            "--fit-weights", what="nobody answered a judged question of the validation split",
            fix="ask people about stories of that split, or leave the option out",
        )  # fmt: skip
    with writing(path, "choose another place", what="the file"):
        write_atomic(path, [pretty_bytes(fitted)])


def _people_lines(people: Json) -> Iterator[str]:
    lines = tallies(people["lines"])
    yield f"{people['raters']} {'person' if people['raters'] == 1 else 'people'}: {lines}"
    for rater, why in people["excluded_raters"].items():
        yield f"  left out: {rater}, {why}"
    if people["excluded_as_too_fast"]:
        yield f"  left out: {tallied(people['excluded_as_too_fast'], 'answers')}, too fast"
    thin = people["items_with_too_few_raters"]
    if thin:
        yield f"  too few people: {len(thin)} of {people['items']} items, such as {thin[0]}"


def _rater_lines(document: Json) -> Iterator[str]:
    """Return what people preferred, and how far they agree."""
    if document.get("preferences"):
        yield from ("", "preferences, -2 to 2 (one-sided Wilcoxon, Bonferroni)")
    for preferred in document.get("preferences", ()):
        exact = "exact" if preferred["test"]["exact"] else "approximate"
        yield (
            f"  {preferred['method']} over {preferred['baseline']}, {preferred['criterion']}:"
            f" {score_text(preferred['mean'])}"
            f"  p = {preferred['test']['p_value']:.4g} ({exact}), corrected {preferred['p_corrected']:.4g},"
            f" by person {preferred['p_corrected_by_person']:.4g},"
            f" r = {number_text(preferred['rank_biserial'])}"
        )
    if document["agreement"]:
        yield from ("", "agreement between people")
    for agreed in document["agreement"]:
        kappa = "" if agreed["kappa"] is None else f"  Fleiss' kappa {score_text(agreed['kappa'])}"
        alpha = f"Krippendorff's alpha ({agreed['level']}) {score_text(agreed['alpha'])}"
        yield f"  {agreed['what']}: {percent_text(agreed['pairs'])} of pairs agree{kappa}  {alpha}"
