"""Stage: divide the story into scenes and describe them (Table 7). Rules divide, and say who is named.

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story that so many scenes cannot tell.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import Field

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ...schemas.katha import Scene
from ...schemas.text import is_unspaced, normalize_answer
from ...validators.katha.scene_rules import without_article
from ...validators.view import mentions
from ..replies import (
    Drafted,
    Problems,
    ask,
    by_number,
    check_count,
    language,
    listed,
    needed,
    optional,
    told_feeling,
)
from ..step import PlannerSettings, Step, Unfit
from ..text import boundaries
from ..text.boundaries import paragraph_starts, scene_spans
from ..text.segments import Analysis, segment_texts, sentence_spans
from ..text.words import word_count
from .drafts import NARRATIVE, Sketch, scene_texts
from .scene_prompts import looks_in, plain_look, prompted, with_prompts


def draft_scene_texts(story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
    """Return the texts of the scenes, or None where the story has fewer clauses than scenes."""
    text: str = story["normalized_text"]
    paragraphs = paragraph_starts(story["text"], text)
    spans = boundaries.divide(text, Analysis.from_json(analysis), count, paragraphs)
    return None if spans is None else tuple(text[start:end] for start, end in spans)


def describe_scenes(story: Json, analysis: Json, texts: Sequence[str]) -> list[Json]:
    """Return the scenes with these texts: who is named in each; all that only a reader can tell is null."""
    casts = scene_casts(story, analysis, texts)
    scenes = [
        {
            "story_id": story["id"], "scene_index": number, "scene_text": text, "characters": cast,
            "objects": [], "action": None, "state": None, "emotion": None, "visual_evidence": None,
            "visual_must_show": [],
        }
        for number, (text, cast) in enumerate(zip(texts, casts, strict=True), start=1)
    ]  # fmt: skip
    return prompted(scenes, story)


def scene_casts(story: Json, analysis: Json, texts: Sequence[str]) -> list[list[str]]:
    """Return who is named in each scene, in the order of their first mentions in the story."""
    spans, read = scene_spans(story["normalized_text"], texts), Analysis.from_json(analysis)
    assert spans is not None, "scenes cover the story"
    later = [start for start, _ in spans[1:]]
    named = [{bisect_right(later, read.segments[at].start) for at in one.at} for one in read.entities]
    return [
        [one.name for one, scenes in zip(read.entities, named, strict=True) if scene in scenes]
        for scene in range(len(texts))
    ]


SCENE_FIELDS = (
    "characters", "objects", "action", "state", "emotion", "visual_evidence", "visual_must_show",
)  # fmt: skip
"""Fields of a scene that are drafted, but for its prompts, which follow from them."""


LONGEST_SCENE = 150
"""Words that one picture can tell."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    scenes: int = Field(default=5, ge=2, le=100, description="Scenes per story, T in the paper.")
    max_scene_words: int = Field(
        default=LONGEST_SCENE,
        ge=1,
        description="Words that one picture can tell; twice as many characters without spaces.",
    )
    keep_unfit: bool = Field(
        default=False, description="Keep a story that contiguous scenes cannot tell; a person must review it."
    )


def _rules(sketch: Sketch, settings: Settings) -> Json:
    given, texts = sketch.given_list("scenes"), None
    if given is not None:
        texts = scene_texts(given)
    elif len(sketch.narrated) == settings.scenes:
        texts = list(sketch.narrated)
    elif divided := draft_scene_texts(sketch.story, sketch.analysis, settings.scenes):
        texts = list(divided)
    return None if texts is None else describe_scenes(sketch.story, sketch.analysis, texts)


async def _ask(tools: Tools, sketch: Sketch) -> Drafted[Json]:
    """Return the scenes; nothing, without asking, where the story has fewer segments than scenes."""
    settings, given = tools.own(Settings), sketch.given_list("scenes")
    if given is not None or len(sketch.narrated) == settings.scenes:
        texts = list(sketch.narrated) if given is None else scene_texts(given)
        return await ask_scenes(tools, sketch.story, texts)
    segments = segment_texts(sketch.story, sketch.analysis)
    if len(segments) < settings.scenes:
        return Drafted(None, "")
    return await ask(
        tools,
        "katha/draft_scenes",
        lambda reply: read_division(reply, sketch.story, sketch.analysis, settings.scenes),
        **{**_shown(sketch.story, ()), "count": settings.scenes, "segments": segments},
    )


