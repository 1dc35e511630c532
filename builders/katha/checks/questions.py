"""Having a model check the questions of a draft: whether they can be answered, guessed and drawn.

The questions are first answered by a prompt that has not seen the answers, and guessed by one that has not
seen the scenes that hold them. What these say is compared with the accepted answers by the rule that scoring
uses; where it is none of them word for word, another prompt judges it among the accepted answers, without
being told which it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ....engine.stage import NoAnswer
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer
from ....validators.katha.question_rules import says_nothing
from ..drafts import make_check, scene_texts
from ..write_questions import DISTINCT
from .reading import Judged, Sound, note, read_answers, read_guesses, read_judgements, read_questions
from .settling import depends_on_transition
from .verifier import Case, why_unjudged, with_remark

ANSWERABLE, EQUIVALENT = "model_answerable", "model_answers_equivalent"
GUESSABLE, DRAWABLE = "question_not_guessable", "question_drawable"
DEPENDS = "question_depends_on_transition"
QUESTION_PROMPTS = (
    "katha/answer_questions", "katha/check_questions", "katha/guess_answers", "katha/check_answers",
)  # fmt: skip
"""Ids of the prompts that questions are checked with."""
NOT_SHOWN = "(not shown)"
NOT_TRIED = "not judged: guessing is switched off (setting guessing)"


@dataclass(frozen=True, slots=True)
class _Guess:
    """What was guessed.

    Attributes:
        text: the answer.
        seen: the numbers of the scenes that were shown; none where only title and characters were.
    """

    text: str
    seen: tuple[int, ...]

    @property
    def source(self) -> str:
        """What it was guessed from, in words."""
        if not self.seen:
            return "title and characters alone"
        return "the other scenes (" + ", ".join(map(str, self.seen)) + ")"


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and what the model answered without having seen the answers.

    Attributes:
        question: the question.
        blind: the model's answer; None where it finds the text unclear or gave none.
        guesses: what it guessed without having seen the scenes that hold the answer.
        news: further answers to be judged.
    """

    question: Json
    blind: str | None
    guesses: tuple[_Guess, ...] = ()
    news: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """The accepted answers beside the canonical one."""
        gold = normalize_answer(self.question["gold_answer"])
        return tuple(text for text in self.question["accepted_answers"] if normalize_answer(text) != gold)

    @property
    def listed(self) -> tuple[str, ...]:
        """The answers to be judged: the accepted ones, and the model's own where they are new."""
        new: dict[str, str] = {}
        for text in (self.blind, *(guess.text for guess in self.guesses), *self.news):
            if text is not None and not self.is_accepted(text):
                new.setdefault(normalize_answer(text), text)
        return (*self.others, *new.values())

    def is_accepted(self, text: str) -> bool:
        """Return whether an answer is an accepted one, by the rule that scoring uses."""
        known = (self.question["gold_answer"], *self.others)
        return normalize_answer(text) in map(normalize_answer, known)

    def is_wrong(self, text: str, judged: Judged) -> bool:
        """Return whether an answer was judged to be another one than the canonical one."""
        plain = normalize_answer(text)
        places = [place for place, other in enumerate(self.listed) if normalize_answer(other) == plain]
        return any(place in judged.wrong for place in places)


async def check_questions(case: Case) -> list[Json]:
    """Return the checks of all questions, in the order of the questions.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    questions = case.draft["questions"]
    if not questions:
        return []
    blind = await _blind(case)
    sound = await _soundness(case)
    guesses = await _guesses(case) if case.guessing else NOT_TRIED
    answered = [
        Answered(
            part,
            None if isinstance(blind, str) else blind[number],
            () if isinstance(guesses, str) else guesses[number],
        )
        for number, part in enumerate(questions)
    ]
    judged = await judge_answers(case, answered)
    return [
        check
        for number, (part, verdict) in enumerate(zip(answered, judged, strict=True))
        for check in (
            _answerable(number, part, verdict, blind if isinstance(blind, str) else None),
            _equivalent(number, part, verdict),
            _not_guessable(number, part, verdict, guesses if isinstance(guesses, str) else None),
            *_sound(number, part.question, sound if isinstance(sound, str) else sound[number]),
        )
    ]


def questions_asked(questions: Sequence[Json]) -> list[str]:
    """Return questions as they are shown to whoever answers them."""
    return [f"({part['question_type']}) {part['question']}" for part in questions]


async def _blind(case: Case) -> list[str | None] | str:
    """Return the model's answer to each question, None where the text is unclear; or why there are none."""
    asked = questions_asked(case.draft["questions"])
    try:
        return await case.ask(
            "katha/answer_questions", lambda reply: read_answers(reply, len(asked)), questions=asked
        )
    except NoAnswer as failure:
        return why_unjudged(failure)


async def _soundness(case: Case) -> list[Sound] | str:
    """Return what the model says of each question itself, or why it said nothing."""
    questions = case.draft["questions"]
    shown = []
    for part in questions:
        pair = part["target_transition"] if depends_on_transition(part) else None
        about = "" if pair is None else f", from scene {pair[0]} to {pair[1]}"
        shown.append(f"({part['question_type']}{about}) {part['question']} Answer: {part['gold_answer']}")
    try:
        return await case.ask(
            "katha/check_questions",
            lambda reply: read_questions(
                reply, [depends_on_transition(part) for part in questions], len(case.draft["scenes"])
            ),
            questions=shown,
        )
    except NoAnswer as failure:
        return why_unjudged(failure)


