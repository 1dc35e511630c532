"""What a run found out about an entity, as the record that its bank keeps; lines of ``entities.jsonl``."""

from collections.abc import Iterable
from pathlib import Path

from ...engine.stage import Item
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from .bank import CANDIDATES, CUTOUT, PANORAMA, PORTRAIT, BankCheck, EntityRecord
from .references import Reference

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
