"""Which step of the version each difference between two releases asks for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .changes import Change
from .diffing_images import image_reasons
from .diffing_sides import Side
from .layout import ANNOTATIONS, PRODUCERS, PROMPTS, SHOT_SCRIPTS, VARIANTS
from .version_step import Step

QUIET: dict[str, frozenset[str]] = {
    ANNOTATIONS: frozenset(("title", "provenance", "validation_status", "evidence_status")),
    PROMPTS: frozenset(("origin", "producers")),
    SHOT_SCRIPTS: frozenset(("source_id", "producers")),
}
"""JSONL file -> fields that say nothing about what a record means: a change of them asks for a patch."""
ASIDE = frozenset((PRODUCERS,))
"""JSONL files beside the records: whatever changes in them asks for a patch."""

ABOUT_CHANGED = "what is said about the release changed: "
NOUNS = {
    ANNOTATIONS: ("story", "stories"),
    VARIANTS: ("contrastive variant", "contrastive variants"),
    PRODUCERS: ("line about producers", "lines about producers"),
    PROMPTS: ("prompt", "prompts"),
    SHOT_SCRIPTS: ("script", "scripts"),
}
"""JSONL file -> what one of its records is called, and several."""


def counted(count: int, name: str) -> str:
    """Return a number of records of a file, in words."""
    one, many = NOUNS.get(name, (f"record of {name}", f"records of {name}"))
    return f"{count} {one if count == 1 else many}"


def due_reasons(old: Side, new: Side, found: Mapping[str, Any]) -> Iterator[tuple[Step, str]]:
    """Yield why a step is due, the largest first.

    Args:
        old: the old release.
        new: the new one.
        found: the fields of a :class:`.diffing.ReleaseDiff` by name.
    """
    due: list[tuple[Step, str]] = []
    before, after = found["schema"]
    if before != after:
        due.append((Step.MAJOR, f"the schema of the records is version {after}, and was {before}"))
    due += _record_reasons(new, found)
    due += [(one.step, one.why) for one in found["subsets"]]
    due += image_reasons(found["images"], old, new)
    due += found["hidden"].reasons()
    if found["about"]:
        names = ", ".join(change.path.removeprefix("$.") for change in found["about"])
        due.append((Step.PATCH, f"{ABOUT_CHANGED}{names}"))
    if not due and (old.sha256 is None or old.sha256 != new.sha256):
        due.append((Step.PATCH, "no record changed; the documents beside them may have"))
    yield from sorted(due, key=lambda one: -one[0])


def _record_reasons(new: Side, found: Mapping[str, Any]) -> Iterator[tuple[Step, str]]:
    stories = found["added"].get(ANNOTATIONS, ())
    counts: Counter[tuple[Step, str, str]] = Counter()
    counts[Step.MAJOR, "moved to another split", ANNOTATIONS] += len(found["moved"])
    for name, ids in found["removed"].items():
        if name not in ASIDE:  # else it goes with its story
            counts[Step.MAJOR, "gone", name] += len(ids)
    for record in found["changed"]:
        step = max((_step_of(record.file, change) for change in record.changes), default=Step.NONE)
        what = "changed in meaning" if step is Step.MAJOR else "changed otherwise"
        counts[step, what, record.file] += 1
    for name, ids in found["added"].items():
        if name not in ASIDE:
            late = _late_variants(new, ids, stories) if name == VARIANTS else 0
            counts[Step.MAJOR, "added to stories that were there", name] += late
            counts[Step.MINOR, "added", name] += len(ids) - late
    for (step, what, name), count in counts.items():
        if count and step is not Step.NONE:
            yield step, f"{counted(count, name)} {what}"


def _step_of(name: str, change: Change) -> Step:
    if name in ASIDE:
        return Step.PATCH
    top = change.path.removeprefix("$.").partition(".")[0].partition("[")[0]
    return Step.PATCH if top in QUIET.get(name, ()) else Step.MAJOR


def _late_variants(new: Side, ids: Sequence[str], stories: Sequence[str]) -> int:
    """Return how many of the added variants belong to a story that was there before: it means more now."""
    fresh = set(stories)
    return sum(row.get("base_story_id") not in fresh for row in new.rows(VARIANTS, ids).values())
