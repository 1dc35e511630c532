"""Stage: what judged videos say about the prompts: which go, and how hard the others are."""

import json
from collections.abc import Iterable, Mapping, Sequence

from ...engine.stage import Item, StageSpec, Tools
from ...errors import ConfigError
from ...schemas.canonical import Json
from .grading import Rates, grade
from .settings import GradeSettings

SPEC = StageSpec(
    name="grade_prompts",
    version=2,
    shape="gather",
    reads=("choice", "results", "unit"),
    writes=("grade",),
    settings=GradeSettings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt its difficulty, or code and reason why it goes; null without results.

    Raises:
        ConfigError: a method was not judged on a prompt, none is good enough, or fewer prompts stay than are
            to be easy and hard.
    """
    settings = tools.settings
    assert isinstance(settings, GradeSettings)
    rows = [(item.id, item["unit"], item["choice"] is None, item["results"]) for item in items]
    chosen = sorted((unit, name) for name, unit, stays, _ in rows if stays)
    grades: dict[str, Json] = {name: None for name, *_ in rows}
    stored = next((results for *_, results in rows if results), None)
    if stored is None or not chosen:
        return {name: {"grade": one} for name, one in grades.items()}
    assert tools.store is not None
    document = json.loads((tools.store / stored).read_bytes())
    units = [unit for unit, _ in chosen]
    check_judged(units, document["rates"])
    found = grade(units, document["rates"], settings, document["people"])
    for unit, name in chosen:
        if unit in found.dropped:
            code, reason = found.dropped[unit]
            grades[name] = {"code": code, "reason": reason}
        else:
            grades[name] = {"level": found.levels[unit]}
    return {name: {"grade": one} for name, one in grades.items()}


def check_judged(units: Sequence[str], rates: Rates) -> None:
    """Check that each method was judged on each prompt: what nobody looked at is neither silent nor hard.

    Raises:
        ConfigError: a method was not judged on some.
    """
    for method, found in rates.items():
        if unjudged := [name for name in units if name not in found]:
            raise ConfigError(
                "--results", expected=f"{method} to be judged on all {len(units)} prompts",
                found=f"it was not on {len(unjudged)}, such as {unjudged[0]}",
                fix="judge these too, or leave out the method or these prompts; to grade by no results,"
                " remove results.json from the run",
            )  # fmt: skip
