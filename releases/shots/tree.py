"""Reading and writing the official ViStoryBench data set: a folder per story with script and references.

::

    ViStory/01/story.json
    ViStory/01/image/<character key>/00.jpg

Beside the stories may lie ``stories.jsonl`` and ``references.jsonl``, which hold what the official files have
no room for; see :mod:`fabula.schemas.shots`. Reading goes on past every problem and reports them all; a story
whose script cannot be used is left out.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ...errors import ConfigError, InputError, TargetError, UserError
from ...media.images import MediaProblem, Picture, open_picture, read_bytes
from ...schemas.canonical import Json, digest, sha256_bytes, write_atomic
from ...schemas.paths import format_path
from ...schemas.plain_files import alike, below, by_name, composed, open_plain, type_reason
from ...schemas.shots import ReferenceImage, Shot, ShotScript, StoryFacts
from ...schemas.values import Issue, Own
from ...validators.report import IssueBin, Opened, ValidationReport, show
from ...validators.shots.script_rules import check_facts, check_script, issue
from ..loading import OfficialFiles
from ..target import staged

# -- The reference images of a story's characters: one folder each below ``image/``, checked one by one

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


def read_references(place: Path, script: ShotScript, key: str, found: IssueBin) -> tuple[ReferenceImage, ...]:
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
        image = _read_reference(place, path, key, found)
        if image is not None:
            images.append(image)
    if not images:
        found.add(issue("no-reference", where, "$", "expected 1 to 10 images, found none"))
    elif len(images) > MOST_REFERENCES:
        message = f"expected 1 to {MOST_REFERENCES} images, found {len(images)}"
        found.add(issue("many-references", where, "$", message))
    return tuple(images)


def _read_reference(folder: Path, path: Path, key: str, found: IssueBin) -> ReferenceImage | None:
    name = composed(path.relative_to(folder).as_posix())
    read = read_reference(path, f"{folder.name}/{name}", found)
    if read is None:
        return None
    data, picture = read
    return ReferenceImage(
        story_id=folder.name, character=key, file=name, sha256=sha256_bytes(data),
        width=picture.width, height=picture.height,
    )  # fmt: skip


def read_reference(path: Path, where: str, found: IssueBin) -> tuple[bytes, Picture] | None:
    """Return a reference image and its bytes; None for one that cannot be decoded. Oddities are reported."""
    try:
        data = read_bytes(path)
        picture = open_picture(data, name=path.name)
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
                yield number, [(format_path(one["loc"]), type_reason(one)) for one in details]


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


# -- The official tree of a set, read and written

SHOTS = "shots"
"""Name of the kind."""
IMPORTED_SHOTS = "import-shots"
"""Kind of a folder that holds imported scripts: it has no stages, and its releases are of shots."""
SHOT_SCRIPTS = "scripts.jsonl"
"""Shot scripts with their history, one line per story."""
FOLDER = "ViStory"
SCRIPT = "story.json"
STORIES, REFERENCES = "stories.jsonl", "references.jsonl"
_FILES = OfficialFiles(
    issue=issue, most_bytes=20_000_000, too_large="json", missing="missing-script", expected="a script"
)


@dataclass(frozen=True)
class ShotStory:
    story_id: str  # name of its folder
    script: ShotScript  # its script
    # character key -> its reference images, sorted by path; every character has an entry
    references: Mapping[str, tuple[ReferenceImage, ...]] = field(repr=False)


@dataclass(frozen=True)
class ShotSet:
    folder: Path  # where the stories lie
    stories: tuple[ShotStory, ...]  # the stories that can be used, in the order of their numbers

    @property
    def by_id(self) -> dict[str, ShotStory]:
        return {story.story_id: story for story in self.stories}

    @property
    def sha256(self) -> str:
        """What identifies the content: scripts and reference images, whatever the layout of the files."""
        return digest(
            [
                [
                    story.story_id,
                    story.script.as_json(),
                    {key: [one.sha256 for one in images] for key, images in sorted(story.references.items())},
                ]
                for story in self.stories
            ]
        )

    def path(self, image: ReferenceImage) -> Path:
        return below(self.folder / image.story_id, image.file)

    def counts(self) -> dict[str, int]:
        """Return how many stories, shots, characters and reference images there are."""
        return {
            "stories": len(self.stories),
            "shots": sum(len(story.script.shots) for story in self.stories),
            "characters": sum(len(story.script.characters) for story in self.stories),
            "references": sum(len(images) for story in self.stories for images in story.references.values()),
        }


def read_shot_set(path: Path | str) -> tuple[ShotSet, ValidationReport]:
    """Return a set and everything that is wrong with it.

    ``path``: the folder with the stories' folders, or the one above it that holds ``ViStory``.
    """
    opened = open_shot_set(Path(path))
    checked = check_shot_set(opened.content, opened.found)
    return opened.content, opened.found.report(str(path), opened.kind, checked)


def open_shot_set(root: Path) -> Opened:
    """Read a set of shot scripts, or a run or release that holds one; see :func:`read_shot_set`."""
    folder = root / FOLDER if (root / FOLDER).is_dir() else root
    if not folder.is_dir():
        raise InputError([_no_set(str(root), "a file" if root.is_file() else f"nothing there{alike(root)}")])
    found = IssueBin()
    read = [_read_story(story_folder, found) for story_folder in _story_folders(folder, found)]
    stories = tuple(story for story in read if story is not None)
    if not stories and not found.kept:
        raise InputError([_no_set(str(folder), "no folder with a number as its name")])
    return Opened(root, "shots", ShotSet(folder, stories), found)


def check_shot_set(shot_set: ShotSet, found: IssueBin) -> dict[str, int]:
    """Take what breaks a rule about scripts and what is known beside them; return what was looked at."""
    for story in shot_set.stories:
        found.extend(check_script(story.script, f"{story.story_id}/{SCRIPT}"))
    scripts = {story.story_id: story.script for story in shot_set.stories}
    found.extend(check_lines(shot_set.folder / STORIES, shot_set.folder / REFERENCES, scripts))
    return shot_set.counts()


def write_shot_set(shot_set: ShotSet, out: Path) -> None:
    """Write a set in the official tree: scripts as they were read, images byte for byte.

    Where anything fails, or the process is killed, no folder is there.
    """
    if out.exists():
        raise TargetError(str(out), what="it exists already", fix="choose a new folder")
    with staged(out.absolute()) as (draft,):
        write_stories(shot_set, draft)


def write_stories(shot_set: ShotSet, out: Path) -> None:
    """Write scripts and images below a folder that is there."""
    for story in shot_set.stories:
        place = out / FOLDER / story.story_id
        place.mkdir(parents=True)
        write_atomic(place / SCRIPT, [script_bytes(story.script)])
        for images in story.references.values():
            for image in images:
                (place / image.file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(shot_set.path(image), place / image.file)


def script_bytes(script: ShotScript) -> bytes:
    """Return a script as ``story.json`` holds it: UTF-8, indented by four, in the order of the script."""
    return json.dumps(script.as_json(), indent=4, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def _story_folders(folder: Path, found: IssueBin) -> Iterator[Path]:
    """Yield the stories' folders in the order of their numbers."""
    numbered: dict[int, Path] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name in (*SYSTEM_FILES, STORIES, REFERENCES):
            continue
        if not (entry.is_dir() and entry.name.isascii() and entry.name.isdigit()):
            message = "expected a folder with a number as its name, such as 01"
            found.add(issue("stray-file", entry.name, "$", message))
        elif int(entry.name) in numbered:
            message = f"{numbered[int(entry.name)].name} is story {int(entry.name)} already"
            found.add(issue("repeated-story", entry.name, "$", message))
        else:
            numbered[int(entry.name)] = entry
    for number in sorted(numbered):
        yield numbered[number]


