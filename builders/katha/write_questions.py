"""Stage: the recoverability questions (Tables 13 and 14). Rules ask for the author's moral label alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from ...engine.stage import BadReply
from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer, primary_language
from ...validators.katha.scene_rules import (
    check_answers,
    check_question_places,
    check_temporal,
    offers_choice,
    says_nothing,
)
from ...validators.view import Story
from ..step import PlannerSettings, Problems, Step, check_count, is_told, language, listed, needed
from ..text.segments import lexicon, pick, share
from .annotate_transitions import transitions_shown
from .drafts import NARRATIVE, SPARE, Sketch

# -- The question for the author's moral label, which any story can be asked that has one (Table 13)


def ask_moral(story: Json, transitions: Sequence[Json], label: str | None) -> Json | None:
    """Return the question about the transition that bears a label.

    None without a label, where no transition bears it, and for stories that are not in English, as it is.
    """
    bearer = next((part for part in transitions if part["moral_target"] == label), None)
    question = pick(lexicon("morals")["questions"], story["id"], "moral")
    accepted = moral_answers(label, question)
    if accepted is None or bearer is None or primary_language(story["language"]) != "en":
        return None
    first, second = bearer["from_scene"], bearer["to_scene"]
    return {
        "question_id": f"{story['id']}_q01",
        "story_id": story["id"],
        "question_type": "moral",
        "question": question,
        "gold_answer": accepted[0],
        "accepted_answers": accepted,
        "target_scene": None,
        "target_transition": [first, second],
        "evidence_scenes": [first, second],
        "required_evidence": _evidence(first, second, accepted[0]),
        "answerability": "text_supported",
    }


def relabelled(question: Json, label: str) -> Json | None:
    """Return a moral question answered by another label; None where there are no words for it."""
    accepted = moral_answers(label, question["question"])
    if accepted is None:
        return None
    evidence = question["required_evidence"]
    if question["target_transition"] is not None:
        first, second = question["target_transition"]
        evidence = _evidence(first, second, accepted[0])
    return {
        **question, "gold_answer": accepted[0], "accepted_answers": accepted, "required_evidence": evidence,
    }  # fmt: skip


def moral_answers(label: str | None, question: str) -> list[str] | None:
    """Return the words for a label, the canonical one first; None where none can be asked for."""
    forms = lexicon("morals")["answers"].get(label)
    if forms is None:
        return None
    asked = normalize_answer(question)
    kept = [form for form in forms if not contains_phrase(asked, normalize_answer(form))]
    return kept if kept[:1] == forms[:1] else None


def _evidence(first: int, second: int, gold: str) -> str:
    return f"The choice between scene {first} and scene {second} must show {gold}."


# --

EXTRA_CAUSAL, EXTRA_EMOTIONAL, ACTION = 0.265, 0.2474, 0.23
"""Share of stories with a second causal, a second emotional, and an action question (Table 14)."""


class Settings(PlannerSettings):
    retired: ClassVar[tuple[str, ...]] = ("encoder", "near")
    questions: int | None = Field(
        default=None, ge=1, le=24,
        description="Questions that a model writes about a story, by type [Table 14, five and the moral].",
    )  # fmt: skip


def show_scenes(
    sketch: Sketch,
    wanted: Mapping[str, int],
    before: Sequence[Json] = (),
    again: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> Json:
    """Return the inputs of the prompt.

    ``wanted``: type -> how many questions of it. ``again``: number of a question that is to be written again
    -> what was found.
    """
    return {
        "again": sorted(again),
        "findings": [finding for number in sorted(again) for finding in again[number]],
        "language": language(sketch.story),
        "moral_label": sketch.moral_label,
        "previous": questions_shown(before, sketch.moral_label),
        "scenes": sketch.texts,
        "spare": SPARES,
        "title": sketch.story["title"],
        "transitions": transitions_shown(sketch.transitions),
        "wanted": dict(wanted),
    }


def _wanted(sketch: Sketch, settings: Settings) -> Mapping[str, int]:
    return questions_wanted(sketch.story["id"], sketch.moral_label, settings.questions)


def _read(reply: Json, sketch: Sketch, settings: Settings) -> list[Json]:
    wanted = _wanted(sketch, settings)
    return read_questions(reply, sketch.story, sketch.scenes, sketch.moral_label, wanted)


def _rules(sketch: Sketch, settings: Settings) -> list[Json]:
    if settings.rehearsed:
        return _rehearsed(sketch.story["id"], sketch.texts, _wanted(sketch, settings))
    asked = ask_moral(sketch.story, sketch.transitions, sketch.moral_label)
    return [] if asked is None else [asked]


def _rehearsed(story_id: str, texts: Sequence[str], wanted: Mapping[str, int]) -> list[Json]:
    """Return as many questions of each type as a model is asked for, in words of the story."""
    types = [name for name, number in wanted.items() for _ in range(number)] + ["action_visibility"] * SPARES
    questions = []
    for number, name in enumerate(types, start=1):
        scene = 1 + int(share(story_id, name, str(number)) * (len(texts) - 1))
        answer = " ".join(texts[scene - 1].split()[:8])
        questions.append(
            {
                "question_id": f"{story_id}_q{number:02d}",
                "story_id": story_id,
                "question_type": name,
                "question": f"What happens here: {' '.join(texts[scene].split()[:8])}?",
                "gold_answer": answer,
                "accepted_answers": [answer] * 4,
                "target_scene": None,
                "target_transition": [scene, scene + 1],
                "evidence_scenes": [scene, scene + 1],
                "required_evidence": f"The pictures must show: {answer}.",
                "answerability": "text_supported",
            }
        )
    return questions


def _settle(drafted: Json, sketch: Sketch, settings: Settings) -> Json:
    """Return the questions and spare ones without those that repeat an earlier one, and why these are out."""
    again = {} if settings.rehearsed else repetitions(drafted)
    left = (part for number, part in enumerate(drafted) if number not in again)
    kept = [
        {**part, "question_id": f"{part['story_id']}_q{number:02d}"}
        for number, part in enumerate(left, start=1)
    ]
    # In a rehearsal nobody chooses, and all are checked.
    count = len(kept) if settings.rehearsed else sum(_wanted(sketch, settings).values())
    return {
        "questions": kept[:count],
        SPARE: kept[count:],
        REPEATED: [f"{drafted[number]['question']!r}: {reason}" for number, reason in again.items()],
    }


def _given(sketch: Sketch, settings: PlannerSettings) -> Json:
    given = sketch.given_list("questions")
    return None if given is None else {"questions": given, SPARE: [], REPEATED: []}


SPARES = 3
"""Questions that a model may write beyond those wanted, for a check to choose from."""
DISTINCT = "question_distinct"
"""Code of the check that no earlier question asks the same."""
REPEATED = "repeated_questions"
"""Field of an item: the questions that were left out because an earlier one asks the same, and why."""


def repetitions(questions: Sequence[Json]) -> dict[int, str]:
    """Return the positions of questions that ask what an earlier one asks, and why it is the same.

    It has the same words, by the normalisation that scoring uses; or it is of the same type and wants the
    same answer from the same scenes.
    """
    first: dict[object, int] = {}
    again: dict[int, str] = {}
    for number, part in enumerate(questions):
        words = normalize_answer(part["question"])
        answer = (part["question_type"], normalize_answer(part["gold_answer"]), *part["evidence_scenes"])
        if words in first:
            again[number] = f"it has the words of question {first[words] + 1}"
        elif answer in first:
            again[number] = f"it wants the same answer from the same scenes as question {first[answer] + 1}"
        else:
            first[words] = first[answer] = number
    return again


def other_answers(question: Json, moral: str | None) -> list[str]:
    """Return the accepted answers beside the canonical one, without the label that rules add."""
    same = {normalize_answer(text) for text in (question["gold_answer"], moral or "")}
    return [text for text in question["accepted_answers"] if normalize_answer(text) not in same]


def questions_shown(questions: Sequence[Json], moral: str | None) -> list[Json]:
    """Return questions in the form in which a model writes them."""
    return [
        {
            "question_type": part["question_type"],
            "target_scene": part["target_scene"],
            "target_from_scene": None if part["target_transition"] is None else part["target_transition"][0],
            "evidence_scenes": list(part["evidence_scenes"]),
            "question": part["question"],
            "gold_answer": part["gold_answer"],
            "other_answers": other_answers(part, moral),
            "required_evidence": part["required_evidence"],
        }
        for part in questions
    ]


_MORE = ("causal", "emotional", "consequence", "action_visibility", "temporal_order")
"""Types of which a story gets a second question, the first that it gets first."""


def questions_wanted(story_id: str, moral: str | None, count: int | None = None) -> Mapping[str, int]:
    """Return how many questions of each type a story gets.

    Without a count a benchmark has the types of Table 14: one causal, emotional, moral, consequence and
    temporal question; which stories get a second causal or emotional one, or one about a visible action, is
    fixed by the id. Five at least stand beside the moral one, so that a weak one does not spoil a story:
    where the draw gives four, one is about a visible action. With a count each type comes in turn. A story
    without a moral label gets no moral question, and one about a visible action in its place.
    """
    if count is not None:
        types = [*_MORE[:2], *(["moral"] if moral is not None else []), *_MORE[2:]]
        names = [name for names in (types, *[_MORE] * (count // len(_MORE))) for name in names][:count]
        return {name: names.count(name) for name in types if name in names}
    causal = 1 + (share(story_id, "causal") < EXTRA_CAUSAL)
    emotional = 1 + (share(story_id, "emotional") < EXTRA_EMOTIONAL)
    wanted = {
        "causal": causal,
        "emotional": emotional,
        "moral": int(moral is not None),
        "consequence": 1,
        "temporal_order": 1,
        "action_visibility": int(
            moral is None or causal + emotional == 2 or share(story_id, "action") < ACTION
        ),
    }
    return {name: number for name, number in wanted.items() if number}


def read_questions(
    reply: Json, story: Json, scenes: Sequence[Json], moral: str | None, wanted: Mapping[str, int]
) -> list[Json]:
    """Return the questions of a reply to ``katha/write_questions``: those wanted, then the spare ones.

    Spare questions stand for wanted ones that the story does not bear, those of a type that no other has
    first. A question about a feeling that the story does not tell is left out.
    """
    left, entries, spare = Counter(wanted), [], []
    for entry in reply["questions"]:
        kind = entry["question_type"]
        if kind == "emotional" and not is_told(entry["told_by"], story["normalized_text"]):
            continue
        if left[kind] > 0:
            left[kind] -= 1
            entries.append(entry)
        elif kind != "moral":
            spare.append(entry)
    types = {entry["question_type"] for entry in entries}
    entries += sorted(spare, key=lambda entry: entry["question_type"] in types)[: left.total() + SPARES]
    if all(entry["question_type"] == "moral" for entry in entries):
        names = ", ".join(name for name in wanted if name != "moral")
        raise BadReply(
            f"expected questions of the types {names}, found none of them; told_by of an emotional question"
            " must be words of the story, copied letter for letter"
        )
    return _questions(list(enumerate(entries, start=1)), story, scenes, moral)


def read_again(
    reply: Json, story: Json, scenes: Sequence[Json], before: Sequence[Json], numbers: Sequence[int]
) -> list[Json]:
    """Return the questions of some numbers, from 1, that a reply writes again: of the same types."""
    entries = reply["questions"]
    check_count(entries, len(numbers), "questions")
    types = [before[number - 1]["question_type"] for number in numbers]
    if [entry["question_type"] for entry in entries] != types:
        raise BadReply(f"question_type of the questions must stay, in this order: {', '.join(types)}")
    return _questions(list(zip(numbers, entries, strict=True)), story, scenes, None)


def _questions(
    entries: Sequence[tuple[int, Json]], story: Json, scenes: Sequence[Json], moral: str | None
) -> list[Json]:
    problems = Problems()
    questions = [
        read_question(entry, number, story, len(scenes), moral, problems) for number, entry in entries
    ]
    record = {"story_text": story["normalized_text"], "scenes": scenes, "questions": questions}
    view = Story("", {**record, "moral_label": moral})
    problems.add_issues(check_question_places(view))
    problems.add_issues(check_answers(view))
    problems.add_issues(check_temporal(view))
    problems.check_script(story, [[part["question"], part["gold_answer"]] for part in questions])
    problems.settle()
    return questions


def read_question(
    entry: Json, number: int, story: Json, scenes: int, moral: str | None, problems: Problems
) -> Json:
    """Return a question of a reply; ``story`` has the id under which it is asked, ``scenes`` their number."""
    where = f"question {number}"
    kind, first = entry["question_type"], entry["target_from_scene"]
    if kind == "moral" and entry["target_scene"] is None and first is None and entry["evidence_scenes"]:
        first = max(min(max(entry["evidence_scenes"]), scenes) - 1, 1)
    if (entry["target_scene"] is None) == (first is None):
        problems.add(f"{where}: exactly one of target_scene and target_from_scene must be a number")
    asked, gold = needed(entry, "question", where, problems), needed(entry, "gold_answer", where, problems)
    others = _other_answers(entry, (where, asked, gold), problems)
    if kind == "moral" and moral is not None:
        others = _with_label(moral, gold, others)
    return {
        "question_id": f"{story['id']}_q{number:02d}",
        "story_id": story["id"],
        "question_type": kind,
        "question": asked,
        "gold_answer": gold,
        "accepted_answers": [gold, *others],
        "target_scene": entry["target_scene"],
        "target_transition": None if first is None else [first, first + 1],
        "evidence_scenes": sorted(set(entry["evidence_scenes"])),
        "required_evidence": needed(entry, "required_evidence", where, problems),
        "answerability": "text_supported",
    }


def _other_answers(entry: Json, about: tuple[str, str, str], problems: Problems) -> list[str]:
    """Return the answers beside the canonical one.

    Left out are those that would accept almost anything, repeat it, or stand in the question: to accept fewer
    answers is always safe. A question of which nothing else is left goes back.
    """
    where, question, gold = about
    kept = [
        text
        for text in listed(entry, "other_answers", where, problems)
        if normalize_answer(text) != normalize_answer(gold)
        and answer_fault(entry["question_type"], question, text) is None
    ]
    if not kept:
        problems.add(
            f"{where}: other_answers must hold answers that mean the same as gold_answer in other words and"
            " are not contained in the question"
        )
    return kept


def answer_fault(question_type: str, question: str, answer: str) -> str | None:
    """Return why an answer may not be accepted, whatever it means, or None."""
    asked, plain = normalize_answer(question), normalize_answer(answer)
    if says_nothing(plain):
        return "it says nothing"
    if not offers_choice(question_type, asked) and contains_phrase(asked, plain):
        return "it stands in the question"
    return None


def _with_label(moral: str, gold: str, others: Sequence[str]) -> list[str]:
    """Return the answers with the label itself among them: judges answer moral questions by it (E.6)."""
    label = normalize_answer(moral)
    named = any(contains_phrase(normalize_answer(text), label) for text in (gold, *others))
    return list(others) if named else [label, *others]


STEP = Step(
    id="katha/write_questions",
    version=15,
    writes=("questions", SPARE, REPEATED),
    reads=("story", *NARRATIVE, "given", "scenes", "transitions", "moral_label"),
    sketch=Sketch.of,
    rules=_rules,
    show=lambda sketch, settings: show_scenes(sketch, _wanted(sketch, settings)),
    read=_read,
    given=_given,
    settle=_settle,
    settings=Settings,
    spare=True,
)
