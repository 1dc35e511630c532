"""``fabula edit``: correct a field of a run, withdraw a record, or apply what a review corrected, as data."""

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..schemas.plain_files import reason_of
from ..schemas.text import quoted, tallied
from .command import command
from .common import emit, model_bill, released, say, used_since, warn

if TYPE_CHECKING:
    from ..builders.edit_files import AppliedFile, Correction
    from ..schemas.values import Issue

SHOWN, LONGEST = 20, 160
"""Corrections that people are shown, and characters of each; --json has all."""


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
    later: bool = False,
    who: str = "",
    why: str = "",
    as_json: bool = False,
) -> int:
    """Correct a record, withdraw it, or apply a review.

    The correction is added to the run's edits.jsonl and applied: what depends on it is made again, and no
    question that was answered is asked again. With --later it is only added; the next edit, build or `run
    retry` applies all that were. Works on runs of `build stories` and `build shots`; paths into a script are
    those of its story.json.

    Changes that follow from the correction are added too: a new gold answer joins the accepted answers; text
    that a scene gains is taken from the scene beside it; a name or an action that changes does so in all
    texts that say it, except in the story's own words, whose places are listed. If the corrected record
    breaks a rule, the command says so, and does not apply it yet: it may take a second correction.

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
        later: Only add it; apply it with others later.
        who: Who makes the correction.
        why: The reason.

    Examples:
        fabula edit runs/mine kb25k_0001 '$.questions[0].gold_answer' --new '"the net broke"' --who ana
            --why 'names the event'
        fabula edit runs/shots hat '$.Shots[2]["Setting Description"].en' --new '"A dry river bed"' --who
            ana --why 'the text says so'
        fabula edit runs/mine kb25k_0003 --withdraw --who ana --why 'the translation is not free'
        fabula edit runs/mine --from review/edits.jsonl --release dist/mine-0.1.0
        fabula edit runs/mine kb25k_0002 '$.title' --new '"The Ant"' --who ana --why shorter --later
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
        settled = not any(issue.level == "error" for issue in applied.issues)
        waits = later or dry_run or not applied.added
        return _told(run, applied, _lines_of_file(run, applied), _How(waits, settled, as_json))
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
    settled = not any(issue.level == "error" for issue in made.issues)
    return _told(run, made, _lines(run, made), _How(later, settled, as_json))


@dataclass(frozen=True)
class _How:
    later: bool  # whether what was added is not to be applied now
    settled: bool  # whether the records keep the rules as they will then stand
    as_json: bool


def _told(run: Path, made: "Correction | AppliedFile", lines: Iterable[str], how: _How) -> int:
    """Say what was added, and apply it where it can be; return the exit code."""
    if not how.as_json:
        say(*lines)
    waits = "" if how.later else _waits(run, settled=how.settled)
    applied = not (how.later or waits)
    if applied:
        line = _apply(run, made)
        applied = bool(line)
        waits = line or "the run is at work: it applies what it finds when it is started again"
    if how.as_json:
        emit({**made.as_json(), "applied": applied})
    elif waits:
        say(waits, *(() if applied else (f"next: fabula run retry {quoted(run)}",)))
    return 0


def _waits(run: Path, *, settled: bool) -> str:
    """Return why corrections cannot be applied yet; empty where they can."""
    from ..engine.status import NAME, read_report

    if not settled:
        return "not applied yet, because of the rules above"
    if not (run / NAME).exists() or read_report(run).totals["pending"]:
        return "not applied yet: the run is not finished, and would go on with everything that is left"
    return ""


def _apply(run: Path, made: "Correction | AppliedFile") -> str:
    """Make again what depends on the corrections of a run, and tell it; empty where it is at work."""
    from ..errors import RunBusy
    from ..kinds.verbs import continue_run

    before = model_bill(run)
    corrected = {edit.id for edit in (made.added if hasattr(made, "added") else (made.edit,))}
    try:
        report = continue_run(run, workers=0 if len(corrected) == 1 else None)  # one record needs no pool
    except RunBusy:
        return ""
    ran = sum(stage.ran for stage in report.stages)
    used = used_since(before, run)
    return f"applied: {tallied(ran, 'results')} made again" + (f"; {used}" if used else "")


def _lines(run: Path, made: "Correction") -> Iterator[str]:
    yield f"saved in {run / 'edits.jsonl'}"
    for edit in made.also[:SHOWN]:
        new = json.dumps(edit.new, ensure_ascii=False)
        yield f"also saved, because it follows from it: {edit.path} = {_cut(new)}"
    if len(made.also) > SHOWN:
        yield f"... and {len(made.also) - SHOWN} more that follow from it; --json has them all"
    yield from (f"note: {note}" for note in made.notes)
    yield from _broken(made.issues, "the record breaks")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


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
        yield f"{edit.id} {_cut(what)}{' (follows)' if follows else ''}"
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


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "--new", what=f"{text[:200]!r} is not a JSON value: {reason_of(error)}",
            fix=f"put text in quotes: --new {shlex.quote(json.dumps(text, ensure_ascii=False))}",
        ) from error  # fmt: skip
