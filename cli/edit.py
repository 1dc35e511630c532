"""``fabula edit``: correct a field of a run, withdraw a record, or apply what a review corrected, as data."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..schemas.text import tallied
from .command import command
from .common import answer, released, warn

if TYPE_CHECKING:
    from ..builders.corrections import Correction
    from ..builders.edit_files import AppliedFile
    from ..schemas.values import Issue

SHOWN = 20
"""Corrections of a file that people are shown; --json has all."""


@command("edit", edits_from="--from")
def edit(
    run: Path,
    item: str | None = None,
    path: str | None = None,
    *,
    new: str | None = None,
    withdraw: bool = False,
    edits_from: Path | None = None,
    release: Path | None = None,
    dry_run: bool = False,
    who: str = "",
    why: str = "",
    as_json: bool = False,
) -> int:
    """Correct a record, withdraw it, or apply a review.

    The correction is added to the run's edits.jsonl; the next build or retry applies it. Works on runs of
    `build katha` and `build shots`; paths into a script are those of its story.json.

    Changes that follow from the correction are added too: a new gold answer joins the accepted answers; text
    that a scene gains is taken from the scene beside it; a renamed character changes in all texts that name
    it. If the corrected record breaks a rule, the command says so. The correction is kept all the same (exit
    code 0), because a second correction may be needed to complete it.

    A withdrawn record leaves its place in the splits empty, and its id is never used again.

    --from takes the edits.jsonl that a review exported. All its corrections are checked first: what the
    reviewers saw must still stand in the run. Then all are added, or none. A second time adds nothing.

    Options:
        run: Run folder.
        item: Record id.
        path: JSON path of the field, as in $.title.
        new: New value, as JSON (a string needs its quotes).
        withdraw: Take the whole record out, for good; the reason is published.
        edits_from: Add the corrections of this file instead, which a review exported.
        release: With --from, the release that was reviewed: folder, or user/name@tag.
        dry_run: With --from, only check, and say what would be added.
        who: Who makes the correction.
        why: The reason.

    Examples:
        fabula edit runs/mine kb25k_0001 '$.questions[0].gold_answer' --new '"the net broke"' --who ana
            --why 'names the event'
        fabula edit runs/shots hat '$.Shots[2]["Setting Description"].en' --new '"A dry river bed"' --who
            ana --why 'the text says so'
        fabula edit runs/mine kb25k_0003 --withdraw --who ana --why 'the translation is not free'
        fabula edit runs/mine --from review/edits.jsonl --release dist/mine-0.1.0
        fabula run retry runs/mine
    """
    from ..kinds import verbs

    if edits_from is not None:
        _alone(item=item, new=new, withdraw=withdraw, who=who, why=why)
        applied = verbs.correct_from(run, edits_from, release=released(release), dry_run=dry_run)
        if applied.file.simulated:
            warn(
                f"warning: programs took part in this review; their corrections are marked as those of "
                f"simulated reviewers, in {run} and in every release of it"
            )
        return answer(applied.as_json(), _lines_of_file(run, applied), as_json=as_json)
    for option, value in (("--release", release), ("--dry-run", dry_run)):
        if value:
            raise ConfigError(option, what="it goes with --from", fix="give --from FILE, or leave it out")
    if item is None:
        raise ConfigError(
            "fabula edit", what="the record's id is missing", fix="give it, or --from FILE; see --help"
        )
    if withdraw:
        if path is not None or new is not None:
            raise ConfigError(
                "--withdraw", what="a withdrawal takes out the whole record: it has no path and no --new",
                fix="leave them out",
            )  # fmt: skip
        made = verbs.withdraw(run, item, who=who, why=why)
    elif path is None or new is None:
        raise ConfigError(
            "fabula edit", what=f"{'the path' if path is None else '--new'} is missing",
            fix="see fabula edit --help",
        )  # fmt: skip
    else:
        made = verbs.correct(run, item, path, _value(new), who=who, why=why)
    return answer(made.as_json(), _lines(run, made), as_json=as_json)


def _lines(run: Path, made: "Correction") -> Iterator[str]:
    yield f"saved in {run / 'edits.jsonl'}"
    for edit in made.also:
        new = json.dumps(edit.new, ensure_ascii=False)
        yield f"also saved, because it follows from it: {edit.path} = {new}"
    yield from (f"note: {note}" for note in made.notes)
    yield from _broken(made.issues, "the record breaks")
    yield f"apply it with: fabula run retry {run}"


def _broken(issues: "Iterable[Issue]", who: str) -> Iterator[str]:
    listed = list(issues)
    yield from (f"{issue.level}: {issue}" for issue in listed)
    if any(issue.level == "error" for issue in listed):
        yield f"As corrected, {who} the rules above: correct it further before you release it."


def _alone(**given: object) -> None:
    """Refuse what says of one correction what a file of corrections says of each."""
    for name, value in given.items():
        if value:
            option = "the record's id" if name == "item" else f"--{name}"
            raise ConfigError(
                "--from", what=f"the file says what is corrected, and {option} is given, too",
                fix="leave one of them out",
            )  # fmt: skip


def _lines_of_file(run: Path, applied: "AppliedFile") -> Iterator[str]:
    new = [edit for edit in (*applied.added, *applied.also)]
    for edit in new[:SHOWN]:
        what = f"{edit.path} = {json.dumps(edit.new, ensure_ascii=False)}"
        what = "withdrawn" if edit.path == "$" else what
        follows = edit in applied.also
        yield f"{edit.id} {what if len(what) <= 160 else what[:157] + '...'}{' (follows)' if follows else ''}"
    if len(new) > SHOWN:
        yield f"... and {len(new) - SHOWN} more; --json has them all"
    yield from (f"note: {note}" for note in applied.notes)
    yield from _broken(applied.issues, "records break")
    if not new:
        yield f"nothing to add: {run} has all {applied.known} corrections of {applied.file.path} already"
        return
    known = f", {applied.known} were there already" if applied.known else ""
    stories = len({edit.id for edit in applied.added})
    counted = f"{tallied(len(applied.added), 'corrections')} of {tallied(stories, 'records')}, "
    counted += f"{len(applied.also)} that follow{known}"
    if applied.dry_run:
        yield f"would add {counted}; nothing is written"
    else:
        yield f"saved in {run / 'edits.jsonl'}: {counted}"
        yield f"apply them with: fabula run retry {run}"


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "--new", what=f"{text[:200]!r} is not a JSON value ({error})",
            fix="put text in quotes: '\"text\"'",
        ) from error  # fmt: skip
