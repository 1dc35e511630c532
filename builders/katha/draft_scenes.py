"""Stage: divide the story into scenes and fill every scene field that the text tells (Table 7).

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story that so many scenes cannot tell.
"""

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
from ..text.reading import StoryView, main_statement
from ..text.segments import Analysis, segment_texts, sentence_spans
from ..text.words import lower_words, word_count, word_set
from .drafts import NARRATIVE, Sketch, scene_texts
from .scene_prompts import prompted

ARC = ("setup", "action", "complication", "consequence", "resolution")
"""The arc of a story (section C.3); with more or fewer scenes its phases are spread evenly."""


def draft_scene_texts(story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
    """Return the texts of the scenes, or None where the story has fewer clauses than scenes."""
    text: str = story["normalized_text"]
    paragraphs = paragraph_starts(story["text"], text)
    spans = boundaries.divide(text, Analysis.from_json(analysis), count, paragraphs)
    return None if spans is None else tuple(text[start:end] for start, end in spans)


def phase(scene: int, count: int) -> str:
    """Return the phase of the arc that a scene, by index from 0, stands for."""
    return ARC[round(scene * (len(ARC) - 1) / max(1, count - 1))]


def describe_scenes(view: StoryView) -> list[Json]:
    """Return the scenes with all fields; null or empty where the text does not tell."""
    cast = scene_casts(view)
    scenes = [_ruled_scene(view, scene, cast[scene]) for scene in range(view.count)]
    return prompted(scenes, view.story)


def scene_casts(view: StoryView) -> list[tuple[str, ...]]:
    """Return the characters of each scene.

    A scene that names nobody but has a personal pronoun takes over the characters last named: one for a
    singular pronoun, all of the last naming scene for a plural one.
    """
    casts: list[tuple[str, ...]] = []
    for scene in range(view.count):
        names = view.entities(scene, characters=True)
        if not names and casts and view.english:
            used = set(lower_words(view.scene_text(scene)))
            if used & word_set("words", "plural_pronouns"):
                names = casts[-1]
            elif used & word_set("words", "pronouns"):
                names = _last_named(view, scene) or casts[-1][-1:]
        casts.append(names)
    return casts


def _last_named(view: StoryView, scene: int) -> tuple[str, ...]:
    places = [
        (at, entity.name)
        for entity in view.analysis.entities
        if entity.character
        for at in entity.at
        if view.scene_of[at] == scene - 1
    ]
    # Within the last clause that names somebody, the first is most often its subject.
    last = max((at for at, _ in places), default=None)
    return next(((name,) for at, name in places if at == last), ())


def _ruled_scene(view: StoryView, scene: int, cast: tuple[str, ...]) -> Json:
    action = main_statement(view, scene)
    action_text = action.text if action else None
    objects = view.entities(scene, characters=False)
    emotion = view.emotion(scene)
    visible = action_text if action and action.verb in word_set("verbs", "motion") else None
    return {
        "story_id": view.id,
        "scene_index": scene + 1,
        "scene_text": view.scene_text(scene),
        "characters": list(cast),
        "objects": list(objects),
        "action": action_text,
        "state": _state(view, scene),
        "emotion": emotion,
        "visual_evidence": visible,
        "visual_must_show": [*cast, *objects, *([action_text] if action_text else [])],
    }


def _state(view: StoryView, scene: int) -> str:
    """Return the phase of the arc and, if the text tells one, the last state that the scene tells."""
    name = phase(scene, view.count)
    states = [statement for statement in view.said_in(scene) if statement.kind == "state"]
    return f"{name}: {states[-1].plain}" if states else name


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
    return None if texts is None else describe_scenes(sketch.view(texts))


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
    version=6,
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
    libraries=("jinja2", "lemminflect"),
    prompts=("scene_image",),
)
