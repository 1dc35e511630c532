"""Corrections of a run's records, and withdrawals: added to ``edits.jsonl`` for the next build or retry."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..engine.edits import NAME as EDITS
from ..engine.edits import WHOLE, append_edits, edits_of, is_withdrawal
from ..engine.lock import keep_private
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, Stage, load_pipeline
from ..engine.stage import Tools
from ..engine.status import show_item
from ..engine.survey import surveyed
from ..engine.walk import LazyItems
from ..errors import ConfigError, RunError
from ..schemas.canonical import Json
from ..schemas.paths import parse_quoted, value_at
from ..schemas.plain_files import reason_of
from ..schemas.text import quoted
from ..schemas.values import Edit, Issue
from .drafting import Consequence, Editing


@dataclass(frozen=True, slots=True)
class Editable:
    """A run whose items can be corrected, and how."""

    folder: Path  # the run folder
    pipeline: Pipeline  # its pipeline
    editing: Editing  # how its items are corrected


LONGEST_NAME = 100
"""Characters of the name of who corrects something."""
LONGEST_REASON = 500
"""Characters of the reason why an item was withdrawn."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What was added to a run's corrections, and what the rules say of the record as it will then stand."""

    edit: Edit  # the correction that was asked for
    also: tuple[Edit, ...] = ()  # those that go with it, such as a new gold answer among the accepted ones
    notes: tuple[str, ...] = ()  # what a person may want to do besides
    # what the rules find in the corrected record: every error, and warnings that are new
    issues: tuple[Issue, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON: the fields of the correction that was asked for, and the rest."""
        return {
            **self.edit.as_json(),
            "also": [edit.as_json() for edit in self.also],
            "notes": list(self.notes),
            "issues": [issue.as_dict() for issue in self.issues],
        }


def correct(run: Editable, item: str, path: str, new: Json, *, who: str, why: str) -> Correction:
    """Add a correction of one field of an item's draft to a run; the next build or retry applies it.

    The old value that it names is the one that stands there once the corrections that still wait are applied.
    What usually goes with it is added as well. A record that breaks a rule by it is no reason to refuse it:
    that may take another correction.
    """
    asked = signed(item, path, new, who, why)
    made: list[Correction] = []

    def compose() -> tuple[Edit, ...]:
        made.append(_composed(run, asked))
        return (made[-1].edit, *made[-1].also)

    _append(run, compose)
    return made[-1]


def withdraw(run: Editable, item: str, *, who: str, why: str) -> Correction:
    """Take an item out of what a run makes, for good; the next build or retry applies it.

    The item keeps its place in the splits and among the near-duplicates, so nothing moves for the others, and
    its id is not used again.
    """
    edit = signed(item, WHOLE, None, who, why)
    if not why.isprintable() or len(why) > LONGEST_REASON:
        text = f"{len(why)} characters" if why.isprintable() else "line ends or control characters"
        expected = f"one line of at most {LONGEST_REASON} characters"
        raise ConfigError("--why", expected=expected, found=text, fix="a release publishes it: shorten it")
    show_item(run.folder, run.pipeline, item)

    def compose() -> tuple[Edit, ...]:
        _refuse_withdrawn(run.folder, item)
        return (edit,)

    _append(run, compose)
    return Correction(edit)


def _append(run: Editable, compose: Callable[[], Sequence[Edit]]) -> None:
    append_edits(run.folder, compose)
    if run.pipeline.private:
        keep_private(run.folder)


def signed(item: str, path: str, new: Json, who: str, why: str) -> Edit:
    """Return a correction, refused where nobody says who makes it and why."""
    for option, value in (("--who", who), ("--why", why)):
        if not value.strip():
            says = "who makes the correction" if option == "--who" else "the reason for it"
            fix = "give both, as --who ana --why 'a reason'"
            raise ConfigError(option, what=f"{says} is missing", fix=fix)
    if not who.isprintable() or len(who) > LONGEST_NAME:
        expected = f"a name in one line, of at most {LONGEST_NAME} characters"
        raise ConfigError("--who", expected=expected, found=repr(who[:LONGEST_NAME]), fix="shorten it")
    try:
        return Edit(id=item, path=path, old=None, new=new, who=who, why=why)
    except ValidationError as error:
        raise ConfigError("fabula edit", what=reason_of(error), fix="correct it") from error


def _refuse_withdrawn(run: Path, item: str) -> None:
    gone = next(filter(is_withdrawal, edits_of(run, item)), None)
    if gone is not None:
        raise ConfigError(
            f"{run}: {item}", what=f"this item was withdrawn by {gone.who}: {gone.why}",
            fix="nothing is left to correct; the id of a withdrawn item is never used again",
        )  # fmt: skip


def _composed(run: Editable, asked: Edit) -> Correction:
    """Return a correction with the value that it replaces and all that goes with it."""
    _refuse_withdrawn(run.folder, asked.id)
    if asked.path == WHOLE:
        raise ConfigError(
            f"{asked.id} {asked.path}",
            what="the path names the whole record, and only fields can be corrected",
            fix="edit field by field, or withdraw the record with --withdraw",
        )
    item = item_of(run, asked.id)
    waiting = edits_of(run.folder, asked.id)
    try:
        before = item.draft(waiting)
    except ValueError as error:
        raise RunError(
            f"{run.folder / EDITS}: {asked.id}", what=f"this correction cannot be applied: {error}",
            fix="correct or remove that line",
        ) from error  # fmt: skip
    try:
        with suppress(LookupError):  # where nothing is, the builder says what there is
            asked = asked.model_copy(update={"old": item.value(before, asked.path)})
        item.draft((*waiting, asked))
    except ValueError as error:
        raise ConfigError(
            f"{asked.id} {asked.path}", what=f"this correction cannot be applied: {error}",
            fix=f"look at the draft with: fabula run show {quoted(run.folder)} {asked.id}",
        ) from error  # fmt: skip
    rows, notes = item.followed(before, asked, waiting)
    issues = item.new_issues(before, item.draft((*waiting, *rows)))
    return Correction(asked, tuple(rows[1:]), notes, issues)


@dataclass(frozen=True, slots=True)
class ItemDraft:
    """One item of a run, as its journal holds it, and how its kind is corrected."""

    editing: Editing  # how
    reads: Mapping[str, Json]  # the fields that the editing stage read of it
    tools: Tools | None  # the tools of that stage; None where only a draft that is known is corrected

    def draft(self, edits: Sequence[Edit]) -> Json:
        """Return the draft with corrections; a ValueError says which of them cannot be applied."""
        assert self.tools is not None
        return self.editing.draft(self.reads, edits, self.tools)

    def apply(self, draft: Json, edit: Edit) -> Json:
        """Return a draft with one more correction; a ValueError says why it cannot be applied."""
        return self.editing.apply(self.reads, draft, edit.as_json())

    def value(self, draft: Json, path: str) -> Json:
        """Return what stands at a path of a draft; a LookupError where nothing does."""
        return value_at(self.editing.form(self.reads, draft), parse_quoted(path))

    def issues(self, draft: Json) -> list[Issue]:
        """Return what the rules find in the record that a draft makes."""
        return self.editing.issues(self.reads, draft)

    def new_issues(self, before: Json, after: Json) -> tuple[Issue, ...]:
        """Return what the rules find in a corrected draft: every error, and warnings that are new."""
        known = self.issues(before)
        return tuple(issue for issue in self.issues(after) if issue.level == "error" or issue not in known)

    def follows(self, draft: Json, edit: Edit) -> Consequence:
        """Return what a correction of a draft asks for in other fields."""
        return self.editing.consequence(self.reads, draft, parse_quoted(edit.path), edit.new)

    def followed(
        self, before: Json, asked: Edit, waiting: Sequence[Edit]
    ) -> tuple[list[Edit], tuple[str, ...]]:
        """Return a correction with those that go with it, each against what then stands there, and notes."""
        follows = self.follows(before, asked)
        rows = [asked]
        for path, new in follows.values.items():
            old = self.value(self.draft((*waiting, *rows)), path)
            if old != new:
                rows.append(also(asked, path, old, new))
        return rows, follows.notes


def also(asked: Edit, path: str, old: Json, new: Json) -> Edit:
    """Return the correction of another field that goes with one."""
    changed = {"path": path, "old": old, "new": new, "why": f"goes with {asked.path}: {asked.why}"}
    return asked.model_copy(update=changed)


def item_of(run: Editable, item: str) -> ItemDraft:
    """Return what is needed to see an item's draft under corrections, from what the run's journal holds."""
    stage, tools = _editing_stage(run)
    shown = show_item(run.folder, run.pipeline, item)
    view = next(view for view in shown.stages if view.name == stage.name)
    if view.reads.keys() != set(stage.spec.reads):
        last = next(view for view in shown.stages if view.status != "made")
        raise RunError(
            f"{run.folder}: item {item}",
            what=f"the item has no draft to correct: {last.status} in {last.name}"
            + (f" ({last.reason})" if last.reason else ""),
            fix=f"finish the run first: fabula run retry {quoted(run.folder)}",
        )
    return ItemDraft(run.editing, dict(view.reads), tools)


def items_of(run: Editable, ids: Collection[str]) -> dict[str, ItemDraft]:
    """Return :func:`item_of` many items in one walk through the run; those without a draft are left out."""
    stage, tools = _editing_stage(run)
    fields = stage.spec.reads
    with surveyed(run.folder, run.pipeline, keep=fields) as survey:
        columns = survey.kept.columns
        there = [item for item in sorted(ids) if all(item in columns.get(name, ()) for name in fields)]
        return {
            item.id: ItemDraft(run.editing, dict(item.fields), tools)
            for item in LazyItems(survey.kept, survey.journal, there, fields)
        }


def _editing_stage(run: Editable) -> tuple[Stage, Tools]:
    """Return the stage that applies corrections, and its tools."""
    manifest, loaded = read_manifest(run.folder), load_pipeline(run.pipeline)
    config = manifest.config(loaded)
    stage = next(stage for stage in loaded.stages if "edits" in stage.spec.reads)
    return stage, Tools(config.stages[stage.name], manifest.created_at, config.run.seed)
