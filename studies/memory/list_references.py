"""Stage: one item per scheduled entity, with what its reference has to show."""

from collections.abc import Iterator

from pydantic import Field

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...schemas.values import Own, is_unset
from .bank import Made as HowMade
from .references import references_of
from .scripts import Classified, MemoryScript


class ReferenceSettings(Own):
    """How references come about, and which are left as they are."""

    made: HowMade = Field(
        default="generated",
        description="generated before any video, taken from outputs, or words and no picture.",
    )
    kept: tuple[str, ...] = Field(
        default=(), exclude_if=is_unset,
        description="Entities whose pictures a person saw to, as episode/type:name; found out from the bank.",
    )  # fmt: skip

    labels: bool = Field(
        default=True, exclude_if=lambda value: value is True,
        description="Whether names are drawn below portraits.",
    )  # fmt: skip


SPEC = StageSpec(
    name="list_references", version=1, shape="expand", reads=("script", "classified", "style", "outputs"),
    writes=("episode", "reference"), settings=ReferenceSettings,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per entity, named ``<episode>/<type>:<name>``."""
    settings = tools.own(ReferenceSettings)
    script = MemoryScript.model_validate(item["script"])
    classified = [Classified.model_validate(row) for row in item["classified"]]
    episode = {
        "episode_id": script.episode_id, "overview": script.overview, "style": item["style"]["text"],
        "style_by": item["style"]["by"], "unregistered": list(script.unregistered),
        "unscheduled": list(script.unscheduled), "labels": settings.labels,
    }  # fmt: skip
    listed = references_of(script, classified, item["style"]["text"], item["outputs"], settings.made)
    for number, reference in enumerate(listed):
        key = f"{script.episode_id}/{reference.key}"
        kept = reference.model_copy(update={"kept": key in settings.kept})
        yield Child(key, Made({"episode": {**episode, "place": number}, "reference": kept.as_json()}))
