"""Shot scripts with reference images as releases: what they hold beyond what all flat releases do.

A reference image is part of a release only where its rights name a licence that the Hub knows by its SPDX id,
or the public domain. The others stand in ``references_left_out.jsonl``, with source, rights and hash.
"""

import base64
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ...errors import InputError, UserError
from ...media.images import encode, open_picture
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, sha256_bytes, sha256_file, write_atomic
from ...schemas.paths import SOURCE_MANIFEST, STATISTICS
from ...schemas.plain_files import parse_json, read_plain
from ...schemas.shots import ReferenceImage, ShotRecord, TwoLists
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..diff.form import DiffForm, FileSection, RecordFile, Side, Step
from ..form import Facts, FlatRecords, ReleaseForm
from ..loading import LoadedRelease, load_records
from ..options import may_be_released
from ..parquet import Declared, PictureCell, PlacedRow, Table, has_pictures, read_lines, row_of, table
from .imports import (
    DOCUMENT,
    is_subset_document,
    read_story_facts,
    read_subset_document,
    statistics_of_shots,
    with_provenance,
    write_facts,
)
from .tree import (
    FOLDER,
    IMAGES,
    IMPORTED_SHOTS,
    REFERENCES,
    SCRIPT,
    SHOT_SCRIPTS,
    SHOTS,
    STORIES,
    ShotSet,
    read_shot_set,
)

# -- The flat tables of released shot scripts: stories, shots, characters and reference images

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training."""
_OF_STORY = {"story_id": ("stories", "story_id")}
_STORY: Declared = ("story_id", "text", "The story, by the name of its folder.")

STORIES_TABLE = table(
    "stories", "One row per story.", "story_id",
    ("story_id", "text", "Name of the story's folder."),
    ("source_id", "text", "Id of the story that the script was made from.", "record.source_id"),
    ("story_type", "text", "Kind of the story, in English.", "script.story_type.en"),
    ("style", "text", "Visual style of the references (Table S1).", "facts.style"),
    ("culture", "text", "Cultural origin of the story.", "facts.culture"),
    ("realistic", "boolean", "Whether the references are photographs.", "facts.realistic"),
    ("shots", "integer", "How many shots it has."),
    ("characters", "integer", "How many characters."),
    ("references", "integer", "How many reference images are in the release."),
)  # fmt: skip
SHOTS_TABLE = table(
    "shots", "One row per shot.", "story_id shot",
    _STORY,
    ("shot", "integer", "Number of the shot, from 1.", "shown.index"),
    ("plot_en", "text", "The part of the story that the shot tells, in English.", "shown.plot.en"),
    ("plot_ch", "text", "The part of the story that the shot tells, in Chinese.", "shown.plot.ch"),
    ("setting_en", "text", "The place, without any character, in English.", "shown.setting.en"),
    ("setting_ch", "text", "The place, without any character, in Chinese.", "shown.setting.ch"),
    (
        "perspective_en", "text", "Shot distance, camera angle, camera type, in English.",
        "shown.perspective.en",
    ),
    (
        "perspective_ch", "text", "Shot distance, camera angle, camera type, in Chinese.",
        "shown.perspective.ch",
    ),
    ("static_en", "text", "What is seen, as a still, in English.", "shown.static.en"),
    ("static_ch", "text", "What is seen, as a still, in Chinese.", "shown.static.ch"),
    ("characters", "texts", "Who is on stage, by key.", "shown.characters"),
    ("characters_ch", "texts", "Who is on stage, in Chinese; empty where nobody wrote it."),
    references=_OF_STORY,
)  # fmt: skip
CHARACTERS_TABLE = table(
    "characters", "One row per character of a story.", "story_id character",
    _STORY,
    ("character", "text", "Key of the character."),
    ("tag", "text", "realistic_human, unrealistic_human or non_human.", "sheet.tag"),
    ("name_en", "text", "Name in English.", "sheet.name_en"),
    ("name_ch", "text", "Name in Chinese.", "sheet.name_ch"),
    ("prompt_en", "text", "Appearance and clothing, in English.", "sheet.prompt_en"),
    ("prompt_ch", "text", "Appearance and clothing, in Chinese.", "sheet.prompt_ch"),
    ("appearances", "integer", "Shots in which it is on stage."),
    ("gender", "text", "male, female or other; null where nobody said.", "known.gender"),
    ("ethnicity", "text", "Only where the author of the set gives it.", "known.ethnicity"),
    references=_OF_STORY,
)  # fmt: skip
REFERENCES_TABLE = table(
    "references", "One row per reference image of the release.", "story_id file",
    _STORY,
    ("character", "text", "Key of the character."),
    ("file", "text", "Path of the image in the release."),
    ("sha256", "text", "Hash of the file."),
    ("width", "integer", "Pixels."),
    ("height", "integer", "Pixels."),
    ("source", "text", "Where the image comes from."),
    ("rights", "text", "On what ground it may be used."),
    references=_OF_STORY,
)  # fmt: skip
REFERENCE_IMAGES_TABLE = table(
    "reference_images", "One row per reference image of the release, with the image itself.", "story_id file",
    _STORY,
    ("character", "text", "Key of the character."),
    ("file", "text", "Path of the image in the release."),
    ("image", "picture", "The image, byte for byte."),
    references=_OF_STORY, optional=True,
)  # fmt: skip
TABLES = (STORIES_TABLE, SHOTS_TABLE, CHARACTERS_TABLE, REFERENCES_TABLE, REFERENCE_IMAGES_TABLE)


def script_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the scripts and reference images of a folder ask for, with its table and split."""
    images = list(read_lines(folder / FOLDER / REFERENCES))
    counts = Counter(image["story_id"] for image in images)
    for document in read_lines(folder / SHOT_SCRIPTS):
        for made, part in _parts(ShotRecord.model_validate(document), counts[document["story_id"]]):
            yield SPLIT, made, row_of(made, {"story_id": document["story_id"], **part})
    tables = [
        REFERENCES_TABLE,
        *([REFERENCE_IMAGES_TABLE] if has_pictures(folder, REFERENCE_IMAGES_TABLE, SPLIT) else []),
    ]
    for made in tables:
        for image in images:
            file = f"{FOLDER}/{image['story_id']}/{image['file']}"
            picture: PictureCell = {"path": file, "sha256": image["sha256"]}
            yield SPLIT, made, row_of(made, {**image, "file": file, "image": picture})


