"""What is known of a set of scripts beyond the official files: ``stories.jsonl``, ``references.jsonl``.

Bringing sets of shot scripts in and out: the official tree, and requests for generators.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field

from ...engine.manifest import Source, SourceEntry, creation_time, fingerprint
from ...errors import ConfigError, InputError, UserError, mismatch
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic, writing
from ...schemas.plain_files import parse_json, read_plain
from ...schemas.shots import LANGUAGES, LITE, CharacterSheet, ReferenceImage, Shot, ShotRecord, StoryFacts
from ...schemas.text import tallied, tallies
from ...validators.report import RuleSet, ValidationReport
from ...validators.shots.script_rules import shot_statistics
from ..loading import read_rows, whole_rows
from ..subsets import ALL, DIGITS, Spread, Traits, draw, fields_closeness, mean_size, spread
from ..target import (
    DescribedFile,
    Description,
    Templates,
    read_description,
    require_free,
    require_outside,
    staged,
    write_imported_run,
)
from .tree import (
    FOLDER,
    IMPORTED_SHOTS,
    REFERENCES,
    SCRIPT,
    SHOT_SCRIPTS,
    STORIES,
    Line,
    RequestOptions,
    ShotSet,
    ShotStory,
    check_shot_set,
    open_shot_set,
    read_shot_set,
    shot_requests,
    write_shot_set,
    write_stories,
)

# -- What a named generator reads: ``fabula export shots --for NAME``
#
# The bundled descriptions are those that ViStoryBench's public scripts write
# (``data_process/dataset_process``).

_PAGE = "docs/generators.md"
_TEXTS = ("perspective", "plot", "static", "setting")


class InputFile(DescribedFile):
    """One file that a generator reads."""

    per: Literal["set", "story"] = Field(default="set", description="One file for all stories, or one each.")


class InputLayout(Description):
    """What a generator reads; ``docs/generators.md`` tells what its templates can use."""

    results: str = Field(
        default="{{ story.id }}/shots/shot_{{ '%02d' % shot.index }}.png",
        description="Where the picture of a shot goes, below the folder of outputs; a template.",
    )
    languages: tuple[Literal["en", "ch"], ...] = Field(
        default=(), description="Languages of the texts [that of --language]."
    )
    image: str = Field(default="{{ image.file }}", description="Where a reference image goes; a template.")
    character: dict[str, str] = Field(
        default_factory=dict, description="More texts of each character of a story; templates."
    )
    onstage: dict[str, str] = Field(
        default_factory=dict, description="More texts of each character on stage; templates."
    )
    shot: dict[str, str] = Field(
        default_factory=dict, description="More texts of each shot, in order; templates."
    )
    file: tuple[InputFile, ...] = Field(min_length=1, description="The files.")


class Inputs(Templates):
    """The inputs of one generator for a set: the files, the images, and where results go.

    Attributes:
        images: path below the new folder -> the file to copy.
        results: ``story_id``, ``shot`` and ``file`` of each shot, in order.
        missing: paths of texts that the scripts do not have in the languages of the layout.
        unshown: story and key of characters on stage without a reference image.
    """

    def __init__(
        self, shot_set: ShotSet, name: str, options: RequestOptions, values: Mapping[str, str | int | float]
    ) -> None:
        self._layout = read_description(name, InputLayout, __package__, _PAGE)
        super().__init__(name, self._layout, values, _PAGE, {"python": repr, "md5": _md5})
        self._options = options.checked()
        self._check_options()
        self.images: dict[str, Path] = {}
        self.missing: list[str] = []
        self.unshown: list[tuple[str, str]] = []
        self.common |= {
            "dataset": FOLDER, "language": options.language, "width": options.width,
            "height": options.height, "seed": options.seed,
        }  # fmt: skip
        stories = [self._story(story, shot_set) for story in shot_set.stories]
        self.common["stories"] = stories
        self.results = [
            {
                "story_id": story["id"],
                "shot": shot["index"],
                "file": self.path(self._layout.results, "results", story=story, shot=shot),
            }
            for story in stories
            for shot in story["shots"]
        ]

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of each file."""
        seen = set(self.images)
        for number, file in enumerate(self._layout.file, 1):
            where = f"file {number}"
            for story in self.common["stories"] if file.per == "story" else [None]:
                given = {} if story is None else {"story": story}
                path = self.path(file.path, f"{where} path", **given)
                if path in seen:
                    raise self.bad(f"{where}: {path} is written twice")
                seen.add(path)
                yield path, self.written(file, where, **given)

    def _check_options(self) -> None:
        usual = RequestOptions()
        for name, flag in (
            ("parts", "--part"), ("max_chars", "--max-chars"), ("references", "--references"),
            ("previous", "--previous"),
        ):  # fmt: skip
            if getattr(self._options, name) != getattr(usual, name):
                raise ConfigError(
                    flag, what=f"the description of {self.name} decides this", fix="leave the option out"
                )

    def _story(self, story: ShotStory, shot_set: ShotSet) -> dict[str, Any]:
        script = story.script
        kind = script.story_type
        made: dict[str, Any] = {
            "id": story.story_id,
            "type": "" if kind is None else kind.of(self._options.language),
            "characters": [],
        }
        people: dict[str, dict[str, Any]] = {}
        for key, sheet in script.characters.items():
            person = people[key] = {"key": key, "tag": sheet.tag or "", **self._both(_sheet_texts, sheet)}
            paths = []
            for image in story.references.get(key, ())[: self._options.per_character]:
                file = f"{image.story_id}/{image.file}"
                shown = {"file": file, "name": PurePosixPath(file).name, "suffix": PurePosixPath(file).suffix}
                path = self.path(self._layout.image, "image", story=made, character=person, image=shown)
                if self.images.setdefault(path, shot_set.path(image)) != shot_set.path(image):
                    raise self.bad(f"image: two images would be {path}")
                paths.append(str(self.common["values"].get("root", "")) + path)
            person |= {"images": paths, "image": paths[0] if paths else None}
            for name, template in self._layout.character.items():
                person[name] = self.filled(template, f"character.{name}", story=made, character=person)
            self._note_missing(f"{story.story_id} {key}", person, ("name", "prompt"))
        made["characters"] = list(people.values())
        made["shots"] = []
        for shot in script.shots:
            made["shots"].append(self._shot(story, shot, made, people))
        staged = {person["key"] for shot in made["shots"] for person in shot["onstage"]}
        self.unshown += [
            (story.story_id, key) for key in people if key in staged and not people[key]["images"]
        ]
        return made

    def _shot(
        self, story: ShotStory, shot: Shot, made: Mapping[str, Any], people: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        texts: dict[str, Any] = {"index": shot.index, **self._both(_shot_texts, shot)}
        self._note_missing(f"{story.story_id} shot {shot.index}", texts, _TEXTS)
        cast = story.script.cast(shot)
        names = self._names(shot, cast, people)
        onstage = []
        for key, called in zip(cast, names, strict=True):
            if key not in people:
                continue
            person: dict[str, Any] = {**people[key], "called": called}
            for name, template in self._layout.onstage.items():
                person[name] = self.filled(
                    template, f"onstage.{name}", story=made, shot=texts, onstage=person
                )
            onstage.append(person)
        texts |= {"names": names, "onstage": onstage}
        for name, template in self._layout.shot.items():
            texts[name] = self.filled(template, f"shot.{name}", story=made, shot=texts)
        return texts

    def _names(self, shot: Shot, cast: Sequence[str], people: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return the names of those on stage as the shot lists them in the language, else of their sheets."""
        listed = None if shot.onstage is None else getattr(shot.onstage, self._options.language)
        if isinstance(listed, tuple) and len(listed) == len(cast):
            return list(listed)
        return [(people[key]["name"] if key in people else "") or key for key in cast]

    def _both(self, texts: Any, of: Shot | CharacterSheet) -> dict[str, Any]:  # noqa: ANN401 - two functions
        """Return the texts in the chosen language, and below ``en`` and ``ch`` those in both."""
        by_language = {language: texts(of, language) for language in LANGUAGES}
        return {**by_language[self._options.language], **by_language}

    def _note_missing(self, where: str, texts: Mapping[str, Any], names: Sequence[str]) -> None:
        for language in self._layout.languages or (self._options.language,):
            self.missing += [f"{where} {name}.{language}" for name in names if not texts[language][name]]

    def filled(self, template: str, where: str, **given: Any) -> str:  # noqa: ANN401 - as above
        """Return the text of a template, which can ``refuse`` a story that lacks something."""

        def refuse(why: str) -> None:
            story = given.get("story", {}).get("id")
            raise ConfigError(
                f"--for {self.name}", what=f"story {story}: {why}" if story else why,
                fix="add what is missing to the set, or choose another form",
            )  # fmt: skip

        return super().filled(template, where, **given, refuse=refuse)


def _shot_texts(shot: Shot, language: str) -> Json:
    return {name: "" if getattr(shot, name) is None else getattr(shot, name).of(language) for name in _TEXTS}


def _sheet_texts(sheet: CharacterSheet, language: str) -> Json:
    return {"name": sheet.name(language), "prompt": sheet.prompt(language)}


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# -- What is known of a set of scripts beyond the official files


def read_story_facts(shot_set: ShotSet) -> dict[str, StoryFacts]:
    """Return what ``stories.jsonl`` says of each story of a set; nothing where there is no such file."""
    problems: list[UserError] = []
    facts: dict[str, StoryFacts] = {}
    path = shot_set.folder / STORIES
    for one in _lines(path, StoryFacts, problems):
        if one.story_id in facts:
            problems.append(mismatch(str(path), "one line for each story", f"{one.story_id} twice", _LINE))
        facts[one.story_id] = one
    if problems:
        raise InputError(problems)
    return {key: value for key, value in facts.items() if key in shot_set.by_id}


def with_provenance(shot_set: ShotSet) -> tuple[ReferenceImage, ...]:
    """Return the reference images of a set with the source and rights that ``references.jsonl`` gives.

    A line counts for an image only where story, file and content are the same.
    """
    problems: list[UserError] = []
    given = _lines(shot_set.folder / REFERENCES, ReferenceImage, problems)
    known = {(one.story_id, one.file, one.sha256): one for one in given}
    if problems:
        raise InputError(problems)
    images = [one for story in shot_set.stories for some in story.references.values() for one in some]
    return tuple(
        one if found is None else one.model_copy(update={"source": found.source, "rights": found.rights})
        for one in images
        for found in (known.get((one.story_id, one.file, one.sha256)),)
    )


def write_facts(folder: Path, facts: Iterable[StoryFacts], images: Iterable[ReferenceImage]) -> None:
    """Write both files beside the stories of a set, sorted; no file of stories where nothing is known."""
    stories = sorted(facts, key=lambda one: one.story_id)
    if stories:
        write_atomic(folder / STORIES, jsonl_lines(one.as_json() for one in stories))
    lines = sorted(images, key=lambda one: (one.story_id, one.file))
    write_atomic(folder / REFERENCES, jsonl_lines(one.as_json() for one in lines))


def statistics_of_shots(path: Path) -> dict[str, Json]:
    """Return the counts over a set of shot scripts: the official tree, or a run or release that holds it."""
    shot_set, _ = read_shot_set(path)
    facts = read_story_facts(shot_set)
    return shot_statistics(
        (
            story.script,
            facts.get(story.story_id),
            {key: len(images) for key, images in story.references.items()},
        )
        for story in shot_set.stories
    )


_LINE = "correct the line; see docs/images.md"


def _lines(path: Path, kind: type[Line], problems: list[UserError]) -> list[Line]:
    return list(read_rows(path, kind, problems, _LINE)) if path.is_file() else []


RULES = RuleSet(open_shot_set, check_shot_set, statistics_of_shots)


REQUESTS = "requests.jsonl"
ROLE = "scripts"
GIVEN = "given"
"""Who made what was imported."""


@dataclass(frozen=True)
class ImportedSet:
    """A set that was brought in."""

    out: Path  # the new folder
    shot_set: ShotSet  # what was written
    report: ValidationReport  # everything that is wrong with the source

    def as_json(self) -> dict[str, Any]:
        told = {"out": str(self.out), "sha256": self.shot_set.sha256, "written": self.shot_set.counts()}
        return told | self.report.as_json()

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, without the findings."""
        yield self.report.summary()
        counts = tallies(self.shot_set.counts())
        yield f"{self.out}: {counts}"


def is_shot_set(path: Path) -> bool:
    """Whether a folder holds shot scripts in the official tree."""
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    return folder.is_dir() and any(
        (entry / SCRIPT).is_file() for entry in folder.iterdir() if entry.name.isdigit()
    )


def import_set(source: Path, out: Path, created_at: str | None = None) -> ImportedSet:
    """Copy a set, and what is known of its stories and images, into a new folder of our own.

    Scripts stay equal as parsed JSON, images byte for byte. A story without a script that can be used, and an
    image that cannot be decoded, stay out; the report says so. The folder is like that of a finished run, so
    that it can be packed as a release.

    ``source``: the official tree, or the folder above it.
    """
    time = creation_time(created_at)
    require_free(out)
    shot_set, report = read_shot_set(source)
    require_outside(out, source)
    if not shot_set.stories:
        raise InputError.one(
            str(source),
            what=f"no story can be used: {report.summary()}",
            fix="correct what the findings name; fabula validate lists them",
        )
    facts, images = read_story_facts(shot_set), with_provenance(shot_set)
    with staged(out.absolute()) as (draft,):
        write_stories(shot_set, draft)
        write_facts(draft / FOLDER, facts.values(), images)
        write_atomic(draft / SHOT_SCRIPTS, jsonl_lines(given_records(shot_set, facts, {})))
        entry = SourceEntry(**fingerprint(Source(ROLE, source)).as_json(out))
        write_imported_run(draft, IMPORTED_SHOTS, entry, SHOT_SCRIPTS, time)
    return ImportedSet(out, shot_set, report)


def given_records(
    shot_set: ShotSet, facts: Mapping[str, StoryFacts], known: Mapping[str, ShotRecord]
) -> Iterator[dict[str, Any]]:
    """Yield the line of every story; who made what goes along from what was known of the same script."""
    for story in sorted(shot_set.stories, key=lambda one: one.story_id):
        script, before = story.script.as_json(), known.get(story.story_id)
        if before is not None and before.script != script:
            before = None  # somebody changed it since, and nothing says what
        yield ShotRecord(
            story_id=story.story_id,
            source_id=None if before is None else before.source_id,
            order=tuple(story.script.characters),
            script=script,
            facts=facts.get(story.story_id, StoryFacts(story_id=story.story_id)),
            producers=({"path": "$", "producer": GIVEN},) if before is None else before.producers,
        ).as_json()


def export_requests(shot_set: ShotSet, out: Path, options: RequestOptions | None = None) -> dict[str, int]:
    """Write what a generator is given into a new folder: ``requests.jsonl`` and the images that it names.

    Returned: how many ``requests`` and ``references`` there are, how many prompts were ``cut``.
    """
    lines = list(shot_requests(shot_set, options))
    require_free(out)
    files = sorted({one["file"] for line in lines for one in line["references"]})
    with staged(out.absolute()) as (draft,):
        for name in files:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(shot_set.folder / name, draft / name)
        write_atomic(draft / REQUESTS, jsonl_lines(lines))
    return {"requests": len(lines), "references": len(files), "cut": sum(line["cut"] > 0 for line in lines)}


RESULTS = "results.jsonl"
"""Which file the picture of each shot goes to."""


@dataclass(frozen=True)
class ExportedInputs:
    """What was written for a named generator."""

    files: tuple[str, ...]  # paths of its files, in the order of the description
    shots: int  # how many shots there are
    references: int  # how many reference images were copied
    missing: tuple[str, ...]  # texts that the scripts do not have, such as ``01 shot 2 plot.ch``
    unshown: tuple[tuple[str, str], ...]  # story and key of characters on stage without a reference image

    def as_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "shots": self.shots,
            "references": self.references,
            "missing_texts": list(self.missing),
            "without_reference": [f"{story} {key}" for story, key in self.unshown],
        }


def export_inputs(
    shot_set: ShotSet,
    out: Path,
    generator: str,
    options: RequestOptions | None = None,
    values: Mapping[str, str | int | float] | None = None,
    rename: Callable[[Json], Json] | None = None,
) -> ExportedInputs:
    """Write what a named generator reads into a new folder, the images, and where its results go.

    ``rename``: makes of a line about a result the one that is written.
    """
    inputs = Inputs(shot_set, generator, options or RequestOptions(), values or {})
    if rename is not None:
        inputs.results = [rename(line) for line in inputs.results]
    written = dict(inputs.files())
    require_free(out)
    with staged(out.absolute()) as (draft,):
        for name, image in inputs.images.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, draft / name)
        for name, text in written.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(draft / name, [text.encode()])
        write_atomic(draft / RESULTS, jsonl_lines(inputs.results))
    return ExportedInputs(
        tuple(written), len(inputs.results), len(inputs.images), tuple(inputs.missing), tuple(inputs.unshown)
    )


