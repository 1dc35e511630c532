"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rules`. With a model in the settings, which need not be the
one that drafted, come its own; what that model would not or could not answer is not judged. A
draft that was judged when it was repaired, and that nobody has edited since, is not judged again.
The author of a given record may have judged the rest (:mod:`.settling`).
"""

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from pydantic import Field

from ....engine.stage import Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ....models.spec import ANSWERED, ModelSettings
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer
from ....schemas.values import Own
from ...step import Drafted, Worded, ask, language, public_name
from ...text.segments import source_sentences
from ..annotate_transitions import transitions_shown
from ..draft_scenes import scenes_shown
from ..drafts import LABELS, LISTS, NARRATIVE, make_check, scene_texts, told_story
from ..write_questions import DISTINCT, REPEATED, other_answers
from .rules import (
    Judged,
    depends_on_transition,
    judges_labels,
    note,
    read_answers,
    read_contrasts,
    read_guess,
    read_judgements,
    read_record,
    rule_checks,
)
from .settling import RULES, settle

# -- Having a model check a draft: what blind readers answer and see, and one judgement of the whole record
#
# Readers who have not seen the answers answer the questions in several ways, and a reader who is not told
# what was changed reads the variants. One further request judges everything: narrative, fields, labels,
# questions with the accepted answers and the readers' own among them, variants. What was repaired is judged
# once more.

T = TypeVar("T")

ANSWERABLE, EQUIVALENT, DRAWABLE = "model_answerable", "model_answers_equivalent", "question_drawable"
DEPENDS, GUESSABLE = "question_depends_on_transition", "question_not_guessable"
WORTH = "question_worth_asking"
MINIMAL, DESCRIBED = "model_contrast_minimal", "model_contrast_described"
READ, MORAL = "model_contrast_read", "model_contrast_moral"
CONSISTENT, RENDERABLE, LABEL = "model_consistent", "model_renderable", "model_label_fits"
ORDER, COMPLETE, FAITHFUL = "narrative_in_order", "narrative_complete", "narrative_adds_nothing"
PROMPTS = ("katha/answer_questions", "katha/read_variants", "katha/check_record")
"""Ids of the prompts that a check asks with."""
Which = Mapping[str, Sequence[int]]
"""List of a record -> the positions, from 0, of the parts that are judged."""


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under check."""

    story: Json  # the story
    draft: Json  # title, labels and lists of parts
    tools: Tools  # the stage's tools; their settings name the model that checks
    makers: list[str] = field(default_factory=list)  # who gave each answer so far

    @property
    def judge(self) -> str:
        """Who judged: the model that was asked, and that a stand-in answered, where one did."""
        name = public_name(self.tools.own(ModelSettings))
        return f"{name}, {ANSWERED}" if any(ANSWERED in maker for maker in self.makers) else name

    async def ask(self, prompt_id: str, read: Callable[[Json], T], **inputs: Json) -> Drafted[T]:
        """Return what a reader makes of the reply to a prompt, which is asked for once, and who made it."""
        drafted = await ask(
            self.tools, prompt_id, read, (), 0, **{"language": language(self.story), **inputs}
        )
        self.makers.append(drafted.maker)
        return drafted


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader answered without having seen the answers, and what was judged of it."""

    question: int  # position of the question
    answer: str  # the answer
    producer: str  # who gave it
    verdict: bool | None  # whether it is the canonical answer in other words; None where nobody judged
    remark: str = ""  # what is wrong with it, or why nobody judged


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a draft found."""

    checks: list[Json]  # the checks (``schemas.values.Check`` as JSON)
    # position of a question -> accepted answers that are not the canonical one
    wrong: Mapping[int, tuple[str, ...]]
    readings: tuple[Reading, ...]  # what readers answered
    # position of a question about a transition -> the scenes of the two halves of what it asks about
    halves: Mapping[int, tuple[int, int]]
    judge: str  # who judged


def verifier_settings(settings: Own) -> ModelSettings:
    """Return the settings of the checks: those of the stage, with its verifier, if any, as the model."""
    assert isinstance(settings, ModelSettings)
    same = {name: getattr(settings, name) for name in Worded.model_fields if hasattr(settings, name)}
    return Worded(**{**same, "model": getattr(settings, "verifier", settings.model)})


