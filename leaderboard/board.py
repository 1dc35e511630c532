"""What a leaderboard compares: boards, each of one benchmark in one version under one protocol.

``leaderboard.json`` says it. A board is read off an evaluation that was made exactly as submissions must be:
its protocol, its columns and how much was asked come from there, so that no list of metrics stands here.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ..errors import ConfigError, InputError, TargetError, UserError
from ..evaluation.archive.archive import JUDGEMENTS, lines_of, read_manifest
from ..evaluation.archive.protocols import Difference, protocol_differences
from ..evaluation.report.formats import Table
from ..evaluation.report.model import Measure, ScoreTable
from ..kinds.evaluations import judging_of, score
from ..releases.hub.address import looks_like_reference
from ..releases.hub.fetch import release_folder
from ..schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ..schemas.judgement import EvaluationManifest, Judgement
from ..schemas.layout import RELEASE
from ..schemas.paths import format_path
from ..schemas.plain_files import read_json, read_plain
from ..schemas.text import counted
from ..schemas.values import Own, Score

FILE = "leaderboard.json"
SUBMISSIONS, RELEASES, HIDDEN = "submissions", "releases", "hidden"
"""Folders of a leaderboard: submissions, copies of public releases, scores of hidden tests."""
WORKFLOW = Path(".github/workflows/leaderboard.yml")
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
OF_DATA = ("release", "suite")
"""Parts of a protocol that say what was judged: another one there is another board."""
Subset = Literal["public", "hidden"]


class Planted(Own):
    """Outputs that everybody has judged beside their own, and of which the maintainer knows the score.

    A judge that looks scores them as the maintainer's did; answers that were made up, or copied from the
    accepted ones, do not.
    """

    method: str = Field(description="Name of the method in evaluations.")
    outputs_sha256: str = Field(description="Hash of the outputs, as evaluations state it.")
    value: float = Field(description="Score of the maintainer's evaluation.")
    low: float = Field(description="Lowest score that passes.")
    high: float = Field(description="Highest score that passes.")


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
    planted: Planted | None = Field(default=None, description="Planted outputs, if there are some.")
    published: tuple[str, ...] = Field(default=(), description="Published tables that are shown beside it.")

    @property
    def ranking(self) -> Measure:
        """The measure that methods are ranked by."""
        return next(measure for measure in self.measures if measure.name == self.rank_by)

    @property
    def columns(self) -> tuple[Measure, ...]:
        """The measures, that of the ranking first."""
        return (self.ranking, *(measure for measure in self.measures if measure.name != self.rank_by))

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges."""
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
        """Return a board by its name.

        Raises:
            ConfigError: there is none.
        """
        for board in self.boards:
            if board.name == name:
                return board
        there = ", ".join(board.name for board in self.boards)
        raise ConfigError("--board", what=f"there is no board {name}", fix=f"name one of: {there}")


def read_leaderboard(folder: Path) -> Leaderboard:
    """Return what a leaderboard is.

    Raises:
        InputError: its file is missing, or has something that the type does not allow; all is told.
    """
    path = folder / FILE
    try:
        return Leaderboard.model_validate_json(read_plain(path))
    except OSError as error:
        fix = "give the folder of fabula leaderboard init"
        raise InputError([UserError(str(path), what=f"cannot be read: {error.strerror}", fix=fix)]) from error
    except ValidationError as error:
        raise InputError(invalid(str(path), error)) from error


def invalid(where: str, error: ValidationError) -> list[UserError]:
    """Return what a document has that its type does not allow."""
    return [
        UserError(f"{where} {format_path(detail['loc'])}", what=str(detail["msg"]), fix="correct it")
        for detail in error.errors(include_url=False, include_input=False)
    ]


def write_leaderboard(folder: Path, leaderboard: Leaderboard) -> None:
    """Write ``leaderboard.json`` into a folder that exists."""
    write_atomic(folder / FILE, [pretty_bytes(leaderboard.as_json())])


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
        planted: method of that evaluation whose outputs are planted: everybody judges them, too.
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
    planted: str | None = None
    published: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """A board that was made.

    Attributes:
        folder: of the leaderboard.
        board: the board.
    """

    folder: Path
    board: Board

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"folder": str(self.folder), "board": self.board.as_json()}

    def lines(self) -> Iterable[str]:
        """Return what was made, and what a submission takes, as lines for people."""
        board = self.board
        yield f"board {board.name} of {board.title} {board.version} ({board.subset}), in {self.folder}"
        labels = ", ".join(measure.label for measure in board.measures)
        yield f"ranked by {board.ranking.label}; columns: {labels}"
        yield takes(board)
        yield f"next: fabula leaderboard submit EVALUATION --leaderboard {self.folder} --name NAME"


def takes(board: Board) -> str:
    """Return what one submission with one seed takes, in words."""
    shown = "" if board.panels is None else f", {board.panels:,} pictures or videos"
    asked = f"{sum(board.asked.values()):,} calls of {counted(len(board.judges), 'judge')}"
    return f"a submission with one seed takes: {counted(board.units, 'unit')} judged{shown}, {asked}"


