"""Making a board: it is read off an evaluation that was made exactly as submissions must be."""

import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ..errors import ConfigError, InputError, UserError
from ..evaluation.archive.archive import JUDGEMENTS, Difference, lines_of, protocol_differences, read_manifest
from ..evaluation.archive.replies import TRAIN, trained_on
from ..evaluation.report.formats import Table
from ..evaluation.report.model import Measure, ScoreTable
from ..kinds.benchmarks.row import published_table
from ..kinds.evaluations import judging_of, score_tables
from ..kinds.registry import kinds
from ..kinds.verbs import load_stories
from ..releases.hub.client import looks_like_reference
from ..releases.hub.fetch import release_folder
from ..releases.loading import kind_of
from ..schemas.canonical import plain_parts, pretty_bytes, sha256_file, write_atomic, writing
from ..schemas.judgement import EvaluationManifest, Judgement
from ..schemas.paths import RELEASE, format_path
from ..schemas.plain_files import read_json, read_plain, reason_of, type_reason
from ..schemas.text import counted, quoted
from ..schemas.values import Own, Score

# -- What a leaderboard compares: boards, each of one benchmark in one version under one protocol
#
# ``leaderboard.json`` says it. A board is read off an evaluation that was made exactly as submissions must
# be: its protocol, its columns and how much was asked come from there, so that no list of metrics stands
# here.

FILE = "leaderboard.json"
SUBMISSIONS, RELEASES, HIDDEN = "submissions", "releases", "hidden"
"""Folders of a leaderboard: submissions, copies of public releases, scores of hidden tests."""
UNVERSIONED = "unversioned"
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
OF_DATA = ("release", "suite")
"""Parts of a protocol that say what was judged: another one there is another board."""
Subset = Literal["public", "hidden"]


class Board(Own):
    """One benchmark in one version under one protocol."""

    name: str = Field(pattern=NAME, description="Name in files and addresses.")
    title: str = Field(description="Name for readers.")
    version: str = Field(description="Version of the benchmark.")
    subset: Subset = Field(description="public: archives are scored; hidden: the maintainer runs generators.")
    kind: str = Field(description="Name of the judge protocol.")
    source: str | None = Field(
        description="The release: a folder here, or user/name@tag on a Hub; null where archives hold it."
    )
    manifest_sha256: str | None = Field(description="SHA-256 of its release.json.")
    protocol: dict[str, Any] = Field(description="What every submission's manifest must say.")
    may_differ: tuple[str, ...] = Field(description="Parts of it that may differ.")
    measures: tuple[Measure, ...] = Field(description="Columns.")
    rank_by: str = Field(description="The measure that methods are ranked by.")
    units: int = Field(description="How many stories, episodes or videos are judged for one method.")
    panels: int | None = Field(description="Pictures or videos of one method with one seed, where known.")
    asked: dict[str, int] = Field(description="What/condition -> replies that one method with one seed has.")
    least_coverage: float = Field(
        ge=0, le=1, description="Least share of outputs and of replies to be ranked."
    )
    resamples: int = Field(default=10_000, ge=0, description="Bootstrap resamples of intervals.")
    planted: None = Field(default=None, exclude=True, description="Of older boards: planted outputs.")
    published: tuple[str, ...] = Field(default=(), description="Published tables that are shown beside it.")
    splits: dict[str, int] = Field(
        default_factory=dict, description="Split -> judged stories of it; empty where there are no splits."
    )

    @property
    def ranking(self) -> Measure:
        return next(measure for measure in self.measures if measure.name == self.rank_by)

    @property
    def trained(self) -> str:
        """What is said of a board that judges stories for training; empty where it judges none."""
        count = self.splits.get(TRAIN, 0)
        return trained_on(count, self.units) if count else ""

    @property
    def heading(self) -> str:
        """Title and version."""
        return self.title if self.version == UNVERSIONED else f"{self.title} {self.version}"

    @property
    def columns(self) -> tuple[Measure, ...]:
        """The measures, that of the ranking first."""
        return (self.ranking, *(measure for measure in self.measures if measure.name != self.rank_by))

    @property
    def judges(self) -> tuple[str, ...]:
        return tuple(map(str, self.protocol.get("judges") or ()))

    def differences(self, manifest: EvaluationManifest) -> tuple[Difference, ...]:
        """Return where an evaluation was made otherwise than submissions must be."""
        wanted = EvaluationManifest(kind=self.kind, protocol=self.protocol, subject={}, environment={})
        if manifest.kind != self.kind:
            return (Difference("kind", self.kind, manifest.kind),)
        return tuple(
            difference
            for difference in protocol_differences(wanted, manifest)
            if difference.path.partition(".")[0] not in self.may_differ
        )


