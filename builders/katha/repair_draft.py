"""Stage: let the model that drafted put right what a verifying model found, once.

Each list (scenes, transitions, questions, variants) with failed checks is drafted anew with these checks
quoted. What a person gave is never touched, and a list stays as it was where the new one has another type,
other ids, other scene texts, or fails a check of the rules that the old one passed. Without a model planner
and a verifier the stage does nothing.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import Field

from ...engine.stage import Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ..replies import Drafted, ask
from ..step import PlannerSettings
from .annotate_transitions import read_transitions, transitions_shown
from .annotate_transitions import show_scenes as show_transitions
from .checks.rules import rule_checks
from .checks.verifier import GUESSING
from .checks.verifying import PROMPTS, check_draft
from .draft_scenes import ask_descriptions, scenes_shown
from .drafts import (
    IDS,
    LABELS,
    LISTS,
    NARRATIVE,
    PARTS,
    REPAIRS,
    Sketch,
    fill,
    given_list,
    ids_of,
    make_draft,
    told_story,
    type_problem,
    with_repairs,
)
from .scene_prompts import prompted
from .write_contrastives import read_corrected_variants, variants_shown
from .write_contrastives import show_scenes as show_variants
from .write_questions import questions_shown, read_corrected_questions
from .write_questions import show_scenes as show_questions

_ELEMENT = re.compile(r"\$\.([a-z]+)\[(\d+)\](?:\.([a-z_]+))?")
_NAMES = {"scenes": "scene", "transitions": "transition", "questions": "question", "variants": "contrast"}
_NOT_OURS = frozenset(("moral_target",))
"""Fields that follow from the label, so that no correction of a list changes them."""
REPAIRING = (
    "scene_image",
    "katha/describe_scenes",
    "katha/annotate_transitions",
    "katha/write_questions",
    "katha/write_contrastives",
)
"""The prompts that a list is drafted anew with."""


class RepairSettings(PlannerSettings):
    """Settings of the stage."""

    verifier: str | None = Field(
        default=None, description="Spec of the model that checks the draft; nothing is repaired without."
    )
    guessing: bool = GUESSING

    def models(self) -> tuple[str, ...]:
        """Return the verifier and the planner's model, or nothing unless there are both."""
        if self.verifier is None:
            return ()
        planners = super().models()
        return tuple(dict.fromkeys((self.verifier, *planners))) if planners else ()


SPEC = StageSpec(
    name="repair_draft",
    version=7,
    shape="map",
    reads=("story", *NARRATIVE, "given", *PARTS),
    writes=(*REPAIRS, "repair_log"),
    libraries=("jsonschema-rs", "py3langid"),
    settings=RepairSettings,
    asks=(*REPAIRING, *PROMPTS),
)


Correct = Callable[[Json, str, Sequence[Json]], Awaitable[Drafted[list[Json]] | None]]
"""Returns a list of a draft anew, with findings put right; None to leave it: draft, list, findings."""


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the repaired lists, null where one stays; who made each; and what was tried and why."""
    settings = tools.own(RepairSettings)
    draft = make_draft(item.fields)
    if not settings.models():
        return await repair_lists(item, draft, {})
    findings = await _findings(told_story(item.fields), draft, tools)
    return await repair_lists(item, draft, findings, partial(correct, tools, told_story(item.fields)))


async def repair_lists(
    item: Item, draft: Json, findings: Mapping[str, Sequence[Json]], correct: Correct | None = None
) -> Outcome:
    """Return the fields of the stage, after each list with findings was drafted anew.

    Args:
        item: the story's fields that the stage reads.
        draft: its draft.
        findings: list -> its failed checks.
        correct: drafts a list anew; not needed where there are no findings.

    Raises:
        NoAnswer: the model cannot be reached now.
    """
    repaired: dict[str, Json] = dict.fromkeys(LISTS)
    makers: dict[str, Json] = dict.fromkeys(LISTS)
    log: list[Json] = []
    for name in LISTS:
        if correct is None or not findings.get(name) or item[f"{name}_by"] is None:
            continue
        attempt = await _anew(item, draft, name, findings[name], correct)
        log.append({"part": name, "outcome": attempt.outcome, "findings": list(findings[name])})
        if attempt.draft is not None:
            draft = attempt.draft
            repaired[name], makers[name] = draft[name], attempt.maker
    return Made({"repaired": repaired, "repaired_by": makers, "repair_log": log})


async def correct(
    tools: Tools, story: Json, draft: Json, part: str, findings: Sequence[Json]
) -> Drafted[list[Json]] | None:
    """Return a list in which the elements that checks fault were asked for anew; the others stay.

    Args:
        tools: those of the stage.
        story: the story.
        draft: title, labels, the four lists and producers, as the stage ``apply_edits`` writes it.
        part: ``scenes``, ``transitions``, ``questions`` or ``variants``.
        findings: the failed checks of this part (``schemas.values.Check`` as JSON).

    Returns:
        The whole list, with the same ids in the same order; scenes keep their texts.
    """
    before, words = draft[part], in_words(findings)
    if not findings or not before:
        return None
    names = ("scenes", "transitions", *LABELS)
    sketch = Sketch(story, **{name: draft[name] for name in names})
    labels = (sketch.narrative_type, sketch.moral_label)
    if part == "scenes":
        drafted = await ask_descriptions(tools, story, sketch.texts, scenes_shown(before), words)
    elif part == "transitions":
        drafted = await ask(
            tools,
            "katha/annotate_transitions",
            lambda reply: read_transitions(reply, story, len(sketch.scenes), labels[1]),
            **{**show_transitions(sketch), "findings": words, "previous": transitions_shown(before)},
        )
    elif part == "questions":
        shown = show_questions(sketch)
        drafted = await ask(
            tools,
            "katha/write_questions",
            lambda reply: read_corrected_questions(reply, story, sketch.scenes, labels[1], before),
            **{**shown, "findings": words, "previous": questions_shown(before), "wanted": {}},
        )
    else:
        shown = show_variants(sketch, len(before))
        drafted = await ask(
            tools,
            "katha/write_contrastives",
            lambda reply: read_corrected_variants(reply, story, sketch.scenes, labels, len(before)),
            **{**shown, "findings": words, "previous": variants_shown(before)},
        )
    return Drafted(corrected(part, before, drafted.value, findings), drafted.maker)


def in_words(findings: Sequence[Json]) -> list[str]:
    """Return findings (checks as JSON) as a model reads them: ``scene 2, action: the fox is not there``."""
    return [f"{_place(str(finding['path']))}: {finding['note']}" for finding in findings]


def _place(path: str) -> str:
    match = _ELEMENT.match(path)
    if match is None or match[1] not in _NAMES:
        return "all of it"
    number, name = int(match[2]) + 1, _NAMES[match[1]]
    where = f"transition from scene {number} to {number + 1}" if name == "transition" else f"{name} {number}"
    return f"{where}, {match[3].replace('_', ' ')}" if match[3] else where


def faulted(part: str, findings: Sequence[Json], count: int) -> frozenset[int]:
    """Return the positions of a list's elements that findings name; all where one names the list itself."""
    found: set[int] = set()
    for finding in findings:
        match = _ELEMENT.match(str(finding["path"]))
        if match is None or match[1] != part:
            return frozenset(range(count))
        found.add(int(match[2]))
    return frozenset(found)


