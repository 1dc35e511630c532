"""Comparing two evaluations of storyboards made under the same protocol, or with two wordings of prompts.

Both are judgements of the same outputs. The control of prompt sensitivity is Table 72; Table 64 for held-out
prompts. Rank correlations say whether methods and stories keep their order, agreement whether single
questions keep their verdicts.

"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...releases.loading import Release, load
from ...schemas.canonical import plain_fields
from ...schemas.text import counted
from ...schemas.values import Score
from ..archive.archive import Difference, check_alike, nothing_to_compare, read_manifest
from ..archive.replies import notes_of_both
from ..stats.correlation import Correlation, cohen_kappa, spearman
from ..stats.paired import Paired
from ..stats.ranks import known
from .definitions import PROTOCOL, Definitions
from .items import CONDITIONS, Items
from .method import Method, compared, comparisons, story_gaps
from .pooling import RIGHT_VERDICT, SILENT, UNJUDGED
from .score import Judged, estimated, judge_notes, judged_folder

Pair = tuple[Method, Method]
PROMPTS = "prompts"
"""The part of the protocol that two wordings differ in."""
NONE = "no question was judged under both wordings"


@dataclass(frozen=True)
class Agreement:
    """How far the verdicts on single questions agree under one condition."""

    same: Score  # share of the questions judged under both wordings that have the same verdict, right or not
    kappa: float | None  # Cohen's kappa of these verdicts; None where there is only one verdict
    first_only: int  # how many are right under the first wording alone
    second_only: int  # the same for the second


@dataclass(frozen=True)
class WordingControl:
    """Two wordings of the prompts against each other."""

    methods: Correlation  # rank correlation of the methods' filtered STG
    stories: Correlation  # the same of the stories' filtered gaps, over all methods
    # condition -> agreement on single questions, seeds counted apart
    agreement: Mapping[str, Agreement] = field(repr=False)

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        ranks = f"methods {_rank(self.methods)}, over stories {_rank(self.stories)}"
        lines = [f"two wordings of the prompts: rank correlation of STG over {ranks}"]
        for condition, agreed in self.agreement.items():
            if agreed.same.value is not None:
                kappa = "-" if agreed.kappa is None else f"{agreed.kappa:.2f}"
                lines.append(
                    f"  {condition}: {100 * agreed.same.value:.1f}% of verdicts the same, kappa {kappa};"
                    f" right under the first alone {agreed.first_only},"
                    f" under the second alone {agreed.second_only}"
                )
        return lines


def only_wordings_differ(differences: Sequence[Difference]) -> bool:
    """Return whether two protocols differ in their prompts and in nothing else."""
    return bool(differences) and all(
        difference.path.partition(".")[0] == PROMPTS for difference in differences
    )


def wording_control(
    pairs: Sequence[Pair], seeds: tuple[Sequence[int], Sequence[int]], items: Items, methods: Correlation
) -> WordingControl:
    """Return how far two wordings agree."""
    first, second = (
        np.concatenate(
            [story_gaps(pair[side], pair[side].outcomes.sets["filtered"], items) for pair in pairs]
        )
        for side in (0, 1)
    )
    return WordingControl(
        methods,
        spearman(first, second),
        {name: _agreement(pairs, seeds, index) for index, name in enumerate(CONDITIONS)},
    )


def _agreement(pairs: Sequence[Pair], seeds: tuple[Sequence[int], Sequence[int]], index: int) -> Agreement:
    # Text-only verdicts belong to no method and no seed: they stand in each of them.
    shown = pairs[:1] if index == 0 else pairs
    used = tuple(list(listed)[:1] for listed in seeds) if index == 0 else seeds
    first, second = (
        np.concatenate([pair[side].outcomes.verdicts[list(used[side]), index].ravel() for pair in shown])
        for side in (0, 1)
    )
    both = _spoken(first) & _spoken(second)
    right, other = first[both] == RIGHT_VERDICT, second[both] == RIGHT_VERDICT
    table = np.array(
        [[(~right & ~other).sum(), (~right & other).sum()], [(right & ~other).sum(), (right & other).sum()]],
        dtype=np.float64,
    )
    return Agreement(
        Score.ratio(float(table[0, 0] + table[1, 1]), float(table.sum()), NONE),
        known(cohen_kappa(table)),
        int(table[1, 0]),
        int(table[0, 1]),
    )


def _spoken(verdicts: NDArray[np.int8]) -> NDArray[np.bool_]:
    spoken: NDArray[np.bool_] = (verdicts != UNJUDGED) & (verdicts != SILENT)
    return spoken


def _rank(ranks: Correlation) -> str:
    return f"- ({ranks.reason})" if ranks.value is None else f"{ranks.value:.3f} (n={ranks.pairs})"


@dataclass(frozen=True)
class KathaComparison:
    """Methods of two evaluations against each other."""

    definitions: Definitions  # the named definitions that were used
    stories: int  # how many stories both are about
    # evaluation -> method -> common-valid STG at question level
    gaps: Mapping[str, Mapping[str, float | None]]
    # methods of the first against methods of the second: those of the same name if there are any, else each
    # against each
    comparisons: tuple[Paired, ...] = field(repr=False)
    ranks: Correlation  # rank correlation over methods of the same name, of filtered STG
    differences: tuple[Difference, ...] = ()  # parts of the protocol that were allowed to differ
    # how far two wordings of the prompts agree; None unless that is all that differs
    wordings: WordingControl | None = None
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions."""
        return {"kind": PROTOCOL, **plain_fields(self)}

    def lines(self) -> Iterator[str]:
        """Yield the comparison in percentage points."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield f"{counted(self.stories, 'story')}; common-valid STG by question"
        for name, gaps in self.gaps.items():
            for method, gap in gaps.items():
                yield f"  {name}  {method}: {'-' if gap is None else f'{100 * gap:.1f}'}"
        yield "difference (negative: the first loses less)"
        yield from (f"  {pair.line()}" for pair in self.comparisons)
        if self.ranks.value is not None:
            yield f"rank correlation over {self.ranks.pairs} methods: {self.ranks.value:.3f}"
        if self.wordings is not None:
            yield from self.wordings.lines()
        for note in self.notes:
            yield f"note: {note}"


def compare_folders(
    first: Path,
    second: Path,
    release: Path | None,
    definitions: Definitions,
    allowed: Collection[str] = (),
    *,
    read: Callable[[Path], Release] = load,
) -> KathaComparison:
    """Compare the methods of two evaluation folders of kind katha.

    ``release``: the release that was judged; None for where the first's manifest says that it is.
    """
    differences = check_alike(read_manifest(first), read_manifest(second), allowed)
    judged_of = partial(judged_folder, definitions=definitions, read=read)
    ours_judged, other = _alike(first, second, release, judged_of)
    names = _names(first, second)
    ours = [replace(method, name=f"{names[0]}:{method.name}") for method in ours_judged.methods]
    theirs = [replace(method, name=f"{names[1]}:{method.name}") for method in other.methods]
    methods = compared([*ours, *theirs])
    ours, theirs = list(methods[: len(ours)]), list(methods[len(ours) :])
    _, estimates = estimated(methods, ours_judged.items, definitions)
    same = _same_names(ours, theirs)
    pairs = same or [(a, b) for a in ours for b in theirs]
    value = "question.filtered.gap"
    ranks = spearman(
        [estimates[a.name].values[value] for a, _ in same], [estimates[b.name].values[value] for _, b in same]
    )
    gaps = {
        name: {
            method.name.removeprefix(f"{name}:"): known(estimates[method.name].values["question.common.gap"])
            for method in some
        }
        for name, some in zip(names, (ours, theirs), strict=True)
    }
    wordings = None
    if same and only_wordings_differ(differences):
        wordings = wording_control(same, _shared_seeds(ours_judged, other), ours_judged.items, ranks)
    return KathaComparison(
        definitions,
        ours_judged.items.stories,
        gaps,
        comparisons(pairs, estimates, ours_judged.items, definitions),
        ranks,
        differences,
        wordings,
        (
            *notes_of_both(dict(zip(names, (ours_judged.manifest, other.manifest), strict=True))),
            *judge_notes(ours_judged),
            *judge_notes(other),
            *definitions.notes(ours_judged.items.stories, "story"),
        ),
    )


def compare_within(
    folder: Path, release: Path | None, definitions: Definitions, *, read: Callable[[Path], Release] = load
) -> KathaComparison:
    """Compare the methods of one evaluation folder of kind katha with each other."""
    judged = judged_folder(folder, release, definitions, read=read)
    methods, items = judged.methods, judged.items
    if len(methods) < 2:
        raise InputError([nothing_to_compare(folder)])
    _, estimates = estimated(methods, items, definitions)
    gaps = {method.name: known(estimates[method.name].values["question.common.gap"]) for method in methods}
    return KathaComparison(
        definitions,
        items.stories,
        {folder.resolve().name: gaps},
        comparisons(list(combinations(methods, 2)), estimates, items, definitions),
        spearman([], []),
        notes=(
            *notes_of_both({str(folder): judged.manifest}),
            *judge_notes(judged),
            *definitions.notes(items.stories, "story"),
        ),
    )


def _alike(
    first: Path, second: Path, release: Path | None, judged_of: Callable[..., Judged]
) -> tuple[Judged, Judged]:
    """Return both evaluations over the stories that both are about."""
    ours = judged_of(first, release)
    other = judged_of(second, ours.release.path)
    stories = set(ours.items.story_places) & set(other.items.story_places)
    if not stories:
        raise InputError.one(
            str(second),
            what=f"it has no story in common with {first}",
            fix="compare evaluations of the same stories",
        )
    if len(stories) < ours.items.stories:
        ours = judged_of(first, release, stories=stories)
    if len(stories) < other.items.stories:
        other = judged_of(second, ours.release.path, stories=stories)
    return ours, other


def _shared_seeds(ours: Judged, other: Judged) -> tuple[list[int], list[int]]:
    """Return the places in both evaluations of the seeds that both have."""
    shared = [seed for seed in ours.replies.seeds if seed in other.replies.seeds]
    return tuple([judged.replies.seeds.index(seed) for seed in shared] for judged in (ours, other))  # type: ignore[return-value]


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Return what to call two folders: their names, or their paths where those are the same."""
    if first.name and first.name != second.name:
        return first.name, second.name
    return ("A", "B") if first == second else (str(first), str(second))


def _same_names(ours: list[Method], theirs: list[Method]) -> list[tuple[Method, Method]]:
    by_name = {method.name.partition(":")[2]: method for method in theirs}
    paired = [(method, by_name.get(method.name.partition(":")[2])) for method in ours]
    return [(mine, other) for mine, other in paired if other is not None]