class Retraction(Own):
    """Why a row was withdrawn."""

    date: str = Field(description="When, YYYY-MM-DD.")
    reason: str = Field(min_length=1, description="Why, in a sentence.")


class Leaderboard(Own):
    """``leaderboard.json``."""

    format: Literal[1] = 1
    title: str = Field(description="Title of the site.")
    boards: tuple[Board, ...] = Field(description="Boards, the newest version first.")
    retracted: dict[str, Retraction] = Field(default_factory=dict, description="Submission -> why.")

    def board(self, name: str) -> Board:
        for board in self.boards:
            if board.name == name:
                return board
        there = ", ".join(board.name for board in self.boards)
        raise ConfigError("--board", what=f"there is no board {name}", fix=f"name one of: {there}")


def read_leaderboard(folder: Path) -> Leaderboard:
    path = folder / FILE
    try:
        return Leaderboard.model_validate_json(read_plain(path))
    except OSError as error:
        fix = "give the folder of fabula leaderboard init"
        raise InputError.one(str(path), what=f"cannot be read: {reason_of(error)}", fix=fix) from error
    except ValidationError as error:
        raise InputError(invalid(str(path), error)) from error


def invalid(where: str, error: ValidationError) -> list[UserError]:
    """Return what a document has that its type does not allow."""
    return [
        UserError(f"{where} {format_path(detail['loc'])}", what=type_reason(detail), fix="correct it")
        for detail in error.errors(include_url=False)
    ]


def write_leaderboard(folder: Path, leaderboard: Leaderboard) -> None:
    """Write ``leaderboard.json`` into a folder that exists."""
    write_atomic(folder / FILE, [pretty_bytes(leaderboard.as_json())])


def question_of(judgement: Judgement) -> tuple[object, ...]:
    """Return what was asked of whom, whatever the method and its seed."""
    return (
        judgement.kind, judgement.unit, judgement.item, judgement.condition, judgement.judge.spec,
        judgement.vote,
    )  # fmt: skip


def seeds_of(what: str, seeds: int) -> int:
    """Return how often a kind of question is asked: of each seed, but the text alone once."""
    return 1 if what.endswith("/text") else seeds


def what_of(judgement: Judgement) -> str:
    """Return the kind of question and the condition."""
    return f"{judgement.kind}/{judgement.condition}"


def splits_of(release: Path | None, units: Collection[str]) -> dict[str, int]:
    """Return split -> how many of these stories are of it; nothing where the release is none of stories."""
    named = None if release is None else kind_of(release)
    if release is None or not any(kind.stories is not None and kind.name == named for kind in kinds()):
        return {}
    splits = Counter(record.split for record in load_stories(release).records if record.story_id in units)
    return dict(sorted(splits.items()))


def scores_of_method(tables: Iterable[Table], method: str) -> Mapping[str, Score]:
    """Return the scores of a method in the first table; of the first judge where each has a row."""
    table = next(iter(tables))
    rows = table.rows if isinstance(table, ScoreTable) else ()
    for row in rows:
        if row.label == method or row.label.startswith((f"{method} ", f"{method},")):
            return row.scores
    return {}


# --

