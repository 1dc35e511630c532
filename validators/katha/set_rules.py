"""Rules that look at a data set as a whole: their common face, and those about ids, orphans and reviews."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, sqrt
from typing import ClassVar

from ...schemas.canonical import Json
from ...schemas.paths import PRODUCERS, RETELLINGS, REVIEWS, STATISTICS
from ...schemas.text import tallied
from ...schemas.values import Issue, vocabulary
from ..lines import check_schema, ignore
from ..report import VOTES, issue, label, show
from ..retellings import DEFAULT_THRESHOLD, PLAIN, Link, Traces, links_between, near_duplicates, signature
from ..statistics import hidden_counts
from ..view import Part, Story
from .dataset import Dataset, VariantIndex
from .field_rules import REVIEW_WORDS, VARIANT_WORDS, check_values, producer_path_fits
from .review_tables import CONTENT, SEEN, binding_of, seen_content, seen_sha256

_SHOWN = ("title", "narrative_type", "scenes", "transitions", "questions", "variants")


@dataclass(slots=True)
class SetRule:
    """One rule about a data set: it sees every story once, keeps small facts, and reports at the end."""

    dataset: Dataset  # where files beside the stories are found
    index: VariantIndex  # where the variants stand, for files that keep them on lines of their own
    # false once a story could not be added because of schema errors; a rule that compares sums then has
    # nothing to say
    complete: bool = True
    found: list[Issue] = field(default_factory=list)  # findings so far

    reads: ClassVar[tuple[str, ...]] = ()

    def take(self, story: Story) -> None:
        """Add a story, unless a field that the rule reads is broken."""
        if story.readable(self.reads):
            self.add(story)
        else:
            self.complete = False

    def add(self, story: Story) -> None:
        """Note what the rule needs to know of a story."""

    def finish(self) -> Iterator[Issue]:
        """Yield the findings, once every story has been added."""
        yield from self.found


@dataclass(slots=True)
class AnyStory(SetRule):
    """A run or release holds a story; a bare file may hold variants or reviews alone."""

    stories: int = 0

    def add(self, story: Story) -> None:  # noqa: ARG002 - that there is one is enough
        """Count a story, whatever else is wrong with it."""
        self.stories += 1

    def finish(self) -> Iterator[Issue]:
        """Yield the finding that there is none."""
        if self.dataset.kind != "file" and not self.stories:
            yield issue("empty", self.dataset.main_file.name, "$", "there is no story")


@dataclass(slots=True)
class UniqueIds(SetRule):
    """Story, question and variant ids occur once; a pair id belongs to one story."""

    seen: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Note the ids of a story, whatever else is wrong with it."""
        record = story.record
        story_id = record.get("story_id")
        # Ids become file names, and some file systems do not tell case apart.
        folded = story_id.casefold() if isinstance(story_id, str) else None
        if not self._once("story_id", folded, story.where, "$.story_id"):
            return
        self._questions(record.get("questions"), story.where)
        for variant in story.variants:
            self._once("variant_id", variant.data.get("variant_id"), variant.where, "$.variant_id")
            self._questions(variant.data.get("questions"), variant.where)
        for pair_id, variant in {
            str(part.data["pair_id"]): part for part in reversed(story.variants) if "pair_id" in part.data
        }.items():
            self._once("pair_id", pair_id, variant.where, "$.pair_id")

    def _questions(self, questions: Json, where: str) -> None:
        for position, question in enumerate(questions if isinstance(questions, list) else ()):
            if isinstance(question, dict):
                path = f"$.questions[{position}].question_id"
                self._once("question_id", question.get("question_id"), where, path)

    def _once(self, kind: str, value: Json, where: str, path: str) -> bool:
        """Note an id; report it and return false if it is known."""
        if not isinstance(value, str):
            return True
        first = self.seen.get((kind, value))
        self.seen.setdefault((kind, value), where)
        if first is not None:
            self.found.append(issue("id-repeated", where, path, f"{show(value)} is also at {first}"))
        return first is None