async def ask_scenes(
    tools: Tools,
    story: Json,
    texts: Sequence[str],
    before: Sequence[Json] = (),
    again: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> Drafted[list[Json]]:
    """Return the scenes with given texts.

    ``again``: number of a scene that is to be described again -> what was found in it; then only these scenes
    are returned, in order.
    """
    numbers, looks = sorted(again) or range(1, len(texts) + 1), looks_in(before)
    names = dict.fromkeys(name for scene in before for name in scene["characters"])
    known = {name: looks.get(normalize_answer(without_article(name))) for name in names}
    more = {
        "again": sorted(again),
        "cast": [{"name": name, "look": look} for name, look in known.items() if look],
        "findings": [finding for number in sorted(again) for finding in again[number]],
        "previous": scenes_shown(before),
    }
    return await ask(
        tools,
        "katha/draft_scenes",
        lambda reply: read_scenes(reply, story, texts, numbers, looks),
        **{**_shown(story, texts), **(more if again else {})},
    )


def _shown(story: Json, texts: Sequence[str]) -> dict[str, Json]:
    return {
        "again": [], "cast": [], "count": len(texts), "findings": [], "language": language(story),
        "previous": [], "scenes": list(texts), "segments": [], "title": story["title"],
    }  # fmt: skip


def scenes_shown(scenes: Sequence[Json]) -> list[Json]:
    """Return the described fields of scenes, each with its number."""
    return [
        {"scene": scene["scene_index"], **{name: scene[name] for name in SCENE_FIELDS}} for scene in scenes
    ]


def read_division(reply: Json, story: Json, analysis: Json, count: int) -> list[Json]:
    """Return the scenes that a reply to ``katha/draft_scenes`` makes of a story.

    Their texts are spans of the story that hold all of it but white space, whatever the reply says.
    """
    check_count(reply["scenes"], count, "scenes")
    numbers = range(1, count + 1)
    entries = by_number(reply["scenes"], "scene", numbers, "scenes")
    problems = Problems()
    for number, entry in enumerate(entries, start=1):
        if entry["first_segment"] is None:
            problems.add(f"scene {number}: first_segment is null; give the number of its first segment")
    problems.settle()
    texts = boundaries.read_division(entries, count, "scene", story, analysis)
    return read_scenes(reply, story, texts, numbers)


def read_scenes(
    reply: Json,
    story: Json,
    texts: Sequence[str],
    numbers: Sequence[int],
    looks: Mapping[str, str] = MappingProxyType({}),
) -> list[Json]:
    """Return the scenes of some numbers, as a reply to ``katha/draft_scenes`` describes them.

    ``looks``: name of a character -> how it looks, where that is known and stays.
    """
    entries = by_number(reply["scenes"], "scene", numbers, "scenes")
    problems = Problems()
    scenes = [
        _scene(entry, story, number, texts[number - 1], problems)
        for number, entry in zip(numbers, entries, strict=True)
    ]
    told = {
        normalize_answer(without_article(entry["name"])): plain_look(needed(entry, "look", "cast", problems))
        for entry in reply["cast"]
    }
    told |= {normalize_answer(without_article(name)): look for name, look in looks.items()}
    _check_characters(scenes, story, told, problems)
    problems.check_script(story, [[scene["action"], scene["state"], scene["emotion"]] for scene in scenes])
    problems.settle()
    return [with_prompts(scene, story, len(texts), told) for scene in scenes]


def _check_characters(
    scenes: Sequence[Json], story: Json, told: Mapping[str, str], problems: Problems
) -> None:
    text = normalize_answer(story["normalized_text"])
    for scene in scenes:
        number = scene["scene_index"]
        unseen = [name for name in scene["characters"] if normalize_answer(without_article(name)) not in told]
        if unseen:
            problems.add(f"scene {number}: {', '.join(map(repr, unseen))} stands in characters, not in cast")
        strange = [name for name in scene["characters"] if not mentions(text, without_article(name))]
        if strange:
            problems.add(
                f"scene {number}: the story does not name {', '.join(map(repr, strange))}; copy the names of"
                " characters letter for letter from the story, in a form that stands there"
            )


def _scene(entry: Json, story: Json, number: int, text: str, problems: Problems) -> Json:
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
        "emotion": told_feeling(entry, text, where, problems),
        "visual_evidence": optional(entry, "visual_evidence", where, problems),
        "visual_must_show": must_show,
    }


def _settle(drafted: Json, sketch: Sketch, settings: Settings) -> Json:
    if drafted is None:
        text = sketch.story["normalized_text"]
        reason = f"fewer clauses than the {settings.scenes} scenes asked for in: {text[:120]!r}"
        raise Unfit("too_short", reason)
    unfit = unfit_scenes(sketch.story, scene_texts(drafted), settings.max_scene_words)
    divided = sketch.given_list("scenes") or sketch.narrated
    if unfit and settings.planner == "rules" and not (settings.keep_unfit or divided):
        raise Unfit("not_five_scenes", unfit)
    given = sketch.given_list("scenes")
    return drafted if given is None else prompted(sketch.filled("scenes", drafted), sketch.story, given)


def unfit_scenes(story: Json, texts: Sequence[str], longest: int = LONGEST_SCENE) -> str | None:
    """Return why contiguous scenes cannot tell a story, or None where they can.

    ``texts``: of its scenes, in order. ``longest``: words of a scene, at most; twice as many characters in a
    script without spaces.
    """
    text = story["normalized_text"]
    sentences = len(sentence_spans(text, story["language"]))
    if sentences < len(texts):
        return f"{sentences} sentences for {len(texts)} scenes: scenes would begin inside of sentences"
    most = max(map(word_count, texts))
    if most > longest * (2 if is_unspaced(text) else 1):
        return f"a scene of {most} words; a scene has at most {longest}"
    return None


STEP = Step(
    id="katha/draft_scenes",
    version=9,
    writes=("scenes",),
    reads=("story", *NARRATIVE, "given", "analysis"),
    sketch=Sketch.of,
    rules=_rules,
    ask=_ask,
    given=lambda sketch, settings: sketch.complete("scenes", Scene),
    settle=_settle,
    settings=Settings,
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than scenes.",
        "not_five_scenes": "Contiguous scenes cannot tell the story: too few sentences, or scenes too long.",
    },
    keep={
        "too_short": "--set draft_scenes.scenes=N with a smaller N",
        "not_five_scenes": "--keep-unfit, --set draft_scenes.scenes=N with another N, or --model",
    },
    libraries=("jinja2",),
    prompts=("scene_image",),
)
