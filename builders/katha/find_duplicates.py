"""Stage: near-duplicates within and across sources. Of each group one story stays, the others name it."""

from collections.abc import Iterable, Mapping

from pydantic import Field

from ...engine.stage import Item, StageSpec, Tools
from ...schemas.base import Own
from ...schemas.canonical import Json
from ...validators.similarity import DEFAULT_THRESHOLD, near_duplicates


class Settings(Own):
    """Settings of the stage."""

    threshold: float = Field(
        default=DEFAULT_THRESHOLD, gt=0, le=1, description="Estimated Jaccard similarity."
    )


SPEC = StageSpec(
    name="find_duplicates",
    version=1,
    shape="gather",
    reads=("signature",),
    writes=("duplicate_of",),
    libraries=("datasketch",),
    settings=Settings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each story null, or the kept story that it nearly equals and how nearly.

    In order of ids: a story that nearly equals a kept one is a duplicate of the most similar such story.
    """
    settings = tools.settings
    assert isinstance(settings, Settings)
    signatures = {item.id: item["signature"] for item in items}
    near: dict[str, list[tuple[float, str]]] = {}
    for first, second, similarity in near_duplicates(signatures, settings.threshold):
        near.setdefault(max(first, second), []).append((similarity, min(first, second)))
    kept: set[str] = set()
    result: dict[str, Mapping[str, Json]] = {}
    for story_id in sorted(signatures):
        found = [(-similarity, other) for similarity, other in near.get(story_id, ()) if other in kept]
        if found:
            similarity, other = min(found)
            result[story_id] = {"duplicate_of": {"id": other, "similarity": round(-similarity, 4)}}
        else:
            kept.add(story_id)
            result[story_id] = {"duplicate_of": None}
    return result
