"""How answers are compared (Table 61): false accepts and false rejects against answers labelled by people.

Question: which right answers does a matcher reject, and which wrong ones does it accept?
Formula: false accepts = wrong answers that are accepted / wrong answers; false rejects = right answers that
    are rejected / right answers.
Input: labelled answers, JSON Lines or CSV with ``question_id``, ``answer`` and ``correct``, or the votes of a
    study with the task ``equivalence``; matchers.
Output: in [0, 1], lower is better.
Undefined when: no wrong, or no right, answer could be compared.
Source: KathaTrace, J.4 and Table 61, which does not say of what its percentages are shares.
Departures: a matcher that asks a model has verdicts on the answers that judges gave, in the archive; other
    labelled answers are left out for it, and counted. Of votes more than half must say right, or wrong; an
    answer that is neither is left out, and counted. Intervals are of resampled stories.
Example: right answers accepted, accepted, rejected, wrong ones rejected, accepted: false accepts 1/2, false
    rejects 1/3.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....errors import InputError, UserError
from ....evaluation.archive.archive import JUDGEMENTS, lines_of
from ....evaluation.recoverability.definitions import Definitions
from ....evaluation.recoverability.matching import Compare, Key, is_rule, matcher_of
from ....evaluation.recoverability.replies import marker_for
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.canonical import plain_fields, without_guard
from ....schemas.katha import Question
from ....schemas.plain_files import CsvTable, parse_json, read_plain, reason_of
from ....schemas.values import Score
from ..measures.planted import release_of
from ..measures.views import share_score, undefined
from .components import FULL
from .measuring import Sources, measure

COLUMNS = ("question_id", "answer", "correct")
SPOKEN = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
FIX = "give lines with question_id, answer and correct (true or false), or votes of the kind equivalence"
RULES = ("exact", "keyword", "accepted")
"""The matchers of Table 61 that are rules; its other two ask a model, and are named as they were archived."""
TITLES = {
    "exact": "Exact string match", "keyword": "Keyword-only match", "accepted": "Accepted-answer set",
}  # fmt: skip


@dataclass(frozen=True)
class Labelled:
    """An answer to a question, and whether people call it right; None where they are not of one mind."""

    question_id: str
    answer: str
    correct: bool | None


@dataclass(frozen=True)
class Matching:
    """How well a matcher follows people's labels."""

    matcher: str  # its name
    title: str  # in tables
    scores: Mapping[str, Score]  # ``false_accepts``, ``false_rejects`` and ``human_correlation``
    compared: int  # how many labelled answers it has compared
    unknown: int  # how many it has no verdict on
    undecided: int = 0  # how many people are not of one mind about

    def as_json(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return plain_fields(self)


def read_labelled(path: Path, questions: Mapping[str, Question]) -> tuple[Labelled, ...]:
    """Return the labelled answers of a file; its ending says whether it is CSV."""
    problems: list[UserError] = []
    answers: list[Labelled] = []
    votes: dict[tuple[str, str], list[bool | None]] = {}
    try:
        text = read_plain(path, follow=True).decode("utf-8-sig")
        for where, row in _csv_rows(path, text) if path.suffix.lower() == ".csv" else _lines(path, text):
            if isinstance(row, Mapping) and str(row.get("repeat") or 0) != "0":
                continue  # somebody was asked again, to see how steady they are; the first answer counts
            vote = _voted(row)
            labelled = vote or _labelled(row)
            if labelled is None:
                problems.append(UserError(where, what="it is no labelled answer", fix=FIX))
            elif labelled.question_id not in questions:
                what = f"the release has no question {labelled.question_id[:80]!r}"
                problems.append(UserError(where, what=what, fix="give answers to its questions"))
            elif vote is not None:
                votes.setdefault((vote.question_id, vote.answer), []).append(vote.correct)
            else:
                answers.append(labelled)
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=FIX))
    answers += [Labelled(*about, _majority(said)) for about, said in votes.items()]
    if not answers and not problems:
        problems.append(UserError(str(path), what="it holds no answers", fix=FIX))
    if problems:
        raise InputError(problems)
    return tuple(answers)


