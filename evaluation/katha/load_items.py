"""Stage: one item per story, method and seed: the record, and the files of the storyboard that is shown.

Which stories of a release are judged is said here. Files are found and read, not decoded: that is done once,
where they are encoded (:mod:`.judging`). Generations that cannot be judged are items too: they are
counted, and their stories are still asked about under text-only evidence.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import ConfigError, InputError, UserError
from ...media.video import is_video
from ...releases.loading import Release, load
from ...releases.subsets import FOLDER
from ...schemas.canonical import Json, digest
from ...schemas.katha import Scene, StoryRecord, Variant
from ...schemas.paths import JSONL_FILES, VOTE_FILES
from ...schemas.plain_files import explaining, parse_json, read_plain
from ..archive.archive import release_sha256
from ..judging.settings import SelectionSettings
from ..outputs.layout import Output, nothing_to_judge
from ..outputs.storyboards import Storyboards, can_be_shown, check_outputs

# -- What a contrastive variant tells, as a record of its own


def variant_story(record: StoryRecord, variant: Variant) -> StoryRecord:
    """Return what a variant tells, as a record of its id.

    The changed scene has the variant's text and prompts made of it; what else was said of that scene is not
    known of the variant and left out, but for the characters, which a variant keeps. The record has no title,
    transitions or moral label: those are of the base story. Its questions are the variant's own.
    """
    scenes = [
        _changed(scene, record, variant) if scene.scene_index == variant.changed_scene_id else scene
        for scene in record.scenes
    ]
    none: Json = {"title": "", "moral_label": None, "transitions": (), "questions": variant.questions or ()}
    told = {"story_id": variant.variant_id, "story_text": variant.contrastive_story_text}
    return record.model_copy(update={**none, **told, "scenes": tuple(scenes)})


def variant_stories(release: Release, records: Iterable[StoryRecord]) -> list[StoryRecord]:
    """Return the active variants of stories as records; see :func:`variant_story`."""
    return [
        variant_story(record, variant)
        for record in records
        for variant in release.variants_of[record.story_id]
        if variant.has_variant
    ]


def _changed(scene: Scene, record: StoryRecord, variant: Variant) -> Scene:
    from ...builders.katha.draft_scenes import looks_in, short_prompt, with_prompts

    story = {"title": record.title, "language": record.language, "normalized_text": record.story_text}
    text = variant.contrastive_scene_text
    unknown: Json = {"objects": (), "action": None, "emotion": None, "visual_must_show": ()}
    changed = scene.model_copy(
        update={"scene_text": text, "state": None, "visual_evidence": None, **unknown}
    ).as_json()
    looks = looks_in([scene.as_json()])
    prompts = with_prompts(changed, story, len(record.scenes), looks)
    lead = _lead(text, scene.scene_text, record.language)
    return Scene.model_validate({**prompts, "generation_prompt": short_prompt(changed, story, lead, looks)})


def _lead(text: str, before: str, language: str) -> str:
    """Return the sentences of a changed scene that fit, those that are new first."""
    from ...builders.katha.draft_scenes import LIMIT, clip_tokens
    from ...builders.text.segments import sentence_spans

    sentences = [text[start:end] for start, end in sentence_spans(text, language)]
    lead = ""
    for sentence in sorted(sentences, key=before.__contains__):
        words = sentence.split() if not lead else [sentence]
        while words and clip_tokens(" ".join([*lead.split(), *words])) > LIMIT:
            words = words[:-1]
        lead = " ".join(filter(None, [lead, *words]))
    return lead


# --

_NO_SUBSETS = (*JSONL_FILES, *VOTE_FILES[:1])
"""JSON Lines files of a release that list something else than chosen stories."""


def chosen_records(release: Release, settings: SelectionSettings) -> tuple[StoryRecord, ...]:
    """Return the records that the settings choose, in id order."""
    chosen = sorted(release.records, key=lambda record: record.story_id)
    if settings.split:
        _check("--split", settings.split, list(release.splits))
        chosen = [record for record in chosen if record.split in settings.split]
    if settings.stories:
        _check("--story", settings.stories, list(release.by_id))
        chosen = [record for record in chosen if record.story_id in settings.stories]
    if settings.subset is not None:
        listed = subset_ids(release.path, settings.subset)
        chosen = [record for record in chosen if record.story_id in listed]
    if not chosen:
        raise ConfigError(
            f"{release.path}", what="no story is left to judge",
            fix="choose another split, subset or story",
        )  # fmt: skip
    return tuple(chosen[: settings.limit])


def subset_ids(folder: Path, name: str) -> frozenset[str]:
    """Return the story ids that a subset file of a release lists.

    That is ``subsets/NAME.jsonl``, or ``NAME.jsonl`` for those that the paper names, such as
    ``strict_gold_400``.
    """
    places = (*folder.glob("*.jsonl"), *folder.glob(f"{FOLDER}/*.jsonl"))
    files = {one.stem: one for one in places if one.name not in _NO_SUBSETS}
    path = files.get(name)
    if path is None:
        raise InputError.one(
            f"--subset {name}",
            what="the release has no such subset" if files else "the release has no subsets",
            fix=f"use one of: {', '.join(sorted(files))}" if files else "leave --subset out",
        )
    ids, problems = set(), []
    for number, line in enumerate(_lines(path), 1):
        try:
            ids.add(str(parse_json(line)["story_id"]))
        except (ValueError, TypeError, KeyError) as error:
            problems.append(
                UserError(
                    f"{path}:{number}",
                    what=f"the line is not a JSON object with story_id: {str(error)[:100]}",
                    fix="choose another subset, or fetch the release again",
                )
            )
    if problems:
        raise InputError(problems)
    return frozenset(ids)


def _lines(path: Path) -> list[bytes]:
    with explaining(path, "choose another subset", of=OSError):
        return read_plain(path, follow=True).splitlines()


def _check(option: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in known]
    if missing:
        there = ", ".join(known[:10]) + (" ..." if len(known) > 10 else "")
        raise ConfigError(
            option,
            what=f"the release has no {', '.join(missing)}",
            fix=f"use some of: {there}",
        )


RELEASE, OUTPUTS = "release", "outputs"
"""Roles of the sources."""

SPEC = StageSpec(
    name="load_items",
    version=8,
    shape="expand",
    reads=("sources",),
    writes=("record", "variants", "shown", "about"),
    settings=SelectionSettings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, method and seed, by method."""
    return generations(item, tools, load)


