"""The hidden test: the maintainer runs a submitted command and publishes scores alone."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..engine.lock import Stopper, stop_on_signals
from ..errors import ConfigError, FabulaError, InputError, TargetError, UserError
from ..evaluation.archive.archive import read_archive
from ..evaluation.katha.plans import PLANS, write_plans
from ..models.programs import Program, ProgramStopped, allowed_environment
from ..releases.loading import load
from ..schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ..schemas.layout import RELEASE
from .board import HIDDEN, Board, read_leaderboard, score_tables, scores_of_method
from .checking import coverage_of
from .hidden import HiddenRow, hidden_rows
from .standing import surely_better
from .submission import Submission, submission_named

EVALUATION, OUTPUTS = "evaluation", "outputs"
"""Folders of a work folder: what the judges said, and what the generator made."""


@dataclass(frozen=True)
class HiddenTask:
    """A submitted command, and what it is given.

    Attributes:
        folder: the leaderboard.
        board: a board of the hidden test.
        submission: whose command it is.
        release: the hidden test.
        work: where plans, outputs and the evaluation lie; never to be published.
        command: the command as it would be run, without a shell.
    """

    folder: Path
    board: Board
    submission: Submission
    release: Path
    work: Path
    command: tuple[str, ...]

    @property
    def outputs(self) -> Path:
        """Where the command is to write."""
        return self.work / OUTPUTS / self.submission.name

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"command": list(self.command), "work": str(self.work), "ran": False}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield f"command of {self.submission.name}, not run: {shlex.join(self.command)}"
        yield f"it would be run in {self.work}, without a shell, and gets the plans of the hidden stories"
        yield "it is a program of somebody else: read it, and run it where it can do no harm: --run-command"


@dataclass(frozen=True)
class HiddenScored:
    """A row that was written.

    Attributes:
        path: its file.
        row: the row.
    """

    path: Path
    row: HiddenRow

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"path": str(self.path), "ran": True, "row": self.row.as_json()}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield f"{self.path}: scores of {self.row.method} on the hidden test; the archive stays private"


def hidden_task(
    folder: Path, name: str, board: str, release: Path, work: Path, *, needs_command: bool = True
) -> HiddenTask:
    """Return what would be run for a submission; nothing where its outputs are there already.

    Raises:
        ConfigError: there is no such board, submission or command, or the board is of no hidden test.
        InputError: the submission cannot be used, or the release is not that of the board.
    """
    chosen = read_leaderboard(folder).board(board)
    if chosen.subset != "hidden":
        raise ConfigError("--board", what=f"{board} is a public board", fix="make one with init --hidden")
    if not (release / RELEASE).is_file() or sha256_file(release / RELEASE) != chosen.manifest_sha256:
        what = f"this is not the hidden test of {board}"
        raise InputError([UserError(str(release), what=what, fix="give the folder that it was made with")])
    with submission_named(folder, name) as (_, submission):
        text = submission.generator_command
    if text is None and needs_command:
        fix = "ask its makers for one, or put what they made into the work folder: --outputs-made"
        raise ConfigError(name, what="the submission has no generator command", fix=fix)
    task = HiddenTask(folder, chosen, submission, release, work.absolute(), ())
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise ConfigError(name, what=f"its command cannot be read: {error}", fix="ask for another") from error
    places = {"{plans}": str(task.work / "plans" / PLANS), "{outputs}": str(task.outputs)}
    filled = tuple(_filled(word, places) for word in words)
    return HiddenTask(folder, chosen, submission, release, task.work, filled)


def _filled(word: str, places: dict[str, str]) -> str:
    for key, path in places.items():
        word = word.replace(key, path)
    return word


def run_generator(task: HiddenTask) -> None:
    """Write the plans of the hidden stories, and run the submitted command on them, without a shell.

    It gets the variables of :data:`~..models.programs.ALLOWED` and no others, and what it says goes to
    standard error. It ends with us, and what it started ends with it.

    Raises:
        InputError: it cannot be started, or fails.
        KeyboardInterrupt: we were asked to stop.
        TargetError: the work folder cannot be written.
    """
    plans = task.work / "plans"
    try:
        task.outputs.mkdir(parents=True, exist_ok=True)
        if not (plans / PLANS).exists():
            write_plans(load(task.release), plans)
        (task.work / "work").mkdir(exist_ok=True)
    except OSError as error:
        what = f"the folder cannot be written: {error.strerror or error}"
        raise TargetError(str(task.work), what=what, fix="choose another --work") from error
    try:
        program = Program(task.command, allowed_environment(), folder=task.work / "work", output="shown")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = UserError(task.command[0], what=f"it cannot be started: {reason}", fix="install it")
        raise InputError([problem]) from error
    try:
        with stop_on_signals(_Ending(program)):
            ended = program.wait()
    except ProgramStopped:
        raise KeyboardInterrupt from None
    if ended.status:
        what = f"the command ended with {ended.status}"
        raise InputError([UserError(task.submission.name, what=what, fix="see what it printed")])


class _Ending(Stopper):
    """Ends a program when we are asked to stop."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program

    def ask(self) -> None:
        super().ask()
        self._program.end("it was asked to stop")


def score_hidden(
    task: HiddenTask, evaluate: Callable[[Path, Path], None], others: Sequence[Path] = ()
) -> HiddenScored:
    """Have the outputs of a generator judged, and write its row.

    Args:
        task: whose outputs lie in the work folder.
        evaluate: judges a folder of outputs into a folder, as the board asks.
        others: work folders of earlier methods, to be compared with.

    Raises:
        InputError: the evaluation is not as the board asks; every difference is told.
    """
    run, board = task.work / EVALUATION, task.board
    evaluate(task.outputs, run)
    archive = read_archive(run)
    problems = [
        UserError(f"protocol {each.path}", what=f"the board has {each.first}, and this is {each.second}",
                  fix="judge as the board asks")
        for each in board.differences(archive.manifest)
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    (method,) = archive.manifest.subject["methods"]
    seeds = max(1, len(archive.manifest.subject["methods"][method].get("seeds") or ()))
    judged = task.submission.model_copy(update={"method": method, "seeds": seeds})
    coverage, issues = coverage_of(archive, judged, board)
    if issues:
        raise InputError([UserError(method, what=issue.message, fix=issue.cure) for issue in issues])
    better, worse = _compared(task, run, others)
    row = HiddenRow(
        board=board.name, name=task.submission.name, method=task.submission.method, seeds=seeds,
        date=datetime.now(UTC).date().isoformat(), coverage=coverage, model=task.submission.model,
        prompt_rewriting=task.submission.prompt_rewriting,
        training_overlap=task.submission.training_overlap,
        scores=dict(scores_of_method(score_tables(run, task.release, board.resamples), method)),
        better=tuple(better), worse=tuple(worse),
    )  # fmt: skip
    path = task.folder / HIDDEN / f"{row.name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, [pretty_bytes(row.as_json())])
    return HiddenScored(path, row)


def _compared(task: HiddenTask, run: Path, others: Sequence[Path]) -> tuple[list[str], list[str]]:
    better: list[str] = []
    worse: list[str] = []
    known = {row.name for row in hidden_rows(task.folder, task.board)} - {task.submission.name}
    for other in others:
        if other.name in known and (other / EVALUATION).is_dir():
            try:
                sign = surely_better(run, other / EVALUATION, task.board, task.release)
            except FabulaError as error:
                raise InputError([UserError(str(other), what=str(error), fix="score it again")]) from error
            (better if sign > 0 else worse).extend([other.name] if sign else [])
    return better, worse
