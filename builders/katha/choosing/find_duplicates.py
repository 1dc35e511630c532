"""Stage: near-duplicates within and across sources. Of each group one story stays, the others name it.

A story that stayed before goes on to stay when near-duplicates of it are added; among new ones the smallest
id stays. So a story that was published is not pushed out by one that came later.
"""

from collections.abc import Iterable, Mapping

from pydantic import Field

from ....engine.stage import Item, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.values import Own
from ....validators.retellings import DEFAULT_THRESHOLD, near_duplicates


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
    stateful=True,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each story null, or the kept story that it nearly equals and how nearly.

    The stories that stayed before come first, then the others, both in order of ids: a story that nearly
    equals a kept one is a duplicate of the most similar such story.
    """
    settings = tools.own(Settings)
    signatures = {item.id: item["signature"] for item in items}
    stayed = {key for key, fields in tools.previous.items() if fields["duplicate_of"] is None}
    order = sorted(signatures, key=lambda story_id: (story_id not in stayed, story_id))
    near: dict[str, list[tuple[float, str]]] = {}
    # Pairs are found and sorted under ranks: of equal texts only the first is paired with all the others.
    ranked = {f"{rank:09d}": signatures[story_id] for rank, story_id in enumerate(order)}
    for first, second, similarity in near_duplicates(ranked, settings.threshold):
        near.setdefault(order[int(second)], []).append((-similarity, order[int(first)]))
    result: dict[str, Mapping[str, Json]] = {}
    for story_id in order:
        found = [pair for pair in near.get(story_id, ()) if result[pair[1]]["duplicate_of"] is None]
        if found:
            similarity, other = min(found)
            result[story_id] = {"duplicate_of": {"id": other, "similarity": round(-similarity, 4)}}
        else:
            result[story_id] = {"duplicate_of": None}
    return result
