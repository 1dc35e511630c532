"""``fabula experiment``: studies of plans, renderers, seeds and judges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .build import run_folder
from .command import command
from .common import answer, chosen_form, emit, released, say, show

if TYPE_CHECKING:
    from ..studies.experiments.study import ExperimentOptions


@command(
    "experiment run",
    "studies.experiments.study:ExperimentOptions",
    without=("replace_sources", "shard", "stage_costs"),
)
def run(
    study: Path,
    *,
    options: "ExperimentOptions",
    out: Path | None = None,
    parts: Sequence[str] = (),
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Run a study, with everything that its file names.

    Every renderer makes pictures of every plan; judges look at them; then come Semantic Compass, evaluators
    and plants, where the file has them, and the tables and the page. It can be stopped at any moment: the
    same command goes on, and nothing that was made or answered is asked for again. A plan, renderer, seed
    or judge that is added to the file later is done then. Cells share what they can: a plan is made once,
    and the story alone is judged once for all methods.

    Options:
        study: The study, a TOML file; see docs/experiments.md.
        out: Folder of the study; made if missing, continued if there.
        parts: Only this part: pictures, judgements, compass, evaluators, plants or tables.
        max_cost: Most USD that the study may cost in all [no limit].
        dry_run: Only print calls, pictures, USD and hours.

    Examples:
        fabula experiment run study.toml --dry-run
        fabula experiment run study.toml --out runs/study --max-cost 50
        fabula experiment run study.toml --out runs/study --part pictures --part judgements
    """
    from ..api.calling import choose_reporter
    from ..studies.experiments.losses import forecast
    from ..studies.experiments.running import run_study, states_of
    from ..studies.experiments.study import open_study, study_status

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
    """Show how far a study is.

    Each method has a line: what is made, invalid and judged.

    Options:
        folder: Folder of the study.

    Examples:
        fabula experiment status runs/study
    """
    from ..studies.experiments.running import states_of
    from ..studies.experiments.study import reopen_study, study_status

    desk = reopen_study(folder)
    show(study_status(desk, states_of(desk)), as_json=as_json)
    return 0


@command("experiment tables")
def tables(
    folder: Path,
    *,
    table: Sequence[str] = (),
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Print the tables of a study.

    They are those of the KathaTrace paper, made from what lies in the folder. A table whose input is not
    there is listed with the reason. Nothing is asked.

    Options:
        folder: Folder of the study.
        table: Only the table of this number in the paper, or of this name.

    Examples:
        fabula experiment tables runs/study
        fabula experiment tables runs/study --table 57 --table leaderboard --format latex
        fabula experiment tables runs/study --format csv > tables.csv
    """
    from ..evaluation.report.formats import written
    from ..studies.experiments.tables.registry import study_tables

    form = chosen_form(form, as_json=as_json)
    made = study_tables(folder, table)
    if form == "json":
        emit({"tables": [each.as_json() for each in made]})
    else:
        say(written(made, "markdown" if form == "text" else form))  # type: ignore[arg-type]
    return 0


@command("experiment plant")
def plant(
    outputs: Path,
    *,
    release: Path,
    out: Path,
    loss: Sequence[str] = (),
    split: Sequence[str] = (),
    truth: Path | None = None,
    boxes: Path | None = None,
    as_json: bool = False,
) -> int:
    """Make outputs with known losses.

    Evaluators are measured by them, without people. Each loss becomes a method of its own: frames
    swapped, removed or repeated, a decisive thing erased, a feeling flattened, or nothing lost. Which
    scene of a story is hit follows from the master seed. What was done stands in plants.jsonl, which
    judges never see; what could not be planted in unplanted.jsonl, with the reason.

    Options:
        outputs: Outputs of one method; see `outputs check`.
        release: Release folder, or user/name@tag.
        out: A new folder, or an interrupted one.
        loss: Only this loss: {studies.experiments.losses:NAMES}.
        split: Only stories of this split.
        truth: What drawn pictures show, as truth/METHOD.jsonl of a study has it.
        boxes: Where things are in other pictures; see docs/drawn.md.

    Examples:
        fabula experiment plant outputs/model-x --release dist/mine-0.1.0 --out planted
        fabula experiment plant outputs/model-x --release dist/mine-0.1.0 --boxes boxes.jsonl
            --loss object_erased --loss none --out planted
    """
    from ..releases.loading import load
    from ..studies.experiments.planting import PlantOptions
    from ..studies.experiments.planting import plant as planted_into

    options = PlantOptions(tuple(loss), tuple(split), truth, boxes)
    planted = planted_into(outputs, load(released(release)), out, options)
    document = {
        "out": str(out), "methods": {name: str(path) for name, path in planted.methods.items()},
        "planted": len(planted.rows), "unplanted": len(planted.unplanted),
    }  # fmt: skip
    return answer(document, planted.told().splitlines(), as_json=as_json)