def _parts(record: ShotRecord, references: int) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield what makes each row of one record, of whose reference images a number is in the release."""
    script, facts = record.parsed(), record.facts
    counts = {
        "shots": len(script.shots),
        "characters": len(script.characters),
        "references": references,
    }
    yield STORIES_TABLE, {"record": record, "script": script, "facts": facts, **counts}
    for shot in script.shots:
        yield SHOTS_TABLE, {"shown": shot, "characters_ch": _chinese(shot.onstage)}
    shown = script.appearances()
    for name, sheet in script.characters.items():
        known = facts.characters.get(name)
        yield (
            CHARACTERS_TABLE,
            {"character": name, "sheet": sheet, "known": known, "appearances": shown[name]},
        )


def _chinese(onstage: TwoLists | None) -> list[str]:
    return list(onstage.ch) if onstage is not None and isinstance(onstage.ch, tuple) else []


# -- Which reference images of characters differ between two releases of shot scripts, by their content

Kind = Literal["added", "removed", "changed"]
Owner = tuple[str, str]
"""Story id and key of the character."""
_SIDE, _QUALITY = 112, 82
_MOST = 200
"""Most rows with pictures on a page; JSON has all changes."""


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A reference image that only one release has, or that has other content."""

    story_id: str  # the story
    character: str  # key of the character
    file: str  # path below the story's folder
    kind: Kind  # ``added``, ``removed``, or ``changed`` where another image stands in its place
    old: str | None  # SHA-256 of the old content; None where there was none
    new: str | None  # SHA-256 of the new content; None where there is none any more

    @property
    def path(self) -> str:
        """Path in a release."""
        return f"{FOLDER}/{self.story_id}/{self.file}"