def why_unjudged(failure: NoAnswer) -> str:
    """Return why a check has no verdict, in one line."""
    if failure.code == "unavailable":
        raise failure
    return "not judged: " + note(f"{failure.code}: {failure.reason}")


def with_remark(said: str, remark: str) -> str:
    """Return what a check says, with the model's remark, if there is one."""
    return f"{said}: {remark}" if remark else said


async def check_draft(
    story: Json, draft: Json, tools: Tools, sentences: Sequence[str] = (), which: Which | None = None
) -> Checked:
    """Return what a model finds in a draft.

    The model is the ``verifier`` of the stage's settings, where they have one, else their ``model``. What it
    could not judge has no verdict and says why. What the codes mean stands in
    ``docs/model_planner.md``.

    ``which``: the parts that were repaired and are judged once more, without readers; None for everything.
    """
    case = Case(story, draft, replace(tools, settings=verifier_settings(tools.settings)))
    answers: Mapping[int, tuple[str, ...]] | str = {}
    seen: Mapping[int, Json] | str = {}
    maker = ""
    if which is None:
        which = {name: range(len(draft[name])) for name in LISTS}
        (answers, maker), seen = await asyncio.gather(_answers(case), _readings_of_variants(case))
    checked = await _judged(case, which, sentences, answers, seen)
    readings = tuple(replace(reading, producer=maker) for reading in checked.readings)
    made = checked.checks
    if ANSWERED in case.judge:
        made = [{"producer": case.judge, **check} for check in made]
    return replace(checked, checks=made, readings=readings, judge=case.judge)


async def _answers(case: Case) -> tuple[Mapping[int, tuple[str, ...]] | str, str]:
    """Return what readers answer to each question but the moral one, or why nothing; and who they are."""
    places = [n for n, part in enumerate(case.draft["questions"]) if part["question_type"] != "moral"]
    if not places:
        return {}, ""
    asked = questions_asked([case.draft["questions"][place] for place in places])
    try:
        drafted = await case.ask(
            "katha/answer_questions", lambda reply: read_answers(reply, len(asked)), questions=asked,
            scenes=scene_texts(case.draft["scenes"]),
        )  # fmt: skip
    except NoAnswer as failure:
        return why_unjudged(failure), ""
    return dict(zip(places, drafted.value, strict=True)), drafted.maker


def questions_asked(questions: Sequence[Json]) -> list[str]:
    """Return questions as they are shown to whoever answers them."""
    return [f"({part['question_type']}) {part['question']}" for part in questions]


async def _readings_of_variants(case: Case) -> Mapping[int, Json] | str:
    """Return what a reader who was not told of the changes makes of each variant, or why nothing."""
    texts, variants = scene_texts(case.draft["scenes"]), case.draft["variants"]
    if not variants:
        return {}
    shown = []
    for part in variants:
        changed = part["changed_scene_id"]
        whole = [*texts[: changed - 1], part["contrastive_scene_text"], *texts[changed:]]
        shown.append({"changed": changed, "texts": whole})
    try:
        drafted = await case.ask(
            "katha/read_variants", lambda reply: read_contrasts(reply, len(variants)), scenes=texts,
            variants=shown,
        )  # fmt: skip
    except NoAnswer as failure:
        return why_unjudged(failure)
    return dict(enumerate(drafted.value))


def _new(question: Json, answers: Sequence[str]) -> list[str]:
    """Return those of the readers' answers that are not accepted yet."""
    known = {normalize_answer(text) for text in question["accepted_answers"]}
    return [text for text in answers if normalize_answer(text) not in known]