# -- Choosing a subset of shot scripts that is spread as the whole is: what the Lite subset is to the full set
#
# Counted are story type, style, culture, whether a story is realistic, how long it is, and its characters by
# tag and gender. The official set comes with its own choice, which is taken as given.

FIELDS = ("story_type", "style", "culture", "realistic", "length")
CHARACTERS = "characters"
DOCUMENT = "lite.json"
UNKNOWN = "not known"
LENGTHS = (9, 14, 19, 24)
"""Upper ends of the classes of shots per story; the last class is open."""
OFFICIAL = "official"


def shot_traits(story: ShotStory, facts: StoryFacts | None) -> Traits:
    script = story.script
    known = facts if facts is not None else StoryFacts(story_id=story.story_id)
    kind = script.story_type.of("en") if script.story_type is not None else ""
    shots = len(script.shots)
    length = next((f"up to {end}" for end in LENGTHS if shots <= end), f"more than {LENGTHS[-1]}")
    values = (kind, known.style, known.culture, known.realistic, length)
    cast: Counter[str] = Counter()
    for key, sheet in script.characters.items():
        gender = known.characters[key].gender if key in known.characters else None
        cast.update((f"tag {sheet.tag or UNKNOWN}", f"gender {gender or UNKNOWN}"))
    return Traits(
        id=story.story_id,
        kinds={
            name: UNKNOWN if value is None or value == "" else str(value).casefold()
            for name, value in zip(FIELDS, values, strict=True)
        },
        parts_field=CHARACTERS,
        parts=cast,
        sizes={"shots": shots},
    )


