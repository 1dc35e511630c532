"""Stage: the picture of each entity: candidates, a choice, a check, and another ground where it fails (C.2).

What went wrong with a picture is an outcome, kept with it, and no failure of the run: an entity that never
passes keeps its best picture, marked as unverified. Only a model that cannot be reached fails the item.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .candidates import DrawSettings
from .judge_pictures import CHOOSE, VERIFY
from .references import Reference
from .rounds import Rounds
from .write_prompts import GROUND

SPEC = StageSpec(
    name="draw_references", version=2, shape="map", reads=("reference", "prompt"), writes=("drawn",),
    libraries=("pillow", "numpy", "scipy"), settings=DrawSettings, prompts=(GROUND,), asks=(CHOOSE, VERIFY),
    patience=10.0,
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return every round of candidates and which picture was taken; null where none is drawn here."""
    reference = Reference.model_validate(item["reference"])
    if item["prompt"] is None or tools.asker is None:
        return Made({"drawn": None})
    return Made({"drawn": await Rounds(reference, item["prompt"]["text"], tools).drawn()})
