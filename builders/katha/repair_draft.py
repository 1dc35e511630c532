"""Stage: check a draft, let the model that drafted write what is faulted again, keep the better version.

One check finds what is wrong. Accepted answers that are others are left out, and so is a moral of a variant
that its reader does not find; a question is about the scenes in which the check finds what it asks. A scene,
transition, question or variant with a finding that matters is written again as a whole, once, by somebody who
is told what was found in what he can see and change; then it is checked again, and of each part the version
with fewer and lighter findings stays. The other stays in the log. Of the questions the best stay: one with a
finding that matters is left out, not written again, where enough others are without.
What a person gave is never touched. Without a model planner and a verifier the stage does nothing.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field

from ...engine.stage import REHEARSED, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ..step import Drafted, PlannerSettings, ask
from ..text.segments import source_sentences
from .annotate_transitions import read_transitions
from .annotate_transitions import show_scenes as show_transitions
from .checks.rules import depends_on_transition, rule_checks
from .checks.verify_record import (
    DEPENDS,
    DESCRIBED,
    DRAWABLE,
    EQUIVALENT,
    MORAL,
    PROMPTS,
    RENDERABLE,
    WORTH,
    Checked,
    check_draft,
)
from .draft_scenes import ask_scenes, prompted
from .drafts import (
    IDS,
    LABELS,
    LISTS,
    NARRATIVE,
    PARTS,
    REPAIRS,
    SPARE,
    Sketch,
    fill,
    given_list,
    ids_of,
    make_draft,
    told_story,
    type_problem,
)
from .write_contrastives import Settings, read_variants
from .write_contrastives import show_scenes as show_variants
from .write_questions import DISTINCT, read_again
from .write_questions import show_scenes as show_questions

_ELEMENT = re.compile(r"\$\.([a-z]+)\[(\d+)\](?:\.([a-z_]+))?")
_NAMES = {"scenes": "scene", "transitions": "transition", "questions": "question", "variants": "contrast"}
_NOT_OURS = frozenset(("moral_target",))
"""Fields that follow from the label, so that no correction of a list changes them."""
_UNSEEN = frozenset(("generation_prompt", "generation_prompt_long", "moral_target", "contrastive_moral"))
"""Fields that whoever writes a part again is not told of: rules make them."""
REPAIRING = (
    "scene_image",
    "katha/draft_scenes",
    "katha/annotate_transitions",
    "katha/write_questions",
    "katha/write_contrastives",
)
"""The prompts that a part is written again with."""
WEIGHTS: Mapping[str, int] = {
    **dict.fromkeys((RENDERABLE, DRAWABLE, DESCRIBED, DISTINCT, WORTH), 2),
    **dict.fromkeys((EQUIVALENT, DEPENDS, MORAL, "prompt_too_long"), 1),
}
"""Code of a check -> how much a finding of it matters; one of any other code matters :data:`HEAVY`."""
HEAVY, MATTERS = 4, 2
"""The weight of a finding of no other weight, and that from which a part is written again."""
ENOUGH, LEAST, TYPES = 5, 4, 5
"""Questions beside the moral one without which a faulted one is written again, and without which one that is
still faulted stays; and types of question up to which one of a further type is written again."""
_FIXED = frozenset(("scenes_fit",))
"""Codes of findings that nobody can put right who describes given scenes."""


class RepairSettings(PlannerSettings):
    retired: ClassVar[tuple[str, ...]] = ("guessing",)
    verifier: str | None = Field(
        default=None, description="Spec of the model that checks the draft; nothing is repaired without."
    )

    def models(self) -> tuple[str, ...]:
        """Return the verifier and the planner's model, or nothing unless there are both."""
        if self.verifier is None:
            return ()
        planners = super().models()
        return tuple(dict.fromkeys((self.verifier, *planners))) if planners else ()


JUDGED = ("judged", "readings")
"""The fields in which the stage leaves the checks of the version that stays, and what readers answered."""

