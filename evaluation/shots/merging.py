"""What several evaluations found in the same and in other pictures, as one: the lines of ``images.jsonl``.

A story of a method may stand in several folders: what one found is added to what another found, such as the
style of pictures to their boxes. What two of them found must be the same, and about the same pictures.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, digest, jsonl_lines, write_atomic
from ...schemas.judgement import EvaluationManifest
from ..archive.form import ArchiveForm, Beside
from ..metrics.alignment import DIMENSIONS
from ..metrics.story import FoundFacts, FoundStory
from .found import IMAGES, read_found

GROUND = ("characters", "references", "shots")
"""What must be the same wherever a story stands."""
ABOUT_PICTURES = {"numbers", "models", "references"}
"""What stands beside the findings of models of whole pictures."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Looked:
    """What several evaluations found."""

    stories: tuple[FoundStory, ...]  # the stories of all methods, each once, sorted
    units: tuple[frozenset[Key], ...]  # of each folder, the methods and stories that it has


def merge_found(places: Sequence[Path], *, first_wins: bool = False) -> Looked:
    """Return the stories of all folders, each once, and which of them each folder has."""
    kept: dict[Key, tuple[Path, FoundStory]] = {}
    problems: list[UserError] = []
    units: list[set[Key]] = []
    for folder in places:
        units.append(set())
        for story in read_found(folder):
            key = (story.method, story.story_id)
            units[-1].add(key)
            if key not in kept:
                kept[key] = folder, story
                continue
            first, known = kept[key]
            other = [name for name in GROUND if getattr(known, name) != getattr(story, name)]
            if FoundFacts() not in (known.facts, story.facts) and known.facts != story.facts:
                other.append("facts")
            if other:
                problems.append(_other_pictures(first, folder, story, other))
                continue
            made, differ = _joined(known, story)
            if differ and not first_wins:
                problems.append(_otherwise(first, folder, story, differ))
            kept[key] = first, made
    if problems:
        raise InputError(problems)
    return Looked(tuple(kept[key][1] for key in sorted(kept)), tuple(map(frozenset, units)))


def write_found(folder: Path, stories: Iterable[FoundStory]) -> None:
    """Write ``images.jsonl`` into a folder that exists."""
    write_atomic(folder / IMAGES, jsonl_lines(story.as_json() for story in stories))


def image_subject(manifests: Sequence[EvaluationManifest], looked: Looked) -> dict[str, Any]:
    """Return the subject of a merged archive: what was asked for and is there, counted anew.

    Findings of parts about other stories add; of parts that share stories, the larger number counts.
    """
    stories: dict[str, list[FoundStory]] = {}
    for story in looked.stories:
        stories.setdefault(story.method, []).append(story)
    methods = {}
    for method, some in sorted(stories.items()):
        codes, seen = Counter[str](), set[Key]()
        for manifest, unit in zip(manifests, looked.units, strict=True):
            own = {key for key in unit if key[0] == method}
            account = (manifest.subject.get("methods") or {}).get(method) if own else None
            findings = Counter[str]((account or {}).get("findings") or {})
            codes = codes | findings if own & seen else codes + findings
            seen |= own
        methods[method] = {
            **_counts(some),
            "findings": dict(sorted(codes.items())),
            "outputs_sha256": _outputs_hash(some),
            "boxes": sum(
                len(boxes)
                for story in some
                if story.boxes is not None
                for boxes in story.boxes["shots"].values()
            ),
        }
    return {"methods": methods}


def image_protocol(protocol: Mapping[str, Any], stories: Iterable[FoundStory]) -> dict[str, Any]:
    """Return the parts of a merged protocol that have an order or a sum of their own."""
    names = sorted({story.story_id for story in stories})
    whole = (protocol.get("release") or {}).get("stories")
    asked = protocol.get("dimensions") or ()
    return {
        "stories": None if len(names) == whole else names,
        "dimensions": [name for name in DIMENSIONS if name in asked],
    }