def _read_story(place: Path, found: IssueBin) -> ShotStory | None:
    where = f"{place.name}/{SCRIPT}"
    script, _ = _FILES.read(place / SCRIPT, where, ShotScript, found)
    if script is None:
        return None
    for entry in sorted(place.iterdir()):
        if entry.name not in (SCRIPT, IMAGES, *SYSTEM_FILES):
            message = f"expected {SCRIPT} and {IMAGES}/"
            found.add(issue("stray-file", f"{place.name}/{entry.name}", "$", message))
    references = {key: read_references(place, script, key, found) for key in script.characters}
    check_folders(place, script, found)
    check_repeated(place, references, found)
    return ShotStory(place.name, script, references)


def _no_set(where: str, found: str) -> UserError:
    return UserError(
        where, expected=f"a folder of stories, such as {FOLDER}/ with 01/{SCRIPT}", found=found,
        fix="give the folder that holds the numbered stories",
    )  # fmt: skip


# -- What a generator is given for each shot: one line of JSON with prompt, references and context
#
# Generators differ in what they take. The options say how a script is adapted, as the source system did for
# each of them (ViStoryBench, supplement sections F.2 to F.5): which parts of the text and how much of it, how
# many reference images, whether earlier shots are shown. What was left out is stated in the line.

PARTS = ("perspective", "plot", "static", "characters", "setting")
"""The parts of a prompt in their usual order."""
LANGUAGES = ("en", "ch")


