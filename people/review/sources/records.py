"""Records under review: stories with scenes, transitions, questions and variants (KathaTrace, Table 18).

A reviewer sees what the record says and nothing of how it came about: no producer, no check, no status. The
paths of its values are those that ``fabula edit`` takes of the draft of a run.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from ....builders.katha.drafts import LABELS
from ....engine.edits import run_ids
from ....errors import InputError
from ....evaluation.archive.archive import release_sha256
from ....releases.katha.form import FORM
from ....releases.target import finished_run
from ....schemas.canonical import Json, digest
from ....schemas.katha import Question, Scene, StoryRecord, Transition, Variant
from ....schemas.paths import ANNOTATIONS
from ....schemas.values import Own, vocabulary
from ....validators.katha.dataset import iter_bundles
from ....validators.katha.review_tables import UNSEEN
from ..items import Drawn, Part, Value
from .source import Drawing, Material, Source, known_only

Takes = Literal["text", "number", "texts", "numbers"]
FIXED = frozenset(
    (
        *("story_id", "scene_index", "scene_text", "from_scene", "to_scene", "question_id"),
        *(
            "variant_id",
            "base_story_id",
            "pair_id",
            "subset",
            "variant_kind",
            "narrative_type",
            "original_moral",
        ),
        *("generation_prompt", "generation_prompt_long"),
    )
)
"""Fields that cannot be corrected here: ids, copies of others, prompts that follow, and texts of scenes.

