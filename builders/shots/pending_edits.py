"""A script while it is corrected: its draft under corrections, what follows from one, what the rules find."""

from collections.abc import Iterator, Mapping, Sequence

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ...schemas.issue import Issue
from ...schemas.paths import Steps
from ...schemas.quoted_paths import quoted_path
from ...schemas.shots import ShotScript
from ...schemas.values import Edit
from ...validators.codes import label, show
from ...validators.shots.plot_rules import check_plot
from ...validators.shots.script_rules import FIELDS, check_script
from ..editing import Consequence, Editing
from ..katha.moved_boundary import neighbour_of_moved
from .apply_edits import Refused, apply_edit
from .cast import base_language
from .draft import editable_form, make_draft
from .official import official_script
from .renaming import Renaming


def draft_with(reads: Mapping[str, Json], edits: Sequence[Edit], tools: Tools) -> Json:
    """Return a script's draft with corrections applied in order; see :mod:`.draft`.

    Whether the plots still are the story is not asked: it takes two corrections to move the end of a shot.

    Args:
        reads: the fields that the stage ``apply_edits`` read of the story, whatever its edits were then.
        edits: all corrections of the story.
        tools: the tools of that stage.

    Raises:
        ValueError: one of them cannot be applied; the text says which and why.
    """
    draft, base = make_draft(reads), _base(reads)
    try:
        for edit in edits:
            draft = apply_edit(draft, edit.as_json(), base)
    except Refused as refusal:
        raise ValueError(str(refusal)) from refusal
    return draft


def _base(reads: Mapping[str, Json]) -> str:
    return base_language(reads["story"]) or "en"


def form_of(reads: Mapping[str, Json], draft: Json) -> Json:
    """Return a draft by the names of ``story.json``, as people see and correct it."""
    return editable_form(draft, _base(reads))


def consequence_of(reads: Mapping[str, Json], draft: Json, steps: Steps, new: Json) -> Consequence:
    """Return what else a usual correction changes.

    What one shot takes of the story, its neighbour gives; a name that changes does so in the texts of its
    language that use it.
    """
    base = _base(reads)
    match steps:
        case ("Shots", int(number), field, language) if (field, language) == (FIELDS["plot"], base):
            moved = neighbour_of_moved(reads["story"]["normalized_text"], draft["plot"], number, new)
            if moved is not None:
                return Consequence({quoted_path(("Shots", moved[0], FIELDS["plot"], base)): moved[1]})
        case ("Characters", str(key), "name_en" | "name_ch" as field):
            return _renamed(editable_form(draft, base), key, str(field), new, base)
    return Consequence({})


def _renamed(form: Json, key: str, field: str, new: str, base: str) -> Consequence:
    before, language = form["Characters"][key][field], field.removeprefix("name_")
    if not before or before == new:
        return Consequence({})
    others = (sheet[field] for other, sheet in form["Characters"].items() if other != key)
    renaming = Renaming(before, new, tuple(filter(None, others)))
    texts = {path: text for path, text in _texts(form, language) if text}
    changed = {path: renaming(text) for path, text in texts.items() if renaming(text) != text}
    plots = {quoted_path(("Shots", n, FIELDS["plot"], base)) for n in range(len(form["Shots"]))}
    kept = sorted(plots & changed.keys())
    notes = [
        f"The plots are the story's own words, so {show(before)} stays in {len(kept)} of them, such as"
        f" {path}. To change the story itself, correct its source."
        for path in kept[:1]
    ]
    return Consequence({path: text for path, text in changed.items() if path not in plots}, tuple(notes))


def _texts(form: Json, language: str) -> Iterator[tuple[str, str | None]]:
    """Yield path and text of everything in a language that may name a character."""
    for key, sheet in form["Characters"].items():
        yield quoted_path(("Characters", key, f"prompt_{language}")), sheet[f"prompt_{language}"]
    for number, shot in enumerate(form["Shots"]):
        for name in (FIELDS["plot"], FIELDS["setting"], FIELDS["static"]):
            yield quoted_path(("Shots", number, name, language)), shot[name][language]


def issues_in(reads: Mapping[str, Json], draft: Json) -> list[Issue]:
    """Return what the rules about one script find in the one that a draft makes.

    A translation that will be asked for again counts as it was before: nobody knows the new one yet.
    """
    base, where = _base(reads), label(reads["story"]["id"])
    first = {**reads["named"], **reads["translation"]}
    other = {part: texts.copy() for part, texts in draft["other"].items()}
    for part, place in draft["stale"]:
        other[part][place] = first[part][place]
    present = {key for keys in draft["onstage"] for key in keys}
    cast = [one for one in draft["cast"] if one["key"] in present]
    made = official_script(base, {**draft, "other": other}, cast, draft["labels"]["story_type"])
    script = ShotScript.model_validate(made)
    return [*check_script(script, where), *check_plot(script, reads["story"]["normalized_text"], base, where)]


EDITING = Editing(draft_with, form_of, consequence_of, issues_in)
