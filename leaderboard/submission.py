"""A submission: the archive of an evaluation of one method, with what its makers declare about it."""

import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from ..errors import ConfigError, InputError, TargetError, UserError
from ..evaluation.archive.archive import EVALUATION, JUDGEMENTS, export_archive, read_manifest
from ..evaluation.report.formats import written
from ..evaluation.report.showing import FRAMES, kept_picture
from ..kinds.evaluations import judging_of, make_report, score_tables
from ..media.images import encode, open_picture
from ..releases.hub.fetch import release_folder
from ..schemas.canonical import (
    jsonl_lines,
    new_folder,
    pretty_bytes,
    sha256_bytes,
    sha256_file,
    write_atomic,
    writing,
)
from ..schemas.packed_files import Limits, NotPacked, ZippedFiles, open_zip
from ..schemas.plain_files import LARGEST_WHOLE, json_lines, open_plain, read_plain
from ..schemas.text import quoted, slug, tallied
from ..schemas.values import Issue, Own
from .making import NAME, SUBMISSIONS, Board, Leaderboard, invalid, read_leaderboard

# -- Opening submissions that anybody may have made: folders and zip files of plain files, with limits

SUBMISSION, SCORES, STORE = "submission.json", "scores.csv", "store"
LIMITS = Limits(files=20_000, bytes=1 << 30)
"""What a submission may hold."""
LARGEST_FILE = {SUBMISSION: 4 << 20, EVALUATION: 16 << 20, SCORES: 16 << 20, JUDGEMENTS: LIMITS.bytes}
"""Most bytes of a file that is read whole, or line by line; of the others :data:`LARGEST_OTHER`."""
LARGEST_OTHER = 64 << 20
LONGEST_LINE = 4 << 20
"""Most bytes of a line; what a judge says has a few thousand."""
_PICTURE = re.compile(rf"{STORE}/[0-9a-f]{{64}}\.(jpg|png)")
USUAL = (SUBMISSION, SCORES, EVALUATION, JUDGEMENTS, FRAMES)


@dataclass(frozen=True)
class Opened:
    """A submission on disk."""

    folder: Path  # where its files are; a temporary one if it was packed
    names: tuple[str, ...]  # its files, with forward slashes, sorted
    # what is wrong with them; where there are errors, not all of it may be unpacked
    issues: tuple[Issue, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether what it holds may be read."""
        return not any(issue.level == "error" for issue in self.issues)


@contextmanager
def opened(path: Path, beside: tuple[str, ...] = ()) -> Iterator[Opened]:
    """Open a submission, a folder or a ``.zip``; nothing is raised for what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="fabula-submission-") as scratch:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        folder = path if is_folder else Path(scratch)
        names, issues = _listed(path) if is_folder else _unpacked(path, folder)
        there = names if is_folder or not issues else ()
        yield Opened(folder, names, (*issues, *_strange(folder, there, beside)))


def _listed(folder: Path) -> tuple[tuple[str, ...], list[Issue]]:
    names, issues, size = [], [], 0
    for root, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(root) / entry
            name = path.relative_to(folder).as_posix()
            about = path.lstat()
            if any("\ud800" <= char <= "\udfff" for char in name):
                issues.append(_issue(name, "unsafe-file", "its name is not UTF-8"))
            elif stat.S_ISREG(about.st_mode):
                names.append(name)
                size += about.st_size
            elif not stat.S_ISDIR(about.st_mode):
                issues.append(_issue(name, "unsafe-file", "this is a link, a pipe or a device"))
        if len(names) + len(issues) > LIMITS.files or size > LIMITS.bytes:
            issues.append(_too_large("$", str(LIMITS)))
            break
    return tuple(sorted(names)), issues[: LIMITS.files]


CODES = {"too_large": "too-large", "unsafe": "unsafe-file", "encrypted": "unsafe-file", "damaged": "damaged"}


def _unpacked(path: Path, target: Path) -> tuple[tuple[str, ...], list[Issue]]:
    try:
        with open_plain(path) as file, open_zip(file, LIMITS) as packed:
            issues = [_issue(each.where, CODES[each.code], str(each)) for each in packed.problems()]
            if not issues:
                _unpack(packed, target)
            return tuple(sorted(packed.sizes)), issues
    except NotPacked as error:
        return (), [_issue(error.where or path.name, CODES[error.code], str(error))]
    except OSError as error:
        return (), [_issue(path.name, "damaged", f"the zip file cannot be read: {error.strerror or error}")]


def _unpack(packed: ZippedFiles, target: Path) -> None:
    for name in packed.sizes:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        with (target / name).open("xb") as out:
            packed.copy(name, out)


