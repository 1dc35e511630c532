"""The replies of an archive as columns of numbers: one row per judgement, places instead of names."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from ...errors import InputError, UserError
from ...schemas.judgement import EvaluationManifest, Judgement, JudgementOutcome
from ...schemas.katha import Question
from ...schemas.text import tallied
from ..archive.archive import JUDGEMENTS, lines_of, read_archive, sort_key
from ..archive.replies import last_attempts
from .matching import CONDITIONS, LABELS, Definitions, Items, Key, Marker, is_rule, matcher_of

Codes = NDArray[np.int64]

NO_ANSWER = -1
"""Value of a reply without an answer."""
WRONG, RIGHT = 0, 1
SOURCE, CONTRASTIVE, UNCLEAR_PAIR = 0, 1, 2
UNCLEAR_LABEL = len(LABELS)
VARIANT_QUESTION = "variant_question"
"""Kind of an answer to a question about a variant: from its text, or from pictures made of its base story."""
QUESTIONS = ("question", VARIANT_QUESTION)
KINDS = (*QUESTIONS, "moral_label", "contrast", "variant")
CATEGORIES = {**dict.fromkeys(QUESTIONS, 2), "moral_label": len(LABELS) + 1, "contrast": 3, "variant": 3}
_FIELDS = ("method", "seed", "item", "condition", "judge", "vote", "value", "loose")
_KEY = _FIELDS[:6]


@dataclass(frozen=True)
class Columns:
    """The judgements of one kind; every column has shape (judgements,)."""

    method: Codes = field(repr=False)  # place in :attr:`Replies.methods`, -1 for text-only judgements
    seed: Codes = field(repr=False)  # place in :attr:`Replies.seeds`, -1 for text-only judgements
    item: Codes = field(repr=False)  # place of the question, story or pair
    condition: Codes = field(repr=False)  # place in :data:`CONDITIONS`
    judge: Codes = field(repr=False)  # place in :attr:`Replies.judges`
    vote: Codes = field(repr=False)  # number of the vote
    # :data:`RIGHT` or :data:`WRONG`; place of the label; :data:`SOURCE`, :data:`CONTRASTIVE`;
    # :data:`NO_ANSWER`
    value: Codes = field(repr=False)
    # the value of a question's reply if its answer alone decides, whatever status it has
    loose: Codes = field(repr=False)

    def __len__(self) -> int:
        return len(self.value)

    def chosen(self, rows: NDArray[np.bool_]) -> "Columns":
        return Columns(*(getattr(self, name)[rows] for name in _FIELDS))

    def keys(self) -> Codes:
        """Return one number per row, equal only where all but the value is."""
        parts = [getattr(self, name) for name in _KEY]
        sizes = [int(part.max(initial=-1)) + 2 for part in parts]
        return np.asarray(np.ravel_multi_index(tuple(part + 1 for part in parts), tuple(sizes)))


@dataclass(frozen=True)
class Replies:
    """All replies of an archive that are about the chosen stories."""

    methods: tuple[str, ...]  # methods whose outputs were shown, sorted
    seeds: tuple[int | None, ...]  # seeds of generation, None first
    judges: tuple[str, ...]  # specs, sorted
    columns: dict[str, Columns] = field(repr=False)  # kind -> its judgements
    # (judge, method or None, kind, condition, outcome) -> how many
    outcomes: Counter[tuple[str, str | None, str, str, str]] = field(repr=False)
    units: frozenset[str] = field(repr=False)  # stories that any judgement is about
    outside: int  # judgements about other stories of the release


def read_replies(folder: Path, items: Items, known: frozenset[str], definitions: Definitions) -> Replies:
    """Read the replies of an evaluation folder, line by line, keeping numbers only."""
    path = folder / JUDGEMENTS
    collector = _Collector(items, known, marker_for(path, definitions))
    try:
        for judgement in last_attempts(lines_of(path)):
            collector.add(judgement)
        return collector.replies()
    except (OSError, ValidationError, _Repeated):
        # The archive's own reader says everything that is wrong with it; it keeps all lines in memory.
        judgements = read_archive(folder).judgements
    return replies_of(judgements, items, known, definitions)


def replies_of(
    judgements: Iterable[Judgement], items: Items, known: frozenset[str], definitions: Definitions
) -> Replies:
    """Return judgements, no two with the same key, as columns; see :func:`read_replies`."""
    every = tuple(last_attempts(sorted(judgements, key=sort_key)))
    collector = _Collector(items, known, _marker_of(every, definitions))
    for judgement in every:
        collector.add(judgement)
    return collector.replies()


def extended(replies: Replies, methods: Iterable[str], seeds: Iterable[int | None]) -> Replies:
    """Return replies that also know methods and seeds without a judgement, as where all is invalid."""
    every = tuple(sorted({*replies.methods, *methods}))
    all_seeds = tuple(sorted({*replies.seeds, *seeds}, key=lambda seed: (seed is not None, seed)))
    # The last entry stands for -1, which text-only judgements have.
    method = np.array([*(every.index(name) for name in replies.methods), -1], dtype=np.int64)
    seed = np.array([*(all_seeds.index(seed) for seed in replies.seeds), -1], dtype=np.int64)
    columns = {
        kind: replace(rows, method=method[rows.method], seed=seed[rows.seed])
        for kind, rows in replies.columns.items()
    }
    return replace(replies, methods=every, seeds=all_seeds, columns=columns)


def moved(replies: Replies, items: Items, chosen: Items) -> Replies:
    """Return replies whose items have the places of ``chosen``, which holds every story they are about."""
    places = {
        "question": _moves(items.question_places, chosen.question_places),
        VARIANT_QUESTION: _moves(_asked_of_variants(items), _asked_of_variants(chosen)),
        "moral_label": _moves(items.story_places, chosen.story_places),
        "contrast": _moves(items.pair_places, chosen.pair_places),
        "variant": _moves(items.pair_places, chosen.pair_places),
    }
    columns = {
        kind: replace(rows, item=places[kind][rows.item]) if len(rows) else rows
        for kind, rows in replies.columns.items()
    }
    return replace(replies, columns=columns)


def _asked_of_variants(items: Items) -> dict[str, int]:
    return {} if items.contrast is None else items.contrast.question_places


def _moves(old: dict[str, int], new: dict[str, int]) -> Codes:
    return np.array([new.get(name, -1) for name in old], dtype=np.int64)


class _Repeated(Exception):
    """Two judgements have the same key."""


class _Asked:
    """Replies that share all but item and vote, which most lines of an archive do."""

    def __init__(self) -> None:
        self.rows = {name: array("q") for name in ("item", "vote", "value", "loose")}
        self.outcomes: Counter[str] = Counter()


class _Collector:
    def __init__(self, items: Items, known: frozenset[str], marker: Marker) -> None:
        self._items, self._known, self._marker = items, known, marker
        self._asked: dict[tuple[str, str | None, int | None, str, str], _Asked] = {}
        self._outside = 0
        self._units: set[str] = set()
        self._strangers: Counter[str] = Counter()
        ids = [record.story_id for record in items.records]
        self._places = {
            "question": items.question_places,
            VARIANT_QUESTION: _asked_of_variants(items),
            "moral_label": items.story_places,
            "contrast": items.pair_places,
            "variant": items.pair_places,
        }
        self._story = {
            "question": [ids[record] for record in items.story],
            VARIANT_QUESTION: [] if items.contrast is None else [ids[row] for row in items.contrast.story],
            "moral_label": ids,
            "contrast": [ids[record] for record in items.pair_story],
            "variant": [ids[record] for record in items.pair_story],
        }

    def add(self, judgement: Judgement) -> None:
        kind, unit = judgement.kind, judgement.unit
        if kind not in self._places:
            return
        if unit not in self._items.story_places and unit in self._known:
            self._outside += 1
            return
        item = self._places[kind].get(judgement.item)
        group = (kind, judgement.method, judgement.seed, judgement.condition, judgement.judge.spec)
        asked = self._asked.get(group) or self._asked.setdefault(group, _Asked())
        if item is None or self._story[kind][item] != unit or not _is_shown_rightly(judgement):
            self._strangers[f"{kind} {judgement.item} of {unit} under {judgement.condition}"] += 1
            return
        self._units.add(unit)
        value, loose = self._values(judgement, item)
        rows = asked.rows
        rows["item"].append(item)
        rows["vote"].append(judgement.vote)
        rows["value"].append(value)
        rows["loose"].append(loose)
        asked.outcomes[judgement.outcome] += 1

    def replies(self) -> Replies:
        if self._strangers:
            raise InputError([_stranger(name, count) for name, count in sorted(self._strangers.items())])
        shown = [group for group in self._asked if group[3] != "text"]
        methods = tuple(sorted({method for _, method, *_ in shown if method is not None}))
        seeds = tuple(sorted({group[2] for group in shown}, key=lambda seed: (seed is not None, seed)))
        judges = tuple(sorted({group[4] for group in self._asked}))
        columns = {kind: self._columns(kind, methods, seeds, judges) for kind in KINDS}
        if any(len(np.unique(rows.keys())) < len(rows) for rows in columns.values()):
            raise _Repeated
        outcomes: Counter[tuple[str, str | None, str, str, str]] = Counter()
        for (kind, method, _, condition, judge), asked in self._asked.items():
            for outcome, count in asked.outcomes.items():
                outcomes[judge, method, kind, condition, outcome] += count
        return Replies(methods, seeds, judges, columns, outcomes, frozenset(self._units), self._outside)

    def _columns(
        self, kind: str, methods: tuple[str, ...], seeds: tuple[int | None, ...], judges: tuple[str, ...]
    ) -> Columns:
        parts: dict[str, list[Codes]] = {name: [_none()] for name in _FIELDS}
        for (of, method, seed, condition, judge), asked in self._asked.items():
            if of != kind or not asked.rows["item"]:
                continue
            shared = {
                "method": -1 if method is None else methods.index(method),
                "seed": -1 if method is None else seeds.index(seed),
                "condition": CONDITIONS.index(condition),
                "judge": judges.index(judge),
            }
            size = len(asked.rows["item"])
            for name, code in shared.items():
                parts[name].append(np.full(size, code, dtype=np.int64))
            for name, codes in asked.rows.items():
                parts[name].append(np.frombuffer(codes, dtype=np.int64))
        return Columns(*(np.concatenate(parts[name]) for name in _FIELDS))

    def _values(self, judgement: Judgement, item: int) -> tuple[int, int]:
        parsed = judgement.parsed
        if judgement.outcome != "answered" or parsed is None:
            return NO_ANSWER, NO_ANSWER
        if judgement.kind in QUESTIONS:
            asked = self._items if judgement.kind == "question" else self._items.contrast
            assert asked is not None
            return self._marker.marks(asked.keys[item], judgement.condition, parsed)
        said = parsed.get("answer")
        if judgement.kind == "moral_label":
            value = LABELS.index(said) if said in LABELS else UNCLEAR_LABEL
        else:
            value = {"source": SOURCE, "contrastive": CONTRASTIVE}.get(str(said), UNCLEAR_PAIR)
        return value, value


def marker_for(path: Path, definitions: Definitions) -> Marker:
    """Return what marks the replies of a file; an archived matcher's verdicts are collected first."""
    if is_rule(definitions.matcher):
        return Marker(matcher_of(definitions.matcher, {}), definitions.support)
    try:
        matches = [line for line in lines_of(path) if line.kind == "match"]
    except (OSError, ValidationError):
        matches = [
            judgement for judgement in read_archive(path.parent).judgements if judgement.kind == "match"
        ]
    return _marker_of(matches, definitions)


