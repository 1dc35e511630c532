"""Stage: one item per record of the draft and of the gold set, with its questions and no answer."""

from collections.abc import Iterator

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...schemas.values import Own
from .records import pair_up, read_records

DRAFT, GOLD = "draft", "gold"
"""Roles of the sources; the sources are files of records."""


class Settings(Own):
    """Settings of the stage; there are none."""


SPEC = StageSpec(
    name="load_questions",
    version=3,
    shape="expand",
    reads=("sources",),
    writes=("role", "story", "scenes", "questions"),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per record that is compared; without gold records, one per draft."""
    roles = [source["role"] for source in item["sources"]]
    records = {role: read_records(path) for role, path in zip(roles, tools.paths, strict=True)}
    shown = pair_up(records[DRAFT], records[GOLD]).pairs if GOLD in records else records[DRAFT]
    for role in records:
        for story_id in sorted(shown):
            record = records[role][story_id].record
            texts = records[role][story_id].texts
            asked = [f"({part['question_type']}) {part['question']}" for part in record["questions"]]
            story = {"id": story_id, "language": record["language"]}
            fields = {"role": role, "story": story, "scenes": texts, "questions": asked}
            yield Child(f"{role}-{story_id}", Made(fields))