def corrected(part: str, old: Sequence[Json], new: Sequence[Json], findings: Sequence[Json]) -> list[Json]:
    """Return the old list with the elements that findings name taken from the new one; ids stay.

    A model that rewrites more than it was asked to changes nothing by it.
    """
    touched = faulted(part, findings, len(old))
    kept = IDS | _NOT_OURS
    return [
        {**after, **{key: before[key] for key in before if key in kept}} if number in touched else before
        for number, (before, after) in enumerate(zip(old, new, strict=True))
    ]


async def _findings(story: Json, draft: Json, tools: Tools) -> dict[str, list[Json]]:
    """Return the failed checks of each list, by rules and by the verifier."""
    found = [*rule_checks(story, draft), *await check_draft(story, draft, tools)]
    failed = [check for check in found if check["passed"] is False]
    return {name: [check for check in failed if _is_about(check, name)] for name in LISTS}


def _is_about(check: Json, name: str) -> bool:
    return str(check["path"]).startswith(f"$.{name}")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of drafting one list anew: in words, and the draft with it unless the old list stays."""

    outcome: str
    draft: Json = None
    maker: str | None = None


async def _anew(item: Item, draft: Json, name: str, findings: Sequence[Json], correct: Correct) -> _Attempt:
    """Ask for one list anew, and see whether it may take its place.

    Raises:
        NoAnswer: the model cannot be reached now.
    """
    story, given = told_story(item.fields), given_list(item["given"], name)
    try:
        drafted = await correct(draft, name, findings)
    except NoAnswer as failure:
        if failure.code == "unavailable":
            raise
        return _Attempt(f"no answer: {failure.code}: {failure.reason}")
    if drafted is None:
        return _Attempt("left as it was")
    problem = type_problem(name, drafted.value) or _moved(name, draft[name], drafted.value)
    if problem is not None:
        return _Attempt(f"dropped: {problem}")
    elements = drafted.value if given is None else fill(given, drafted.value)
    if name == "scenes":
        elements = prompted(elements, story, given)
    if elements == draft[name]:
        return _Attempt("left as it was")
    after = with_repairs(draft, {name: elements}, {name: drafted.maker})
    before = _failing(story, draft)
    for place, note in _failing(story, after).items():
        if place not in before:
            return _Attempt(f"dropped: {note}")
    return _Attempt("repaired", after, drafted.maker)


def _failing(story: Json, draft: Json) -> Mapping[tuple[str, str], str]:
    """Return the failed checks of the rules: code and path -> what was found."""
    failed = [check for check in rule_checks(story, draft) if check["passed"] is False]
    return {(check["code"], check["path"]): f"{check['path']}: {check['note']}" for check in failed}


def _moved(name: str, before: Sequence[Json], after: Sequence[Json]) -> str | None:
    """Return what a new list changes that has to stay, or None."""
    if ids_of({name: after}, (name,)) != ids_of({name: before}, (name,)):
        return f"$.{name}: other ids, or another number of elements"
    texts = [[scene.get("scene_text") for scene in scenes] for scenes in (before, after)]
    return f"$.{name}: other scene texts" if texts[0] != texts[1] else None