def rightness(questions: Iterable[Question]) -> Callable[[Judgement], bool | None]:
    """Return what says of a reply whether it answers its question rightly, as scoring does by default.

    It says None of a reply to anything but one of these questions, and of one without a usable answer.
    """
    keys = {question.question_id: Key.of(question) for question in questions}
    definitions = Definitions()
    marker = Marker(matcher_of(definitions.matcher, {}), definitions.support)

    def is_right(judgement: Judgement) -> bool | None:
        key = keys.get(judgement.item) if judgement.kind == "question" else None
        if key is None or judgement.outcome != "answered" or judgement.parsed is None:
            return None
        return marker.marks(key, judgement.condition, judgement.parsed)[0]

    return is_right


def _marker_of(judgements: Iterable[Judgement], definitions: Definitions) -> Marker:
    verdicts: dict[str, dict[tuple[str, str], bool]] = {}
    for judgement in judgements:
        if judgement.kind == "match" and judgement.parsed is not None:
            said = judgement.parsed
            verdicts.setdefault(str(said.get("matcher")), {})[judgement.item, str(said.get("answer"))] = bool(
                said.get("matched")
            )
    return Marker(matcher_of(definitions.matcher, verdicts), definitions.support)


def _is_shown_rightly(judgement: Judgement) -> bool:
    """Return whether the outputs of a method were shown exactly where the condition says so."""
    return judgement.condition in CONDITIONS and (judgement.method is None) == (judgement.condition == "text")


