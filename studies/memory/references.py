"""What reference an entity needs, put together from script, classification and style: one for each entity.

What a run found out about an entity, as the record that its bank keeps; lines of ``entities.jsonl``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from ...engine.stage import Child, Item, Made, Outcome, Tools, stage
from ...media.images import MediaProblem
from ...media.kept_files import keep_file
from ...media.video import frames_at
from ...schemas.canonical import Json, jsonl_lines, sha256_bytes, sha256_file, write_atomic
from ...schemas.entities import EntityType
from ...schemas.values import Own, is_unset
from .bank import (
    CANDIDATES,
    CUTOUT,
    PANORAMA,
    PORTRAIT,
    BankCheck,
    Cropped,
    DescribedBy,
    EntityRecord,
    HowMade,
    Owner,
)
from .pictures import panorama_of, png_bytes
from .scripts import Classified, MemoryScript, ScriptEntity

Needs: TypeAlias = Literal["portrait", "panorama"]


class Part(Own):
    """An object that somebody's or some place's picture shows."""

    name: str = Field(description="Its name.")
    description: str = Field(description="What it looks like.")


class Source(Own):
    """A video that a reference may be cut from."""

    where: Cropped = Field(description="Whose video of which shot, and where in its frame.")
    path: str = Field(description="Where the video lies.")
    sha256: str = Field(description="Of the video.")
    start: int = Field(ge=0, description="Its first frame of the shot.")


class Reference(Own):
    """What is to be made of one entity."""

    episode_id: str = Field(description="The episode.")
    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(description="Name, as the schedule has it.")
    label: str | None = Field(description="Its key in the registry; null where that has no such name.")
    first_shot: str = Field(description="Key of the first shot that schedules it.")
    description: str = Field(description="What it looks like, as it is introduced.")
    described_by: DescribedBy = Field(description="Where that is from.")
    classified: Classified | None = Field(default=None, description="Of an object: what was decided.")
    parts: tuple[Part, ...] = Field(default=(), description="Objects that its picture shows, too.")
    style: str = Field(description="Style of the episode's pictures.")
    made: HowMade = Field(description="How its reference comes about.")
    needs: Needs | None = Field(description="The picture that it needs; null for none of its own.")
    kept: bool = Field(default=False, description="Whether a person saw to its picture: nobody is asked.")
    source: Source | None = Field(default=None, description="The video that it is cut from.")

    @property
    def owner(self) -> Owner | None:
        """The entity whose picture shows it."""
        return None if self.classified is None else self.classified.owner

    @property
    def key(self) -> str:
        """How it is called in its episode: ``object:the red cup``."""
        return f"{self.type}:{self.name}"

    @property
    def shown(self) -> str:
        """Everything that its picture shows, in words: itself, then its parts."""
        return " ".join([self.description, *(f"{part.name}: {part.description}" for part in self.parts)])


def references_of(
    script: MemoryScript, classified: Sequence[Classified], style: str, outputs: Json, made: HowMade
) -> Iterator[Reference]:
    """Yield what is to be made of each entity of an episode, in order of appearance.

    ``outputs``: what a method made of the episode, as :mod:`.load_scripts` writes it; None without outputs.
    """
    decided = {row.name: row for row in classified}
    objects = {entity.name: entity for entity in script.of("object")}
    parts: dict[tuple[str, str], list[Part]] = {}
    for row in classified:
        if row.owner is not None:
            part = Part(name=row.name, description=objects[row.name].description)
            parts.setdefault((row.owner.type, row.owner.name), []).append(part)
    for entity in script.entities:
        about = decided.get(entity.name) if entity.type == "object" else None
        yield Reference(
            episode_id=script.episode_id, type=entity.type, name=entity.name, label=entity.label,
            first_shot=script.shots[entity.shots[0]].key, description=entity.description,
            described_by=entity.described_by, classified=about,
            parts=tuple(parts.get((entity.type, entity.name), ())), style=style, made=made,
            needs=None if made == "words" else _needs(entity, about),
            source=None if outputs is None else _source(entity, script, outputs),
        )  # fmt: skip


def _needs(entity: ScriptEntity, about: Classified | None) -> Needs | None:
    if entity.type == "location":
        return "panorama"
    return "portrait" if about is None or about.owner is None else None


def _source(entity: ScriptEntity, script: MemoryScript, outputs: Mapping[str, Json]) -> Source | None:
    """Return the first video that should show an entity; None where none of these shots has one."""
    for number in entity.shots:
        shot = script.shots[number].key
        video = outputs["videos"].get(shot)
        if video is None:
            continue
        box = next(
            (row["box"] for row in outputs["boxes"]
             if (row["shot"], row["type"], row["name"]) == (shot, entity.type, entity.name)),
            None,
        )  # fmt: skip
        where = Cropped(
            method=outputs["method"], shot=shot, file=str(video["file"]).rpartition("/")[2], box=box
        )
        return Source(where=where, path=video["file"], sha256=video["sha256"], start=video["start"])
    return None


ENTITIES = "entities.jsonl"
"""One line for each scheduled entity: its record, which pictures of the run's store it has, and every try."""
CROPPED_REASON = "it was taken from outputs, and nobody was to check it"


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``entities.jsonl``."""
    write_atomic(folder / ENTITIES, jsonl_lines(row_of(item) for item in items))


def row_of(item: Item) -> dict[str, Json]:
    """Return the line of one entity: its episode, its record without files, its pictures, its tries."""
    reference = Reference.model_validate(item["reference"])
    record, pictures = _found(reference, item["drawn"], item["cropped"])
    prompt = item["prompt"]
    record = record.model_copy(update={"prompt_by": None if prompt is None else prompt["by"]})
    return {
        "episode": item["episode"], "record": record.as_json(), "pictures": pictures, "kept": reference.kept,
        "classified": None if reference.classified is None else reference.classified.as_json(),
        "tries": [] if item["drawn"] is None else item["drawn"]["tries"],
    }  # fmt: skip


def _found(reference: Reference, drawn: Json, cropped: Json) -> tuple[EntityRecord, dict[str, str]]:
    """Return the record, and which picture of the store is which file of the bank."""
    plain = _plain(reference)
    if drawn is not None:
        return _of_drawn(plain, drawn, reference)
    if cropped is not None:
        return _of_cropped(plain, cropped, reference)
    return plain, {}


def _plain(reference: Reference) -> EntityRecord:
    """Return the record of an entity without a picture."""
    owner = reference.owner
    if reference.made == "words":
        status, reason = "text_only", "the memory was built of words alone"
    elif owner is not None:
        assert reference.classified is not None
        status, reason = "part_of", reference.classified.reason
    else:
        status, reason = "failed", "nobody was asked for a picture"
    return EntityRecord.model_validate(
        {
            "episode_id": reference.episode_id, "type": reference.type, "name": reference.name,
            "label": reference.label, "owner": owner, "parts": [part.name for part in reference.parts],
            "first_shot": reference.first_shot, "description": reference.description,
            "described_by": reference.described_by, "style": reference.style, "made": reference.made,
            "status": status, "reason": reason,
        }
    )  # fmt: skip


def _of_drawn(plain: EntityRecord, drawn: Json, reference: Reference) -> tuple[EntityRecord, dict[str, str]]:
    taken = drawn["taken"]
    update: dict[str, Json] = {
        "status": drawn["status"], "reason": drawn["reason"], "verified_by": drawn["verified_by"],
        "model": drawn["model"], "calls": drawn["calls"],
    }  # fmt: skip
    if taken is None:
        return plain.model_copy(update=update), {}
    update |= {
        name: taken[name] for name in ("round", "candidate", "seed", "prompt", "key_colour", "segmenter")
    }
    update |= {
        "checks": tuple(BankCheck.model_validate(check) for check in taken["checks"]),
        "chosen_because": taken["why"], "licence": drawn["licence"],
        "bounds": None if taken["bounds"] is None else tuple(taken["bounds"]),
    }  # fmt: skip
    if reference.needs == "panorama":
        return plain.model_copy(update=update), {PANORAMA: taken["file"]}
    pictures = {PORTRAIT: taken["file"], CUTOUT: taken["cutout"], CANDIDATES: taken["grid"]}
    return plain.model_copy(update=update), {name: file for name, file in pictures.items() if file}


def _of_cropped(
    plain: EntityRecord, cropped: Json, reference: Reference
) -> tuple[EntityRecord, dict[str, str]]:
    if cropped["file"] is None:
        return plain.model_copy(update={"status": "failed", "reason": cropped["reason"]}), {}
    assert reference.source is not None
    update = {"status": "unverified", "reason": CROPPED_REASON, "cropped": reference.source.where}
    name = PANORAMA if reference.needs == "panorama" else PORTRAIT
    return plain.model_copy(update=update), {name: cropped["file"]}


# -- Stage: one item per scheduled entity, with what its reference has to show


class ReferenceSettings(Own):
    """How references come about, and which are left as they are."""

    made: HowMade = Field(
        default="generated",
        description="generated before any video, taken from outputs, or words and no picture.",
    )
    kept: tuple[str, ...] = Field(
        default=(), exclude_if=is_unset,
        description="Entities whose pictures a person saw to, as episode/type:name; found out from the bank.",
    )  # fmt: skip

    labels: bool = Field(
        default=True, exclude_if=lambda value: value is True,
        description="Whether names are drawn below portraits.",
    )  # fmt: skip


@stage(
    version=1,
    shape="expand",
    reads=("script", "classified", "style", "outputs"),
    writes=("episode", "reference"),
    settings=ReferenceSettings,
)
def list_references(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per entity, named ``<episode>/<type>:<name>``."""
    settings = tools.own(ReferenceSettings)
    script = MemoryScript.model_validate(item["script"])
    classified = [Classified.model_validate(row) for row in item["classified"]]
    episode = {
        "episode_id": script.episode_id, "overview": script.overview, "style": item["style"]["text"],
        "style_by": item["style"]["by"], "unregistered": list(script.unregistered),
        "unscheduled": list(script.unscheduled), "labels": settings.labels,
    }  # fmt: skip
    listed = references_of(script, classified, item["style"]["text"], item["outputs"], settings.made)
    for number, reference in enumerate(listed):
        key = f"{script.episode_id}/{reference.key}"
        kept = reference.model_copy(update={"kept": key in settings.kept})
        yield Child(key, Made({"episode": {**episode, "place": number}, "reference": kept.as_json()}))


