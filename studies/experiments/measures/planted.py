"""Every evaluator measured by planted losses: a calibration of judges by interventions, without people.

The same storyboards, changed and unchanged, are judged with the questions of each evaluator; what was changed
is known to nobody but this file's reader.

An evaluator's evaluation folder, read as the evaluator sees it; and what people answered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from ....evaluation.archive.archive import read_manifest
from ....evaluation.metrics.metric import Quantity
from ....evaluation.recoverability.matching import Definitions
from ....evaluation.recoverability.score import Judged, judged_folder, release_path
from ....evaluation.stats.uncertainty import Uncertainty
from ....people.read import Known, read_human
from ....people.study import Exclusion, exclude
from ....releases.loading import Release, load
from ....schemas.canonical import Plain, digest
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question, StoryRecord
from ....schemas.text import normalize_answer
from ....schemas.values import Score
from ..evaluators.deriving import SIDECAR, read_sidecar
from ..evaluators.evaluator import Evaluator, evaluator_of
from ..evaluators.graph import apply_graph, contrast_checked
from ..study import MASTER_SEED
from .falls import (
    LEAST,
    Fall,
    Falls,
    Plant,
    falls_of,
    localise_dimensions,
    localise_transitions,
    sensitivity,
    stories_in,
)
from .views import View, share_score

# -- Planted defective questions: some questions get the accepted answers of another story's question
#
# Such a question cannot be answered as intended, whatever the pictures show. Nothing is judged again: the
# question's text stays, and only what answers are compared with is another. So the archived answers of judges
# can be scored against a release with defects.

SHARE = 0.2
"""Share of the questions that become defective, of each dimension."""
Read = Callable[[Path], Release]


def plant_defects(
    release: Release, share: float = SHARE, seed: int = MASTER_SEED
) -> tuple[Release, frozenset[str]]:
    """Return a release in which some questions have the answers of another story's, and which these are.

    Of each dimension the share is rounded up. A question for which no other story has answers without an
    overlap stays as it is.
    """
    by_type: dict[str, list[Question]] = {}
    for record in release.records:
        for question in record.questions:
            by_type.setdefault(question.question_type, []).append(question)
    defective: dict[str, Question] = {}
    for questions in by_type.values():
        order = sorted(questions, key=lambda question: digest([seed, "defect", question.question_id]))
        for question in order[: ceil(share * len(order))]:
            donor = _donor(question, questions, seed)
            if donor is not None:
                defective[question.question_id] = question.model_copy(
                    update={"gold_answer": donor.gold_answer, "accepted_answers": donor.accepted_answers}
                )
    records = tuple(_with(record, defective) for record in release.records)
    return replace(release, records=records), frozenset(defective)


def _donor(question: Question, others: list[Question], seed: int) -> Question | None:
    own = _answers(question)
    apart = [other for other in others if other.story_id != question.story_id and not own & _answers(other)]
    return min(apart, key=lambda other: digest([seed, question.question_id, other.question_id]), default=None)


def _answers(question: Question) -> set[str]:
    return {normalize_answer(text) for text in (question.gold_answer, *question.accepted_answers)}


def _with(record: StoryRecord, defective: dict[str, Question]) -> StoryRecord:
    questions = tuple(defective.get(question.question_id, question) for question in record.questions)
    return record.model_copy(update={"questions": questions})


# -- False alarms: does an evaluator's value fall where nothing was lost
#
# Question: a storyboard was put in again unchanged: is its total lower, and is any dimension accused?
# Formula: controls at which the total falls / controls that could be compared; and the same of controls at
#     which any dimension or transition falls (``accusations``).
# Input: falls of the controls, whose loss is ``none``.
# Output: in [0, 1], lower is better.
# Undefined when: no control could be compared with an unchanged storyboard that was judged apart from it.
# Source: ours; the paper has no controls of this kind.
# Departures: a judge that answers the same request always alike gives both storyboards the same verdicts, and
#     no false alarm can be seen; several votes, or a control whose pictures are stored anew, show them.
# Example: totals of four controls fall by 0, 0, 0.1, -0.1: 1/4; in the last a dimension falls: 2/4.

MEASURE = Quantity(name="false_alarms", label="False alarms", direction="lower", range=(0, 1))
NO_CONTROL = "no unchanged storyboard was judged twice: give the method that losses were planted in, too"


@dataclass(frozen=True)
class FalseAlarms:
    """How often an evaluator sees a loss where there is none."""

    total: Score  # share of controls whose total falls
    accusations: Score  # share of controls at which any dimension or transition falls


def false_alarms(falls: Sequence[Fall], uncertainty: Uncertainty) -> FalseAlarms:
    """Return how often a loss is seen at controls."""
    controls = [fall for fall in falls if fall.plant.is_control]
    counts = {"controls": len(controls)}
    total = [(fall.plant.story_id, float(fall.total > LEAST), 1.0) for fall in controls]
    accused = [
        (fall.plant.story_id, float(max(fall.dimensions.max(), fall.transitions.max()) > LEAST), 1.0)
        for fall in controls
    ]
    return FalseAlarms(
        *(share_score(rows, uncertainty, NO_CONTROL, counts) for rows in (total, accused))
    )  # fmt: skip


# -- Every evaluator measured by planted losses


def judged_as(folder: Path, definitions: Definitions, read: Read = load) -> Judged:
    """Return an evaluation with the graph applied that lies beside the release it was judged from, if any."""
    judged = judged_folder(folder, None, definitions, read=read)
    release = release_path(folder, judged.manifest, None)
    if not (release / SIDECAR).is_file():
        return judged
    return apply_graph(judged, read_sidecar(release).parents)


def seen_by(evaluator: Evaluator, judged: Judged) -> View:
    """Return an evaluation as an evaluator sees it."""
    kept = View.whole(judged).kept
    checked = contrast_checked(judged) if evaluator.contrasts else judged
    return View(
        checked, kept, evaluator.dimensions, evaluator.transitions, "filtered", evaluator.contrasts, judged
    )


def view_of(evaluator: Evaluator, folder: Path, definitions: Definitions, read: Read = load) -> View:
    """Return an evaluation folder as an evaluator sees it; see :func:`judged_as` for errors."""
    return seen_by(evaluator, judged_as(folder, definitions, read))


def release_of(folder: Path) -> Release:
    """Return the release that an evaluation was judged from."""
    return load(release_path(folder, read_manifest(folder), None))


def people_of(path: Path | None, release: Release, methods: Mapping[str, object]) -> tuple[HumanRow, ...]:
    """Return what people said, without careless answers; nothing where there is no file."""
    if path is None:
        return ()
    known = Known.of_records(tuple(release.records), frozenset(methods))
    return exclude(read_human(path, known), Exclusion()).rows


@dataclass(frozen=True)
class PlantedRow(Plain):
    """What planted losses say of one evaluator."""

    evaluator: str  # its name
    title: str  # its name in tables
    stories: int  # how many stories plants were compared of
    plants: int  # how many plants with a loss were compared
    controls: int  # how many without one
    left_out: Mapping[str, int]  # why plants were not compared, and how many
    # ``localisation``, ``localisation_chance``, ``detected``, ``transitions``, ``transitions_chance``,
    # ``sensitivity``, ``false_alarms``, ``false_accusations``
    scores: Mapping[str, Score]
    # loss -> ``localisation``, ``localisation_chance`` and ``sensitivity`` of these plants alone
    losses: Mapping[str, Mapping[str, Score]]


def planted_measures(
    folders: Mapping[str, Path],
    plants: Sequence[Plant],
    definitions: Definitions,
    base: str | None = None,
) -> tuple[PlantedRow, ...]:
    """Return a row for each evaluator.

    ``folders``: evaluator -> the evaluation of the changed and unchanged storyboards with its questions;
    evaluators that reuse the full protocol's have the same folder.
    """
    rows = []
    for name, folder in folders.items():
        evaluator = evaluator_of(name)
        falls = falls_of(view_of(evaluator, folder, definitions), plants, base)
        rows.append(planted_row(name, evaluator.title, falls, definitions))
    return tuple(rows)


def planted_row(name: str, title: str, falls: Falls, uncertainty: Uncertainty) -> PlantedRow:
    """Return the row of an evaluator whose falls are known."""
    losses = list(dict.fromkeys(fall.plant.loss for fall in falls.planted))
    return PlantedRow(
        name, title, stories_in(falls.of), len(falls.planted), len(falls.controls), dict(falls.left_out),
        planted_scores(falls, uncertainty),
        {
            loss: _of_loss([fall for fall in falls.planted if fall.plant.loss == loss], uncertainty)
            for loss in losses
        },
    )  # fmt: skip


def planted_scores(falls: Falls, uncertainty: Uncertainty) -> dict[str, Score]:
    """Return all values of an evaluator that planted losses give."""
    links = localise_transitions(falls.planted, uncertainty)
    alarms = false_alarms(falls.controls, uncertainty)
    localised = localise_dimensions(falls.planted, uncertainty)
    return {
        "localisation": localised.value,
        "localisation_chance": localised.chance,
        "detected": localised.detected,
        "transitions": links.value,
        "transitions_chance": links.chance,
        "sensitivity": sensitivity(falls.planted, uncertainty),
        "false_alarms": alarms.total,
        "false_accusations": alarms.accusations,
    }


def _of_loss(falls: Sequence[Fall], uncertainty: Uncertainty) -> dict[str, Score]:
    localised = localise_dimensions(falls, uncertainty)
    return {
        "localisation": localised.value,
        "localisation_chance": localised.chance,
        "sensitivity": sensitivity(falls, uncertainty),
    }
