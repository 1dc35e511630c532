"""Episodes with entity schedules as releases: what they hold beyond what all flat releases do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.entities import EpisodeRecord
from ...schemas.layout import SOURCE_MANIFEST, STATISTICS, parquet_path
from ...schemas.values import Issue
from ...validators.entities.measures import fixed
from ...validators.entities.view import BLOCKING, CONTRADICTIONS
from ..diff.form import DiffForm, RecordFile
from ..flat_records import FlatRecords
from ..form import Facts, ReleaseForm
from ..loading import LoadedRelease, load_records
from .pictures import FOLDER as PICTURE_FOLDER
from .pictures import PICTURES, check_pictures, read_pictures, write_pictures
from .tables import SPLIT, TABLES, set_rows
from .tree import (
    ENTITIES,
    EPISODES,
    IMPORTED_ENTITIES,
    SCRIPTS,
    SPLITS,
    EntitySet,
    read_entity_set,
    statistics_of_set,
    write_tree,
)

_CURE = "pack the run again"
_FILES = (
    (f"{SCRIPTS}/EPISODE.json", "the episodes in the official EntityBench form"),
    (f"{SPLITS}/NAME.json", "the splits in the official form: tier -> episodes"),
    (EPISODES, "the episodes with their history: who made what, and what checks found"),
    (
        f"{PICTURE_FOLDER}/EPISODE/",
        "keyframes, crops of people and a thumbnail; only of videos under a licence",
    ),
    (PICTURES, "hash, size, shot or entity, video and rights of each of them; only where there are any"),
    ("data/TABLE/test.parquet", "the flat tables"),
    (STATISTICS, "every number of the paper's tables over these episodes, and findings by code"),
    (SOURCE_MANIFEST, "what the episodes were made from"),
)


@dataclass(frozen=True)
class EntityRelease(LoadedRelease[EpisodeRecord]):
    """Released episodes in memory."""

    id_field = "episode_id"
    entity_set: EntitySet = field(repr=False)  # the episodes and splits, as the official files have them

    @cached_property
    def tiers(self) -> dict[str, tuple[str, ...]]:
        """Tier -> ids of its episodes, ``all`` last."""
        return self.entity_set.tiers()


def load_entity_release(path: str | Path) -> EntityRelease:
    """Load released episodes."""
    folder = Path(path)
    loaded = load_records(folder, ENTITIES, EPISODES, EntityRelease, EpisodeRecord)
    return EntityRelease(folder, *loaded, read_entity_set(folder, rules=False)[0])


def _statistics(folder: Path, records: Sequence[EpisodeRecord]) -> dict[str, Json]:
    entity_set, report = read_entity_set(folder)
    makers = Counter(f"{part}: {maker}" for record in records for part, maker in record.producers.items())
    return {
        **statistics_of_set(entity_set).as_json(),
        "producers": {name: makers[name] for name in sorted(makers)},
        "findings": dict(report.counts),
    }


def _write_official(run: Path, draft: Path, records: Sequence[EpisodeRecord]) -> None:
    """Copy the official files of a run, byte for byte."""
    entity_set, report = read_entity_set(run)
    problems = [
        UserError(issue.where, what=f"this episode cannot be released: {issue.message}", fix=issue.cure)
        for issue in report.issues
        if issue.code in BLOCKING | CONTRADICTIONS
    ]
    problems += [
        UserError(where, what=found, fix="finish the run again")
        for where, found in _differences(entity_set, records)
    ]
    if problems:
        raise InputError(problems)
    write_tree(draft, entity_set)


def _official(folder: Path, records: Sequence[EpisodeRecord]) -> Iterator[str]:
    yield from (f"{SCRIPTS}/{record.episode_id}.json" for record in records)
    entity_set, _ = read_entity_set(folder, rules=False)
    yield from (f"{SPLITS}/{split.name}.json" for split in entity_set.splits)
    if pictures := read_pictures(folder):
        yield PICTURES
        yield from (line.file for line in pictures)


def _check_record(record: EpisodeRecord, where: str) -> Iterator[Issue]:
    if record.entry.story_name not in (None, record.episode_id):
        message = f"expected {record.episode_id}, found {record.entry.story_name}"
        yield Issue(where, "$.entry.story_name", "story-name", message, _CURE)


def _check_official(folder: Path, records: Sequence[EpisodeRecord]) -> Iterator[Issue]:
    entity_set, report = read_entity_set(folder)
    for contradiction in report.issues:
        if contradiction.code in CONTRADICTIONS:
            yield replace(contradiction, level="error")
    for where, found in _differences(entity_set, records):
        yield Issue(where, "$", "official", found, _CURE)
    yield from check_pictures(folder, {record.episode_id: record for record in records})


def tiers_by_split(entity_set: EntitySet) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return episode -> split file -> the tiers that name it there, sorted."""
    found: dict[str, dict[str, set[str]]] = {one: {} for one in entity_set.by_id}
    for split in entity_set.splits:
        for tier in split.splits.root:
            for episode in split.splits.ids(tier):
                if episode in found:
                    found[episode].setdefault(split.name, set()).add(tier)
    return {
        episode: {name: tuple(sorted(tiers)) for name, tiers in sorted(named.items())}
        for episode, named in found.items()
    }