WORKFLOW = Path(".github/workflows/leaderboard.yml")


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """How a board is made.

    Attributes:
        like: evaluation that was made as submissions must be: its release, protocol, prompts and judges are
            required of all.
        release: release, or suite, that was judged: a public one is copied into the folder, OWNER/NAME@TAG
            on a Hub is noted.
        board: name of the board [made of the benchmark's name and version].
        title: title of the site [made of the benchmark's].
        version: version of the benchmark [that of the release].
        rank_by: measure that methods are ranked by [that by which the protocol compares methods].
        may_differ: part of the protocol that may differ, such as decoding.
        least_coverage: least share of outputs and of replies that a ranked row has.
        resamples: bootstrap resamples of intervals and differences.
        hidden: a board of the hidden test: only `fabula leaderboard score-hidden` adds rows.
        published: published table that is shown beside it, such as vistorybench-lite.
    """

    like: Path
    release: Path | None = None
    board: str | None = None
    title: str | None = None
    version: str | None = None
    rank_by: str | None = None
    may_differ: tuple[str, ...] = ()
    least_coverage: float = 0.95
    resamples: int = 10_000
    hidden: bool = False
    published: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """A board that was made."""

    folder: Path  # of the leaderboard
    board: Board  # the board
    release: Path | None = None  # what was judged, as it was given
    warnings: tuple[str, ...] = ()  # what a maintainer should know before anybody submits

    def as_json(self) -> dict[str, Any]:
        return plain_parts(self, "folder", "board", "warnings")

    def lines(self) -> Iterable[str]:
        """Return what was made, and what a submission takes, as lines for people."""
        board = self.board
        yield f"board {board.name} of {board.heading} ({board.subset}), in {self.folder}"
        labels = ", ".join(measure.label for measure in board.measures)
        yield f"ranked by {board.ranking.label}; columns: {labels}"
        yield takes(board)
        folder = quoted(self.folder)
        if board.subset == "public":
            yield f"next: fabula leaderboard submit EVALUATION --leaderboard {folder} --name NAME"
        else:
            yield (
                f"next: fabula leaderboard score-hidden {folder} NAME EVALUATION --board {board.name} "
                f"--release {quoted(self.release)}"
            )


def takes(board: Board) -> str:
    """Return what one submission with one seed takes, in words."""
    shown = "" if board.panels is None else f", {board.panels:,} pictures or videos"
    asked = f"{sum(board.asked.values()):,} calls of {counted(len(board.judges), 'judge')}"
    return f"a submission with one seed takes: {counted(board.units, 'unit')} judged{shown}, {asked}"


def init(folder: Path, options: BoardOptions) -> Made:
    """Add a board to a leaderboard; the folder is made if it is missing."""
    for key in options.published:
        published_table(key)
    known = read_leaderboard(folder) if (folder / FILE).exists() else None
    board, warnings = _board(
        options, release_folder(options.release) if options.release is not None else None
    )
    taken = () if known is None else tuple(each.name for each in known.boards)
    if board.name in taken:
        raise ConfigError("--board", what=f"there is a board {board.name} already", fix="choose another name")
    with writing(folder, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SUBMISSIONS).mkdir(exist_ok=True)
        if board.source is not None and options.release is not None and not _on_hub(options.release):
            target = folder / board.source
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                (shutil.copytree if options.release.is_dir() else shutil.copyfile)(options.release, target)
        if not (folder / WORKFLOW).exists():
            (folder / WORKFLOW).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / WORKFLOW, [(files(__package__) / "workflow.yml").read_bytes()])
        title = options.title or (known.title if known is not None else f"{board.title}: leaderboard")
        boards = (board, *(known.boards if known is not None else ()))
        retracted = {} if known is None else known.retracted
        write_leaderboard(folder, Leaderboard(title=title, boards=boards, retracted=retracted))
    return Made(folder, board, options.release, tuple(warnings))


def _on_hub(release: Path) -> bool:
    return not release.exists() and looks_like_reference(str(release))