def _none() -> Codes:
    return np.zeros(0, dtype=np.int64)


def _stranger(name: str, count: int) -> UserError:
    return UserError(
        name, what=f"{tallied(count, 'judgements')} about this, "
        "which the release that is scored does not have",
        fix="give the release that was judged",
    )  # fmt: skip


# -- What was asked and what came back, per judge and condition, and which generations are valid (Table 57)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Generations:
    requested: Mask = field(repr=False)  # which were asked for, shape (seeds, stories)
    valid: Mask = field(repr=False)  # which of them can be judged, shape (seeds, stories)

    def as_json(self) -> dict[str, Any]:
        """Return the counts of Table 57. A story is valid where at least one of its generations is."""
        requested, valid = int(self.requested.sum()), int(self.valid.sum())
        return {
            "stories_requested": int(self.requested.any(axis=0).sum()),
            "stories_valid": int(self.valid.any(axis=0).sum()),
            "generations_requested": requested,
            "generations_valid": valid,
            "generations_invalid": requested - valid,
            "invalid_rate": (requested - valid) / requested if requested else None,
        }


def invalid_generations(manifest: EvaluationManifest, method: str) -> Iterator[tuple[str, int | None]]:
    """Yield story and seed of each generation of a method that cannot be judged, as the manifest says."""
    listed = manifest.about(method).get("invalid")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("story_id"), str):
            yield entry["story_id"], entry.get("seed")


