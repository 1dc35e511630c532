"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8, 9 and 10).

Rules keep the 2:1:1 balance of coarse types of Table 9, and take causes, results and purposes that the text
states with a connective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...schemas.canonical import Json
from ...schemas.katha import Transition
from ...schemas.vocabulary import vocabulary
from ..replies import Problems, by_number, language, needed, optional
from ..step import PlannerSettings, Step
from ..text.emotions import dominant
from ..text.reading import LONGEST_CLAUSE, Clause, StoryView, main_action
from ..text.segments import strip_lead
from ..text.words import lexicon, lower_words, phrase_pattern, whole_words, word_set
from .drafts import NARRATIVE, Sketch

_BECAUSE = whole_words(["because"])


@dataclass(frozen=True, slots=True)
class Link:
    """A stated link of two events, in the words of the story.

    Attributes:
        kind: ``cause`` (because, so) or ``purpose`` (to, in order to, hoping to).
        effect: what happens.
        reason: why, or what for.
        effect_scene, reason_scene: indices from 0.
    """

    kind: str
    effect: str
    reason: str
    effect_scene: int
    reason_scene: int


def find_links(view: StoryView) -> tuple[Link, ...]:
    """Return the stated links of an English story, in story order; causes before purposes of one clause."""
    if not view.english:
        return ()
    found = [link for clause in view.clauses for link in _links_at(view, clause)]
    return tuple(link for link in found if _is_sound(link))


def _is_sound(link: Link) -> bool:
    sizes = (len(link.effect.split()), len(link.reason.split()))
    return min(sizes) >= 2 and max(sizes) <= LONGEST_CLAUSE


def _links_at(view: StoryView, clause: Clause) -> Iterator[Link]:
    opening = clause.text.lower().lstrip(" \"'“‘")
    if _opens(opening, "opens_cause"):
        yield from _opened_cause(view, clause, opening)
    elif _opens(opening, "opens_result") and not _opens(opening, "no_result"):
        before = _neighbour(view, clause, -1)
        if before is not None:
            yield Link("cause", view.full(clause), view.full(before), clause.scene, before.scene)
    else:
        inside = _BECAUSE.search(clause.core)
        if inside and inside.start():
            effect, reason = clause.core[: inside.start()], clause.core[inside.end() :]
            yield Link("cause", strip_lead(effect), strip_lead(reason), clause.scene, clause.scene)
    yield from _purpose(view, clause)


def _opens(opening: str, key: str) -> bool:
    return opening.startswith(_openings(key))


@cache
def _openings(key: str) -> tuple[str, ...]:
    return tuple(phrase + end for phrase in lexicon("connectives")[key] for end in (" ", ", "))


def _opened_cause(view: StoryView, clause: Clause, opening: str) -> Iterator[Link]:
    """A clause that opens with "because" explains the next one at a sentence's start, else the last."""
    starts = clause.segment == 0 or view.clauses[clause.segment - 1].sentence != clause.sentence
    other = _neighbour(view, clause, 1 if starts or opening.startswith(("and ", "but ")) else -1)
    if other is not None and other.sentence == clause.sentence:
        yield Link("cause", view.full(other), clause.core, other.scene, clause.scene)


def _neighbour(view: StoryView, clause: Clause, step: int) -> Clause | None:
    number = clause.segment + step
    return view.clauses[number] if 0 <= number < len(view.clauses) else None


def _purpose(view: StoryView, clause: Clause) -> Iterator[Link]:
    match = phrase_pattern("connectives", "purpose").search(clause.core)
    if match is None or match[0].lower() not in lexicon("connectives")["purpose"]:
        return
    reason = clause.core[match.start() :]
    if match.start() == 0:
        before = _neighbour(view, clause, -1)
        if before is not None and before.sentence == clause.sentence:
            yield Link("purpose", view.full(before), reason, before.scene, clause.scene)
    elif not _wanted(clause.core[: match.start()]):
        effect = view.full(clause)
        if effect.endswith(clause.core[match.start() :]):
            effect = effect.removesuffix(clause.core[match.start() :]).strip(" ,")
            yield Link("purpose", effect, reason, clause.scene, clause.scene)


