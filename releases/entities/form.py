"""Episodes with entity schedules as releases: what they hold beyond what all flat releases do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...engine.manifest import SourceEntry, creation_time
from ...errors import InputError, UserError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.entities import ALL, LISTS, TYPES, EntityEpisode, EpisodeRecord, type_of_label
from ...schemas.paths import SOURCE_MANIFEST, STATISTICS, parquet_path
from ...schemas.text import quoted, tallied, tallies
from ...schemas.values import Issue
from ...validators.entities.measures import fixed
from ...validators.entities.view import BLOCKING, CONTRADICTIONS, EpisodeView, view_of
from ...validators.report import ValidationReport
from ..diff.form import DiffForm, RecordFile
from ..form import Facts, FlatRecords, ReleaseForm
from ..loading import LoadedRelease, load_records
from ..parquet import Declared, PictureCell, PlacedRow, Table, read_lines, row_of, table
from ..target import require_free, require_outside, staged, write_imported_run
from .requests import FOLDER as PICTURE_FOLDER
from .requests import PICTURES, check_pictures, read_pictures, write_pictures
from .tree import (
    ENTITIES,
    EPISODES,
    FOLDER,
    IMPORTED_ENTITIES,
    SCRIPTS,
    SPLITS,
    EntitySet,
    read_entity_set,
    statistics_of_set,
    write_tree,
)

# -- The flat tables of released episodes: episodes, scenes, shots, entities, and slots of the schedule

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training. Tiers are a column."""

Part = tuple[Table, dict[str, Any]]


_OF_EPISODE = {"episode_id": ("episodes", "episode_id")}
_EPISODE: Declared = ("episode_id", "text", "The episode.")
_SHOT: Declared = ("shot", "integer", "Number of the shot in the episode, from 1.")

EPISODES_TABLE = table(
    "episodes", "One row per episode.", "episode_id",
    ("episode_id", "text", "Id of the episode, which names its files."),
    ("tier", "text", "Its tier in the split file that names most episodes; null in none."),
    ("splits", "texts", "Every split file and tier that names it, as file:tier."),
    ("story_overview", "text", "The story in two to four sentences.", "script.story_overview"),
    ("scenes", "integer", "How many scenes it has."),
    ("shots", "integer", "How many shots."),
    ("characters", "integer", "Labels of characters in its registry."),
    ("locations", "integer", "Labels of locations in its registry."),
    ("objects", "integer", "Labels of objects in its registry."),
    ("slots", "integer", "Slots of its schedule."),
    ("source", "text", "What it was made from, by name; null where nobody said."),
    ("window_shot_ids", "texts", "Ids of the source's shots, one per shot."),
)  # fmt: skip
SCENES_TABLE = table(
    "scenes", "One row per scene.", "episode_id scene",
    _EPISODE,
    ("scene", "integer", "Number of the scene, from 1."),
    ("first_shot", "integer", "Number of its first shot in the episode."),
    ("shots", "integer", "How many shots it has."),
    ("cuts", "integer", "How many of them are cuts."),
    references=_OF_EPISODE,
)  # fmt: skip
SHOTS_TABLE = table(
    "shots", "One row per shot.", "episode_id shot",
    _EPISODE,
    _SHOT,
    ("key", "text", "The shot as the schedule names it: scene:shot, both from 1.", "shown.key"),
    ("scene", "integer", "Number of its scene.", "shown.scene"),
    ("cut", "boolean", "Whether it begins anew; false where it continues the one before.", "shown.cut"),
    ("action_description", "text", "What happens in it.", "shown.action"),
    ("video_prompt", "text", "What a generator is given.", "shown.prompt"),
    ("header", "boolean", "Whether the prompt describes entities before the action."),
    ("characters", "texts", "Names of the characters that it shows."),
    ("places", "texts", "Names of the locations that it shows."),
    ("objects", "texts", "Names of the objects that it shows."),
    references=_OF_EPISODE,
)  # fmt: skip
ENTITIES_TABLE = table(
    "entities", "One row per entity of a registry.", "episode_id label",
    _EPISODE,
    ("label", "text", "Its label, such as Object 7."),
    ("type", "text", "character, location or object; null where neither label nor schedule tell."),
    ("name", "text", "How texts and the schedule name it.", "entry.name"),
    ("description", "text", "What it looks like.", "entry.description"),
    ("appearances", "integer", "Shots that schedule its name."),
    ("first_shot", "integer", "The first of them; null for one that is never scheduled."),
    ("max_gap", "integer", "Widest difference of numbers of consecutive ones; null below two."),
    references=_OF_EPISODE,
)  # fmt: skip
SLOTS_TABLE = table(
    "slots", "One row per entity that a shot shows.", "episode_id shot list place",
    _EPISODE,
    _SHOT,
    ("list", "text", "The list of the schedule: characters, places or objects."),
    ("place", "integer", "Its place in the list, from 1."),
    ("name", "text", "Name of the entity."),
    ("label", "text", "Its label in the registry; null where the registry has no such name."),
    ("gap", "integer", "Difference to the number of the shot before that shows it; null at first."),
    ("described", "boolean", "Whether the prompt of the shot describes it under its name."),
    references=_OF_EPISODE,
)  # fmt: skip
PICTURES_TABLE = table(
    "pictures", "One row per keyframe of a shot, and per crop of a person, as far as they may be given away.",
    "episode_id file",
    _EPISODE,
    ("kind", "text", "keyframe or crop."),
    ("shot", "integer", "Number of the shot in the episode, from 1; null outside it."),
    ("label", "text", "Label of the entity that a crop shows."),
    ("number", "integer", "Its place among those of its shot or entity, from 1."),
    ("file", "text", "Path of the picture in the release."),
    ("video", "text", "The video that it is from, by name."),
    ("rights", "text", "On what ground it may be used."),
    ("image", "picture", "The picture, byte for byte."),
    references=_OF_EPISODE, optional=True,
)  # fmt: skip
THUMBNAILS_TABLE = table(
    "thumbnails", "One row per episode with pictures: a small one of its first shot, and the video by name.",
    "episode_id",
    _EPISODE,
    ("file", "text", "Path of the picture in the release."),
    ("video", "text", "The video that the episode is from, by name; the release does not hold it."),
    ("rights", "text", "On what ground the picture may be used."),
    ("image", "picture", "The picture, byte for byte."),
    references=_OF_EPISODE, optional=True,
)  # fmt: skip
TABLES = (
    EPISODES_TABLE,
    SCENES_TABLE,
    SHOTS_TABLE,
    ENTITIES_TABLE,
    SLOTS_TABLE,
    PICTURES_TABLE,
    THUMBNAILS_TABLE,
)


