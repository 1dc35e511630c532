"""Evaluators measured by planted losses, and beside each other (3, 54, 58-60, 66); nothing is judged anew.

What other answers, judges and labels would give (61, 62 and 65); nothing is judged anew.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ....evaluation.archive.archive import read_manifest
from ....evaluation.archive.replies import archive_notes
from ....evaluation.recoverability import recoverability
from ....evaluation.report.model import Measure, ScoreRow, ScoreTable
from ....pages.grid import label_text
from ....schemas.text import counted
from ..ablations import components as measured_tables
from ..ablations.components import Matching, answer_matching
from ..ablations.judges import judge_aggregation
from ..ablations.measuring import Measured, Sources
from ..ablations.morals import moral_granularity
from ..evaluators.evaluator import EVALUATORS
from ..measures.planted import PlantedRow, planted_measures
from .results import NoTable, StudyResults

PLANTED: tuple[Measure, ...] = (
    Measure(name="localisation", label="Dimension localised", better="high"),
    Measure(name="localisation_chance", label="By chance"),
    Measure(name="detected", label="Localised and seen", better="high"),
    Measure(name="transitions", label="Transition localised", better="high"),
    Measure(name="transitions_chance", label="By chance"),
    Measure(name="sensitivity", label="Losses seen", better="high"),
    Measure(name="false_alarms", label="False alarms", better="low"),
    Measure(name="false_accusations", label="False accusations", better="low"),
)
RATES: tuple[Measure, ...] = (
    *(Measure.of(rate) for rate in recoverability.METRICS[:3]),
    Measure(name="localisation", label="Dimension localised", better="high"),
    Measure(name="human_correlation", label="Human correlation", unit="plain", better="high"),
)
NOT_MEASURED = "nothing of it could be measured"


def planted_rows(results: StudyResults) -> tuple[PlantedRow, ...]:
    """Return what planted losses say of each evaluator, in the order in which there are evaluators.

    Those that ask the benchmark's own questions are read off the evaluation with these.
    """
    sources = results.sources
    folders = {}
    for name in EVALUATORS:
        wanted = name in sources.planted or name in results.study.evaluators
        folder = sources.planted.get(name) or sources.folder(name, planted=True)
        if wanted and folder is not None:
            folders[name] = folder
    if not folders or not sources.plants:
        raise NoTable("no evaluator was asked about storyboards with planted losses")
    made = partial(planted_measures, folders, sources.plants, results.definitions, sources.base)
    return results.once("planted losses", made)


def planted_losses(results: StudyResults) -> ScoreTable:
    """Every evaluator measured by what was planted: what it localises, sees, and sees where nothing is."""
    notes = [
        f"{name}: {note}"
        for name, folder in results.sources.planted.items()
        for note in archive_notes(read_manifest(folder))
    ]
    return ScoreTable(
        name="planted_losses", title="Evaluators measured by planted losses", heading="Evaluator",
        note="Known losses were put into storyboards: frames swapped, removed or repeated, a decisive thing "
        "erased, a feeling flattened. An evaluator should accuse what was hit, see that something is lost, "
        "and see nothing in storyboards that were put in unchanged. This needs no people. By chance is what "
        f"blind pointing gets. In brackets 95 % intervals over stories. {' '.join(notes)}".strip(),
        measures=PLANTED, rows=tuple(_planted_row(row) for row in planted_rows(results)),
    )  # fmt: skip


def _planted_row(row: PlantedRow) -> ScoreRow:
    remarks = [
        f"{counted(row.plants, 'changed storyboard')} and {row.controls:,} unchanged, of "
        f"{counted(row.stories, 'story')}"
    ]
    remarks += [f"{count} left out: {why}" for why, count in row.left_out.items()]
    return ScoreRow(label=row.title, scores=dict(row.scores), note="; ".join(remarks))


def by_loss(results: StudyResults) -> ScoreTable:
    """The same for each kind of loss apart."""
    made = planted_rows(results)
    rows = [
        ScoreRow(label=f"{label_text(loss)} · {row.title}", scores=dict(row.losses[loss]))
        for loss in dict.fromkeys(loss for row in made for loss in row.losses)
        for row in made
        if loss in row.losses
    ]
    return ScoreTable(
        name="planted_by_loss", title="Each kind of planted loss", heading="Loss and evaluator",
        measures=(PLANTED[0], PLANTED[1], PLANTED[5]), rows=tuple(rows),
    )  # fmt: skip


def _table(
    name: str, title: str, measures: Sequence[Measure], rows_of: Callable[[Sources], Sequence[Measured]]
) -> Callable[[StudyResults], ScoreTable]:
    def make(results: StudyResults) -> ScoreTable:
        rows = rows_of(results.sources)
        if all(score.value is None for row in rows for score in row.scores.values()):
            raise NoTable(NOT_MEASURED)
        names = {measure.name for measure in measures}
        return ScoreTable(
            name=name, title=title, heading="Setting", measures=tuple(measures),
            note="Means over the methods. Localisation is that of planted losses. What cannot be measured "
            "says why on the page and in the CSV file.",
            rows=tuple(
                ScoreRow(
                    label=row.title, note=_what_it_is(row),
                    scores={key: score for key, score in row.scores.items() if key in names},
                )
                for row in rows
            ),
        )  # fmt: skip

    return make


def _what_it_is(row: Measured) -> str:
    """Return what an evaluator of others asks, or what a setting leaves out of the protocol."""
    removes = (
        row.removes if row.how == "evaluator" else f"Left out: {row.removes[:1].lower()}{row.removes[1:]}"
    )
    return " ".join((removes, *row.notes))


def _leakage(label: str) -> tuple[Measure, ...]:
    return (*RATES, Measure(name="leakage", label=label, better="low"))


ladder = _table(
    "evaluators", "Evaluators, and the protocol built up part by part", RATES,
    measured_tables.evaluators_and_ladder,
)  # fmt: skip
controls = _table("evaluator_controls", "Evaluators", RATES, measured_tables.evaluator_controls)
components = _table(
    "components", "The protocol without one of its parts", _leakage("Ambiguity leakage"),
    measured_tables.component_removals,
)  # fmt: skip
constructions = _table(
    "constructions", "How questions are made", RATES, measured_tables.question_constructions
)  # fmt: skip
dimension_sets = _table("dimension_sets", "Sets of dimensions", RATES, measured_tables.dimension_sets)


def _evidence_rows(sources: Sources) -> list[Measured]:
    return [row.measured for row in measured_tables.evidence_conditions(sources)]


evidence = _table(
    "evidence_conditions", "Conditions of evidence",
    (
        *RATES[:3],
        Measure(name="reliability", label="Reliability", unit="plain", better="high"),
        Measure(name="detection", label="Ambiguity detection", better="high"),
        RATES[-1],
    ),
    _evidence_rows,
)  # fmt: skip


PEOPLE = "Columns about people are empty until the study names a file of their answers."


def matching(results: StudyResults) -> ScoreTable:
    """Table 61: how often each matcher accepts a wrong answer and rejects a right one."""
    rows = answer_matching(results.sources, results.study.labelled_file)
    return ScoreTable(
        name="answer_matching", title="How answers are compared", heading="Matcher",
        note="False accepts: wrong answers that count as right; false rejects: right ones that do not, both "
        f"of a file of labelled answers. {PEOPLE}",
        measures=(
            Measure(name="false_accepts", label="False accepts", better="low"),
            Measure(name="false_rejects", label="False rejects", better="low"),
            Measure(name="human_correlation", label="Human correlation", unit="plain", better="high"),
        ),
        rows=tuple(
            ScoreRow(
                label=row.title, scores=dict(row.scores),
                note="; ".join(_left_out(row)) or None,
            )
            for row in rows
        ),
    )  # fmt: skip


def _left_out(row: Matching) -> Iterator[str]:
    if row.unknown:
        yield f"{counted(row.unknown, 'answer')} without a verdict"
    if row.undecided:
        yield f"{counted(row.undecided, 'answer')} that people are not of one mind about"


def judges(results: StudyResults) -> ScoreTable:
    """Table 62: every judge alone, their majority, and weighted by how well they follow people."""
    return ScoreTable(
        name="judge_aggregation", title="Judges alone and together", heading="Judges",
        note=f"Recoverability and gap are means over the methods. {PEOPLE}",
        measures=(
            *RATES[:3],
            Measure(name="agreement", label="Agreement with people", better="high"),
            Measure(name="spearman", label="Spearman", unit="plain", better="high"),
            Measure(name="kappa", label="Kappa", unit="plain", better="high"),
            Measure(name="calibration_error", label="Calibration error", unit="plain", better="low"),
        ),
        rows=tuple(
            ScoreRow(label=row.title, scores=dict(row.scores)) for row in judge_aggregation(results.sources)
        ),
    )  # fmt: skip


def morals(results: StudyResults) -> ScoreTable:
    """Table 65: the moral target told apart by two, four, ten or twelve labels."""
    return ScoreTable(
        name="moral_granularity", title="How finely morals are told apart", heading="Labels",
        note="The answers are those that were given among twelve labels, grouped; nobody was asked again. "
        f"Chance is one among the labels, majority the most frequent one. {PEOPLE}",
        measures=(
            *RATES[:3],
            Measure(name="chance", label="By chance"),
            Measure(name="majority", label="Most frequent"),
            Measure(name="human_agreement", label="Agreement with people", better="high"),
        ),
        rows=tuple(
            ScoreRow(label=row.title, scores=dict(row.scores)) for row in moral_granularity(results.sources)
        ),
    )  # fmt: skip
