"""How stories become shot scripts: what may be chosen, and what that asks of the engine."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ...engine.stage import Item, Tools
from ...errors import InputError, UserError, mismatch
from ...media.images import Picture
from ...releases.loading import read_rows
from ...releases.shots.imports import with_provenance, write_facts
from ...releases.shots.tree import (
    FOLDER,
    IMAGES,
    MOST_REFERENCES,
    PICTURES,
    REFERENCES,
    SCRIPT,
    SHOT_SCRIPTS,
    STORIES,
    SYSTEM_FILES,
    ShotSet,
    ShotStory,
    is_safe_name,
    read_reference,
    read_shot_set,
    script_bytes,
)
from ...schemas.canonical import Json, jsonl_lines, sha256_bytes, write_atomic, writing
from ...schemas.paths import Steps, quoted_path
from ...schemas.plain_files import below, composed, open_plain
from ...schemas.shots import ReferenceImage, ShotRecord, ShotScript
from ...schemas.values import Issue, Own
from ...validators.report import IssueBin, ValidationReport, label, show
from ...validators.shots.script_rules import FIELDS, check_plot, check_script, issue
from ..drafting import (
    Consequence,
    Drafting,
    Editing,
    StoryOptions,
    estimate,
    listed,
    planner_texts,
    tell_plan,
)
from ..step import added_fields, keeping_added, with_packages
from ..text.boundaries import neighbour_of_moved
from ..text.segments import Renaming
from .apply_edits import apply_edit
from .cast import base_language
from .draft import editable_form, make_draft, official_script

if TYPE_CHECKING:
    from PIL.Image import Image

# -- The stages of the shot-script builder, in order, and the files that a finished run holds

STAGES = (
    f"{__package__}.load_stories",
    "fabula.builders.text.boundaries:analyze_story",
    f"{__package__}.script_parts:PLAN_SCRIPT",
    f"{__package__}.script_parts:PLAN_SHOTS",
    f"{__package__}.cast:WRITE_CHARACTERS",
    f"{__package__}.script_parts:PLACE_CHARACTERS",
    f"{__package__}.script_parts:DESCRIBE_SETTINGS",
    f"{__package__}.script_parts:DESIGN_PERSPECTIVES",
    f"{__package__}.script_parts:DESCRIBE_SHOTS",
    f"{__package__}.script_parts:NARRATE_PLOTS",
    f"{__package__}.cast:TRANSLATE_NAMES",
    f"{__package__}.cast:TRANSLATE_SCRIPT",
    f"{__package__}.script_parts:CLASSIFY_STORY",
    f"{__package__}.apply_edits",
    f"{__package__}.apply_edits:translate_edits",
    f"{__package__}.draft:assemble_scripts",
)

PRODUCERS, FINDINGS = "producers.jsonl", "findings.jsonl"
"""Who made which field of a script, and what the rules found in it: one line for each story."""
SPANS = "spans.jsonl"
"""The words of the story that each shot tells, where plots are narration and dialogue; else no such file."""

_ADDED = added_fields("shots", STAGES)

PIPELINE = Pipeline(
    name="shots",
    stages=with_packages("shots", STAGES, before="apply_edits"),
    finish=f"{__name__}:finish",
    final_fields=_ADDED,
    identity=f"{__package__}.load_stories:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the official tree, the facts beside it, who made what, and what the rules found.

    Reference images that were put into the tree stay. The script of a story that is no longer built goes.
    """
    tree = folder / FOLDER
    tree.mkdir(exist_ok=True)
    drafted = keeping_added(folder, items, _ADDED)
    records = sorted(((item.id, item["record"]) for item in drafted), key=lambda pair: int(pair[1]["number"]))
    for _, record in records:
        folder_ = tree / record["number"]
        folder_.mkdir(exist_ok=True)
        write_atomic(folder_ / SCRIPT, [script_bytes(_script(record))])
    built = {record["number"] for _, record in records}
    for folder_ in tree.iterdir():
        if folder_.name.isdecimal() and folder_.name not in built:
            (folder_ / SCRIPT).unlink(missing_ok=True)
            if not any(folder_.iterdir()):
                folder_.rmdir()
    write_atomic(tree / STORIES, jsonl_lines([record["facts"] for _, record in records]))
    write_atomic(folder / SHOT_SCRIPTS, jsonl_lines(_line(key, record) for key, record in records))
    for name, column in ((PRODUCERS, "producers"), (FINDINGS, "findings")):
        rows = [{"id": key, "story_id": record["number"], column: record[column]} for key, record in records]
        write_atomic(folder / name, jsonl_lines(rows))
    narrated = [
        {"id": key, "story_id": record["number"], "spans": record["spans"]}
        for key, record in records
        if "spans" in record
    ]
    if narrated:
        write_atomic(folder / SPANS, jsonl_lines(narrated))
    else:
        (folder / SPANS).unlink(missing_ok=True)


