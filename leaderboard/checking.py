"""Checking a leaderboard: each submission by itself; findings never raise."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigError, FabulaError, InputError, UserError
from ..evaluation.archive.archive import JUDGEMENTS, Archive, read_archive
from ..evaluation.archive.replies import lacks, last_attempts
from ..evaluation.report.formats import Table, written
from ..evaluation.report.model import coverages
from ..kinds.evaluations import score_tables
from ..releases.hidden.marks import Marks, marks_of, read_salt, search, search_rows
from ..releases.loading import read_release_document
from ..schemas.canonical import sha256_file
from ..schemas.judgement import EvaluationManifest
from ..schemas.plain_files import (
    LARGEST_WHOLE,
    MISSHAPEN,
    CsvTable,
    explaining,
    open_plain,
    read_plain,
)
from ..schemas.text import counted, tallied
from ..schemas.values import Issue, Score
from .making import (
    OF_DATA,
    Board,
    Leaderboard,
    Retraction,
    read_leaderboard,
    scores_of_method,
    seeds_of,
    what_of,
    write_leaderboard,
)
from .submission import (
    MOST_SEEDS,
    SCORES,
    SUBMISSION,
    USUAL,
    Opened,
    Submission,
    beside_any,
    opened,
    read_submission,
    release_of,
    submission_named,
    submissions_in,
)

UNREADABLE = ("damaged", "too-large", "unsafe-file", "file-missing")
"""Codes of a submission whose archive is not read."""
ATTEMPTS = 10
"""So many attempts at each question are read."""
NO_VALUE = "no-value"
"""Code of a submission whose score by the ranking's measure is undefined."""
LEAK = "take it out: a leaderboard is public"


