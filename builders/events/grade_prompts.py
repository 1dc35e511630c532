"""Stage: what judged videos say about the prompts: which go, and how hard the others are.

The filters that need results, and the labels easy, medium and hard (StoryEval, sections 2.1.2, 2.1.3 and
6.1), from completion rates in ``results.json`` of the run folder.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.stage import Item, StageSpec, Tools
from ...errors import ConfigError, InputError, TargetError
from ...media.kept_files import kept_bytes
from ...schemas.canonical import Json, pretty_bytes, write_atomic
from ...schemas.events import DIFFICULTIES
from ...schemas.plain_files import read_json, reason_of
from .settings import SILENT, GradeSettings

RESULTS = "results.json"
"""File of a run folder; a build takes it in where it is there."""
MOST_BYTES = 200_000_000
_AGAIN = "build into a new folder"


Rates = Mapping[str, Mapping[str, float | None]]
"""Method -> file name -> completion rate; null where there is no answer."""


def write_results(folder: Path, rates: Rates, people: Rates | None = None) -> Path:
    """Put completion rates into the folder of a suite's run, in place of those that are there.

    ``rates``: method -> file name -> rate by the judge; null where there is no answer.
    """
    if not rates:
        raise ConfigError(
            "--results",
            what="the evaluation has no completion rate of any method",
            fix="judge the videos of at least one method",
        )
    path = folder / RESULTS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [pretty_bytes({"rates": _plain(rates), "people": _plain(people or {})})])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error}", fix="choose another --out"
        ) from error
    return path


def read_results(path: Path) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return ``rates`` and ``people``, each as method -> file name -> rate."""
    try:
        document = read_json(path, MOST_BYTES, follow=True)
        results = {name: _checked(document[name]) for name in ("rates", "people")}
        if not results["rates"] or set(document) != set(results):
            raise ValueError("not rates and people")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError.one(
            str(path),
            what="this is not a file of rates (method -> file name -> rate): "
            f"{type(error).__name__}: {reason_of(error)[:200]}",
            fix="remove the file, or write it again with --results",
        ) from error
    return results


def _checked(methods: Json) -> dict[str, dict[str, float | None]]:
    for units in methods.values():
        for rate in units.values():
            if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
                raise ValueError(f"the rate {rate!r}")
    return {str(method): dict(units) for method, units in methods.items()}


def _plain(rates: Rates) -> dict[str, Mapping[str, float | None]]:
    return {method: dict(sorted(units.items())) for method, units in sorted(rates.items())}


@dataclass(frozen=True)
class Graded:
    """What results say about the prompts of a suite."""

    levels: Mapping[str, str]  # file name -> ``easy``, ``medium`` or ``hard``, of the prompts that stay
    dropped: Mapping[str, tuple[str, str]]  # file name -> code and reason why the prompt goes
    methods: tuple[str, ...]  # the methods that the difficulty is from
    means: Mapping[str, float]  # file name -> mean rate over these methods


def grade(units: Sequence[str], rates: Rates, how: GradeSettings, people: Rates | None = None) -> Graded:
    """Return which prompts filters take out, and the difficulty of the others.

    A prompt's difficulty is its mean rate over the methods above the stated average, no answer counted as
    zero; equal rates are ordered by file name.
    """
    dropped = {**_silent(units, rates, how), **_unlike(units, rates, people or {}, how)}
    kept = [name for name in units if name not in dropped]
    averages = {method: _average(rates_of_method, kept) for method, rates_of_method in rates.items()}
    methods = tuple(sorted(method for method, value in averages.items() if value > how.above))
    if not methods:
        best = max(averages.values(), default=0.0)
        raise ConfigError(
            "grade_prompts.above", expected=f"a method whose average is above {how.above:g}",
            found=f"at most {best:.3f}", fix="judge more methods, or state a lower share",
        )  # fmt: skip
    if how.easy + how.hard > len(kept):
        raise ConfigError(
            "grade_prompts.easy, grade_prompts.hard",
            expected=f"at most {len(kept)} together, as many as prompts stay",
            found=str(how.easy + how.hard),
            fix="state smaller numbers, for example --set grade_prompts.easy=1 --set grade_prompts.hard=1",
        )
    means = {name: sum(rates[method].get(name) or 0.0 for method in methods) / len(methods) for name in kept}
    order = sorted(kept, key=lambda name: (-means[name], name))
    hard = set(order[len(order) - how.hard :])
    levels = {name: "hard" if name in hard else "medium" for name in order} | dict.fromkeys(
        order[: how.easy], "easy"
    )
    return Graded({name: levels[name] for name in kept}, dropped, methods, means)