def _line(key: str, record: Json) -> Json:
    """Return what ``scripts.jsonl`` has of a story."""
    return ShotRecord(
        story_id=record["number"],
        source_id=key,
        order=tuple(record["order"]),
        script=_script(record).as_json(),
        facts=record["facts"],
        producers=tuple(record["producers"]),
    ).as_json()


def _script(record: Json) -> ShotScript:
    """Return a record's script, its characters in the order of the cast; stored objects have none."""
    script = record["script"]
    characters = {key: script["Characters"][key] for key in record["order"]}
    return ShotScript.model_validate({**script, "Characters": characters})


# -- A script while it is corrected: its draft under corrections, what follows from one, what the rules find


def first_draft(reads: Mapping[str, Json], tools: Tools) -> Json:
    """Return a script's draft without any correction; see :mod:`.draft`."""
    return make_draft(reads)


def with_edit(reads: Mapping[str, Json], draft: Json, edit: Json) -> Json:
    """Return a draft with a correction; see :func:`.apply_edits.apply_edit`."""
    return apply_edit(draft, edit, _base(reads))


def _base(reads: Mapping[str, Json]) -> str:
    return base_language(reads["story"]) or "en"


def form_of(reads: Mapping[str, Json], draft: Json) -> Json:
    """Return a draft by the names of ``story.json``, as people see and correct it."""
    return editable_form(draft, _base(reads))


def consequence_of(reads: Mapping[str, Json], draft: Json, steps: Steps, new: Json) -> Consequence:
    """Return what else a usual correction changes.

    What one shot takes of the story, its neighbour gives; a name that changes does so in the texts of its
    language that use it.
    """
    base = _base(reads)
    match steps:
        case ("Shots", int(), field, language) if (field, language) == (FIELDS["plot"], base) and (
            "spans" in draft
        ):
            return Consequence({})
        case ("Shots", int(number), field, language) if (field, language) == (FIELDS["plot"], base):
            moved = neighbour_of_moved(reads["story"]["normalized_text"], draft["plot"], number, new)
            if moved is not None:
                return Consequence({quoted_path(("Shots", moved[0], FIELDS["plot"], base)): moved[1]})
        case ("Characters", str(key), "name_en" | "name_ch" as field):
            verbatim = "spans" not in draft
            return _renamed(editable_form(draft, base), key, str(field), new, base if verbatim else None)
    return Consequence({})


def _renamed(form: Json, key: str, field: str, new: str, base: str | None) -> Consequence:
    """Return what follows from a name; plots in the language ``base`` are the story's own words."""
    before, language = form["Characters"][key][field], field.removeprefix("name_")
    if not before or before == new:
        return Consequence({})
    others = (sheet[field] for other, sheet in form["Characters"].items() if other != key)
    renaming = Renaming(before, new, tuple(filter(None, others)))
    texts = {path: text for path, text in _texts(form, language) if text}
    changed = {path: renaming(text) for path, text in texts.items() if renaming(text) != text}
    shots = range(len(form["Shots"]) if base else 0)
    plots = {quoted_path(("Shots", n, FIELDS["plot"], f"{base}")) for n in shots}
    kept = sorted(plots & changed.keys())
    notes = [
        f"The plots are the story's own words, so {show(before)} stays in {len(kept)} of them, such as"
        f" {path}. To change the story itself, correct its source."
        for path in kept[:1]
    ]
    return Consequence({path: text for path, text in changed.items() if path not in plots}, tuple(notes))


def _texts(form: Json, language: str) -> Iterator[tuple[str, str | None]]:
    """Yield path and text of everything in a language that may name a character."""
    for key, sheet in form["Characters"].items():
        yield quoted_path(("Characters", key, f"prompt_{language}")), sheet[f"prompt_{language}"]
    for number, shot in enumerate(form["Shots"]):
        for name in (FIELDS["plot"], FIELDS["setting"], FIELDS["static"]):
            yield quoted_path(("Shots", number, name, language)), shot[name][language]


def issues_in(reads: Mapping[str, Json], draft: Json) -> list[Issue]:
    """Return what the rules about one script find in the one that a draft makes.

    A translation that will be asked for again counts as it was before: nobody knows the new one yet.
    """
    base, where = _base(reads), label(reads["story"]["id"])
    first = {**reads["named"], **reads["translation"]}
    other = {part: texts.copy() for part, texts in draft["other"].items()}
    for part, key in draft["stale"]:
        other[part][key] = first[part][key]
    present = {key for keys in draft["onstage"] for key in keys}
    cast = [character for character in draft["cast"] if character["key"] in present]
    made = official_script(base, {**draft, "other": other}, cast, draft["labels"]["story_type"])
    script = ShotScript.model_validate(made)
    text = reads["story"]["normalized_text"]
    return [
        *check_script(script, where),
        *(() if "spans" in draft else check_plot(script, text, base, where)),
    ]


