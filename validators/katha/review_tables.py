"""The tables of a human review (paper, Tables 16, 17, 21 and 22), counted from its summaries and its votes.

Counted are the public stories of a release whose reviews accepted them, with all votes on them. Votes on
other stories of the run, hidden ones aside, count towards the rates of editing and rejection (Table 17) in
numbers of their own: else what was rejected would look as if nobody had. Those of adjudicators do not count.

Where votes are not published, what they came to is taken from ``statistics.json``, which cannot be checked.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from ...schemas.canonical import Json, digest
from ...schemas.judgement import HumanRow
from ...schemas.paths import SUBSETS, VOTE_FILES, format_path
from ...schemas.plain_files import type_reason
from ...schemas.values import Issue, vocabulary
from ..lines import check_schema, ignore
from ..report import MARK, REVIEWED, SIMULATED, VOTES, is_simulated, issue, show
from ..statistics import MOST_HIDDEN
from ..view import Part
from .dataset import Dataset

if TYPE_CHECKING:
    from ..resampling import Floats


# -- Votes of reviewers about stories: what they are asked about a record (paper, Table 18), and their lines
#
# A vote is a line of the type ``HumanRow``; the columns of :data:`FIELDS` are those that a review has.

UNCLEAR = "unclear"
"""What stands in the place of a label that a reviewer cannot give."""
FIELDS = (
    "kind", "rater", "item", "criterion", "part", "answer", "labels", "value", "confidence", "condition",
    "seconds", "at", "protocol", "simulated",
)  # fmt: skip
"""The columns of a vote, in order; a line may have ``seen_sha256`` besides."""
KINDS = ("review", "moral_label")
"""The kinds of lines that are votes."""
PASSED_OVER = ("attention",)
"""Kinds of lines that a review may export beside its votes."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a record that reviewers decide about (Table 18)."""

    label: str  # what it is called in the paper's Table 17
    words: tuple[str, ...]  # what a reviewer may decide; the first means that it stays as it is
    parts: str | None  # list of the record whose elements are decided one by one; None where the whole is
    counted: str  # what ``final`` counts of it, by its name in the totals of a release


