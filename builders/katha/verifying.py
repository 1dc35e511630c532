"""Having a model check a draft against its story: questions, variants, scenes, transitions and labels.

The questions are first answered by a prompt that has not seen the answers. What it says is compared with the
accepted answers by the rule that scoring uses; where it is none of them word for word, a second prompt judges
it among the accepted answers, without being told which it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...engine.stage import NoAnswer, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ...schemas.values import Own
from ..replies import ask, language
from .annotate_transitions import transitions_shown
from .draft_scenes import scenes_shown
from .drafts import LABELS, scene_texts
from .read_checks import Judged, note, read_answers, read_contrasts, read_judgements, read_record
from .rule_checks import make_check

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under check.

    Attributes:
        story: the story.
        draft: title, labels and lists of parts.
        tools: the stage's tools; their settings name the model that checks.
    """

    story: Json
    draft: Json
    tools: Tools

    async def ask(self, prompt_id: str, read: Callable[[Json], T], **inputs: Json) -> T:
        """Return what a reader makes of the reply to a prompt; language and scenes are shown to each.

        Raises:
            NoAnswer: there is no usable reply.
        """
        told = await ask(
            self.tools,
            prompt_id,
            read,
            language=language(self.story),
            scenes=scene_texts(self.draft["scenes"]),
            **inputs,
        )
        return told.value


def why_unjudged(failure: NoAnswer) -> str:
    """Return why a check has no verdict, in one line.

    Raises:
        NoAnswer: the model could not be reached: the stage is to be run again, not to be settled like this.
    """
    if failure.code == "unavailable":
        raise failure
    return "not judged: " + note(f"{failure.code}: {failure.reason}")


def with_remark(said: str, remark: str) -> str:
    """Return what a check says, with the model's remark, if there is one."""
    return f"{said}: {remark}" if remark else said


ANSWERABLE, EQUIVALENT = "model_answerable", "model_answers_equivalent"


@dataclass(frozen=True, slots=True)
class _Answered:
    """A question and what the model answered without having seen the answers.

    Attributes:
        others: the accepted answers beside the canonical one.
        blind: the model's answer; None where it finds the text unclear.
    """

    question: Json
    others: tuple[str, ...]
    blind: str | None

    @property
    def is_canonical(self) -> bool:
        """Whether the model's answer is the canonical one, by the rule that scoring uses."""
        return normalize_answer(self.blind or "") == normalize_answer(self.question["gold_answer"])

    @property
    def listed(self) -> tuple[str, ...]:
        """The answers to be judged: the accepted ones, and the model's own where it is a new one."""
        return self.others if self.blind is None or self.place is not None else (*self.others, self.blind)

    @property
    def place(self) -> int | None:
        """Where its answer is among the accepted ones, -1 for the canonical one; None if it is new."""
        if self.is_canonical:
            return -1
        plain = [normalize_answer(text) for text in self.others]
        said = normalize_answer(self.blind or "")
        return plain.index(said) if said in plain else None


async def check_questions(case: Case) -> list[Json]:
    """Return the checks of all questions: one whether it is answerable, one whether its answers agree.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    questions = case.draft["questions"]
    if not questions:
        return []
    asked = [f"({part['question_type']}) {part['question']}" for part in questions]
    try:
        blind = await case.ask(
            "katha/answer_questions", lambda reply: read_answers(reply, len(asked)), questions=asked
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(ANSWERABLE, _path(number), None, why) for number in range(len(questions))]
    answered = [_Answered(part, _others(part), answer) for part, answer in zip(questions, blind, strict=True)]
    judged = await _judgements(case, answered)
    checks = []
    for number, (part, verdict) in enumerate(zip(answered, judged, strict=True)):
        checks += [_answerable(number, part, verdict), _equivalent(number, part, verdict)]
    return checks


def _path(number: int) -> str:
    return f"$.questions[{number}].gold_answer"


def _others(question: Json) -> tuple[str, ...]:
    gold = normalize_answer(question["gold_answer"])
    return tuple(text for text in question["accepted_answers"] if normalize_answer(text) != gold)


async def _judgements(case: Case, answered: Sequence[_Answered]) -> Sequence[Judged | str]:
    """Return the judgement of each question, or why there is none."""
    entries = [
        {
            "question": part.question["question"],
            "gold_answer": part.question["gold_answer"],
            "answers": list(part.listed),
        }
        for part in answered
    ]
    counts = [len(part.listed) for part in answered]
    try:
        return await case.ask(
            "katha/check_answers", lambda reply: read_judgements(reply, counts), questions=entries
        )
    except NoAnswer as failure:
        return [why_unjudged(failure)] * len(answered)


def _answerable(number: int, part: _Answered, judged: Judged | str) -> Json:
    path = _path(number)
    if part.blind is None:
        return make_check(ANSWERABLE, path, False, "without having seen the answers: the text is unclear")
    said = f"without having seen the answers: {note(part.blind)!r}"
    if isinstance(judged, str):
        known = part.place is not None
        more = "an accepted answer" if known else judged
        return make_check(ANSWERABLE, path, True if known else None, f"{said}, {more}")
    if not judged.supported:
        fault = with_remark("the text does not support the answer", judged.remark)
        return make_check(ANSWERABLE, path, False, fault)
    place = len(part.others) if part.place is None else part.place
    if place in judged.wrong:
        return make_check(
            ANSWERABLE, path, False, with_remark(f"{said}, which is another answer", judged.remark)
        )
    kind = "the same in other words" if part.place is None else "an accepted answer"
    return make_check(ANSWERABLE, path, True, f"{said}, {kind}")


def _equivalent(number: int, part: _Answered, judged: Judged | str) -> Json:
    path = f"$.questions[{number}].accepted_answers"
    if isinstance(judged, str):
        return make_check(EQUIVALENT, path, None, judged)
    wrong = [text for place, text in enumerate(part.others) if place in judged.wrong]
    if not wrong:
        said = f"{len(part.others)} answers say the same as the canonical one"
        return make_check(EQUIVALENT, path, True, said)
    said = "not the same answer: " + ", ".join(map(repr, wrong[:5]))
    return make_check(EQUIVALENT, path, False, with_remark(said, judged.remark))


MINIMAL, DESCRIBED = "model_contrast_minimal", "model_contrast_described"
CONSISTENT, RENDERABLE, LABEL = "model_consistent", "model_renderable", "model_label_fits"


async def check_variants(case: Case) -> list[Json]:
    """Return the checks of all variants: whether only the meaning is changed, and changed as described.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    variants = case.draft["variants"]
    if not variants:
        return []
    paths = [f"$.variants[{number}]" for number in range(len(variants))]
    try:
        judged = await case.ask(
            "katha/check_contrastives",
            lambda reply: read_contrasts(reply, len(variants)),
            variants=list(variants),
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(MINIMAL, f"{path}.contrastive_scene_text", None, why) for path in paths]
    return [check for path, entry in zip(paths, judged, strict=True) for check in _contrast(path, entry)]