def _voted(row: object) -> Labelled | None:
    """Return what one person said in a study of equivalence; None where a row is no such vote."""
    if not isinstance(row, Mapping) or row.get("kind") != "equivalence":
        return None
    item, answer, value = row.get("item"), row.get("answer"), row.get("value")
    said = {"None": None, "": None, "1": True, "0": False}
    if not (isinstance(item, str) and isinstance(answer, str) and str(value) in said):
        return None
    return Labelled(item, answer, said[str(value)])


def _majority(said: Sequence[bool | None]) -> bool | None:
    """Return what more than half of the votes say; Unclear is a vote for neither."""
    return next((word for word in (True, False) if 2 * said.count(word) > len(said)), None)


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = parse_json(line.encode())
            except ValueError:
                row = None
            yield f"{path}:{number}", row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for line, row in CsvTable(text).named():
        cells = {name: without_guard(cell) for name, cell in row.items()}
        spoken = cells.get("correct")
        yield (
            f"{path}:{line}",
            {**cells, "correct": None if spoken is None else SPOKEN.get(spoken.strip().casefold())},
        )


def _labelled(row: object) -> Labelled | None:
    if not isinstance(row, Mapping):
        return None
    item, answer, correct = (row.get(name) for name in COLUMNS)
    if not (isinstance(item, str) and isinstance(answer, str) and isinstance(correct, bool)):
        return None
    return Labelled(item, answer, correct)


def matching_errors(
    labelled: Sequence[Labelled],
    questions: Mapping[str, Question],
    compare: Callable[[Key, str], bool],
    uncertainty: Uncertainty,
) -> tuple[dict[str, Score], int]:
    """Return ``false_accepts`` and ``false_rejects``, and how many answers the matcher has no verdict on.

    Answers that people are not of one mind about are in neither.

    ``questions``: question id -> question.
    """
    wrong: list[tuple[str, float, float]] = []
    right: list[tuple[str, float, float]] = []
    unknown = 0
    for answer in labelled:
        question = questions[answer.question_id]
        if answer.correct is None:
            continue
        try:
            accepted = compare(Key.of(question), answer.answer)
        except InputError:
            unknown += 1
            continue
        (right if answer.correct else wrong).append(
            (question.story_id, float(accepted != answer.correct), 1.0)
        )  # fmt: skip
    return {
        "false_accepts": share_score(wrong, uncertainty, "no wrong answer was compared"),
        "false_rejects": share_score(right, uncertainty, "no right answer was compared"),
    }, unknown


def answer_matching(
    sources: Sources, labelled: Path | None, matchers: Sequence[str] | None = None
) -> tuple[Matching, ...]:
    """Return the rows of Table 61.

    ``matchers``: names, as scores are asked for; None for the rules of the table and all archived ones.
    """
    folder = sources.evaluations.get("katha")
    if folder is None:
        return ()
    questions = {
        question.question_id: question for record in release_of(folder) for question in record.questions
    }
    answers = () if labelled is None else read_labelled(labelled, questions)
    names = (*RULES[:2], *archived_matchers(folder), *RULES[2:]) if matchers is None else matchers
    undecided = sum(answer.correct is None for answer in answers)
    rows = []
    for name in names:
        scores, unknown = matching_errors(
            answers, questions, compare_of(folder, name, sources.definitions), sources.definitions
        )
        if labelled is None:
            scores = dict.fromkeys(scores, undefined("no answers were labelled as right or wrong"))
        own = replace(sources, definitions=replace(sources.definitions, matcher=name), _judged={})
        scores |= measure(own, FULL, ("people",)).scores
        compared = len(answers) - undecided - unknown
        rows.append(Matching(name, TITLES.get(name, name), scores, compared, unknown, undecided))
    return tuple(rows)


def archived_matchers(folder: Path) -> tuple[str, ...]:
    """Return the names of the matchers whose verdicts an evaluation holds, sorted."""
    return tuple(
        sorted(
            {
                str(line.parsed.get("matcher"))
                for line in lines_of(folder / JUDGEMENTS)
                if line.kind == "match" and line.parsed is not None
            }
        )
    )


def compare_of(folder: Path, name: str, definitions: Definitions) -> Compare:
    """Return a matcher by name: a rule, or what an evaluation holds."""
    if is_rule(name):
        return matcher_of(name, {})
    return marker_for(folder / JUDGEMENTS, replace(definitions, matcher=name)).compare