def generations(item: Item, tools: Tools, read: Callable[[Path], Release]) -> Iterator[Child]:
    """Yield what :func:`run` yields; ``read`` reads a release of any kind as stories with questions."""
    release = read(tools.of_role(item, RELEASE)[0])
    records = chosen_records(release, tools.own(SelectionSettings))
    identity = {"sha256": release_sha256(release.path), "version": release.version}
    content = [source["sha256"] for source in item["sources"]]
    for report in _checked_once(release, records, tools.of_role(item, OUTPUTS), content):
        about = {"release": identity, "outputs": report.about() | {"path": None}}
        for shown in _generations(report):
            record = release.by_id[shown["story_id"]]
            fields = {
                "record": record.as_json(),
                "variants": [one.as_json() for one in release.variants_of[record.story_id]],
                "shown": shown,
                "about": about,
            }
            yield Child(item_id(shown), Made(fields))
            if tools.own(SelectionSettings).variant_questions:
                yield from _about_variants(release, record, shown, about)
        yield from _of_variants(report, release, about)


def _about_variants(
    release: Release, record: StoryRecord, shown: dict[str, Json], about: Json
) -> Iterator[Child]:
    """Yield one child per variant with questions: its text, and the storyboard of its base story."""
    for variant in release.variants_of[record.story_id]:
        if variant.has_variant and variant.questions:
            fields = {
                "record": variant_story(record, variant).as_json(), "variants": [], "shown": shown,
                "about": {**about, "variant": variant.variant_id},
            }  # fmt: skip
            name = f"{shown['story_id']}/{variant.variant_id}"
            yield Child(item_id({**shown, "story_id": name}), Made(fields))


