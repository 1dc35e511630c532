"""Stage: which crop of a shot shows which character on stage, for the judges of individual actions.

Scoring matches anew, under its own definition; this is what the judges were shown.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ..metrics.cids import characters_of, cids, shots_of
from .settings import MatchSettings

SPEC = StageSpec(
    name="match_crops",
    version=1,
    shape="map",
    reads=("shots", "boxes", "crops"),
    writes=("matches",),
    libraries=("numpy", "scipy"),
    settings=MatchSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return shot, character and box of every match; a box that is null is the whole picture."""
    settings = tools.own(MatchSettings)
    if settings.whole:
        there = [shot for shot in item["shots"] if shot["file"] is not None]
        triples = [(shot["number"], key, None) for shot in there for key in shot["expected"]]
    elif item["crops"] is None:
        triples = []
    else:
        crops = item["crops"]
        matched = cids(characters_of(crops), shots_of(item["shots"], crops))
        boxes = item["boxes"]["shots"]
        triples = [
            (match.shot, match.character, boxes[str(match.shot)][match.crop])
            for match in matched.matches
            if match.crop is not None
        ]
    rows = [{"shot": shot, "character": key, "box": box} for shot, key, box in triples]
    return Made({"matches": rows})
