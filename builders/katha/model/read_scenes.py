"""Reading the replies that divide a story into scenes and describe them (Table 7)."""

from collections.abc import Sequence
from itertools import pairwise

from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer
from ....validators.scene_rules import without_article
from ....validators.view import mentions
from ...replies import Problems, by_number, check_count, listed, needed, optional
from ..rules.analysis import Analysis


def read_division(reply: Json, story: Json, analysis: Json, count: int) -> list[Json]:
    """Return the scenes that a reply to ``katha/draft_scenes`` makes of a story.

    Their texts are spans of the story that hold all of it but white space, whatever the reply says.

    Raises:
        BadReply: not as many scenes as asked for, first segments that do not rise from 1 within the story, or
            a description that :func:`read_descriptions` would not take.
    """
    entries, segments = reply["scenes"], Analysis.from_json(analysis).segments
    check_count(entries, count, "scenes")
    firsts = [entry["first_segment"] for entry in entries]
    problems = Problems()
    if firsts[0] != 1:
        problems.add(f"scene 1 must have first_segment 1, not {firsts[0]}")
    for number, (before, first) in enumerate(pairwise(firsts), start=2):
        if not before < first <= len(segments):
            problems.add(
                f"scene {number}: first_segment must be greater than {before}, that of the scene before, and"
                f" at most {len(segments)}; found {first}"
            )
    problems.settle()
    stops = [*firsts[1:], len(segments) + 1]
    text = story["normalized_text"]
    texts = [
        text[segments[first - 1].start : segments[stop - 2].end]
        for first, stop in zip(firsts, stops, strict=True)
    ]
    return _scenes(entries, story, texts)


def read_descriptions(reply: Json, story: Json, texts: Sequence[str]) -> list[Json]:
    """Return the scenes with given texts, as a reply to ``katha/describe_scenes`` describes them.

    Raises:
        BadReply: a scene is missing or none of the story's, a needed field says nothing, a character is
            named that the story does not name, or the values are not in the story's script.
    """
    numbers = list(range(1, len(texts) + 1))
    return _scenes(by_number(reply["scenes"], "scene", numbers, "scenes"), story, texts)


def _scenes(entries: Sequence[Json], story: Json, texts: Sequence[str]) -> list[Json]:
    problems = Problems()
    scenes = [
        _scene(entry, story, (number, text), problems)
        for number, (entry, text) in enumerate(zip(entries, texts, strict=True), start=1)
    ]
    _check_characters(scenes, story, problems)
    problems.check_script(story, [[scene["action"], scene["state"], scene["emotion"]] for scene in scenes])
    problems.settle()
    return [with_prompt(scene, story, len(scenes)) for scene in scenes]


def _check_characters(scenes: Sequence[Json], story: Json, problems: Problems) -> None:
    text = normalize_answer(story["normalized_text"])
    for number, scene in enumerate(scenes, start=1):
        strange = [name for name in scene["characters"] if not mentions(text, without_article(name))]
        if strange:
            problems.add(
                f"scene {number}: the story does not name {', '.join(map(repr, strange))}; copy the names of"
                " characters letter for letter from the story, in a form that stands there"
            )


def _scene(entry: Json, story: Json, place: tuple[int, str], problems: Problems) -> Json:
    number, text = place
    where = f"scene {number}"
    must_show = listed(entry, "visual_must_show", where, problems)
    if not must_show:
        problems.add(
            f"{where}: visual_must_show is empty; name two to five things that the picture must show"
        )
    return {
        "story_id": story["id"],
        "scene_index": number,
        "scene_text": text,
        "characters": listed(entry, "characters", where, problems),
        "objects": listed(entry, "objects", where, problems),
        "action": needed(entry, "action", where, problems),
        "state": needed(entry, "state", where, problems),
        "emotion": optional(entry, "emotion", where, problems),
        "visual_evidence": optional(entry, "visual_evidence", where, problems),
        "visual_must_show": must_show,
    }


def with_prompt(scene: Json, story: Json, total: int) -> Json:
    """Return a scene with the prompt for its picture, which follows from the other fields."""
    names = ("characters", "objects", "action", "emotion")
    prompt = load_prompt("scene_image").render(
        index=scene["scene_index"],
        total=total,
        title=story["title"],
        text=scene["scene_text"],
        **{name: scene[name] for name in names},
    )
    return {**scene, "generation_prompt": prompt}