async def _judged(
    case: Case,
    which: Which,
    sentences: Sequence[str],
    answers: Mapping[int, tuple[str, ...]] | str,
    seen: Mapping[int, Json] | str,
) -> Checked:
    draft = case.draft
    read = answers if isinstance(answers, Mapping) else {}
    listed = {
        at: [
            *other_answers(draft["questions"][at], draft["moral_label"]),
            *_new(draft["questions"][at], read.get(at, ())),
        ]
        for at in which["questions"]
    }
    counts = [len(texts) for texts in listed.values()]
    whole = judges_labels(draft, which)
    try:
        judged = (
            await case.ask(
                "katha/check_record",
                lambda reply: read_record(reply, draft, which, counts),
                labels=whole,
                **_shown(draft, which, sentences, listed),
            )
        ).value
    except NoAnswer as failure:
        why = why_unjudged(failure)
        silent = [
            Reading(at, text, "", None, why)
            for at in which["questions"]
            for text in _new(draft["questions"][at], read.get(at, ()))
        ]
        return Checked(list(_unjudged(draft, which, why)), {}, tuple(silent), {}, "")
    checks = [
        *(_narrative(judged["narrative"]) if sentences else ()),
        *_contradictions("scenes", which, judged["scenes"]),
        *_renderable(which, judged["scenes"]),
        *_contradictions("transitions", which, judged["transitions"]),
        *(_labels(draft, judged["labels"]) if whole else ()),
    ]
    wrong: dict[int, tuple[str, ...]] = {}
    readings: list[Reading] = []
    for at, entry in zip(which["questions"], judged["questions"], strict=True):
        question = draft["questions"][at]
        bad = {normalize_answer(listed[at][number - 1]) for number in entry["wrong_answers"]}
        own = answers if isinstance(answers, str) else answers.get(at)
        moral = not whole or judged["labels"]["moral_label_fits"]
        checks += _question(at, question, {**entry, "bad": bad, "moral": moral}, own)
        wrong[at] = _wrong(question, bad)
        for text in _new(question, read.get(at, ())):
            fits = entry["gold_supported"] and normalize_answer(text) not in bad
            readings.append(Reading(at, text, "", fits, entry["remark"]))
    for at, entry in zip(which["variants"], judged["variants"], strict=True):
        own_reading = seen if isinstance(seen, str) else seen.get(at)
        checks += _variant(at, draft["variants"][at], entry, own_reading)
    wrong = {at: texts for at, texts in wrong.items() if texts}
    return Checked(checks, wrong, tuple(readings), _halves(draft, judged["questions"]), "")


def _wrong(question: Json, bad: Container[str]) -> tuple[str, ...]:
    """Return the accepted answers that, normalised, are among those judged to be others."""
    return tuple(text for text in question["accepted_answers"] if normalize_answer(text) in bad)


def _halves(draft: Json, judged: Sequence[Json]) -> dict[int, tuple[int, int]]:
    return {
        entry["number"] - 1: (entry["earlier_scene"], entry["later_scene"])
        for entry in judged
        if depends_on_transition(draft["questions"][entry["number"] - 1])
    }


def _shown(
    draft: Json, which: Which, sentences: Sequence[str], listed: Mapping[int, Sequence[str]]
) -> dict[str, Json]:
    """Return the inputs of the prompt that judges, but for the language."""
    questions = []
    for at, others in listed.items():
        part = draft["questions"][at]
        pair = part["target_transition"] if depends_on_transition(part) else None
        about = part["question_type"] + ("" if pair is None else f", from scene {pair[0]} to {pair[1]}")
        questions.append(
            {
                "number": at + 1, "about": about, "question": part["question"],
                "answer": part["gold_answer"],
                "others": [f"({number}) {text}" for number, text in enumerate(others, start=1)],
            }
        )  # fmt: skip
    variants = [
        {
            "number": at + 1, "changed_scene": part["changed_scene_id"], "change_type": part["change_type"],
            "description": part["semantic_delta"], "new_text": part["contrastive_scene_text"],
        }
        for at, part in ((at, draft["variants"][at]) for at in which["variants"])
    ]  # fmt: skip
    return {
        "moral_label": draft["moral_label"],
        "narrative_type": draft["narrative_type"],
        "questions": questions,
        "scene_fields": scenes_shown([draft["scenes"][at] for at in which["scenes"]]),
        "scenes": scene_texts(draft["scenes"]),
        "sentences": list(sentences),
        "transition_fields": transitions_shown([draft["transitions"][at] for at in which["transitions"]]),
        "variants": variants,
    }