def labelled(labels: Sequence[str], level: str) -> tuple[str, ...]:
    """Return the classes of a prompt with its difficulty: where one was, else before the number of events."""
    if known := next((label for label in labels if label in DIFFICULTIES), None):
        at = labels.index(known)
        return (*labels[:at], level, *(label for label in labels[at:] if label not in DIFFICULTIES))
    others = [label for label in labels if label not in DIFFICULTIES]
    counts = [label for label in others if label.endswith("_events")]
    return (*(label for label in others if label not in counts), level, *counts)


def _silent(units: Sequence[str], rates: Rates, how: GradeSettings) -> dict[str, tuple[str, str]]:
    if how.silent == "off":
        return {}
    most, dropped = SILENT[how.silent], {}
    for name in units:
        count = sum(own.get(name) is None for method, own in rates.items() if method not in how.exempt)
        if count >= most:
            dropped[name] = ("silent", f"no answer for {count} methods ({how.silent})")
    return dropped


def _unlike(
    units: Sequence[str], rates: Rates, people: Rates, how: GradeSettings
) -> dict[str, tuple[str, str]]:
    if how.max_difference is None:
        return {}
    dropped = {}
    for name in units:
        differences = []
        for method, rates_of_method in people.items():
            rated, judged = rates_of_method.get(name), rates.get(method, {}).get(name)
            if rated is not None and judged is not None:
                differences.append(abs(rated - judged))
        if differences and (mean := sum(differences) / len(differences)) > how.max_difference:
            dropped[name] = ("unlike_people", f"judge and people differ by {mean:.2f}")
    return dropped


def _average(rates: Mapping[str, float | None], kept: Sequence[str]) -> float:
    return sum(rates.get(name) or 0.0 for name in kept) / len(kept) if kept else 0.0


SPEC = StageSpec(
    name="grade_prompts",
    version=2,
    shape="gather",
    reads=("choice", "results", "unit"),
    writes=("grade",),
    settings=GradeSettings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt its difficulty, or code and reason why it goes; null without results."""
    settings = tools.own(GradeSettings)
    rows = [(item.id, item["unit"], item["choice"] is None, item["results"]) for item in items]
    chosen = sorted((unit, name) for name, unit, stays, _ in rows if stays)
    grades: dict[str, Json] = {name: None for name, *_ in rows}
    stored = next((results for *_, results in rows if results), None)
    if stored is None or not chosen:
        return {name: {"grade": level} for name, level in grades.items()}
    assert tools.store is not None
    document = json.loads(kept_bytes(tools.store, stored, fix=_AGAIN))
    units = [unit for unit, _ in chosen]
    check_judged(units, document["rates"])
    graded = grade(units, document["rates"], settings, document["people"])
    for unit, name in chosen:
        if unit in graded.dropped:
            code, reason = graded.dropped[unit]
            grades[name] = {"code": code, "reason": reason}
        else:
            grades[name] = {"level": graded.levels[unit]}
    return {name: {"grade": level} for name, level in grades.items()}


def check_judged(units: Sequence[str], rates: Rates) -> None:
    """Check that each method was judged on each prompt: what nobody looked at is neither silent nor hard."""
    for method, rates_of_method in rates.items():
        if unjudged := [name for name in units if name not in rates_of_method]:
            raise ConfigError(
                "--results", expected=f"{method} to be judged on all {len(units)} prompts",
                found=f"it was not on {len(unjudged)}, such as {unjudged[0]}",
                fix="judge these too, or leave out the method or these prompts; to grade by no results,"
                " remove results.json from the run",
            )  # fmt: skip
