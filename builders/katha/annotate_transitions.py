"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8, 9 and 10).

What leads from one scene to the next takes a reader: rules leave all of it null. The balance of types in
Table 9 is what came of the paper's stories, and nothing that a story is made to fit.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...schemas.canonical import Json
from ...schemas.katha import Transition
from ..step import PlannerSettings, Problems, Step, by_number, language, needed, optional, told_feeling
from .drafts import NARRATIVE, Sketch

TRANSITION_FIELDS = (
    "action", "causality", "intention", "emotion", "consequence", "expected_change", "recoverability_target",
    "transition_type",
)  # fmt: skip
"""Fields of a transition that are drafted, but for the moral target, which follows from the label."""
_NEEDED = ("action", "consequence", "expected_change", "recoverability_target")


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    """Return transitions that say nothing, the moral label on the last one.

    In a rehearsal words of the later scene stand for what a model would write.
    """
    names = [name for name, field in Transition.model_fields.items() if field.annotation == str | None]
    texts, story_id = sketch.texts, sketch.story["id"]
    return [
        {
            "story_id": story_id, "from_scene": number, "to_scene": number + 1,
            **dict.fromkeys(names, text[:_REHEARSED] if settings.rehearsed else None),
            "moral_target": sketch.moral_label if number == len(texts) - 1 else None,
        }
        for number, text in enumerate(texts[1:], start=1)
    ]  # fmt: skip


_REHEARSED = 160


def show_scenes(
    sketch: Sketch, before: Sequence[Json] = (), again: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> Json:
    """Return the inputs of the prompt.

    ``again``: number of the earlier scene of a transition that is to be described again -> what was found.
    """
    return {
        "again": sorted(again),
        "findings": [finding for number in sorted(again) for finding in again[number]],
        "language": language(sketch.story),
        "moral_label": sketch.moral_label,
        "previous": transitions_shown(before),
        "scenes": sketch.texts,
        "title": sketch.story["title"],
    }


def transitions_shown(transitions: Sequence[Json]) -> list[Json]:
    """Return the described fields of transitions."""
    ends = ("from_scene", "to_scene")
    return [{name: part[name] for name in (*ends, *TRANSITION_FIELDS)} for part in transitions]


def read_transitions(
    reply: Json, story: Json, texts: Sequence[str], moral: str | None, again: Sequence[int] = ()
) -> list[Json]:
    """Return the transitions between scenes that a reply to ``katha/annotate_transitions`` has."""
    numbers = list(again or range(1, len(texts)))
    entries = by_number(reply["transitions"], "from_scene", numbers, "transitions from scene")
    bearer, problems = reply["moral_from_scene"], Problems()
    if moral is not None and bearer not in numbers and not again:
        problems.add(
            f"moral_from_scene must be one of {numbers[0]} to {numbers[-1]}: the transition that supports the"
            f" moral target {moral} best; found {'null' if bearer is None else bearer}"
        )
    transitions = [_transition(entry, story, texts, problems) for entry in entries]
    problems.check_script(story, [[part[name] for name in ("causality", *_NEEDED)] for part in transitions])
    problems.settle()
    return [{**part, "moral_target": moral if part["from_scene"] == bearer else None} for part in transitions]


def _transition(entry: Json, story: Json, texts: Sequence[str], problems: Problems) -> Json:
    first = entry["from_scene"]
    where = f"the transition from scene {first}"
    if entry["to_scene"] != first + 1:
        problems.add(f"{where} leads to scene {first + 1}; found to_scene {entry['to_scene']}")
    return {
        "story_id": story["id"],
        "from_scene": first,
        "to_scene": first + 1,
        "transition_type": entry["transition_type"],
        **{name: needed(entry, name, where, problems) for name in _NEEDED},
        **{name: optional(entry, name, where, problems) for name in ("causality", "intention")},
        "emotion": told_feeling(entry, " ".join(texts[first - 1 : first + 1]), where, problems),
    }


STEP: Step[Sketch, PlannerSettings] = Step(
    id="katha/annotate_transitions",
    version=10,
    writes=("transitions",),
    reads=("story", *NARRATIVE, "given", "scenes", "moral_label"),
    sketch=Sketch.of,
    rules=_rules,
    show=lambda sketch, settings: show_scenes(sketch),
    read=lambda reply, sketch, settings: read_transitions(
        reply, sketch.story, sketch.texts, sketch.moral_label
    ),
    given=lambda sketch, settings: sketch.complete("transitions", Transition),
    settle=lambda drafted, sketch, settings: sketch.filled("transitions", drafted),
)