def _wanted(before: str) -> bool:
    """Whether a verb stands before the "to" that takes it as its object, as in "wanted to eat"."""
    last = before.rstrip(" ,").rpartition(" ")[2].lower()
    return last in word_set("verbs", "takes_to")


def intention_of(view: StoryView, scenes: tuple[int, ...]) -> str | None:
    """Return the first clause in the scenes that states a goal or plan, or None."""
    if not view.english:
        return None
    pattern = phrase_pattern("connectives", "intention")
    for scene in scenes:
        for clause in view.by_scene[scene]:
            if pattern.search(clause.text):
                return view.full(clause)
    return None


def describe_transitions(view: StoryView, moral_label: str | None) -> list[Json]:
    """Return the T - 1 transitions; the moral label stands on exactly one of them, if there is a label."""
    types = transition_types(view)
    links = find_links(view)
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
    earlier, later = _last_event(view, at), _first_event(view, at + 1)
    outcome = _last_event(view, at + 1)
    action = main_action(view, at + 1)
    return {
        "story_id": view.id,
        "from_scene": at + 1,
        "to_scene": at + 2,
        "action": view.full(action) if action else None,
        "causality": _causality(at, links, earlier, later),
        "intention": intention_of(view, (at, at + 1)),
        "emotion": _shift(view, at),
        "consequence": _consequence(at, links, outcome),
        "expected_change": f"from: {earlier}; to: {outcome}" if earlier and outcome else None,
        "recoverability_target": f"that, after this: {earlier}, this comes: {later}"
        if earlier and later
        else None,
    }


def _causality(at: int, links: Sequence[Link], earlier: str | None, later: str | None) -> str | None:
    """Return the stated cause, of the later scene if possible; else only the order, and say so."""
    for link in _stated(at, links):
        return f"{link.effect}, because: {link.reason}"
    if earlier and later:
        return f"{later}, after: {earlier} (order of events; the text states no cause)"
    return None


def _stated(at: int, links: Sequence[Link]) -> list[Link]:
    """The causes stated for the transition: across its two scenes first, then within the later scene."""
    causes = [link for link in links if link.kind == "cause"]
    across = [link for link in causes if (link.reason_scene, link.effect_scene) == (at, at + 1)]
    within = [link for link in causes if link.reason_scene == link.effect_scene == at + 1]
    return across + within


def _consequence(at: int, links: Sequence[Link], outcome: str | None) -> str | None:
    for link in _stated(at, links):
        return link.effect
    return outcome


def _shift(view: StoryView, at: int) -> str | None:
    before, after = dominant(view.feelings(at)), dominant(view.feelings(at + 1))
    if before and after and before != after:
        return f"{before} to {after}"
    return after or before


def _told(view: StoryView, clauses: Sequence[Clause], which: int) -> str | None:
    return view.full(clauses[which]) if clauses and view.english else None


def _last_event(view: StoryView, scene: int) -> str | None:
    return _told(view, view.events(scene), -1)


def _first_event(view: StoryView, scene: int) -> str | None:
    return _told(view, view.events(scene), 0)


TRANSITION_FIELDS = (
    "action", "causality", "intention", "emotion", "consequence", "expected_change", "recoverability_target",
    "transition_type",
)  # fmt: skip
"""Fields of a transition that are drafted, but for the moral target, which follows from the label."""
_NEEDED = ("action", "causality", "consequence", "expected_change", "recoverability_target")
_OPTIONAL = ("intention", "emotion")


def show_scenes(sketch: Sketch) -> Json:
    """Return the inputs of the prompt."""
    return {
        "findings": [],
        "language": language(sketch.story),
        "moral_label": sketch.moral_label,
        "previous": [],
        "quotas": quotas(len(sketch.scenes) - 1),
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
    version=2,
    writes=("transitions",),
    reads=("story", *NARRATIVE, "given", "analysis", "scenes", "moral_label"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: describe_transitions(sketch.view(), sketch.moral_label),
    show=lambda sketch, settings: show_scenes(sketch),
    read=lambda reply, sketch, settings: read_transitions(
        reply, sketch.story, len(sketch.scenes), sketch.moral_label
    ),
    given=lambda sketch, settings: sketch.complete("transitions", Transition),
    settle=lambda drafted, sketch, settings: sketch.filled("transitions", drafted),
)