def init(folder: Path, options: BoardOptions) -> Made:
    """Add a board to a leaderboard; the folder is made if it is missing.

    Raises:
        InputError: the evaluation or the release cannot be read, or do not belong together.
        ConfigError: a name is taken, or there is no such measure, method or published table.
        TargetError: the folder cannot be written.
    """
    from .published import published_table

    for key in options.published:
        published_table(key)
    known = read_leaderboard(folder) if (folder / FILE).exists() else None
    board = _board(options, release_folder(options.release) if options.release is not None else None)
    taken = () if known is None else tuple(each.name for each in known.boards)
    if board.name in taken:
        raise ConfigError("--board", what=f"there is a board {board.name} already", fix="choose another name")
    try:
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
    except OSError as error:
        what = f"the folder cannot be written: {error.strerror or error}"
        raise TargetError(str(folder), what=what, fix="choose another folder") from error
    return Made(folder, board)


def _on_hub(release: Path) -> bool:
    return not release.exists() and looks_like_reference(str(release))


def _board(options: BoardOptions, release: Path | None) -> Board:
    like = options.like
    manifest = read_manifest(like)
    about = _about(release) if release is not None else {}
    title = about.get("title") or options.title or judging_of(like).scored().title
    version = options.version or str(about.get("version") or "unversioned")
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
    tables = score_tables(like, release, options.resamples)
    headline = tables[0]
    assert isinstance(headline, ScoreTable)
    methods = sorted(manifest.subject.get("methods") or ())
    planted = None if options.planted is None else _planted(options, manifest, headline, methods)
    shown = [method for method in methods if method != options.planted]
    if not shown:
        raise ConfigError("--like", what="it judged no method's outputs", fix="give another evaluation")
    method = shown[0]
    units, asked = _asked(lines_of(like / JUDGEMENTS), method)
    subject = manifest.subject["methods"][method]
    made = [subject[key] for key in ("panels", "shots_valid", "valid") if isinstance(subject.get(key), int)]
    source = None
    if release is not None and not options.hidden:
        given = Path(str(options.release))
        source = str(given) if _on_hub(given) else f"{RELEASES}/{release.resolve().name}"
    return Board(
        name=name, title=str(title), version=version, subset="hidden" if options.hidden else "public",
        kind=manifest.kind, source=source,
        manifest_sha256=None if release is None or not (release / RELEASE).is_file()
        else sha256_file(release / RELEASE),
        protocol=manifest.protocol, may_differ=options.may_differ, resamples=options.resamples,
        measures=headline.measures, rank_by=_rank_by(options, headline, like),
        units=len(units), panels=made[0] // max(1, len(subject.get("seeds") or [None])) if made else None,
        asked=asked, least_coverage=options.least_coverage, planted=planted, published=options.published,
    )  # fmt: skip


def _about(release: Path) -> dict[str, Any]:
    if not (release / RELEASE).is_file():
        return {}
    document = read_json(release / RELEASE, follow=True)
    about = document.get("about") if isinstance(document, dict) else None
    named = about if isinstance(about, dict) else {}
    return {**named, "version": document.get("version") if isinstance(document, dict) else None}


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


def _planted(
    options: BoardOptions, manifest: EvaluationManifest, headline: ScoreTable, methods: list[str]
) -> Planted:
    name = str(options.planted)
    if name not in methods:
        what = f"the evaluation has no method {name}"
        raise ConfigError("--planted", what=what, fix=f"name one of: {', '.join(methods)}")
    measure = _rank_by(options, headline, options.like)
    score = scores_of_method([headline], name).get(measure)
    if score is None or score.value is None or score.low is None or score.high is None:
        what = f"{name} has no {measure} with an interval"
        raise ConfigError("--planted", what=what, fix="plant in 6 stories or more")
    digest = str(manifest.subject["methods"][name].get("outputs_sha256"))
    slack = (score.high - score.low) / 2
    return Planted(
        method=name, outputs_sha256=digest, value=score.value, low=score.low - slack, high=score.high + slack
    )


def score_tables(folder: Path, release: Path | None, resamples: int) -> list[Table]:
    """Return the scores of an evaluation as tables; the first has the columns of its board.

    Raises:
        InputError: archive or release cannot be read, or do not belong together.
    """
    scoring = judging_of(folder).scored()
    made = (
        scoring.tables(score(folder, scoring_options(folder, release, resamples)))
        if scoring.tables is not None
        else ()
    )
    tables = list(made)
    if not tables:
        raise InputError(
            [UserError(str(folder), what="its protocol gives no table of scores", fix="give another")]
        )
    return tables


def scoring_options(folder: Path, release: Path | None, resamples: int) -> dict[str, Any]:
    """Return the options with which an archive of a board is scored and compared."""
    takes_release = release is not None and "release" in judging_of(folder).scored().options
    return {"resamples": resamples, **({"release": release} if takes_release else {})}


def scores_of_method(tables: Iterable[Table], method: str) -> Mapping[str, Score]:
    """Return the scores of a method in the first table; of the first judge where each has a row."""
    table = next(iter(tables))
    rows = table.rows if isinstance(table, ScoreTable) else ()
    for row in rows:
        if row.label == method or row.label.startswith((f"{method} ", f"{method},")):
            return row.scores
    return {}
