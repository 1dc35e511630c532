"""Choosing the contrastive variants of a story among all changes that the operations find."""

from collections.abc import Sequence

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer
from ..spans import with_scene
from .chance import share
from .edits import OPERATIONS, Change
from .reading import StoryView

# Which operation is taken first where several apply: those that leave the sentence whole before those
# that negate it; reordering, which any text allows, last.
_RANK = {
    "break_causal_link": 0,
    "reverse_motivation": 0,
    "replace_outcome": 0,
    "flatten_emotion": 0,
    "remove_consequence": 1,
    "reorder_events": 2,
}


TEMPORAL = 0.25
"""Share of the stories that get a temporal variant wherever their text allows one."""


def find_changes(view: StoryView) -> list[Change]:
    """Return every usable change, in order of scene and operation.

    Usable: the text differs after normalisation, and every character that the scene names is still named.
    """
    changes = []
    for scene in range(view.count):
        names = view.entities(scene, characters=True)
        for operation in OPERATIONS:
            changes += [change for change in operation(view, scene) if _is_usable(view, change, names)]
    return changes


def _is_usable(view: StoryView, change: Change, names: Sequence[str]) -> bool:
    before, after = view.scene_text(change.scene), change.text
    differs = before.split() != after.split() and normalize_answer(before) != normalize_answer(after)
    kept = after.casefold()
    return differs and all(name.casefold() in kept for name in names if name.casefold() in before.casefold())


def choose_changes(view: StoryView, count: int) -> list[Change]:
    """Return up to ``count`` changes, of different operations and scenes where possible, fixed by the id."""
    left = find_changes(view)
    chosen: list[Change] = []
    while left and len(chosen) < count:
        best = min(left, key=lambda change: _worth(view, change, chosen))
        chosen.append(best)
        left = [change for change in left if change.text != best.text]
    return sorted(chosen, key=lambda change: (change.scene, change.operation))


def _worth(view: StoryView, change: Change, chosen: Sequence[Change]) -> tuple[int, int, int, float]:
    same_operation = sum(change.operation == other.operation for other in chosen)
    same_scene = sum(change.scene == other.scene for other in chosen)
    draw = share(view.id, change.operation, str(change.scene), change.delta)
    rank = _RANK[change.operation]
    if change.operation == "reorder_events" and share(view.id, "temporal") < TEMPORAL:
        rank = -1
    return same_operation, rank, same_scene, draw


def write_variants(
    view: StoryView, count: int, narrative_type: str | None, moral_label: str | None
) -> list[Json]:
    """Return the variants with all fields; fewer than ``count`` where the story allows no more.

    Rules cannot tell which moral a variant supports: ``contrastive_moral`` is null.
    """
    return [
        {
            "variant_id": f"{view.id}_v{number}",
            "base_story_id": view.id,
            "variant_kind": "temporal_contrast"
            if change.operation == "reorder_events"
            else "semantic_contrast",
            "subset": None,
            "narrative_type": narrative_type,
            "has_variant": True,
            "pair_id": f"{view.id}_pair{number}",
            "changed_scene_id": change.scene + 1,
            "change_type": change.operation,
            "original_moral": moral_label,
            "contrastive_moral": None,
            "semantic_delta": change.delta,
            "contrastive_scene_text": change.text,
            "contrastive_story_text": with_scene(view.text, view.spans[change.scene], change.text),
        }
        for number, change in enumerate(choose_changes(view, count), start=1)
    ]
