"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8, 9 and 10).

Rules keep the 2:1:1 balance of coarse types of Table 9, and take causes, results and changes of feeling that
the text states in clauses that are read whole; every other field is null.
"""

from collections.abc import Sequence

from ...schemas.canonical import Json
from ...schemas.katha import Transition
from ...schemas.vocabulary import vocabulary
from ..replies import Problems, by_number, language, needed, optional
from ..step import PlannerSettings, Step
from ..text.clauses import words
from ..text.emotions import Felt
from ..text.reading import StoryView, main_statement
from ..text.statements import Link
from ..text.words import lower_words, word_set
from .drafts import NARRATIVE, Sketch


def intention_of(view: StoryView, scenes: tuple[int, ...]) -> str | None:
    """Return the first statement in the scenes that tells a goal or plan, or None."""
    for scene in scenes:
        for statement in view.said_in(scene):
            intends = statement.verb in words("intends") and statement.rest.startswith("to ")
            if intends and not statement.negated:
                return statement.text
    return None


def describe_transitions(view: StoryView, moral_label: str | None) -> list[Json]:
    """Return the T - 1 transitions; the moral label stands on exactly one of them, if there is a label."""
    types = transition_types(view)
    links = view.links
    bearer = types.index("moral_choice") if "moral_choice" in types else view.count - 2
    return [
        {
            **_fields(view, at, links),
            "transition_type": types[at],
            "moral_target": moral_label if at == bearer else None,
        }
        for at in range(view.count - 1)
    ]


def quotas(total: int) -> dict[str, int]:
    """Return how many transitions of each type a story has: the weights of Table 9 by largest remainder."""
    weights = vocabulary("transition_type").targets
    whole = sum(weights.values())
    counts = {name: total * weight // whole for name, weight in weights.items()}
    rest = sorted(weights, key=lambda name: -(total * weights[name] % whole))
    for name in rest[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def transition_types(view: StoryView) -> list[str | None]:
    """Return the coarse type of each transition.

    The quota of moral choices goes to the transitions into the scenes with most words of decision, that of
    revealed consequences to those with most words of outcome, later ones first; the rest is cause and
    effect. Without cue lists the types are not known.
    """
    total = view.count - 1
    if not view.english:
        return [None] * total
    left = quotas(total)
    types: list[str | None] = ["cause_effect"] * total
    free = set(range(total))
    for name, key in (("consequence_reveal", "reveal"), ("moral_choice", "decision")):
        worth = {at: (_cues(view, at + 1, key) + _lateness(name, at, total), at) for at in sorted(free)}
        for at in sorted(free, key=lambda at: worth[at], reverse=True)[: left[name]]:
            types[at] = name
            free.discard(at)
    return types


def _lateness(name: str, at: int, total: int) -> float:
    # An outcome is told last unless the words say otherwise.
    return 2.5 * (at + 1) / total if name == "consequence_reveal" else 0.0


def _cues(view: StoryView, scene: int, key: str) -> int:
    cues = word_set("verbs", key)
    return sum(word in cues for word in lower_words(view.scene_text(scene)))


def _fields(view: StoryView, at: int, links: Sequence[Link]) -> Json:
    action = main_statement(view, at + 1)
    link = _stated(view, at, links)
    return {
        "story_id": view.id,
        "from_scene": at + 1,
        "to_scene": at + 2,
        "action": action.text if action else None,
        "causality": link.text if link else None,
        "intention": intention_of(view, (at, at + 1)),
        "emotion": _emotion(view, at),
        "consequence": link.effect.text if link else None,
        "expected_change": _change(view, at),
        "recoverability_target": f"that {link.text}" if link else None,
    }


def _stated(view: StoryView, at: int, links: Sequence[Link]) -> Link | None:
    """Return the cause stated for a transition: across its two scenes, else within the later one."""
    places = [(view.scene_at(link.cause), view.scene_at(link.effect), link) for link in links]
    across = [link for cause, effect, link in places if (cause, effect) == (at, at + 1)]
    within = [link for cause, effect, link in places if cause == effect == at + 1]
    return next(iter([*across, *within]), None)


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
    version=3,
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
