"""Stage: put the drafted parts together and apply the corrections of people (``edits.jsonl``).

An edit replaces the value at an existing path, such as ``$.questions[1].gold_answer`` or
``$.variants[0].semantic_delta``. What the editor saw there must still be there. The story's text cannot be
edited: correct the source file. Scene texts may be edited only so that the scenes still cover the story.
Ids stay, and so does the number of parts: to add or drop one, hand in a record of your own.

A corrected label is carried over to the parts that repeat it, and to the answers of a moral question that
the planner wrote. One that a person wrote stays as it is; where it no longer fits, the record is marked for
review. A story that had no label gets its moral target, and no moral question: the number of parts stays.
"""

from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json, canonical_text
from ...schemas.katha import Question, Scene, Transition, Variant
from ...schemas.paths import format_path, get_at, parse_path, replace_at
from ...schemas.vocabulary import vocabulary
from .parts import LABELS, LISTS, maker_of, producers
from .planner import Planner, PlannerSettings, planner_of
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
_FIXED = "ids, numbers of scenes, the number of parts and the whole record cannot be edited"
_LABEL_PATHS = tuple((name,) for name in LABELS)
_TYPES: dict[str, TypeAdapter[tuple[object, ...]]] = {
    "scenes": TypeAdapter(tuple[Scene, ...]),
    "transitions": TypeAdapter(tuple[Transition, ...]),
    "questions": TypeAdapter(tuple[Question, ...]),
    "variants": TypeAdapter(tuple[Variant, ...]),
}


class Refused(Exception):
    """An edit cannot be applied; the text says why."""


def run(item: Item, tools: Tools) -> Outcome:
    """Return the draft (title, labels, lists of parts, producers), and its labels by themselves."""
    planner = planner_of(tools)
    draft = {"title": item["story"]["title"], **{name: item[name] for name in (*LABELS, *LISTS)}}
    draft["producers"] = producers(draft, item["story"], item["given"], planner.name)
    try:
        for edit in item["edits"]:
            draft = apply_edit(draft, edit, planner)
        if item["edits"]:
            _check_cover(draft, item["story"]["normalized_text"])
    except Refused as refusal:
        return Failed("bad_edit", str(refusal))
    return Made({"draft": draft, "labels": {name: draft[name] for name in LABELS}})


def apply_edit(draft: Json, edit: Json, planner: Planner) -> Json:
    """Return a draft with one edit applied.

    Args:
        draft: title, labels, lists of parts and their producers, as this stage writes it.
        edit: ``schemas.values.Edit`` as JSON.
        planner: whose moral questions follow a corrected label.

    Raises:
        Refused: the path cannot be edited, the old value is not what stands there, or the new one has
            another type. Whether the scenes still cover the story is not looked at: it takes two edits to
            move a boundary.
    """
    steps = _checked_steps(draft, edit)
    changed = replace_at(draft, edit["path"], edit["new"])
    _check_types(changed, _where(edit))
    if _ids(changed) != _ids(draft):
        raise Refused(f"{_where(edit)}: {_FIXED}")
    made = [*draft["producers"], {"path": format_path(steps), "producer": f"edit:{edit['who']}"}]
    changed = {**changed, "producers": made}
    return _carry_over(changed, str(steps[0]), planner) if steps in _LABEL_PATHS else changed


def _where(edit: Json) -> str:
    return f"edit of {edit['path']} by {edit['who']}"


def _checked_steps(draft: Json, edit: Json) -> tuple[str | int, ...]:
    """Return the steps of an edit's path, once it is clear that it may be applied there."""
    path, where = str(edit["path"]), _where(edit)
    fields = [name for name in sorted(draft) if name != "producers"]
    try:
        steps = parse_path(path)
    except ValueError as error:
        raise Refused(f"{where}: {error}") from error
    if steps[:1] in (("story_text",), ("source_text",), ("text",)):
        raise Refused(f"{where}: the story's text cannot be edited; correct the source file instead")
    if not steps or steps[-1] in _IDS or steps[0] in _IDS:
        raise Refused(f"{where}: {_FIXED}")
    try:
        found = get_at({name: draft[name] for name in fields}, path)
    except LookupError as error:
        raise Refused(f"{where}: nothing is there; the fields are: {', '.join(fields)}") from error
    if found != edit["old"] or type(found) is not type(edit["old"]):
        old, now = canonical_text(edit["old"])[:200], canonical_text(found)[:200]
        raise Refused(
            f"{where}: expected the old value {old}, found {now}; write the edit against the value found"
        )
    return steps


def _ids(draft: Json) -> Json:
    """Return every id and number of the parts, in order."""
    return [[{key: part[key] for key in _IDS & part.keys()} for part in draft[name]] for name in LISTS]


def _carry_over(draft: Json, label: str, planner: Planner) -> Json:
    """Return the draft with the copies of a label that its parts hold changed as well."""
    if label == "narrative_type":
        return {**draft, "variants": [{**variant, label: draft[label]} for variant in draft["variants"]]}
    moral = draft[label]
    place = _moral_place(draft["transitions"])
    transitions = [
        {**transition, "moral_target": moral} if number == place else transition
        for number, transition in enumerate(draft["transitions"])
    ]
    questions = [
        _carried(question, f"$.questions[{number}]", draft, planner)
        for number, question in enumerate(draft["questions"])
    ]
    variants = [{**variant, "original_moral": moral} for variant in draft["variants"]]
    return {**draft, "transitions": transitions, "questions": questions, "variants": variants}


def _moral_place(transitions: Sequence[Json]) -> int:
    """Return which transition is to carry the moral target: the one that does, a moral choice, the last."""
    marked = [n for n, part in enumerate(transitions) if part["moral_target"] is not None]
    choices = [n for n, part in enumerate(transitions) if part["transition_type"] == "moral_choice"]
    return [*marked, *choices, len(transitions) - 1][0]


def _carried(question: Json, path: str, draft: Json, planner: Planner) -> Json:
    """Return a question as it stands, or a moral one of the planner's with the answers of the new label."""
    moral = draft["moral_label"]
    if question["question_type"] != "moral" or moral is None:
        return question
    made = draft["producers"]
    by_hand = {key: question[key] for key in question if maker_of(f"{path}.{key}", made) != planner.name}
    if not by_hand.keys().isdisjoint(("gold_answer", "accepted_answers")):
        return question
    return {**(planner.relabelled(question, moral) or question), **by_hand}


def _check_types(draft: Json, where: str) -> None:
    for name in ("title", *LABELS):
        if not isinstance(draft[name], str) and (draft[name] is not None or name == "title"):
            found = canonical_text(draft[name])[:80]
            raise Refused(f"{where}: expected a string at $.{name}, found {found}")
        if name in LABELS and draft[name] not in (None, *vocabulary(name).values):
            words = ", ".join(vocabulary(name).values)
            raise Refused(f"{where}: expected one of {words} at $.{name}, found {draft[name]!r}")
    for name, adapter in _TYPES.items():
        try:
            adapter.validate_json(canonical_text(draft[name]))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise Refused(f"{where}: {format_path((name, *first['loc']))}: {first['msg']}") from error


def _check_cover(draft: Json, text: str) -> None:
    if scene_spans(text, [scene["scene_text"] for scene in draft["scenes"]]) is None:
        raise Refused(
            "after the edits, the scene texts no longer cover the story text in order;"
            " a boundary moves by two edits, and the text itself cannot be edited"
        )