async def _guesses(case: Case) -> list[tuple[_Guess, ...]] | str:
    """Return what the model guesses for each question, or why it was not judged.

    It is asked once about all questions without any scene, and once for each distinct set of evidence scenes
    about its questions, with the other scenes.
    """
    questions, texts = case.draft["questions"], scene_texts(case.draft["scenes"])
    numbers = range(1, len(texts) + 1)
    groups: dict[tuple[int, ...], list[int]] = {(): list(range(len(questions)))}
    for place, part in enumerate(questions):
        seen = tuple(number for number in numbers if number not in part["evidence_scenes"])
        if seen:
            groups.setdefault(seen, []).append(place)
    characters = dict.fromkeys(name for scene in case.draft["scenes"] for name in scene["characters"])
    found: list[list[_Guess]] = [[] for _ in questions]
    missing = ""
    for seen, places in groups.items():
        try:
            answers = await case.ask(
                "katha/guess_answers",
                partial(read_guesses, count=len(places)),
                title=case.draft["title"],
                characters=list(characters),
                scenes=[text if number in seen else NOT_SHOWN for number, text in enumerate(texts, start=1)],
                questions=questions_asked([questions[place] for place in places]),
            )
        except NoAnswer as failure:
            missing = why_unjudged(failure)
            continue
        for place, answer in zip(places, answers, strict=True):
            if answer is not None and not says_nothing(normalize_answer(answer)):
                found[place].append(_Guess(answer, seen))
    return missing or [tuple(guesses) for guesses in found]


async def judge_answers(case: Case, answered: Sequence[Answered]) -> Sequence[Judged | str]:
    """Return the judgement of the answers to each question, or why there is none.

    Raises:
        NoAnswer: the model cannot be reached.
    """
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


def _answerable(number: int, part: Answered, judged: Judged | str, missing: str | None) -> Json:
    path = f"$.questions[{number}].gold_answer"
    if missing is not None:
        return make_check(ANSWERABLE, path, None, missing)
    if part.blind is None:
        return make_check(ANSWERABLE, path, False, "without having seen the answers: the text is unclear")
    said, known = f"without having seen the answers: {note(part.blind)!r}", part.is_accepted(part.blind)
    if isinstance(judged, str):
        more = "an accepted answer" if known else judged
        return make_check(ANSWERABLE, path, True if known else None, f"{said}, {more}")
    if not judged.supported:
        fault = with_remark("the text does not support the answer", judged.remark)
        return make_check(ANSWERABLE, path, False, fault)
    if part.is_wrong(part.blind, judged):
        return make_check(
            ANSWERABLE, path, False, with_remark(f"{said}, which is another answer", judged.remark)
        )
    kind = "an accepted answer" if known else "the same in other words"
    return make_check(ANSWERABLE, path, True, f"{said}, {kind}")


def _equivalent(number: int, part: Answered, judged: Judged | str) -> Json:
    path = f"$.questions[{number}].accepted_answers"
    if isinstance(judged, str):
        return make_check(EQUIVALENT, path, None, judged)
    wrong = [text for text in part.others if part.is_wrong(text, judged)]
    if not wrong:
        said = f"{len(part.others)} answers say the same as the canonical one"
        return make_check(EQUIVALENT, path, True, said)
    said = "not the same answer: " + ", ".join(map(repr, wrong[:5]))
    return make_check(EQUIVALENT, path, False, with_remark(said, judged.remark))


def _not_guessable(number: int, part: Answered, judged: Judged | str, missing: str | None) -> Json:
    path = f"$.questions[{number}].question"
    if missing is not None:
        return make_check(GUESSABLE, path, None, missing)
    unjudged = None
    for guess in part.guesses:
        if part.is_accepted(guess.text):
            said = "an accepted answer"
        elif isinstance(judged, str):
            unjudged = judged
            continue
        elif part.is_wrong(guess.text, judged):
            continue
        else:
            said = "the same in other words"
        return make_check(
            GUESSABLE, path, False, f"guessed from {guess.source}: {note(guess.text)!r}, {said}"
        )
    if unjudged is not None:
        return make_check(GUESSABLE, path, None, unjudged)
    tried = "; ".join(f"{note(guess.text)!r} from {guess.source}" for guess in part.guesses)
    return make_check(GUESSABLE, path, True, f"guessed wrong: {tried}" if tried else "nobody could guess it")


def _sound(number: int, question: Json, judged: Sound | str) -> Iterator[Json]:
    path = f"$.questions[{number}].question"
    if isinstance(judged, str):
        yield make_check(DRAWABLE, path, None, judged)
        if depends_on_transition(question):
            yield make_check(DEPENDS, path, None, judged)
        return
    said = "pictures can show it" if judged.drawable else with_remark("no picture shows it", judged.remark)
    yield make_check(DRAWABLE, path, judged.drawable, said)
    if judged.halves is not None:
        earlier, later = judged.halves
        fault = f"both halves of what it asks about are in scene {earlier}"
        fine = f"its halves are in the scenes {earlier} and {later}"
        yield make_check(DEPENDS, path, earlier != later, fine if earlier != later else fault)
    if judged.repeats is not None:
        yield make_check(DISTINCT, path, False, f"it asks the same as question {judged.repeats}")