def _strange(folder: Path, names: tuple[str, ...], beside: tuple[str, ...]) -> Iterator[Issue]:
    """Yield the files that no submission has, or that are too large, and pictures that cannot be shown."""
    for name in names:
        file, largest = folder / name, LARGEST_FILE.get(name, LARGEST_OTHER)
        if file.lstat().st_size > largest:
            yield _too_large(name, f"at most {largest:,} bytes in this file")
        elif name in (*USUAL, *beside):
            if name.endswith(".jsonl") and (number := _long_line(file)):
                yield _too_large(
                    name, f"at most {LONGEST_LINE:,} bytes in a line, and line {number:,} has more"
                )
        elif not _PICTURE.fullmatch(name):
            yield _issue(name, "file-extra", "a submission has no such file", "take it out")
        elif sha256_file(file) != Path(name).stem:
            yield _issue(name, "file-changed", "the picture is not the one that its name says")
        else:
            yield from _unreadable(file, name)


def _long_line(file: Path) -> int:
    """Return the number of the first line that is too long; 0 where none is."""
    with open_plain(file) as lines:
        number = 0
        while line := lines.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                return number
    return 0


def _unreadable(file: Path, name: str) -> Iterator[Issue]:
    try:
        open_picture(file)
    except UserError as error:
        yield _issue(name, "damaged", f"the picture cannot be opened: {error.what}")


def _too_large(where: str, most: str) -> Issue:
    return _issue(where, "too-large", f"a submission has {most}", "leave pictures out (--frames 0)")


def _issue(
    where: str, code: str, message: str, cure: str = "make it with fabula leaderboard submit"
) -> Issue:
    where = where.encode("utf-8", "replace").decode("utf-8")[:200]
    return Issue(where, "$", code, message, cure)


# -- A submission

Text = Annotated[str, Field(min_length=1, max_length=500)]
SIDE, QUALITY = 360, 72
"""Longer side in pixels, and quality, of the pictures that a submission takes along."""
UNDECLARED = "undeclared"
MOST_SEEDS = 100
"""Generations of a story that are scored; papers have one to five."""


class File(Own):
    sha256: str = Field(description="Its SHA-256.")
    bytes: int = Field(ge=0, lt=LARGEST_WHOLE, description="Its size.")


class Submission(Own):
    """``submission.json``: what its makers say; null is undeclared, and shown as such."""

    format: Literal[1] = 1
    board: str = Field(pattern=NAME, description="The board it is for.")
    name: str = Field(pattern=NAME, description="Its name in files and addresses.")
    method: Text = Field(description="Name of the method, in the archive and for readers.")
    submitted: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="When, YYYY-MM-DD.")
    authors: tuple[Text, ...] = Field(default=(), max_length=100, description="Who made the method.")
    links: tuple[Text, ...] = Field(default=(), max_length=10, description="Paper, code, weights.")
    model: Text | None = Field(default=None, description="The generator.")
    model_version: Text | None = Field(default=None, description="Its version.")
    model_date: Text | None = Field(default=None, description="When it was released, or used.")
    prompt_rewriting: Text | None = Field(default=None, description="Who rewrote prompts, or none.")
    training_overlap: Text | None = Field(default=None, description="Known overlap with training data.")
    ran_by: Text | None = Field(default=None, description="Who ran the generator and the judges.")
    generator_command: Text | None = Field(default=None, description="Command for the hidden test.")
    seeds: int = Field(ge=1, le=MOST_SEEDS, description="Generations of each story.")
    files: dict[str, File] = Field(
        default_factory=dict, max_length=LIMITS.files, description="All other files."
    )

    @field_validator("links")
    @classmethod
    def _are_addresses(cls, links: tuple[str, ...]) -> tuple[str, ...]:
        for link in links:
            if not link.startswith(("https://", "http://")) or any(char.isspace() for char in link):
                raise ValueError(f"{link} is no address that begins with https://")
        return links

    def declared(self) -> dict[str, str | None]:
        """Return what readers must know of a row -> what is said of it; None where it is undeclared."""
        return {
            "Authors": ", ".join(self.authors) or None,
            "Model": self.model,
            "Model version": self.model_version,
            "Model date": self.model_date,
            "Prompt rewriting": self.prompt_rewriting,
            "Overlap with training data": self.training_overlap,
            "Run by": self.ran_by,
        }

    @property
    def undeclared(self) -> tuple[str, ...]:
        return tuple(label for label, text in self.declared().items() if text is None)


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """What the makers of a method declare; what is left out is shown as undeclared.

    Attributes:
        name: name of the submission in files and addresses, such as model-x.
        authors: who made the method.
        links: address of paper, code or weights.
        model: the generator.
        model_version: its version or checkpoint.
        model_date: when it was released, or used where it is a service.
        prompt_rewriting: who rewrote prompts before the generator saw them, or none.
        training_overlap: known overlap of the stories with training data, or none.
        ran_by: who ran generator and judges.
        generator_command: command that makes outputs of plans, for the hidden test.
    """

    name: str
    authors: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    model: str | None = None
    model_version: str | None = None
    model_date: str | None = None
    prompt_rewriting: str | None = None
    training_overlap: str | None = None
    ran_by: str | None = None
    generator_command: str | None = None