# -- Stage: references cut from a method's own videos, instead of made before: an ablation (EntityBench, C.1)
#
# An entity is cut from the first frame of the first shot that should show it, with a box where one is given,
# else the whole frame is taken. What is wrong there gets into the reference: that is what is to be shown.


@stage(version=2, reads=("reference",), writes=("cropped",), libraries=("pillow",))
def crop_references(item: Item, tools: Tools) -> Outcome:
    """Return the ``file`` of the crop in the run's store, or why there is none; null where none is wanted."""
    reference = Reference.model_validate(item["reference"])
    if reference.made != "outputs" or reference.needs is None or reference.kept:
        return Made({"cropped": None})
    if reference.source is None:
        return Made({"cropped": {"file": None, "reason": "no shot that should show it has a video"}})
    try:
        data = _crop(reference, reference.source)
    except MediaProblem as problem:
        return Made({"cropped": {"file": None, "reason": f"the video cannot be read: {problem.code}"}})
    name = f"{sha256_bytes(data)}.png"
    if tools.store is not None:
        keep_file(data, name, tools.store)
    return Made({"cropped": {"file": name, "reason": None}})


def _crop(reference: Reference, source: Source) -> bytes:
    path = Path(source.path)
    if not path.is_file() or sha256_file(path) != source.sha256:
        what = "other bytes, or nothing"
        raise MediaProblem(
            str(path), code="unreadable", expected="the video that the run began with", found=what,
            fix="put it back",
        )  # fmt: skip
    (frame,) = frames_at(path, [source.start])
    image = frame.image
    if source.where.box is not None:
        left, top, right, bottom = source.where.box
        edges = (
            round(left * image.width), round(top * image.height),
            max(round(left * image.width) + 1, round(right * image.width)),
            max(round(top * image.height) + 1, round(bottom * image.height)),
        )  # fmt: skip
        image = image.crop(edges)
    return png_bytes(panorama_of(image) if reference.needs == "panorama" else image)
