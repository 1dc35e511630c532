"""A record while it is drafted: what a person gave, what was drafted and by whom, and all of it put together.

A hand-written record may hold any of ``narrative_type``, ``moral_label``, ``scenes``, ``transitions``,
``questions`` and ``variants``, ``checks`` (verdicts of its author), ``author`` (default: ``unnamed``) and
``narrated``. A list that is given replaces the drafted one; in scenes and transitions, fields left out are
filled by the steps that draft them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from ...engine.stage import BadReply, Item, Made, Outcome, Rejected, Tools, stage
from ...schemas.canonical import Json, canonical_text, digest
from ...schemas.katha import Question, Scene, Transition, Variant
from ...schemas.paths import format_path, parse_path
from ...schemas.plain_files import type_reason
from ...schemas.text import is_unspaced, normalize_text
from ...schemas.values import Own
from ...validators.katha.field_rules import record_hashes
from ..step import RULES, Drafted, PlannerSettings, Problems, Step, check_count, language, needed
from ..text.boundaries import analyze, scene_spans
from ..text.segments import source_sentences, word_count

LISTS = ("scenes", "transitions", "questions", "variants")
LABELS = ("narrative_type", "moral_label")
MAKERS = ("scenes_by", "labels_by", "transitions_by", "questions_by", "variants_by")
"""Fields that say who drafted a part, or both labels; null where a person gave all of it."""
NARRATED = "narrated"
"""Field of a hand-written record: whether its scenes tell the story in words that are not the story's."""
DEFAULT_AUTHOR, AUTHOR = "unnamed", "author:"
"""The author of a record that names none; how the producer of a benchmark's own author begins."""
_EVERY = 10**9


@dataclass(frozen=True, slots=True)
class Sketch:
    """A record as far as it is drafted; plain JSON in the shapes of ``schemas.katha``."""

    story: Json  # ``schemas.story.Story``
    analysis: Json = None  # what ``analyze_story`` read off it by rules
    given: Json = None  # the hand-written record, if any
    scenes: Sequence[Json] = ()  # the scenes (Table 7); their texts cover the story in order
    transitions: Sequence[Json] = ()  # the transitions between adjacent scenes (Table 8)
    narrative_type: str | None = None  # the kind of story, or null
    moral_label: str | None = None  # its moral target, or null
    moral: str | None = None  # ``not_applicable`` where it supports no value, or null
    # the texts of the scenes of the narrative that was written from the source, if one was
    narrated: tuple[str, ...] = ()

    @classmethod
    def of(cls, item: Item) -> "Sketch":
        """Return the sketch that the fields of an item make; of a narrative, where one was written."""
        known = {part.name: item[part.name] for part in fields(cls) if part.name in item.fields}
        narrative = item.fields.get("narrative")
        if narrative is not None:
            known |= {"story": told_story(item.fields), "analysis": narrative["analysis"]}
            known["narrated"] = tuple(narrative["scenes"])
        return cls(**known)

    @property
    def texts(self) -> list[str]:
        return scene_texts(self.scenes)

    def given_list(self, name: str) -> list[Json] | None:
        """Return a list of the hand-written record, or None where it gives none."""
        return given_list(self.given, name)

    def complete(self, name: str, kind: type[Own]) -> list[Json] | None:
        """Return a given list that leaves nothing to draft, or None."""
        given = self.given_list(name)
        return given if given is not None and is_complete(given, kind) else None

    def filled(self, name: str, drafted: list[Json]) -> list[Json]:
        """Return a drafted list; the fields that a person gave stand."""
        given = self.given_list(name)
        return drafted if given is None else fill(given, drafted)


NARRATIVE = ("narrative", "narrative_by")
"""The fields that the stage ``normalise_story`` writes."""


def told_story(item: Mapping[str, Json]) -> Json:
    """Return the story as it is told in scenes: the source, or the narrative that was written from it.

    Returned: ``schemas.values.Story`` as JSON; of a narrative with its text as the normalised one, and beside
    it ``narrative`` (:class:`schemas.katha.Narrative`) as JSON.
    """
    story, narrative = item["story"], item.get("narrative")
    if narrative is None:
        return story
    kept = {name: narrative[name] for name in ("source_sha256", "alignment", "left_out")}
    told = {"producer": item["narrative_by"], **kept}
    return {**story, "normalized_text": narrative["text"], "narrative": told}


