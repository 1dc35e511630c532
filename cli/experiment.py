"""``fabula experiment``: studies of plans, renderers, seeds and judges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .build import run_folder
from .command import command
from .common import show

if TYPE_CHECKING:
    from ..experiments.desk import ExperimentOptions


@command("experiment run", "experiments.desk:ExperimentOptions", without=("replace_sources",))
def run(
    study: Path,
    *,
    options: "ExperimentOptions",
    out: Path | None = None,
    parts: Sequence[str] = (),
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Run a study: pictures of every plan by every renderer, judgements, and the rest that its file names.

    It can be stopped at any moment: the same command goes on, and nothing that was made or answered is asked
    for again. A plan, renderer, seed or judge that is added to the file later is done then. Cells share what
    they can: a plan is made once, and the story alone is judged once for all methods.

    Options:
        study: The study, a TOML file; see docs/experiments.md.
        out: Folder of the study; made if missing, continued if there.
        parts: Only this part: pictures, judgements, compass, evaluators, plants or tables.
        dry_run: Only print calls, pictures, USD and hours.

    Examples:
        fabula experiment run study.toml --dry-run
        fabula experiment run study.toml --out runs/study --max-cost 50
        fabula experiment run study.toml --out runs/study --part pictures --part judgements
    """
    from ..engine.progress import choose_reporter
    from ..experiments.desk import open_study
    from ..experiments.forecast import forecast
    from ..experiments.running import run_study, states_of
    from ..experiments.status import study_status

    reporter = choose_reporter(as_json=as_json)
    if dry_run:
        show(forecast(open_study(study, out or Path("runs/study"), options)), as_json=as_json)
        return 0
    desk = open_study(
        study, run_folder(out, "runs/study", "the folder of the study is needed"), options, reporter
    )
    run_study(desk, parts)
    show(study_status(desk, states_of(desk)), as_json=as_json)
    return 0


@command("experiment status")
def status(folder: Path, *, as_json: bool = False) -> int:
    """Show how far a study is: a line for each method, what is made, invalid and judged.

    Options:
        folder: Folder of the study.

    Examples:
        fabula experiment status runs/study
    """
    from ..experiments.desk import reopen_study
    from ..experiments.running import states_of
    from ..experiments.status import study_status

    desk = reopen_study(folder)
    show(study_status(desk, states_of(desk)), as_json=as_json)
    return 0
