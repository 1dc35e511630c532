"""A story while it is corrected: its draft under corrections, what follows from one, what the rules find."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...engine.stage import Item, Made, Tools
from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import Steps, format_path, value_at
from ...schemas.text import normalize_answer
from ...schemas.values import Issue
from ...validators.record_rules import check_story, missing_fields
from ...validators.report import label, show
from ..drafting import Consequence, Editing
from ..text.boundaries import neighbour_of_moved, scene_spans, with_scene
from ..text.words import Renaming
from . import apply_edits
from .drafts import IDS, by_person, make_bundle, maker_of, told_story


def first_draft(reads: Mapping[str, Json], tools: Tools) -> Json:
    """Return a story's draft without any correction, whatever its edits were."""
    outcome = apply_edits.run(Item("", {**reads, "edits": []}), tools)
    assert isinstance(outcome, Made)  # only edits can make the stage fail
    return outcome.fields["draft"]


def with_edit(reads: Mapping[str, Json], draft: Json, edit: Json) -> Json:
    """Return a draft with a correction; see :func:`.apply_edits.apply_edit`."""
    return apply_edits.apply_edit(draft, edit, told_story(reads))


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