@dataclass(slots=True)
class Orphans(SetRule):
    """Variants on lines of their own belong to a story of the data set; a file of variants only has none."""

    ids: set[str] = field(default_factory=set)
    checked: int = 0
    _seen: dict[str, str] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Note the story's id."""
        self.ids.add(story.id)

    def finish(self) -> Iterator[Issue]:
        """Yield what is wrong with variants that no story has claimed."""
        with self.index as index:
            for part in index.strays(self.ids):
                self.checked += 1
                yield from self._check(part)
                yield from self._check_id(part)

    def _check_id(self, part: Part) -> Iterator[Issue]:
        name = part.data.get("variant_id")
        if isinstance(name, str):
            if name in self._seen:
                message = f"{show(name)} is also at {self._seen[name]}"
                yield issue("id-repeated", part.where, "$.variant_id", message)
            self._seen.setdefault(name, part.where)

    def _check(self, part: Part) -> Iterator[Issue]:
        sound = True
        for finding in check_schema("katha_variant", part.data, part.where):
            sound = sound and finding.broken is None
            yield finding.issue
        if sound:
            yield from check_values(part.where, "$", part.data, VARIANT_WORDS)
        if self.ids or self.dataset.kind != "file":
            message = f"there is no story {show(part.data.get('base_story_id'))}"
            yield issue("orphan", part.where, "$.base_story_id", message)


@dataclass(slots=True)
class ProducerLines(SetRule):
    """A release's producer file has one line per story, with paths that begin at fields of a record."""

    ids: set[str] = field(default_factory=set)

    def add(self, story: Story) -> None:
        """Note the story's id."""
        self.ids.add(story.id)

    def finish(self) -> Iterator[Issue]:
        """Yield what is wrong with the producer lines, and the stories that have none."""
        if self.dataset.kind != "release":
            return
        if not (self.dataset.path / PRODUCERS).is_file():
            if "visibility" in self.dataset.manifest:
                yield issue("missing-file", PRODUCERS, "$", "the file is missing")
            return
        problems: list[Issue] = []
        seen: set[str] = set()
        for part in self.dataset.producers(problems.append):
            yield from self._check(part, seen)
        yield from problems
        for story_id in sorted(self.ids - seen):
            yield issue("producer-missing", PRODUCERS, "$", f"the story {show(story_id)} has no line")

    def _check(self, part: Part, seen: set[str]) -> Iterator[Issue]:
        findings = list(check_schema("katha_producers", part.data, part.where))
        yield from (finding.issue for finding in findings)
        story_id = str(part.data["id"])
        if story_id in seen:
            yield issue("id-repeated", part.where, "$.id", f"{show(story_id)} has a second line")
        seen.add(story_id)
        if story_id not in self.ids:
            yield issue("orphan", part.where, "$.id", f"there is no story {show(story_id)}")
        if any(finding.broken for finding in findings):
            return
        for position, entry in enumerate(part.data["fields"]):
            if not producer_path_fits(entry["path"]):
                message = f"{show(entry['path'])} names no field of a record"
                yield issue("producer-path", part.where, f"$.fields[{position}].path", message)


GOLD_FILES = ("human_gold_1k.jsonl", "strict_gold_400.jsonl")


@dataclass(frozen=True, slots=True)
class _Claim:
    where: str
    reviewed: bool
    moral_label: str | None
    resolution: str
    content: str | None


