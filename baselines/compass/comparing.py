"""Arms against the base: recoverability, paired tests, McNemar's test, copies, failures and cost.

Question: does an arm show more than the storyboards that it starts from, and at what cost?
Formula: image recoverability and STG as everywhere (Eq. 17-21). Differences from the base over stories: the
    paired tests of :mod:`fabula.evaluation.stats.paired`. McNemar's exact test over questions: of those that
    are answered rightly from the pictures of one of two arms and not of the other, as many would fall to
    either side by chance; p is the two-sided binomial probability. Copy rate: neighbouring frames above
    gamma / all of the arm (Eq. 26 pooled). Fail: storyboards that are not there / requested.
Input: an evaluation of all arms on the reporting half with held-out prompts; ``compass.json``.
Output: rates in [0, 1]; differences in [-1, 1], of STG negative where the arm loses less.
Undefined when: nothing is valid for both; McNemar: no question differs, or the arm has several storyboards of
    a story (``base``). Visual and Human Align.: no votes of people are on file, so both are empty.
Source: KathaTrace, Tables 55, 63, 64 and 75, G.5. The notes of Table 52 define Fail (invalid generation rate)
    and Human Align. (agreement or rank correlation with people); Visual is the mean of ratings 1 to 5 (F.3).
Departures from the source: it has no tests for these tables and no definition of the copy rate. Compared on
    the questions that are valid for all arms. McNemar's test takes questions of one story for independent,
    which they are not: the paired tests over stories stand first.
Example: 6 questions are right for an arm only and 1 for the base only: p = 2 (1 + 7) / 2^7 = 0.125.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UserError
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.recoverability.estimates import Estimates
from ...evaluation.recoverability.items import Items
from ...evaluation.recoverability.method import Method, comparisons
from ...evaluation.recoverability.pooling import IMAGE, sums_of
from ...evaluation.recoverability.recoverability import Rates
from ...evaluation.recoverability.score import estimated, judged_folder
from ...evaluation.recoverability.scores import points
from ...evaluation.recoverability.votes import RIGHT_VERDICT
from ...evaluation.stats.paired import Pair, Paired, paired
from ...evaluation.stats.uncertainty import CORRECTIONS
from ...schemas.canonical import plain_fields
from ...schemas.plain_files import read_json, reason_of
from ...schemas.values import Score
from .applying import COMPASS, SPENT
from .arms import ARMS, BASE, FIRST, Arm
from .frozen import HELD_OUT, Cell, Conditions, check_reported
from .rendering import FRAMES

NO_VOTES = "no votes of people are on file"
SEVERAL = "the arm has several storyboards of a story"
SAME = "no question differs"


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's exact test of an arm against the base of the first seed.

    Attributes:
        only_arm: questions that are right for the arm alone.
        only_base: those that are right for the base alone.
        both: how many were compared.
        p_value: two-sided; None where undefined.
        p_corrected: the same, corrected for all arms together.
        reason: why there is none.
    """

    only_arm: int = 0
    only_base: int = 0
    both: int = 0
    p_value: float | None = None
    p_corrected: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ArmRow:
    """What is said of one arm.

    Attributes:
        name: of the arm.
        label: for tables.
        image: image recoverability.
        gap: STG.
        gap_change: STG less that of the base.
        gap_test: STG against the base, over stories; None for the base.
        image_test: image recoverability against the base, the same.
        mcnemar: verdicts on questions against the first seed's storyboards.
        copy_rate: neighbouring frames that are copies.
        fail: storyboards that are not there.
        visual: people's rating of the pictures.
        human_align: agreement with people.
        asked: what it asked for alone: calls of judges, pictures.
        usd: about what these calls cost; None where no price is known.
    """

    name: str
    label: str
    image: Score
    gap: Score
    gap_change: Score
    gap_test: Paired | None
    image_test: Paired | None
    mcnemar: McNemar
    copy_rate: Score
    fail: Score
    visual: Score
    human_align: Score
    asked: Mapping[str, int] = field(repr=False)
    usd: float | None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return plain_fields(self)

    def line(self) -> str:
        """Return it as a line for people."""
        test = self.mcnemar
        chance = test.reason if test.p_value is None else f"p={test.p_value:.3g}"
        asked = f"{self.asked.get('calls', 0)} calls, {self.asked.get('pictures', 0)} pictures"
        return (
            f"{self.name}: image {points(self.image)}, STG {points(self.gap)}, less base "
            f"{points(self.gap_change)}, McNemar {chance}, copies {points(self.copy_rate)}, fail "
            f"{points(self.fail)}, {asked}"
        )


