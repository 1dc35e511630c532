"""Drafting the scenes: their spans, and every field of Table 7 that the text tells."""

from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ...text.boundaries import divide
from ...text.emotions import dominant
from ...text.reading import StoryView, main_action
from ...text.segments import Analysis
from ...text.words import lower_words, word_set

ARC = ("setup", "action", "complication", "consequence", "resolution")
"""The arc of a story (section C.3); with more or fewer scenes its phases are spread evenly."""


def draft_scene_texts(text: str, analysis: Json, count: int) -> tuple[str, ...] | None:
    """Return the texts of the scenes, or None where the story has fewer clauses than scenes."""
    spans = divide(text, Analysis.from_json(analysis), count)
    return None if spans is None else tuple(text[start:end] for start, end in spans)


def phase(scene: int, count: int) -> str:
    """Return the phase of the arc that a scene, by index from 0, stands for."""
    return ARC[round(scene * (len(ARC) - 1) / max(1, count - 1))]


def describe_scenes(view: StoryView) -> list[Json]:
    """Return the scenes with all fields; null or empty where the text does not tell."""
    cast = scene_casts(view)
    return [_scene(view, scene, cast[scene]) for scene in range(view.count)]


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


def _scene(view: StoryView, scene: int, cast: tuple[str, ...]) -> Json:
    action = main_action(view, scene)
    action_text = view.full(action) if action else None
    objects = view.entities(scene, characters=False)
    emotion = dominant(view.feelings(scene))
    visible = action_text if action and action.motion else None
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
        "generation_prompt": _prompt(view, scene, cast=cast, action=action_text, emotion=emotion),
    }


def _state(view: StoryView, scene: int) -> str:
    """Return the phase of the arc and, if the text tells one, the state at the end of the scene."""
    name = phase(scene, view.count)
    clauses = view.by_scene[scene]
    stative = [clause for clause in clauses if clause.kind == "stative"]
    chosen = stative[-1:] or ([clauses[-1]] if view.english and clauses else [])
    return f"{name}: {view.full(chosen[0])}" if chosen else name


def _prompt(
    view: StoryView, scene: int, *, cast: tuple[str, ...], action: str | None, emotion: str | None
) -> str:
    return load_prompt("scene_image").render(
        index=scene + 1,
        total=view.count,
        title=view.title,
        text=view.scene_text(scene),
        characters=list(cast),
        objects=list(view.entities(scene, characters=False)),
        action=action,
        emotion=emotion,
    )
