"""What judges got, laid out as people's answers are: right or not, and how sure, per unit."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..evaluation.attempts import last_attempts
from ..evaluation.recoverability.definitions import Nonresponse
from ..evaluation.recoverability.matching import Key, Marker, accepted
from ..schemas.human import HumanRow
from ..schemas.judgement import Judgement
from ..schemas.katha import Question
from .answers import majority

Unit = tuple[object, ...]
"""Condition, method, seed and item: what a judgement and a person's line share."""

ENSEMBLE = "ensemble"


@dataclass
class Judged:
    """The replies of one judge, or of the ensemble.

    Attributes:
        right: unit -> whether the answer was accepted.
        confidence: unit -> the stated levels, one for each vote that stated one.
        labels: unit -> the moral label; None where there is no majority, or no answer that counts as wrong.
        silent: units that were asked about and have no answer, where these are excluded.
    """

    right: dict[Unit, bool] = field(default_factory=dict)
    confidence: dict[Unit, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[Unit, str | None] = field(default_factory=dict)
    silent: set[Unit] = field(default_factory=set)


def unit_of(row: HumanRow) -> Unit:
    """Return what a person's line is about."""
    return (row.condition, row.method, row.seed, row.item)


def judged(
    judgements: Iterable[Judgement],
    questions: Mapping[str, Question],
    nonresponse: Nonresponse = "excluded",
) -> dict[str, Judged]:
    """Return judge -> its replies, votes combined by majority; and ``ensemble`` where judges are several.

    Replies are matched as ``fabula score`` does by default. Ties count as wrong (KathaTrace, E.6 and E.7).

    Args:
        judgements: the archive.
        questions: question id -> question.
        nonresponse: what no answer counts as, as in ``fabula score``: ``excluded`` is no vote, and a unit
            without any is left out; ``incorrect`` is a vote for a wrong answer.
    """
    votes: dict[str, dict[Unit, list[Judgement]]] = {}
    for one in last_attempts(judgements):
        if one.kind == "moral_label" or (one.kind == "question" and one.item in questions):
            unit = (one.condition, one.method, one.seed, one.item)
            votes.setdefault(one.judge.spec, {}).setdefault(unit, []).append(one)
    keys = {name: Key.of(question) for name, question in questions.items()}
    marker = Marker(accepted)
    counted = {
        spec: {unit: _counted(given, nonresponse) for unit, given in units.items()}
        for spec, units in votes.items()
    }
    found = {spec: _judge(units, keys, marker) for spec, units in sorted(counted.items())}
    if len(found) > 1:
        found = {ENSEMBLE: _ensemble(list(found.values())), **found}
    return found


def _counted(votes: Sequence[Judgement], nonresponse: Nonresponse) -> list[Judgement]:
    return [one for one in votes if nonresponse == "incorrect" or one.parsed is not None]


def _judge(units: Mapping[Unit, Sequence[Judgement]], keys: Mapping[str, Key], marker: Marker) -> Judged:
    found = Judged()
    for unit, votes in units.items():
        if not votes:
            found.silent.add(unit)
            continue
        if votes[0].kind == "moral_label":
            found.labels[unit] = mode([_label(one) for one in votes])
            continue
        key = keys[votes[0].item]
        right = [one.parsed is not None and marker.marks(key, one.condition, one.parsed)[0] for one in votes]
        found.right[unit] = majority(right) is True
        stated = [str(one.parsed["confidence"]) for one in votes if one.parsed and "confidence" in one.parsed]
        if stated:
            found.confidence[unit] = tuple(stated)
    return found


def _ensemble(judges: Sequence[Judged]) -> Judged:
    found = Judged()
    for unit in dict.fromkeys(unit for one in judges for unit in one.right):
        found.right[unit] = majority([one.right[unit] for one in judges if unit in one.right]) is True
        stated = tuple(level for one in judges for level in one.confidence.get(unit, ()))
        if stated:
            found.confidence[unit] = stated
    for unit in dict.fromkeys(unit for one in judges for unit in one.labels):
        found.labels[unit] = mode([one.labels[unit] for one in judges if unit in one.labels])
    found.silent = {unit for one in judges for unit in one.silent} - set(found.right) - set(found.labels)
    return found


def _label(one: Judgement) -> str | None:
    return None if one.parsed is None else str(one.parsed.get("answer"))


def mode(labels: Sequence[str | None]) -> str | None:
    """Return the label given most often; None where there is none, or two as often."""
    counts = Counter(label for label in labels if label is not None).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]