def is_image(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 4 and parts[0] == FOLDER and parts[2] == IMAGES


def image_changes(old: Side, new: Side) -> tuple[ImageChange, ...]:
    """Return which reference images differ, by story, character and file.

    An image that the character has on both sides does not differ, whatever its file is called.
    """
    before, after = _images(old), _images(new)
    owners = sorted(before.keys() | after.keys())
    return tuple(change for owner in owners for change in _changes(owner, before[owner], after[owner]))


def image_reasons(changes: Sequence[ImageChange], old: Side, new: Side) -> Iterator[tuple[Step, str]]:
    """Yield the step that images ask for: generators are given them, and likeness is measured by them.

    Those of stories that came or went ask for nothing of their own.
    """
    there = old.records.get(SHOT_SCRIPTS, {}).keys() & new.records.get(SHOT_SCRIPTS, {}).keys()
    for kind in ("removed", "changed", "added"):
        count = sum(change.kind == kind and change.story_id in there for change in changes)
        if count:
            yield Step.MAJOR, f"{count} reference image{'s' if count > 1 else ''} {kind}"


def by_character(changes: Sequence[ImageChange]) -> list[list[ImageChange]]:
    """Return the changes of each character, in their order."""
    groups: dict[Owner, list[ImageChange]] = {}
    for change in changes:
        groups.setdefault((change.story_id, change.character), []).append(change)
    return list(groups.values())


def images_text(changes: Sequence[ImageChange]) -> str:
    """Return what became of the images of one character."""
    parts = []
    for kind in ("added", "removed", "changed"):
        names = [
            change.file.rpartition("/")[2]
            + (f" ({change.old[:8]} -> {change.new[:8]})" if change.old and change.new else "")
            for change in changes
            if change.kind == kind
        ]
        parts += [f"{kind} {', '.join(names)}"] if names else []
    return f"{changes[0].story_id} {changes[0].character}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One image that differs, small, for a page."""

    change: ImageChange  # what became of it
    before: str | None  # the old picture as a data address; None where there was none, or it cannot be shown
    after: str | None  # the new one likewise


def picture_rows(changes: Sequence[ImageChange], old: Path, new: Path) -> list[PictureRow]:
    """Return the first changes with their pictures, from the folders of the two releases."""
    return [
        PictureRow(change, _small(old / change.path, change.old), _small(new / change.path, change.new))
        for change in changes[:_MOST]
    ]


def _small(path: Path, sha256: str | None) -> str | None:
    """Return a picture as a data address; None where the file is not the stated one, or no picture."""
    if sha256 is None:
        return None
    try:
        data = read_plain(path)
        if sha256_bytes(data) != sha256:
            return None
        small = encode(open_picture(data), max_side=_SIDE, format="jpeg", quality=_QUALITY)
    except (OSError, UserError):
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(small).decode('ascii')}"


def _changes(owner: Owner, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ImageChange]:
    gone = {file: sha256 for file, sha256 in before.items() if sha256 not in after.values()}
    fresh = {file: sha256 for file, sha256 in after.items() if sha256 not in before.values()}
    for file in sorted(gone.keys() | fresh.keys()):
        kind: Kind = "changed" if file in gone and file in fresh else "removed" if file in gone else "added"
        yield ImageChange(*owner, file, kind, gone.get(file), fresh.get(file))


def _images(side: Side) -> defaultdict[Owner, dict[str, str]]:
    """Return file -> SHA-256 of the reference images of each character.

    A draft has no list of files yet; what packing wrote beside the scripts says it.
    """
    images: defaultdict[Owner, dict[str, str]] = defaultdict(dict)
    if side.files:
        for path in filter(is_image, side.files):
            _, story_id, file = path.split("/", 2)
            owner = story_id, file.split("/", 1)[1].rpartition("/")[0]
            images[owner][file] = str(side.files[path].get("sha256"))
        return images
    lines = side.folder / FOLDER / REFERENCES
    for row in map(parse_json, read_plain(lines).splitlines() if lines.is_file() else ()):
        images[row["story_id"], row["character"]][row["file"]] = row["sha256"]
    return images


