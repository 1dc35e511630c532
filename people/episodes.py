"""EntityBench's validation of its judge: verdicts and scores of people on the same crops (section B.1).

Question and formulas are those of :mod:`fabula.people.episodes`; people answer what
:mod:`fabula.people.review.sources.episodes` draws, with lines of kind ``rating`` whose criterion is
``present`` or ``same`` (0 or 1), ``overall`` or ``similarity``, or a criterion of an entity's type (1 to 10).

The judge gives no verdict on presence by itself; it says ``present`` where its overall score reaches the
gate's threshold (EntityBench, Eq. 22). Section B.1 does not say how its verdict was had.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..evaluation.archive.archive import Archive
from ..evaluation.entities.archived import CRITERIA, answers_of, entity_parts
from ..evaluation.entities.metrics.catalogue import FIDELITY_GATE
from ..evaluation.entities.report.page import TITLES
from ..evaluation.stats.uncertainty import mean_of_known
from ..schemas.entities import TYPES, EntityType
from ..schemas.judgement import HumanRow
from ..schemas.values import Score
from ..validators.resampling import divided
from .read import Known, read_human, read_key
from .recoverability import Resampling, estimate, lines_of, score_of
from .study import (
    Evaluated,
    Followed,
    Json,
    Study,
    StudySettings,
    as_plain,
    common_parts,
    number_text,
    score_text,
)

# -- A judge beside several people, and people beside one another, on the same instances
#
# Question: does a judge agree with people as well as people agree with each other?
# Formula: Cohen's kappa of verdicts, Pearson's r of scores. The judge is compared with the majority of
#     people's verdicts and with the mean of their scores; every two people with each other, as the ceiling.
# Input: one row per rater, verdicts 0 or 1, ``nan`` where there is none.
# Output: in [-1, 1]; intervals are percentiles over instances drawn with replacement, all values of an
#     instance together.
# Undefined when: nothing is shared, or a rater says the same of everything.
# Source: EntityBench, section B.1.
# Departures: the paper gives a range of people's kappa alone; here are mean, least and greatest. An
#     instance on which as many people say yes as no has no majority and is left out, and counted.
# Example: a judge says 1, 1, 0, 0 and the majority 1, 0, 0, 0: they agree on 3/4, by chance on 1/2, kappa
#     1/2.

Floats = NDArray[np.float64]
Name = Literal["kappa", "pearson"]
WHY = "too few shared instances, or all the same"


@dataclass(frozen=True)
class Table:
    """What was said."""

    judge: Floats  # shape (entries,)
    people: Floats  # shape (raters, entries)
    owners: NDArray[np.int64]  # the instance, from 0, that each entry is about; shape (entries,)


@dataclass(frozen=True)
class Agreement:
    """How far a judge and people agree."""

    name: Name  # ``kappa`` or ``pearson``
    # judge beside people together. Its counts: entries that people answered, of these used, tied, and without
    # an answer of the judge.
    judge: Score
    people: Score  # mean over every two people
    least: float | None  # of every two people; None where no two can be compared
    greatest: float | None  # of every two people


def agreement(name: Name, table: Table, resampling: Resampling) -> Agreement:
    """Return how far a judge and people agree, and people with each other."""
    together = majority(table.people) if name == "kappa" else mean_of_known(table.people.T)
    pairs = list(combinations(range(len(table.people)), 2))
    first = np.stack([table.judge, *(table.people[left] for left, _ in pairs)], axis=1)
    second = np.stack([together, *(table.people[other] for _, other in pairs)], axis=1)
    there = np.isfinite(first) & np.isfinite(second)
    columns = (np.where(there, first, 0.0), np.where(there, second, 0.0), there.astype(np.float64))
    formula = {"kappa": _kappa, "pearson": _pearson}[name]

    def statistic(weights: Floats) -> Floats:
        values = _values(formula, columns, weights[:, table.owners])
        return np.stack([values[:, 0], mean_of_known(values[:, 1:])], axis=1)

    instances = int(table.owners.max()) + 1 if len(table.owners) else 0
    made = estimate(statistic, instances, resampling)
    single = _values(formula, columns, np.ones((1, len(table.owners))))[0, 1:]
    known = single[np.isfinite(single)]
    answered = np.isfinite(table.people).any(axis=0)
    silent = answered & ~np.isfinite(table.judge)
    counts = {
        "answered": int(answered.sum()), "used": int(there[:, 0].sum()),
        "tied": int((answered & ~silent & ~np.isfinite(together)).sum()), "without_judge": int(silent.sum()),
    }  # fmt: skip
    compared = {"pairs": len(pairs), "pairs_compared": len(known)}
    return Agreement(
        name,
        score_of(float(made.values[0]), WHY, counts, (made.low[0], made.high[0])),
        score_of(float(made.values[1]), WHY, compared, (made.low[1], made.high[1])),
        float(known.min()) if len(known) else None,
        float(known.max()) if len(known) else None,
    )


def majority(verdicts: Floats) -> Floats:
    """Return what more people say of each entry, 0 or 1; ``nan`` for a tie or no answer.

    ``verdicts``: shape (raters, entries), 0, 1 or ``nan``.
    """
    share = mean_of_known(verdicts.T)
    return np.where(share == 0.5, np.nan, np.round(share))


Formula = Callable[[Floats, Floats, Floats, Floats, Floats], Floats]


def _values(formula: Formula, columns: tuple[Floats, Floats, Floats], weights: Floats) -> Floats:
    """Return a formula of weighted means; shape (replicates, columns)."""
    x, y, there = columns
    count = weights @ there
    x_mean, y_mean = divided(weights @ x, count), divided(weights @ y, count)
    squares = (divided(weights @ (x * x), count), divided(weights @ (y * y), count))
    return formula(x_mean, y_mean, divided(weights @ (x * y), count), *squares)


def _kappa(x: Floats, y: Floats, both: Floats, _x_square: Floats, _y_square: Floats) -> Floats:
    """Return Cohen's kappa from shares of yes; of verdicts 0 and 1 that is all that it needs."""
    observed, chance = 1 - x - y + 2 * both, x * y + (1 - x) * (1 - y)
    return divided(observed - chance, np.where(1 - chance > _NOTHING, 1 - chance, 0.0))


