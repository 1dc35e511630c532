"""Stage: how far the final fields are from what was first drafted.

For each field, such as ``$.scenes[*].action``, every value that a planner drafted is compared with the final
one, which a repair or an edit may have replaced. The distance of two values is the Levenshtein distance of
their texts in code points, divided by the length of the longer text: 0 for equal texts, 1 where nothing
is left. The text of null is empty, that of a list its elements in lines. Ids, numbers of scenes and copies of
other fields are left out, and so is what a person gave.

It is an automatic counterpart of the edit rates of the paper's Table 17, which come from human reviewers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json, canonical_text
from .drafts import (
    GROWN,
    IDS,
    LABELS,
    LISTS,
    PARTS,
    REPAIRS,
    by_person,
    make_draft,
    with_answers,
    with_repairs,
)

ROWS, SUMMARY = "edit_distances.jsonl", "edit_distances.json"
"""Files of a run: the sums of each story, and those of all by stage."""

STAGES: Mapping[str, tuple[str, ...]] = {
    "draft_scenes": ("scenes",),
    "assess_story": LABELS,
    "annotate_transitions": ("transitions",),
    "write_questions": ("questions",),
    "write_contrastives": ("variants",),
}
"""Which stage drafts what."""

_COPIES: Mapping[str, frozenset[str]] = {
    "variants": frozenset(("has_variant", "narrative_type", "original_moral", "contrastive_story_text"))
}
_COUNTS = ("compared", "changed", "repaired", "edited")
DIGITS = 6


def measure(first: Json, repaired: Json, final: Json) -> dict[str, Json]:
    """Return the sums of one story: field -> compared, changed, repaired, edited and distance.

    Returned: for each field that was drafted: how many values were compared; how many of them are different
    in the end, were changed by the repair, and by edits after it; and the sum of their distances.
    """
    sums: dict[str, dict[str, float]] = {}
    makers = {str(entry["path"]): str(entry["producer"]) for entry in first["producers"]}
    is_as_drafted = first == repaired == final
    for pattern, path, steps in _places(first):
        if by_person(makers.get(path, makers.get(pattern))):
            continue
        entry = sums.get(pattern)
        if entry is None:
            entry = sums[pattern] = {**dict.fromkeys(_COUNTS, 0), "distance": 0.0}
        if is_as_drafted:
            entry["compared"] += 1
            continue
        a, b, c = (_at(draft, steps) for draft in (first, repaired, final))
        for name, is_so in zip(_COUNTS, (True, a != c, a != b, b != c), strict=True):
            entry[name] += is_so
        entry["distance"] += distance(a, c) if a != c else 0.0
    return {name: {**sums[name], "distance": round(sums[name]["distance"], DIGITS)} for name in sorted(sums)}


def distance(before: Json, after: Json) -> float:
    """Return the normalised Levenshtein distance of two values, 0 to 1."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_distance(_text(before), _text(after)))


def _text(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return value if isinstance(value, str) else canonical_text(value)


def _places(draft: Json) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Yield pattern, path and steps of every value that is compared."""
    for name in LABELS:
        yield f"$.{name}", f"$.{name}", (name,)
    for name in LISTS:
        left_out = IDS | _COPIES.get(name, frozenset())
        for number, element in enumerate(draft[name]):
            for key in element:
                if key not in left_out:
                    yield f"$.{name}[*].{key}", f"$.{name}[{number}].{key}", (name, number, key)


def _at(draft: Json, steps: tuple[str | int, ...]) -> Json:
    for step in steps:
        draft = draft[step]
    return draft


@dataclass(slots=True)
class EditSummary:
    """The sums of many stories; they add exactly, so the order of the stories does not matter."""

    stories: int = 0  # how many stories
    # field -> its counts, and the sum of its distances in units of the last digit kept
    fields: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, sums: Mapping[str, Json]) -> None:
        """Count one story: what :func:`measure` returned."""
        self.stories += 1
        for name, entry in sums.items():
            units = round(entry["distance"] * 10**DIGITS)
            self.fields.setdefault(name, Counter()).update({**entry, "distance": units})

    def document(self) -> Json:
        """Return the summary: for each stage the sums of all its fields, and of each field."""
        stages = {}
        for stage, parts in STAGES.items():
            names = [name for name in sorted(self.fields) if name.split("[")[0].removeprefix("$.") in parts]
            fields = {name: _summed([self.fields[name]]) for name in names}
            stages[stage] = {"all": _summed([self.fields[name] for name in names]), "fields": fields}
        return {"stories": self.stories, "stages": stages}


def _summed(entries: Sequence[Counter[str]]) -> Json:
    """Return counts, the sum of the distances, and per value compared: share changed and mean distance."""
    total: Counter[str] = sum(entries, Counter())
    compared, distances = total["compared"], total["distance"] / 10**DIGITS
    return {
        **{name: total[name] for name in _COUNTS},
        "distance": round(distances, DIGITS),
        "share_changed": round(total["changed"] / compared, DIGITS) if compared else None,
        "mean_distance": round(distances / compared, DIGITS) if compared else None,
    }


SPEC = StageSpec(
    name="measure_edits",
    version=2,
    shape="map",
    reads=("story", "given", *PARTS, *REPAIRS, *GROWN, "draft"),
    writes=("edit_distances",),
    libraries=("rapidfuzz",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the story's sums by field."""
    first = make_draft(item.fields)
    repaired = with_repairs(first, item["repaired"], item["repaired_by"])
    # Answers that joined are no correction: they count as drafted.
    first, repaired = (
        with_answers(draft, item["grown"], item["answer_history"]) for draft in (first, repaired)
    )
    return Made({"edit_distances": measure(first, repaired, item["draft"])})
