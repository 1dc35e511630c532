"""The form of releases of stories: what their documents say, and the features that only they have."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ...schemas.canonical import Json, pretty_bytes
from ...schemas.katha import StoryRecord
from ...schemas.paths import (
    ANNOTATIONS,
    CANARY,
    CHANGES,
    DRAFTS,
    HIDDEN_SPLIT,
    JSONL_FILES,
    LICENSE,
    MORAL_BALANCE,
    PRODUCERS,
    RECORD_IDS,
    RECORDS,
    RELEASE,
    REVIEWS,
    SOURCE_MANIFEST,
    SPLIT_FILES,
    STATES,
    STATISTICS,
    SUBSETS,
    SUMS,
    TASKS,
    VARIANTS,
    WITHDRAWN,
    files_in,
)
from ...schemas.plain_files import json_lines, read_json
from ...schemas.text import tallied
from ...schemas.values import MEANINGS, Issue, vocabulary
from ...validators.report import BINDINGS, MARK, REVIEWED, VOTES, issue
from ...validators.retellings import PLAIN, Traces, links_between
from ..diff.form import DiffForm, RecordFile
from ..form import CROISSANT_FILE, Facts, HiddenTest, LeftOut, ReleaseForm
from ..hidden.marks import CURE, RETELL, canary_file, marks_of, public_has_whole, search
from ..loading import load
from ..target import Markup, markdown
from .additions import Additions, StoryFacts, Subset, subset_files, title_of
from .packing import StoryPacking
from .reading import StoryReading
from .reviews import review_tables_shown
from .selection import EVIDENCE, PARTS, SIZES, TABLES, Composition, check_evidence, story_rows

# -- Nothing of a hidden-test story may be in a public file, and a hidden folder holds nothing else

_SHARED = ("about", "canary", "created_at", "inputs", "license", "prompts", "run", "tools")
"""What both folders of one pack say, word by word."""


def check_hidden(
    public: Path, document: Mapping[str, Json], hidden: Path, salt: bytes | None = None
) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story."""
    secret = read_json(hidden / RELEASE)
    ids = {name for hashes in secret["records"].values() for name in hashes}
    digests = {digest for hashes in secret["records"].values() for digest in hashes.values()}
    if secret.get("version") != document.get("version"):
        message = f"version {secret.get('version')} beside version {document.get('version')}"
        yield Issue(
            hidden.name, "$.version", "hidden-version", message, "put the folders of one pack together"
        )
    for name in _SHARED:
        if name in secret and name in document and secret[name] != document[name]:
            message = f"not what the hidden folder says under {name}"
            yield Issue(
                RELEASE, f"$.{name}", "hidden-version", message, "put the folders of one pack together"
            )
    if secret.get("counts") != document.get("hidden_test"):
        yield Issue(
            RELEASE, "$.hidden_test", "hidden-count", "the counts are not those of the hidden folder", CURE
        )
    records = document.get("records", {})
    listed = {name for hashes in records.values() for name in hashes}
    for part in ("left_out", WITHDRAWN):
        listed |= {entry["id"] for entry in document.get(part, {}).get("stories", ())}
    for name in sorted(ids & listed):
        yield Issue(RELEASE, "$", "hidden-leak", f"lists {name}, the id of a hidden story", CURE)
    if digests & {digest for hashes in records.values() for digest in hashes.values()}:
        yield Issue(RELEASE, "$.records", "hidden-leak", "holds the hash of a hidden-test record", CURE)
    marks = marks_of(public, hidden, ids)
    if public_has_whole(public, marks):
        yield Issue(ANNOTATIONS, "$", "hidden-leak", "holds the whole text of a hidden story", RETELL)
    yield from _retold(public, hidden)
    yield from search(public, marks, salt)


def _retold(public: Path, hidden: Path) -> Iterator[Issue]:
    """Yield the public stories that retell a hidden one; what shows it is named, not quoted."""
    traces, secret = {}, set()
    for folder in (public, hidden):
        for row in json_lines(folder / ANNOTATIONS):
            reference = row["provenance"]["source_reference"]
            traces[row["story_id"]] = Traces.of(row["title"], row["story_text"], reference)
            secret |= {row["story_id"]} if folder == hidden else set()
    across: dict[tuple[str, str], set[str]] = {}
    for link in links_between(traces, PLAIN):
        if (link.first in secret) != (link.second in secret):
            across.setdefault((link.first, link.second), set()).add(link.by)
    for pair, by in across.items():
        known = next(story for story in pair if story not in secret)
        code = "split-retelling" if "text" in by else "split-twin"
        message = f"{known} is like a hidden story by its {' and '.join(sorted(by))}"
        yield issue(code, ANNOTATIONS, "$.split", message)