def _unjudged(draft: Json, which: Which, why: str) -> Iterator[Json]:
    for name in ("scenes", "transitions"):
        if which[name]:
            yield make_check(CONSISTENT, f"$.{name}", None, why)
    for at in which["questions"]:
        part, path = draft["questions"][at], f"$.questions[{at}]"
        yield make_check(ANSWERABLE, f"{path}.gold_answer", None, why)
        yield make_check(EQUIVALENT, f"{path}.accepted_answers", None, why)
        yield make_check(DRAWABLE, f"{path}.question", None, why)
        if depends_on_transition(part):
            yield make_check(DEPENDS, f"{path}.question", None, why)
    for at in which["variants"]:
        yield make_check(MINIMAL, f"$.variants[{at}].contrastive_scene_text", None, why)


def _narrative(judged: Json) -> Iterator[Json]:
    missing = [f"sentence {entry['sentence']}: {entry['remark']}" for entry in judged["missing"]]
    added = [f"scene {entry['scene']}: {entry['remark']}" for entry in judged["added"]]
    misplaced = [judged["misplaced"]] if judged["misplaced"] else []
    yield _verdict(ORDER, misplaced, "the events stand as they happened", "not in the order of events")
    yield _verdict(COMPLETE, missing, "nothing that matters is missing", "missing of the source")
    yield _verdict(FAITHFUL, added, "nothing is added to the source", "not in the source")


def _verdict(code: str, faults: Sequence[str], fine: str, fault: str) -> Json:
    note = f"{fault}: {'; '.join(faults)}" if faults else fine
    return make_check(code, "$.story_text", not faults, note)


def _contradictions(name: str, which: Which, entries: Sequence[Json]) -> Iterator[Json]:
    for at, entry in zip(which[name], entries, strict=True):
        path = f"$.{name}[{at}]"
        if not entry["contradicted"]:
            yield make_check(CONSISTENT, path, True, "the story bears it out")
        for key in entry["contradicted"]:
            said = with_remark("the story does not bear it out", entry["remark"])
            yield make_check(CONSISTENT, f"{path}.{key}", False, said)


def _renderable(which: Which, scenes: Sequence[Json]) -> Iterator[Json]:
    for at, scene in zip(which["scenes"], scenes, strict=True):
        shows = scene["renderable"]
        said = "one picture can show it" if shows else with_remark("no picture shows it", scene["remark"])
        yield make_check(RENDERABLE, f"$.scenes[{at}].visual_must_show", shows, said)


def _labels(draft: Json, judged: Json) -> Iterator[Json]:
    for name in LABELS:
        if draft[name] is not None:
            fits = judged[f"{name}_fits"]
            said = "fits" if fits else with_remark("does not fit", judged["remark"])
            yield make_check(LABEL, f"$.{name}", fits, f"{draft[name]} {said}")


_WEAK = {
    "told": "its words, or another question, nearly tell its answer",
    "detail": "the story does not turn on what it asks for",
    "unclear": "it is clumsy, or cannot be understood without the text",
}
"""What is weak about a question -> in words."""


def _question(at: int, part: Json, entry: Json, read: tuple[str, ...] | str | None) -> Iterator[Json]:
    """Yield the checks of a question.

    ``read``: what readers answered; why they did not; None where none was asked.
    """
    path, remark, is_moral = f"$.questions[{at}]", entry["remark"], part["question_type"] == "moral"
    yield make_check(ANSWERABLE, f"{path}.gold_answer", *_answerable(part, entry, read))
    wrong = _wrong(part, entry["bad"])
    said = f"{len(part['accepted_answers']) - 1} answers say the same as the canonical one"
    if wrong:
        said = with_remark("not the same answer: " + ", ".join(map(repr, wrong[:5])), remark)
    yield make_check(EQUIVALENT, f"{path}.accepted_answers", not wrong, said)
    if not is_moral:
        weak = _WEAK.get(entry["weakness"], "")
        said = f"who knows nothing but its words would say: {entry['first_guess']}"
        yield make_check(WORTH, f"{path}.question", not weak, with_remark(weak, remark) if weak else said)
    shows = is_moral or entry["drawable"]
    said = "pictures can show it" if shows else with_remark("no picture shows it", remark)
    yield make_check(DRAWABLE, f"{path}.question", shows, said)
    if depends_on_transition(part):
        earlier, later = entry["earlier_scene"], entry["later_scene"]
        fault = f"both halves of what it asks about are in scene {earlier}"
        fine = f"its halves are in the scenes {earlier} and {later}"
        yield make_check(DEPENDS, f"{path}.question", earlier != later, fine if earlier != later else fault)
    if entry["repeats"] is not None:
        yield make_check(
            DISTINCT, f"{path}.question", False, f"it asks the same as question {entry['repeats']}"
        )


