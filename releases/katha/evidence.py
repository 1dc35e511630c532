"""What a run found out about stories beside their records: which retell one another, where they are from.

What names a hidden story goes to the folder of the maintainers alone, and is in no public file.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.layout import ANNOTATIONS, RETELLINGS, SOURCES
from ...schemas.plain_files import json_lines
from ...schemas.values import Issue

EVIDENCE = (RETELLINGS, SOURCES)
"""The files; a folder whose stories have none of it has none of them."""


def write_evidence(run: Path, folder: Path, hidden: Collection[str], public: Collection[str]) -> None:
    """Write what a run knows of its hidden stories."""
    for name, choose in ((RETELLINGS, _groups), (SOURCES, _sources)):
        path = run / name
        rows = list(choose(path, hidden, public)) if path.is_file() else []
        if rows:
            write_atomic(folder / name, jsonl_lines(rows))


def write_retellings(run: Path, folder: Path, public: Collection[str]) -> bool:
    """Write the groups of public stories that retell one another, each with the links between them.

    A group has the id of its first public story: that of the run may be a hidden one. Stories that only a
    hidden one links are in no group.

    Returns:
        Whether there is a group; without one there is no file.
    """
    path = run / RETELLINGS
    rows = []
    for row in json_lines(path) if path.is_file() else ():
        links = [link for link in row["links"] if all(story in public for story in link["stories"])]
        stories = sorted({story for link in links for story in link["stories"]})
        if stories:
            rows.append({"id": stories[0], "stories": stories, "links": links})
    if rows:
        write_atomic(folder / RETELLINGS, jsonl_lines(sorted(rows, key=lambda row: str(row["id"]))))
    return bool(rows)


def check_retellings(folder: Path, public: Collection[str]) -> Iterator[Issue]:
    """Yield groups of a public folder that name a story which is not in it, or none.

    Whether a group is in one split, the rule ``split-retelling`` of records says.
    """
    for number, row in enumerate(json_lines(folder / RETELLINGS), 1):
        linked = sorted({story for link in row["links"] for story in link["stories"]})
        if row["stories"] != linked or len(linked) < 2:
            message = "the stories of the group are not those that its links name"
        elif strange := [story for story in row["stories"] if story not in public]:
            message = f"no public record has the id {strange[0]!r}"
        else:
            continue
        yield Issue(f"{RETELLINGS}:{number}", "$.stories", "retelling-stories", message, "pack the run again")


def _groups(path: Path, hidden: Collection[str], public: Collection[str]) -> Iterator[Json]:
    """Yield the groups that a hidden story is in, with the stories and links that are packed."""
    for row in json_lines(path):
        stories = [story for story in row["stories"] if story in hidden or story in public]
        if len(stories) > 1 and any(story in hidden for story in stories):
            links = [link for link in row["links"] if set(link["stories"]) <= set(stories)]
            yield {"id": row["id"], "stories": stories, "links": links}


def _sources(path: Path, hidden: Collection[str], public: Collection[str]) -> Iterator[Json]:
    """Yield where the hidden stories are from; a frame is named if it is packed."""
    for row in json_lines(path):
        if row["id"] in hidden:
            known = row["frame"] in hidden or row["frame"] in public
            yield {**row, "frame": row["frame"] if known else None}


def check_evidence(folder: Path) -> Iterator[Issue]:
    """Yield lines of evidence in a hidden folder that name no hidden story."""
    ids = {row["story_id"] for row in json_lines(folder / ANNOTATIONS)}
    for name in EVIDENCE:
        for number, row in enumerate(json_lines(folder / name) if (folder / name).is_file() else (), 1):
            named = {str(row.get("id")), *map(str, row.get("stories", ()))}
            if not named & ids:
                message = "the line is about no hidden story of this folder"
                yield Issue(f"{name}:{number}", "$", "hidden-evidence", message, "pack the run again")