def _pearson(x: Floats, y: Floats, both: Floats, x_square: Floats, y_square: Floats) -> Floats:
    spread = (x_square - x * x) * (y_square - y * y)
    return divided(both - x * y, np.sqrt(np.where(spread > _NOTHING, spread, 0.0)))


_NOTHING = 1e-12
"""Rounding, not spread."""


# -- EntityBench's validation of its judge

VERDICT = {"fidelity": "present", "pair": "same"}
OVERALL = {"fidelity": "overall", "pair": "similarity"}


@dataclass(frozen=True)
class Judged:
    """An instance and what the judge said of it: verdicts 0 or 1, scores in [0, 1]; None where unusable."""

    kind: str
    type: EntityType
    values: Mapping[str, float | None]

    @property
    def asked(self) -> dict[str, tuple[int, int]]:
        """What people are asked -> least and greatest answer."""
        scores = dict.fromkeys((*CRITERIA[self.type], OVERALL[self.kind]), (1, 10))
        return {VERDICT[self.kind]: (0, 1), **scores}


def appearance_item(episode: str, shot: str, entity: str) -> str:
    """Return how answers of people name an appearance."""
    return f"{episode}/fidelity/{shot}/{entity}"


def pair_item(episode: str, pair: str) -> str:
    """Return how answers of people name a pair: ``<entity>/<anchor>/<other>`` of an episode."""
    return f"{episode}/pair/{pair}"


def least_of(archive: Archive) -> float:
    """Return the gate's threshold of an evaluation."""
    return float(archive.manifest.protocol["definitions"].get("gate_appearances.least", FIDELITY_GATE))


def judged(archive: Archive) -> dict[tuple[str, str], Judged]:
    """Return method and item -> what the judge said, for every appearance and pair."""
    if "imported" in archive.manifest.protocol:
        what = "these are imported results, without the judge's replies, with which people are compared"
        raise InputError.one("judges", what=what, fix="give what fabula evaluate episodes wrote")
    least = least_of(archive)
    listed: dict[tuple[str, str], Judged] = {}
    for (method, episode), answers in answers_of(archive.judgements).items():
        for (kind, item), answer in answers.items():
            if kind == "pair":
                entity = item.rsplit("/", 2)[0]
                listed[method, pair_item(episode, item)] = Judged(
                    kind, entity_parts(entity)[0], answer.values
                )
            elif kind == "fidelity":
                shot, _, entity = item.partition("/")
                overall = answer.of(OVERALL[kind])
                present = None if overall is None else float(overall >= least)
                named = appearance_item(episode, shot, entity)
                values = {**answer.values, VERDICT[kind]: present}
                listed[method, named] = Judged(kind, entity_parts(entity)[0], values)
    return listed


# -- people beside the judge

KINDS = frozenset(("rating", "attention"))
NONRESPONSE = "excluded"
Thing = tuple[str, str]
"""Method and item."""


