"""Storyboards as people see them: one with questions, one to rate, or two side by side.

Pictures come from an evaluation, as its judges saw them, or from folders of outputs. What a person sees
besides is decided by the condition: under ``image`` nothing (KathaTrace, F.1 and H.1), under ``text`` the
story alone, under ``text_image`` both.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import ConfigError, InputError
from ....evaluation.archive.archive import (
    JUDGEMENTS,
    Archive,
    check_hash,
    read_manifest,
    release_sha256,
    sources_of,
)
from ....evaluation.report.showing import Place, Shown, pictures_of_outputs, pictures_of_run
from ....releases.loading import Release
from ....schemas.canonical import Json, digest, sha256_file
from ....schemas.katha import StoryRecord
from ..items import Drawn, Part
from .source import CONDITIONS, Drawing, DrawOptions, Material, Source, What, draw_methods, known_only

LABELLED = "moral"
"""Dimension of the questions that are answered with a moral label."""
BRIDGE = "bridge"
CHOOSING = ("methods", "stories", "splits", "limit", "per_prompt", "outputs", "release")


@dataclass(frozen=True)
class Boards:
    """Stories with their storyboards."""

    records: tuple[StoryRecord, ...]  # the stories that were chosen, in the order of the release
    # method, story and seed -> its pictures; only storyboards that can be shown, of chosen methods
    shown: Mapping[Place, Shown] = field(repr=False)
    source: dict[str, Json]  # what they come from

    def of(self, story_id: str) -> list[Place]:
        """Return the storyboards of a story, by method and seed."""
        return sorted((generation for generation in self.shown if generation[1] == story_id), key=_by_name)

    def drawn(self, options: DrawOptions) -> dict[str, list[Place]]:
        """Return story -> the storyboards that people see, after the draw of methods."""
        boards = {record.story_id: self.of(record.story_id) for record in self.records}
        if options.per_prompt is None:
            return boards
        there = {story: {method for method, _, _ in generations} for story, generations in boards.items()}
        chosen = set(draw_methods(there, options.per_prompt, random.Random(options.seed)))
        return {
            story: [generation for generation in generations if (story, generation[0]) in chosen]
            for story, generations in boards.items()
        }


def read_boards(material: Material, *, pictures: bool = True) -> Boards:
    """Return the stories and storyboards of an evaluation, or of a release with folders of outputs."""
    options, judged, source = material.options, dict[str, Json](), dict[str, Json]()
    if material.what == "evaluation":
        archive = Archive(read_manifest(material.path), ())
        release = judged_release(material, archive)
        judged = archive.manifest.subject.get("methods", {})
        source = {"judgements_sha256": sha256_file(material.path / JUDGEMENTS)}
    else:
        release = material.load(material.path)
    records = chosen_records(release, options)
    shown: Mapping[Place, Shown] = {}
    if options.outputs:
        shown = pictures_of_outputs(options.outputs, release.records, judged).shown
    elif material.what == "evaluation":
        shown = pictures_of_run(material.path).shown
    shown = {generation: board for generation, board in shown.items() if board.files}
    methods = {method for method, _, _ in shown}
    known_only("methods", options.methods, methods, "method")
    stories = {record.story_id for record in records}
    shown = {
        generation: board
        for generation, board in shown.items()
        if generation[1] in stories and (not options.methods or generation[0] in options.methods)
    }
    if pictures and not shown:
        raise _no_pictures(material)
    source = {
        "kind": material.what, "path": material.path.resolve().name,
        "release_sha256": release_sha256(release.path), **source, "pictures_sha256": _pictures_sha256(shown),
    }  # fmt: skip
    return Boards(records, shown, source)


def judged_release(material: Material, archive: Archive) -> Release:
    """Return the release that an evaluation judged: the given one, or where the evaluation found it."""
    named = dict(sources_of(material.path, archive.manifest))
    folder = material.options.release or named.get("release")
    if folder is None:
        raise ConfigError(
            "--release", what=f"{material.path} does not say where the release is that it judged",
            fix="give the folder of the release",
        )  # fmt: skip
    release = material.load(folder)
    check_hash(archive, "release", release_sha256(release.path), str(folder))
    return release


def chosen_records(release: Release, options: DrawOptions) -> tuple[StoryRecord, ...]:
    """Return the stories that the options choose, in the order of the release."""
    known_only("stories", options.stories, [record.story_id for record in release.records], "story")
    known_only("splits", options.splits, {record.split for record in release.records}, "split")
    return tuple(
        record
        for record in release.records
        if (not options.stories or record.story_id in options.stories)
        and (not options.splits or record.split in options.splits)
    )[: options.limit]


def _no_pictures(material: Material) -> InputError:
    what = "there are no pictures of storyboards in it"
    fix = "give the outputs of each method: --outputs FOLDER"
    if material.what == "evaluation":
        fix += ", or the run folder of the evaluation in place of a copy of its archive"
    return InputError.one(str(material.path), what=what, fix=fix)


def _pictures_sha256(shown: Mapping[Place, Shown]) -> str:
    """Return what identifies the pictures: generations and content."""
    return digest(
        [
            [*generation, [sha256_file(file) if file.is_file() else None for file in board.files]]
            for generation, board in sorted(shown.items(), key=lambda entry: _by_name(entry[0]))
        ]
    )


def _by_name(generation: Place) -> tuple[str, str, bool, int]:
    method, unit, seed = generation
    return method, unit, seed is not None, seed or 0


def conditions_of(options: DrawOptions, usual: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the evidence conditions that were chosen."""
    known_only("conditions", options.conditions, allowed, "evidence condition here called")
    return options.conditions or tuple(usual)


