"""The results of a study as lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def told(document: Json) -> Iterator[str]:
    """Return a study's results as lines."""
    yield from _people(document["people"])
    for method, found in document.get("methods", {}).items():
        yield from _ratings(method, found) if document["kind"] == "images" else _method(method, found)
    if document.get("preferences"):
        yield from ("", "preferences, -2 to 2 (one-sided Wilcoxon, Bonferroni)")
    for one in document.get("preferences", ()):
        exact = "exact" if one["test"]["exact"] else "approximate"
        yield (
            f"  {one['method']} over {one['baseline']}, {one['criterion']}: {_score(one['mean'])}"
            f"  p = {one['test']['p_value']:.4g} ({exact}), corrected {one['p_corrected']:.4g},"
            f" by person {one['p_corrected_by_person']:.4g}, r = {_number(one['rank_biserial'])}"
        )
    if document["agreement"]:
        yield from ("", "agreement between people")
    for one in document["agreement"]:
        kappa = "" if one["kappa"] is None else f"  Fleiss' kappa {_score(one['kappa'])}"
        alpha = f"Krippendorff's alpha ({one['level']}) {_score(one['alpha'])}"
        yield f"  {one['what']}: {_percent(one['pairs'])} of pairs agree{kappa}  {alpha}"
    for criterion, found in document.get("scores", {}).items():
        yield from _pictures(criterion, found)
    for judge, found in document["judges"].items():
        yield from ("", f"{judge} against people")
        yield from _classes(found) if document["kind"] == "events" else _judge(found)
    if document.get("weights"):
        yield from ("", f"weights fitted on the split {document['weights']['split']}")
        for judge, weight in document["weights"]["weights"].items():
            yield f"  {judge}: {weight:.4f}"


def _people(found: Json) -> Iterator[str]:
    lines = ", ".join(f"{count} {kind}" for kind, count in found["lines"].items())
    yield f"{found['raters']} {'person' if found['raters'] == 1 else 'people'}: {lines}"
    for rater, why in found["excluded_raters"].items():
        yield f"  left out: {rater}, {why}"
    if found["excluded_as_too_fast"]:
        yield f"  left out: {found['excluded_as_too_fast']} answers, too fast"
    thin = found["items_with_too_few_raters"]
    if thin:
        yield f"  too few people: {len(thin)} of {found['items']} items, such as {thin[0]}"


def _method(method: str, found: Json) -> Iterator[str]:
    valid = f"{found['questions_valid']} of {found['questions_asked']} questions valid"
    yield from ("", f"{method}: {valid} (valid set: {found['valid_set']})")
    for condition, scores in found["recoverability"].items():
        yield f"  recoverability, {condition}: {_percent(scores['overall'])}"
    yield f"  STG: {_percent(found['stg']['overall'])}"
    for dimension, score in found["stg"].items():
        if dimension != "overall":
            yield f"    {dimension}: {_percent(score)}"
    for condition, scores in found["moral"].items():
        for name, score in scores.items():
            if score["value"] is not None:
                yield f"  {name}, {condition}: {_percent(score)}"
    yield from _criteria(found)


def _ratings(method: str, found: Json) -> Iterator[str]:
    yield from ("", method)
    yield from _criteria(found)


def _criteria(found: Json) -> Iterator[str]:
    for criterion, rated in found["ratings"].items():
        yield f"  {criterion}: {_score(rated['mean'])}, standard deviation {_number(rated['deviation'])}"


def _pictures(criterion: str, found: Json) -> Iterator[str]:
    """Tell how scores of shot images go with a criterion that people rated."""
    yield from ("", f"{criterion} against scores (Pearson, Spearman)")
    for scores in found.values():
        for name, one in scores.items():
            parts = [
                f"over {one[over]['pearson']['pairs']} {over}"
                f" {_number(one[over]['pearson']['value'])}, {_number(one[over]['spearman']['value'])}"
                for over in ("stories", "shots", "methods")
                if over in one
            ]
            lost = one.get("without_score", 0)
            yield f"  {name}: {'; '.join(parts)}" + (f"; {lost} rated without a score" if lost else "")


def _judge(found: Json) -> Iterator[str]:
    for condition, compared in found["answers"].items():
        values = compared["values"]
        yield f"  {condition}: agreement {_percent(values['agreement'])}"
        yield f"    calibration error {_score(values['calibration_error'])}"
        yield f"    Spearman {_score(values['spearman'])}, Kendall {_number(compared['kendall']['value'])}"
        yield f"    mean absolute difference {_score(values['mean_absolute_difference'])}"
        pairs = compared["pairs"].replace("_", " ")
        yield f"    pairwise agreement ({pairs}) {_percent(values['pairwise_agreement'])}"
        if compared["silent"]:
            yield f"    {compared['silent']} left out, as the judge gave no answer"
        if compared["not_judged"]:
            yield f"    {compared['not_judged']} things that people answered were not judged"
    for condition, score in found["moral_label"].items():
        yield f"  moral label, {condition}: agreement {_percent(score)}"
    for criterion, score in found["preferences"].items():
        yield f"  preference, {criterion}: agreement {_percent(score)} of {score['counts']['pairs']} pairs"


def _classes(found: Json) -> Iterator[str]:
    counted = {"zero": "count as zero", "excluded": "left out"}[found["nonresponse"]]
    silent = f"{found['not_answered']} without an answer of the judge ({counted})"
    yield f"  {found['videos']} videos that people judged, {silent}"
    if found["not_judged"]:
        yield f"  {found['not_judged']} more that the judge was not asked about"
    for name, one in found["classes"].items():
        both = f"Spearman {_number(one['spearman']['value'])}, Kendall {_number(one['kendall']['value'])}"
        yield f"  {name}: {len(one['models'])} models, {both}, mean difference {_number(one['difference'])}"
    if found["alternatives"]:
        yield "  all prompts, by how votes are combined (mean difference of models; of single videos)"
    for way, one in found["alternatives"].items():
        both = f"Spearman {_number(one['spearman']['value'])}, Kendall {_number(one['kendall']['value'])}"
        apart = f"{_number(one['difference'])}; {_number(one['video_difference'])}"
        yield f"    {way}: {both}, {apart}"


def _score(score: Json) -> str:
    if score["value"] is None:
        return f"- ({score['reason']})"
    return f"{score['value']:.3f}{_interval(score, 1, 3)}"


def _percent(score: Json) -> str:
    if score["value"] is None:
        return f"- ({score['reason']})"
    return f"{100 * score['value']:.1f} %{_interval(score, 100, 1)}"


def _interval(score: Json, factor: int, digits: int) -> str:
    if score["low"] is None:
        return ""
    return f" [{factor * score['low']:.{digits}f}, {factor * score['high']:.{digits}f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
