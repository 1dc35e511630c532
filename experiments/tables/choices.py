"""What other answers, judges and labels would give (61, 62 and 65); nothing is judged anew."""

from collections.abc import Iterator

from ...evaluation.recoverability import recoverability
from ...evaluation.report.model import Measure, ScoreRow, ScoreTable
from ...schemas.text import counted
from ..ablations.judges import judge_aggregation
from ..ablations.matching import Matching, answer_matching
from ..ablations.morals import moral_granularity
from .results import StudyResults

RATES = tuple(Measure.of(rate) for rate in recoverability.METRICS[:3])
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
            *RATES,
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
            *RATES,
            Measure(name="chance", label="By chance"),
            Measure(name="majority", label="Most frequent"),
            Measure(name="human_agreement", label="Agreement with people", better="high"),
        ),
        rows=tuple(
            ScoreRow(label=row.title, scores=dict(row.scores)) for row in moral_granularity(results.sources)
        ),
    )  # fmt: skip