@dataclass(frozen=True)
class Checked:
    """A submission, and what was found."""

    path: Path  # its folder or zip file
    submission: Submission | None = None  # what it declares; None where that cannot be read
    board: Board | None = None  # the board it is for; None where there is none
    issues: tuple[Issue, ...] = ()  # what was found; it is ranked if no error is among it
    # of its evaluation; None where the archive cannot be read
    manifest: EvaluationManifest | None = field(default=None, repr=False)
    # its scores; empty where it could not be scored
    tables: tuple[Table, ...] = field(default=(), repr=False)
    retraction: Retraction | None = None  # why it was withdrawn, if it was
    # share of outputs that are valid, and of replies that are answers, whichever is less
    coverage: float | None = None

    @property
    def name(self) -> str:
        """Its name: that of its folder or file."""
        return self.path.name.removesuffix(".zip").encode("utf-8", "replace").decode("utf-8")

    @property
    def ranked(self) -> bool:
        return self.sound and not any(issue.code == NO_VALUE for issue in self.issues)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it; it may still have no value to be ranked by."""
        errors = any(issue.level == "error" and issue.code != NO_VALUE for issue in self.issues)
        return self.submission is not None and not errors and self.retraction is None

    @property
    def scores(self) -> Mapping[str, Score]:
        """Its main scores by measure."""
        if self.submission is None or not self.tables:
            return {}
        return scores_of_method(self.tables, self.submission.method)


@dataclass(frozen=True)
class Report:
    """What the check of a leaderboard found."""

    leaderboard: Leaderboard  # what it is
    rows: tuple[Checked, ...]  # the submissions, by name

    @property
    def issues(self) -> tuple[Issue, ...]:
        """All findings, each with the name of its submission before its place."""
        return tuple(
            replace(issue, where=f"{row.name}: {issue.where}") for row in self.rows for issue in row.issues
        )

    cause, beside_cause = None, issues  # each submission's findings stand for themselves

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.leaderboard.title,
            "submissions": [
                {
                    "name": row.name, "board": None if row.board is None else row.board.name,
                    "ranked": row.ranked, "coverage": row.coverage,
                    "retracted": None if row.retraction is None else row.retraction.as_json(),
                    "undeclared": None if row.submission is None else list(row.submission.undeclared),
                    "issues": [issue.as_dict() for issue in row.issues],
                    "scores": {name: score.as_json() for name, score in row.scores.items()},
                }
                for row in self.rows
            ],
        }  # fmt: skip

    def summary(self) -> str:
        """Return what is ranked and what is not, in words."""
        ranked = sum(row.ranked for row in self.rows)
        withdrawn = sum(row.retraction is not None for row in self.rows)
        text = f"{counted(len(self.rows), 'submission')}: {ranked} ranked, {len(self.rows) - ranked} not"
        return f"{text} ({withdrawn} retracted)" if withdrawn else text


def check(folder: Path, hidden: Path | None = None, salt: Path | None = None) -> Report:
    """Check every submission of a leaderboard."""
    leaderboard = read_leaderboard(folder)
    releases = {board.name: release_of(board, folder) for board in leaderboard.boards}
    secrets = {
        board.name: _secrets_of(releases[board.name], hidden, salt)
        for board in leaderboard.boards
        if hidden is not None
    }
    rows = [_row(path, leaderboard, releases, secrets) for path in submissions_in(folder)]
    return Report(leaderboard, tuple(_with(row, *_namesakes(row, rows)) for row in rows))


@dataclass(frozen=True)
class Secrets:
    """What may be in no submission."""

    marks: Marks = field(repr=False)  # finds hidden stories
    salt: bytes | None = field(default=None, repr=False)  # of their commitments


def _secrets_of(release: Path | None, hidden: Path, salt: Path | None) -> Secrets | None:
    """Return what may be in no submission to a board; None where it has no release."""
    if release is None:
        return None
    with explaining(hidden, "pack it again", what="the hidden test cannot be read", of=MISSHAPEN):
        document = read_release_document(hidden)
        ids = [name for listed in document.get("records", {}).values() for name in listed]
        return Secrets(marks_of(release, hidden, ids), None if salt is None else read_salt(salt))


def _leaks(files: Opened, secrets: Secrets | None) -> Iterator[Issue]:
    """Yield hidden stories, and rows of their split, in the contents of files; pictures hold no text."""
    if files.usable:
        yield from (replace(issue, cure=LEAK) for issue in search_rows(files.folder))
        if secrets is not None:
            leaks = search(files.folder, secrets.marks, secrets.salt)
            yield from (replace(issue, cure=LEAK) for issue in leaks if not issue.where.startswith("store/"))


def public(issue: Issue) -> Issue:
    """Return a finding as a public page may show it: without chosen names of files, and no leak."""
    where = issue.where if issue.where in USUAL else "a file"
    message = "something of the hidden test" if issue.code == "hidden-leak" else issue.message
    return replace(issue, where=where, message=message)


def _row(
    path: Path, leaderboard: Leaderboard, releases: Mapping[str, Path | None],
    secrets: Mapping[str, Secrets | None],
) -> Checked:  # fmt: skip
    """Return what was found of one submission; whatever it holds, the others are checked."""
    row = Checked(path, retraction=leaderboard.retracted.get(path.name.removesuffix(".zip")))
    try:
        return _checked(row, leaderboard, releases, secrets)
    except Exception as error:  # noqa: BLE001 - anybody may have made it
        message = f"it cannot be checked: {type(error).__name__}: {error}"[:300]
        message = message.encode("utf-8", "replace").decode("utf-8")
        return _with(row, Issue(row.name, "$", "damaged", message, "make it again"))


def _checked(
    row: Checked, leaderboard: Leaderboard, releases: Mapping[str, Path | None],
    secrets: Mapping[str, Secrets | None],
) -> Checked:  # fmt: skip
    path = row.path
    with opened(path, beside_any()) as files:
        row = replace(row, issues=files.issues)
        try:
            row = replace(row, submission=read_submission(files.folder))
        except InputError as error:
            return replace(row, issues=(*row.issues, *_told("declaration", SUBMISSION, error)))
        assert row.submission is not None
        board = next((each for each in leaderboard.boards if each.name == row.submission.board), None)
        if board is None:
            message = f"there is no board {row.submission.board}"
            return _with(
                row, Issue(SUBMISSION, "$.board", "no-board", message, "name a board of the leaderboard")
            )
        row = replace(row, board=board)
        issues = [*row.issues, *_own_issues(row, files, board)]
        issues += _leaks(files, secrets.get(board.name))
        row = replace(row, issues=tuple(issues))
        if any(issue.code in UNREADABLE for issue in row.issues):
            return row
        return _scored(row, files, board, releases[board.name])


def _with(row: Checked, *issues: Issue) -> Checked:
    return replace(row, issues=(*row.issues, *issues))


def _namesakes(row: Checked, rows: Sequence[Checked]) -> Iterator[Issue]:
    if sum(each.name == row.name for each in rows) > 1:
        message = "another submission has this name, a folder or a zip file"
        yield Issue(row.name, "$", "name", message, "give one of them another name")


def _told(code: str, where: str, error: FabulaError) -> list[Issue]:
    """Return an error as findings."""
    problems = error.problems if isinstance(error, InputError) else [error]
    return [
        Issue(where, "$", code, f"{problem.where}: {problem.what}"[:400], problem.fix)
        for problem in problems[:20]
        if isinstance(problem, UserError)
    ]


def _own_issues(row: Checked, files: Opened, board: Board) -> Iterator[Issue]:
    """Yield what is wrong with names and files."""
    submission = row.submission
    assert submission is not None
    if submission.name != row.name:
        message = f"it calls itself {submission.name}, and lies in {row.name}"
        yield Issue(SUBMISSION, "$.name", "name", message, "give the file or folder its name")
    strange = {issue.where for issue in files.issues}
    there = set(files.names)
    for name in sorted({*submission.files, *there} - {SUBMISSION} - strange):
        stated, file = submission.files.get(name), files.folder / name
        if name not in there:
            yield Issue(name, "$", "file-missing", "the file is not there", "make the submission again")
        elif stated is None or sha256_file(file) != stated.sha256:
            message = "it is not the file that was submitted" if stated else "the submission does not list it"
            yield Issue(name, "$", "file-changed", message, "make the submission again")
    if board.subset == "hidden":
        message = "an archive of the hidden test would disclose it, and is not ranked"
        yield Issue(SUBMISSION, "$.board", "hidden-board", message, "see fabula leaderboard score-hidden")


def _scored(row: Checked, files: Opened, board: Board, release: Path | None) -> Checked:
    """Read the archive, score it, and add what is wrong with it."""
    submission = row.submission
    assert submission is not None
    try:
        if too_many := _too_many_lines(files.folder / JUDGEMENTS, submission, board):
            return _with(row, too_many)
        archive = read_archive(files.folder)
        row = replace(row, manifest=archive.manifest)
        methods = set(archive.manifest.subject.get("methods") or ())
        if methods != {submission.method}:
            message = (
                f"its archive is about {', '.join(sorted(methods)) or 'no method'}, not {submission.method}"
            )
            return _with(
                row, Issue("evaluation.json", "$.subject", "other-method", message[:400], "submit one method")
            )
        row = _with(row, *_protocol_issues(board, archive.manifest))
        if unbounded := list(_unbounded(archive)):
            return _with(row, *unbounded)
        row = replace(row, tables=tuple(score_tables(files.folder, release, board.resamples)))
        return _judged(row, files, archive, board)
    except FabulaError as error:
        return _with(row, *_told("damaged", "evaluation.json", error))
    except Exception as error:  # noqa: BLE001 - anybody may have made it
        message = f"it cannot be scored: {type(error).__name__}: {error}"[:300]
        return _with(row, Issue("evaluation.json", "$", "damaged", message, "evaluate again"))


def _judged(row: Checked, files: Opened, archive: Archive, board: Board) -> Checked:
    """Add how much there is of what was asked, and whether the numbers are those of the archive."""
    assert row.submission is not None
    coverage, issues = coverage_of(archive, row.submission, board)
    row = _with(replace(row, coverage=coverage), *issues, *_without_value(row, board))
    return _with(row, *_stated(row, files))


def _too_many_lines(file: Path, submission: Submission, board: Board) -> Issue | None:
    """Return what is wrong where there are far more replies than the board asks for, before they are read."""
    asked = sum(count * seeds_of(what, submission.seeds) for what, count in board.asked.items())
    most = 10_000 + ATTEMPTS * asked
    with open_plain(file) as lines:
        count = sum(1 for _ in lines)
    if count <= most:
        return None
    message = f"{count:,} replies, and the board asks for {asked:,}; at most {most:,} are read"
    return Issue("judgements.jsonl", "$", "too-large", message, "evaluate again")


def _unbounded(archive: Archive) -> Iterator[Issue]:
    """Yield the numbers with which nothing can be computed, and more seeds than are scored."""
    methods = archive.manifest.subject.get("methods") or {}
    seeds = {judgement.seed for judgement in archive.judgements}
    stated = [about.get("seeds") or () for about in methods.values() if isinstance(about, dict)]
    most = max((len(listed) for listed in (seeds, *stated)), default=0)
    if most > MOST_SEEDS:
        message = f"{most:,} seeds; at most {MOST_SEEDS} are scored"
        yield Issue("evaluation.json", "$.subject", "too-large", message, "evaluate fewer seeds")
    large = sum(
        any(number is not None and abs(number) >= LARGEST_WHOLE for number in (
            judgement.seed, judgement.vote, judgement.attempt, judgement.input_tokens, judgement.output_tokens
        ))
        for judgement in archive.judgements
    )  # fmt: skip
    if large:
        message = f"{tallied(large, 'judgements')} with a whole number beyond 64 bits"
        yield Issue("judgements.jsonl", "$", "impossible-value", message, "evaluate again")


def _protocol_issues(board: Board, manifest: EvaluationManifest) -> Iterator[Issue]:
    for difference in board.differences(manifest):
        part = difference.path.partition(".")[0]
        code = (
            "other-release" if part in OF_DATA else "other-prompts" if part == "prompts" else "other-protocol"
        )
        message = f"the board has {str(difference.first)[:160]}, and this is {str(difference.second)[:160]}"
        yield Issue(
            "evaluation.json", f"$.protocol.{difference.path}", code, message, "evaluate as the board asks"
        )


def coverage_of(archive: Archive, submission: Submission, board: Board) -> tuple[float, list[Issue]]:
    """Return the least share of outputs and replies, and what is missing."""
    about = (archive.manifest.subject.get("methods") or {}).get(submission.method) or {}
    shares = [(each.share, str(each)) for each in coverages(about)]
    answered: dict[str, int] = {}
    for judgement in last_attempts(archive.judgements):
        if judgement.method in (None, submission.method) and judgement.outcome == "answered":
            answered[what_of(judgement)] = answered.get(what_of(judgement), 0) + 1
    for what, count in board.asked.items():
        wanted_replies = count * seeds_of(what, submission.seeds)
        share = answered.get(what, 0) / wanted_replies
        shares.append((share, f"{answered.get(what, 0):,} of {wanted_replies:,} replies to {what}"))
    issues = [
        Issue("judgements.jsonl", "$", "coverage",
              f"{text}: less than {board.least_coverage:.0%}", "make and judge what is missing")
        for share, text in shares if share < board.least_coverage
    ]  # fmt: skip
    unasked, unreached = lacks(archive.manifest.environment)
    if unasked or unreached:
        message = f"the evaluation is not finished: {unasked} questions and {unreached} outputs are missing"
        issues.append(
            Issue("evaluation.json", "$", "coverage", message, "finish it: run the same command again")
        )
    return min((share for share, _ in shares), default=1.0), issues


def _without_value(row: Checked, board: Board) -> Iterator[Issue]:
    score = row.scores.get(board.rank_by)
    if score is None or score.value is None:
        reason = "not measured" if score is None else score.reason or score.status
        message = f"it has no {board.ranking.label} to be ranked by: {reason}"
        yield Issue("judgements.jsonl", "$", NO_VALUE, message, "see its replies with fabula view")


def _stated(row: Checked, files: Opened) -> Sequence[Issue]:
    """Return a warning where the numbers that were submitted are not those of the archive."""
    try:
        stated = read_plain(files.folder / SCORES).decode("utf-8")
    except (OSError, ValueError):
        stated = ""
    if stated == written(row.tables, "csv"):
        return ()
    message = "its numbers are not those that its archive gives here; ours are shown"
    return [Issue(SCORES, "$", "scores-differ", message, "see fabula leaderboard reproduce", "warning")]


# -- Scoring a submission again, number by number; withdrawing one

SHOWN = 20
"""So many differences are printed."""


@dataclass(frozen=True)
class Changed:
    """A number that is not what was submitted; empty where it is not there."""

    number: str  # table, row and measure
    stated: str  # as it was submitted: value and ends of the interval
    ours: str  # as it comes out now


@dataclass(frozen=True)
class Reproduced:
    """A submission that was scored again."""

    name: str  # of the submission
    numbers: int  # how many numbers were compared, intervals included
    differences: tuple[Changed, ...]  # those that are not the same

    @property
    def same(self) -> bool:
        """Whether every number is the same."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        differences = [vars(each) for each in self.differences]
        return {"name": self.name, "numbers": self.numbers, "same": self.same, "differences": differences}

    def lines(self) -> Iterator[str]:
        if self.same:
            yield f"{self.name}: all {self.numbers:,} numbers are the same"
            return
        yield f"{self.name}: {len(self.differences):,} of {self.numbers:,} numbers differ"
        for each in self.differences[:SHOWN]:
            yield f"  {each.number}: submitted {each.stated or 'nothing'}, now {each.ours or 'nothing'}"