def _answerable(part: Json, entry: Json, read: tuple[str, ...] | str | None) -> tuple[bool | None, str]:
    """Return whether the text gives the answer of a question, and what shows it."""
    if part["question_type"] == "moral":
        fits = entry["moral"]
        return fits, "the course of events supports it" if fits else "the moral label does not fit"
    said = "the text supports this answer and no other" if not isinstance(read, str) else read
    fault = ""
    if read and not isinstance(read, str):
        said = f"without having seen the answers: {note(read[0])!r}, the same answer"
        if all(normalize_answer(text) in entry["bad"] for text in read):
            fault = f"without having seen the answers: {note(read[0])!r}, which is another answer"
    elif read is not None and not isinstance(read, str):
        return False, "a reader of the text found no answer to it: ask for what the text tells"
    if not entry["gold_supported"]:
        fault = "the text does not support the answer"
    elif not entry["one_answer"]:
        fault = "it does not settle one answer"
    if fault:
        return False, with_remark(fault, entry["remark"])
    return None if isinstance(read, str) else True, said


def _variant(at: int, variant: Json, judged: Json, seen: Json | str | None) -> Iterator[Json]:
    path, remark = f"$.variants[{at}]", judged["remark"]
    changed, kept = judged["meaning_changed"], judged["rest_kept"]
    minimal, fits = changed and kept, judged["description_fits"]
    fault = "more than the meaning is changed" if changed else "the meaning is not changed"
    said = "the meaning is changed, the rest is kept" if minimal else with_remark(fault, remark)
    yield make_check(MINIMAL, f"{path}.contrastive_scene_text", minimal, said)
    said = "changed as described" if fits else with_remark("the description does not fit", remark)
    yield make_check(DESCRIBED, f"{path}.semantic_delta", fits, said)
    if isinstance(seen, str):
        yield make_check(READ, f"{path}.contrastive_scene_text", None, seen)
        return
    faults = [] if judged["possible"] else [with_remark("the story contradicts itself", remark)]
    if seen is None:
        said = "; ".join(faults) or "read with its description: the story holds together"
        yield make_check(READ, f"{path}.contrastive_scene_text", not faults, said)
        return
    faults += _read_faults(variant, seen, is_described=fits)
    reading = f"what was read: {seen['change']}"
    said = f"{'; '.join(faults)} ({reading})" if faults else reading
    yield make_check(READ, f"{path}.contrastive_scene_text", not faults, said)
    if variant["contrastive_moral"] is not None:
        agrees, wanted = seen["moral_label"] == variant["contrastive_moral"], variant["contrastive_moral"]
        said = f"the changed story is read as {seen['moral_label'] or 'no single value'}"
        more = "" if agrees else f", the variant says {wanted}"
        yield make_check(MORAL, f"{path}.contrastive_moral", agrees, said + more)


def _read_faults(variant: Json, seen: Json, *, is_described: bool) -> Iterator[str]:
    """Yield what a reader who was not told of a change objects to."""
    kinds, places = seen["change_types"], ", ".join(map(str, seen["contradicts"]))
    if not kinds:
        yield "no change of meaning was seen"
    elif variant["change_type"] not in kinds and not is_described:
        yield f"read as {' or '.join(kinds)}, not as {variant['change_type']}"
    if places:
        yield f"it contradicts scene {places}"
    if seen["others_changed"]:
        yield "more than one meaning is changed"
    if not seen["entities_kept"]:
        yield "characters or things are not kept"
    if not seen["fluent"]:
        yield "it has a broken sentence, or words that answer a text which is no longer there"


