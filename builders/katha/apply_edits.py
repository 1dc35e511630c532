"""Stage: put the drafted parts together and apply the corrections of people (``edits.jsonl``).

An edit replaces the value at an existing path, such as ``$.questions[1].gold_answer`` or
``$.variants[0].semantic_delta``. What the editor saw there must still be there. The story's text cannot be
edited: correct the source file. Scene texts may be edited only so that the scenes still cover the story.
Ids stay, and so does the number of parts: to add or drop one, hand in a record of your own.

A corrected label is carried over to the parts that repeat it, and by rules to the answers of a moral
question that was drafted in English. One that a person wrote, or in another language, stays as it is; where
it no longer fits, the record is marked for review. A story that had no label gets its moral target, and no
moral question: the number of parts stays.

The prompts for the picture of a corrected scene are made anew, but for those that a person wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import Steps, format_path, get_at, parse_path, replace_at, value_at
from ...schemas.text import normalize_answer, primary_language
from ...schemas.values import Issue, vocabulary
from ...validators.katha.scene_rules import check_story, missing_fields
from ...validators.report import label, show
from ..drafting import Consequence, Editing, Refused
from ..step import RULES
from ..text.boundaries import neighbour_of_moved, scene_spans, with_scene
from ..text.segments import Renaming
from .draft_scenes import looks_in, with_prompts
from .drafts import (
    GROWN,
    IDS,
    LABELS,
    LISTS,
    NARRATIVE,
    PARTS,
    REPAIRS,
    by_person,
    ids_of,
    make_bundle,
    make_draft,
    maker_of,
    told_story,
    type_problem,
    with_answers,
    with_repairs,
)
from .write_questions import relabelled

SPEC = StageSpec(
    name="apply_edits",
    version=5,
    shape="map",
    reads=("story", *NARRATIVE, "given", "edits", *PARTS, *REPAIRS, *GROWN),
    writes=("draft", "labels"),
)

_FIXED = "ids, numbers of scenes, the number of parts and the whole record cannot be edited"
_LABEL_PATHS = tuple((name,) for name in LABELS)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the draft (title, labels, lists of parts, producers), and its labels by themselves."""
    story = told_story(item.fields)
    draft = with_repairs(make_draft(item.fields), item["repaired"], item["repaired_by"])
    draft = with_answers(draft, item["grown"], item["answer_history"])
    try:
        for edit in item["edits"]:
            draft = apply_edit(draft, edit, story)
        if item["edits"]:
            _check_cover(draft, story["normalized_text"])
    except Refused as refusal:
        return Failed("bad_edit", str(refusal))
    return Made({"draft": draft, "labels": {name: draft[name] for name in LABELS}})


def apply_edit(draft: Json, edit: Json, story: Json) -> Json:
    steps = _checked_steps(draft, edit)
    changed = replace_at(draft, edit["path"], edit["new"])
    _check_types(changed, _where(edit))
    if ids_of(changed) != ids_of(draft):
        raise Refused(f"{_where(edit)}: {_FIXED}")
    made = [*draft["producers"], {"path": format_path(steps), "producer": f"edit:{edit['who']}"}]
    changed = {**changed, "producers": made}
    if steps in _LABEL_PATHS:
        return _carry_over(changed, str(steps[0]), story)
    return _with_new_prompts(changed, steps, story)


def _with_new_prompts(draft: Json, steps: Steps, story: Json) -> Json:
    """Return the draft with the drafted prompts of a corrected scene, or of all with another title, anew."""
    numbers = range(len(draft["scenes"])) if steps == ("title",) else steps[1:2] * (steps[0] == "scenes")
    scenes, made, looks = list(draft["scenes"]), list(draft["producers"]), looks_in(draft["scenes"])
    for number in map(int, numbers):
        now = with_prompts(scenes[number], {**story, "title": draft["title"]}, len(scenes), looks)
        for name in ("generation_prompt", "generation_prompt_long"):
            path = f"$.scenes[{number}].{name}"
            maker = maker_of(path, draft["producers"])
            if now[name] != scenes[number].get(name) and not by_person(maker):
                scenes[number] = {**scenes[number], name: now[name]}
                made += [] if maker == RULES else [{"path": path, "producer": RULES}]
    return {**draft, "scenes": scenes, "producers": made}


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
    if not steps or steps[-1] in IDS or steps[0] in IDS:
        raise Refused(f"{where}: {_FIXED}")
    try:
        found = get_at({name: draft[name] for name in fields}, path)
    except LookupError as error:
        raise Refused(f"{where}: {error}") from error
    if found != edit["old"] or type(found) is not type(edit["old"]):
        old, now = canonical_text(edit["old"])[:200], canonical_text(found)[:200]
        raise Refused(
            f"{where}: expected the old value {old}, found {now}; write the edit against the value found"
        )
    return steps