def text_of(record: StoryRecord) -> dict[str, Json]:
    """Return a story as people read it: the texts of its scenes, without its title, as judges get it."""
    return {"scenes": [scene.scene_text for scene in record.scenes]}


def draw_questions(material: Material) -> Drawing:
    """Draw a story's questions under each condition: text once, the others for every storyboard."""
    options = material.options
    needs = bool(options.outputs) or material.what == "evaluation"
    conditions = conditions_of(options, CONDITIONS if needs else ("text",), CONDITIONS)
    boards = read_boards(material, pictures=set(conditions) != {"text"})
    generations = boards.drawn(options)
    asking = [record for record in boards.records if record.questions]
    items = [
        item for record in asking for item in _asked(record, generations[record.story_id], boards, conditions)
    ]
    return drawing_of(material, items, boards)


def _asked(
    record: StoryRecord, generations: Sequence[Place], boards: Boards, conditions: Sequence[str]
) -> Iterator[Drawn]:
    parts = {
        name: tuple(
            Part(id=question.question_id, text=question.question)
            for question in record.questions
            if (question.question_type == LABELLED) == (name == "label_questions")
        )
        for name in ("questions", "label_questions")
    }
    if record.moral_label is not None:
        parts["moral"] = (Part(id=record.story_id, text=""),)
    mark = record.provenance.source_annotations_sha256
    for condition in conditions:
        texts = {} if condition == "image" else text_of(record)
        shown: Sequence[Place | None] = [None] if condition == "text" else generations
        for generation in shown:
            methods, seed = ((), None) if generation is None else (generation[:1], generation[2])
            yield Drawn(
                record.story_id, record.story_id, texts, sides_of(boards, generation), parts,
                condition=condition, methods=methods, seed=seed, digest=mark,
            )  # fmt: skip


def sides_of(boards: Boards, *generations: Place | None) -> tuple[tuple[Path, ...], ...]:
    """Return the pictures of some storyboards, a side each."""
    return tuple(boards.shown[generation].files for generation in generations if generation is not None)


def draw_boards(material: Material) -> Drawing:
    """Draw every storyboard by itself; under text_image with its story and intended moral label."""
    conditions = conditions_of(material.options, ("image",), ("image", "text_image"))
    boards = read_boards(material)
    generations = boards.drawn(material.options)
    items = [
        Drawn(
            record.story_id, record.story_id, {} if condition == "image" else _with_label(record),
            sides_of(boards, generation), condition=condition, methods=(generation[0],), seed=generation[2],
        )
        for record in boards.records for condition in conditions
        for generation in generations[record.story_id]
    ]  # fmt: skip
    return drawing_of(material, items, boards)


