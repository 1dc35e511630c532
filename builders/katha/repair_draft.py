"""Stage: let the model that drafted put right what a verifying model found, once.

Each list (scenes, transitions, questions, variants) with failed checks is drafted anew with these checks
quoted. What a person gave is never touched, and a list stays as it was where the new one has another type,
other ids, other scene texts, or fails a check of the rules that the old one passed. Without a model planner
and a verifier the stage does nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from ...engine.asking import NoAnswer
from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from .drafts import PARTS, REPAIRS, ids_of, make_draft, type_problem, with_repairs
from .model.verify import PROMPTS, check_draft
from .parts import LISTS, fill, given_list
from .planner import Planner, PlannerSettings, planner_of
from .rule_checks import rule_checks

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

    def models(self) -> tuple[str, ...]:
        """Return the verifier and the planner's model, or nothing unless there are both."""
        if self.verifier is None:
            return ()
        planners = super().models()
        return tuple(dict.fromkeys((self.verifier, *planners))) if planners else ()


SPEC = StageSpec(
    name="repair_draft",
    version=1,
    shape="map",
    reads=("story", "given", *PARTS),
    writes=(*REPAIRS, "repair_log"),
    libraries=("jsonschema-rs",),
    settings=RepairSettings,
    asks=(*REPAIRING, *PROMPTS),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the repaired lists, null where one stays; who made each; and what was tried and why."""
    settings = tools.settings
    assert isinstance(settings, RepairSettings)
    draft = make_draft(item.fields)
    if not settings.models():
        return await repair_lists(item, draft, {})
    findings = await _findings(item["story"], draft, tools)
    return await repair_lists(item, draft, findings, planner_of(tools))


async def repair_lists(
    item: Item,
    draft: Json,
    findings: Mapping[str, Sequence[Json]],
    planner: Planner | None = None,
) -> Outcome:
    """Return the fields of the stage, after each list with findings was drafted anew.

    Args:
        item: the story's fields that the stage reads.
        draft: its draft.
        findings: list -> its failed checks.
        planner: who drafts; not needed where there are no findings.

    Raises:
        NoAnswer: the planner's model cannot be reached now.
    """
    repaired: dict[str, Json] = dict.fromkeys(LISTS)
    makers: dict[str, Json] = dict.fromkeys(LISTS)
    log: list[Json] = []
    for name in LISTS:
        if planner is None or not findings.get(name) or item[f"{name}_by"] is None:
            continue
        attempt = await _anew(item, draft, name, findings[name], planner)
        log.append({"part": name, "outcome": attempt.outcome, "findings": list(findings[name])})
        if attempt.draft is not None:
            draft = attempt.draft
            repaired[name], makers[name] = draft[name], attempt.maker
    return Made({"repaired": repaired, "repaired_by": makers, "repair_log": log})


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


async def _anew(item: Item, draft: Json, name: str, findings: Sequence[Json], planner: Planner) -> _Attempt:
    """Ask the planner for one list anew, and see whether it may take its place.

    Raises:
        NoAnswer: the model cannot be reached now.
    """
    story, given = item["story"], given_list(item["given"], name)
    try:
        drafted = await planner.repair(story, draft, name, findings)
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