@dataclass(frozen=True)
class RequestOptions:
    """How scripts are adapted to a generator.

    Attributes:
        language: language of the prompts, ``en`` or ``ch``.
        parts: part of the prompt: perspective, plot, static, characters, setting; in this order [all].
        max_chars: most characters of a prompt; what is beyond is cut at a space and counted [all].
        references: most reference images of a shot [all]. Of too many characters those that appear most often
            in the script go first, and among equals those that the script names first.
        per_character: reference images of each character, its first ones.
        previous: how many earlier shots the generator is shown.
        width: width of the pictures, in pixels; with the height 16:9 or nearly so.
        height: height of the pictures, in pixels.
        seed: seed of the first shot of each story; every shot adds 1.
    """

    language: str = "en"
    parts: tuple[str, ...] = PARTS
    max_chars: int | None = None
    references: int | None = None
    per_character: int = 1
    previous: int = 0
    width: int = 1344
    height: int = 768
    seed: int = 42

    def checked(self) -> "RequestOptions":
        if self.language not in LANGUAGES:
            raise _wrong("--language", f"one of {', '.join(LANGUAGES)}", self.language)
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown or not self.parts:
            raise _wrong("--part", f"some of {', '.join(PARTS)}", ", ".join(unknown) or "none")
        for name, least in (
            ("max_chars", 1), ("references", 0), ("per_character", 1), ("previous", 0), ("width", 64),
            ("height", 64), ("seed", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < least:
                raise _wrong(f"--{name.replace('_', '-')}", f"{least} or more", str(value))
        return self


def shot_requests(shot_set: ShotSet, options: RequestOptions | None = None) -> Iterator[Json]:
    """Yield one request per shot, in order.

    A request holds ``story_id``, ``shot``, ``language``, ``prompt``, ``cut`` (how many characters were cut
    off the prompt), ``references`` (``character``, and ``file`` below the set's folder), ``left_out`` (who is
    on stage without a reference in the line), ``previous`` (numbers of the shots shown), ``width``,
    ``height`` and ``seed``.
    """
    options = (options or RequestOptions()).checked()
    for story in shot_set.stories:
        rank = _ranks(story)
        for shot in story.script.shots:
            yield _request(story, shot, rank, options)


def _request(story: ShotStory, shot: Shot, rank: Mapping[str, int], options: RequestOptions) -> Json:
    prompt = _prompt(story, shot, options)
    kept, cut = cut_at_space(prompt, options.max_chars)
    shown = _references(story, shot, rank, options)
    cast = [key for key in dict.fromkeys(story.script.cast(shot)) if key in story.script.characters]
    return {
        "story_id": story.story_id,
        "shot": shot.index,
        "language": options.language,
        "prompt": kept,
        "cut": cut,
        "references": shown,
        "left_out": [key for key in cast if key not in {one["character"] for one in shown}],
        "previous": list(range(max(1, shot.index - options.previous), shot.index)),
        "width": options.width,
        "height": options.height,
        "seed": options.seed + shot.index - 1,
    }


def _prompt(story: ShotStory, shot: Shot, options: RequestOptions) -> str:
    texts = {
        name: getattr(shot, name).of(options.language) if getattr(shot, name) is not None else ""
        for name in ("perspective", "plot", "static", "setting")
    }
    cast = dict.fromkeys(story.script.cast(shot))
    sheets = [story.script.characters[key] for key in cast if key in story.script.characters]
    described = [
        f"{sheet.name(options.language)}: {sheet.prompt(options.language)}".strip(": ") for sheet in sheets
    ]
    texts["characters"] = "\n".join(filter(None, described))
    return "\n".join(text.strip() for text in (texts[part] for part in options.parts) if text.strip())


def cut_at_space(prompt: str, most: int | None) -> tuple[str, int]:
    """Return a prompt of at most so many characters, cut between words, and how many are cut."""
    if most is None or len(prompt) <= most:
        return prompt, 0
    kept = prompt[:most]
    if not prompt[most].isspace() and any(char.isspace() for char in kept):
        kept = kept[: max(place for place, char in enumerate(kept) if char.isspace())]
    kept = kept.rstrip()
    return kept, len(prompt) - len(kept)


def _ranks(story: ShotStory) -> dict[str, int]:
    counts = story.script.appearances()
    order = sorted(counts, key=lambda key: -counts[key])  # stable: equals stay in the script's order
    return {key: place for place, key in enumerate(order)}


def _references(
    story: ShotStory, shot: Shot, rank: Mapping[str, int], options: RequestOptions
) -> list[dict[str, str]]:
    cast = sorted({key for key in story.script.cast(shot) if key in rank}, key=lambda key: rank[key])
    shown = [
        {"character": key, "file": f"{image.story_id}/{image.file}"}
        for key in cast
        for image in story.references.get(key, ())[: options.per_character]
    ]
    return shown if options.references is None else shown[: options.references]


def _wrong(option: str, expected: str, found: str) -> ConfigError:
    return ConfigError(option, expected=expected, found=found, fix="correct the option")
