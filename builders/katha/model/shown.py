"""What a model is shown of a story and its draft: numbers instead of ids, and no more than needed."""

from collections.abc import Mapping, Sequence

from ....schemas.canonical import Json
from ..rules.chance import share
from ..rules.questions import ACTION, EXTRA_CAUSAL, EXTRA_EMOTIONAL

SCENE_FIELDS = (
    "characters", "objects", "action", "state", "emotion", "visual_evidence", "visual_must_show",
)  # fmt: skip
"""Fields of a scene that a planner fills, but for its prompt, which follows from them."""

TRANSITION_FIELDS = (
    "action", "causality", "intention", "emotion", "consequence", "expected_change", "recoverability_target",
    "transition_type",
)  # fmt: skip
"""Fields of a transition that a planner fills, but for the moral target, which follows from the label."""


def scene_texts(scenes: Sequence[Json]) -> list[str]:
    """Return the texts of scenes."""
    return [scene["scene_text"] for scene in scenes]


def casts(scenes: Sequence[Json]) -> list[str]:
    """Return the characters of each scene, as one text."""
    return [", ".join(scene["characters"]) or "-" for scene in scenes]


def scenes_shown(scenes: Sequence[Json]) -> list[Json]:
    """Return the described fields of scenes."""
    return [
        {"scene": number, **{name: scene[name] for name in SCENE_FIELDS}}
        for number, scene in enumerate(scenes, start=1)
    ]


def transitions_shown(transitions: Sequence[Json]) -> list[Json]:
    """Return the described fields of transitions."""
    ends = ("from_scene", "to_scene")
    return [{name: part[name] for name in (*ends, *TRANSITION_FIELDS)} for part in transitions]


def questions_shown(questions: Sequence[Json]) -> list[Json]:
    """Return questions in the form in which a model writes them."""
    return [
        {
            "question_type": part["question_type"],
            "target_scene": part["target_scene"],
            "target_from_scene": None if part["target_transition"] is None else part["target_transition"][0],
            "evidence_scenes": list(part["evidence_scenes"]),
            "question": part["question"],
            "gold_answer": part["gold_answer"],
            "other_answers": [text for text in part["accepted_answers"] if text != part["gold_answer"]],
            "required_evidence": part["required_evidence"],
        }
        for part in questions
    ]


def variants_shown(variants: Sequence[Json]) -> list[Json]:
    """Return variants in the form in which a model writes them."""
    names = ("change_type", "semantic_delta", "contrastive_scene_text", "contrastive_moral")
    return [
        {"changed_scene": part["changed_scene_id"], **{name: part[name] for name in names}}
        for part in variants
    ]


def questions_wanted(story_id: str, moral: str | None) -> Mapping[str, int]:
    """Return how many questions of each type a story gets, so that a benchmark comes out as in Table 14.

    One causal, emotional, moral, consequence and temporal question, no moral one without a label; which
    stories get a second causal or emotional one, or one about a visible action, is fixed by the id, as it is
    for the rules.
    """
    wanted = {
        "causal": 1 + (share(story_id, "causal") < EXTRA_CAUSAL),
        "emotional": 1 + (share(story_id, "emotional") < EXTRA_EMOTIONAL),
        "moral": int(moral is not None),
        "consequence": 1,
        "temporal_order": 1,
        "action_visibility": int(share(story_id, "action") < ACTION),
    }
    return {name: number for name, number in wanted.items() if number}
