"""A file of corrections that a review exports: checked whole, then added to a run, or not at all.

Its first line says what was reviewed; each other line is a correction with the value that reviewers saw. That
is compared with what stands in the run now. What goes with a correction is added as well, unless the file
says itself what is to stand there.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ..engine.edits import NAME as EDITS
from ..engine.edits import WHOLE, append_edits, edit_lines, edits_of, is_withdrawal, parse_edits, read_edits
from ..engine.lock import keep_private
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, Stage, load_pipeline
from ..engine.stage import Tools
from ..engine.status import show_item
from ..engine.survey import surveyed
from ..engine.walk import LazyItems
from ..errors import ConfigError, InputError, RunError, UserError
from ..schemas.canonical import Json, canonical_text
from ..schemas.paths import parse_quoted, value_at
from ..schemas.plain_files import parse_json, reason_of, type_reason
from ..schemas.text import quoted
from ..schemas.values import Edit, Issue, Own
from ..validators.report import SIMULATED, is_simulated
from .drafting import Consequence, Editing

# -- Corrections of a run's records, and withdrawals: added to ``edits.jsonl`` for the next build or retry


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
    plan = _Plan()
    try:
        with suppress(LookupError):  # where nothing is, the builder says what there is
            asked = asked.model_copy(update={"old": item.value(before, asked.path)})
        item.draft((*waiting, asked))
        after = _corrected(item, (before, before), asked, {asked.path}, plan)
    except (ValueError, LookupError) as error:
        raise ConfigError(
            f"{asked.id} {asked.path}", what=f"this correction cannot be applied: {error}",
            fix=f"look at the draft with: fabula run show {quoted(run.folder)} {asked.id}",
        ) from error  # fmt: skip
    return Correction(asked, tuple(plan.also), tuple(plan.notes), item.new_issues(before, after))


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


# --

_AGAIN = "export the review again, or correct the line"


class EditHeader(Own):
    """The first line of a file of corrections: what was reviewed, and how."""

    format: Literal[1] = Field(description="Version of this form.")
    release: str | None = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the release reviewed.")
    run: str | None = Field(max_length=200, description="Id of the run reviewed.")
    protocol: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the protocol of the review."
    )
    simulated: bool = Field(description="Whether programs took part in the review.")


@dataclass(frozen=True, slots=True)
class EditFile:
    """A file of corrections that was read."""

    path: Path  # where it is
    header: EditHeader  # what was reviewed
    # number of a line, and its correction; those of programs are marked in ``who``
    rows: Sequence[tuple[int, Edit]]

    @property
    def ids(self) -> set[str]:
        """The items that it corrects."""
        return {edit.id for _, edit in self.rows}

    @property
    def simulated(self) -> bool:
        """Whether programs made corrections of it."""
        return any(is_simulated(edit.who) for _, edit in self.rows)

    def where(self, number: int) -> str:
        """Return how errors name a line."""
        return f"{self.path}:{number}"


def read_edit_file(path: Path) -> EditFile:
    """Read a file of corrections.

    Where programs took part in the review, who made each correction begins with ``simulated-`` from here on:
    so the producer of the corrected field says it, in the run and in every release.
    """
    (first, line), *rest = edit_lines(path) or [(1, b"")]
    try:
        header = EditHeader.model_validate(parse_json(line), strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        fault = f"{'.'.join(map(str, wrong['loc'])) or 'the line'}: {type_reason(wrong)}"
        raise InputError([_no_header(path, first, fault)]) from error
    except ValueError as error:
        raise InputError([_no_header(path, first, str(error))]) from error
    rows, problems = parse_edits(path, rest)
    for number, edit in rows:
        problems += [UserError(f"{path}:{number}", what=what, fix=_AGAIN) for what in _unsigned(edit)]
    if problems:
        raise InputError(problems)
    return EditFile(path, header, [(number, _marked(edit, header)) for number, edit in rows])


def _no_header(path: Path, number: int, fault: str) -> UserError:
    return UserError(
        f"{path}:{number}",
        what="the first line does not say what was reviewed (format, release, run, protocol, simulated): "
        f"{fault}",
        fix="give the edits.jsonl that a review exports; single corrections are made with fabula edit RUN ID",
    )  # fmt: skip


def _unsigned(edit: Edit) -> Iterator[str]:
    """Yield what is wrong with who made a correction, and why."""
    if not edit.who.strip() or not edit.who.isprintable() or len(edit.who) > LONGEST_NAME:
        yield f"who is no name in one line, of at most {LONGEST_NAME} characters"
    if not edit.why.strip():
        yield "why is empty"
    if is_withdrawal(edit) and (not edit.why.isprintable() or len(edit.why) > LONGEST_REASON):
        yield f"why is not one line of at most {LONGEST_REASON} characters, and a release publishes it"


def _marked(edit: Edit, header: EditHeader) -> Edit:
    if is_withdrawal(edit):  # a withdrawal replaces the whole record, whatever stands in it
        edit = edit.model_copy(update={"old": None})
    if not header.simulated or is_simulated(edit.who):
        return edit
    return edit.model_copy(update={"who": f"{SIMULATED}{edit.who}"[:LONGEST_NAME]})


@dataclass(frozen=True, slots=True)
class AppliedFile:
    """What came of a file of corrections."""

    file: EditFile  # the file
    added: tuple[Edit, ...] = ()  # the corrections that were added, or would be
    also: tuple[Edit, ...] = ()  # those that go with them
    known: int = 0  # how many of the file the run had already
    notes: tuple[str, ...] = ()  # what a person may want to do besides
    # what the rules find in the corrected records: every error, and warnings that are new
    issues: tuple[Issue, ...] = ()
    dry_run: bool = False  # whether nothing was written

    def as_json(self) -> dict[str, Json]:
        return {
            "file": str(self.file.path),
            "header": self.file.header.as_json(),
            "simulated": self.file.simulated,
            "dry_run": self.dry_run,
            "added": [edit.as_json() for edit in self.added],
            "also": [edit.as_json() for edit in self.also],
            "known": self.known,
            "notes": list(self.notes),
            "issues": [issue.as_dict() for issue in self.issues],
        }


@dataclass
class _Plan:
    """What a file asks for, gathered item by item."""

    rows: list[Edit] = field(default_factory=list)
    added: list[Edit] = field(default_factory=list)
    also: list[Edit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)


def apply_file(
    run: Editable, file: EditFile, *, dry_run: bool = False, notes: Collection[str] = (), again: bool = False
) -> AppliedFile:
    """Add the corrections of a file to a run, all or none; the next build or retry applies them.

    What the run has already, with the same new value, name and reason, is not added again: a file that is
    applied a second time adds nothing. ``again``: whether it is added all the same, as by somebody who
    changes a value, changes it back, and changes it once more.
    """
    made: list[AppliedFile] = []

    def compose() -> tuple[Edit, ...]:
        path = run.folder / EDITS
        known = Counter(map(_said, read_edits(path) if path.exists() and not again else ()))
        fresh = [(number, edit) for number, edit in file.rows if not _had(known, edit)]
        plan = _planned(run, file, fresh)
        if plan.problems:
            raise InputError(plan.problems)
        made.append(
            AppliedFile(
                file, tuple(plan.added), tuple(plan.also), len(file.rows) - len(fresh),
                (*notes, *plan.notes) if fresh else (), tuple(plan.issues), dry_run,
            )
        )  # fmt: skip
        return tuple(plan.rows)

    if dry_run:
        compose()
    else:
        _append(run, compose)
    return made[-1]


def _said(edit: Edit) -> tuple[str, ...]:
    """Return what tells whether a run has a correction: all but the old value, which is that of its turn."""
    return (edit.id, edit.path, canonical_text(edit.new), edit.who, edit.why)


def _had(known: Counter[tuple[str, ...]], edit: Edit) -> bool:
    had = known[_said(edit)] > 0
    known[_said(edit)] -= had
    return had


def _planned(run: Editable, file: EditFile, fresh: Sequence[tuple[int, Edit]]) -> _Plan:
    plan = _Plan()
    by_item: dict[str, list[tuple[int, Edit]]] = {}
    for number, edit in fresh:
        by_item.setdefault(edit.id, []).append((number, edit))
    drafts = items_of(run, by_item) if by_item else {}
    path = run.folder / EDITS
    waiting: dict[str, list[Edit]] = {}
    for edit in read_edits(path) if path.exists() else ():
        waiting.setdefault(edit.id, []).append(edit)
    for item, rows in by_item.items():
        before = len(plan.notes)
        _plan_item(_Item(run, file, item, drafts.get(item), waiting.get(item, [])), rows, plan)
        plan.notes[before:] = [f"{item}: {note}" for note in plan.notes[before:]]
    return plan


@dataclass(frozen=True, slots=True)
class _Item:
    """One item that a file corrects: its draft, None where there is none, and the corrections that it has."""

    run: Editable
    file: EditFile
    id: str
    draft: ItemDraft | None
    waiting: Sequence[Edit]

    def problem(self, number: int, what: str, fix: str = "") -> UserError:
        look = f"look at the draft with: fabula run show {quoted(self.run.folder)} {self.id}"
        return UserError(self.file.where(number), what=f"{self.id}: {what}", fix=fix or look)


def _plan_item(item: _Item, rows: Sequence[tuple[int, Edit]], plan: _Plan) -> None:
    """Take what a file asks of one item into the plan, or what is wrong with it."""
    gone = next(filter(is_withdrawal, item.waiting), None)
    if gone is not None:
        what = f"this item was withdrawn by {gone.who}: {gone.why}"
        fix = "remove its lines; the id of a withdrawn item is never used again"
        plan.problems += [item.problem(number, what, fix) for number, _ in rows]
        return
    if item.draft is None:
        try:
            draft = item_of(item.run, item.id)
        except UserError as error:
            plan.problems += [item.problem(number, error.what, error.fix) for number, _ in rows]
            return
        item = _Item(item.run, item.file, item.id, draft, item.waiting)
    _plan_draft(item, rows, plan)


def _plan_draft(item: _Item, rows: Sequence[tuple[int, Edit]], plan: _Plan) -> None:
    assert item.draft is not None
    try:
        before = now = item.draft.draft(item.waiting)
    except ValueError as error:
        what = f"a correction that the run has cannot be applied: {error}"
        fix = f"correct or remove that line in {item.run.folder / EDITS}"
        plan.problems += [item.problem(number, what, fix) for number, _ in rows]
        return
    own = {edit.path for _, edit in rows}
    for position, (number, edit) in enumerate(rows):
        if is_withdrawal(edit):
            _add(plan, edit)
            late = rows[position + 1 :]
            what = f"line {number} withdraws this item, and nothing is left to correct"
            plan.problems += [item.problem(later, what, "remove the line") for later, _ in late]
            return
        try:
            now = _corrected(item.draft, (before, now), edit, own, plan)
        except (ValueError, LookupError) as error:
            plan.problems.append(item.problem(number, f"{edit.path} cannot be corrected: {error}"))
    plan.issues += item.draft.new_issues(before, now)


def with_corrections(item: ItemDraft, draft: Json, edits: Sequence[Edit]) -> Json:
    """Return a draft once corrections of a review stand in it, with all that goes with them."""
    own, now = {edit.path for edit in edits}, draft
    for edit in edits:
        now = _corrected(item, (draft, now), edit, own, _Plan())
    return now


def _corrected(
    item: ItemDraft, drafts: tuple[Json, Json], edit: Edit, own: Collection[str], plan: _Plan
) -> Json:
    """Return a draft with a correction and all that goes with it, which the plan takes."""
    before, now = drafts
    stands = item.value(now, edit.path)
    if not any(_equal(value, edit.old) for value in (item.value(before, edit.path), stands)):
        seen, there = (canonical_text(value)[:200] for value in (edit.old, stands))
        raise ValueError(f"the reviewers saw {seen}, and now {there} stands there")
    asked = edit.model_copy(update={"old": stands})
    changed = item.apply(now, asked)
    _add(plan, asked)
    follows = item.follows(now, asked)
    others = {path: new for path, new in follows.values.items() if path not in own}
    for path, new in others.items():
        old = item.value(changed, path)
        if not _equal(old, new):
            row = also(asked, path, old, new)
            changed = item.apply(changed, row)
            plan.rows.append(row)
            plan.also.append(row)
    if others or not follows.values:
        plan.notes += follows.notes
    return changed


def _add(plan: _Plan, edit: Edit) -> None:
    plan.rows.append(edit)
    plan.added.append(edit)


def _equal(first: Json, second: Json) -> bool:
    """Return whether two values are the same JSON: true is not 1."""
    return canonical_text(first) == canonical_text(second)


def check_reviewed(
    file: EditFile,
    release: Mapping[str, Mapping[str, Json]] | None,
    records: Callable[[], Iterator[Mapping[str, Json]]],
) -> tuple[list[UserError], list[str]]:
    """Compare what was reviewed with the records of a run, story by story.

    ``release``: id -> record of the release that was reviewed, as far as it holds the stories of the file;
    None where none is given.

    Returned: problems: stories that are other stories in the run. Notes: how many records changed since.
    """
    if release is None:
        return [], []
    problems, changed = [], 0
    for record in records():
        known = release.get(str(record.get("story_id")))
        if known is None:
            continue
        source, ours = (_source(part) for part in (known, record))
        if source is None:  # of a kind whose records do not say
            continue
        if source != ours:
            what = f"{record['story_id']} of the run is another story than that of the release"
            fix = "give the run that the release was packed from, or the release that was reviewed"
            problems.append(UserError(str(file.path), what=what, fix=fix))
        elif _content(known) != _content(record):
            changed += 1
    noun = "record has" if changed == 1 else "records have"
    note = f"{changed} {noun} changed in the run since the release was packed; only values that still stand"
    return problems, [f"{note} are corrected"] if changed else []


_OF_PACKING = ("validation_status", "evidence_status", "provenance")
"""Fields that packing fills in, or that follow from others."""


def _source(record: Mapping[str, Json]) -> Json:
    provenance = record.get("provenance")
    return provenance.get("source_prompt_hash") if isinstance(provenance, dict) else None


def _content(record: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in record.items() if name not in _OF_PACKING}