def check_hidden_folder(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield what a folder of hidden-test stories holds beside them, or says of them and is not so."""
    known = {*JSONL_FILES, *EVIDENCE, REVIEWS, VOTES, CANARY, RELEASE, SUMS}
    for path in files_in(folder):
        if path not in known:
            yield Issue(
                path, "$", "file-extra", "a hidden folder has no such file, even if it is listed", "remove it"
            )
    yield from check_evidence(folder)
    counts = Counter[str]()
    for row in json_lines(folder / ANNOTATIONS):
        counts.update({"stories": 1, **{part: len(row[part]) for part in PARTS}})
        if row["split"] != HIDDEN_SPLIT:
            message = f"{row['story_id']} is of the split {row['split']}"
            yield Issue(ANNOTATIONS, "$", "hidden-split", message, "pack the run again")
    counts["variants"] = sum(1 for _ in json_lines(folder / VARIANTS))
    stated = document.get("counts")
    if not isinstance(stated, dict) or any(stated.get(size) != counts[size] for size in SIZES):
        message = f"{stated} are stated, {dict(counts)} are there"
        yield Issue(RELEASE, "$.counts", "release-counts", message, "pack the run again")


# -- The form of releases of stories

_FILES = (
    (ANNOTATIONS, "one record per story: text, scenes, transitions, questions, provenance, status, split"),
    (VARIANTS, "contrastive variants, linked to their stories"),
    (PRODUCERS, "who made which field of each record"),
    ("data/TABLE/SPLIT.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (TASKS, "a task for inspect_ai: the moral label from the text alone"),
    (MORAL_BALANCE, "the audit of the moral-label balance"),
    (SOURCE_MANIFEST, "source collections, references and rights, for traceability"),
    CROISSANT_FILE,
    (RELEASE, "version, content hashes, tool versions, what was left out"),
    (CANARY, "a line that marks copies of this benchmark; see below"),
    (LICENSE, "licence notice"),
    (SUMS, "a checksum of every other file"),
)
_KINDS = {
    "text": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "texts": "list of strings",
    "integers": "list of integers",
}
COMPOSITIONS: tuple[tuple[str, str], ...] = (
    ("Narrative types", "narrative_types"),
    ("Moral labels", "moral_labels"),
    ("Transition types", "transition_types"),
    ("Question types", "question_types"),
    ("Contrastive operations", "change_types"),
    ("Validation status", "review.validation_status"),
)
"""Title of a table of the card -> where ``statistics.json`` has its counts."""

_PEOPLE = {"by hand", "author", "edit"}
_BALANCE = {"within_tolerance": "every label is", "outside_tolerance": "not every label is"}


def _details(facts: Facts) -> dict[str, Any]:
    """Return what the templates of stories say beyond what those of all kinds do."""
    own: StoryFacts = facts.own
    producer_kinds, producer_rows = _producers(own.composition)
    return {
        "stories": facts.size,
        "hidden_stories": own.hidden.get("stories", 0),
        "scenes_per_story": _range(sorted(own.composition.scene_counts)),
        "reviewed": _reviewed(facts),
        "drafts": own.composition.states["draft"] if own.composition.judged else None,
        "states": states(own),
        "meanings": MEANINGS,
        "by_producer": _by_producer(facts.statistics),
        "splits": [_split_row(own.composition, split) for split in _splits(facts)],
        "subsets": own.more.subsets,
        "closeness": list(_closeness_rows(own.more.subsets)),
        "canary": facts.canary,
        "commitments": own.more.commitments,
        "reviews_on_file": own.more.reviewed,
        "simulated": own.more.simulated,
        "bindings": own.more.bindings,
        "careless": own.more.careless,
        "review_status": own.more.review_status,
        "votes": own.more.votes,
        "review": review_tables_shown(facts.statistics["review"]),
        "kinds": _KINDS,
        "compositions": [(title, at_path(facts.statistics, path)) for title, path in COMPOSITIONS],
        "balance": _balance_shown(own.balance),
        "collections": own.composition.manifest(),
        "producer_kinds": producer_kinds,
        "producer_rows": producer_rows,
        "rules_made": any(kind.startswith("rules@") for kind in producer_kinds),
        "checks": [(code, _outcomes(row)) for code, row in sorted(own.composition.checks.items())],
        "missing_files": [entry["name"] for entry in own.left_out_files],
        "withdrawn": own.withdrawn,
        "withdrawn_hidden": own.withdrawn_hidden,
    }


def _balance_shown(balance: Mapping[str, Any]) -> str:
    """Return what the audit of moral labels says, with its tolerance, and how many labels have no story."""
    tolerance, counts = balance["tolerance"], balance["observed_distribution"]
    share = sum(counts.values()) / len(counts)
    empty = sum(not count for count in counts.values())
    bound = f"{tolerance['stories']:g} or {100 * tolerance['relative']:g} %, whichever is more"
    missing = f"{tallied(empty, 'labels')} {'has' if empty == 1 else 'have'} no story"
    return (
        f"{_BALANCE[balance['tolerance_status']]} within tolerance of an even share, which is {share:.1f} "
        f"stories for each of {len(counts)} labels (tolerance: {bound}). "
        f"{missing if empty else 'Every label has a story'}"
    )


def _makers(facts: Facts) -> tuple[list[str], list[str]]:
    """Return the kinds of producers, and those of them that are no people."""
    kinds, _ = _producers(facts.own.composition)
    return kinds, [kind for kind in kinds if kind not in _PEOPLE]


def _summary(facts: Facts) -> str:
    totals, reviewed = facts.totals, _reviewed(facts)
    if reviewed and facts.own.more.simulated:
        review = f"Programs took part in the review of {reviewed} of the {totals['stories']} records."
    elif reviewed == totals["stories"]:
        review = "People reviewed every record."
    elif reviewed:
        review = f"People reviewed {reviewed} of the {totals['stories']} records."
    else:
        review = "No person has reviewed the records."
    if reviewed and facts.own.more.careless:
        review = f"{review.removesuffix('.')}, some of them with signs of carelessness."
    return (
        f"{totals['stories']} short stories with {totals['scenes']} scenes, "
        f"{totals['transitions']} transitions, {totals['questions']} recoverability questions and "
        f"{totals['variants']} contrastive variants, for testing whether the meaning of a story survives "
        f"when it is told in pictures. {review}"
    )


def _by_producer(statistics: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[int]]]]:
    """Return the statuses that records have, and for each producer the numbers of its records by status."""
    table = statistics["review"].get("by_producer", {})
    statuses = sorted({status for row in table.values() for status in row})
    return statuses, [(name, [row.get(status, 0) for status in statuses]) for name, row in table.items()]


def _reviewed(facts: Facts) -> int:
    """Return how many public stories people reviewed."""
    statuses = facts.statistics["review"]["validation_status"]
    reviewed = vocabulary("validation_status").having("reviewed")
    return sum(statuses[status]["count"] for status in reviewed if status in statuses)


def _splits(facts: Facts) -> list[str]:
    """Return the public splits that hold a story, in the order train, validation, test."""
    return [split for split in SPLIT_FILES if split in facts.own.composition.by_split]


def _files(facts: Facts) -> list[tuple[str, str]]:
    return [*_FILES, *_further_files(facts)]


def _further_files(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the files that not every release has, and what they hold."""
    if facts.since is not None:
        yield CHANGES, "what changed since the version before, by id and path"
    yield from sorted(facts.own.more.files.items())
    if facts.own.more.subsets:
        yield SUBSETS, "how close each subset is to the whole, in full"


def _closeness_rows(subsets: Sequence[Subset]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, value of the whole, and values of the subsets, as a table has them."""
    if not subsets:
        return
    tables = [subset.closeness for subset in subsets]
    first = tables[0]
    for name in first["fields"]:
        fields = [table["fields"][name] for table in tables]
        for value, row in first["fields"][name]["values"].items():
            cells = [_share(field["values"][value]) for field in fields]
            yield f"{title_of(name)}: {value}", f"{100 * row['full_share']:.1f} %", cells
        tested = [f"{one['total_variation']:.3f}; {one['chi_square']:.2f}" for one in fields]
        degrees = first["fields"][name]["degrees_of_freedom"]
        shown = markdown(f"{title_of(name)}: total variation; chi-square ({degrees} df)")
        yield Markup(f"*{shown}*"), "", tested
    for name in first["means"]:
        rows = [table["means"][name] for table in tables]
        cells = [f"{row['subset']:,.1f} ({100 * row['difference']:+.1f} %)" for row in rows]
        yield f"{name} per story", f"{first['means'][name]['full']:,.1f}", cells


def _share(row: Mapping[str, float]) -> str:
    return f"{100 * row['subset_share']:.1f} % ({100 * row['difference']:+.1f})"


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _split_row(composition: Composition, split: str) -> dict[str, Json]:
    return {"name": split, "file": SPLIT_FILES[split], **dict(composition.by_split[split])}


def at_path(statistics: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - a table of any shape
    """Return what stands at a dotted path of ``statistics.json``."""
    value: Any = statistics
    for step in path.split("."):
        value = value[step]
    return value


def _producers(
    composition: Composition,
) -> tuple[list[str], list[tuple[str, list[str], tuple[int, ...]]]]:
    """Return the kinds of producers, and rows of part, fields and counts; equal counts share a row."""
    table = composition.producers
    kinds = sorted({kind for row in table.values() for kind in row})
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for path in sorted(table):
        part, _, name = path.removeprefix("$.").rpartition(".")
        counts = tuple(table[path][kind] for kind in kinds)
        groups.setdefault((part.removesuffix("[*]") or "record", counts), []).append(name)
    return kinds, [(part, names, counts) for (part, counts), names in groups.items()]


def _outcomes(row: Counter[str]) -> dict[str, int]:
    return {name: row[name] for name in ("passed", "failed", "not_judged")}


def _documents(facts: Facts) -> dict[str, bytes]:
    """Return audit of moral labels, subsets, reviews, and the canary, which the first releases had not."""
    made = {MORAL_BALANCE: pretty_bytes(facts.own.balance), **subset_files(facts.own.more.subsets)}
    if facts.canary:
        made[CANARY] = canary_file(facts.canary, facts.options.title)
    if (tasks := _tasks(facts)) is not None:
        made[TASKS] = tasks
    more = {REVIEWS: facts.own.reviews, VOTES: facts.own.votes}
    return {**made, **{name: content for name, content in more.items() if content}}


_ASKED = """Read this story:

{prompt}

Which of these values does the whole course of its events support? It may also be taught through its lack.
%s
None (it supports no one of them above the others)

Answer with one of these labels, exactly as it stands there, and nothing else."""


def _tasks(facts: Facts) -> bytes | None:
    """Return what the Hub and inspect_ai read as tasks of the data set; None where no story is public.

    Their form has built-in solvers and scorers, one text and at most one picture of a row: of all that is
    judged, only the choice of the moral label from the text alone can be said in it.
    """
    filled = [name for name in SPLIT_FILES.values() if f"data/stories/{name}.parquet" in facts.rows]
    if not filled:
        return None
    labels = "\n".join(vocabulary("moral_label").values)
    task = {
        "id": "moral_label_text",
        "config": "stories",
        "split": filled[-1],
        "field_spec": {"input": "story_text", "target": "moral_label", "metadata": ["story_id"]},
        "solvers": [
            {"name": "prompt_template", "args": {"template": _ASKED % labels}},
            {"name": "generate"},
        ],
        "scorers": [{"name": "match", "args": {"location": "exact"}}],
    }
    document = {
        "name": facts.options.title,
        "description": "The moral label of a story, chosen from its text alone. A reply that is no label is "
        "wrong here. What is judged from pictures is asked by Fabula.",
        "evaluation_framework": "inspect-ai",
        "tasks": [task],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000).encode("utf-8")


def _manifest(facts: Facts) -> dict[str, Json]:
    return {"collections": facts.own.composition.manifest()}


def _document(facts: Facts) -> dict[str, Json]:
    """Return what the public ``release.json`` says of stories."""
    own: StoryFacts = facts.own
    composition = own.composition
    commitments = {} if own.more.commitments is None else {"commitments": dict(own.more.commitments)}
    return {
        **commitments,
        "canary": facts.canary,
        "hidden_test": dict(own.hidden),
        "splits": {split: composition.by_split[split]["stories"] for split in _splits(facts)},
        "checks": {code: dict(row) for code, row in composition.checks.items()},
        **({DRAFTS: composition.states["draft"]} if composition.judged else {}),
        **({STATES: states(own)} if own.tells_states else {}),
        # Ids of hidden stories are as secret as those of the stories that are packed.
        "left_out": {"hidden_test_stories": own.left_out_hidden, "files": list(own.left_out_files)},
        **withdrawn(own.withdrawn, own.withdrawn_hidden),
        **reviewed(own.more),
    }


def _hidden_document(facts: Facts, packing: StoryPacking) -> dict[str, Json]:
    """Return what ``release.json`` of the folder of hidden stories says."""
    selection = packing.selection
    drafts = packing.hidden_drafts
    return {
        "canary": facts.canary,
        "counts": dict(facts.own.hidden),
        **({DRAFTS: drafts} if facts.own.composition.judged or drafts else {}),
        "left_out": {"stories": [entry.as_json() for entry in selection.left_out_hidden], "files": []},
        **withdrawn(selection.withdrawn_hidden),
        "records": packing.hidden_hashes,
        **({MARK: True} if facts.own.more.simulated else {}),
    }


def states(own: StoryFacts) -> dict[str, int]:
    """Return state -> how many stories; of hidden ones only those that were withdrawn are counted."""
    gone = len(own.withdrawn) + own.withdrawn_hidden
    return {**{state: own.composition.states[state] for state in MEANINGS}, "withdrawn": gone}


def reviewed(more: Additions) -> dict[str, Json]:
    """Return what ``release.json`` says of reviews: words of statuses, votes, whether programs made them.

    A release without reviews, or of an earlier version, says nothing.
    """
    part: dict[str, Json] = {"status": more.review_status, "votes": more.votes}
    if more.careless:
        part["careless"] = {name: list(signs) for name, signs in more.careless.items()}
    said = {REVIEWED: part} if more.review_status is not None else {}
    bindings = {} if more.bindings is None else {BINDINGS: dict(more.bindings)}
    return {**said, **bindings, **({MARK: True} if more.simulated else {})}


def withdrawn(gone: Sequence[LeftOut], hidden: int = 0) -> dict[str, Json]:
    """Return what ``release.json`` says of stories that were taken out for good.

    Nothing if there are none.
    """
    if not gone and not hidden:
        return {}
    stories = [{"id": entry.id, "reason": entry.reason} for entry in gone]
    return {WITHDRAWN: {"stories": stories, "hidden_test_stories": hidden}}


def _salt(facts: Facts) -> bytes | None:
    salt: bytes | None = facts.own.more.salt
    return salt


QUIET = frozenset(("title", "provenance", "validation_status", "evidence_status"))
"""Fields that say nothing about what a story means."""
FORM = ReleaseForm(
    kind="katha",
    runs={"katha": RECORDS},
    tables=TABLES,
    record_ids=RECORD_IDS,
    described=(ANNOTATIONS, VARIANTS, PRODUCERS, VOTES, STATISTICS, MORAL_BALANCE, SOURCE_MANIFEST),
    split_files=tuple(SPLIT_FILES.values()),
    rows=story_rows,
    name="fabula-story-benchmark",
    title="Fabula story benchmark",
    what="a set of stories",
    unit="stories",
    tasks=("text-to-image", "visual-question-answering", "question-answering"),
    tags=(
        "storyboard", "visual-storytelling", "story-visualization", "benchmark", "evaluation", "croissant"
    ),
    keywords=("storyboard", "visual storytelling", "story visualization", "benchmark"),
    rights_scope=(
        "This manifest documents where the stories come from, so that they can be traced. It is no licence: "
        "it gives no right to copy or redistribute the text of any third-party edition, translation, "
        "reference website or publisher page."
    ),
    templates=("katha/card.j2", "katha/license.j2", "katha/responsible_ai.j2"),
    changes=DiffForm({
        ANNOTATIONS: RecordFile("story", "stories", QUIET, splits=True),
        VARIANTS: RecordFile("contrastive variant", "contrastive variants", owner="base_story_id"),
        PRODUCERS: RecordFile("line about producers", "lines about producers", aside=True),
    }),
    packing=StoryPacking,
    reading=StoryReading,
    load=load,
    files=_files,
    summary=_summary,
    details=_details,
    makers=_makers,
    documents=_documents,
    document=_document,
    manifest=_manifest,
    split_stage="assign_splits",
    additions=True,
    record=StoryRecord,
    hidden=HiddenTest(_hidden_document, _salt, check_hidden, check_hidden_folder),
)  # fmt: skip