Where a scene begins changes two texts at once.
"""
WORDS = {
    "transition_type": "transition_type", "moral_target": "moral_label", "question_type": "question_type",
    "answerability": "answerability", "change_type": "change_type", "contrastive_moral": "moral_label",
    "moral_label": "moral_label", "narrative_type": "narrative_type",
}  # fmt: skip
"""Field -> the vocabulary of its words."""
_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class Story:
    """A record with its variants, the hash under which its release or run has it, and who made its fields."""

    record: StoryRecord
    variants: tuple[Variant, ...]
    sha256: str
    producers: Sequence[Mapping[str, Json]] = ()


def draw_records(material: Material) -> Drawing:
    """Draw records, with their variants, of a release or a finished run."""
    options = material.options
    stories, source = _of_run(material) if material.what == "run" else _of_release(material)
    known_only("stories", options.stories, [each.record.story_id for each in stories], "story")
    known_only("splits", options.splits, {each.record.split for each in stories}, "split")
    chosen = [
        each
        for each in stories
        if (not options.stories or each.record.story_id in options.stories)
        and (not options.splits or each.record.split in options.splits)
    ][: options.limit]
    if not chosen:
        what, fix = "there are no records in it", "give a release or a finished run that has some"
        raise InputError.one(str(material.path), what=what, fix=fix)
    return Drawing(tuple(map(drawn_record, chosen)), source)


def _of_release(material: Material) -> tuple[list[Story], dict[str, Json]]:
    release = material.load(material.path)
    stated = dict(release.info.get("records", {})).get(ANNOTATIONS, {})
    made = {line.id: [entry.as_json() for entry in line.fields] for line in release.producers}
    stories = [
        Story(
            record,
            release.variants_of[record.story_id],
            stated.get(record.story_id) or digest(record.as_json()),
            made.get(record.story_id, ()),
        )
        for record in release.records
    ]
    source = {
        "kind": "release", "path": material.path.resolve().name, "version": release.version,
        "release_sha256": release_sha256(release.path),
    }  # fmt: skip
    return stories, source


def _of_run(material: Material) -> tuple[list[Story], dict[str, Json]]:
    with finished_run(material.path, FORM) as run:
        stories = [
            Story(
                StoryRecord.model_validate(bundle["record"]),
                tuple(Variant.model_validate(variant) for variant in bundle["variants"]),
                digest(bundle["record"]),
                bundle["producers"],
            )
            for bundle in iter_bundles(material.path)
        ]
        named = run_ids(run.manifest)[0]
    stories.sort(key=lambda each: each.record.story_id)
    return stories, {"kind": "run", "path": material.path.resolve().name, "run": named}


def drawn_record(story: Story) -> Drawn:
    """Return a record as reviewers see it."""
    record = story.record
    lists: Mapping[str, Sequence[Own]] = {
        "scenes": record.scenes, "transitions": record.transitions, "questions": record.questions,
        "variants": sorted(story.variants, key=_draft_order),
    }  # fmt: skip
    values = [
        Value(path="$.narrative_type", label="narrative type", value=record.narrative_type,
              options=vocabulary("narrative_type").values),
        Value(path="$.moral_label", label="moral label", value=record.moral_label,
              options=vocabulary("moral_label").values),
        *(value for number, scene in enumerate(record.scenes) for value in
          _values(scene, f"$.scenes[{number}]", f"scene {number + 1}: ")),
    ]  # fmt: skip
    parts = {f"{name}_in_order": tuple(_parts(name, lists[name])) for name in lists if name != "scenes"}
    texts = {
        "title": record.title, "scenes": [scene.scene_text for scene in record.scenes],
        "narrative_type": record.narrative_type, "moral_label": record.moral_label,
        "scenes_shown": [{name: value for name, value in _shown(scene).items() if name not in SEEN}
                         for scene in record.scenes],
    }  # fmt: skip
    return Drawn(
        record.story_id, record.story_id, texts, parts=parts, values=tuple(values),
        stratum=record.narrative_type or "", digest=story.sha256, record=correctable(story),
    )  # fmt: skip


def correctable(story: Story) -> dict[str, Json]:
    """Return the draft and the story of a record as corrections of a run take them."""
    record = story.record.as_json()
    variants = [variant.as_json() for variant in sorted(story.variants, key=_draft_order)]
    draft = {name: record[name] for name in ("title", *LABELS, "scenes", "transitions", "questions")}
    story_fields = {
        "id": record["story_id"],
        "normalized_text": record["story_text"],
        "language": record["language"],
    }
    return {
        "draft": {**draft, "variants": variants, "producers": list(story.producers)},
        "story": {**story_fields, "title": record["title"]},
    }


def _draft_order(variant: Own) -> tuple[int, str]:
    """Return what orders variants as the draft has them: by the number at the end of their ids."""
    name = str(getattr(variant, "variant_id"))  # noqa: B009 - of any record type
    number = _NUMBER.search(name)
    return int(number[1]) if number else 0, name


def _parts(name: str, parts: Iterable[Own]) -> Iterator[Part]:
    for number, part in enumerate(parts):
        yield Part(
            id=_id_of(part), text=_title_of(part), detail=tuple(_details(part)),
            values=tuple(_values(part, f"$.{name}[{number}]")),
        )  # fmt: skip


def _id_of(part: Own) -> str:
    match part:
        case Transition():
            return f"{part.from_scene}-{part.to_scene}"
        case Question():
            return part.question_id
        case Variant():
            return part.variant_id
    raise TypeError(type(part).__name__)


def _title_of(part: Own) -> str:
    match part:
        case Transition():
            return f"{part.from_scene} → {part.to_scene}"
        case Question():
            return part.question
        case Variant():
            return part.semantic_delta
    raise TypeError(type(part).__name__)


def _details(part: Own) -> Iterator[str]:
    titled = {"question", "semantic_delta"}
    for name, value in _shown(part).items():
        if isinstance(part, Variant) and name == "questions":
            for asked in part.questions or ():
                yield f"{asked.question_type}: {asked.question} - {' | '.join(asked.accepted_answers)}"
        elif name not in titled and value not in (None, [], ""):
            yield f"{name.replace('_', ' ')}: {_written(value)}"


def _written(value: Json) -> str:
    return " | ".join(map(str, value)) if isinstance(value, list) else str(value)


HIDDEN = UNSEEN | {"question_id", "variant_id", "has_variant", "contrastive_story_text"}
"""Fields that are not shown among the details of a part; the last two can be corrected."""
SEEN = frozenset(("scene_index", "scene_text"))
"""Fields of a scene that the text of the story shows already."""


def _shown(part: Own) -> dict[str, Json]:
    """Return the fields of a part that reviewers see."""
    return {name: value for name, value in part.as_json().items() if name not in HIDDEN}


def _values(part: Own, path: str, begin: str = "") -> Iterator[Value]:
    """Yield the values of a part that may be corrected."""
    for name, value in part.as_json().items():
        if name in FIXED:
            continue
        if isinstance(part, Variant) and name == "questions":
            for number, asked in enumerate(part.questions or ()):
                where = f"{path}.questions[{number}]"
                yield from _values(asked, where, f"{begin}question {number + 1}: ")
            continue
        takes, optional = _taken(type(part), name)
        options: tuple[Json, ...] = ()
        if name in WORDS:
            options = (*vocabulary(WORDS[name]).values, *((None,) if optional else ()))
        elif name == "has_variant":
            options = (True, False)
        yield Value(
            path=f"{path}.{name}", label=f"{begin}{name.replace('_', ' ')}", value=value, takes=takes,
            options=options, optional=optional,
        )  # fmt: skip


REQUIRED = frozenset(
    ("action", "state", "transition_type", "causality", "consequence", "expected_change",
     "recoverability_target", "required_evidence")
)  # fmt: skip
"""Fields that may be null in a draft and not in a release."""


@cache
def _taken(kind: type[Own], name: str) -> tuple[Takes, bool]:
    """Return what a field takes, and whether nothing may stand there."""
    annotation = kind.model_fields[name].annotation
    options = [each for each in get_args(annotation) if each is not type(None)]
    nullable = type(None) in get_args(annotation) and name not in REQUIRED
    core = options[0] if type(None) in get_args(annotation) else annotation
    if core in (str, bool):
        return "text", nullable
    if core is int:
        return "number", nullable
    inner = get_args(core)[0]
    return ("texts" if inner is str else "numbers"), nullable or (inner is str and kind is Scene)


RECORDS = Source(
    "records of stories", {"release": ("katha",), "run": tuple(FORM.runs)},
    "a release of stories, or a finished run of fabula build stories", ("stories", "splits", "limit"),
    draw_records,
)  # fmt: skip