def compare_episodes(evaluated: Evaluated, settings: StudySettings) -> dict[str, Any]:
    """Return how the judge and people agree, and people with each other, as plain JSON."""
    archive = evaluated.archive
    answers = judged(archive)
    known = Known(
        methods=frozenset(method for method, _ in answers),
        asked={item: answer.asked for (_, item), answer in answers.items()},
        kinds=KINDS,
    )
    key = None if evaluated.key is None else read_key(evaluated.key)
    kept, document = common_parts(
        "episodes", read_human(evaluated.human, known, key), settings, NONRESPONSE
    )  # fmt: skip
    document["definitions"]["present_from"] = least_of(archive)
    judge = next((judgement.judge.spec for judgement in archive.judgements), None)
    rated = lines_of(kept.rows, "rating")
    return document | {
        "judge": judge,
        "judges": {kind: as_plain(_of_kind(kind, rated, answers, settings.resampling)) for kind in VERDICT},
    }


def _of_kind(
    kind: str, rows: Sequence[HumanRow], answers: Mapping[Thing, Judged], resampling: Resampling
) -> dict[str, dict[str, Agreement]]:
    """Return type, or ``all`` -> what was asked -> agreement; ``criteria`` are all criteria together."""
    of_item = {item: answer for (_, item), answer in answers.items()}
    mine = [row for row in rows if of_item[str(row.item)].kind == kind]
    agreements: dict[str, dict[str, Agreement]] = {}
    for scope in ("all", *TYPES):
        types = TYPES if scope == "all" else (scope,)
        own = [row for row in mine if of_item[str(row.item)].type in types]
        if not own:
            continue
        criteria = tuple(name for each in TYPES if each in types for name in CRITERIA[each])
        asked = {VERDICT[kind]: (VERDICT[kind],), OVERALL[kind]: (OVERALL[kind],), "criteria": criteria}
        if scope != "all":
            asked |= {name: (name,) for name in criteria}
        agreements[scope] = {
            name: agreement("kappa" if name == VERDICT[kind] else "pearson", table, resampling)
            for name, names in asked.items()
            if (table := _table(own, names, answers)) is not None
        }
    return agreements


def _table(rows: Sequence[HumanRow], names: Sequence[str], answers: Mapping[Thing, Judged]) -> Table | None:
    """Return what judge and people said about some criteria; None where no person was asked."""
    said = [row for row in rows if row.criterion in names]
    if not said:
        return None
    raters = sorted({row.rater for row in said})
    things = sorted({(str(row.method), str(row.item)) for row in said})
    entries = sorted({(str(row.method), str(row.item), str(row.criterion)) for row in said})
    places = {entry: number for number, entry in enumerate(entries)}
    people = np.full((len(raters), len(entries)), np.nan)
    for row in said:
        entry = (str(row.method), str(row.item), str(row.criterion))
        people[raters.index(row.rater), places[entry]] = np.nan if row.value is None else row.value
    judge = np.full(len(entries), np.nan)
    for number, (method, item, name) in enumerate(entries):
        answer = answers.get((method, item))
        value = None if answer is None else answer.values.get(name)
        judge[number] = np.nan if value is None else value
    numbers = {thing: number for number, thing in enumerate(things)}
    owners = np.array([numbers[method, item] for method, item, _ in entries], dtype=np.int64)
    return Table(judge, people, owners)


def result_lines(document: Json) -> Iterator[str]:
    """Return how the judge and people agree, as lines."""
    for kind, scopes in document["judges"].items():
        if scopes:
            yield from (
                "",
                f"{document['judge']} against people, {TITLES[kind]} (between people: mean, range)",
            )
        for scope, asked in scopes.items():
            for name, agreed in asked.items():
                counts = agreed["judge"]["counts"]
                lost = [
                    f"{counts[reason]} {text}"
                    for reason, text in (("tied", "tied"), ("without_judge", "without a value of the judge"))
                    if counts[reason]
                ]
                yield (
                    f"  {scope}, {name}: {agreed['name']} {score_text(agreed['judge'])} of {counts['used']}"
                    f"; between people {score_text(agreed['people'])},"
                    f" {number_text(agreed['least'])} to {number_text(agreed['greatest'])}"
                    + (f"; left out: {', '.join(lost)}" if lost else "")
                )


def followed(document: Json) -> Iterator[Followed]:
    """Yield how the judge agrees with people, and they with each other."""
    for kind, scopes in document["judges"].items():
        for scope, asked in scopes.items():
            for name, agreed in asked.items():
                what = f"{document['judge']}, {TITLES[kind]}, {scope}, {name}"
                value, used = agreed["judge"]["value"], agreed["judge"]["counts"]["used"]
                yield Followed(what, value, used, people=agreed["people"]["value"])


STUDY = Study(compare_episodes, lambda _method, _about: iter(()), result_lines, followed, ("key", "save"))