def tiers_of(records: Sequence[Json]) -> dict[str, str | None]:
    """Return id of an episode -> its tier in the split file that names most of them.

    Of split files that name equally many, and of tiers of one file, the first by name counts; ``all`` aside.
    """
    named = Counter(name for record in records for name in record["tiers"])
    chosen = min(named, key=lambda name: (-named[name], name), default=None)
    found: dict[str, str | None] = {}
    for record in records:
        tiers = [tier for tier in record["tiers"].get(chosen, ()) if tier != ALL]
        found[record["episode_id"]] = min(tiers, default=None)
    return found


def set_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the lines of ``episodes.jsonl`` ask for, with its table and split."""
    tiers = tiers_of(list(read_lines(folder / EPISODES)))
    for record in read_lines(folder / EPISODES):
        for made, row in episode_rows(record, tiers[record["episode_id"]]):
            yield SPLIT, made, row
    if (folder / PICTURES).is_file():
        for line in read_lines(folder / PICTURES):
            made = THUMBNAILS_TABLE if line["kind"] == "thumbnail" else PICTURES_TABLE
            picture: PictureCell = {"path": line["file"], "sha256": line["sha256"]}
            yield SPLIT, made, row_of(made, {**line, "image": picture})


def episode_rows(record: Json, tier: str | None) -> Iterator[Part]:
    """Yield the rows that a line of ``episodes.jsonl`` adds to the tables, with their table."""
    script = EntityEpisode.model_validate(record["entry"])
    view = view_of(str(record["episode_id"]), script)
    for made, part in _parts(view, record, tier):
        yield made, row_of(made, {"episode_id": view.episode_id, **part})


def _parts(view: EpisodeView, record: Json, tier: str | None) -> Iterator[Part]:
    """Yield what makes each row of an episode."""
    labels = [type_of_label(label) for label in view.script.entity_descriptions]
    episode = {
        "tier": tier,
        "splits": [
            f"{name}:{one}" for name, tiers in sorted(record["tiers"].items()) for one in sorted(tiers)
        ],
        "script": view.script,
        "scenes": len(view.script.scenes),
        "shots": len(view.shots),
        **{name: labels.count(kind) for name, kind in zip(_COUNTS, TYPES, strict=True)},
        "slots": sum(len(shot.scheduled.names(kind)) for shot in view.shots for kind in TYPES),
        "source": record["source"],
        "window_shot_ids": list(view.script.window_shot_ids or ()),
    }
    yield EPISODES_TABLE, episode
    first = 1
    for place, scene in enumerate(view.script.scenes, 1):
        shots = max(len(scene.action_descriptions), len(scene.video_prompts))
        number = place if scene.scene_num is None else scene.scene_num
        yield SCENES_TABLE, {"scene": number, "first_shot": first, "shots": shots, "cuts": sum(scene.cut)}
        first += shots
    for number, shot in enumerate(view.shots, 1):
        names = {name: list(shot.scheduled.names(kind)) for name, kind in LISTS.items()}
        yield (
            SHOTS_TABLE,
            {"shot": number, "shown": shot, "header": bool(view.headers[number - 1].lines), **names},
        )
    yield from _entities(view)
    yield from _slots(view)


_COUNTS = ("characters", "locations", "objects")


def _entities(view: EpisodeView) -> Iterator[Part]:
    shown: dict[str, list[int]] = {}
    for (_, name), numbers in view.appearances.items():
        shown[name] = sorted({*shown.get(name, ()), *numbers})
    for label, entry in sorted(view.script.entity_descriptions.items(), key=lambda one: _rank(one[0])):
        name = entry.name or ""
        shots = shown.get(name, [])
        steps = [after - before for before, after in pairwise(shots)]
        kind = type_of_label(label) or view.type_of(name)
        counts = {"first_shot": min(shots, default=None), "max_gap": max(steps, default=None)}
        yield (
            ENTITIES_TABLE,
            {"label": label, "type": kind, "entry": entry, "appearances": len(shots), **counts},
        )


def _slots(view: EpisodeView) -> Iterator[Part]:
    numbers = {key: dict(zip(shots[1:], shots, strict=False)) for key, shots in view.appearances.items()}
    for number, shot in enumerate(view.shots, 1):
        described = {line.name for line in view.headers[number - 1].lines if not line.decorated}
        for name, kind in LISTS.items():
            for place, entity in enumerate(shot.scheduled.names(kind), 1):
                before = numbers[kind, entity].get(number)
                slot = {"shot": number, "list": name, "place": place, "name": entity}
                label = next(iter(view.labels.get(entity, ())), None)
                gap = None if before is None else number - before
                yield SLOTS_TABLE, {**slot, "label": label, "gap": gap, "described": entity in described}


def _rank(label: str) -> tuple[int, int, str]:
    """Sort labels by type and number; labels of another form come last."""
    kind = type_of_label(label)
    return (
        (len(TYPES), 0, label) if kind is None else (TYPES.index(kind), int(label.partition(" ")[2]), label)
    )


# -- Episodes as releases

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
        count, kinds = tallied(sum(findings.values()), "findings"), tallied(len(findings), "kinds")
        yield f"statistics.json and the card have {count} of {kinds}"


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


# -- Bringing sets of episodes in and out: the official tree, and a folder like that of a finished run

ROLE = "episodes"
GIVEN = "given"
"""Who made what was imported."""


@dataclass(frozen=True)
class ImportedEpisodes:
    """A set of episodes that was brought in."""

    out: Path  # the new folder
    entity_set: EntitySet  # what was written
    report: ValidationReport  # everything that is wrong with the source

    @property
    def lost(self) -> tuple[Issue, ...]:
        """The findings because of which a file was not taken, or an episode cannot be released."""
        return tuple(issue for issue in self.report.issues if issue.code in BLOCKING)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON: counts by code, and the findings that cost something."""
        return {
            "out": str(self.out),
            "sha256": self.entity_set.sha256,
            "written": self.entity_set.counts(),
            "counts": dict(self.report.counts),
            "lost": [issue.as_dict() for issue in self.lost],
        }

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, without the findings."""
        yield self.report.summary()
        counts = tallies(self.entity_set.counts())
        yield f"{self.out}: {counts}"
        yield f"next: fabula validate {quoted(self.out)}"


def import_episodes(source: Path, out: Path, created_at: str | None = None) -> ImportedEpisodes:
    """Copy a set of episodes into a new folder that is used like that of a finished run.

    Files stay the same byte for byte. A file that cannot be used stays out; the report says so.

    ``source``: a folder with ``scripts`` and ``splits``, the one above it, or a folder of scripts.
    """
    time = creation_time(created_at)
    require_free(out)
    entity_set, report = read_entity_set(source)
    require_outside(out, source)
    if not entity_set.episodes:
        first = report.issues[0]
        raise InputError.one(
            f"{source} {first.where}",
            what=f"no episode can be used: {first.message}",
            fix=first.cure,
        )
    with staged(out.absolute()) as (draft,):
        write_tree(draft / FOLDER, entity_set)
        write_atomic(draft / EPISODES, jsonl_lines(_records(source, entity_set)))
        path = _printable(str(source.absolute()))
        entry = SourceEntry(role=ROLE, name=_name(source), path=path, sha256=entity_set.sha256)
        write_imported_run(draft, IMPORTED_ENTITIES, entry, EPISODES, time)
    return ImportedEpisodes(out, entity_set, report)


def export_episodes(entity_set: EntitySet, out: Path) -> dict[str, int]:
    """Write the official tree of a set into a new folder: ``scripts`` and ``splits``, byte for byte."""
    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_tree(draft, entity_set)
    return entity_set.counts()


def _records(source: Path, entity_set: EntitySet) -> Iterator[dict[str, Any]]:
    tiers = tiers_by_split(entity_set)
    for episode in entity_set.episodes:
        yield EpisodeRecord(
            episode_id=episode.episode_id,
            tiers=tiers[episode.episode_id],
            entry=episode.script,
            source=_name(source),
            producers={"$": GIVEN},
        ).as_json()


def _name(source: Path) -> str:
    return _printable(source.absolute().name)


def _printable(path: str) -> str:
    """Return a path, which need not be valid UTF-8, as text that can be stored."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
