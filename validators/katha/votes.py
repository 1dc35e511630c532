"""Votes of reviewers about stories: what they are asked about a record (paper, Table 18), and their lines.

A vote is a line of the type ``HumanRow``; the columns of :data:`FIELDS` are those that a review has.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from ...schemas.canonical import Json, digest
from ...schemas.judgement import HumanRow
from ...schemas.paths import format_path
from ...schemas.plain_files import type_reason
from ...schemas.values import Issue
from ...schemas.vocabulary import vocabulary
from ..lines import check_schema
from ..report import SIMULATED, is_simulated, issue, show
from ..view import Part

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
