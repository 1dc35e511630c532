"""What reviewers of a record are shown of it: what their votes and decisions are bound to.

A vote names the hash of what was shown, a summary that and the hash of the content that it stands for: what
was shown, with the corrections that reviewers themselves decided. Whether a review holds is computed from
these and from the record as it stands, never from a stored status.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from ...schemas.canonical import Json, digest
from .votes import Vote

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
