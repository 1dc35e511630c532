"""Writing the bank of a finished run, and leaving in it what a person put there.

A file whose content is not what its ``entity.json`` says is a person's; so is one that it does not name. Such
files stay, and only what follows from them is made again: the cut-out of a portrait, the labelled picture,
the thirds of a panorama. An entity whose record is ``locked`` stays as it is but for these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.execute import STORE
from ...errors import InputError, TargetError, UserError
from ...media.kept_files import kept_bytes
from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, write_atomic
from ...schemas.plain_files import json_lines, read_plain
from ...schemas.text import slug
from .bank import (
    BANK,
    CANDIDATES,
    CUTOUT,
    ENTITY,
    EPISODE,
    LABELLED,
    PANORAMA,
    PORTRAIT,
    VIEWS,
    EntityRecord,
    EpisodeRecord,
    read_record,
)
from .candidates import DrawSettings
from .keying import Subject, bounds_of, check_cut, cut_by_colour, cut_by_mask, rgb_of
from .pictures import labelled, opened_rgb, opened_rgba, panorama_of, png_bytes, thirds_of
from .references import ENTITIES

if TYPE_CHECKING:
    from PIL.Image import Image

GIVEN = (PORTRAIT, CUTOUT, PANORAMA)
"""Files that a person may put in the place of ours."""
PERSON = "person"
_AGAIN = "run the same command again: what the run's journal holds is not paid for twice"
_OPAQUE = 128


def entity_folder(kind: str, name: str) -> str:
    """Return the folder of an entity: its type and name in ASCII; a name that loses letters gets a hash.

    >>> entity_folder("object", "the red cup")
    'object-the_red_cup'
    """
    joined = name.replace(" ", "_")
    plain = slug(joined)
    if plain != joined or "_" in name:
        plain = f"{plain[:40]}-{sha256_bytes(name.encode('utf-8'))[:8]}".lstrip("-")
    return f"{kind}-{plain}"


def episode_folder(episode_id: str) -> str:
    """Return the folder of an episode: its id, or what is left of it in ASCII, with a hash."""
    plain = slug(episode_id)
    return plain if plain == episode_id else f"{plain[:40]}-{sha256_bytes(episode_id.encode())[:8]}"


@dataclass(frozen=True)
class OnDisk:
    """What a folder of an entity holds already."""

    record: EntityRecord | None  # its record; None where there is none
    changed: Mapping[str, bytes]  # files that a person put there, with their bytes

    @property
    def kept(self) -> bool:
        """Whether a person saw to the picture, so that nobody is asked for another."""
        return bool(self.changed) or (self.record is not None and self.record.locked)


def look_at(folder: Path) -> OnDisk:
    """Return what a person changed in the folder of an entity."""
    if not (folder / ENTITY).is_file():
        return OnDisk(None, {})
    problems: list[UserError] = []
    record = read_record(folder, problems)
    if record is None:
        raise InputError(problems)
    changed = {}
    for name in GIVEN:
        path = folder / name
        if not path.is_file():
            continue
        data = read_plain(path)
        if name in record.by_person or sha256_bytes(data) != record.files.get(name):
            opened_rgba(data, str(path))
            changed[name] = data
    return OnDisk(record, changed)


def kept_entities(run: Path) -> tuple[str, ...]:
    """Return the entities of a run's bank that a person saw to, as ``episode/type:name``, sorted."""
    kept = []
    for path in sorted((run / BANK).glob(f"*/*/{ENTITY}")):
        seen = look_at(path.parent)
        if seen.kept and seen.record is not None:
            record = seen.record
            kept.append(f"{record.episode_id}/{record.type}:{record.name}")
    return tuple(sorted(kept))


def write_bank(run: Path) -> None:
    """Write the bank of a finished run, or bring it up to date.

    Of an episode that the run no longer has, the entities stay, and only its list of them goes.
    """
    source = run / ENTITIES
    if not source.is_file():
        return
    rows: dict[str, list[Json]] = {}
    for row in json_lines(source):
        rows.setdefault(row["record"]["episode_id"], []).append(row)
    try:
        for episode_id, listed in rows.items():
            _write_episode(run, episode_id, listed)
        for path in (run / BANK).glob(f"*/{EPISODE}"):
            if path.parent.name not in map(episode_folder, rows):
                path.unlink()
    except OSError as error:
        if isinstance(error, UserError):
            raise
        what = f"the bank cannot be written: {error.strerror or error}"
        raise TargetError(str(run / BANK), what=what, fix="free the disk, or correct the rights") from error


