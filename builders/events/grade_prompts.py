"""Stage: what judged videos say about the prompts: which go, and how hard the others are."""

import json
from collections.abc import Iterable, Mapping

from ...engine.stage import Item, StageSpec, Tools
from ...schemas.canonical import Json
from .grading import grade
from .settings import GradeSettings

SPEC = StageSpec(
    name="grade_prompts",
    version=1,
    shape="gather",
    reads=("choice", "results", "unit"),
    writes=("grade",),
    settings=GradeSettings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt its difficulty, or code and reason why it goes; null without results.

    Raises:
        ConfigError: no method is good enough, or fewer prompts stay than are to be easy and hard.
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
    found = grade([unit for unit, _ in chosen], document["rates"], settings, document["people"])
    for unit, name in chosen:
        if unit in found.dropped:
            code, reason = found.dropped[unit]
            grades[name] = {"code": code, "reason": reason}
        else:
            grades[name] = {"level": found.levels[unit]}
    return {name: {"grade": one} for name, one in grades.items()}
