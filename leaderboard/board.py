"""What a leaderboard compares: boards, each of one benchmark in one version under one protocol.

``leaderboard.json`` says it. A board is read off an evaluation that was made exactly as submissions must be:
its protocol, its columns and how much was asked come from there, so that no list of metrics stands here.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ..errors import ConfigError, InputError, UserError
from ..evaluation.archive.archive import Difference, protocol_differences
from ..evaluation.judging.settings import TRAIN, trained_on
from ..evaluation.report.formats import Table
from ..evaluation.report.model import Measure, ScoreTable
from ..kinds.registry import kinds
from ..kinds.verbs import load_stories
from ..releases.loading import kind_of
from ..schemas.canonical import pretty_bytes, write_atomic
from ..schemas.judgement import EvaluationManifest, Judgement
from ..schemas.paths import format_path
from ..schemas.plain_files import read_plain, reason_of, type_reason
from ..schemas.values import Own, Score

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
        """The measure that methods are ranked by."""
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
        """Return a board by its name."""
        for board in self.boards:
            if board.name == name:
                return board
        there = ", ".join(board.name for board in self.boards)
        raise ConfigError("--board", what=f"there is no board {name}", fix=f"name one of: {there}")


def read_leaderboard(folder: Path) -> Leaderboard:
    """Return what a leaderboard is."""
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
