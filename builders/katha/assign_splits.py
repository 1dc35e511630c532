"""Stage: train, validation, public and hidden test, 70/15/10/5, stratified; what was assigned never moves.

Strata are the pairs of narrative type and moral label. One with fewer stories than the setting ``least`` is
collapsed: first over the moral labels (stratum = narrative type), then over the types as well.
New stories, in an order fixed by a hash of their ids, go each to the split that lacks most, counting what
it lacks in the story's stratum and what it lacks over all stories together. So the whole comes out at the
shares exactly (5,000 stories in 96 strata: 3,500, 750, 500 and 250), and no stratum is off by two stories.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import Field

from ...engine.stage import Item, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.values import Own
from ...schemas.vocabulary import vocabulary


class Settings(Own):
    """Settings of the stage."""

    least: int = Field(default=20, ge=1, description="Stories that a stratum needs to stand by itself.")


SPEC = StageSpec(
    name="assign_splits",
    version=1,
    shape="gather",
    reads=("labels",),
    writes=("split", "stratum"),
    settings=Settings,
    stateful=True,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return split and stratum of every story."""
    settings = tools.own(Settings)
    labels = {item.id: (item["labels"]["narrative_type"], item["labels"]["moral_label"]) for item in items}
    strata = strata_of(labels, settings.least)
    before = {key: str(fields["split"]) for key, fields in tools.previous.items() if key in labels}
    splits = fill_splits(strata, before)
    return {key: {"split": splits[key], "stratum": strata[key]} for key in sorted(labels)}


def strata_of(labels: Mapping[str, tuple[str | None, str | None]], least: int) -> dict[str, str]:
    """Return the stratum of each story: ``type/label``, ``type/*`` where that is too small, or ``*``.

    A missing label is a label of its own, ``none``.
    """
    named = {key: (kind or "none", moral or "none") for key, (kind, moral) in labels.items()}
    pairs = Counter(named.values())
    small_of_type = Counter(kind for kind, moral in named.values() if pairs[kind, moral] < least)
    strata = {}
    for key, (kind, moral) in named.items():
        if pairs[kind, moral] >= least:
            strata[key] = f"{kind}/{moral}"
        else:
            strata[key] = f"{kind}/*" if small_of_type[kind] >= least else "*"
    return strata


def fill_splits(strata: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the split of every story: earlier assignments kept, new ones by largest deficit."""
    weights = vocabulary("split").targets
    whole = sum(weights.values())
    in_stratum: dict[str, Counter[str]] = {stratum: Counter() for stratum in strata.values()}
    overall: Counter[str] = Counter()
    splits = dict(before)
    for key, split in before.items():
        in_stratum[strata[key]][split] += 1
        overall[split] += 1
    for key in sorted(strata.keys() - before.keys(), key=_order):
        counts = in_stratum[strata[key]]

        def lacks(split: str, counts: Counter[str] = counts) -> float:
            share = weights[split] / whole
            return share * (counts.total() + overall.total() + 2) - counts[split] - overall[split]

        chosen = max(weights, key=lacks)
        splits[key] = chosen
        counts[chosen] += 1
        overall[chosen] += 1
    return splits


def _order(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8")).hexdigest()
