"""``fabula leaderboard``: submissions that are checked, ranked, and shown on pages of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import command
from .common import answer, show, show_findings, warn

if TYPE_CHECKING:
    from ..leaderboard.making import BoardOptions
    from ..leaderboard.submission import SubmitOptions


@command("leaderboard init", "leaderboard.making:BoardOptions")
def init(folder: Path, *, options: "BoardOptions", as_json: bool = False) -> int:
    """Begin a leaderboard, or add a board to one.

    A board is one benchmark in one version under one protocol. It is read off an evaluation that was made
    as submissions must be, such as one of a baseline: release, prompts, judges, votes and columns come from
    there. The folder can be a git or Hub repository; a workflow that checks and builds it is written, too.

    Options:
        folder: Folder of the leaderboard; made if missing.

    Examples:
        fabula leaderboard init board --release dist/mine-0.1.0 --like runs/eval-baseline
        fabula leaderboard init board --release user/mine@0.2.0 --like runs/eval-b --published
            vistorybench-lite
    """
    from ..leaderboard.making import init

    made = init(folder, options)
    warn(*(f"warning: {text}" for text in made.warnings))
    show(made, as_json=as_json)
    return 0


@command("leaderboard submit", "leaderboard.submission:SubmitOptions")
def submit(
    run: Path, *, options: "SubmitOptions", leaderboard: Path, out: Path | None = None, as_json: bool = False
) -> int:
    """Make a submission of an evaluation of one method.

    The archive is copied with small pictures of the stories that a report shows, the scores, and what you
    declare. What you leave out is shown as undeclared.

    Options:
        run: Evaluation folder, as `fabula evaluate` wrote it.
        leaderboard: Folder of the leaderboard.
        out: The submission, a folder or a .zip [submissions/NAME in the leaderboard].

    Examples:
        fabula leaderboard submit runs/eval-x --leaderboard board --name model-x --author "A. Author"
            --model model-x --model-version 1.2 --prompt-rewriting none --training-overlap none
        fabula leaderboard submit runs/eval-x --leaderboard board --name model-x --out model-x.zip
    """
    from ..leaderboard.submission import submit

    show(submit(run, leaderboard, options, out), as_json=as_json)
    return 0


@command("leaderboard check")
def check(
    folder: Path,
    *,
    hidden: Path | None = None,
    salt: Path | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Check every submission of a leaderboard.

    Each must have been made under its board's release, prompts and protocol, be whole, give nothing of the
    hidden test away, and hold replies that judges can have given. A row that fails stays visible as unranked,
    with its reason. Exits with 1 if there is one.

    Options:
        folder: Folder of the leaderboard.
        hidden: Folder of the hidden test, to search for its texts [only its ids are looked for].
        salt: File with the salt of its commitments.

    Examples:
        fabula leaderboard check board
        fabula leaderboard check board --hidden dist/mine-0.1.0-hidden --json
    """
    from ..leaderboard.checking import check

    return show_findings(check(folder, hidden, salt), as_json=as_json, everything=everything)


@command("leaderboard build")
def build(folder: Path, *, out: Path | None = None, hidden: Path | None = None, as_json: bool = False) -> int:
    """Write the pages of a leaderboard.

    They are static and load nothing from anywhere: a page for each board with its table, for each measure
    and dimension, for each submission with pictures and replies. The folder can be served as it is, also as
    a static Space.

    Options:
        folder: Folder of the leaderboard.
        out: Folder of the pages [site in the leaderboard].
        hidden: Folder of the hidden test, to search for its texts.

    Examples:
        fabula leaderboard build board
        fabula leaderboard build board --out public
    """
    from ..leaderboard.site import build

    show(build(folder, out or folder / "site", hidden), as_json=as_json)
    return 0


@command("leaderboard reproduce")
def reproduce(folder: Path, name: str, *, release: Path | None = None, as_json: bool = False) -> int:
    """Score a submission again and compare every number.

    Exits with 1 if one differs.

    Options:
        folder: Folder of the leaderboard.
        name: Name of the submission.
        release: Release that was judged [that of the board].

    Examples:
        fabula leaderboard reproduce board model-x
    """
    from ..leaderboard.reproducing import reproduce

    made = reproduce(folder, name, release)
    show(made, as_json=as_json)
    return int(not made.same)


