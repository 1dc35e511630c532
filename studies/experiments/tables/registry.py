"""Every table of a study, in order, and writing them: as values, as files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ....errors import ConfigError
from ....evaluation.recoverability.matching import Definitions
from ....evaluation.report.formats import Table, written
from ....evaluation.report.model import CountRow, CountTable
from ....schemas.canonical import pretty_bytes, write_atomic, writing
from ..study import TABLES as FOLDER
from . import ablations, compass, evaluators, failures, leaderboard, pipelines
from .results import MadeTables, NoTable, Part, StudyResults, StudyTable, read_results

JUDGED: tuple[Part, ...] = ("evaluation",)
ASKED: tuple[Part, ...] = ("generations",)
Make = Callable[[StudyResults], Table]


def _judged(number: str, name: str, title: str, group: str, make: Make) -> StudyTable:
    return StudyTable(number, name, title, group, JUDGED, make)


def _compass(number: str, name: str, title: str, make: Make) -> StudyTable:
    return StudyTable(number, name, title, "compass", ("compass",), make)


def _others(number: str, name: str, title: str, make: Make) -> StudyTable:
    return StudyTable(number, name, title, "evaluators", ("evaluators",), make)


def _ablation(number: str, name: str, title: str, make: Make) -> StudyTable:
    return StudyTable(number, name, title, "evaluators", JUDGED, make)


TABLES: tuple[StudyTable, ...] = (
    StudyTable(
        "",
        "planted_losses",
        "Evaluators measured by planted losses",
        "planted",
        ("planted",),
        evaluators.planted_losses,
    ),
    StudyTable("", "planted_by_loss", "Each kind of loss", "planted", ("planted",), evaluators.by_loss),
    _judged("52", "leaderboard", "Leaderboard", "results", leaderboard.leaderboard),
    _judged("56", "latent_gaps", "Gaps of the latent dimensions", "results", leaderboard.latent_gaps),
    _judged("53", "planner_effects", "What the plan changes", "effects", ablations.planner_effects),
    _judged("53", "renderer_effects", "What the renderer changes", "effects", ablations.renderer_effects),
    _judged("53", "planner_ablation", "Plans, renderer held", "effects", ablations.planner_ablation),
    _judged("53", "renderer_ablation", "Renderers, plan held", "effects", ablations.renderer_ablation),
    _compass(
        "55 and 75", "bridge_controls", "Semantic Compass and controls of its length", compass.bridge_controls
    ),
    _compass("63", "compass_terms", "Terms of the score that selects", compass.terms),
    _compass("64", "held_out", "Held-out prompts and questions", compass.held_out),
    _compass("43", "compass_protocol", "What was frozen", compass.protocol),
    _compass("74", "compass_arms", "What each arm does", compass.arm_lengths),
    _others("3", "evaluators", "Evaluators, and the protocol built up", evaluators.ladder),
    _others("54", "evaluator_controls", "Evaluators", evaluators.controls),
    _ablation("58", "components", "Without one part of the protocol", evaluators.components),
    _ablation("59", "evidence_conditions", "Conditions of evidence", evaluators.evidence),
    _others("60", "constructions", "How questions are made", evaluators.constructions),
    _ablation("61", "answer_matching", "How answers are compared", evaluators.matching),
    _ablation("62", "judge_aggregation", "Judges alone and together", evaluators.judges),
    _ablation("65", "moral_granularity", "How finely morals are told apart", evaluators.morals),
    _ablation("66", "dimension_sets", "Sets of dimensions", evaluators.dimension_sets),
    _judged("69", "failure_types", "How storyboards fail", "parts", failures.failure_types),
    _judged("70", "same_story", "What is recovered, and the diagnosis", "parts", failures.same_story),
    _judged("", "by_dimension", "By dimension", "parts", ablations.by_dimension),
    _judged("", "by_source_family", "By source family", "parts", ablations.by_source_family),
    _judged("", "by_narrative_type", "By narrative type", "parts", ablations.by_narrative_type),
    _judged("", "moral_target", "Moral targets, of twelve labels", "parts", ablations.moral_targets),
    _judged("", "pairs", "Contrastive pairs", "parts", ablations.contrastives),
    _judged("26", "question_audit", "What ambiguity filtering does", "validity", ablations.question_audit),
    _judged("57", "story_audit", "What invalid generations do", "validity", ablations.story_audit),
    _judged("", "invalid_generations", "Invalid generations", "validity", ablations.invalid_generations),
    _judged("73", "evidence", "With more and more evidence", "validity", ablations.evidence),
    _judged("4 and 72", "robustness", "Other explanations of the gap", "validity", ablations.robustness),
    StudyTable("41", "pipelines", "Pipelines", "setup", (), pipelines.pipelines),
    _judged("42", "controls_of_study", "What kept it fair", "setup", pipelines.controls),
    _judged("44", "run_seeds", "Runs and seeds", "setup", pipelines.run_seeds),
    StudyTable("", "picture_costs", "Pictures and their cost", "cost", ASKED, pipelines.picture_costs),
    _judged("", "judge_costs", "Judges and their cost", "cost", pipelines.judge_costs),
    _judged("48", "leaderboard_cost", "What one more method takes", "cost", pipelines.leaderboard_cost),
)
"""All tables, in the order in which they are shown."""
ABSENT = "absent_tables"
"""Name of the table that lists those that could not be made, with the reason."""
SUFFIXES = {"csv": "csv", "markdown": "md", "latex": "tex"}


def chosen(names: Sequence[str]) -> tuple[StudyTable, ...]:
    """Return the tables of these names or numbers in the paper; all where none is named."""
    known = {key for table in TABLES for key in (table.name, *table.numbers)}
    unknown = [name for name in names if name not in known]
    if unknown:
        there = ", ".join(
            f"{table.name} ({table.number})" if table.number else table.name for table in TABLES
        )
        raise ConfigError(
            "--table", what=f"there is no table {', '.join(unknown)}", fix=f"choose from {there}"
        )
    return tuple(table for table in TABLES if not names or {table.name, *table.numbers} & set(names))


def make_tables(results: StudyResults, some: Sequence[StudyTable] = TABLES) -> MadeTables:
    """Return the tables, and why there is none of those that could not be made."""
    tables: dict[str, Table] = {}
    absent: dict[str, str] = {}
    for table in some:
        reasons = [results.absent[part] for part in table.needs if part in results.absent]
        try:
            if reasons:
                raise NoTable("; ".join(reasons))
            tables[table.name] = table.make(results).model_copy(update={"title": table.caption})
        except NoTable as reason:
            absent[table.name] = str(reason)
    return MadeTables(tables, absent)


def absent_table(made: MadeTables) -> CountTable:
    """Return the table of those that there are not; without a row where all are there."""
    titles = {table.name: table for table in TABLES}
    return CountTable(
        name=ABSENT, title="Tables that could not be made", heading="Table",
        columns={"name": "Name", "why": "Why"},
        rows=tuple(
            CountRow(label=titles[name].caption, values={"name": name, "why": why})
            for name, why in made.absent.items()
        ),
    )  # fmt: skip


def study_tables(
    folder: Path,
    names: Sequence[str] = (),
    definitions: Definitions | None = None,
    release: Path | None = None,
) -> tuple[Table, ...]:
    """Return the tables of a study folder; the last lists those that could not be made, with the reason.

    ``definitions``: how replies become numbers; None for the study's. ``release``: the release that was
    judged; None for the place that the evaluation names.
    """
    some = chosen(names)
    made = make_tables(read_results(folder, definitions, release), some)
    left = absent_table(made)
    return (*made.tables.values(), *([left] if left.rows else []))


def write_tables(
    folder: Path, definitions: Definitions | None = None, release: Path | None = None
) -> tuple[Path, ...]:
    """Write every table of a study into its folder, each as CSV, Markdown, LaTeX and JSON; return the files.

    Files of tables that can no longer be made are removed.
    """
    return save_tables(folder, study_tables(folder, (), definitions, release))


def save_tables(folder: Path, tables: Sequence[Table]) -> tuple[Path, ...]:
    """Write tables into the folder of a study; see :func:`write_tables`."""
    target = folder / FOLDER
    files = dict(_files(target, tables))
    own = {f"{table.name}.{suffix}" for table in TABLES for suffix in (*SUFFIXES.values(), "json")}
    own |= {f"{ABSENT}.{suffix}" for suffix in (*SUFFIXES.values(), "json")}
    with writing(target, "free the disk, or give yourself the right to write there", what="the tables"):
        target.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_atomic(path, [content])
        for name in own:
            if (target / name) not in files:
                (target / name).unlink(missing_ok=True)
    return tuple(files)


def _files(target: Path, tables: Sequence[Table]) -> Iterator[tuple[Path, bytes]]:
    for table in tables:
        for form, suffix in SUFFIXES.items():
            text = written([table], form)  # type: ignore[arg-type]
            yield target / f"{table.name}.{suffix}", text.encode("utf-8")
        yield target / f"{table.name}.json", pretty_bytes(table.as_json())
