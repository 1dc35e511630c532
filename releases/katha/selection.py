"""Which finished records a release takes, and why the others are left out."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...engine.status import ItemReport
from ...errors import InputError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.paths import ANNOTATIONS, HIDDEN_SPLIT, RETELLINGS, SOURCES, VOTE_FILES, WITHDRAWN
from ...schemas.plain_files import json_lines
from ...schemas.values import Issue, vocabulary
from ..form import LeftOut


@dataclass(slots=True)
class Selection:
    """The decision about every story of a run."""

    # id -> split of the stories that are packed in public
    public: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # ids of the hidden-test stories that are packed
    # the others; ``left_out_hidden`` those of them that belong to the hidden split
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_hidden: list[LeftOut] = field(default_factory=list)
    # those that were taken out for good, with the reason given; ``withdrawn_hidden`` likewise
    withdrawn: list[LeftOut] = field(default_factory=list)
    withdrawn_hidden: list[LeftOut] = field(default_factory=list)
    # licence, None for none -> number of packed stories that state it
    licences: Counter[str | None] = field(default_factory=Counter)

    def add(self, record: Json, reason: LeftOut | None) -> None:
        """Take one finished record, or leave it out for a reason."""
        story_id, hidden = record["story_id"], record["split"] == HIDDEN_SPLIT
        if reason is not None:
            (self.left_out_hidden if hidden else self.left_out).append(reason)
            return
        self.licences[record["provenance"]["dataset_license"]] += 1
        if hidden:
            self.hidden.add(story_id)
        else:
            self.public[story_id] = record["split"]

    def add_unmade(self, items: Iterable[ItemReport], splits: Mapping[str, str]) -> None:
        """List the items that the run rejected or failed on.

        The run's own reasons stay in the run: they quote stories, and may quote a hidden one. Why a story was
        withdrawn is what a person said for everybody to read.

        ``splits``: story id -> the split that it was last given; a story that was hidden stays hidden.
        """
        for item in items:
            hidden = splits.get(item.id) == HIDDEN_SPLIT
            if item.code == WITHDRAWN:
                gone = LeftOut(item.id, WITHDRAWN, str(item.reason), item.stage, WITHDRAWN)
                (self.withdrawn_hidden if hidden else self.withdrawn).append(gone)
                continue
            entry = LeftOut(item.id, str(item.code), item.meaning, item.stage, item.status)
            (self.left_out_hidden if hidden else self.left_out).append(entry)
        for entries in (self.left_out, self.left_out_hidden, self.withdrawn, self.withdrawn_hidden):
            entries.sort()


def left_out_reason(record: Json, incomplete: str | None, *, rejected: bool = False) -> LeftOut | None:
    """Return why a finished record stays out of a release, or None."""
    story_id = record["story_id"]
    if rejected:
        return LeftOut(story_id, "reviewers", "its reviewers rejected it")
    if incomplete is not None:
        return LeftOut(story_id, "incomplete", incomplete)
    status = record["provenance"]["source_rights_status"]
    if status not in vocabulary("rights_status").having("releasable"):
        return LeftOut(story_id, "rights", f"its rights status is {status}, which does not allow release")
    return None


def left_out_files(written: Collection[str] = ()) -> list[dict[str, Json]]:
    """Return the files of Table 23 that a release has not got, and why."""
    reason = "no reviewer votes are on file; this file is written from votes only"
    if written:
        reason = "not asked for, or not backed by the reviews on file"
    return [{"name": name, "reason": reason} for name in VOTE_FILES if name not in written]


def require_records(selection: Selection, where: str) -> None:
    """Refuse a selection without a public record."""
    if selection.public:
        return
    gone = (*selection.withdrawn, *selection.withdrawn_hidden)
    entries = (*selection.left_out, *selection.left_out_hidden, *gone)
    counts = Counter(entry.why for entry in entries)
    ours = [entry for entry in entries if entry.status == "left_out"]  # the run's report explains the others
    examples = {entry.why: f", such as {entry.id}: {entry.reason}" for entry in reversed(ours)}
    if selection.hidden:
        counts["in the hidden test split"] = len(selection.hidden)
    reasons = [f"{count} {why}{examples.get(why, '')}" for why, count in sorted(counts.items())]
    raise InputError.one(
        where,
        what="no record can be released: none is complete, in a public split and with rights "
        "that allow it "
        f"({'; '.join(reasons) or 'the run holds no story'})",
        fix="complete the records (by hand, with edits, or with another planner) and build again;"
        " or pack them as the drafts that they are, with --allow-drafts",
    )


# -- What a run found out about stories beside their records: which retell one another, where they are from
#
# What names a hidden story goes to the folder of the maintainers alone, and is in no public file.

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
