"""How close a build comes to the published distributions (Tables 6, 9, 12, 14) and to the split sizes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..schemas.canonical import Json
from ..schemas.vocabulary import vocabulary

SECTIONS = {
    "narrative_types": "narrative_type",
    "moral_labels": "moral_label",
    "transition_types": "transition_type",
    "question_types": "question_type",
    "splits": "split",
}


@dataclass(slots=True)
class RunBalance:
    """Counts of a stream of records; add them in any order.

    Attributes:
        counts: section -> value -> count.
        missing: section -> how many values are null.
        strata: stratum -> split -> count.
    """

    stories: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in SECTIONS})
    missing: Counter[str] = field(default_factory=Counter)
    strata: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, record: Mapping[str, Json], stratum: str) -> None:
        """Count one record."""
        self.stories += 1
        self._count("narrative_types", record["narrative_type"])
        self._count("moral_labels", record["moral_label"])
        for transition in record["transitions"]:
            self._count("transition_types", transition["transition_type"])
        for question in record["questions"]:
            self._count("question_types", question["question_type"])
        self._count("splits", record["split"])
        self.strata.setdefault(stratum, Counter())[str(record["split"])] += 1

    def _count(self, section: str, value: Json) -> None:
        if value is None:
            self.missing[section] += 1
        else:
            self.counts[section][str(value)] += 1

    def document(self) -> Json:
        """Return the content of ``balance.json``.

        Per section and value: the ``observed`` count, the ``target`` count (the published share of what was
        observed in all; for question types the published number per story) and the ``deviation``, both with
        4 decimals. ``split_tolerance`` is the largest distance of any split's share from its target share,
        over all stories and within the strata.
        """
        sections = {name: self._section(name, values) for name, values in SECTIONS.items()}
        strata = {
            name: {split: counts[split] for split in vocabulary("split").values}
            for name, counts in sorted(self.strata.items())
        }
        return {
            "stories": self.stories,
            **sections,
            "missing": {name: self.missing[name] for name in SECTIONS},
            "strata": strata,
            "split_tolerance": {
                "overall": _worst_share(self.counts["splits"]),
                "largest_in_a_stratum_in_stories": _worst_stratum(self.strata.values()),
            },
        }

    def _section(self, name: str, values: str) -> Json:
        counts, targets = self.counts[name], vocabulary(values).targets
        weight = sum(targets.values())
        total = counts.total()
        if name == "question_types":
            # Table 14 counts the questions of 5,000 stories.
            weight, total = 5000, self.stories
        section = {}
        for value in (*targets, *sorted(set(counts) - set(targets))):
            target = targets.get(value, 0) * total / weight
            section[value] = {
                "observed": counts[value],
                "target": round(target, 4),
                "deviation": round(counts[value] - target, 4),
            }
        return section


def _worst_share(counts: Counter[str]) -> float:
    targets, total = vocabulary("split").targets, counts.total()
    weight = sum(targets.values())
    if not total:
        return 0.0
    return round(max(abs(counts[split] / total - targets[split] / weight) for split in targets), 4)


def _worst_stratum(strata: Iterable[Counter[str]]) -> float:
    targets = vocabulary("split").targets
    weight = sum(targets.values())
    distances = [
        abs(counts[split] - counts.total() * targets[split] / weight)
        for counts in strata
        for split in targets
    ]
    return round(max(distances, default=0.0), 4)
