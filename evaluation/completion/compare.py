"""Comparing two evaluations of videos made under the same protocol: paired over prompts."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UserError
from ..archive import read_manifest
from ..lacking import notes_of_both
from ..protocols import Difference, check_alike
from ..stats.bootstrap import percentile_interval, resampled_sums, two_sided_p
from ..stats.corrections import bonferroni
from ..stats.effects import cohen_d
from ..stats.signed_rank import signed_rank
from ..words import counted
from .score import score_folder
from .scores import PanelScore
from .voting import Definitions


@dataclass(frozen=True)
class EventComparison:
    """One method against another, judged by the same verifier.

    Attributes:
        judge: the verifier.
        first: method.
        second: method.
        prompts: prompts that both stand on.
        difference: mean completion rate of the first less that of the second.
        low: lower end of its 95 % interval, paired bootstrap over prompts.
        high: upper end.
        p_bootstrap: two-sided p-value of the bootstrap, Bonferroni-corrected.
        p_wilcoxon: two-sided p-value of the signed-rank test over prompts, corrected likewise.
        cohen_d: effect size of the prompts' differences; null where it is undefined.
        rank_biserial: effect size of their signed ranks.
    """

    judge: str
    first: str
    second: str
    prompts: int
    difference: float
    low: float | None
    high: float | None
    p_bootstrap: float | None
    p_wilcoxon: float
    cohen_d: float | None
    rank_biserial: float | None


@dataclass(frozen=True)
class EventComparisons:
    """Methods of two evaluations against each other.

    Attributes:
        definitions: the named definitions that were used.
        comparisons: those of the same name if there are any, else each against each; per verifier.
        differences: parts of the protocol that were allowed to differ.
        notes: what a reader must know before trusting a number.
    """

    definitions: Definitions
    comparisons: tuple[EventComparison, ...]
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions."""
        return {
            "kind": "events",
            "definitions": vars(self.definitions),
            "comparisons": [asdict(one) for one in self.comparisons],
            "differences": [one.as_json() for one in self.differences],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Yield the comparison in percentage points."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield "difference of completion rates (positive: the first completes more)"
        for one in self.comparisons:
            ends = (
                "" if one.low is None or one.high is None else f" [{100 * one.low:.1f}, {100 * one.high:.1f}]"
            )
            p = "-" if one.p_bootstrap is None else f"{one.p_bootstrap:.4f}"
            yield (
                f"  {one.judge}: {one.first} - {one.second} {100 * one.difference:+.1f}{ends},"
                f" {counted(one.prompts, 'prompt')}, p {p} (bootstrap) {one.p_wilcoxon:.4f} (Wilcoxon),"
                " corrected"
            )
        for note in self.notes:
            yield f"note: {note}"


def compare_folders(
    first: Path, second: Path, suite: Path | None, definitions: Definitions, allowed: Collection[str] = ()
) -> EventComparisons:
    """Compare the methods of two evaluation folders of kind events.

    Raises:
        InputError: a folder cannot be read, their protocols differ, or they share no verifier.
    """
    manifests = {str(folder): read_manifest(folder) for folder in (first, second)}
    differences = check_alike(manifests[str(first)], manifests[str(second)], allowed)
    ours, theirs = (score_folder(folder, suite, definitions).panels for folder in (first, second))
    pairs = [(a, b) for a in ours for b in theirs if a.panel.judge == b.panel.judge]
    if not pairs:
        raise InputError(
            [
                UserError(
                    str(second), what=f"no judge voted both here and in {first}",
                    fix="compare evaluations with the same judges",
                )
            ]
        )  # fmt: skip
    same = [(a, b) for a, b in pairs if a.panel.method == b.panel.method]
    found = paired(same or pairs, definitions)
    return EventComparisons(definitions, found, differences, notes_of_both(manifests))


def paired(
    pairs: Sequence[tuple[PanelScore, PanelScore]], definitions: Definitions
) -> tuple[EventComparison, ...]:
    """Return the comparison of each pair, p-values corrected for the number of pairs.

    Args:
        pairs: two methods under the same verifier, each.
        definitions: what a prompt without an answer counts as; bootstrap resamples and seed.

    Raises:
        InputError: two methods have no prompt in common that counts.
    """
    rows = [_row(a, b, definitions) for a, b in pairs]
    corrected = {
        name: bonferroni(np.array([row[name] for row in rows])) for name in ("p_bootstrap", "p_wilcoxon")
    }
    return tuple(
        EventComparison(
            a.panel.judge, a.panel.method, b.panel.method, int(row["prompts"]), row["difference"],
            _known(row["low"]), _known(row["high"]), _known(corrected["p_bootstrap"][place]),
            float(corrected["p_wilcoxon"][place]), _known(row["cohen_d"]), _known(row["rank_biserial"]),
        )
        for place, ((a, b), row) in enumerate(zip(pairs, rows, strict=True))
    )  # fmt: skip


def comparable(one: PanelScore, other: PanelScore, definitions: Definitions) -> bool:
    """Whether two methods have a prompt in common that counts."""
    return bool(_differences(one, other, definitions))


def _differences(one: PanelScore, other: PanelScore, definitions: Definitions) -> list[float]:
    """Return the differences over the prompts that both have, without an answer as defined."""
    theirs = {video.unit: video.rate for video in other.videos}
    values = []
    for video in one.videos:
        pair = [video.rate, theirs.get(video.unit)]
        if video.unit not in theirs or (definitions.nonresponse == "excluded" and None in pair):
            continue
        values.append((pair[0] or 0.0) - (pair[1] or 0.0))
    return values


def _row(one: PanelScore, other: PanelScore, definitions: Definitions) -> dict[str, float]:
    """Return the statistics of one pair over the prompts that both have."""
    differences = np.array(_differences(one, other, definitions))
    if not len(differences):
        raise InputError(
            [
                UserError(
                    other.panel.method, what=f"it has no prompt in common with {one.panel.method}",
                    fix="compare evaluations of the same prompts",
                )
            ]
        )  # fmt: skip
    means = resampled_sums(differences[:, None], definitions.resamples, definitions.seed)[:, 0] / len(
        differences
    )
    low, high = percentile_interval(means)
    ranks = signed_rank(differences, "two-sided")
    return {
        "prompts": len(differences),
        "difference": float(differences.mean()),
        "low": float(low),
        "high": float(high),
        "p_bootstrap": two_sided_p(means) if len(means) else float("nan"),
        "p_wilcoxon": ranks.p_value,
        "cohen_d": cohen_d(differences),
        "rank_biserial": ranks.rank_biserial,
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