def _board(options: BoardOptions, release: Path | None) -> tuple[Board, list[str]]:
    """Return a board, and what a maintainer should know of it."""
    like = options.like
    manifest = read_manifest(like)
    document = _document(release)
    _check_visibility(options, document.get("visibility") == "hidden")
    about = _about(document)
    title = about.get("title") or options.title or judging_of(like).scored().title
    version = options.version or str(about.get("version") or UNVERSIONED)
    name = options.board or _slug(f"{about.get('name') or manifest.kind}-{version}")
    if options.hidden and options.board is None:
        name = f"{name}-hidden"
    if not re.fullmatch(NAME, name):
        raise ConfigError(
            "--board", what=f"{name} is no name: small letters, digits, . _ -", fix="choose another"
        )
    if release is None and not judging_of(like).protocol().archive.alone:
        what = "archives of its protocol do not hold what was judged"
        raise ConfigError("--release", what=what, fix="give the release, or the suite")
    headline = _scored(options, release)[0]
    assert isinstance(headline, ScoreTable)
    methods = sorted(manifest.subject.get("methods") or ())
    if not methods:
        raise ConfigError("--like", what="it judged no method's outputs", fix="give another evaluation")
    method = methods[0]
    units, asked = _asked(lines_of(like / JUDGEMENTS), method)
    subject = manifest.subject["methods"][method]
    made = [subject[key] for key in ("panels", "shots_valid", "valid") if isinstance(subject.get(key), int)]
    source = None
    if release is not None and not options.hidden:
        given = Path(str(options.release))
        source = str(given) if _on_hub(given) else f"{RELEASES}/{release.resolve().name}"
    board = Board(
        name=name, title=str(title), version=version, subset="hidden" if options.hidden else "public",
        kind=manifest.kind, source=source,
        manifest_sha256=None if release is None or not (release / RELEASE).is_file()
        else sha256_file(release / RELEASE),
        protocol=manifest.protocol, may_differ=options.may_differ, resamples=options.resamples,
        measures=headline.measures, rank_by=_rank_by(options, headline, like),
        units=len(units), panels=made[0] // max(1, len(subject.get("seeds") or [None])) if made else None,
        asked=asked, least_coverage=options.least_coverage, published=options.published,
        splits=splits_of(release, units),
    )  # fmt: skip
    return board, list(_warnings(board, method, scores_of_method([headline], method).get(board.rank_by)))


def _check_visibility(options: BoardOptions, is_hidden: bool) -> None:
    """Say no to a hidden test on a public board, and to a public release on a board of the hidden test."""
    if is_hidden and not options.hidden:
        what = f"{options.release} is a hidden test; a public board would copy it into the leaderboard"
        raise ConfigError("--release", what=what, fix="give the public release, or add --hidden")
    if options.hidden and not is_hidden:
        what = f"{options.release or 'what was judged'} is not the folder of a hidden test"
        raise ConfigError("--hidden", what=what, fix=_HIDDEN_FIX)


_HIDDEN_FIX = (
    "pack wrote the hidden test beside the public release, as NAME-hidden: evaluate a baseline on that "
    "folder (fabula evaluate stories --release NAME-hidden), then give the folder as --release and the "
    "evaluation as --like"
)


def _scored(options: BoardOptions, release: Path | None) -> list[Table]:
    try:
        return score_tables(options.like, release, options.resamples)
    except InputError as error:
        if not options.hidden:
            raise
        what = f"{options.like} does not fit the hidden test: {error.problems[0].what}"
        raise ConfigError("--like", what=what, fix=_HIDDEN_FIX) from error


def _warnings(board: Board, method: str, score: Score | None) -> Iterator[str]:
    label = board.ranking.label
    if score is None or score.value is None:
        reason = "not measured" if score is None else score.reason or score.status
        yield (
            f"{method} has no {label} to be ranked by ({reason}): a submission like it is not ranked. Choose "
            "another measure with --rank-by, or judges whose answers can be scored"
        )
    if board.trained:
        yield board.trained


def _document(release: Path | None) -> dict[str, Any]:
    if release is None or not (release / RELEASE).is_file():
        return {}
    document = read_json(release / RELEASE, follow=True)
    return document if isinstance(document, dict) else {}


def _about(document: dict[str, Any]) -> dict[str, Any]:
    about = document.get("about")
    return {**(about if isinstance(about, dict) else {}), "version": document.get("version")}


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.")[:64]


def _rank_by(options: BoardOptions, headline: ScoreTable, like: Path) -> str:
    names = [measure.name for measure in headline.measures]
    chosen = options.rank_by or judging_of(like).scored().compared_by
    if chosen in names:
        return chosen
    if options.rank_by:
        what = f"there is no measure {options.rank_by}"
        raise ConfigError("--rank-by", what=what, fix=f"choose one of: {', '.join(names)}")
    return next((measure.name for measure in headline.measures if measure.better), names[0])


def _asked(judgements: Iterable[Judgement], method: str) -> tuple[set[str], dict[str, int]]:
    """Return the units of a method, and how many replies each kind of question has per seed."""
    own = [judgement for judgement in judgements if judgement.method in (None, method)]
    asked = {(question_of(judgement), what_of(judgement)) for judgement in own}
    counts = Counter(what for _, what in asked)
    return {judgement.unit for judgement in own}, dict(sorted(counts.items()))
