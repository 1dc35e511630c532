"""Stage: divide a drafted story into pages of about as many panels each.

Only what a page shows by itself stays on it: transitions between two of its panels, and questions whose
evidence is all there. What crosses the turn of a page belongs to none.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from fabula.engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from fabula.schemas.values import Own

FEWEST = 3
"""With as many at most, no page is left with a single panel, unless its story has one."""


class Settings(Own):
    """Settings of the stage."""

    panels: int = Field(default=4, ge=FEWEST, le=12, description="Most panels of a page.")


SPEC = StageSpec(
    name="lay_out_pages",
    version=1,
    shape="map",
    reads=("story", "scenes", "transitions", "questions", "scenes_by", "transitions_by", "questions_by"),
    writes=("pages",),
    reject_codes={"no_question": "no page of the story can answer a question by itself"},
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the pages of a story that have a question, as JSON of :class:`.records.ComicPage`."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    story, parts = item["story"], list(divide(len(item["scenes"]), settings.panels))
    pages = []
    for number, (first, last) in enumerate(parts, 1):
        page_id = f"{story['id']}_p{number:02d}"
        panels = [_on(page_id, panel, first) for panel in item["scenes"][first - 1 : last]]
        questions = [_question(page_id, one, first) for one in item["questions"] if _fits(one, first, last)]
        if not questions:
            continue
        pages.append(
            {
                "page_id": page_id,
                "story_id": story["id"],
                "page_number": number,
                "title": story["title"],
                "language": story["language"],
                "text": " ".join(panel["scene_text"] for panel in panels),
                "source_collection": story["source_collection"],
                "rights_status": story["rights_status"],
                "panels": panels,
                "transitions": [
                    _between(page_id, one, first)
                    for one in item["transitions"]
                    if first <= one["from_scene"] and one["to_scene"] <= last
                ],
                "questions": questions,
                "producers": {
                    part: item[f"{name}_by"] or "author"
                    for part, name in (("panels", "scenes"), ("transitions",) * 2, ("questions",) * 2)
                },
            }
        )
    return Made({"pages": pages}) if pages else Rejected("no_question", f"{len(parts)} pages were tried")


def divide(panels: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last panel of each page: as few pages as can be, with as even numbers as can be."""
    count = -(-panels // most)
    for page in range(count):
        yield page * panels // count + 1, (page + 1) * panels // count


def _on(page_id: str, panel: dict[str, Any], first: int) -> dict[str, Any]:
    return {**panel, "story_id": page_id, "scene_index": panel["scene_index"] - first + 1}


def _between(page_id: str, one: dict[str, Any], first: int) -> dict[str, Any]:
    places = {name: one[name] - first + 1 for name in ("from_scene", "to_scene")}
    return {**one, "story_id": page_id, "moral_target": None, **places}


def _fits(question: dict[str, Any], first: int, last: int) -> bool:
    """Whether a page shows all that a question is about; its moral is that of the whole story."""
    named: Sequence[int] = (
        *question["evidence_scenes"],
        *(question["target_transition"] or ()),
        *([] if question["target_scene"] is None else [question["target_scene"]]),
    )
    return question["question_type"] != "moral" and all(first <= number <= last for number in named)


def _question(page_id: str, question: dict[str, Any], first: int) -> dict[str, Any]:
    pair, target = question["target_transition"], question["target_scene"]
    return {
        **question,
        "question_id": f"{page_id}_{question['question_id'].rpartition('_')[2]}",
        "story_id": page_id,
        "target_scene": None if target is None else target - first + 1,
        "target_transition": None if pair is None else [number - first + 1 for number in pair],
        "evidence_scenes": [number - first + 1 for number in question["evidence_scenes"]],
    }
