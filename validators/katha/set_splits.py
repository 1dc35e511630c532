"""Rules about splits: their sizes, their make-up, and stories that are nearly the same."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, sqrt
from typing import ClassVar

from ...schemas.canonical import Json
from ...schemas.layout import RETELLINGS, STATISTICS
from ...schemas.values import Issue
from ...schemas.vocabulary import vocabulary
from ..codes import issue, label
from ..lines import ignore
from ..retellings import PLAIN, Link, Traces, links_between
from ..similarity import DEFAULT_THRESHOLD, near_duplicates, signature
from ..statistics import hidden_counts
from ..view import Story
from .set_rules import SetRule

SIZE_TOLERANCE = (2.0, 0.02)
"""A split may miss its share by two stories or two per cent of all, whichever is more."""

STRATUM_TOLERANCE = (2.0, 0.1)
"""A narrative type or moral label may miss its share of a split by two stories or a tenth of its own."""

CHANCE = (1.0, 4.0)
"""What is too small for a stratum falls to the splits by chance, and may miss its share by one story and four
standard deviations of a draw at random. Moral labels always may: strata are collapsed over them first.
"""

FEWEST = 20
"""Below so many stories there is no share of 5 per cent to speak of."""


@dataclass(slots=True)
class SplitSizes(SetRule):
    """Split sizes are near 70/15/10/5, and narrative types and moral labels are spread as the whole is.

    Only the folder of the hidden test, and a bare file, may hold a single split: they are a part of a whole.
    """

    reads: ClassVar[tuple[str, ...]] = ("split", "narrative_type", "moral_label")
    sizes: Counter[str] = field(default_factory=Counter)
    types: Counter[tuple[str, str]] = field(default_factory=Counter)
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, story: Story) -> None:
        """Count a story."""
        split = story.record["split"]
        self.sizes[split] += 1
        self.types[str(story.record["narrative_type"]), split] += 1
        self.labels[str(story.record["moral_label"]), split] += 1

    def finish(self) -> Iterator[Issue]:
        """Yield the splits and strata outside their tolerance."""
        total = sum(self.sizes.values())
        a_part = self.dataset.kind == "file" or self.dataset.manifest.get("visibility") == "hidden"
        if total < FEWEST or (len(self.sizes) < 2 and a_part):
            return
        yield from self._check_sizes(total, vocabulary("split").targets)
        yield from self._check_spread(total, self.types, FEWEST)
        yield from self._check_spread(total, self.labels, inf)

    def _check_spread(
        self, total: int, counts: Counter[tuple[str, str]], stratum_from: float
    ) -> Iterator[Issue]:
        """Check kinds against the splits; those with so many stories are taken to be strata."""
        of_kinds: Counter[str] = Counter()
        for (kind, _), count in counts.items():
            of_kinds[kind] += count
        for kind, of_kind in sorted(of_kinds.items()):
            for split in vocabulary("split").targets:
                share = self.sizes[split] / total
                expected, count = of_kind * share, counts[kind, split]
                chance = CHANCE[0] + CHANCE[1] * sqrt(of_kind * share * (1 - share))
                chance = 0.0 if of_kind >= stratum_from else chance
                if abs(count - expected) > max(STRATUM_TOLERANCE[0], STRATUM_TOLERANCE[1] * of_kind, chance):
                    message = f"expected about {expected:.1f} stories of {kind} in {split}, found {count}"
                    yield issue("split-strata", self.dataset.main_file.name, "$.split", message)

    def _check_sizes(self, public: int, targets: dict[str, int]) -> Iterator[Issue]:
        hidden = hidden_counts(self.dataset.document(STATISTICS, ignore)).stories
        total, weight = public + hidden, sum(targets.values())
        for split, target in targets.items():
            count = self.sizes[split] + (hidden if split == "hidden_test" else 0)
            expected = total * target / weight
            if abs(count - expected) > max(SIZE_TOLERANCE[0], SIZE_TOLERANCE[1] * total):
                message = f"expected about {expected:.1f} of {total} stories in {split}, found {count}"
                yield issue("split-size", self.dataset.main_file.name, "$.split", message)


@dataclass(slots=True)
class NearDuplicates(SetRule):
    """No two stories are nearly the same, least of all in different splits."""

    reads: ClassVar[tuple[str, ...]] = ("split", "story_text", "story_id")
    signatures: dict[str, "array[int]"] = field(default_factory=dict)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Keep the signature of a story's text."""
        key = f"{story.id} {len(self.places)}"
        self.signatures[key] = array("I", signature(story.record["story_text"]))
        self.places[key] = (story.where, story.record["split"])

    def finish(self) -> Iterator[Issue]:
        """Yield each pair, at the place of the later story."""
        for first, second, share in near_duplicates(self.signatures, DEFAULT_THRESHOLD):
            (here, split), (there, other) = self.places[first], self.places[second]
            likeness = f"{share:.0%} like {here.split(' ', 1)[-1]}"
            if split != other:
                message = f"the text in {other} is {likeness} in {split}"
                yield issue("split-leak", there, "$.split", message)
            else:
                yield issue("near-duplicate", there, "$.story_text", f"the text is {likeness}")


@dataclass(slots=True)
class Retellings(SetRule):
    """No story is retold in another split: not by words, title or number, nor as the run found."""

    reads: ClassVar[tuple[str, ...]] = ("split", "story_text", "story_id", "title", "provenance")
    traces: dict[str, Traces] = field(default_factory=dict)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Keep what a story may be known again by."""
        record = story.record
        reference = record["provenance"]["source_reference"]
        self.traces[story.id] = Traces.of(record["title"], record["story_text"], reference)
        self.places[story.id] = (story.where, record["split"])

    def finish(self) -> Iterator[Issue]:
        """Yield each link between two splits, at the place of the later story."""
        across: dict[tuple[str, str], list[Link]] = {}
        for link in links_between(self.traces, PLAIN):
            if self.places[link.first][1] != self.places[link.second][1]:
                across.setdefault((link.first, link.second), []).append(link)
        for (first, second), links in across.items():
            code = "split-retelling" if any(link.by == "text" for link in links) else "split-twin"
            yield self._issue(code, first, second, "; ".join(link.evidence for link in links))
        for part in self.dataset.lines(RETELLINGS, ignore):
            stories = part.data.get("stories")
            named = [key for key in stories if key in self.places] if isinstance(stories, list) else []
            for first, second in pairwise(named):
                if self.places[first][1] != self.places[second][1] and (first, second) not in across:
                    message = f"both are in the group at {part.where}"
                    yield self._issue("split-retelling", first, second, message)

    def _issue(self, code: str, first: str, second: str, evidence: str) -> Issue:
        (_, split), (there, other) = self.places[first], self.places[second]
        message = f"{label(second)} in {other} retells {label(first)} in {split}: {evidence}"
        return issue(code, there, "$.split", message)


SECTIONS = {
    "narrative_types": "narrative_type",
    "moral_labels": "moral_label",
    "transition_types": "transition_type",
    "question_types": "question_type",
    "splits": "split",
}


@dataclass(slots=True)
class RunBalance:
    """Counts of a stream of records; add them in any order."""

    stories: int = 0
    # section -> value -> count
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in SECTIONS})
    missing: Counter[str] = field(default_factory=Counter)  # section -> how many values are null
    strata: dict[str, Counter[str]] = field(default_factory=dict)  # stratum -> split -> count

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
