"""Stage: contrastive variants: one scene changed in its meaning, everything else byte for byte the same.

Tables 15 and 31.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pydantic import Field

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ...schemas.values import vocabulary
from ...validators.katha.scene_rules import check_variant_questions, without_article
from ...validators.view import Part, Story, mentions
from ..step import PlannerSettings, Problems, Step, check_count, is_told, language, needed
from ..text.boundaries import Span, scene_spans, with_scene
from ..text.segments import share
from .drafts import NARRATIVE, Sketch
from .write_questions import ask_moral, questions_shown, read_question

LONGEST_GROWTH = 2
"""How many times as long as the scene a rewritten scene may be, beside a sentence."""

_SENTENCE = 200


class Settings(PlannerSettings):
    variants: int = Field(
        default=2, ge=0, le=10, description="Variants per story that a model writes; rules write none."
    )
    questions: int | None = Field(
        default=None, ge=0, le=3,
        description="Most questions about a variant that a model writes [1]; where a number is given, rules "
        "ask for the moral target of a given variant that has one of its own.",
    )  # fmt: skip

    @property
    def asked(self) -> int:
        """Most questions about a variant that a model writes."""
        return 1 if self.questions is None else self.questions


def show_scenes(
    sketch: Sketch,
    settings: Settings,
    before: Sequence[Json] = (),
    again: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> Json:
    """Return the inputs of the prompt.

    ``again``: number of a variant that is to be written again -> what was found.
    """
    return {
        "again": sorted(again),
        "casts": [", ".join(scene["characters"]) or "-" for scene in sketch.scenes],
        "count": settings.variants,
        "findings": [finding for number in sorted(again) for finding in again[number]],
        "kinds": wanted_kinds(sketch.story["id"], settings.variants),
        "language": language(sketch.story),
        "moral_label": sketch.moral_label,
        "previous": variants_shown(before),
        "questions": settings.asked,
        "scenes": sketch.texts,
        "title": sketch.story["title"],
    }


def wanted_kinds(story_id: str, count: int) -> list[str]:
    """Return the kinds of change that a story is to have; over many stories each comes equally often."""
    kinds = sorted(vocabulary("change_type").values, key=lambda kind: share(story_id, kind))
    return kinds[:count]


def _rules(sketch: Sketch, settings: Settings) -> list[Json]:
    """Return none: only a reader can change a meaning; in a rehearsal, as many as are asked for."""
    return _read(_rehearsed(sketch, settings.variants), sketch, settings) if settings.rehearsed else []


def _rehearsed(sketch: Sketch, count: int) -> Json:
    """Return what stands for a reply in a rehearsal: the scenes, each a little longer."""
    last = len(sketch.texts) - 1
    scenes = [sketch.texts[number % last] for number in range(count)]
    entries: list[Json] = [
        {
            "changed_scene": 1 + number % last, "change_type": "replace_outcome",
            "later_scene": 2 + number % last, "depends": scene[:80], "semantic_delta": scene[:80],
            "contrastive_scene_text": f"{scene} {scene.split()[0]} {number}", "contrastive_moral": None,
            "questions": [],
        }
        for number, scene in enumerate(scenes)
    ]  # fmt: skip
    return {"variants": entries}


def _read(reply: Json, sketch: Sketch, settings: Settings) -> list[Json]:
    labels = (sketch.narrative_type, sketch.moral_label)
    return read_variants(reply, sketch.story, sketch.scenes, labels, range(1, settings.variants + 1))


def _given(sketch: Sketch, settings: Settings) -> Json:
    given = sketch.given_list("variants")
    if given is None:
        return [] if settings.variants == 0 else None
    return [_with_moral_question(part, sketch) if settings.questions else part for part in given]


def _with_moral_question(variant: Json, sketch: Sketch) -> Json:
    """Return a given variant with the question for its moral target, the one annotation that is its own."""
    label = variant["contrastive_moral"]
    if label is None or "questions" in variant:
        return variant
    bearing = [
        {**part, "moral_target": None if part["moral_target"] is None else label}
        for part in sketch.transitions
    ]
    told = {"id": variant["variant_id"], "language": sketch.story["language"]}
    question = ask_moral(told, bearing, label)
    return variant if question is None else {**variant, "questions": [question]}


def variants_shown(variants: Sequence[Json]) -> list[Json]:
    """Return variants in the form in which a model writes them."""
    names = ("change_type", "semantic_delta", "contrastive_scene_text", "contrastive_moral")
    return [
        {
            "changed_scene": part["changed_scene_id"],
            **{name: part[name] for name in names},
            "questions": questions_shown(part.get("questions", ()), part["contrastive_moral"]),
        }
        for part in variants
    ]


def read_variants(
    reply: Json,
    story: Json,
    scenes: Sequence[Json],
    labels: tuple[str | None, str | None],
    numbers: Sequence[int],
) -> list[Json]:
    """Return the variants of some numbers, from 1, that a reply to ``katha/write_contrastives`` has.

    The whole text of a variant is made here: every character outside of the changed scene stays.
    """
    check_count(reply["variants"], len(numbers), "contrasts")
    return _variants(list(zip(numbers, reply["variants"], strict=True)), story, scenes, labels)


def _variants(
    entries: Sequence[tuple[int, Json]],
    story: Json,
    scenes: Sequence[Json],
    labels: tuple[str | None, str | None],
) -> list[Json]:
    spans = scene_spans(story["normalized_text"], [scene["scene_text"] for scene in scenes])
    assert spans is not None, "the scenes of a draft cover the story"
    problems = Problems()
    for number, entry in entries:
        changed, later = entry["changed_scene"], entry["later_scene"]
        if not 1 <= changed <= len(scenes):
            problems.add(f"contrast {number}: changed_scene must be 1 to {len(scenes)}, found {changed}")
        elif changed < len(scenes) and not (later is not None and changed < later <= len(scenes)):
            problems.add(
                f"contrast {number}: later_scene must be a scene after {changed}, up to {len(scenes)}, that"
                f" means something else after the change; found {'null' if later is None else later}"
            )
    problems.settle()
    variants = [
        _variant(entry, number, _Told(story, scenes, spans, *labels), problems) for number, entry in entries
    ]
    _check_texts(variants, story, scenes, problems)
    problems.settle()
    record = {"story_text": story["normalized_text"], "scenes": scenes, "questions": ()}
    return [
        _with_questions(entry, variant, record) for (_, entry), variant in zip(entries, variants, strict=True)
    ]


class _Told(NamedTuple):
    """A story as it is drafted: its scenes with their places in the text, its narrative type and moral."""

    story: Json
    scenes: Sequence[Json]
    spans: Sequence[Span]
    narrative_type: str | None
    moral: str | None


def _variant(entry: Json, number: int, told: _Told, problems: Problems) -> Json:
    story, scenes, spans, kind, moral = told
    where, changed = f"contrast {number}", entry["changed_scene"]
    before, text = scenes[changed - 1]["scene_text"], normalize_text(entry["contrastive_scene_text"])
    if len(text) > LONGEST_GROWTH * len(before) + _SENTENCE:
        problems.add(f"{where}: the new text is more than twice as long as scene {changed}; change few words")
    if normalize_answer(text) == normalize_answer(before) or not normalize_answer(text):
        problems.add(f"{where}: the text of scene {changed} is as before; rewrite it with another meaning")
    other = entry["contrastive_moral"]
    return {
        "variant_id": f"{story['id']}_v{number}",
        "base_story_id": story["id"],
        "variant_kind": "temporal_contrast"
        if entry["change_type"] == "reorder_events"
        else "semantic_contrast",
        "subset": None,
        "narrative_type": kind,
        "has_variant": True,
        "pair_id": f"{story['id']}_pair{number}",
        "changed_scene_id": changed,
        "change_type": entry["change_type"],
        "original_moral": moral,
        # The reply names the original label where it holds, null for none; the field holds another one only.
        "contrastive_moral": None if other == moral else other,
        "semantic_delta": " ".join(
            needed(entry, name, where, problems) for name in ("semantic_delta", "depends")
        ),
        "contrastive_scene_text": text,
        "contrastive_story_text": with_scene(story["normalized_text"], spans[changed - 1], text),
    }


def _with_questions(entry: Json, variant: Json, record: Json) -> Json:
    """Return a variant with those questions of its entry that it answers, otherwise than its story does."""
    moral, scenes = variant["contrastive_moral"], record["scenes"]
    told = {"id": variant["variant_id"]}
    kept: list[Json] = []
    for asked in entry["questions"]:
        problems = Problems()
        if asked["question_type"] == "moral" and moral is None:
            continue
        question = read_question(asked, len(kept) + 1, told, len(scenes), moral, problems)
        part = Part("", {**variant, "questions": [question]})
        problems.add_issues(check_variant_questions(Story("", record, [part])))
        before = normalize_answer(asked["story_answer"] or "")
        differs = before not in map(normalize_answer, question["accepted_answers"])
        if not problems.found and differs and is_told(asked["told_by"], variant["contrastive_story_text"]):
            kept.append(question)
    return {**variant, "questions": kept} if kept else variant


def _check_texts(variants: Sequence[Json], story: Json, scenes: Sequence[Json], problems: Problems) -> None:
    seen: dict[str, int] = {}
    for number, part in enumerate(variants, start=1):
        text = normalize_answer(part["contrastive_story_text"])
        if text in seen:
            problems.add(f"contrast {number} is the same as contrast {seen[text]}; write another one")
        seen.setdefault(text, number)
        _check_cast(number, part, scenes, problems)
    problems.check_script(story, [[part["contrastive_scene_text"]] for part in variants])


def _check_cast(number: int, part: Json, scenes: Sequence[Json], problems: Problems) -> None:
    """Note characters that the scene names and its new text does not: stricter than the record rule."""
    scene = scenes[part["changed_scene_id"] - 1]
    before, after = (normalize_answer(text) for text in (scene["scene_text"], part["contrastive_scene_text"]))
    names = [without_article(name) for name in scene["characters"]]
    lost = [name for name in names if mentions(before, name) and not mentions(after, name)]
    if lost:
        problems.add(f"contrast {number}: the new text must still name {', '.join(lost)}")


STEP = Step(
    id="katha/write_contrastives",
    version=12,
    writes=("variants",),
    reads=(
        "story",
        *NARRATIVE,
        "given",
        "scenes",
        "transitions",
        "narrative_type",
        "moral_label",
    ),
    sketch=Sketch.of,
    rules=_rules,
    show=show_scenes,
    read=_read,
    given=_given,
    settings=Settings,
    spare=True,
)
