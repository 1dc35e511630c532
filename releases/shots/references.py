"""The reference images of a story's characters: one folder each below ``image/``, checked one by one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ...media.images import MediaProblem, Picture, PictureLimits, open_picture, read_bytes
from ...schemas.canonical import sha256_bytes
from ...schemas.paths import format_path
from ...schemas.plain_files import below, by_name, composed, open_plain
from ...schemas.shots import ReferenceImage, ShotScript, StoryFacts
from ...schemas.values import Issue, Own
from ...validators.report import IssueBin, show
from ...validators.shots.script_rules import check_facts, issue

IMAGES = "image"
MOST_REFERENCES = 10
LEAST_SIDE = 64
SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini", ".gitkeep")
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
# What a picture may be and yet be worth a look.
_ODD = ("misnamed", "animated", "blank")


def is_safe_name(key: str) -> bool:
    """Return whether a character's key can be the name of a folder (or, with slashes, of nested ones)."""
    parts = key.split("/")
    return (
        key.isprintable()
        and "\\" not in key
        and not any(part.strip() in ("", ".", "..") for part in parts)
        and ":" not in parts[0][1:2]
        and len(key.encode("utf-8", "surrogatepass")) <= 200
    )


def read_references(
    place: Path, script: ShotScript, key: str, found: IssueBin, limits: PictureLimits
) -> tuple[ReferenceImage, ...]:
    """Return a character's reference images that can be decoded; its folder may have nested ones."""
    where = f"{place.name}/{IMAGES}/{key}"
    if not is_safe_name(key):
        found.add(issue("unsafe-name", place.name, f"$.Characters[{show(key)}]", "it cannot be a folder's"))
        return ()
    folder = below(place / IMAGES, key)
    nested = [below(place / IMAGES, other) for other in script.characters if other.startswith(f"{key}/")]
    images = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = path.relative_to(place).as_posix()
        others = any(path.is_relative_to(inner) for inner in nested)
        if path.is_dir() or others or path.name in SYSTEM_FILES:
            continue
        if path.suffix.lower() not in PICTURES or not path.resolve().is_relative_to(place.resolve()):
            message = "expected an image of this story, such as 00.jpg"
            found.add(issue("stray-file", f"{place.name}/{name}", "$", message))
            continue
        image = _read_reference(place, path, key, found, limits)
        if image is not None:
            images.append(image)
    if not images:
        found.add(issue("no-reference", where, "$", "expected 1 to 10 images, found none"))
    elif len(images) > MOST_REFERENCES:
        message = f"expected 1 to {MOST_REFERENCES} images, found {len(images)}"
        found.add(issue("many-references", where, "$", message))
    return tuple(images)


def _read_reference(
    place: Path, path: Path, key: str, found: IssueBin, limits: PictureLimits
) -> ReferenceImage | None:
    name = composed(path.relative_to(place).as_posix())
    read = read_reference(path, f"{place.name}/{name}", found, limits)
    if read is None:
        return None
    data, picture = read
    return ReferenceImage(
        story_id=place.name, character=key, file=name, sha256=sha256_bytes(data),
        width=picture.width, height=picture.height,
    )  # fmt: skip


def read_reference(
    path: Path, where: str, found: IssueBin, limits: PictureLimits
) -> tuple[bytes, Picture] | None:
    """Return a reference image and its bytes; None for one that cannot be decoded. Oddities are reported."""
    try:
        data = read_bytes(path, limits)
        picture = open_picture(data, limits, name=path.name)
    except MediaProblem as problem:
        message = f"[{problem.code}] {problem.what}"
        found.add(issue("unreadable-picture", where, "$", message))
        return None
    for note in picture.notes:
        if note.startswith(_ODD):
            found.add(issue("odd-picture", where, "$", note))
    if min(picture.width, picture.height) < LEAST_SIDE:
        message = f"expected {LEAST_SIDE} pixels a side, found {picture.width} x {picture.height}"
        found.add(issue("small-picture", where, "$", message))
    return data, picture


def check_folders(place: Path, script: ShotScript, found: IssueBin) -> None:
    """Report folders and files below ``image/`` that are no character's."""
    if not (place / IMAGES).is_dir():
        return
    first_parts = {composed(key.split("/")[0]) for key in script.characters}
    there = sorted((place / IMAGES).iterdir())
    repeated = {second: first for first, second in by_name(entry.name for entry in there)[1]}
    for entry in there:
        where = f"{place.name}/{IMAGES}/{entry.name}"
        if entry.name in repeated:
            message = f"it has the name of {repeated[entry.name]!a}, written otherwise in Unicode"
            found.add(issue("unknown-folder", where, "$", message))
        if composed(entry.name) in first_parts or entry.name in SYSTEM_FILES:
            continue
        if not entry.is_dir():
            found.add(issue("stray-file", where, "$", "expected the folder of a character"))
            continue
        near = [key for key in script.characters if key.strip().casefold() == entry.name.strip().casefold()]
        hint = f"; {show(near[0])} differs only in space or case" if near else ""
        found.add(issue("unknown-folder", where, "$", f"{show(entry.name)} is not a character{hint}"))


def check_repeated(
    place: Path, references: Mapping[str, tuple[ReferenceImage, ...]], found: IssueBin
) -> None:
    """Report reference images that are the same file as another of the story."""
    seen: dict[str, str] = {}
    for images in references.values():
        for image in images:
            first = seen.setdefault(image.sha256, image.file)
            if first != image.file:
                where = f"{place.name}/{image.file}"
                found.add(issue("repeated-picture", where, "$", f"the same file as {first}"))


Line = TypeVar("Line", bound=Own)


def read_lines(path: Path, kind: type[Line]) -> Iterator[tuple[int, Line | list[tuple[str, str]]]]:
    """Yield every line by its number: what it holds, or where and why it has not the form.

    Nothing where there is no such file.
    """
    if not path.is_file():
        return
    with open_plain(path) as handle:
        for number, line in enumerate(handle, 1):
            try:
                yield number, kind.model_validate_json(line)
            except ValidationError as error:
                details = error.errors(include_url=False, include_input=False)
                yield number, [(format_path(one["loc"]), str(one["msg"])) for one in details]


def check_lines(stories: Path, references: Path, scripts: Mapping[str, ShotScript]) -> Iterator[Issue]:
    """Yield everything that is wrong with both files, as far as they are there.

    ``scripts``: story id -> its script.
    """
    seen: set[str] = set()
    for number, line in read_lines(stories, StoryFacts):
        where = f"{stories.name}:{number}"
        if isinstance(line, list):
            yield from (issue("facts-line", where, path, why) for path, why in line)
            continue
        if line.story_id in seen:
            yield issue("facts-line", where, "$.story_id", f"{line.story_id} has a line already")
        seen.add(line.story_id)
        if line.story_id in scripts:
            yield from check_facts(line, scripts[line.story_id], where)
        else:
            yield issue("facts-story", where, "$.story_id", f"{line.story_id} is not a story of the set")
    for number, image in read_lines(references, ReferenceImage):
        if isinstance(image, list):
            where = f"{references.name}:{number}"
            yield from (issue("facts-line", where, path, why) for path, why in image)
