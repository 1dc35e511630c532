"""Stage: divide the story into scenes and describe them (Table 7). Rules divide, and say who is named.

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story that so many scenes cannot tell.
"""

from bisect import bisect_right
from collections.abc import Sequence

from pydantic import Field

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ...schemas.katha import Scene
from ...schemas.text import is_unspaced, normalize_answer
from ...validators.katha.scene_rules import without_article
from ...validators.view import mentions
from ..replies import Drafted, Problems, ask, by_number, language, listed, needed, optional
from ..step import PlannerSettings, Step, Unfit
from ..text import boundaries
from ..text.openings import paragraph_starts
from ..text.segments import Analysis, segment_texts, sentence_spans
from ..text.spans import scene_spans
from ..text.words import word_count
from .drafts import NARRATIVE, Sketch, scene_texts
from .scene_prompts import prompted


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
    settings, story = tools.own(Settings), sketch.story
    given = sketch.given_list("scenes")
    if given is not None:
        return await ask_descriptions(tools, story, scene_texts(given))
    if len(sketch.narrated) == settings.scenes:
        return await ask_descriptions(tools, story, sketch.narrated)
    segments = segment_texts(story, sketch.analysis)
    if len(segments) < settings.scenes:
        return Drafted(None, "")
    return await ask(
        tools,
        "katha/draft_scenes",
        lambda reply: read_division(reply, story, sketch.analysis, settings.scenes),
        count=settings.scenes,
        language=language(story),
        segments=segments,
        title=story["title"],
    )


async def ask_descriptions(
    tools: Tools, story: Json, texts: Sequence[str], previous: Json = (), findings: Sequence[str] = ()
) -> Drafted[list[Json]]:
    """Return the scenes with given texts; with findings, what was written previously is to be corrected."""
    return await ask(
        tools,
        "katha/describe_scenes",
        lambda reply: read_descriptions(reply, story, texts),
        findings=list(findings),
        language=language(story),
        previous=list(previous),
        scenes=list(texts),
        title=story["title"],
    )


def scenes_shown(scenes: Sequence[Json]) -> list[Json]:
    """Return the described fields of scenes."""
    return [
        {"scene": number, **{name: scene[name] for name in SCENE_FIELDS}}
        for number, scene in enumerate(scenes, start=1)
    ]


def read_division(reply: Json, story: Json, analysis: Json, count: int) -> list[Json]:
    """Return the scenes that a reply to ``katha/draft_scenes`` makes of a story.

    Their texts are spans of the story that hold all of it but white space, whatever the reply says.

    Raises:
        BadReply: not as many scenes as asked for, first segments that do not rise from 1 within the story, or
            a description that :func:`read_descriptions` would not take.
    """
    texts = boundaries.read_division(reply["scenes"], count, "scene", story, analysis)
    return _scenes(reply["scenes"], story, texts)


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
        _scene(entry, story, number, text, problems)
        for number, (entry, text) in enumerate(zip(entries, texts, strict=True), start=1)
    ]
    _check_characters(scenes, story, problems)
    problems.check_script(story, [[scene["action"], scene["state"], scene["emotion"]] for scene in scenes])
    problems.settle()
    return prompted(scenes, story)


def _check_characters(scenes: Sequence[Json], story: Json, problems: Problems) -> None:
    text = normalize_answer(story["normalized_text"])
    for number, scene in enumerate(scenes, start=1):
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
        "emotion": optional(entry, "emotion", where, problems),
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

    Args:
        story: the story, ``schemas.story.Story``.
        texts: of its scenes, in order.
        longest: words of a scene, at most; twice as many characters in a script without spaces.
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
    version=7,
    writes=("scenes",),
    reads=("story", *NARRATIVE, "given", "analysis"),
    sketch=Sketch.of,
    rules=_rules,
    ask=_ask,
    given=lambda sketch, settings: sketch.complete("scenes", Scene),
    settle=_settle,
    asks=("katha/draft_scenes", "katha/describe_scenes"),
    settings=Settings,
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than scenes.",
        "not_five_scenes": "Contiguous scenes cannot tell the story: too few sentences, or scenes too long.",
    },
    libraries=("jinja2",),
    prompts=("scene_image",),
)