EDITING = Editing(first_draft, with_edit, form_of, consequence_of, issues_in)


# -- How stories become shot scripts

TRANSLATING = ("translate_names.languages", "translate_script.languages", "translate_edits.languages")


@dataclass(frozen=True, slots=True)
class ShotOptions(StoryOptions):
    """How to build shot scripts. What every run may choose comes as keywords.

    Attributes:
        scripts: JSONL with what authors give about stories: labels and characters; see docs/shots.md.
        one_prompt: have a model write each script with one prompt, five fields for each shot.
        narration: have a model rewrite plots as narration and dialogue; spans.jsonl keeps the story's words.
        shots: number of shots of every story, 4 to 30 [as set, else by its length].
        languages: languages to write, ``en`` and ``ch``, with a comma between them [as set, else both].
    """

    scripts: Path | None = None
    one_prompt: Annotated[bool | None, Sets("plan_script.one_prompt")] = None
    narration: Annotated[bool | None, Sets("narrate_plots.narration")] = None
    shots: Annotated[int | None, Sets("plan_shots.shots", "plan_script.shots")] = None
    languages: Annotated[Sequence[str] | None, Sets(*TRANSLATING)] = None


def shot_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions
) -> RunRequest:
    scripts = [] if options.scripts is None else [Source("scripts", Path(options.scripts))]
    stories = listed(sources, "stories", "stories")
    return options.drafting(PIPELINE, out, [*stories, *scripts], planner_texts(PIPELINE, options))


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, plan=estimate),
    shot_request,
    ShotOptions,
    EDITING,
    "copy its folder ViStory, correct NN/story.json there, and give the copy to"
    " `fabula import vistory`: facts and rights of images come along",
    of_stories=True,
)
"""How shot scripts are drafted; the run folder then holds the official tree in ``ViStory/``."""
build_shots = DRAFTING.build


# -- Reference images from folders into the tree of a run: ``<story>/<character>/*.jpg``, checked one by one
#
# Beside the folders may lie ``references.jsonl`` with the source and the rights of single files. An image
# without rights, one that cannot be decoded and one that the story has already are reported and left out; the
# others are copied byte for byte and noted in the tree's own ``references.jsonl``.

_problem = partial(mismatch, fix="see docs/shots.md")

Sees = Callable[["Image"], bool]
"""Whether a face or a character is found in a picture."""

_ENDINGS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}


class Terms(Own):
    """Where an image comes from, and on what ground it may be used; a line of ``references.jsonl``."""

    file: str = Field(default="", description="Path below the folder that is imported.")
    source: str | None = Field(default=None, description="Where it comes from.")
    rights: str | None = Field(default=None, description="On what ground it may be used.")