UNITS: dict[str, Unit] = {
    "safety": Unit("Narratives", ("ok", "unsafe", "rights_uncertain"), None, "stories"),
    "scene_sequence": Unit("Structured scenes", ("valid", "flawed", "unusable"), None, "scenes"),
    "transition_annotation": Unit(
        "Scene transitions", ("valid", "corrected", "ambiguous"), "transitions", "transitions"
    ),
    "recoverability_qa": Unit(
        "Recoverability QA pairs", ("valid", "needs_edit", "invalid"), "questions", "questions"
    ),
    "contrastive_variant": Unit(
        "Contrastive variants", ("valid", "invalid", "ambiguous"), "variants", "variants"
    ),
    "narrative_category": Unit(
        "Narrative categories", ("correct", "incorrect", "ambiguous"), None, "narrative_types"
    ),
    "moral_label": Unit("Moral-target labels", ("correct", "corrected", "ambiguous"), None, "moral_labels"),
}
"""Criterion of a vote -> its unit, in the order of Table 17; ``safety`` is about the whole narrative."""
CONFIDENCE = "confidence"
"""Criterion of a vote that says how sure a reviewer is, 1 to 5."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LONGEST_NAME = 100

Vote = Mapping[str, Json]
"""The columns of a vote, every one of :data:`FIELDS`."""


def parts_of(record: Mapping[str, Json], variants: list[Mapping[str, Json]]) -> dict[str, frozenset[str]]:
    """Return list of a record -> what votes call its elements."""
    return {
        "transitions": frozenset(
            f"{part['from_scene']}-{part['to_scene']}" for part in record["transitions"]
        ),
        "questions": frozenset(question["question_id"] for question in record["questions"]),
        "variants": frozenset(variant["variant_id"] for variant in variants),
    }


def read_vote(part: Part, problems: list[Issue]) -> Vote | None:
    """Return the columns of a line that is a vote; None after its problems were noted.

    Whether the story and the part that it names exist is another question; see :func:`stray`.
    """
    try:
        row = HumanRow.model_validate(part.data)
    except ValidationError as error:
        schema = [finding.issue for finding in check_schema("human_row", part.data, part.where)]
        first = error.errors(include_url=False, include_input=False)[0]
        problems += schema or [issue("vote", part.where, format_path(first["loc"]), type_reason(first))]
        return None
    wrong = list(_wrong(row, part.where))
    problems += wrong
    columns = {name: getattr(row, name) for name in FIELDS}
    seen = {} if row.seen_sha256 is None else {"seen_sha256": row.seen_sha256}
    return None if wrong else {**columns, "labels": list(row.labels), **seen}


def _wrong(row: HumanRow, where: str) -> Iterator[Issue]:
    """Yield what keeps a line from being a vote about a record."""
    if row.kind not in KINDS:
        yield _issue(where, "kind", " or ".join(KINDS), row.kind)
        return
    for name in ("method", "baseline", "seed", "completion"):
        if getattr(row, name) not in (None, ()):
            yield _issue(where, name, "nothing, as reviewers see the record", getattr(row, name))
    if not row.rater.isprintable() or len(row.rater) > _LONGEST_NAME:
        yield _issue(where, "rater", f"an id in one line, of at most {_LONGEST_NAME} characters", row.rater)
    if row.simulated != is_simulated(row.rater):
        expected = f"true exactly where the rater begins with {SIMULATED}"
        yield _issue(where, "simulated", expected, row.simulated)
    if row.at is not None and not _TIME.fullmatch(row.at):
        yield _issue(where, "at", "a time such as 2026-01-31T12:00:00Z", row.at)
    if row.protocol is not None and not _SHA256.fullmatch(row.protocol):
        yield _issue(where, "protocol", "a SHA-256 in hexadecimal", row.protocol)
    yield from _wrong_label(row, where) if row.kind == "moral_label" else _wrong_review(row, where)


def _wrong_label(row: HumanRow, where: str) -> Iterator[Issue]:
    known = (*vocabulary("moral_label").values, UNCLEAR)
    if strange := [label for label in row.labels if label not in known]:
        yield _issue(where, "labels", f"moral labels, or {UNCLEAR}", ", ".join(strange))
    for name in ("criterion", "part", "answer", "value"):
        if getattr(row, name) is not None:
            yield _issue(where, name, "nothing on a line of kind moral_label", getattr(row, name))


def _wrong_review(row: HumanRow, where: str) -> Iterator[Issue]:
    if row.labels:
        yield _issue(where, "labels", "none on a line of kind review", ", ".join(row.labels))
    if row.criterion == CONFIDENCE:
        if row.value is None or row.part is not None:
            yield _issue(where, "value", "a whole number from 1 to 5, about the whole record", row.value)
        return
    unit = UNITS.get(str(row.criterion))
    if unit is None:
        yield _issue(where, "criterion", f"one of {', '.join((*UNITS, CONFIDENCE))}", row.criterion)
        return
    if row.answer not in unit.words:
        yield _issue(where, "answer", f"one of {', '.join(unit.words)}", row.answer)
    if (row.part is None) != (unit.parts is None):
        expected = "nothing: the whole is decided" if unit.parts is None else f"one of its {unit.parts}"
        yield _issue(where, "part", expected, row.part)


def stray(vote: Vote, parts: Mapping[str, Mapping[str, frozenset[str]]]) -> tuple[str, str] | None:
    """Return the column in which a vote names what is not there, and what is wrong; None where all is.

    ``parts``: story id -> :func:`parts_of` it.
    """
    if vote["item"] not in parts:
        return "item", f"there is no story {show(vote['item'])}"
    unit = UNITS.get(str(vote["criterion"]))
    if unit is not None and unit.parts and vote["part"] not in parts[vote["item"]][unit.parts]:
        return "part", f"{vote['item']} has no {show(vote['part'])} among its {unit.parts}"
    return None


def order_of(vote: Vote) -> tuple[str, ...]:
    """Return what votes are sorted by, and what no two of them share."""
    return tuple(str(vote[name] or "") for name in ("item", "kind", "criterion", "part", "rater"))


def _issue(where: str, name: str, expected: str, found: object) -> Issue:
    return issue("vote", where, f"$.{name}", f"expected {expected}, found {show(found)}")


# -- What reviewers of a record are shown of it: what their votes and decisions are bound to
#
# A vote names the hash of what was shown, a summary that and the hash of the content that it stands for: what
# was shown, with the corrections that reviewers themselves decided. Whether a review holds is computed from
# these and from the record as it stands, never from a stored status.

Binding = Literal["bound", "unbound", "changed"]
SEEN, CONTENT = "seen_sha256", "content_sha256"
"""Fields of a summary (and the first of a vote): what was shown, and what the review stands for."""
UNSEEN = frozenset(
    ("story_id", "base_story_id", "pair_id", "subset", "variant_kind", "narrative_type", "generation_prompt",
     "generation_prompt_long")
)  # fmt: skip
"""Fields of parts that no reviewer sees: copies of others, what may tell a split, prompts that follow."""
_WHOLE = ("title", "narrative_type", "moral_label")
_LISTS = ("scenes", "transitions", "questions", "variants")


def seen_content(record: Mapping[str, Any], variants: Iterable[Mapping[str, Any]]) -> dict[str, Json]:
    """Return all of a record that the form of its review shows or lets people correct."""
    ordered = sorted(variants, key=lambda variant: str(variant["variant_id"]))
    lists = {**record, "variants": ordered}
    return {
        **{name: record[name] for name in _WHOLE},
        **{
            name: [{key: value for key, value in part.items() if key not in UNSEEN} for part in lists[name]]
            for name in _LISTS
        },
    }


def seen_sha256(story_id: str, content: Mapping[str, Json]) -> str:
    """Return the hash of what :func:`seen_content` returned of a story."""
    return digest({"story_id": story_id, "content": content})


def content_sha256(story_id: str, draft: Mapping[str, Any]) -> str:
    """Return the hash of what reviewers are shown of a draft, which holds its variants."""
    return seen_sha256(story_id, seen_content(draft, draft["variants"]))


def is_unbound(row: Mapping[str, Any], votes: Iterable[Vote]) -> bool:
    """Return whether a summary, or a vote behind it, does not name what was read."""
    return row.get(SEEN) is None or row.get(CONTENT) is None or any(vote.get(SEEN) is None for vote in votes)


def binding_of(row: Mapping[str, Any], votes: Iterable[Vote], now: str) -> Binding:
    """Return whether a review is one of the record as it stands."""
    listed = list(votes)
    seen = {vote.get(SEEN) for vote in listed} - {None}
    if row.get(CONTENT) not in (None, now) or (row.get(SEEN) is not None and seen - {row[SEEN]}):
        return "changed"
    if None not in (row.get(SEEN), row.get(CONTENT)) and row[SEEN] != row[CONTENT] and not _corrects(row):
        return "changed"
    return "unbound" if is_unbound(row, listed) else "bound"


def _corrects(row: Mapping[str, Any]) -> bool:
    """Return whether a summary names a correction, without which it stands for what was shown."""
    return any(flag.startswith(("corrected:", "invalid:")) for flag in row["correction_flags"])


def changed_paths(before: Json, after: Json, path: str = "$") -> Iterator[str]:
    """Yield the paths at which two contents differ; a list of another length is one place."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name in before:
            yield from changed_paths(before[name], after[name], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and _parts(before, after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from changed_paths(old, new, f"{path}[{number}]")
    elif before != after:
        yield path


def _parts(before: list[Json], after: list[Json]) -> bool:
    return len(before) == len(after) and all(isinstance(part, dict) for part in (*before, *after))


# --

_NUMBER = re.compile(r"\[\d+\]", re.ASCII)
PLACES = 4
"""Decimals of kappa and its interval."""
LABELS = "moral_target"
"""The twelve-way agreement on the moral label, as in Table 22; on units agreement is by word."""
Row = Mapping[str, Json]
"""A summary of a review: a line of ``human_validation.jsonl``."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a review says of stories that are not among the accepted public ones; hidden ones are left out."""

    decisions: Mapping[str, int] = field(default_factory=dict)  # decision -> reviews
    # unit -> how many judgements, and how many of them asked for a change
    judged: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReviewData:
    """A review, as far as a release tells of it."""

    rows: Sequence[Row]  # the accepting summaries of public stories
    votes: Sequence[Vote] | None = None  # the votes about these stories; None where they are not at hand
    gold: Mapping[str, Collection[str]] = field(default_factory=dict)  # name of a gold subset -> its members
    elsewhere: Elsewhere = field(default_factory=Elsewhere)  # what it says of other stories
    simulated: bool = False  # whether programs took part


def review_tables(data: ReviewData, totals: Mapping[str, int]) -> dict[str, Json]:
    """Return the tables of a review, as ``statistics.json`` has them under ``review``."""
    tables: dict[str, Json] = {
        "validation": validation_table(data.rows, data.elsewhere.decisions),
        "workload": workload_table(data.rows, data.gold, totals["stories"]),
    }
    if data.votes:
        votes = before_adjudication(data.votes, data.rows)
        labels = {row["story_id"]: row for row in data.rows}
        tables["construction"] = construction_table(votes, data.elsewhere.judged, totals)
        tables["agreement"] = agreement_table(votes, labels)
        tables["confidence"] = confidence_of(votes)
    return {**tables, **({"simulated": True} if data.simulated else {})}


def validation_table(rows: Sequence[Row], elsewhere: Mapping[str, int]) -> dict[str, Json]:
    """Return the counts of summaries (Table 16): decisions, statuses, resolutions, reviewers, corrections."""
    decisions = Counter(str(row["decision"]) for row in rows)
    reviewers = {name for row in rows for name in row["annotator_ids"]}
    adjudicators = {row["adjudicator_id"] for row in rows if row["adjudicator_id"] is not None}
    flags = Counter(
        flag for row in rows for flag in {kind_of_flag(str(flag)) for flag in row["correction_flags"]}
    )
    return {
        "reviews": len(rows),
        "decisions": _sorted(decisions),
        "not_in_release": _sorted(elsewhere),
        "validation_status": _sorted(Counter(str(row["validation_status"]) for row in rows)),
        "resolution": _sorted(Counter(str(row["resolution"]) for row in rows)),
        "correction_flags": _sorted(flags),
        "reviewers": len(reviewers),
        "adjudicators": len(adjudicators),
        "simulated": sum(is_simulated(name) for name in reviewers | adjudicators),
    }


def kind_of_flag(flag: str) -> str:
    """Return what a flag says, whichever part of the record it is about.

    Example: ``corrected:scenes[2].action`` is ``corrected:scenes[*].action``, and
    ``invalid:recoverability_qa:kb25k_0001_q03`` is ``invalid:recoverability_qa``.
    """
    return _NUMBER.sub("[*]", ":".join(flag.split(":")[:2]))


def workload_table(rows: Sequence[Row], gold: Mapping[str, Collection[str]], records: int) -> dict[str, Json]:
    """Return the units of work (Table 21): stories, judgements of reviewers, and adjudications, by tier.

    Every record of a release was checked against the schema, one check each.
    """
    resolved = {
        "responses": rows,
        "unanimous": [row for row in rows if row["resolution"] == "unanimous"],
        "adjudicated": [row for row in rows if row["resolution"] == "human_adjudicated"],
    }
    subsets = {name: [row for row in rows if row["story_id"] in ids] for name, ids in sorted(gold.items())}
    return {
        "records": records,
        **{name: _work(part) for name, part in resolved.items()},
        "subsets": {name: _work(part) for name, part in subsets.items()},
    }


def _work(rows: Sequence[Row]) -> dict[str, int]:
    return {
        "stories": len(rows),
        "judgements": sum(len(row["annotator_ids"]) for row in rows),
        "adjudications": sum(row["adjudicator_id"] is not None for row in rows),
    }


def before_adjudication(votes: Iterable[Vote], rows: Iterable[Row]) -> list[Vote]:
    """Return the votes of reviewers; those of whoever adjudicated the same story are left out."""
    decided = {
        (row["story_id"], row["adjudicator_id"])
        for row in rows
        if row["adjudicator_id"] not in (None, *row["annotator_ids"])
    }
    return [vote for vote in votes if (vote["item"], vote["rater"]) not in decided]


def judged_of(votes: Iterable[Vote]) -> dict[str, tuple[int, int]]:
    """Return unit -> how many judgements there are, and how many of them asked for a change."""
    judged, changed = Counter[str](), Counter[str]()
    for vote in votes:
        unit = UNITS.get(str(vote["criterion"])) if vote["kind"] == "review" else None
        if unit is not None:
            judged[str(vote["criterion"])] += 1
            changed[str(vote["criterion"])] += vote["answer"] != unit.words[0]
    return {name: (judged[name], changed[name]) for name in UNITS if judged[name]}


def construction_table(
    votes: Sequence[Vote], elsewhere: Mapping[str, tuple[int, int]], totals: Mapping[str, int]
) -> dict[str, Json]:
    """Return how much of each component reviewers wanted changed (Table 17), before adjudication.

    ``changed`` of ``judgements`` chose another word than that all is well; ``rate`` is their quotient, over
    the stories of the release and ``elsewhere`` together. ``items`` is how many things were judged in the
    release, ``final`` how many it holds.
    """
    judged = judged_of(votes)
    items: dict[str, set[tuple[Json, Json]]] = {}
    for vote in votes:
        items.setdefault(str(vote["criterion"]), set()).add((vote["item"], vote["part"]))
    table: dict[str, Json] = {}
    for name, unit in UNITS.items():
        if name in judged or name in elsewhere:
            inside, outside = judged.get(name, (0, 0)), elsewhere.get(name, (0, 0))
            judgements, changed = (sum(pair) for pair in zip(inside, outside, strict=True))
            table[name] = {
                "items": len(items.get(name, ())),
                "judgements": judgements,
                "changed": changed,
                "rate": round(changed / judgements, 6) if judgements else None,
                "elsewhere": {"judgements": outside[0], "changed": outside[1]},
                "final": totals[unit.counted],
            }
    return table


def confidence_of(votes: Iterable[Vote]) -> dict[str, Json]:
    """Return how sure reviewers were, 1 to 5: how many said so, their sum and their mean."""
    values = [int(vote["value"]) for vote in votes if vote["criterion"] == CONFIDENCE]
    mean = round(sum(values) / len(values), PLACES) if values else None
    return {"judgements": len(values), "sum": sum(values), "mean": mean}


def label_of(vote: Vote, said: Mapping[tuple[Json, Json], str], row: Row | None) -> str | None:
    """Return the moral label that a reviewer says a story has; None where nobody can tell.

    That of a line of kind ``moral_label``, where there is one. Else what was chosen about the label of the
    record: that it is right, which is known to be the final one only where the review corrected none; or that
    it is ambiguous.

    ``said``: story and rater -> label of such a line.
    """
    if (label := said.get((vote["item"], vote["rater"]))) is not None:
        return label
    if vote["answer"] == "ambiguous":
        return UNCLEAR
    kept = row is not None and not {"moral_label", "corrected:moral_label"} & set(row["correction_flags"])
    label = row["final_moral_label"] if row is not None and kept and vote["answer"] == "correct" else None
    return str(label) if label else None


def agreement_table(votes: Sequence[Vote], rows: Mapping[str, Row]) -> dict[str, Json]:
    """Return Fleiss' kappa of the moral label and of every unit (Table 22), each with its interval.

    The interval is of 95 %, over stories drawn with replacement 10,000 times from seed 42, all measures on
    the same draws; Student's t below 30 stories, none below 6 (:mod:`fabula.validators.resampling`).

    ``rows``: story -> its summary.
    """
    said = {
        (vote["item"], vote["rater"]): str(vote["labels"][0])
        for vote in votes
        if vote["kind"] == "moral_label" and vote["labels"]
    }
    ratings: dict[str, dict[tuple[str, str], Counter[str]]] = {}
    for vote in votes:
        name = str(vote["criterion"])
        if vote["kind"] != "review" or name not in UNITS:
            continue
        asked = (str(vote["item"]), str(vote["part"] or ""))
        ratings.setdefault(name, {}).setdefault(asked, Counter())[str(vote["answer"])] += 1
        if name == "moral_label" and (label := label_of(vote, said, rows.get(asked[0]))) is not None:
            ratings.setdefault(LABELS, {}).setdefault(asked, Counter())[label] += 1
    ordered = [name for name in (LABELS, *UNITS) if name in ratings]
    return _kappas({name: ratings[name] for name in ordered})


def _kappas(ratings: Mapping[str, Mapping[tuple[str, str], Counter[str]]]) -> dict[str, Json]:
    """Return measure -> kappa, interval and counts; one drawing of stories serves all of them."""
    import numpy as np

    from ..resampling import interval_by_size, kappa_of_sums, resampled_sums

    stories = sorted({story for units in ratings.values() for story, _ in units})
    columns = {name: _columns(units, stories) for name, units in ratings.items()}
    if not columns:
        return {}
    drawn = resampled_sums(np.concatenate(list(columns.values()), axis=1))
    table: dict[str, Json] = {}
    start = 0
    for name, sums in columns.items():
        whole, again = sums.sum(axis=0, keepdims=True), drawn[:, start : start + sums.shape[1]]
        start += sums.shape[1]
        kappa, replicates = (kappa_of_sums(part[:, 0], part[:, 1], part[:, 2:]) for part in (whole, again))
        voted = int((sums[:, 1] > 0).sum())
        ends = interval_by_size(kappa, replicates[:, None], voted, (-1.0, 1.0))
        known = not math.isnan(kappa[0])
        low, high = (_rounded(end[0]) if known else None for end in ends)
        table[name] = {
            "kappa": _rounded(kappa[0]),
            "low": low,
            "high": high,
            "items": int(whole[0, 1]),
            "stories": voted,
            "judgements": int(whole[0, 2:].sum()),
        }
    return table


def _columns(units: Mapping[tuple[str, str], Counter[str]], stories: Sequence[str]) -> "Floats":
    """Return per story the sum of shares of agreeing pairs, the units with two ratings, and their ratings.

    Returned: shape (stories, 2 + categories).
    """
    import numpy as np

    from ..resampling import pair_shares

    words = {
        word: number for number, word in enumerate(sorted({word for each in units.values() for word in each}))
    }
    rows = {story: number for number, story in enumerate(stories)}
    kept = {asked: counts for asked, counts in units.items() if counts.total() >= 2}
    counts = np.zeros((len(kept), len(words)))
    for number, given in enumerate(kept.values()):
        for word, count in given.items():
            counts[number, words[word]] = count
    of_story = np.array([rows[story] for story, _ in kept], dtype=np.int64)
    columns = np.zeros((len(stories), 2 + len(words)))
    if kept:
        np.add.at(columns, of_story, np.column_stack([pair_shares(counts), np.ones(len(kept)), counts]))
    return columns


_NUMBERS = {
    "construction": ("items", "judgements", "changed", "rate", "final"),
    "agreement": ("kappa", "low", "high", "items", "stories", "judgements"),
    "confidence": ("judgements", "sum", "mean"),
}


def stated_elsewhere(review: Json) -> Elsewhere:
    """Return what a statistics document states of stories that are not in the release."""
    decisions = _at(review, "validation", "not_in_release")
    judged = {
        name: (_count(part, "judgements"), _count(part, "changed"))
        for name in UNITS
        if (part := _at(review, "construction", name, "elsewhere"))
    }
    return Elsewhere(
        {word: _count(decisions, word) for word in vocabulary("decision").values if word in decisions},
        {name: pair for name, pair in judged.items() if any(pair)},
    )


def stated_tables(review: Json, totals: Mapping[str, int]) -> dict[str, Json]:
    """Return the tables of votes that a statistics document states, for a release that publishes no votes.

    Numbers stand as they are; what it holds is counted again, and everything else is dropped.
    """
    tables: dict[str, Json] = {}
    if construction := _at(review, "construction"):
        tables["construction"] = {
            name: {
                **_numbers(_at(construction, name), _NUMBERS["construction"]),
                "elsewhere": _numbers(_at(construction, name, "elsewhere"), ("judgements", "changed")),
                "final": totals[unit.counted],
            }
            for name, unit in UNITS.items()
            if _at(construction, name)
        }
    if agreement := _at(review, "agreement"):
        names = [name for name in (LABELS, *UNITS) if _at(agreement, name)]
        tables["agreement"] = {name: _numbers(_at(agreement, name), _NUMBERS["agreement"]) for name in names}
    if confidence := _at(review, "confidence"):
        tables["confidence"] = _numbers(confidence, _NUMBERS["confidence"])
    return tables


def _at(value: Json, *steps: str) -> dict[str, Json]:
    """Return the object at a place; an empty one where there is none."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _count(part: Mapping[str, Json], name: str) -> int:
    value = part.get(name)
    return value if type(value) is int and 0 <= value <= MOST_HIDDEN else 0


def _numbers(part: Mapping[str, Json], names: Sequence[str]) -> dict[str, Json]:
    return {name: part[name] if type(part.get(name)) in (int, float) else None for name in names}


def _rounded(value: Any) -> float | None:  # noqa: ANN401 - a number of numpy
    return None if math.isnan(value) else round(float(value), PLACES)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


# -- What a release holds of a human review, read for its tables: summaries, votes, gold subsets

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)


def tables_of_release(dataset: Dataset, document: Json, totals: Mapping[str, int]) -> dict[str, Json]:
    """Return the tables of a release's review; none where it does not say that it has any.

    Lines that are unsound are passed over: other rules report them.

    ``document``: its ``statistics.json``, from which comes what cannot be counted again.
    """
    if dataset.kind != "release" or not isinstance(dataset.manifest.get(REVIEWED), dict):
        return {}
    review = document.get("review") if isinstance(document, dict) else None
    data = ReviewData(
        rows=[part.data for part in dataset.reviews(ignore) if not _broken(part.data, part.where)],
        votes=votes_of(dataset),
        gold=gold_of(dataset),
        elsewhere=stated_elsewhere(review),
        simulated=dataset.manifest.get(MARK) is True,
    )
    stated = {} if data.votes is not None else stated_tables(review, totals)
    return {**review_tables(data, totals), **stated}


def votes_of(dataset: Dataset) -> list[Vote] | None:
    """Return the sound votes of a release, in the order of its file; None where it publishes none."""
    if not (dataset.path / VOTES).is_file():
        return None
    return [vote for part in dataset.lines(VOTES, ignore) if (vote := read_vote(part, [])) is not None]


def gold_of(dataset: Dataset) -> dict[str, frozenset[str]]:
    """Return name of a gold subset -> its members; see :mod:`fabula.releases.katha.additions`."""
    document = dataset.document(SUBSETS, ignore)
    names: list[str] = []
    with suppress(AttributeError, LookupError, TypeError):
        names = [str(entry["name"]) for entry in document["subsets"]]
    gold = {}
    for name in names:
        if "gold" in name and _NAME.fullmatch(name):
            file = f"{name}.jsonl"
            lines = dataset.lines(file if file in VOTE_FILES else f"subsets/{file}", ignore)
            gold[name] = frozenset(str(part.data.get("story_id")) for part in lines)
    return gold


def _broken(row: Mapping[str, Json], where: str) -> bool:
    return any(finding.broken for finding in check_schema("katha_human_validation", row, where))