def _with_label(record: StoryRecord) -> dict[str, Json]:
    return {**text_of(record), "moral": record.moral_label}


def draw_pairs(material: Material) -> Drawing:
    """Draw two storyboards of a story with one seed side by side, for every pair of methods that is given."""
    boards = read_boards(material)
    methods = {method for method, _, _ in boards.shown}
    pairs = [_methods_of(pair, methods) for pair in material.options.pairs]
    if not pairs:
        there = sorted(methods)
        example = f"--pair {there[0]}:{there[1]}" if len(there) > 1 else "--pair METHOD:BASELINE"
        raise ConfigError(
            "--pair", what="which methods are compared is not said",
            fix=f"give them, such as {example}: positive values favour the first",
        )  # fmt: skip
    items, lost = [], list[str]()
    for method, baseline in pairs:
        both = [
            _side_by_side(record, generation, (baseline, *generation[1:]), boards)
            for record in boards.records
            for generation in boards.of(record.story_id)
            if generation[0] == method and (baseline, *generation[1:]) in boards.shown
        ]
        stories = len({item.story for item in both})
        if stories < len(boards.records):
            lost.append(
                f"{method} and {baseline}: {stories} of {len(boards.records)} stories have boards of both"
            )
        items += both
    return drawing_of(material, items, boards, tuple(lost))


def _methods_of(pair: str, methods: set[str]) -> tuple[str, str]:
    """Return the two methods of a pair; names may have colons in them."""
    cuts = [number for number, letter in enumerate(pair) if letter == ":"]
    known = [(pair[:cut], pair[cut + 1 :]) for cut in cuts if {pair[:cut], pair[cut + 1 :]} <= methods]
    if known and known[0][0] != known[0][1]:
        return known[0]
    raise ConfigError(
        f"--pair {pair}", expected=f"two of the methods {', '.join(sorted(methods))}", found=repr(pair),
        fix="name two of them as METHOD:BASELINE",
    )  # fmt: skip


def _side_by_side(record: StoryRecord, generation: Place, other: Place, boards: Boards) -> Drawn:
    bridged = has_bridge(boards.shown[generation]) or has_bridge(boards.shown[other])
    return Drawn(
        record.story_id, record.story_id, sides=sides_of(boards, generation, other),
        parts={BRIDGE: (Part(id="Q14", text=""),)} if bridged else {}, condition="image",
        methods=(generation[0], other[0]), seed=generation[2], stratum=BRIDGE if bridged else "",
    )  # fmt: skip


def has_bridge(board: Shown) -> bool:
    """Return whether a storyboard has a bridge frame; False where it is not known what its pictures show."""
    return None in board.scenes and set(board.scenes) != {None}


def drawing_of(
    material: Material, items: Sequence[Drawn], boards: Boards, short: tuple[str, ...] = ()
) -> Drawing:
    if not items:
        what = "none of the chosen stories has what the task needs"
        fix = "choose other stories or methods; fabula outputs check tells what is there"
        raise InputError.one(str(material.path), what=what, fix=fix)
    return Drawing(tuple(items), boards.source, short)


_TAKES: Mapping[What, tuple[str, ...]] = {"evaluation": ("katha",), "release": ()}
_WANTED = "an evaluation of storyboards (fabula evaluate stories), or a release of stories and --outputs"
QUESTIONS = Source(
    "questions about stories", _TAKES, f"{_WANTED} (none for text alone)", (*CHOOSING, "conditions"),
    draw_questions,
)  # fmt: skip
BOARDS = Source("storyboards", _TAKES, _WANTED, (*CHOOSING, "conditions"), draw_boards)
PAIRS = Source(
    "pairs of storyboards", _TAKES, _WANTED,
    tuple(name for name in (*CHOOSING, "pairs") if name != "per_prompt"), draw_pairs,
)  # fmt: skip