def _traits(shot_set: ShotSet) -> list[Traits]:
    facts = read_story_facts(shot_set)
    return [shot_traits(story, facts.get(story.story_id)) for story in shot_set.stories]


def choose(shot_set: ShotSet, count: int, ids: str | Collection[str] | None = None) -> tuple[str, ...]:
    """Return the stories of a subset, in the order of their numbers."""
    order = [story.story_id for story in shot_set.stories]
    if ids is not None:
        chosen = LITE if ids == OFFICIAL else tuple(ids)
        missing = sorted(set(chosen) - set(order))
        if missing:
            raise ConfigError(
                "--ids", what=f"the set has no story {', '.join(missing[:10])}",
                fix="name stories of the set; the official subset needs the official set",
            )  # fmt: skip
    elif not 1 <= count <= len(order):
        raise ConfigError(
            "--count", what=f"the set has {tallied(len(order), 'stories')}, and {count} are asked for",
            fix=f"give a number from 1 to {len(order)}",
        )  # fmt: skip
    else:
        chosen = draw("lite", _traits(shot_set), order, {ALL: count})
    return tuple(story_id for story_id in order if story_id in chosen)


def subset_document(shot_set: ShotSet, ids: Collection[str]) -> dict[str, Json]:
    """Return the ids of a subset, and how near each distribution is to the whole's."""
    everyone = _traits(shot_set)
    own = [story for story in everyone if story.id in ids]
    return _document(own, len(everyone), _shots_per_story(everyone), spread(everyone))