@dataclass(frozen=True)
class ArmComparison:
    """Arms against each other.

    Attributes:
        cell: of Table 64.
        stories: stories that were evaluated.
        arms: the rows, in the order of :data:`.arms.ARMS`.
    """

    cell: Cell
    stories: int
    arms: tuple[ArmRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"cell": self.cell.as_json(), "stories": self.stories,
                "arms": {row.name: row.as_json() for row in self.arms}}  # fmt: skip

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        return [f"{self.cell.label.lower()}, {self.stories} stories", *(row.line() for row in self.arms)]


def compare_arms(
    evaluation: Path, release: Path, applied: Path, conditions: Conditions,
    definitions: Definitions | None = None, cell: Cell = HELD_OUT,
) -> ArmComparison:  # fmt: skip
    """Compare the arms of an evaluation.

    Args:
        evaluation: its folder: ``fabula evaluate katha`` with the outputs of all arms.
        release: the half of the release that it was asked with.
        applied: the folder with ``compass.json``.
        conditions: of the frozen file.
        definitions: how replies become numbers.
        cell: which of Table 64 it is said to be.

    Raises:
        InputError: something cannot be read, the base is missing, or selection has seen what is reported.
    """
    check_reported(evaluation, conditions, cell)
    used = definitions or Definitions()
    judged = judged_folder(evaluation, release, used)
    document, spent = _read(applied / COMPASS), _read(applied / SPENT)
    methods = {method.name: method for method in judged.methods}
    if BASE not in methods:
        what, fix = f"it has no outputs of the arm {BASE}", "evaluate all arms together"
        raise InputError([UserError(str(evaluation), what=what, fix=fix)])
    _, estimates = estimated(judged.methods, judged.items, used)
    others = [methods[arm.name] for arm in ARMS if arm.name in methods and arm.name != BASE]
    pairs = [(method, methods[BASE]) for method in others]
    gaps = {pair.first: pair for pair in comparisons(pairs, estimates, judged.items, used)}
    images = {pair.first: pair for pair in _images(pairs, estimates, judged.items, used)}
    tests = _corrected({method.name: _mcnemar(method, methods.get(FIRST)) for method in others}, used)
    whole = _Compared(estimates, gaps, images, tests, _price(spent))
    rows = [whole.row(arm, document["arms"].get(arm.name, {})) for arm in ARMS if arm.name in methods]
    return ArmComparison(cell, judged.items.stories, tuple(rows))


def mcnemar(arm: Sequence[bool], base: Sequence[bool]) -> McNemar:
    """Return McNemar's exact test of verdicts on the same questions."""
    from scipy.stats import binomtest

    ours, theirs = np.asarray(arm, dtype=bool), np.asarray(base, dtype=bool)
    only_arm, only_base = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    if not only_arm + only_base:
        return McNemar(both=len(ours), reason=SAME)
    p_value = float(binomtest(only_arm, only_arm + only_base, 0.5).pvalue)
    return McNemar(only_arm, only_base, len(ours), p_value)


def _images(
    pairs: Sequence[tuple[Method, Method]], estimates: Mapping[str, Estimates], items: Items,
    definitions: Definitions,
) -> tuple[Paired, ...]:  # fmt: skip
    """Return image recoverability of each pair compared, on the questions that are valid for all arms."""
    name, made = "question.common.image", []
    for first, second in pairs:
        rates = [
            Rates.of(sums_of(each.outcomes, each.outcomes.sets["common"], items)) for each in (first, second)
        ]
        differences = rates[0].overall()[1] - rates[1].overall()[1]
        ours, theirs = estimates[first.name], estimates[second.name]
        made.append(
            Pair(
                first.name, second.name, differences[~np.isnan(differences)],
                value=ours.values[name] - theirs.values[name],
                replicates=ours.replicates[name] - theirs.replicates[name],
            )
        )  # fmt: skip
    return paired(made, "story", definitions)