def _carry_over(draft: Json, label: str, story: Json) -> Json:
    """Return the draft with the copies of a label that its parts hold changed as well."""
    if label == "narrative_type":
        return {**draft, "variants": [{**variant, label: draft[label]} for variant in draft["variants"]]}
    moral = draft[label]
    place = _moral_place(draft["transitions"])
    transitions = [
        {**transition, "moral_target": moral} if number == place else transition
        for number, transition in enumerate(draft["transitions"])
    ]
    english = primary_language(story["language"]) == "en"
    questions = [
        _carried(question, f"$.questions[{number}]", draft) if english else question
        for number, question in enumerate(draft["questions"])
    ]
    variants = [{**variant, "original_moral": moral} for variant in draft["variants"]]
    made = [*draft["producers"], *_reworded(draft, questions)]
    lists = {"transitions": transitions, "questions": questions, "variants": variants}
    return {**draft, **lists, "producers": made}


def _moral_place(transitions: Sequence[Json]) -> int:
    """Return which transition is to carry the moral target: the one that does, a moral choice, the last."""
    marked = [n for n, part in enumerate(transitions) if part["moral_target"] is not None]
    choices = [n for n, part in enumerate(transitions) if part["transition_type"] == "moral_choice"]
    return [*marked, *choices, len(transitions) - 1][0]


def _carried(question: Json, path: str, draft: Json) -> Json:
    """Return a question as it stands, or a moral one that was drafted with the answers of the new label."""
    moral = draft["moral_label"]
    if question["question_type"] != "moral" or moral is None:
        return question
    made = draft["producers"]
    by_hand = {key: question[key] for key in question if by_person(maker_of(f"{path}.{key}", made))}
    if not by_hand.keys().isdisjoint(("gold_answer", "accepted_answers")):
        return question
    return {**(relabelled(question, moral) or question), **by_hand}


def _reworded(draft: Json, questions: Sequence[Json]) -> Iterator[Json]:
    """Yield who made the fields of questions that the rules worded anew and somebody else had made."""
    for number, (old, new) in enumerate(zip(draft["questions"], questions, strict=True)):
        for key in (key for key in sorted(new) if new[key] != old[key]):
            path = f"$.questions[{number}].{key}"
            if maker_of(path, draft["producers"]) != RULES:
                yield {"path": path, "producer": RULES}


def _check_types(draft: Json, where: str) -> None:
    for name in ("title", *LABELS):
        if not isinstance(draft[name], str) and (draft[name] is not None or name == "title"):
            found = canonical_text(draft[name])[:80]
            raise Refused(f"{where}: expected a string at $.{name}, found {found}")
        if name in LABELS and draft[name] not in (None, *vocabulary(name).values):
            words = ", ".join(vocabulary(name).values)
            raise Refused(f"{where}: expected one of {words} at $.{name}, found {draft[name]!r}")
    for name in LISTS:
        problem = type_problem(name, draft[name])
        if problem is not None:
            raise Refused(f"{where}: {problem}")


def _check_cover(draft: Json, text: str) -> None:
    if scene_spans(text, [scene["scene_text"] for scene in draft["scenes"]]) is None:
        raise Refused(
            "after the edits, the scene texts no longer cover the story text in order;"
            " a boundary moves by two edits, and the text itself cannot be edited"
        )


# -- A story while it is corrected: its draft under corrections, what follows from one, what the rules find


def first_draft(reads: Mapping[str, Json], tools: Tools) -> Json:
    """Return a story's draft without any correction, whatever its edits were."""
    outcome = run(Item("", {**reads, "edits": []}), tools)
    assert isinstance(outcome, Made)  # only edits can make the stage fail
    return outcome.fields["draft"]


def with_edit(reads: Mapping[str, Json], draft: Json, edit: Json) -> Json:
    """Return a draft with a correction; see :func:`.apply_edits.apply_edit`."""
    return apply_edit(draft, edit, told_story(reads))


def consequence_of(reads: Mapping[str, Json], draft: Json, steps: Steps, new: Json) -> Consequence:
    """Return what else a usual correction changes.

    A gold answer is accepted; what one scene takes, its neighbour gives; a changed scene and the contrastive
    story around it agree; one transition carries the moral target; a name or an action that changes does so
    wherever it is said. Labels need nothing: the stage itself carries them over.
    """
    text = told_story(reads)["normalized_text"]
    match steps:
        case ("questions", int(number), "gold_answer"):
            return _accepted(draft["questions"][number], number, new)
        case ("scenes", int(number), "scene_text"):
            moved = neighbour_of_moved(text, _texts(draft), number, new)
            return Consequence({} if moved is None else {f"$.scenes[{moved[0]}].scene_text": moved[1]})
        case ("variants", int(number), "contrastive_scene_text" | "contrastive_story_text" as field):
            return _contrast(draft, text, number, str(field), new)
        case ("transitions", int(number), "moral_target") if new is not None:
            others = (n for n, part in enumerate(draft["transitions"]) if part["moral_target"] is not None)
            return Consequence({f"$.transitions[{n}].moral_target": None for n in others if n != number})
        case ("scenes", int(), "characters" | "objects" | "action", *_):
            return _copies(draft, steps, new)
    return Consequence({})