def _differences(entity_set: EntitySet, records: Sequence[EpisodeRecord]) -> Iterator[tuple[str, str]]:
    """Yield where the official files are not what the records say, and how."""
    by_id, tiers = {record.episode_id: record for record in records}, tiers_by_split(entity_set)
    for name in sorted(by_id.keys() ^ entity_set.by_id.keys()):
        found = (
            f"{EPISODES} does not have this episode"
            if name in entity_set.by_id
            else "the script is missing or unusable"
        )
        yield f"{SCRIPTS}/{name}.json", found
    for name in sorted(by_id.keys() & entity_set.by_id.keys()):
        if by_id[name].entry.as_json() != entity_set.by_id[name].script.as_json():
            yield f"{SCRIPTS}/{name}.json", f"the script is not the one in {EPISODES}"
        if by_id[name].tiers != tiers[name]:
            yield SPLITS, f"the tiers of {name} are not those in {EPISODES}"


def _summary(facts: Facts) -> str:
    totals = facts.totals
    return (
        f"{totals['episodes']} episodes of {totals['shots']} shots in {totals['scenes']} scenes, each shot "
        "with its action and a schedule of the characters, locations and objects that it shows, for testing "
        "whether generated videos keep entities the same across shots. No person has reviewed them all."
    )


def _details(facts: Facts) -> dict[str, Any]:
    statistics = facts.statistics
    tiers = statistics["tables"]["table_3"]["rows"]
    return {
        "tiers": list(tiers["episodes"]["values"]),
        "rows": [
            {"label": tiers[key]["label"], "values": list(tiers[key]["values"].values())}
            for key in ("episodes", "shots")
        ],
        "gaps": [
            {"label": tiers[key]["label"], "values": [_mean(one) for one in tiers[key]["values"].values()]}
            for key in ("mean_gap_between", "max_gap_between")
        ],
        "findings": statistics["findings"],
        "pictures": facts.rows.get(parquet_path("pictures", SPLIT), 0),
    }


def _mean(value: Json) -> str:
    return "" if value is None else f"{fixed(value['mean'])} ± {fixed(value['sd'])}"


def _notes(facts: Facts) -> Iterator[str]:
    findings = facts.statistics["findings"]
    if findings:
        count = sum(findings.values())
        yield f"{count} findings of {len(findings)} kinds stand in statistics.json and on the card"


RECORDS = FlatRecords(
    model=EpisodeRecord,
    statistics=_statistics,
    write_official=_write_official,
    write_pictures=write_pictures,
    official=_official,
    check_record=_check_record,
    check_official=_check_official,
    notes=_notes,
    items="videos, shots or episodes",
    files=_FILES,
    texts="episodes",
)
FORM = ReleaseForm(
    kind=ENTITIES,
    runs={ENTITIES: EPISODES, IMPORTED_ENTITIES: EPISODES},
    tables=TABLES,
    record_ids={EPISODES: "episode_id"},
    described=(EPISODES, PICTURES, STATISTICS, SOURCE_MANIFEST),
    rows=set_rows,
    name="fabula-entity-episodes",
    title="Fabula entity episodes",
    what="a set of episodes",
    unit="episodes",
    tasks=("text-to-video",),
    tags=("video-generation", "multi-shot", "entity-consistency", "benchmark", "evaluation", "croissant"),
    keywords=("video generation", "multi-shot", "entity consistency", "benchmark"),
    rights_scope=(
        "This manifest documents what the episodes were made from, so that they can be traced. It gives no "
        "right to any video that an episode was made from."
    ),
    templates=("entities/card.j2", "entities/license.j2", "entities/responsible_ai.j2"),
    changes=DiffForm({EPISODES: RecordFile(f"record of {EPISODES}", f"records of {EPISODES}")}),
    load=load_entity_release,
    summary=_summary,
    details=_details,
    of_videos=True,
    **RECORDS.parts(),
)