def generations(manifest: EvaluationManifest, replies: Replies, items: Items) -> dict[str, Generations]:
    """Return method -> its generations.

    Every scored story is requested of every method with each of the method's seeds: those that the manifest
    names, else those that judgements are about. All are valid but those that the manifest calls invalid.
    """
    places = {seed: index for index, seed in enumerate(replies.seeds)}
    made = {}
    for number, method in enumerate(replies.methods):
        requested = np.zeros((len(places), items.stories), dtype=bool)
        listed = manifest.about(method).get("seeds")
        named = [places[seed] for seed in places if isinstance(listed, list) and seed in listed]
        requested[named or _judged_seeds(replies, number)] = True
        valid = requested.copy()
        for story, seed in invalid_generations(manifest, method):
            if story in items.story_places and seed in places:
                valid[places[seed], items.story_places[story]] = False
        made[method] = Generations(requested, valid)
    return made


def requested_of(manifest: EvaluationManifest) -> tuple[set[str], set[int | None]]:
    """Return the methods that the manifest names, and the seeds that it names for any of them."""
    methods = manifest.subject.get("methods")
    names = set(methods) if isinstance(methods, Mapping) else set()
    seeds: set[int | None] = set()
    for name in names:
        listed = manifest.about(name).get("seeds")
        named = listed if isinstance(listed, list) else []
        seeds.update(seed for seed in named if seed is None or isinstance(seed, int))
    return names, seeds


def _judged_seeds(replies: Replies, method: int) -> list[int]:
    seeds: set[int] = set()
    for rows in replies.columns.values():
        seeds.update(rows.seed[rows.method == method].tolist())
    return sorted(seeds - {-1})


OUTCOMES: tuple[str, ...] = get_args(JudgementOutcome)


@dataclass(frozen=True)
class Coverage:
    """The replies of one judge to one kind of question under one condition."""

    judge: str  # its spec
    method: str | None  # whose outputs were shown; None under text-only evidence
    kind: str  # of question
    condition: str  # evidence
    asked: int  # how many replies there are, votes counted apart
    outcomes: dict[str, int]  # outcome -> how many; all outcomes, in a fixed order

    @property
    def answered(self) -> float:
        """Share of what was asked that was answered."""
        return self.outcomes["answered"] / self.asked

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "answered_share": self.answered}


def coverage_of(replies: Replies) -> tuple[Coverage, ...]:
    """Return one entry per judge, method, kind and condition that anything was asked under."""
    groups: dict[tuple[str, str | None, str, str], Counter[str]] = {}
    for (judge, method, kind, condition, outcome), count in replies.outcomes.items():
        groups.setdefault((judge, method, kind, condition), Counter())[outcome] += count
    order = sorted(groups, key=lambda group: (group[0], group[1] or "", *group[2:]))
    return tuple(
        Coverage(*group, groups[group].total(), {name: groups[group][name] for name in OUTCOMES})
        for group in order
    )