def _document(own: Sequence[Traits], stories: int, shots_per_story: Json, full: Spread) -> dict[str, Json]:
    """Return what ``lite.json`` says of some stories: beside them, what is known of the whole."""
    return {
        "ids": [story.id for story in own],
        "stories": {"full": stories, "subset": len(own)},
        "shots_per_story": {"full": shots_per_story, "subset": _shots_per_story(own)},
        "fields": fields_closeness(full, spread(own)),
    }


def is_subset_document(document: Json, shot_set: ShotSet) -> bool:
    """Return whether what ``lite.json`` says of a subset follows from its stories.

    What it says of the whole, whose other stories nobody can see here, is taken as it is stated.
    """
    whole = {
        name: Counter({value: row["full"] for value, row in field["values"].items()})
        for name, field in document["fields"].items()
    }
    stated = document["stories"]["full"], document["shots_per_story"]["full"]
    return bool(document == _document(_traits(shot_set), *stated, whole))


def write_subset(
    shot_set: ShotSet, ids: Collection[str], out: Path, created_at: str | None = None
) -> dict[str, Json]:
    """Write a subset as a set of its own with ``lite.json`` beside it, and return what that says.

    The folder is like that of an imported set, so that it can be packed as a release.
    """
    time = creation_time(created_at)
    document = subset_document(shot_set, ids)
    part = ShotSet(shot_set.folder, tuple(story for story in shot_set.stories if story.story_id in ids))
    facts: Mapping[str, StoryFacts] = read_story_facts(part)
    images = with_provenance(part)
    write_shot_set(part, out)
    with writing(out):
        write_facts(out / FOLDER, facts.values(), images)
        write_atomic(out / DOCUMENT, [pretty_bytes(document)])
        _write_run(shot_set, part, facts, out, time)
    return document


