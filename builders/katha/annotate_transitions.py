"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8, 9 and 10).

Rules take causes, results and changes of feeling that the text states; every other field is null. The
balance of types in Table 9 is what came of the paper's stories, and nothing that a story is made to fit.
"""

import re
from collections.abc import Sequence

from ...schemas.canonical import Json
from ...schemas.katha import Transition
from ..replies import Problems, by_number, language, needed, optional
from ..step import PlannerSettings, Step
from ..text.emotions import Felt
from ..text.reading import StoryView, main_statement
from ..text.tokens import words
from .drafts import NARRATIVE, Sketch
from .stated_causes import StatedCause, find_causes


def intention_of(view: StoryView, scenes: tuple[int, ...]) -> str | None:
    """Return the first statement in the scenes that tells a goal or plan, or None."""
    for scene in scenes:
        for statement in view.said_in(scene):
            intends = statement.verb in words("intends") and statement.rest.startswith("to ")
            if intends and not statement.negated:
                return statement.text
    return None


def describe_transitions(view: StoryView, moral_label: str | None) -> list[Json]:
    """Return the T - 1 transitions; the moral label stands on the last one, if there is a label.

    A transition is of cause and effect where the story states its cause; of what type another is, rules
    cannot tell.
    """
    causes = find_causes(view)
    return [
        {**_fields(view, at, causes), "moral_target": moral_label if at == view.count - 2 else None}
        for at in range(view.count - 1)
    ]


def _fields(view: StoryView, at: int, causes: Sequence[StatedCause]) -> Json:
    action = main_statement(view, at + 1)
    cause = _stated(view, at, causes)
    return {
        "story_id": view.id,
        "from_scene": at + 1,
        "to_scene": at + 2,
        "action": action.text if action else None,
        "transition_type": "cause_effect" if cause else None,
        "causality": cause.text if cause else None,
        "intention": intention_of(view, (at, at + 1)),
        "emotion": _emotion(view, at),
        "consequence": cause.effect if cause else None,
        "expected_change": _change(view, at),
        "recoverability_target": f"that {cause.text}" if cause else None,
    }


def _stated(view: StoryView, at: int, causes: Sequence[StatedCause]) -> StatedCause | None:
    """Return the cause with which the later scene opens.

    The effect comes last. What else the scene states tells why something in it happens, not why it does.
    """
    start, end = view.spans[at + 1]
    opens = {start, start + len(_LEAD.findall(view.text[start:end])[0])}
    here = [c for c in causes if c.effect and c.begins < c.span[0] and start <= c.span[0] < end]
    first = [cause for cause in here if {cause.begins, cause.span[0]} & opens]
    told = [cause for cause in first if not view.text.startswith("Meanwhile", cause.begins)]
    return next(iter(told), None)


_LEAD = re.compile(r"^(?:(?:And|But|Yet|Then|So) )?")


def _emotion(view: StoryView, at: int) -> str | None:
    shift = feeling_shift(view, at)
    return f"{shift[0].emotion} to {shift[1].emotion}" if shift else view.emotion(at + 1)


def _change(view: StoryView, at: int) -> str | None:
    shift = feeling_shift(view, at)
    return f"from: {shift[0].statement.text}; to: {shift[1].statement.text}" if shift else None


def feeling_shift(view: StoryView, at: int) -> tuple[Felt, Felt] | None:
    """Return how somebody feels in a scene and otherwise in the next, where the text tells just that."""
    pairs = [
        (before, after)
        for before in view.felt(at)
        for after in view.felt(at + 1)
        if before.statement.subject.split()[-1] == after.statement.subject.split()[-1]
    ]
    if len(pairs) != 1 or pairs[0][0].emotion == pairs[0][1].emotion:
        return None
    return pairs[0]


TRANSITION_FIELDS = (
    "action", "causality", "intention", "emotion", "consequence", "expected_change", "recoverability_target",
    "transition_type",
)  # fmt: skip
"""Fields of a transition that are drafted, but for the moral target, which follows from the label."""
_NEEDED = ("action", "causality", "consequence", "expected_change", "recoverability_target")
_OPTIONAL = ("intention", "emotion")


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    transitions = describe_transitions(sketch.view(), sketch.moral_label)
    return _filled(transitions, sketch.texts) if settings.rehearsed else transitions


def _filled(transitions: Sequence[Json], texts: Sequence[str]) -> list[Json]:
    """Return transitions in which words of the later scene stand for what a model would write."""
    names = [name for name, field in Transition.model_fields.items() if field.annotation == str | None]
    names.remove("moral_target")
    return [
        {**part, **{name: part[name] or texts[part["to_scene"] - 1][:_REHEARSED] for name in names}}
        for part in transitions
    ]


_REHEARSED = 160


def show_scenes(sketch: Sketch) -> Json:
    """Return the inputs of the prompt."""
    return {
        "findings": [],
        "language": language(sketch.story),
        "moral_label": sketch.moral_label,
        "previous": [],
        "scenes": sketch.texts,
        "title": sketch.story["title"],
    }


def transitions_shown(transitions: Sequence[Json]) -> list[Json]:
    """Return the described fields of transitions."""
    ends = ("from_scene", "to_scene")
    return [{name: part[name] for name in (*ends, *TRANSITION_FIELDS)} for part in transitions]


def read_transitions(reply: Json, story: Json, count: int, moral: str | None) -> list[Json]:
    """Return the transitions between ``count`` scenes that a reply to ``katha/annotate_transitions`` has.

    Raises:
        BadReply: a transition is missing or leads elsewhere than to the next scene, a needed field says
            nothing, the moral target stands on no transition or on one that is not there, or the values are
            not in the story's script.
    """
    numbers = list(range(1, count))
    entries = by_number(reply["transitions"], "from_scene", numbers, "transitions from scene")
    bearer, problems = reply["moral_from_scene"], Problems()
    if moral is not None and bearer not in numbers:
        problems.add(
            f"moral_from_scene must be one of {numbers[0]} to {numbers[-1]}: the transition that supports the"
            f" moral target {moral} best; found {'null' if bearer is None else bearer}"
        )
    transitions = [_transition(entry, story, problems) for entry in entries]
    problems.check_script(story, [[part[name] for name in _NEEDED] for part in transitions])
    problems.settle()
    return [{**part, "moral_target": moral if part["from_scene"] == bearer else None} for part in transitions]


def _transition(entry: Json, story: Json, problems: Problems) -> Json:
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
        **{name: optional(entry, name, where, problems) for name in _OPTIONAL},
    }


STEP: Step[Sketch, PlannerSettings] = Step(
    id="katha/annotate_transitions",
    version=7,
    libraries=("lemminflect",),
    writes=("transitions",),
    reads=("story", *NARRATIVE, "given", "analysis", "scenes", "moral_label"),
    sketch=Sketch.of,
    rules=_rules,
    show=lambda sketch, settings: show_scenes(sketch),
    read=lambda reply, sketch, settings: read_transitions(
        reply, sketch.story, len(sketch.scenes), sketch.moral_label
    ),
    given=lambda sketch, settings: sketch.complete("transitions", Transition),
    settle=lambda drafted, sketch, settings: sketch.filled("transitions", drafted),
)