def _mcnemar(arm: Method, base: Method | None) -> McNemar:
    if base is None or arm is base:
        return McNemar(reason="it is the base" if arm is base else f"the arm {FIRST} was not evaluated")
    ours, theirs = (_single(method) for method in (arm, base))
    if ours is None or theirs is None:
        return McNemar(reason=SEVERAL)
    counted = ours.sets["common"][_seed(arm)] & theirs.sets["common"][_seed(base)]
    rights = [
        (method.outcomes.verdicts[_seed(method), IMAGE] == RIGHT_VERDICT)[counted] for method in (arm, base)
    ]
    return mcnemar(rights[0].tolist(), rights[1].tolist())


def _single(method: Method) -> Any:  # noqa: ANN401 - its outcomes
    return method.outcomes if int(method.made.requested.any(axis=1).sum()) == 1 else None


def _seed(method: Method) -> int:
    return int(method.made.requested.any(axis=1).argmax())


def _corrected(tests: Mapping[str, McNemar], definitions: Definitions) -> dict[str, McNemar]:
    known = [name for name, test in tests.items() if test.p_value is not None]
    values = CORRECTIONS[definitions.correction](
        np.array([tests[name].p_value for name in known], dtype=np.float64)
    )
    corrected = dict(zip(known, values.tolist(), strict=True))
    return {
        name: McNemar(
            test.only_arm, test.only_base, test.both, test.p_value, corrected.get(name), test.reason
        )
        for name, test in tests.items()
    }


@dataclass(frozen=True)
class _Compared:
    """All arms compared, from which rows are made."""

    estimates: Mapping[str, Estimates]
    gaps: Mapping[str, Paired]
    images: Mapping[str, Paired]
    tests: Mapping[str, McNemar]
    price: float | None

    def row(self, arm: Arm, about: Mapping[str, Any]) -> ArmRow:
        """Return the row of an arm, given what ``compass.json`` says about it."""
        own, gap_test = self.estimates[arm.name], self.gaps.get(arm.name)
        change = _none("it is the base")
        if gap_test is not None:
            change = _score(gap_test.difference, "nothing is valid for both")
            if change.value is not None:
                change = change.model_copy(update={"low": gap_test.low, "high": gap_test.high})
        copies, asked, requested = about.get("copies", {}), about.get("asked", {}), about.get("requested", 0)
        return ArmRow(
            arm.name, arm.label, own.score("question.filtered.image"), own.score("question.filtered.gap"),
            change, gap_test, self.images.get(arm.name), self.tests.get(arm.name, McNemar(reason=SEVERAL)),
            Score.ratio(copies.get("above_gamma", 0), copies.get("pairs", 0), "no two frames"),
            Score.ratio(requested - about.get("storyboards", 0), requested, "nothing was requested"),
            _none(NO_VOTES), _none(NO_VOTES), asked,
            None if self.price is None else round(self.price * asked.get("calls", 0), 6),
        )  # fmt: skip


def _price(spent: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return about what a call of a judge costs; None where a price is not known."""
    runs = [run for name, run in spent.items() if name != FRAMES]
    calls = sum(run["calls"] for run in runs)
    if not calls or any(run["unpriced"] for run in runs):
        return None
    return float(sum(run["usd"] for run in runs) / calls)


def _score(value: float | None, reason: str) -> Score:
    return _none(reason) if value is None else Score(value=value, status="ok")


def _none(reason: str) -> Score:
    return Score(value=None, status="undefined", reason=reason)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(read_json(path, follow=True))
    except (OSError, ValueError, TypeError) as error:
        fix = "apply the frozen file first"
        raise InputError(
            [UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix)]
        ) from error