@command("leaderboard retract")
def retract(folder: Path, name: str, *, reason: str, date: str | None = None, as_json: bool = False) -> int:
    """Withdraw a row; it stays listed with the reason.

    Options:
        folder: Folder of the leaderboard.
        name: Name of the submission.
        reason: Why, in a sentence.
        date: When, YYYY-MM-DD [today].

    Examples:
        fabula leaderboard retract board model-x --reason "The seeds were chosen by score."
    """
    from ..leaderboard.reproducing import retract

    made = retract(folder, name, reason, date)
    return answer({"name": name, **made.as_json()}, [f"{name}: retracted, {made.reason}"], as_json=as_json)


@command("leaderboard cost", judges="--judges")
def cost(
    release: Path,
    *,
    sizes: Sequence[int] = (),
    judges: Annotated[int, typer.Option(min=1)] = 1,
    as_json: bool = False,
) -> int:
    """Tell what a submission takes before anything is run.

    Panels that the generator must make and calls of judges, for one seed: three calls for each question, one
    under each evidence condition (Tables 47 and 48 of the KathaTrace paper).

    Options:
        release: Release folder.
        sizes: Also for so many stories, by the release's mean.
        judges: How many judges answer.

    Examples:
        fabula leaderboard cost dist/mine-0.1.0
        fabula leaderboard cost dist/mine-0.1.0 --stories 400 --stories 1000 --judges 3
    """
    from ..leaderboard.cost import costs_of

    show(costs_of(release, sizes, judges), as_json=as_json)
    return 0


@command("leaderboard score-hidden")
def score_hidden(
    folder: Path,
    name: str,
    *,
    board: str,
    release: Path,
    work: Path,
    judges: Sequence[str] = (),
    outputs_made: bool = False,
    run_command: bool = False,
    as_json: bool = False,
) -> int:
    """Run a submitted generator on the hidden test.

    Without --run-command the command is only shown. With it the plans of the hidden stories are written,
    the command is run in the work folder without a shell and without keys, what it made is judged by
    `fabula evaluate katha`, and the scores go into the leaderboard. Run it in a container without network:
    it is a program of somebody else.

    Options:
        folder: Folder of the leaderboard.
        name: Name of the submission.
        board: Name of a board of the hidden test.
        release: Folder of the hidden test.
        work: Private folder for plans, outputs and the evaluation; methods in folders beside it are compared.
        judges: A judge, as in `fabula evaluate katha`.
        outputs_made: The outputs lie in outputs/NAME of the work folder already; run no command.
        run_command: Run the command.

    Examples:
        fabula leaderboard score-hidden board model-x --board mine-0.1.0-hidden
            --release dist/mine-0.1.0-hidden --work private/model-x
        fabula leaderboard score-hidden board model-x --board mine-0.1.0-hidden
            --release dist/mine-0.1.0-hidden --work private/model-x --judge openai:gpt-4.1 --run-command
    """
    from ..evaluation.katha.requests import EvaluateOptions, evaluate_katha, evaluation_request
    from ..kinds.registry import foreign_sections
    from ..leaderboard.scoring_hidden import EVALUATION, hidden_task, run_generator
    from ..leaderboard.scoring_hidden import score_hidden as score

    task = hidden_task(folder, name, board, release, work, needs_command=not outputs_made)
    if not run_command and not outputs_made:
        show(task, as_json=as_json)
        return 0
    options = EvaluateOptions(judges=judges, others=foreign_sections)
    evaluation_request(release, [task.outputs], task.work / EVALUATION, options)  # a fault is told at once
    if run_command:
        warn(f"running: {' '.join(task.command)}")
        run_generator(task)
    others = [path for path in sorted(task.work.parent.iterdir()) if path != task.work]

    def evaluate(made: Path, out: Path) -> None:
        evaluate_katha(release, made, out, options)

    show(score(task, evaluate, others), as_json=as_json)
    return 0