@dataclass(frozen=True, kw_only=True)
class SubmitOptions(Declarations):
    """What is declared, and what goes along.

    Attributes:
        board: name of the board [that whose protocol the evaluation fits].
        release: release that was judged [that of the board].
        frames: pictures of so many stories go along, those that the report shows.
        date: date of the submission, YYYY-MM-DD [today].
    """

    board: str | None = None
    release: Path | None = None
    frames: int = 12
    date: str | None = None


@dataclass(frozen=True)
class Submitted:
    """A submission that was written."""

    path: Path  # its folder or zip file
    submission: Submission  # what it declares
    board: Board  # the board it is for
    folder: Path  # the leaderboard

    def as_json(self) -> dict[str, Any]:
        undeclared = list(self.submission.undeclared)
        return {"path": str(self.path), "undeclared": undeclared, "submission": self.submission.as_json()}

    def lines(self) -> Iterable[str]:
        made = self.submission
        size = sum(file.bytes for file in made.files.values())
        files = f"{tallied(len(made.files), 'files')}, {size:,} bytes"
        yield f"{self.path}: {made.method} for the board {made.board}, {files}"
        inside = self.path.parent == self.folder / SUBMISSIONS
        if made.undeclared:
            yield f"undeclared: {', '.join(made.undeclared)}"
        if not inside:
            yield f"it counts once it lies in {self.folder / SUBMISSIONS}"
        yield f"next: fabula leaderboard check {quoted(self.folder)}"


def submit(run: Path, folder: Path, options: SubmitOptions, out: Path | None = None) -> Submitted:
    """Make a submission of an evaluation."""
    if not re.fullmatch(NAME, options.name):
        what = f"{options.name!r} has characters beside a-z, 0-9 and . _ - (or begins with one of these)"
        raise ConfigError(
            "--name", what=what, fix=f"for example --name {slug(options.name).lower() or 'model-x'}"
        )
    leaderboard = read_leaderboard(folder)
    manifest = read_manifest(run)
    chosen = leaderboard.board(options.board) if options.board else _fitting(leaderboard, run)
    methods = list(manifest.subject.get("methods") or ())
    if len(methods) != 1:
        what = f"a submission is of one method, and this evaluation has {', '.join(methods) or 'none'}"
        fix = f"evaluate each method into a folder of its own; --reuse {run} takes over what was answered"
        raise ConfigError(str(run), what=what, fix=fix)
    target = out or folder / SUBMISSIONS / options.name
    if target.exists() and target.suffix == ".zip":
        raise TargetError(str(target), what="the file is there already", fix="choose another --out")
    judged = options.release or release_of(chosen, folder)
    about = manifest.subject["methods"][methods[0]]
    with tempfile.TemporaryDirectory(prefix="fabula-submission-") as scratch:
        draft = Path(scratch) / options.name
        form = judging_of(run).protocol().archive
        export_archive(run, draft, form)
        for beside in form.files:  # such as a suite, which copies for whoever has it leave out
            if (run / beside).is_file() and not (draft / beside).exists():
                shutil.copyfile(run / beside, draft / beside)
        tables = score_tables(draft, judged, chosen.resamples)
        write_atomic(draft / SCORES, [written(tables, "csv").encode("utf-8")])
        _take_frames(run, judged, draft, options.frames)
        names = sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file())
        try:
            submission = Submission(
                board=chosen.name, method=methods[0], seeds=max(1, len(about.get("seeds") or ())),
                submitted=options.date or datetime.now(UTC).date().isoformat(),
                files={
                    name: File(sha256=sha256_file(draft / name), bytes=(draft / name).stat().st_size)
                    for name in names
                },
                **{field.name: getattr(options, field.name) for field in fields(Declarations)},
            )  # fmt: skip
        except ValidationError as error:
            raise InputError(invalid("what is declared", error)) from error
        write_atomic(draft / SUBMISSION, [pretty_bytes(submission.as_json())])
        _deliver(draft, target)
    return Submitted(target, submission, chosen, folder)