async def judge_answers(
    case: Case, questions: Sequence[Json], answers: Sequence[Sequence[str]]
) -> Sequence[Judged | str]:
    """Return the judgement of further answers to each of some questions, or why there is none."""
    entries = [
        {"question": part["question"], "gold_answer": part["gold_answer"], "answers": list(texts)}
        for part, texts in zip(questions, answers, strict=True)
    ]
    counts = [len(texts) for texts in answers]
    try:
        return (
            await case.ask(
                "katha/check_answers", lambda reply: read_judgements(reply, counts), questions=entries,
                scenes=scene_texts(case.draft["scenes"]),
            )
        ).value  # fmt: skip
    except NoAnswer as failure:
        return [why_unjudged(failure)] * len(questions)


async def guess(case: Case, times: int) -> list[Json]:
    """Return how often each question was answered by somebody who saw nothing but the question: notes.

    Not asked are moral questions, which are a choice of twelve, and those about what one picture shows. A
    guess counts as right where it is an accepted answer, by the rule that scoring uses.
    """
    notes = []
    for at, part in enumerate(case.draft["questions"]):
        if part["question_type"] in ("moral", "action_visibility") or len(part["evidence_scenes"]) < 2:
            continue
        known = {normalize_answer(text) for text in part["accepted_answers"]}
        right = told = 0
        for sample in range(times):
            settings = case.tools.own(ModelSettings)
            again = settings.model_copy(update={"sample": settings.sample + sample})
            own = replace(case, tools=replace(case.tools, settings=again))
            asked = {"question": part["question"], "question_type": part["question_type"]}
            try:
                guessed = (await own.ask("katha/guess_answers", read_guess, **asked)).value
            except NoAnswer as failure:
                why_unjudged(failure)  # raises where the model is to be asked again later
                continue
            told += 1
            right += guessed is not None and normalize_answer(guessed) in known
        if told:
            said = f"guessed right by {right} of {told} who saw nothing but the question"
            notes.append(make_check(GUESSABLE, f"$.questions[{at}].question", True, said))
    return notes


# --


class VerifySettings(Worded):
    """Settings of the stage; without a model only the rules check."""

    retired: ClassVar[tuple[str, ...]] = ("guessing",)
    guesses: int = Field(
        default=0,
        ge=0,
        le=20,
        description="How often the model guesses each answer from the question alone: a note, nothing else.",
    )


SPEC = StageSpec(
    name="verify_record",
    version=13,
    shape="map",
    reads=(
        *("story", *NARRATIVE, "given", "analysis", "edits", "draft", "judged", REPEATED),
        *("screening", "assessment", "labels_by"),
    ),
    writes=("checks",),
    libraries=("jsonschema-rs", "py3langid"),
    settings=VerifySettings,
    asks=(*PROMPTS, "katha/guess_answers"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: screening, rules, a model's, its author's verdicts, and those that nobody made."""
    settings = tools.own(VerifySettings)
    story, draft = told_story(item.fields), item["draft"]
    assessed = {check["code"]: check for check in by(item["labels_by"], item["assessment"])}
    screened = [
        check for check in item["screening"] if check["passed"] is not None or check["code"] not in assessed
    ]
    left_out = [make_check(DISTINCT, "$.questions", True, f"left out: {text}") for text in item[REPEATED]]
    ruled = by(RULES, [*screened, *left_out, *rule_checks(story, draft)])
    judged = item["judged"] if item["judged"] is not None and not item["edits"] else []
    if settings.models():
        if not judged:
            sentences = source_sentences(item["story"]["normalized_text"], item["analysis"])
            told = () if item["narrative"] is None else sentences
            checked = await check_draft(story, draft, tools, told)
            judged = by(checked.judge, checked.checks)
        if settings.guesses:
            case = Case(story, draft, tools)
            notes = await guess(case, settings.guesses)
            judged = [*judged, *by(case.judge, notes)]
    made = [*assessed.values(), *ruled, *judged]
    return Made({"checks": settle(made, item["given"], draft)})


def by(producer: str | None, checks: Sequence[Json]) -> list[Json]:
    """Return checks with who made them, where they do not say so themselves."""
    return [{"producer": producer, **check} for check in checks]