def _of_variants(report: Storyboards, release: Release, about: Json) -> Iterator[Child]:
    """Yield one child per valid storyboard of a variant: the pair is asked about it, and nothing else."""
    variants = {variant.variant_id: variant for variant in release.variants}
    for board in report.variants:
        if board.codes:
            continue
        variant = variants[board.unit]
        record = release.by_id[variant.base_story_id].as_json()
        shown = {**_shown(report, board), "story_id": variant.base_story_id, "variant": board.unit}
        fields = {
            "record": {**record, "questions": [], "moral_label": None},
            "variants": [variant.as_json()],
            "shown": shown,
            "about": about,
        }
        yield Child(item_id({**shown, "story_id": board.unit}), Made(fields))


_LAST: dict[str, list[Storyboards]] = {}


def _checked_once(
    release: Release, records: Sequence[StoryRecord], folders: Sequence[Path], content: Sequence[str]
) -> list[Storyboards]:
    """Check the outputs, unless this process has just done so: a run is rehearsed before it is executed."""
    ids = [record.story_id for record in records]
    key = digest([ids, list(content), [str(folder) for folder in folders]])
    if key not in _LAST:
        reports = checked_outputs(release, records, folders)
        _LAST.clear()
        _LAST[key] = reports
    return _LAST[key]


def checked_outputs(
    release: Release, records: Sequence[StoryRecord], folders: Sequence[Path]
) -> list[Storyboards]:
    """Return the reports on the outputs of every method, sorted by method; no picture is decoded."""
    variants = variant_stories(release, records)
    known = [*release.records, *variant_stories(release, release.records)]
    reports = [
        check_outputs(folder, records, known=known, variants=variants, decode=False) for folder in folders
    ]
    methods = [report.method for report in reports]
    twice = sorted({method for method in methods if methods.count(method) > 1})
    if twice:
        raise ConfigError(
            "--outputs", what=f"several folders give outputs of the method {', '.join(twice)}",
            fix="rename a folder, or name the method in its outputs.json",
        )  # fmt: skip
    if not any(can_be_shown(board) for report in reports for board in report.valid):
        looked = [check_outputs(folder, records, known=release) for folder in folders]
        raise nothing_to_judge("storyboard", looked)
    return sorted(reports, key=lambda report: report.method)


def _generations(report: Storyboards) -> Iterator[dict[str, Json]]:
    for board in (*report.valid, *report.invalid):
        yield _shown(report, board)


def _shown(report: Storyboards, board: Output) -> dict[str, Json]:
    """Return what is shown of one generation; of a video each frame shows the scene that the video does."""
    films = [is_video(panel.file) for panel in board.files]
    sampled: dict[str, Json] = {"sampled": report.frames} if any(films) else {}
    return {
        "method": report.method, "story_id": board.unit, "seed": board.seed,
        "invalid": list(board.codes) or None,
        "files": [str(panel.file.absolute()) for panel in board.files],
        "sha256": [panel.sha256 for panel in board.files],
        "scenes": [
            panel.scene
            for panel, is_film in zip(board.files, films, strict=True)
            for _ in range(report.frames if is_film else 1)
        ],
        **sampled,
    }  # fmt: skip


def item_id(shown: Mapping[str, Json]) -> str:
    """Return the id of the item for one generation: method, story and, where there are several, seed."""
    seed = "" if shown["seed"] is None else f"/seed_{shown['seed']}"
    return f"{shown['method']}/{shown['story_id']}{seed}"


def story_in(item: str) -> str:
    """Return the story, or variant, that an item's id names: all methods share questions about its text."""
    *_, last, seed = f"/{item}".rsplit("/", 2)
    return last if seed.startswith("seed_") else seed