def read_subset_document(folder: Path, ids: Collection[str]) -> bytes | None:
    """Return ``lite.json`` of a subset as its file has it; None for a set that is none."""
    path = folder / DOCUMENT
    if not path.is_file():
        return None
    try:
        data = read_plain(path)
        named = sorted(map(str, parse_json(data)["ids"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError([_other(path, f"it cannot be read ({error})")]) from error
    if named != sorted(ids):
        raise InputError([_other(path, f"it names {tallied(len(named), 'others')}")])
    return data


def _other(path: Path, found: str) -> UserError:
    return UserError(
        str(path), what=f"it does not name the stories that are here: {found}",
        fix="remove it, or write the subset again with fabula export lite",
    )  # fmt: skip


def _shots_per_story(stories: Sequence[Traits]) -> float:
    return round(mean_size(stories, "shots"), DIGITS)


def _write_run(whole: ShotSet, part: ShotSet, facts: Mapping[str, StoryFacts], out: Path, time: str) -> None:
    """Write ``scripts.jsonl``, ``run.json`` and ``report.json`` beside the tree of a subset.

    Who made what goes along where the whole has it: where it is a run or a release.
    """
    root = whole.folder.parent if whole.folder.name == FOLDER else whole.folder
    scripts = root / SHOT_SCRIPTS
    before = whole_rows(scripts, ShotRecord) if scripts.is_file() else ()
    known = {record.story_id: record for record in before}
    write_atomic(out / SHOT_SCRIPTS, jsonl_lines(given_records(part, facts, known)))
    path, name = (
        text.encode("utf-8", "backslashreplace").decode("utf-8")
        for text in (str(root.absolute()), root.absolute().name)
    )
    entry = SourceEntry(role=ROLE, name=name, path=path, sha256=whole.sha256)
    write_imported_run(out, IMPORTED_SHOTS, entry, SHOT_SCRIPTS, time)