def joined_scenes(texts: Sequence[str]) -> str:
    """Return the narrative that scenes make."""
    return normalize_text(("" if is_unspaced("".join(texts)) else " ").join(texts))


def scene_texts(scenes: Sequence[Json]) -> list[str]:
    return [scene["scene_text"] for scene in scenes]


def given_list(given: Json, name: str) -> list[Json] | None:
    """Return a list of a hand-written record, or None where it gives none."""
    value = (given or {}).get(name)
    return None if value is None else list(value)


def given_label(given: Json, name: str) -> str | None:
    """Return a label of a hand-written record, or None."""
    value = (given or {}).get(name)
    return None if value is None else str(value)


def fill(given: Sequence[Json], drafted: Sequence[Json]) -> list[Json]:
    """Return the given elements, each with the fields that it leaves out taken from the drafted one."""
    return [{**draft, **element} for element, draft in zip(given, drafted, strict=True)]


def is_complete(given: Sequence[Json], kind: type[Own]) -> bool:
    """Return whether given elements leave nothing to draft."""
    needed = {name for name, field in kind.model_fields.items() if field.is_required()}
    return all(needed <= element.keys() for element in given)


def author_of(given: Json) -> str:
    """Return the producer of a given record: ``hand:<author>``; its author, where that begins ``author:``."""
    author = str((given or {}).get("author", DEFAULT_AUTHOR))
    return author if author.startswith(AUTHOR) else f"hand:{author}"


def by_person(producer: str | None) -> bool:
    """Return whether a field was made by a person, or by nobody that is known."""
    return producer is None or producer == "author" or producer.startswith((AUTHOR, "hand:", "edit:"))


def producers(
    draft: Mapping[str, Json], story: Json, given: Json, makers: Mapping[str, str | None]
) -> list[Json]:
    """Return who made each field of a draft, as compact paths.

    One entry per field: ``$.scenes[*].action`` where one producer made it in every scene, else one entry
    per element. Texts of the story itself (title, scene texts of given or drafted scenes) are covered too:
    the title is the author's; the division into scenes is the planner's or the person's.
    """
    author = author_of(given)
    rows = [("$.title", "author")]
    rows += [(f"$.{name}", _label_producer(name, story, given, makers["labels_by"])) for name in LABELS]
    for name in LISTS:
        rows += _list_producers(name, draft[name], given_list(given, name), author, makers[f"{name}_by"])
    return [{"path": path, "producer": producer} for path, producer in rows]


def _label_producer(name: str, story: Json, given: Json, maker: str | None) -> str:
    if given_label(given, name) is not None:
        return author_of(given)
    return "author" if story.get(name) is not None else str(maker)


def _list_producers(
    name: str, elements: Sequence[Json], given: Sequence[Json] | None, author: str, maker: str | None
) -> list[tuple[str, str]]:
    keys = dict.fromkeys(key for element in elements for key in element)
    if given is None:
        return [(f"$.{name}[*].{key}", str(maker)) for key in keys]
    rows: list[tuple[str, str]] = []
    for key in keys:
        # What nobody gave of a part that needs no drafting is the rules'.
        makers = [author if key in given[i] else maker or RULES for i in range(len(elements))]
        if len(set(makers)) == 1:
            rows.append((f"$.{name}[*].{key}", makers[0]))
        else:
            rows += [(f"$.{name}[{i}].{key}", maker) for i, maker in enumerate(makers)]
    return rows


def maker_of(path: str, made: Sequence[Json]) -> str | None:
    """Return who made what stands at a path, by the last entry about it or something around it, if any."""
    steps = parse_path(path)
    makers = [str(entry["producer"]) for entry in made if covers(str(entry["path"]), steps)]
    return makers[-1] if makers else None


def covers(path: str, steps: tuple[str | int, ...]) -> bool:
    """Return whether a path, ``[*]`` standing for every element, is that of a place or of what it lies in."""
    # No list has so many elements: the number stands for "every element".
    entry = parse_path(path.replace("[*]", f"[{_EVERY}]"))
    pairs = zip(entry, steps, strict=False)
    return len(entry) <= len(steps) and all(own in (step, _EVERY) for own, step in pairs)


def make_check(code: str, path: str, passed: bool | None, note: str) -> Json:
    return {"code": code, "path": path, "passed": passed, "note": note}