REFERENCE_IMAGES = FileSection(
    "images",
    "characters with other reference images",
    image_changes,
    images_text,
    shown=by_character,
    reasons=image_reasons,
    owns=is_image,
    row=lambda said: ImageChange(**said, old=None, new=None),
    pictures=picture_rows,
)


# -- Shot scripts with reference images as releases

LEFT_OUT = "references_left_out.jsonl"
"""The reference images of the run that may not be given away, without the images."""
_CURE = "pack the run again"
_FILES = (
    (f"{FOLDER}/NN/{SCRIPT}", "the scripts in the official ViStoryBench form"),
    (f"{FOLDER}/NN/image/CHARACTER/", "the reference images that may be given away, byte for byte"),
    (f"{FOLDER}/{REFERENCES}", "hash, size, source and rights of each of them"),
    (f"{FOLDER}/{STORIES}", "style, culture and genders of each story"),
    (SHOT_SCRIPTS, "the scripts with their history: who made what"),
    (LEFT_OUT, "reference images that are not here, with source, rights and hash; only where there are any"),
    (DOCUMENT, "the ids of a subset, and how near its distributions are to the whole's; only of a subset"),
    ("data/TABLE/test.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (SOURCE_MANIFEST, "what the scripts were made from"),
)


@dataclass(frozen=True)
class ShotRelease(LoadedRelease[ShotRecord]):
    """Released shot scripts in memory."""

    id_field = "story_id"
    shot_set: ShotSet = field(repr=False)  # scripts and reference images, as the official files have them


def load_shot_release(path: str | Path) -> ShotRelease:
    folder = Path(path)
    loaded = load_records(folder, SHOTS, SHOT_SCRIPTS, ShotRelease, ShotRecord)
    return ShotRelease(folder, *loaded, read_shot_set(folder)[0])


def _statistics(folder: Path, records: Sequence[ShotRecord]) -> dict[str, Json]:
    shot_set, report = read_shot_set(folder)
    left_out = folder / LEFT_OUT
    makers = Counter(f"{one['path']}: {one['producer']}" for record in records for one in record.producers)
    return {
        "totals": shot_set.counts(),
        "references_left_out": read_plain(left_out).count(b"\n") if left_out.is_file() else 0,
        "shots": statistics_of_shots(folder),
        "producers": {name: makers[name] for name in sorted(makers)},
        "findings": dict(report.counts),
    }


def _write_official(run: Path, draft: Path, records: Sequence[ShotRecord]) -> None:
    """Copy scripts, and the reference images that may be given away, byte for byte."""
    shot_set, report = read_shot_set(run)
    left = {row["story_id"] for row in read_lines(run / SHOT_SCRIPTS)} - {one.story_id for one in records}
    shot_set = replace(shot_set, stories=tuple(one for one in shot_set.stories if one.story_id not in left))
    problems = [
        UserError(
            f"{issue.where} {issue.path}", what=f"this cannot be released: [{issue.code}] {issue.message}",
            fix=issue.cure,
        )
        for issue in report.issues
        if issue.level == "error" and issue.where.partition("/")[0] not in left
    ]  # fmt: skip
    problems += [
        UserError(
            where, what=found,
            fix="correct the sources and build again; or export the tree, correct it there and import it",
        )
        for where, found in _differences(shot_set, records)
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    images = with_provenance(shot_set)
    kept = [image for image in images if may_be_released(image.rights)]
    gone = [image for image in images if image not in kept]
    for story in shot_set.stories:
        place = draft / FOLDER / story.story_id
        place.mkdir(parents=True)
        shutil.copyfile(shot_set.folder / story.story_id / SCRIPT, place / SCRIPT)
    for image in kept:
        target = draft / FOLDER / image.story_id / image.file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shot_set.path(image), target)
    write_facts(draft / FOLDER, (record.facts for record in records), kept)
    if (document := read_subset_document(run, [record.story_id for record in records])) is not None:
        write_atomic(draft / DOCUMENT, [document])
    if gone:
        ordered = sorted(gone, key=lambda one: (one.story_id, one.file))
        write_atomic(draft / LEFT_OUT, jsonl_lines(image.as_json() for image in ordered))


def _official(folder: Path, records: Sequence[ShotRecord]) -> Iterator[str]:
    shot_set, _ = read_shot_set(folder)
    yield from (f"{FOLDER}/{record.story_id}/{SCRIPT}" for record in records)
    yield from (f"{FOLDER}/{one.story_id}/{one.file}" for one in with_provenance(shot_set))
    yield f"{FOLDER}/{REFERENCES}"
    if any(record.facts for record in records):
        yield f"{FOLDER}/{STORIES}"
    if (folder / LEFT_OUT).is_file():
        yield LEFT_OUT
    if read_subset_document(folder, [record.story_id for record in records]) is not None:
        yield DOCUMENT


def _check_record(record: ShotRecord, where: str) -> Iterator[Issue]:
    try:
        record.parsed()
    except ValueError as error:
        yield Issue(where, "$.script", "script", str(error), _CURE)
    if record.facts.story_id != record.story_id:
        yield Issue(where, "$.facts.story_id", "script", f"expected {record.story_id}", _CURE)


def _check_official(folder: Path, records: Sequence[ShotRecord]) -> Iterator[Issue]:
    shot_set, report = read_shot_set(folder)
    yield from (issue for issue in report.issues if issue.level == "error")
    for where, found in _differences(shot_set, records):
        yield Issue(where, "$", "official", found, _CURE)
    facts = read_story_facts(shot_set)
    for record in records:
        if facts.get(record.story_id) != record.facts:
            yield Issue(
                f"{FOLDER}/{STORIES}",
                f"$ {record.story_id}",
                "official",
                "the facts are not those of the records",
                _CURE,
            )
    listed = {(one.story_id, one.file): one for one in with_provenance(shot_set)}
    for image in listed.values():
        where = f"{FOLDER}/{image.story_id}/{image.file}"
        if not may_be_released(image.rights):
            message = f"rights {image.rights!r}: no licence by its SPDX id, and not the public domain"
            yield Issue(where, "$", "rights", message, "take the image out, and pack again")
    yield from _check_beside(folder, shot_set, records)
    stated = folder / FOLDER / REFERENCES
    ordered = sorted(listed.values(), key=lambda image: (image.story_id, image.file))
    if read_plain(stated) != b"".join(jsonl_lines(image.as_json() for image in ordered)):
        message = "not one line for each image, sorted, as packing writes them"
        yield Issue(f"{FOLDER}/{REFERENCES}", "$", "official", message, _CURE)
    for line in read_plain(stated).splitlines():
        image = ReferenceImage.model_validate_json(line)
        path = folder / FOLDER / image.story_id / image.file
        if (image.story_id, image.file) not in listed or sha256_file(path) != image.sha256:
            where = f"{FOLDER}/{image.story_id}/{image.file}"
            yield Issue(where, "$", "official", f"not the image of {REFERENCES}", _CURE)


def _check_beside(folder: Path, shot_set: ShotSet, records: Sequence[ShotRecord]) -> Iterator[Issue]:
    """Yield what is wrong with the files that not every set has: the images left out, and the subset."""
    path = folder / LEFT_OUT
    if path.is_file():
        images = [ReferenceImage.model_validate_json(line) for line in read_plain(path).splitlines()]
        images.sort(key=lambda one: (one.story_id, one.file))
        if not images or b"".join(jsonl_lines(one.as_json() for one in images)) != read_plain(path):
            yield Issue(LEFT_OUT, "$", "official", "not written as packing writes it", _CURE)
        for image in images:
            if may_be_released(image.rights) or image.story_id not in shot_set.by_id:
                message = f"{image.story_id}/{image.file}: no image that packing would leave out"
                yield Issue(LEFT_OUT, "$", "official", message, _CURE)
    document = read_subset_document(folder, [record.story_id for record in records])
    if document is not None:
        stated = parse_json(document)
        if document != pretty_bytes(stated) or not is_subset_document(stated, shot_set):
            yield Issue(DOCUMENT, "$", "official", "it is not what the stories of the subset give", _CURE)


def _differences(shot_set: ShotSet, records: Sequence[ShotRecord]) -> Iterator[tuple[str, str]]:
    """Yield where the official files are not what the records say, and how."""
    by_id = {record.story_id: record for record in records}
    for name in sorted(by_id.keys() ^ shot_set.by_id.keys()):
        found = (
            f"{SHOT_SCRIPTS} does not have this story"
            if name in shot_set.by_id
            else "the script is missing or unusable"
        )
        yield f"{FOLDER}/{name}/{SCRIPT}", found
    for name in sorted(by_id.keys() & shot_set.by_id.keys()):
        script, record = shot_set.by_id[name].script, by_id[name]
        if script.as_json() != record.script or tuple(script.characters) != record.order:
            yield f"{FOLDER}/{name}/{SCRIPT}", f"the script is not the one in {SHOT_SCRIPTS}"


def _summary(facts: Facts) -> str:
    totals = facts.totals
    return (
        f"{totals['stories']} stories, each cut into shots, {totals['shots']} in all, that describe place, "
        f"framing, characters and action of a still, with {totals['characters']} characters and "
        f"{totals['references']} reference images, for testing story visualization. No person has reviewed "
        "them as a whole."
    )


def _details(facts: Facts) -> dict[str, Any]:
    statistics = facts.statistics
    return {
        "references_left_out": statistics["references_left_out"],
        "one_language": statistics["findings"].get("one-language", 0),
        "findings": statistics["findings"],
        "distributions": [
            {"name": name, "rows": [(value, row["count"]) for value, row in table["values"].items()]}
            for name, table in statistics["shots"].get("distributions", {}).items()
            if isinstance(table, Mapping) and "values" in table
        ],
    }


def _notes(facts: Facts) -> Iterator[str]:
    statistics = facts.statistics
    if statistics["references_left_out"]:
        count = statistics["references_left_out"]
        yield (
            f"{count} reference images stay out, as their rights name no licence by its SPDX id and not the "
            f"public domain; {LEFT_OUT} names them"
        )
    if statistics["findings"]:
        count = sum(statistics["findings"].values())
        kinds = ", ".join(sorted(statistics["findings"]))
        yield f"statistics.json has {tallied(count, 'findings')}: {kinds}"


RECORDS = FlatRecords(
    model=ShotRecord,
    statistics=_statistics,
    write_official=_write_official,
    official=_official,
    check_record=_check_record,
    check_official=_check_official,
    notes=_notes,
    items="stories",
    files=_FILES,
    item="source_id",
    texts="scripts",
)
FORM = ReleaseForm(
    kind=SHOTS,
    runs={SHOTS: SHOT_SCRIPTS, IMPORTED_SHOTS: SHOT_SCRIPTS},
    tables=TABLES,
    record_ids={SHOT_SCRIPTS: "story_id"},
    described=(SHOT_SCRIPTS, STATISTICS, SOURCE_MANIFEST),
    rows=script_rows,
    name="fabula-shot-scripts",
    title="Fabula shot scripts",
    what="a set of shot scripts",
    unit="stories",
    tasks=("text-to-image", "image-text-to-image"),
    tags=(
        "story-visualization", "storyboard", "character-consistency", "benchmark", "evaluation", "croissant"
    ),
    keywords=("story visualization", "storyboard", "character consistency", "benchmark"),
    rights_scope=(
        "This manifest documents what the scripts were made from, so that they can be traced. It gives no "
        "right to any story, and none to images beyond what the line of each says."
    ),
    templates=("shots/card.j2", "shots/license.j2", "shots/responsible_ai.j2"),
    changes=DiffForm(
        {SHOT_SCRIPTS: RecordFile("script", "scripts", frozenset(("source_id", "producers")))},
        (REFERENCE_IMAGES,),
    ),
    load=load_shot_release,
    summary=_summary,
    details=_details,
    **RECORDS.parts(),
)  # fmt: skip