@dataclass(slots=True)
class Reviews(SetRule):
    """Reviewed statuses have an accepting review summary; summaries and gold lines belong to stories."""

    reads: ClassVar[tuple[str, ...]] = ("story_id", "validation_status", "moral_label", "evidence_status")
    claims: dict[str, _Claim] = field(default_factory=dict)
    reviewed: set[str] = field(default_factory=set)
    votes: dict[str, list[Mapping[str, Json]]] = field(default_factory=dict)
    unbound: int = 0
    checked: int = 0

    def add(self, story: Story) -> None:
        """Note what a record says about its review."""
        record = story.record
        claims = record["validation_status"] in vocabulary("validation_status").having("reviewed")
        resolution = record["evidence_status"]["resolution"]
        content = None
        if claims and story.readable(_SHOWN):
            variants = [part.data for part in story.variants]
            content = seen_sha256(story.id, seen_content(record, variants))
        self.claims[story.id] = _Claim(story.where, claims, record["moral_label"], resolution, content)

    def finish(self) -> Iterator[Issue]:
        """Yield what is wrong with the reviews, and the claims that none of them proves."""
        problems: list[Issue] = []
        for line in self.dataset.lines(VOTES, ignore):
            seen = line.data.get(SEEN)
            self.votes.setdefault(str(line.data.get("item")), []).append({SEEN: seen})
        for part in self.dataset.reviews(problems.append):
            self.checked += 1
            yield from self._check_review(part)
        yield from problems
        for story_id, claim in self.claims.items():
            if claim.reviewed and story_id not in self.reviewed:
                message = "the record claims a review by people, but no accepting review is on file"
                yield issue("review-unproven", claim.where, "$.validation_status", message)
        if self.unbound:
            reviews = tallied(self.unbound, "reviews")
            message = f"{reviews} without the hash of what was read: nobody can tell what changed since"
            yield issue("review-unbound", REVIEWS, "$", message)
        yield from self._check_gold()

    def _check_review(self, part: Part) -> Iterator[Issue]:
        findings = list(check_schema("katha_human_validation", part.data, part.where))
        yield from (finding.issue for finding in findings)
        if any(finding.broken for finding in findings):
            return
        yield from check_review_words(part)
        yield from check_reviewers(part)
        story_id, claim = part.data["story_id"], self.claims.get(part.data["story_id"])
        if claim is None:
            if self.claims and self.complete:
                yield issue("orphan", part.where, "$.story_id", f"there is no story {show(story_id)}")
            return
        if story_id in self.reviewed:
            yield issue("id-repeated", part.where, "$.story_id", f"{show(story_id)} has a second review")
        if part.data["decision"] == "accepted" and part.data["protocol_complete"]:
            self.reviewed.add(story_id)
        yield from _compare(part, "final_moral_label", claim.moral_label)
        yield from _compare(part, "resolution", claim.resolution)
        if claim.reviewed and claim.content is not None:
            yield from self._check_binding(part, claim.content)

    def _check_binding(self, part: Part, content: str) -> Iterator[Issue]:
        row = part.data
        match binding_of(row, self.votes.get(row["story_id"], ()), content):
            case "unbound":
                self.unbound += 1
            case "changed":
                message = "is not what its reviewers read: it, a vote on it, or its summary changed since"
                yield issue("review-stale", part.where, f"$.{CONTENT}", f"{show(row['story_id'])} {message}")

    def _check_gold(self) -> Iterator[Issue]:
        problems: list[Issue] = []
        for name in GOLD_FILES:
            for part in self.dataset.lines(name, problems.append):
                story_id = part.data.get("story_id")
                if not isinstance(story_id, str) or story_id not in self.reviewed:
                    message = f"{show(story_id)} has no accepting review on file"
                    yield issue("review-unproven", part.where, "$.story_id", message)
        yield from problems


def _compare(part: Part, name: str, wanted: str | None) -> Iterator[Issue]:
    if (part.data[name] or None) != wanted:
        message = f"the record has {show(wanted)}, the review {show(part.data[name])}"
        yield issue("review-differs", part.where, f"$.{name}", message)


def check_review_words(part: Part) -> Iterator[Issue]:
    """Yield the words of a review summary that no list has; an empty label says that the record has none."""
    label = part.data["final_moral_label"] or None
    yield from check_values(part.where, "$", {**part.data, "final_moral_label": label}, REVIEW_WORDS)


def check_reviewers(part: Part) -> Iterator[Issue]:
    """Yield what is wrong with who reviewed a story: each once, and an adjudicator where one decided."""
    reviewers = part.data["annotator_ids"]
    if not reviewers or len(set(reviewers)) != len(reviewers):
        message = f"expected reviewers, each once, found {show(reviewers)}"
        yield issue("review-differs", part.where, "$.annotator_ids", message)
    adjudicated = part.data["resolution"] == "human_adjudicated"
    if adjudicated != (part.data["adjudicator_id"] is not None):
        resolution, person = part.data["resolution"], part.data["adjudicator_id"]
        message = f"resolution is {show(resolution)}, but adjudicator_id is {show(person)}"
        yield issue("review-differs", part.where, "$.adjudicator_id", message)


# -- Rules about splits: their sizes, their make-up, and stories that are nearly the same

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