REVIEW = {"human_evidence_accepted": False, "resolution": "not_reviewed"}


def make_bundle(
    story: Json, draft: Json, checks: Sequence[Json], split: str, created_at: str, license_id: str | None
) -> Json:
    """Return a ``KathaBundle`` as JSON: record, variants, producers, checks.

    The record is ``auto_checked`` where every check passed, else ``review_needed``; never reviewed.
    """
    variants = [{**variant, "subset": split} for variant in draft["variants"]]
    variants.sort(key=lambda variant: str(variant["variant_id"]))
    record = {
        "story_id": story["id"],
        "title": draft["title"],
        "language": story["language"],
        "source_text": story["text"],
        "story_text": story["normalized_text"],
        "narrative_type": draft["narrative_type"],
        "moral_label": draft["moral_label"],
        **({"moral": draft["moral"]} if draft.get("moral") and draft["moral_label"] is None else {}),
        "split": split,
        "scenes": draft["scenes"],
        "transitions": draft["transitions"],
        "questions": draft["questions"],
        "validation_status": "auto_checked" if all(row["passed"] for row in checks) else "review_needed",
        "evidence_status": REVIEW,
    }
    record["provenance"] = {
        "source_dataset": story["source_collection"],
        "source_reference": story["source_reference"],
        **record_hashes(record, variants),
        "contrastive_variant_ids": [variant["variant_id"] for variant in variants],
        "created_at": created_at,
        "source_rights_status": story["rights_status"],
        "dataset_license": license_id,
    }
    bundle = {"record": record, "variants": variants, "producers": draft["producers"], "checks": list(checks)}
    for name, kept in (("answers", "answer_history"), ("rewritten", "repair_log")):
        if draft.get(kept):
            bundle[name] = draft[kept]
    if "narrative" not in story:
        return bundle
    record["provenance"]["normalised_by"] = story["narrative"]["producer"]
    return {**bundle, "narrative": story["narrative"]}


SPARE = "spare_questions"
"""Field of an item: questions that were drafted beyond those wanted, for a check to choose from."""
PARTS = (*LABELS, "moral", *LISTS, SPARE, *MAKERS)
"""The fields of an item that a draft is made of, beside its story and what was given."""

REPAIRS = ("repaired", "repaired_by")
"""The fields of an item that say what the stage ``repair_draft`` puts in the place of its lists."""

GROWN = ("grown", "answer_history")
"""The fields of an item that the stage ``grow_answers`` writes."""

IDS = frozenset(
    (
        *("story_id", "scene_index", "from_scene", "to_scene", "question_id"),
        *("variant_id", "base_story_id", "pair_id", "subset"),
    )
)
"""Fields of the parts that never change once they are drafted."""

_TYPES: dict[str, TypeAdapter[tuple[object, ...]]] = {
    "scenes": TypeAdapter(tuple[Scene, ...]),
    "transitions": TypeAdapter(tuple[Transition, ...]),
    "questions": TypeAdapter(tuple[Question, ...]),
    "variants": TypeAdapter(tuple[Variant, ...]),
}


def make_draft(item: Mapping[str, Json]) -> Json:
    """Return the draft as the planner and given parts made it: title, labels, lists of parts, producers.

    Where a check has chosen among the questions, its questions are those that were chosen.
    """
    chosen = (item.get("repaired") or {}).get("questions")
    if chosen is not None:
        drafted = {part["question_id"]: part for part in (*item["questions"], *item[SPARE])}
        item = {**item, "questions": [drafted[part["question_id"]] for part in chosen]}
    draft = {"title": item["story"]["title"], **{name: item[name] for name in (*LABELS, "moral", *LISTS)}}
    makers = {name: item[name] for name in MAKERS}
    return {**draft, "producers": producers(draft, item["story"], item["given"], makers)}


def with_repairs(draft: Json, repaired: Mapping[str, Json], repaired_by: Mapping[str, Json]) -> Json:
    """Return a draft with repaired lists in their places; every field that changed is the repairer's.

    ``repaired``: list -> the list anew; null or absent where it stays. ``repaired_by``: list -> who made it.
    """
    changed = {name: repaired[name] for name in LISTS if repaired.get(name) is not None}
    made = [
        {"path": path, "producer": repaired_by[name]}
        for name, elements in changed.items()
        for path in _changes(name, draft[name], elements)
    ]
    return {**draft, **changed, "producers": [*draft["producers"], *made]}


