"""Calibrating an evaluation with people: the archive and the release or suite, beside a file of answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, TargetError
from ..evaluation.report.people import people_warnings
from ..schemas.canonical import pretty_bytes, write_atomic
from ..schemas.text import tallied, tallies
from .study import Evaluated, Json, Study, StudySettings, number_text, percent_text, score_text


@dataclass(frozen=True)
class HumanReport:
    """What people said and how judges compare."""

    document: dict[str, Any] = field(repr=False)  # all of it, as plain JSON
    study: Study = field(repr=False)  # how it was compared

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return self.document

    def lines(self) -> Iterator[str]:
        """Return it for people."""
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
    try:
        write_atomic(path, [pretty_bytes(fitted)])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error}", fix="choose another place"
        ) from error


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