def _contrast(path: str, judged: Json) -> Iterator[Json]:
    changed, kept = judged["meaning_changed"], judged["rest_kept"]
    fault = "more than the meaning is changed" if changed else "the meaning is not changed"
    minimal = changed and kept
    said = "the meaning is changed, the rest is kept" if minimal else with_remark(fault, judged["remark"])
    yield make_check(MINIMAL, f"{path}.contrastive_scene_text", minimal, said)
    fits = judged["description_fits"]
    said = "changed as described" if fits else with_remark("the description does not fit", judged["remark"])
    yield make_check(DESCRIBED, f"{path}.semantic_delta", fits, said)


async def check_fields(case: Case) -> list[Json]:
    """Return the checks of scenes, transitions and labels against the story.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    draft = case.draft
    try:
        judged = await case.ask(
            "katha/check_record",
            lambda reply: read_record(reply, draft["scenes"], draft["transitions"]),
            moral_label=draft["moral_label"],
            narrative_type=draft["narrative_type"],
            scene_fields=scenes_shown(draft["scenes"]),
            transition_fields=transitions_shown(draft["transitions"]),
        )
    except NoAnswer as failure:
        return [make_check(CONSISTENT, "$.scenes", None, why_unjudged(failure))]
    return [
        *_contradictions("scenes", judged["scenes"]),
        *_renderable(judged["scenes"]),
        *_contradictions("transitions", judged["transitions"]),
        *_labels(draft, judged),
    ]


def _contradictions(name: str, entries: Sequence[Json]) -> Iterator[Json]:
    for number, entry in enumerate(entries):
        path = f"$.{name}[{number}]"
        if not entry["contradicted"]:
            yield make_check(CONSISTENT, path, True, "the story bears it out")
        for field in entry["contradicted"]:
            said = with_remark("the story does not bear it out", entry["remark"])
            yield make_check(CONSISTENT, f"{path}.{field}", False, said)


def _renderable(scenes: Sequence[Json]) -> Iterator[Json]:
    for number, scene in enumerate(scenes):
        shows = scene["renderable"]
        said = "one picture can show it" if shows else with_remark("no picture shows it", scene["remark"])
        yield make_check(RENDERABLE, f"$.scenes[{number}].visual_must_show", shows, said)


def _labels(draft: Json, judged: Json) -> Iterator[Json]:
    for name in LABELS:
        if draft[name] is not None:
            said = "fits" if judged[name] else with_remark("does not fit", judged["label_remark"])
            yield make_check(LABEL, f"$.{name}", judged[name], f"{draft[name]} {said}")


PROMPTS = ("katha/answer_questions", "katha/check_answers", "katha/check_contrastives", "katha/check_record")
"""Ids of the prompts that a check asks with."""


async def check_draft(story: Json, draft: Json, tools: Tools) -> list[Json]:
    """Return what a model finds in a draft, as checks (``schemas.values.Check`` as JSON).

    The model is the ``verifier`` of the stage's settings, where they have one, else their ``model``. What it
    could not judge has no verdict and says why. The codes:

    ========================  ====================================================================
    model_answerable          without having seen the answers, the model gives an accepted one
    model_answers_equivalent  every accepted answer says the same as the canonical one
    model_contrast_minimal    a variant changes the meaning, and nothing beside it
    model_contrast_described  its kind and its description tell what was changed
    model_consistent          the story bears out the fields of a scene or transition
    model_renderable          one picture can show the scene
    model_label_fits          the story supports the label
    ========================  ====================================================================

    Args:
        story: the story.
        draft: title, labels and lists of parts, as the stage ``apply_edits`` writes it.
        tools: the stage's tools.

    Raises:
        NoAnswer: the model cannot be reached (code ``unavailable``).
    """
    case = Case(story, draft, replace(tools, settings=verifier_settings(tools.settings)))
    return [*await check_questions(case), *await check_variants(case), *await check_fields(case)]


def verifier_settings(settings: Own) -> ModelSettings:
    """Return the settings of the checks: those of the stage, with its verifier, if any, as the model."""
    assert isinstance(settings, ModelSettings)
    same = {name: getattr(settings, name) for name in ModelSettings.model_fields}
    return ModelSettings(**{**same, "model": getattr(settings, "verifier", settings.model)})