def with_answers(draft: Json, grown: Mapping[str, Sequence[str]], history: Sequence[Json]) -> Json:
    """Return a draft with further accepted answers behind those of its questions, each with who gave it.

    ``grown``: question id -> answers.
    """
    if not grown:
        return draft
    makers = {(row["question_id"], row["answer"]): row["producer"] for row in history if row["joined"]}
    questions, made = [], []
    for number, part in enumerate(draft["questions"]):
        answers, name = list(part["accepted_answers"]), part["question_id"]
        for answer in grown.get(name, ()):
            path = f"$.questions[{number}].accepted_answers[{len(answers)}]"
            made.append({"path": path, "producer": makers[name, answer]})
            answers.append(answer)
        questions.append({**part, "accepted_answers": answers})
    return {**draft, "questions": questions, "producers": [*draft["producers"], *made]}


def _changes(name: str, before: Sequence[Json], after: Sequence[Json]) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        yield from (f"$.{name}[{number}].{key}" for key in sorted(new) if new[key] != old.get(key))


def ids_of(draft: Mapping[str, Json], names: Sequence[str] = LISTS) -> Json:
    """Return every id and number of the parts, in order."""
    return [
        [{key: part.get(key) for key in sorted(IDS & part.keys())} for part in draft[name]] for name in names
    ]


def type_problem(name: str, elements: Json) -> str | None:
    """Return where and why a list is not one of the type that its name says, or None."""
    try:
        _TYPES[name].validate_json(canonical_text(elements))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{format_path((name, *first['loc']))}: {type_reason(first)}"
    return None


# -- Stage: the finished record with its provenance, variants, producers and checks
#
# A story that was withdrawn goes no further than here: it keeps its place in the splits and among the
# near-duplicates, so that nothing moves for the others, and its id is not used again. A story that retells
# stories of two splits goes no further either: with it, one of them would tell of the other.


class Settings(Own):
    license: str | None = Field(
        default=None,
        description="SPDX id for stories that name no dataset_license; without one, packing asks for it.",
    )


JOINS = "joins_splits"
"""Code of what retells stories of two splits."""
WITHDRAWN = "withdrawn"
"""Code of what was taken out of the benchmark; packing lists it with its reason."""


@stage(
    version=7,
    reads=(
        "story",
        *NARRATIVE,
        "draft",
        "answer_history",
        "repair_log",
        "checks",
        "split",
        "joins",
        "withdrawn",
        "added_at",
    ),
    writes=("bundle",),
    keep={"joins_splits": "no option keeps it: a story told twice must not be in two splits"},
    reject_codes={
        WITHDRAWN: "It was withdrawn; its id is not used again.",
        JOINS: "It retells stories that are in different splits.",
    },
    settings=Settings,
    dated=True,
)
def assemble_records(item: Item, tools: Tools) -> Outcome:
    """Return the bundle (``schemas.katha.KathaBundle``), or why the story was withdrawn."""
    settings = tools.own(Settings)
    if item["withdrawn"] is not None:
        return Rejected(WITHDRAWN, item["withdrawn"]["why"])
    if item["joins"] is not None:
        return Rejected(JOINS, "; ".join(_told(link) for link in item["joins"]))
    created_at = item["added_at"] or tools.created_at
    license_id = item["story"]["dataset_license"] or settings.license or None
    story = told_story(item.fields)
    draft = {**item["draft"], **{name: item[name] for name in ("answer_history", "repair_log")}}
    bundle = make_bundle(story, draft, item["checks"], item["split"], created_at, license_id)
    return Made({"bundle": bundle})


def _told(link: Json) -> str:
    first, second = link["stories"]
    return f"{first} and {second}, in {link['split']}: {link['evidence']}"


# -- Stage: the narrative in scenes that a model writes from the source (sections A.16 and C.3, Table 25)
#
# The model says which source sentences each scene tells and what it left out and why; every sentence is
# accounted for. Scenes follow each other as the events did in time. The check of the whole draft compares
# narrative and source. By rules, and where a person gave parts of the story as scenes, the story is told in
# its own words: then there is no narrative (null), and all that follows works on the source. Where a person's
# scenes tell it in other words, they are the narrative; nobody says then which sentences each tells.

LEAST_WORDS, MOST_WORDS = 4, 110
"""Words of one scene's text; twice as many characters in scripts without spaces."""


