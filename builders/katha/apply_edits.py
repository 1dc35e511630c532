"""Stage: put the drafted parts together and apply the corrections of people (``edits.jsonl``).

An edit replaces the value at an existing path, such as ``$.questions[1].gold_answer`` or
``$.variants[0].semantic_delta``. What the editor saw there must still be there. The story's text cannot be
edited: correct the source file. Scene texts may be edited only so that the scenes still cover the story.
"""

from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json, canonical_text
from ...schemas.katha import Question, Scene, Transition, Variant
from ...schemas.paths import format_path, get_at, parse_path, replace_at
from .parts import LABELS, LISTS, producers
from .planner import PlannerSettings, planner_of
from .spans import scene_spans

SPEC = StageSpec(
    name="apply_edits",
    version=1,
    shape="map",
    reads=("story", "given", "edits", *LABELS, *LISTS),
    writes=("draft", "labels"),
    settings=PlannerSettings,
)

_IDS = frozenset(
    (
        *("story_id", "scene_index", "from_scene", "to_scene", "question_id"),
        *("variant_id", "base_story_id", "pair_id", "subset"),
    )
)
_TYPES: dict[str, TypeAdapter[tuple[object, ...]]] = {
    "scenes": TypeAdapter(tuple[Scene, ...]),
    "transitions": TypeAdapter(tuple[Transition, ...]),
    "questions": TypeAdapter(tuple[Question, ...]),
    "variants": TypeAdapter(tuple[Variant, ...]),
}


class _Refused(Exception):
    """An edit cannot be applied."""


def run(item: Item, tools: Tools) -> Outcome:
    """Return the draft (title, labels, lists of parts, producers), and its labels by themselves."""
    draft = {"title": item["story"]["title"], **{name: item[name] for name in (*LABELS, *LISTS)}}
    made = producers(draft, item["story"], item["given"], planner_of(tools).name)
    try:
        for edit in item["edits"]:
            draft, made = _apply(draft, made, edit)
        if item["edits"]:
            _check_shape(draft, item["story"]["normalized_text"])
    except _Refused as refusal:
        return Failed("bad_edit", str(refusal))
    labels = {name: draft[name] for name in LABELS}
    return Made({"draft": {**draft, "producers": made}, "labels": labels})


def _apply(draft: Json, made: Sequence[Json], edit: Json) -> tuple[Json, list[Json]]:
    """Return the draft with one edit applied, and the producers with it."""
    path = str(edit["path"])
    where = f"edit of {path} by {edit['who']}"
    try:
        steps = parse_path(path)
    except ValueError as error:
        raise _Refused(f"{where}: {error}") from error
    if steps[:1] in (("story_text",), ("source_text",), ("text",)):
        raise _Refused(f"{where}: the story's text cannot be edited; correct the source file instead")
    if not steps or steps[-1] in _IDS or steps[0] in _IDS:
        raise _Refused(f"{where}: ids, numbers of scenes and the whole record cannot be edited")
    try:
        found = get_at(draft, path)
    except LookupError as error:
        fields = ", ".join(sorted(draft))
        raise _Refused(f"{where}: nothing is there; the fields are: {fields}") from error
    if found != edit["old"] or type(found) is not type(edit["old"]):
        old, now = canonical_text(edit["old"])[:200], canonical_text(found)[:200]
        raise _Refused(
            f"{where}: expected the old value {old}, found {now}; write the edit against the value found"
        )
    changed = replace_at(draft, path, edit["new"])
    if steps in (("moral_label",), ("narrative_type",)):
        changed = _carry_over(changed, str(steps[0]), edit)
    return changed, [*made, {"path": format_path(steps), "producer": f"edit:{edit['who']}"}]


def _carry_over(draft: Json, label: str, edit: Json) -> Json:
    """Return the draft with the copies of a label that its parts hold changed as well."""
    name = "original_moral" if label == "moral_label" else "narrative_type"
    variants = [{**variant, name: edit["new"]} for variant in draft["variants"]]
    transitions = draft["transitions"]
    if label == "moral_label":
        transitions = [
            {**transition, "moral_target": edit["new"]}
            if transition["moral_target"] is not None
            else transition
            for transition in transitions
        ]
    return {**draft, "variants": variants, "transitions": transitions}


def _check_shape(draft: Json, text: str) -> None:
    for name in ("title", *LABELS):
        if not isinstance(draft[name], str) and (draft[name] is not None or name == "title"):
            raise _Refused(f"edit of $.{name}: expected a string, found {canonical_text(draft[name])[:80]}")
    for name, adapter in _TYPES.items():
        try:
            adapter.validate_json(canonical_text(draft[name]))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = format_path((name, *first["loc"]))
            raise _Refused(f"after the edits, {place}: {first['msg']}") from error
    if scene_spans(text, [scene["scene_text"] for scene in draft["scenes"]]) is None:
        raise _Refused(
            "after the edits, the scene texts no longer cover the story text in order;"
            " a boundary moves by two edits, and the text itself cannot be edited"
        )