@dataclass
class _Import:
    folder: Path  # what is imported
    shots: ShotSet  # the set that takes the images
    terms: Mapping[str, Terms]  # file -> its own terms; ``default`` for all others
    default: Terms
    sees: Sees | None  # looks at each picture, if a detector is asked
    issues: IssueBin = field(default_factory=IssueBin)  # takes the findings; ``made`` the images that are new
    made: list[ReferenceImage] = field(default_factory=list)

    def story(self, path: Path, story: ShotStory) -> None:
        inner = path / IMAGES
        path = inner if inner.is_dir() and IMAGES not in story.script.characters else path
        seen = {picture.sha256: picture.file for some in story.references.values() for picture in some}
        known = {composed(key.split("/")[0]) for key in story.script.characters}
        for entry in sorted(path.iterdir()):
            if composed(entry.name) not in known and entry.name not in SYSTEM_FILES:
                where = entry.relative_to(self.folder).as_posix()
                near = [key for key in known if key.strip().casefold() == entry.name.strip().casefold()]
                hint = f"; {show(near[0])} differs only in space or case" if near else ""
                self.issues.add(
                    issue("unknown-folder", where, "$", f"{show(entry.name)} is no character{hint}")
                )
        for key in story.script.characters:
            if is_safe_name(key) and (named := below(path, key)).is_dir():
                self.character(named, story, key, seen)

    def character(self, folder: Path, story: ShotStory, key: str, seen: dict[str, str]) -> None:
        """Import the images of one character; ``seen`` holds the hashes of the story's images."""
        count = len(story.references[key])
        for path in sorted(folder.iterdir()):
            name = composed(path.relative_to(self.folder).as_posix())
            if path.name in SYSTEM_FILES or path.is_dir():
                continue
            if path.suffix.lower() not in PICTURES or not path.resolve().is_relative_to(
                self.folder.resolve()
            ):
                self.issues.add(issue("stray-file", name, "$", "expected an image, such as 00.jpg"))
                continue
            read = read_reference(path, name, self.issues)
            if read is None or not self._usable(name, *read, seen):
                continue
            if count == MOST_REFERENCES:
                message = f"expected 1 to {MOST_REFERENCES} images, found more; this and later ones stay out"
                self.issues.add(issue("many-references", name, "$", message))
                return
            self._copy(story, key, name, *read)
            seen[sha256_bytes(read[0])] = name
            count += 1

    def _usable(self, name: str, data: bytes, picture: Picture, seen: Mapping[str, str]) -> bool:
        first = seen.get(sha256_bytes(data))
        if first is not None:
            self.issues.add(issue("repeated-picture", name, "$", f"the same file as {first}"))
            return False
        if not (self._terms(name).rights or "").strip():
            self.issues.add(issue("no-rights", name, "$", "nothing says on what ground it may be used"))
            return False
        if self.sees is not None and not self.sees(picture.image):
            self.issues.add(issue("nobody-seen", name, "$", "no face and no character was found in it"))
        return True

    def _terms(self, name: str) -> Terms:
        own = self.terms.get(name, self.default)
        return Terms(source=own.source or self.default.source, rights=own.rights or self.default.rights)

    def _copy(self, story: ShotStory, key: str, name: str, data: bytes, picture: Picture) -> None:
        folder = self.shots.folder / story.story_id / IMAGES / key
        taken = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
        number = next(number for number in range(len(taken) + 1) if f"{number:02d}" not in taken)
        target = folder / f"{number:02d}{_ENDINGS.get(picture.format, Path(name).suffix.lower())}"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(target, [data])
        terms = self._terms(name)
        self.made.append(
            ReferenceImage(
                story_id=story.story_id, character=key, sha256=sha256_bytes(data),
                file=target.relative_to(self.shots.folder / story.story_id).as_posix(),
                width=picture.width, height=picture.height, source=terms.source, rights=terms.rights,
            )
        )  # fmt: skip


def import_references(
    folder: Path, out: Path, default: Terms | None = None, sees: Sees | None = None
) -> ValidationReport:
    """Put reference images into a set of shot scripts.

    Returned: what was wrong, story by story, and how many images were taken.
    """
    if not folder.is_dir():
        raise InputError([_problem(str(folder), "a folder of stories' folders", "none")])
    shots, _ = read_shot_set(out)
    before = {(reference.story_id, reference.file): reference for reference in with_provenance(shots)}
    work = _Import(folder, shots, _terms(folder), default or Terms(), sees)
    with writing(shots.folder):
        for path, story in _places(folder, shots, _ids(out), work.issues):
            work.story(path, story)
        for reference in work.made:
            before[reference.story_id, reference.file] = reference
        write_facts(shots.folder, (), before.values())
    after, _ = read_shot_set(out)
    for story in after.stories:
        for key in (key for key, images in story.references.items() if not images):
            message = f"expected 1 to {MOST_REFERENCES} images, found none"
            work.issues.add(issue("no-reference", f"{story.story_id}/{IMAGES}/{key}", "$", message))
    return work.issues.report(str(folder), "references", {"images": len(work.made)})


def _places(
    folder: Path, shots: ShotSet, ids: Mapping[str, str], issues: IssueBin
) -> list[tuple[Path, ShotStory]]:
    """Return the folders of stories of the set; others are reported."""
    numbers = {int(story.story_id): story for story in shots.stories}
    places = []
    for path in sorted(folder.iterdir()):
        if path.name in (*SYSTEM_FILES, REFERENCES):
            continue
        number = ids.get(path.name, path.name)
        story = numbers.get(int(number)) if number.isascii() and number.isdigit() else None
        if story is None or not path.is_dir():
            message = "expected the folder of a story of the set, by its number or its id"
            issues.add(issue("stray-file", path.name, "$", message))
            continue
        places.append((path, story))
    return places


def _ids(out: Path) -> dict[str, str]:
    """Return the number of each story of a run by its id; nothing for a set that is no run."""
    path = out / PRODUCERS
    if not path.is_file():
        return {}
    with open_plain(path, follow=True) as lines:
        return {str(row["id"]): str(row["story_id"]) for row in map(json.loads, lines)}


def _terms(folder: Path) -> dict[str, Terms]:
    path = folder / REFERENCES
    if not path.is_file():
        return {}
    terms: dict[str, Terms] = {}
    problems: list[UserError] = []
    for read in read_rows(path, Terms, problems, "see docs/shots.md", follow=True):
        if not below(folder, read.file).is_file():
            problems.append(_problem(str(path), "a file of the folder", show(read.file)))
        terms[composed(read.file)] = read
    if problems:
        raise InputError(problems)
    return terms
