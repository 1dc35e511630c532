"""``fabula leaderboard``: submissions that are checked, ranked, and shown on pages of their own."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .command import command
from .common import answer, emit, released, say, show, show_findings, warn

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

    Each must have been made under its board's release, prompts and protocol, be whole, and give nothing of
    the hidden test away. A row that fails stays visible as unranked, with its reason. Exits with 1 if there
    is one.

    Options:
        folder: Folder of the leaderboard.
        hidden: Folder of the hidden test, to search for its ids and texts.
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

    They are static and load nothing from anywhere: a page with the table of each board, and one for each
    submission with pictures and replies. The folder can be served as it is, also as a static Space.

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
    from ..leaderboard.checking import reproduce

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
    from ..leaderboard.checking import retract

    made = retract(folder, name, reason, date)
    return answer({"name": name, **made.as_json()}, [f"{name}: retracted, {made.reason}"], as_json=as_json)


@command("leaderboard score-hidden")
def score_hidden(
    folder: Path, name: str, run: Path, *, board: str, release: Path, as_json: bool = False
) -> int:
    """Add a row of the hidden test: the scores of what a submitted generator made of it.

    Evaluate on the hidden test as its board asks, into a private folder of the submission's name. Only scores
    go into the leaderboard; evaluations of earlier rows, in folders of their names beside it, are compared.

    Options:
        folder: Folder of the leaderboard.
        name: Name of the submission.
        run: Evaluation on the hidden test.
        board: Name of a board of the hidden test.
        release: Folder of the hidden test.

    Examples:
        fabula leaderboard score-hidden board model-x private/model-x --board mine-0.1.0-hidden
            --release dist/mine-0.1.0-hidden
    """
    from ..leaderboard.standing import score_hidden

    show(score_hidden(folder, name, run, board, release), as_json=as_json)
    return 0


# -- ``fabula view``: pages of this machine that show what a folder holds


@command("view")
def view(
    path: Path,
    other: Path | None = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8760,
    edit: bool = False,
    as_json: bool = False,
) -> int:
    """Look at a run, a release or an evaluation in a browser.

    Records with all their parts, who made each, corrections, what models were asked and answered, storyboards
    with the answers about them; the progress of a run, its audit, report and diff. Pages are for this machine
    alone, change nothing without --edit, and show large files without loading them. With two evaluations:
    what both were asked, side by side, and where answers differ.

    Options:
        path: Folder of a run, a release or an evaluation.
        other: A second evaluation, to compare the first with.
        port: Port; 0 takes a free one.
        edit: Let whoever has the link change texts; corrections go to the run's edits.jsonl.

    Examples:
        fabula view runs/mine
        fabula view dist/mine-0.1.0 --port 0
        fabula view runs/mine --edit
        fabula view runs/eval-a runs/eval-b
    """
    from ..viewing.editing import serve
    from ..viewing.shelf import Differing, open_shelf
    from ..viewing.site import Site

    if edit and other is not None:
        raise ConfigError("--edit", what="two folders are given", fix="edit one run at a time")
    with ExitStack() as opened:
        shelf = opened.enter_context(open_shelf(released(path)))
        differing = None
        if other is not None:
            second = opened.enter_context(open_shelf(other))
            for each in (shelf, second):
                if not each.judged:
                    raise ConfigError(
                        str(each.folder),
                        what="this is no evaluation",
                        fix="give two evaluations, or one folder",
                    )
            differing = opened.enter_context(Differing(shelf, second))

        def started(address: str) -> None:
            if as_json:
                emit({"folder": str(path), "address": address})
            else:
                changes = f"changes go to {path / 'edits.jsonl'}" if edit else "nothing is changed"
                say(f"{path} is shown at {address}", f"stop with Ctrl-C; {changes}")

        if edit:
            from ..kinds.verbs import editable_of
            from ..viewing.editing import Editing, serve_editing

            serve_editing(Editing(Site(shelf), editable_of(path)), port, started)
        else:
            serve(Site(shelf, differing), port, started)
    return 0
