"""Counts and distributions of a data set, as pure functions (paper, Tables 5, 6, 9, 10, 12, 14, 24).

Everything is counted first and divided last, so that parts of a data set add up to the whole.
Hidden-test stories enter as counts only: no distribution may tell what they are about.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..schemas.canonical import Json
from ..schemas.paths import HIDDEN_SPLIT
from ..schemas.values import Own, vocabulary

TRANSITION_FIELDS = (
    "action",
    "causality",
    "intention",
    "emotion",
    "consequence",
    "expected_change",
    "moral_target",
)
"""The transition fields whose coverage Table 10 reports."""

NO_MORAL = "not_applicable"
"""How stories that support no value are counted, apart from those of which nobody said."""
NO_VALUE = "none"
"""Key under which missing values are counted; not a value of any vocabulary."""


class HiddenCounts(Own):
    """What is known in public about the hidden test stories."""

    stories: int = 0
    scenes: int = 0
    transitions: int = 0
    questions: int = 0
    variants: int = 0


MOST_HIDDEN = 1_000_000_000


def hidden_counts(document: Json) -> HiddenCounts:
    """Return the counts of hidden stories that a statistics document states; zero where it states none."""
    stated = document.get("hidden_test") if isinstance(document, dict) else None
    stated = stated if isinstance(stated, dict) else {}
    counts = {name: stated.get(name) for name in HiddenCounts.model_fields}
    return HiddenCounts(**{name: n for name, n in counts.items() if type(n) is int and 0 <= n <= MOST_HIDDEN})


@dataclass(slots=True)
class StatisticsCollector:
    """Counts of a stream of records and variants; add them in any order, then ask for the result."""

    parts: Counter[str] = field(default_factory=Counter)
    hidden: Counter[str] = field(default_factory=Counter)
    tables: dict[str, Counter[str]] = field(default_factory=dict)
    coverage: Counter[str] = field(default_factory=Counter)
    producers: Counter[str] = field(default_factory=Counter)
    statuses: dict[str, str] = field(default_factory=dict)
    by_producer: dict[str, Counter[str]] = field(default_factory=dict)

    def add_record(self, record: Mapping[str, Json]) -> None:
        """Count one record; it must satisfy the record schema."""
        sizes = {"stories": 1, **{name: len(record[name]) for name in ("scenes", "transitions", "questions")}}
        self.parts.update(sizes)
        if record["split"] == HIDDEN_SPLIT:
            self.hidden.update(sizes)
        self.statuses[record["story_id"]] = record["validation_status"]
        for name in ("narrative_type", "language", "split", "validation_status"):
            self._count(name, record[name])
        self._count("moral_label", record["moral_label"] or record.get("moral"))
        self._count("resolution", record["evidence_status"]["resolution"])
        self._count("source_dataset", record["provenance"]["source_dataset"])
        self._count("rights_status", record["provenance"]["source_rights_status"])
        for transition in record["transitions"]:
            self._count("transition_type", transition["transition_type"])
            self.coverage.update(name for name in TRANSITION_FIELDS if transition[name] is not None)
        for question in record["questions"]:
            self._count("question_type", question["question_type"])
            self._count("answerability", question["answerability"])

    def add_variant(self, variant: Mapping[str, Json]) -> None:
        """Count one variant; it must satisfy the variant schema."""
        self.parts["variants"] += 1
        self.hidden["variants"] += variant["subset"] == HIDDEN_SPLIT
        self._count("change_type", variant["change_type"])
        self._count("variant_kind", variant["variant_kind"])

    def add_producers(self, fields: Sequence[Mapping[str, Json]], story_id: str) -> None:
        """Count the producers of a record that was added; each counts once, and of annotations by status."""
        self.producers.update({str(entry["producer"]) for entry in fields})
        for producer in {str(entry["producer"]) for entry in fields if entry["path"] != "$.title"}:
            self.by_producer.setdefault(producer, Counter())[self.statuses.get(story_id, NO_VALUE)] += 1

    def _count(self, table: str, value: Json) -> None:
        self.tables.setdefault(table, Counter())[NO_VALUE if value is None else str(value)] += 1

    @property
    def totals(self) -> dict[str, int]:
        """How many stories and parts of them were added, and how many types and labels occur among them."""
        occurring = {
            f"{name}s": self.tables.get(name, Counter()) for name in ("narrative_type", "moral_label")
        }
        return {
            **{name: self.parts[name] for name in HiddenCounts.model_fields},
            **{name: len(counts.keys() - {NO_VALUE, NO_MORAL}) for name, counts in occurring.items()},
        }

    def result(
        self, hidden: HiddenCounts, *, by_producer: bool = False, review: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        """Return the statistics, the content of ``statistics.json`` (paper, Table 23).

        Returned: ``totals`` (public and hidden together), ``public``, ``hidden_test``, ``splits`` (with the
        aggregate ``test``), and one distribution per vocabulary over what was added: the public part, and in
        a run the hidden one, too; see :func:`distribution`.
        """
        names = tuple(HiddenCounts.model_fields)
        public = {name: self.parts[name] - self.hidden[name] for name in names}
        given = hidden.as_json()
        secret = given if given["stories"] else {name: self.hidden[name] for name in given}
        return {
            "totals": {name: public[name] + secret[name] for name in names},
            "public": public,
            "hidden_test": secret,
            "splits": self._splits(0 if self.hidden["stories"] else hidden.stories),
            "narrative_types": self._distribution("narrative_type"),
            "moral_labels": self._distribution("moral_label"),
            "transition_types": self._distribution("transition_type"),
            "transition_field_coverage": _coverage(self.coverage, self.parts["transitions"]),
            "question_types": self._distribution("question_type"),
            "answerability": self._distribution("answerability"),
            "variant_kinds": self._distribution("variant_kind"),
            "change_types": self._distribution("change_type"),
            "source_mix": self._distribution("source_dataset"),
            "languages": self._distribution("language"),
            "review": {
                name: self._distribution(name)
                for name in ("validation_status", "resolution", "rights_status")
            }
            | ({"by_producer": self._by_producer()} if by_producer else {})
            | dict(review or {}),
            "producers": dict(sorted(self.producers.items())),
        }

    def _by_producer(self) -> dict[str, dict[str, int]]:
        return {name: dict(sorted(row.items())) for name, row in sorted(self.by_producer.items())}

    def _splits(self, hidden: int) -> dict[str, int]:
        counts = self.tables.get("split", Counter())
        splits = {name: counts[name] for name in vocabulary("split").values}
        splits["hidden_test"] += hidden
        return {**splits, "test": splits["public_test"] + splits["hidden_test"]}

    def _distribution(self, name: str) -> dict[str, Json]:
        return distribution(name, self.tables.get(name, Counter()))


def distribution(name: str, counts: Mapping[str, int]) -> dict[str, Json]:
    """Return a count table with shares, targets and deviations.

    ``counts``: value -> count; :data:`NO_VALUE` counts what has no value.

    Returned: value -> ``count`` and ``share`` (of all, 6 decimals); values with a published target also have
    ``target_share`` and ``deviation`` (share minus target share). Every value of a closed vocabulary is
    there, then other values in alphabetical order.
    """
    listed, targets = _listed(name)
    total = sum(counts.values())
    weight = sum(targets.values())
    table: dict[str, Json] = {}
    for value in (*listed, *sorted(set(counts) - set(listed))):
        share = _ratio(counts.get(value, 0), total)
        table[value] = {"count": counts.get(value, 0), "share": share}
        if value in targets:
            target = _ratio(targets[value], weight)
            table[value] |= {"target_share": target, "deviation": round(share - target, 6)}
    return table


def _listed(name: str) -> tuple[tuple[str, ...], dict[str, int]]:
    try:
        words = vocabulary(name)
    except KeyError:
        return (), {}
    return words.values, words.targets


def _coverage(counts: Mapping[str, int], transitions: int) -> dict[str, Json]:
    """Return how many transitions have each field (Table 10)."""
    return {
        name: {"count": counts.get(name, 0), "share": _ratio(counts.get(name, 0), transitions)}
        for name in TRANSITION_FIELDS
    }


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


class BalanceTolerance(Own):
    """How far a label's count may be from its target: the larger of the two bounds counts.

    One story is what rounding a uniform target costs (the published counts are 416 and 417); two per cent is
    what the removal of rejected stories may cost a large benchmark.
    """

    stories: float = 1.0
    relative: float = 0.02

    def allowed(self, target: float) -> float:
        """Return the largest allowed distance from a target count."""
        return max(self.stories, self.relative * target)


DEFAULT_TOLERANCE = BalanceTolerance()


def moral_balance(
    labels: Iterable[str | None], tolerance: BalanceTolerance = DEFAULT_TOLERANCE
) -> dict[str, Json]:
    """Return the moral-label balance audit, the content of ``moral_balance_requirements.json``.

    Returned: ``target_distribution`` (uniform over the labels, as counts, 4 decimals),
    ``observed_distribution``, ``per_label_deviation`` (observed minus target), ``per_label_status`` and
    ``tolerance_status`` (``within_tolerance`` or ``outside_tolerance``), ``tolerance``, ``unlabelled``,
    ``unlisted`` (labels outside the vocabulary), and ``automatic_relabeling``, which is always false: labels
    are never moved to make a table look better.
    """
    counts = Counter(labels)
    unlabelled = counts.pop(None, 0)
    names = vocabulary("moral_label").values
    observed = {name: counts.pop(name, 0) for name in names}
    target = sum(observed.values()) / len(names)
    status = {
        name: _status(abs(count - target) <= tolerance.allowed(target) + 1e-9)
        for name, count in observed.items()
    }
    return {
        "target_distribution": dict.fromkeys(names, round(target, 4)),
        "observed_distribution": observed,
        "per_label_deviation": {name: round(count - target, 4) for name, count in observed.items()},
        "per_label_status": status,
        "tolerance": tolerance.as_json(),
        "tolerance_status": _status(all(value == _status(True) for value in status.values())),
        "unlabelled": unlabelled,
        "unlisted": {str(label): counts[label] for label in sorted(counts, key=str)},
        "automatic_relabeling": False,
    }


def _status(within: bool) -> str:
    return "within_tolerance" if within else "outside_tolerance"