def _outputs_hash(stories: Sequence[FoundStory]) -> str:
    """Return what identifies the pictures of a method, as :class:`.images.outputs.ShotOutputs` has it."""
    return digest(
        [
            [story.story_id, [[shot.number, shot.sha256] for shot in story.shots if shot.sha256 is not None]]
            for story in stories
        ]
    )


def _counts(stories: Sequence[FoundStory]) -> dict[str, Json]:
    there = [sum(shot.sha256 is not None for shot in story.shots) for story in stories]
    asked = [len(story.shots) for story in stories]
    return {
        "stories_requested": len(stories),
        "stories_complete": sum(count == wanted for count, wanted in zip(there, asked, strict=True)),
        "stories_without_shot": sum(not count for count in there),
        "shots_requested": sum(asked),
        "shots_valid": sum(there),
        "missing_rate": (sum(asked) - sum(there)) / sum(asked) if sum(asked) else None,
    }


def _joined(known: FoundStory, story: FoundStory) -> tuple[FoundStory, list[str]]:
    """Return a story with what either part found, and what they found differently."""
    differ = []
    update: dict[str, Any] = {}
    for name in ("boxes", "crops"):
        mine, theirs = getattr(known, name), getattr(story, name)
        if mine is not None and theirs is not None and mine != theirs:
            differ.append(name)
        update[name] = theirs if mine is None else mine
    if "boxes" in differ and known.crops is None:
        update["crops"] = None  # crops are of their own boxes
    update["pictures"], others = _pictures(known.pictures, story.pictures)
    update["facts"] = story.facts if known.facts == FoundFacts() else known.facts
    update["views"] = known.views if (known.views or {}).get("shots") else story.views
    return known.model_copy(update=update), [*differ, *others]


def _pictures(known: Json, other: Json) -> tuple[Json, list[str]]:
    if known is None or other is None:
        return (other if known is None else known), []
    differ, made = [], dict(known)
    for name in sorted({*known, *other} - ABOUT_PICTURES):
        mine, theirs = known.get(name), other.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            differ.append(name)
        if mine is None and theirs is not None:
            made[name] = theirs
            if name in other["models"]:
                made["models"] = {**made["models"], name: other["models"][name]}
            if name == "style":
                made["references"] = other["references"]
    return made, differ


def _other_pictures(first: Path, path: Path, story: FoundStory, names: Sequence[str]) -> UserError:
    return UserError(
        f"{story.method}/{story.story_id}", what=f"{first} and {path} differ in {', '.join(names)}",
        fix="evaluate with the same stories.jsonl"
        if names == ["facts"]
        else "evaluate the same pictures, or rename the method in one of them",
    )  # fmt: skip


def _otherwise(first: Path, path: Path, story: FoundStory, names: Sequence[str]) -> UserError:
    return UserError(
        f"{story.method}/{story.story_id}",
        what=f"{first} and {path} have other {', '.join(names)}, by models of the same names",
        fix="evaluate on one machine, or keep the first folder's with --first-wins",
    )


def _read_to_write(source: Path) -> Callable[[Path], None]:
    return partial(write_found, stories=read_found(source))


def _contents(folder: Path) -> dict[Hashable, str]:
    """Return method, story and what was looked for -> digest of what was found."""
    contents: dict[Hashable, str] = {}
    for story in read_found(folder):
        parts = {"shots": story.shots_json(), "boxes": story.boxes, "crops": story.crops}
        parts |= story.pictures or {}
        contents |= {
            (story.method, story.story_id, name): digest(part)
            for name, part in parts.items()
            if part is not None and name not in ABOUT_PICTURES
        }
    return contents


def _join(places: Sequence[Path], first_wins: bool) -> Beside:
    looked = merge_found(places, first_wins=first_wins)
    return Beside(
        partial(write_found, stories=looked.stories),
        partial(image_subject, looked=looked),
        partial(image_protocol, stories=looked.stories),
        len(looked.stories),
    )


ARCHIVE = ArchiveForm(
    ("dimensions", "judge_models", "judges", "metrics", "models", "prompts", "stories", "votes"),
    (IMAGES,), _read_to_write, _contents, _join,
)  # fmt: skip
"""Archives of shot images: what was found in pictures lies beside the ratings."""