_OWN_WORDS = frozenset(("scene_text", "contrastive_scene_text", "contrastive_story_text"))
"""Fields with the story's own words, or with the story as a variant tells it."""
_SAID = ("scenes", "transitions", "questions", "variants")
"""Parts of a draft that may say a name or an action again."""


def _copies(draft: Json, steps: Steps, new: Json) -> Consequence:
    """Return what says again what a field of a scene said until now: a name or an action that changes.

    A name that the draft has already is another one's: then nothing is changed, and every place is told.
    """
    before, place = value_at(draft, steps), format_path(steps)
    names = {name for scene in draft["scenes"] for name in (*scene["characters"], *scene["objects"])}
    was, now = (value if isinstance(value, list) else [value] for value in (before, new))
    gone, come = ([text for text in one if text not in other] for one, other in ((was, now), (now, was)))
    fresh = [text for text in come if text not in names] or come
    if not (len(gone) == len(fresh) == 1 and all(isinstance(text, str) and text for text in (*gone, *fresh))):
        return Consequence({})
    renaming = Renaming(gone[0], fresh[0], sorted(names))
    values: dict[str, Json] = {}
    left: list[str] = []
    for path, value in _said(draft):
        after = [renaming(text) for text in value] if isinstance(value, list) else renaming(value)
        if after == value or path == place or place.startswith(f"{path}["):
            continue
        if path.rpartition(".")[2] in _OWN_WORDS or fresh[0] in names:
            left.append(path)
        elif not path.endswith(_PROMPTS) or by_person(maker_of(path, draft["producers"])):
            values[path] = after  # a prompt that was drafted is made anew with its scene
    theirs = f"{show(fresh[0])} is somebody or something else there"
    why = theirs if fresh[0] in names else "they are the story's own words"
    notes = [f"These still say {show(gone[0])}, because {why}: {', '.join(left)}."] if left else []
    return Consequence(values, tuple(notes))


_PROMPTS = ("generation_prompt", "generation_prompt_long")


def _said(draft: Json) -> Iterator[tuple[str, Json]]:
    """Yield path and value of every text, and list of texts, of a draft's parts."""
    for part in _SAID:
        for number, fields in enumerate(draft[part]):
            for name, value in fields.items():
                texts = value if isinstance(value, list) else [value]
                if texts and name not in IDS and all(isinstance(text, str) for text in texts):
                    yield f"$.{part}[{number}].{name}", value


def _texts(draft: Json) -> list[str]:
    return [scene["scene_text"] for scene in draft["scenes"]]


def _accepted(question: Json, number: int, new: str) -> Consequence:
    accepted, path = question["accepted_answers"], f"$.questions[{number}].accepted_answers"
    if normalize_answer(new) in map(normalize_answer, accepted):
        return Consequence({})
    before = question["gold_answer"]
    left = [answer for answer in accepted if normalize_answer(answer) != normalize_answer(before)]
    notes = (
        f"The answer until now, {show(before)}, is still accepted. If it is wrong, correct {path} to"
        f" {canonical_text([new, *left])}.",
    )
    return Consequence({path: [new, *accepted]}, notes if len(left) < len(accepted) else ())


def _contrast(draft: Json, text: str, number: int, field: str, new: str) -> Consequence:
    """Return the other one of a variant's two texts: the changed scene, or the whole story with it."""
    spans = scene_spans(text, _texts(draft))
    scene = draft["variants"][number]["changed_scene_id"]
    if spans is None or not 1 <= scene <= len(spans):
        return Consequence({})
    start, end = span = spans[scene - 1]
    path = f"$.variants[{number}]."
    if field == "contrastive_scene_text":
        return Consequence({f"{path}contrastive_story_text": with_scene(text, span, new)})
    changed = new[start : len(new) - (len(text) - end)].strip()
    if changed and new.startswith(text[:start]) and new.endswith(text[end:]):
        return Consequence({f"{path}contrastive_scene_text": changed})
    return Consequence({})


def issues_in(reads: Mapping[str, Json], draft: Json) -> list[Issue]:
    """Return what the rules find in the record that a draft makes; each missing field is one of its own."""
    # Split, time and licence come later; the rules need some value there.
    bundle = make_bundle(told_story(reads), draft, (), "train", "1970-01-01T00:00:00Z", "CC-BY-4.0")
    places = {label(part["variant_id"]): f"$.variants[{n}]" for n, part in enumerate(draft["variants"])}
    story = label(told_story(reads)["id"])
    return [
        replace(found, where=story, path=path, message=message)
        for found in check_story(bundle["record"], bundle["variants"])
        for path, message in (
            [(missing, "missing") for missing in missing_fields(bundle["record"], bundle["variants"])]
            if found.code == "incomplete"
            else [(places.get(found.where, "$") + found.path[1:], found.message)]
        )
    ]


def form_of(reads: Mapping[str, Json], draft: Json) -> Json:
    """Return the draft as people see and correct it."""
    return draft


EDITING = Editing(first_draft, with_edit, form_of, consequence_of, issues_in)
