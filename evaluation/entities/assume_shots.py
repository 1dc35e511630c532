"""Stage of an estimate: every scheduled entity of a shot that has a video is taken to be seen in it.

It stands for the stages that open videos and look at pictures, so that what judges will be asked at most can
be told at once. What it writes is never judged.
"""

import numpy as np
from pydantic import Field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json, digest
from ...schemas.values import Own
from ..metrics.vectors import packed


class AssumeSettings(Own):
    """What is taken to be seen."""

    entities: bool = Field(default=True, description="Whether entities are looked for.")
    actions: bool = Field(default=True, description="Whether grids of actions are drawn.")
    across: bool = Field(default=True, description="Whether appearances are compared across shots.")


SPEC = StageSpec(
    name="assume_shots",
    version=1,
    shape="map",
    reads=("shot",),
    writes=("frames", "quality", "grounded", "vectors", "grid"),
    settings=AssumeSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return what a flawless shot would give, with names of pictures that are not there."""
    settings, shot = tools.own(AssumeSettings), item["shot"]
    code = shot["code"] or (None if shot["video"]["file"] else "missing")
    keys = [entity["key"] for entity in shot["entities"]] if code is None else []
    pictures = {str(index): _file(item.id, index) for index in range(8)} if code is None else {}
    crops = {key: {"status": "present", "canonical": {"file": _file(item.id, key)}} for key in keys}
    seen, compared = settings.entities, settings.across
    drawn = settings.actions and code is None
    return Made(
        {
            "frames": {"invalid": code, "pictures": pictures, "scene": [int(index) for index in pictures]},
            "quality": None,
            "grounded": {"models": {}, "entities": crops} if seen else None,
            "vectors": {
                "model": None,
                "crops": {key: packed(np.ones((1, 1), dtype=np.float32)) for key in keys},
            }
            if compared
            else None,
            "grid": {"file": _file(item.id, "grid"), "legend": _legend(shot)} if drawn else None,
        }
    )


def _legend(shot: Json) -> list[Json]:
    """Return a colour and a name for everybody who would be marked."""
    marked = (entity for entity in shot["entities"] if entity["type"] != "location")
    return [{"key": entity["key"], "name": entity["name"], "color": "orange"} for entity in marked]


def _file(*names: object) -> str:
    return f"{digest([str(name) for name in names])}.png"