def reproduce(folder: Path, name: str, release: Path | None = None) -> Reproduced:
    """Score the archive of a submission again and compare every number with what was submitted."""
    leaderboard = read_leaderboard(folder)
    with submission_named(folder, name) as (files, submission):
        board = leaderboard.board(submission.board)
        try:
            tables = score_tables(files.folder, release or release_of(board, folder), board.resamples)
        except FabulaError:
            raise
        except Exception as error:  # anybody may have made it
            what = f"it cannot be scored: {type(error).__name__}: {error}"[:300]
            fix = "see what is wrong with it: fabula leaderboard check"
            raise InputError.one(name, what=what, fix=fix) from error
        with explaining(
            f"{name} {SCORES}", "make it again with fabula leaderboard submit",
            what="its scores cannot be read",
        ):  # fmt: skip
            stated = _numbers(read_plain(files.folder / SCORES).decode("utf-8"))
    ours = _numbers(written(tables, "csv"))
    places = list(dict.fromkeys([*stated, *ours]))
    return Reproduced(
        name,
        len(places),
        tuple(
            Changed(number, stated.get(number, ""), ours.get(number, ""))
            for number in places
            if stated.get(number) != ours.get(number)
        ),
    )


def _numbers(text: str) -> dict[str, str]:
    """Return table, row, measure and column -> number, as text."""
    return {
        " / ".join([row["table"], row["row"], row["measure"], column]): row[column]
        for _, row in CsvTable(text).named()
        for column in ("value", "low", "high", "numerator", "denominator")
        if row.get(column)
    }


def retract(folder: Path, name: str, reason: str, date: str | None = None) -> Retraction:
    """Withdraw a submission: it stays listed with the reason, and is not ranked."""
    leaderboard = read_leaderboard(folder)
    names = [path.name.removesuffix(".zip") for path in submissions_in(folder)]
    if name not in names:
        fix = f"name one of: {', '.join(names) or 'none'}"
        raise ConfigError(name, what="there is no such submission", fix=fix)
    if not reason.strip():
        raise ConfigError("--reason", what="it is empty", fix="say why, in a sentence")
    retraction = Retraction(date=date or datetime.now(UTC).date().isoformat(), reason=reason.strip())
    retracted = {**leaderboard.retracted, name: retraction}
    write_leaderboard(folder, leaderboard.model_copy(update={"retracted": retracted}))
    return retraction