class NormaliseSettings(PlannerSettings):
    retired: ClassVar[tuple[str, ...]] = ("verifier",)
    scenes: int = Field(
        default=5,
        ge=2,
        le=100,
        description="Scenes of the narrative; if draft_scenes.scenes differs, it is divided anew.",
    )


def _show(sketch: Sketch, settings: NormaliseSettings) -> Json:
    story = sketch.story
    return {
        "count": settings.scenes,
        "language": language(story),
        "sentences": source_sentences(story["normalized_text"], sketch.analysis),
        "title": story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: NormaliseSettings) -> Json:
    sentences = source_sentences(sketch.story["normalized_text"], sketch.analysis)
    return read_narrative(reply, sketch.story, sentences, settings.scenes)


def read_narrative(reply: Json, story: Json, sentences: Sequence[str], count: int) -> Json:
    """Return the narrative of a reply to ``katha/normalise_story``.

    Returned: ``text``: the narrative. ``scenes``: their texts, which cover it. ``alignment``: for each scene
    the numbers of its source sentences, from 1. ``left_out``: groups of sentences and why. ``source_sha256``:
    hash of the source text. ``analysis``: what the rules read off the narrative.
    """
    check_count(reply["scenes"], count, "scenes")
    problems = Problems()
    texts = []
    for number, entry in enumerate(reply["scenes"], start=1):
        text = needed(entry, "text", f"scene {number}", problems)
        factor = 2 if is_unspaced(text) else 1
        if not LEAST_WORDS * factor <= word_count(text) <= MOST_WORDS * factor:
            problems.add(f"scene {number} has {word_count(text)} words; {LEAST_WORDS} to 70 are asked for")
        texts.append(text)
    alignment = [sorted(set(entry["from_sentences"])) for entry in reply["scenes"]]
    left_out = [
        {
            "sentences": sorted(set(group["sentences"])),
            "reason": needed(group, "reason", "left_out", problems),
        }
        for group in reply["left_out"]
    ]
    _check_numbers(alignment, left_out, len(sentences), problems)
    problems.check_script(story, texts)
    problems.settle()
    if scene_spans(joined_scenes(texts), texts) is None:
        raise BadReply("the scenes hold characters that a plain text cannot; write plain sentences")
    return _narrative(story, texts, alignment, left_out)


def _narrative(
    story: Json, texts: Sequence[str], alignment: Sequence[Json] = (), left_out: Sequence[Json] = ()
) -> Json:
    joined = joined_scenes(texts)
    return {
        "text": joined,
        "scenes": list(texts),
        "alignment": list(alignment) or [[] for _ in texts],
        "left_out": list(left_out),
        "source_sha256": digest(story["text"]),
        "analysis": analyze({**story, "normalized_text": joined}),
    }


def _check_numbers(
    alignment: Sequence[Sequence[int]], left_out: Sequence[Mapping[str, Json]], count: int, problems: Problems
) -> None:
    """Note scenes without sentences, strange numbers, and sentences that are nowhere."""
    named = {number for numbers in alignment for number in numbers}
    named |= {number for group in left_out for number in group["sentences"]}
    strange = sorted(number for number in named if not 1 <= number <= count)
    if strange:
        problems.add(
            f"the source has the sentences 1 to {count}; there is no {', '.join(map(str, strange[:10]))}"
        )
    missing = [number for number in range(1, count + 1) if number not in named]
    if missing:
        problems.add(
            f"nothing is said of the sentences {', '.join(map(str, missing[:20]))}: put each into"
            " from_sentences of the scene that tells it, or into left_out with the reason"
        )
    for number, numbers in enumerate(alignment, start=1):
        if not numbers:
            problems.add(f"scene {number}: from_sentences is empty")


def _given(sketch: Sketch, settings: NormaliseSettings) -> Drafted[Json] | None:
    scenes = sketch.given_list("scenes")
    if scenes is None:
        return None
    if not sketch.given.get(NARRATED):
        return Drafted(None, "")
    return Drafted(_narrative(sketch.story, scene_texts(scenes)), author_of(sketch.given))


NORMALISE_STORY = Step(
    id="katha/normalise_story",
    version=6,
    writes=("narrative",),
    reads=("story", "given", "analysis"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    show=_show,
    read=_read,
    given=_given,
    settings=NormaliseSettings,
    libraries=("sentencex",),
)