def _deliver(draft: Path, target: Path) -> None:
    if target.suffix != ".zip":
        with new_folder(target):
            shutil.copytree(draft, target, dirs_exist_ok=True)
        return
    with writing(target, "choose another --out", what="the file"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(path for path in draft.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(
                    path.relative_to(draft).as_posix()
                )  # no date: the same bytes each time
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _fitting(leaderboard: Leaderboard, run: Path) -> Board:
    """Return the board that an evaluation fits; where it fits none, say where it differs from the nearest."""
    manifest = read_manifest(run)
    differing = [
        (board.differences(manifest), board) for board in leaderboard.boards if board.subset == "public"
    ]
    fitting = [board for differences, board in differing if not differences]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(board.name for board in fitting)
        raise ConfigError("--board", what=f"the evaluation fits {names}", fix="name one of them")
    if not differing:
        raise ConfigError(
            "--board", what="no board takes archives", fix="ask the maintainer: hidden tests are run there"
        )
    differences, nearest = min(differing, key=lambda pair: len(pair[0]))
    raise InputError([
        UserError(
            f"{run} protocol {difference.path}",
            what=f"the board {nearest.name} asks for {str(difference.first)[:200]}, "
            f"and this is {str(difference.second)[:200]}",
            fix="evaluate as the board asks, or name another --board",
        )
        for difference in differences
    ])  # fmt: skip


def release_of(board: Board, folder: Path) -> Path | None:
    """Return where the release of a board is; None where archives hold what was judged."""
    if board.source is None:
        return None
    inside = folder / board.source
    return inside if inside.exists() else release_folder(board.source)


def _take_frames(run: Path, release: Path | None, draft: Path, most: int) -> None:
    """Take along small copies of the pictures of those stories that the report shows."""
    if not most or not (run / FRAMES).is_file():
        return
    document = make_report(run, release)
    shown = [case.unit for case in document.cases.shown] if document.cases is not None else []
    units = list(dict.fromkeys(shown))[:most]
    rows = []
    for row in json_lines(run / FRAMES):
        if row.get("unit") in units and row.get("frames"):
            small = [_small(run, draft, frame) for frame in row["frames"]]
            rows.append({**row, "frames": [frame for frame in small if frame is not None]})
    if rows:
        write_atomic(draft / FRAMES, jsonl_lines(rows))


def _small(run: Path, draft: Path, frame: dict[str, Any]) -> dict[str, Any] | None:
    file = kept_picture(run, frame.get("file"))
    if file is None:
        return None
    data = encode(open_picture(file), max_side=SIDE, format="jpeg", quality=QUALITY)
    name = f"{STORE}/{sha256_bytes(data)}.jpg"
    (draft / STORE).mkdir(exist_ok=True)
    (draft / name).write_bytes(data)
    picture = open_picture(data)
    return {**frame, "file": name, "width": picture.width, "height": picture.height}


def submissions_in(folder: Path) -> list[Path]:
    """Return the submissions of a leaderboard, folders and zip files, by name."""
    inside = folder / SUBMISSIONS
    entries = inside.iterdir() if inside.is_dir() else ()
    return sorted(
        path for path in entries if path.suffix == ".zip" or (path.is_dir() and path.name[:1] != ".")
    )


def read_submission(folder: Path) -> Submission:
    """Return what a submission that was opened declares."""
    try:
        return Submission.model_validate_json(read_plain(folder / SUBMISSION, 1 << 22))
    except OSError as error:
        what = f"it has no {SUBMISSION}: {error.strerror or error}"
        raise InputError.one(SUBMISSION, what=what, fix="make it with fabula leaderboard submit") from error
    except ValidationError as error:
        raise InputError(invalid(SUBMISSION, error)) from error


@contextmanager
def submission_named(folder: Path, name: str) -> Iterator[tuple[Opened, Submission]]:
    paths = {path.name.removesuffix(".zip"): path for path in submissions_in(folder)}
    if name not in paths:
        there = ", ".join(paths) or "none"
        raise ConfigError(name, what="there is no such submission", fix=f"name one of: {there}")
    with opened(paths[name], beside_any()) as files:
        if not files.usable:
            problems = [
                UserError(f"{name} {issue.where}", what=issue.message, fix=issue.cure)
                for issue in files.issues
            ]
            raise InputError(problems)
        yield files, read_submission(files.folder)


def beside_any() -> tuple[str, ...]:
    """Return the files that archives of any protocol have besides."""
    from ..kinds.registry import judgings

    return tuple(name for judging in judgings() for name in judging.protocol().archive.files)
