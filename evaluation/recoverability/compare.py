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

from ...errors import ConfigError, InputError
from ...releases.loading import Release, load
from ...schemas.canonical import plain_fields
from ...schemas.text import counted
from ...schemas.values import Score
from ..archive.archive import Difference, check_alike, nothing_to_compare, read_manifest
from ..archive.replies import notes_of_both
from ..stats.tables import Correlation, cohen_kappa, spearman
from ..stats.uncertainty import Pair as Twosome
from ..stats.uncertainty import Paired, known, paired, paired_lines
from .columns import MORAL, moral_columns
from .matching import CONDITIONS, PROTOCOL, Definitions, Items
from .method import VALUE, Method, compared, comparisons, story_gaps
from .pooling import RIGHT_VERDICT, SILENT, UNJUDGED, sums_of
from .recoverability import Estimates, Rates, values_of
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
        yield from paired_lines(self.comparisons)
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
            *dict.fromkeys((*judge_notes(ours_judged), *judge_notes(other))),
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


# -- The strongest baseline: the dagger of Table 2
#
# Question: is a method better than the best of those that it is compared with?
# Formula: for each measure, the baseline is the method with the best value among those that may be one;
#     each other method less it, paired over stories: value and p-value of the paired bootstrap, Bonferroni
#     over the methods that are compared by the measure. A method is marked where it is better and the
#     corrected p-value is below 0.01.
# Input: an evaluation; people's ratings of stories, where they are a measure.
# Output: a mark, or none, for each method and measure.
# Undefined when: a method has no value, or shares no story with the baseline: it is not marked.
# Source: KathaTrace, Table 2: "Bonferroni-corrected paired-bootstrap improvement over the strongest
#     controllable baseline (p_corr < 0.01)".
# Departures from the source: it does not say whether one baseline serves all measures. Here each has its own,
#     which is the harder test. p-values are two-sided. Image recoverability and STG are over the questions
#     that are valid for all methods, so that both sides answer the same.
# Example: with image recoverability 0.49 (baseline), 0.44 and 0.56, and p-values 0.2 and 0.002, two methods
#     are compared: 0.004 is below 0.01, so that the third is marked.

DAGGER, SURE = "†", 0.01
STRONGEST = "strongest"
Ratings = Mapping[str, Mapping[str, float]]
"""Method -> story id -> what people say of it, higher is better."""


@dataclass(frozen=True, slots=True)
class Aim:
    """Something that methods are better by."""

    label: str  # for tables
    value: str  # name among the estimates; empty for people's ratings
    higher: bool  # whether a higher value is better


AIMS: Mapping[str, Aim] = {
    "image": Aim("From images", "question.common.image", higher=True),
    "gap": Aim("STG", VALUE, higher=False),
    "moral": Aim("Moral target from images", "moral.image", higher=True),
    "human": Aim("People's ratings", "", higher=True),
}