def _write_episode(run: Path, episode_id: str, rows: list[Json]) -> None:
    folder = run / BANK / episode_folder(episode_id)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: row["episode"]["place"])
    names = []
    for row in ordered:
        name = entity_folder(row["record"]["type"], row["record"]["name"])
        names.append(name)
        (folder / name).mkdir(exist_ok=True)
        _write_entity(run, folder / name, row)
    about = {key: value for key, value in ordered[0]["episode"].items() if key not in ("place", "labels")}
    record = EpisodeRecord.model_validate({**about, "entities": names})
    _put(folder / EPISODE, pretty_bytes(record.as_json()))


def _write_entity(run: Path, folder: Path, row: Json) -> None:
    seen = look_at(folder)
    made = EntityRecord.model_validate(row["record"])
    record = made
    if seen.record is not None and (seen.kept or row["kept"]):
        # What is known of the script is as it is now; what is known of the picture stays.
        about = ("label", "owner", "parts", "first_shot", "description", "described_by")
        record = seen.record.model_copy(update={name: getattr(made, name) for name in about})
        files = {
            name: data for name in (*GIVEN, CANDIDATES)
            if (data := _read(folder / name)) is not None
        }  # fmt: skip
    else:
        files = {name: kept_bytes(run / STORE, file, fix=_AGAIN) for name, file in row["pictures"].items()}
    if seen.changed:
        record = _by_person(record, seen.changed)
    files, record = _derived(files, record, frozenset(seen.changed), labels=row["episode"]["labels"])
    record = record.model_copy(
        update={"files": {name: sha256_bytes(data) for name, data in sorted(files.items())}}
    )
    for name in (LABELLED, CUTOUT, CANDIDATES, *(f"{view}.png" for view in VIEWS)):
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        _put(folder / name, data)
    _put(folder / ENTITY, pretty_bytes(record.as_json()))


def _by_person(record: EntityRecord, changed: Iterable[str]) -> EntityRecord:
    """Return the record of an entity whose picture a person put there, without what a generator said."""
    gone: dict[str, Any] = dict.fromkeys(
        ("prompt", "prompt_by", "model", "seed", "round", "candidate", "chosen_because", "licence", "cropped")
    )
    if record.by_person:  # its record says so already, and may have been completed by hand
        gone = {}
    update = {"status": "verified", "reason": None, "verified_by": PERSON, "checks": (), "owner": None}
    return record.model_copy(
        update={**gone, **update, "by_person": tuple(sorted({*record.by_person, *changed}))}
    )


def _derived(
    files: dict[str, bytes], record: EntityRecord, changed: frozenset[str], *, labels: bool
) -> tuple[dict[str, bytes], EntityRecord]:
    """Return the files with those that follow from others, and the record with what these tell."""
    if PANORAMA in files:
        panorama = panorama_of(opened_rgb(files[PANORAMA], PANORAMA))
        files |= {f"{view}.png": png_bytes(third) for view, third in thirds_of(panorama).items()}
        return files, record
    if PORTRAIT in files and PORTRAIT in changed and CUTOUT not in changed:
        files[CUTOUT], record = _cut_again(files[PORTRAIT], record)
    if CUTOUT in files and (changed or record.bounds is None):
        cut = opened_rgba(files[CUTOUT], CUTOUT)
        record = record.model_copy(update={"bounds": _bounds(cut)})
    shown = CUTOUT if CUTOUT in files else PORTRAIT
    if labels and shown in files:
        subject: Image = opened_rgba(files[shown], shown)
        files[LABELLED] = png_bytes(labelled(subject, record.name))
    else:
        files.pop(LABELLED, None)
    return files, record


def _cut_again(portrait: bytes, record: EntityRecord) -> tuple[bytes, EntityRecord]:
    """Return the cut-out of a person's portrait: by its own opacity, else by the key's colour."""
    import numpy as np

    whole = opened_rgba(portrait, PORTRAIT)
    opaque = np.asarray(whole.getchannel("A")) >= _OPAQUE
    if not opaque.all():
        cut = cut_by_mask(whole.convert("RGB"), opaque, PERSON)
        return png_bytes(whole), record.model_copy(update={"segmenter": PERSON})
    if record.key_colour is None:
        cut = cut_by_mask(whole.convert("RGB"), opaque, PERSON)
    else:
        cut = cut_by_colour(whole.convert("RGB"), rgb_of(record.key_colour))
    checks = check_cut(cut, Subject(record.type, record.name), DrawSettings().limits)
    return png_bytes(cut.image), record.model_copy(update={"checks": checks, "segmenter": cut.by})


def _bounds(cut: "Image") -> tuple[int, int, int, int] | None:
    import numpy as np

    return bounds_of(np.asarray(cut.getchannel("A")) >= _OPAQUE)


def _read(path: Path) -> bytes | None:
    return read_plain(path) if path.is_file() else None


def _put(path: Path, data: bytes) -> None:
    """Write a file unless it has this content."""
    if _read(path) != data:
        write_atomic(path, [data])
