"""Reading the reply that describes the transitions (Tables 8, 9 and 10)."""

from ....schemas.canonical import Json
from ...replies import Problems, by_number, needed, optional

_NEEDED = ("action", "causality", "consequence", "expected_change", "recoverability_target")
_OPTIONAL = ("intention", "emotion")


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
