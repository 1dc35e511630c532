"""Whether two methods differ: paired over the stories that both have.

Both are held against each other on the questions that are valid for all compared methods. The difference of
STG is that of the question level, with its interval and p-value over resampled stories; the Wilcoxon test and
the effect sizes are of the stories' own gaps. A negative difference says that the first method loses less.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..stats.paired import Pair, Paired, paired
from .definitions import Definitions
from .estimates import Estimates
from .items import Items
from .method import Method, story_gaps

VALUE = "question.common.gap"


def comparisons(
    pairs: Sequence[tuple[Method, Method]],
    found: Mapping[str, Estimates],
    items: Items,
    definitions: Definitions,
) -> tuple[Paired, ...]:
    """Return one comparison of STG per pair of methods, corrected together.

    Args:
        pairs: the methods to compare; their sets of common questions must be those of all of them together.
        found: method -> its values; all resampled together.
        items: the stories.
        definitions: how intervals and p-values are made.
    """
    return paired([_pair(first, second, found, items) for first, second in pairs], "story", definitions)


def _pair(first: Method, second: Method, found: Mapping[str, Estimates], items: Items) -> Pair:
    ours, theirs = found[first.name], found[second.name]
    gaps = [story_gaps(method, method.outcomes.sets["common"], items) for method in (first, second)]
    differences = gaps[0] - gaps[1]
    return Pair(
        first.name,
        second.name,
        differences[~np.isnan(differences)],
        value=ours.values[VALUE] - theirs.values[VALUE],
        replicates=ours.replicates[VALUE] - theirs.replicates[VALUE],
    )
