"""What several evaluations found in the same and in other pictures, as one: the lines of ``images.jsonl``.

A story of a method may stand in several folders: what one found is added to what another found, such as the
style of pictures to their boxes. What two of them found must be the same, and about the same pictures.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, digest, jsonl_lines, write_atomic
from ...schemas.judgement import EvaluationManifest
from ..metrics.alignment import DIMENSIONS
from ..metrics.story import FoundFacts, FoundStory
from .found import IMAGES, read_found

__all__ = ["IMAGES", "image_protocol", "image_subject", "merge_found", "write_found"]

GROUND = ("characters", "references", "shots")
"""What must be the same wherever a story stands."""
ABOUT_PICTURES = {"numbers", "models", "references"}
"""What stands beside the findings of models of whole pictures."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Looked:
    """What several evaluations found.

    Attributes:
        found: the stories of all methods, each once, sorted.
        units: of each folder, the methods and stories that it has.
    """

    found: tuple[FoundStory, ...]
    units: tuple[frozenset[Key], ...]


def merge_found(places: Sequence[Path], *, first_wins: bool = False) -> Looked:
    """Return the stories of all folders, each once, and which of them each folder has.

    Args:
        places: evaluation folders.
        first_wins: where two of them found different things in the same pictures, keep the first's.

    Raises:
        InputError: a folder cannot be read, or two are about other pictures of one method's story, or found
            different things in them; all of them are listed.
    """
    kept: dict[Key, tuple[Path, FoundStory]] = {}
    problems: list[UserError] = []
    units: list[set[Key]] = []
    for place in places:
        units.append(set())
        for one in read_found(place):
            key = (one.method, one.story_id)
            units[-1].add(key)
            if key not in kept:
                kept[key] = place, one
                continue
            first, known = kept[key]
            other = [name for name in GROUND if getattr(known, name) != getattr(one, name)]
            if FoundFacts() not in (known.facts, one.facts) and known.facts != one.facts:
                other.append("facts")
            if other:
                problems.append(_other_pictures(first, place, one, other))
                continue
            made, differ = _joined(known, one)
            if differ and not first_wins:
                problems.append(_otherwise(first, place, one, differ))
            kept[key] = first, made
    if problems:
        raise InputError(problems)
    return Looked(tuple(kept[key][1] for key in sorted(kept)), tuple(map(frozenset, units)))


def write_found(folder: Path, found: Iterable[FoundStory]) -> None:
    """Write ``images.jsonl`` into a folder that exists.

    Raises:
        OSError: the folder cannot be written.
    """
    write_atomic(folder / IMAGES, jsonl_lines(one.as_json() for one in found))


def image_subject(manifests: Sequence[EvaluationManifest], looked: Looked) -> dict[str, Any]:
    """Return the subject of a merged archive: what was asked for and is there, counted anew.

    Findings of parts about other stories add; of parts that share stories, the larger number counts.
    """
    stories: dict[str, list[FoundStory]] = {}
    for one in looked.found:
        stories.setdefault(one.method, []).append(one)
    methods = {}
    for method, some in sorted(stories.items()):
        codes, seen = Counter[str](), set[Key]()
        for manifest, unit in zip(manifests, looked.units, strict=True):
            own = {key for key in unit if key[0] == method}
            told = (manifest.subject.get("methods") or {}).get(method) if own else None
            found = Counter[str]((told or {}).get("findings") or {})
            codes = codes | found if own & seen else codes + found
            seen |= own
        methods[method] = {
            **_counts(some),
            "findings": dict(sorted(codes.items())),
            "outputs_sha256": _outputs_hash(some),
            "boxes": sum(
                len(boxes) for one in some if one.boxes is not None for boxes in one.boxes["shots"].values()
            ),
        }
    return {"methods": methods}


def image_protocol(protocol: Mapping[str, Any], found: Iterable[FoundStory]) -> dict[str, Any]:
    """Return the parts of a merged protocol that have an order or a sum of their own."""
    stories = sorted({one.story_id for one in found})
    whole = (protocol.get("release") or {}).get("stories")
    asked = protocol.get("dimensions") or ()
    return {
        "stories": None if len(stories) == whole else stories,
        "dimensions": [name for name in DIMENSIONS if name in asked],
    }


def _outputs_hash(stories: Sequence[FoundStory]) -> str:
    """Return what identifies the pictures of a method, as :class:`.images.outputs.ShotOutputs` has it."""
    return digest(
        [
            [one.story_id, [[shot.number, shot.sha256] for shot in one.shots if shot.sha256 is not None]]
            for one in stories
        ]
    )


def _counts(stories: Sequence[FoundStory]) -> dict[str, Json]:
    there = [sum(shot.sha256 is not None for shot in one.shots) for one in stories]
    asked = [len(one.shots) for one in stories]
    return {
        "stories_requested": len(stories),
        "stories_complete": sum(count == wanted for count, wanted in zip(there, asked, strict=True)),
        "stories_without_shot": sum(not count for count in there),
        "shots_requested": sum(asked),
        "shots_valid": sum(there),
        "missing_rate": (sum(asked) - sum(there)) / sum(asked) if sum(asked) else None,
    }


def _joined(known: FoundStory, one: FoundStory) -> tuple[FoundStory, list[str]]:
    """Return a story with what either part found, and what they found differently."""
    differ = []
    update: dict[str, Any] = {}
    for name in ("boxes", "crops"):
        mine, theirs = getattr(known, name), getattr(one, name)
        if mine is not None and theirs is not None and mine != theirs:
            differ.append(name)
        update[name] = theirs if mine is None else mine
    if "boxes" in differ and known.crops is None:
        update["crops"] = None  # crops are of their own boxes
    update["pictures"], others = _pictures(known.pictures, one.pictures)
    update["facts"] = one.facts if known.facts == FoundFacts() else known.facts
    update["views"] = known.views if (known.views or {}).get("shots") else one.views
    return known.model_copy(update=update), [*differ, *others]


def _pictures(known: Json, one: Json) -> tuple[Json, list[str]]:
    if known is None or one is None:
        return (one if known is None else known), []
    differ, made = [], dict(known)
    for name in sorted({*known, *one} - ABOUT_PICTURES):
        mine, theirs = known.get(name), one.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            differ.append(name)
        if mine is None and theirs is not None:
            made[name] = theirs
            if name in one["models"]:
                made["models"] = {**made["models"], name: one["models"][name]}
            if name == "style":
                made["references"] = one["references"]
    return made, differ


def _other_pictures(first: Path, place: Path, one: FoundStory, names: Sequence[str]) -> UserError:
    return UserError(
        f"{one.method}/{one.story_id}", what=f"{first} and {place} differ in {', '.join(names)}",
        fix="evaluate with the same stories.jsonl"
        if names == ["facts"]
        else "evaluate the same pictures, or rename the method in one of them",
    )  # fmt: skip


def _otherwise(first: Path, place: Path, one: FoundStory, names: Sequence[str]) -> UserError:
    return UserError(
        f"{one.method}/{one.story_id}",
        what=f"{first} and {place} have other {', '.join(names)}, by models of the same names",
        fix="evaluate on one machine, or keep the first folder's with --first-wins",
    )