SPEC = StageSpec(
    name="repair_draft",
    version=10,
    shape="map",
    reads=("story", *NARRATIVE, "given", "analysis", *PARTS),
    writes=(*REPAIRS, "repair_log", *JUDGED),
    libraries=("jsonschema-rs", "py3langid"),
    settings=RepairSettings,
    asks=(*REPAIRING, *PROMPTS),
    repairs=1.2,
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the repaired lists, null where one stays; who made each; what was tried and why; the checks."""
    draft = make_draft(item.fields)
    if not tools.own(RepairSettings).models():
        nothing = dict.fromkeys(LISTS)
        return Made({"repaired": nothing, "repaired_by": nothing, "repair_log": [],
                     "judged": None, "readings": []})  # fmt: skip
    return await _Repair(item, tools, told_story(item.fields), draft).run()


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A list in which some parts were written again: it, who wrote them, and which they are."""

    elements: list[Json]
    maker: str
    places: tuple[int, ...]


class _Repair:
    """The check and the one repair of a draft."""

    def __init__(self, item: Item, tools: Tools, story: Json, draft: Json) -> None:
        self.item, self.tools, self.story = item, tools, story
        spare = item[SPARE] if item["questions_by"] is not None else []
        self.first = {**draft, "questions": [*draft["questions"], *spare]}
        self.log: list[Json] = []
        self._ruled: list[tuple[Json, list[Json]]] = []
        sentences = source_sentences(item["story"]["normalized_text"], item["analysis"])
        self.sentences = sentences if item["narrative"] is not None else []

    async def run(self) -> Outcome:
        """Check, repair, check again, and keep what is better."""
        checked = await check_draft(self.story, self.first, self.tools, self.sentences)
        draft, checks = self._tidied(self.first, checked)
        is_judged = any(check["passed"] is not None for check in checks)
        if is_judged:
            draft, checks = self._chosen(draft, checks, len(draft["questions"]), ENOUGH, TYPES)
        found = {name: self._findings(name, draft, checks) for name in LISTS}
        ours = [name for name in LISTS if is_judged and self.item[f"{name}_by"] is not None]
        noted = len(self.log)
        again = await asyncio.gather(*(self._written_again(name, draft, found[name]) for name in ours))
        # in the order of the lists, whichever was answered first
        self.log[noted:] = sorted(self.log[noted:], key=lambda entry: LISTS.index(entry["part"]))
        rewritten = {name: made for name, made in zip(ours, again, strict=True) if made is not None}
        kept: dict[str, _Rewritten] = {}
        if rewritten:
            second = {**draft, **{name: made.elements for name, made in rewritten.items()}}
            places = {name: rewritten[name].places if name in rewritten else () for name in LISTS}
            second, anew = self._tidied(
                second, await check_draft(self.story, second, self.tools, which=places)
            )
            for name, made in rewritten.items():
                better = self._better(name, draft, replace(made, elements=second[name]), checks, anew)
                kept |= {name: better} if better.places else {}
            checks = _of_kept(checks, anew, {name: made.places for name, made in kept.items()})
            draft = {**draft, **{name: made.elements for name, made in kept.items()}}
        draft, checks = self._chosen(draft, checks, len(self.item["questions"]), LEAST, 0)
        return self._made(checked, draft, kept, checks)

    def _chosen(
        self, draft: Json, checks: Sequence[Json], most: int, least: int, types: int
    ) -> tuple[Json, list[Json]]:
        """Return a draft with the best of its questions (:func:`choose`), and its checks."""
        if self.item["questions_by"] is None:
            return draft, list(checks)
        questions = draft["questions"]
        findings_at = self._findings("questions", draft, checks)
        weights = [_weight(findings_at.get(at, ())) for at in range(len(questions))]
        chosen = choose(questions, weights, most, least, types)
        for at, findings in findings_at.items():
            if at not in chosen and weights[at] >= MATTERS:
                self._note("questions", at, "left out", findings, questions[at])
        places = {at: number for number, at in enumerate(chosen)}
        checks_left = []
        for check in checks:
            match = _ELEMENT.match(str(check["path"]))
            if match is None or match[1] != "questions":
                checks_left.append(check)
            elif int(match[2]) in places:
                rest = str(check["path"]).partition("]")[2]
                checks_left.append({**check, "path": f"$.questions[{places[int(match[2])]}]{rest}"})
        return {**draft, "questions": [questions[at] for at in chosen]}, checks_left

    def _tidied(self, draft: Json, checked: Checked) -> tuple[Json, list[Json]]:
        """Return a draft without answers and morals that a check takes for others, and its checks.

        Its questions are about the scenes in which the check found the halves of what they ask about.
        """
        questions, variants, checks = self._where_found(draft, checked.halves), list(draft["variants"]), []
        for check in checked.checks:
            match = _ELEMENT.match(str(check["path"]))
            at = int(match[2]) if match is not None else -1
            if check["passed"] is not False:
                checks.append(check)
            elif check["code"] == EQUIVALENT and self.item["questions_by"] is not None:
                wrong = checked.wrong[at]
                left = [text for text in questions[at]["accepted_answers"] if text not in wrong]
                questions[at] = {**questions[at], "accepted_answers": left}
                note = f"left out, as another answer: {', '.join(map(repr, wrong))}"
                checks.append({**check, "passed": True, "note": note})
            elif check["code"] == DEPENDS and not depends_on_transition(questions[at]):
                continue
            elif check["code"] == MORAL and self.item["variants_by"] is not None:
                variants[at] = {**variants[at], "contrastive_moral": None}
                checks.append({**check, "passed": True, "note": f"left out: {check['note']}"})
            else:
                checks.append(check)
        return {**draft, "questions": questions, "variants": variants}, checks

    def _where_found(self, draft: Json, halves: Mapping[int, tuple[int, int]]) -> list[Json]:
        """Return the questions about the scenes that a check named; what a person gave stays."""
        if self.item["questions_by"] is None:
            return list(draft["questions"])
        moved = [
            placed(question, *halves[at]) if at in halves else question
            for at, question in enumerate(draft["questions"])
        ]
        given = given_list(self.item["given"], "questions")
        return moved if given is None else fill(given, moved)

    def _findings(self, name: str, draft: Json, checks: Sequence[Json]) -> dict[int, list[Json]]:
        """Return position -> what is wrong with a part, as far as who writes it can see and change it."""
        found: dict[int, list[Json]] = {}
        for check in [*self._rules(draft), *checks]:
            if check["passed"] is not False or not str(check["path"]).startswith(f"$.{name}"):
                continue
            match = _ELEMENT.match(str(check["path"]))
            if check["code"] in _FIXED or (match is not None and match[3] in _UNSEEN):
                continue
            for at in range(len(draft[name])) if match is None else (int(match[2]),):
                if name != "questions" or draft[name][at]["question_type"] != "moral":
                    found.setdefault(at, []).append(check)
        return found

    def _rules(self, draft: Json) -> list[Json]:
        """Return what the rules say of a draft; each version is read once."""
        known = next((checks for seen, checks in self._ruled if seen is draft), None)
        if known is None:
            self._ruled.append((draft, known := rule_checks(self.story, draft)))
        return known

    async def _written_again(
        self, name: str, draft: Json, found: Mapping[int, Sequence[Json]]
    ) -> _Rewritten | None:
        """Ask for the parts of a list that matter; None where there are none, or they may not be used."""
        again = {at: checks for at, checks in found.items() if _weight(checks) >= MATTERS}
        for at, checks in found.items() if again else ():
            if at not in again:
                self._note(name, at, "left as it was", checks)
        if not again:
            return None
        try:
            drafted = await self._ask(name, draft, {at + 1: in_words(name, again[at]) for at in again})
        except NoAnswer as failure:
            if failure.code in ("unavailable", REHEARSED):
                raise
            for at, checks in again.items():
                self._note(name, at, f"no answer: {failure.code}: {failure.reason}", checks)
            return None
        elements = self._placed(name, draft, dict(zip(sorted(again), drafted.value, strict=True)))
        problem = type_problem(name, elements) or _moved(name, draft[name], elements)
        places = tuple(at for at in sorted(again) if elements[at] != draft[name][at])
        if problem is not None or not places:
            for at, checks in again.items():
                self._note(name, at, f"dropped: {problem}" if problem else "left as it was", checks)
            return None
        return _Rewritten(elements, drafted.maker, places)

    async def _ask(self, name: str, draft: Json, again: Mapping[int, Sequence[str]]) -> Drafted[list[Json]]:
        """Return some parts of a list anew; each is given by its number, from 1."""
        story, before, numbers = self.story, draft[name], sorted(again)
        sketch = Sketch(story, **{part: draft[part] for part in ("scenes", "transitions", *LABELS)})
        labels = (sketch.narrative_type, sketch.moral_label)
        match name:
            case "scenes":
                return await ask_scenes(self.tools, story, sketch.texts, before, again)
            case "transitions":
                return await ask(
                    self.tools, "katha/annotate_transitions",
                    lambda reply: read_transitions(reply, story, sketch.texts, labels[1], numbers),
                    **show_transitions(sketch, before, again),
                )  # fmt: skip
            case "questions":
                return await ask(
                    self.tools, "katha/write_questions",
                    lambda reply: read_again(reply, story, sketch.scenes, before, numbers),
                    **show_questions(sketch, {}, before, again),
                )  # fmt: skip
        return await ask(
            self.tools, "katha/write_contrastives",
            lambda reply: read_variants(reply, story, sketch.scenes, labels, numbers),
            **show_variants(sketch, Settings(variants=len(before)), before, again),
        )  # fmt: skip

    def _placed(self, name: str, draft: Json, parts: Mapping[int, Json]) -> list[Json]:
        """Return a list with some parts anew; ids and what a person gave stay."""
        keep = IDS | _NOT_OURS
        elements = [
            {**parts[at], **{key: before[key] for key in before if key in keep}} if at in parts else before
            for at, before in enumerate(draft[name])
        ]
        given = given_list(self.item["given"], name)
        elements = elements if given is None else fill(given, elements)
        return prompted(elements, self.story, given) if name == "scenes" and given is not None else elements

    def _better(
        self, name: str, draft: Json, made: _Rewritten, checks: Sequence[Json], anew: Sequence[Json]
    ) -> _Rewritten:
        """Return the list with those parts anew that have fewer and lighter findings than before."""
        elements, places = list(draft[name]), []
        before = self._weights(name, draft, checks)
        after = self._weights(name, {**draft, name: made.elements}, anew)
        is_worse = after.get(-1, 0) > before.get(-1, 0)
        for at in made.places:
            old, new = before.get(at, 0), after.get(at, 0)
            is_kept = new < old and not is_worse
            outcome = (
                f"{'repaired' if is_kept else 'kept the first version'}: findings weigh {old}, then {new}"
            )
            findings = self._findings(name, draft, checks).get(at, [])
            self._note(name, at, outcome, findings, draft[name][at], made.elements[at])
            if is_kept:
                elements[at] = made.elements[at]
                places.append(at)
        return _Rewritten(elements, made.maker, tuple(places))

    def _weights(self, name: str, draft: Json, checks: Sequence[Json]) -> dict[int, int]:
        """Return position -> weight of all findings in a part; -1 for those of the rules in the whole."""
        weights: dict[int, int] = {}
        ruled = self._rules(draft)
        for number, check in enumerate([*ruled, *checks]):
            match = _ELEMENT.match(str(check["path"]))
            at = int(match[2]) if match is not None and match[1] == name else -1
            if check["passed"] is False and (at >= 0 or (match is None and number < len(ruled))):
                weights[at] = weights.get(at, 0) + WEIGHTS.get(check["code"], HEAVY)
        return weights

    def _note(
        self,
        name: str,
        at: int,
        outcome: str,
        findings: Sequence[Json],
        first: Json = None,
        second: Json = None,
    ) -> None:
        entry = {"part": name, "number": at + 1, "outcome": outcome, "findings": in_words(name, findings)}
        if first is not None and second is None:
            entry["first"] = {key: first[key] for key in ("question", "gold_answer")}
        if second is not None:
            changed = [key for key in second if second[key] != first.get(key)]
            entry |= {"first": {key: first.get(key) for key in changed}}
            entry |= {"second": {key: second[key] for key in changed}}
        self.log.append(entry)

    def _made(
        self, checked: Checked, draft: Json, kept: Mapping[str, _Rewritten], checks: Sequence[Json]
    ) -> Made:
        changed = {name: draft[name] if draft[name] != self.item[name] else None for name in LISTS}
        makers = {name: kept[name].maker if name in kept else checked.judge for name in LISTS}
        new = kept.get("questions", _Rewritten([], "", ()))
        gone = [new.elements[at] for at in new.places]
        asked = {part["question_id"] for part in draft["questions"] if part not in gone}
        names = [part["question_id"] for part in self.first["questions"]]
        readings = [
            {
                "question_id": names[reading.question],
                "answer": reading.answer, "producer": reading.producer, "judge": checked.judge,
                "verdict": reading.verdict, "remark": reading.remark,
            }
            for reading in checked.readings
            if names[reading.question] in asked
        ]  # fmt: skip
        named = [{"producer": checked.judge, **check} for check in checks]
        return Made(
            {
                "repaired": changed,
                "repaired_by": {name: makers[name] if changed[name] is not None else None for name in LISTS},
                "repair_log": self.log,
                "judged": named,
                "readings": readings,
            }
        )


def choose(questions: Sequence[Json], weights: Sequence[int], most: int, least: int, types: int) -> list[int]:
    """Return the positions of the questions that stay, in order.

    The moral one stays. Of the others stay those without a finding that matters, first one of each type, up
    to ``most`` with the moral one. One with such a finding stays only where fewer than ``least`` do, or where
    it has a type that none of fewer than ``types`` has; the lightest first.
    """
    types_of = [part["question_type"] for part in questions]
    moral = [at for at, kind in enumerate(types_of) if kind == "moral"]
    others = [at for at, kind in enumerate(types_of) if kind != "moral"]
    sound = [at for at in others if weights[at] < MATTERS]
    chosen = sorted(
        sound, key=lambda at: types_of[at] in {types_of[before] for before in sound if before < at}
    )
    chosen = chosen[: most - len(moral)]
    covered = {types_of[at] for at in (*moral, *chosen)}
    for at in sorted(set(others) - set(sound), key=lambda at: (types_of[at] in covered, weights[at], at)):
        if len(chosen) < min(least, most - len(moral)) or (
            types_of[at] not in covered and len(covered) < types
        ):
            chosen.append(at)
            covered.add(types_of[at])
    return sorted((*moral, *chosen))


def placed(question: Json, earlier: int, later: int) -> Json:
    """Return a question about the scenes in which the halves of what it asks about happen.

    Both in one scene make it a question about that scene, unless it asks for an order, which one picture does
    not show; halves that lie apart, one about the transition into the later, with both among the evidence.
    """
    is_apart = earlier < later
    if earlier > later or (question["question_type"] == "temporal_order" and not is_apart):
        return question
    return {
        **question,
        "target_scene": None if is_apart else later,
        "target_transition": [later - 1, later] if is_apart else None,
        "evidence_scenes": sorted({*question["evidence_scenes"], earlier, later}),
    }


def _weight(checks: Sequence[Json]) -> int:
    """Return how much the heaviest of some findings matters."""
    return max((WEIGHTS.get(check["code"], HEAVY) for check in checks), default=0)


def _of_kept(checks: Sequence[Json], anew: Sequence[Json], places: Mapping[str, Sequence[int]]) -> list[Json]:
    """Return the checks of the version that stays: those made anew for parts that were written again."""

    def is_new(check: Json) -> bool:
        match = _ELEMENT.match(str(check["path"]))
        return match is not None and int(match[2]) in places.get(match[1], ())

    return [*(check for check in checks if not is_new(check)), *filter(is_new, anew)]


def in_words(name: str, findings: Sequence[Json]) -> list[str]:
    """Return findings (checks as JSON) as a model reads them: ``scene 2, action: the fox is not there``."""
    return [f"{_place(name, str(finding['path']))}: {finding['note']}" for finding in findings]


def _place(name: str, path: str) -> str:
    match = _ELEMENT.match(path)
    if match is None:
        return f"all {_NAMES[name]}s"
    number = int(match[2]) + 1
    where = f"{_NAMES[name]} {number}"
    if name == "transitions":
        where = f"transition from scene {number} to {number + 1}"
    return f"{where}, {match[3].replace('_', ' ')}" if match[3] else where


def _moved(name: str, before: Sequence[Json], after: Sequence[Json]) -> str | None:
    """Return what a new list changes that has to stay, or None."""
    if ids_of({name: after}, (name,)) != ids_of({name: before}, (name,)):
        return f"$.{name}: other ids, or another number of elements"
    texts = [[scene.get("scene_text") for scene in scenes] for scenes in (before, after)]
    return f"$.{name}: other scene texts" if texts[0] != texts[1] else None