@dataclass(frozen=True)
class Strongest:
    """Every method against the strongest baseline, by some measures."""

    values: Mapping[str, Mapping[str, Score]]  # measure -> method -> its value
    baselines: Mapping[str, str]  # measure -> the baseline
    pairs: Mapping[str, tuple[Paired, ...]] = field(repr=False)  # measure -> the others against it
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number
    against: str = STRONGEST  # or the method that is the baseline of all measures

    @property
    def baseline(self) -> str:
        """What the methods are compared with, in words."""
        return "the strongest baseline" if self.against == STRONGEST else self.against

    @property
    def comparisons(self) -> tuple[Paired, ...]:
        """All comparisons; each measure is corrected by itself."""
        return tuple(pair for some in self.pairs.values() for pair in some)

    def is_marked(self, measure: str, method: str) -> bool:
        """Whether a method is surely better than the baseline."""
        for pair in self.pairs[measure]:
            p_value = pair.p_bootstrap_corrected
            if pair.first == method and pair.difference is not None and p_value is not None:
                return (pair.difference > 0) == AIMS[measure].higher and p_value < SURE
        return False

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions, ratings as given."""
        marked = {
            measure: [name for name in values if self.is_marked(measure, name)]
            for measure, values in self.values.items()
        }
        return {"kind": PROTOCOL, **plain_fields(self), "marked": marked, "level": SURE}

    def lines(self) -> Iterator[str]:
        for name, baseline in self.baselines.items():
            scale, digits = (1, 2) if name == "human" else (100, 1)
            chosen = (
                f"the strongest baseline is {baseline}"
                if self.against == STRONGEST
                else f"against {baseline}"
            )
            yield f"{AIMS[name].label}: {chosen}"
            for pair in self.pairs[name]:
                mark = f" {DAGGER}" if self.is_marked(name, pair.first) else ""
                yield f"  {pair.line(scale, digits)}{mark}"
        yield f"{DAGGER}: better than {self.baseline}, Bonferroni-corrected p < {SURE} (bootstrap)"
        for note in self.notes:
            yield f"note: {note}"


def against_strongest(
    judged: Judged,
    definitions: Definitions,
    against: str = STRONGEST,
    measures: Sequence[str] = ("image", "gap", "moral"),
    references: Collection[str] = (),
    ratings: Ratings | None = None,
) -> Strongest:
    """Compare every method with the strongest baseline by each measure.

    ``against``: ``strongest``, or a method that is the baseline of all measures. ``references``: methods that
    are no baselines: the one that is proposed, closed systems.
    """
    names = [method.name for method in judged.methods]
    _check_named(names, against, measures, references, ratings)
    used = replace(definitions, correction="bonferroni")
    _, estimates = estimated(judged.methods, judged.items, used)
    values: dict[str, dict[str, Score]] = {}
    baselines: dict[str, str] = {}
    pairs: dict[str, tuple[Paired, ...]] = {}
    for measure in measures:
        aim = AIMS[measure]
        if aim.value:
            values[measure] = {name: estimates[name].score(aim.value) for name in names}
            stories = {method.name: _by_story(method, measure, judged.items) for method in judged.methods}
        else:
            stories = _ratings_by_story(ratings or {}, names, judged.items)
            values[measure] = {name: _mean_of(some) for name, some in stories.items()}
        best = _best(measure, values[measure], references) if against == STRONGEST else against
        others = [name for name, score in values[measure].items() if score.value is not None and name != best]
        baselines[measure] = best
        twosomes = [_against(name, best, stories, estimates, measure) for name in others]
        pairs[measure] = paired(twosomes, "story", used)
    notes = (*judge_notes(judged), *definitions.notes(judged.items.stories, "story"))
    return Strongest(values, baselines, pairs, notes, against)


def _best(measure: str, values: Mapping[str, Score], references: Collection[str]) -> str:
    """Return the method with the best value among those that may be baselines; the first of equal ones."""
    sign = 1 if AIMS[measure].higher else -1
    pool = {
        name: sign * score.value
        for name, score in values.items()
        if score.value is not None and name not in references
    }
    if not pool:
        what = f"no method that may be a baseline has a value of {measure}"
        raise ConfigError("--against", what=what, fix="name fewer with --reference, or another --measure")
    return max(pool, key=lambda name: pool[name])


def _check_named(
    names: Sequence[str], against: str, measures: Sequence[str], references: Collection[str],
    ratings: Ratings | None,
) -> None:  # fmt: skip
    for option, given, there in (
        ("--against", [against], [STRONGEST, *names]), ("--reference", references, names),
        ("--measure", measures, list(AIMS)),
    ):  # fmt: skip
        if strange := [name for name in given if name not in there]:
            raise ConfigError(option, expected=", ".join(there), found=strange[0], fix="choose one of them")
    if "human" in measures and not ratings:
        fix = "give their file with --human, as fabula calibrate reads it"
        raise ConfigError("--measure human", what="there are no ratings by people", fix=fix)


def _by_story(method: Method, measure: str, items: Items) -> NDArray[np.float64]:
    """Return a measure of each story, ``nan`` where it has none; shape (stories,)."""
    if measure == "moral":
        sums = moral_columns(method.labels, method.made, items)
        return np.asarray(values_of(MORAL, sums), dtype=np.float64)[..., 1]
    _, image, gap = Rates.of(sums_of(method.outcomes, method.outcomes.sets["common"], items)).overall()
    return image if measure == "image" else gap


def _ratings_by_story(ratings: Ratings, names: Sequence[str], items: Items) -> dict[str, NDArray[np.float64]]:
    stories = {name: np.full(items.stories, np.nan) for name in names}
    for name in names:
        for story, value in ratings.get(name, {}).items():
            if story in items.story_places:
                stories[name][items.story_places[story]] = value
    return stories


def _mean_of(stories: NDArray[np.float64]) -> Score:
    there = stories[~np.isnan(stories)]
    return Score.ratio(float(there.sum()), len(there), "nobody rated it")


def _against(
    name: str, baseline: str, stories: Mapping[str, NDArray[np.float64]], estimates: Mapping[str, Estimates],
    measure: str,
) -> Twosome:  # fmt: skip
    differences, aim = stories[name] - stories[baseline], AIMS[measure]
    pair = Twosome(name, baseline, differences[~np.isnan(differences)], about={"measure": aim.label})
    if not aim.value:
        return pair
    ours, theirs = estimates[name], estimates[baseline]
    return replace(
        pair, value=ours.values[aim.value] - theirs.values[aim.value],
        replicates=ours.replicates[aim.value] - theirs.replicates[aim.value], reach=1.0,
    )  # fmt: skip
