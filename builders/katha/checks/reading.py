"""Reading the replies to the prompts that check a draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text
from ...replies import Problems, by_number
from ..annotate_transitions import TRANSITION_FIELDS
from ..draft_scenes import SCENE_FIELDS

LONGEST_NOTE = 300


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model says of the answers to one question.

    Attributes:
        supported: whether the text supports the canonical answer.
        wrong: positions, from 0, of the other answers that are not the same answer.
        remark: what is wrong, in one line; empty if nothing is.
    """

    supported: bool
    wrong: frozenset[int]
    remark: str


def read_answers(reply: Json, count: int) -> list[str | None]:
    """Return the answers of a reply to ``katha/answer_questions``, in order; None where the text is unclear.

    Raises:
        BadReply: not every question is answered once, or an answer that is given says nothing.
    """
    answers: list[str | None] = []
    for entry in by_number(reply["answers"], "number", _upto(count), "answers to the questions"):
        answer = normalize_text(entry["answer"] or "")
        if entry["status"] == "recoverable" and not normalize_answer(answer):
            raise BadReply(f"question {entry['number']} is recoverable, but its answer says nothing")
        answers.append(answer if entry["status"] == "recoverable" else None)
    return answers


@dataclass(frozen=True, slots=True)
class Sound:
    """What a model says of a question itself.

    Attributes:
        drawable: whether pictures can show what is asked, and the answer.
        halves: the scenes in which the two halves of what it asks about stand; None where it has none.
        repeats: number, from 1, of an earlier question that asks the same, if there is one.
        remark: what pictures cannot show, in one line; empty if nothing.
    """

    drawable: bool
    halves: tuple[int, int] | None
    repeats: int | None
    remark: str


def read_questions(reply: Json, has_halves: Sequence[bool], scenes: int) -> list[Sound]:
    """Return the judgements of a reply to ``katha/check_questions``, one for each question.

    Args:
        reply: the reply.
        has_halves: of each question, whether it asks about a transition.
        scenes: how many scenes there are.

    Raises:
        BadReply: not every question is judged once, a question about a transition has no two scenes, or a
            number is that of no scene or no earlier question.
    """
    entries = by_number(reply["questions"], "number", _upto(len(has_halves)), "judgements of the questions")
    problems, sound = Problems(), []
    for entry, wanted in zip(entries, has_halves, strict=True):
        number, halves = entry["number"], (entry["earlier_scene"], entry["later_scene"])
        if wanted and not all(half is not None and 1 <= half <= scenes for half in halves):
            problems.add(
                f"question {number}: earlier_scene and later_scene must be scenes of 1 to {scenes}, where the"
                " two halves of what it asks about happen"
            )
        repeats = entry["repeats"]
        if repeats is not None and not 1 <= repeats < number:
            problems.add(f"question {number}: repeats must be the number of an earlier question, or null")
        sound.append(Sound(entry["drawable"], halves if wanted else None, repeats, note(entry["remark"])))
    problems.settle()
    return sound


def read_guesses(reply: Json, count: int) -> list[str | None]:
    """Return the guesses of a reply to ``katha/guess_answers``, in order; None where there is none.

    Raises:
        BadReply: not every question has one entry.
    """
    entries = by_number(reply["answers"], "number", _upto(count), "guesses at the questions")
    return [
        normalize_text(entry["answer"] or "") or None if entry["status"] == "guessed" else None
        for entry in entries
    ]


def read_judgements(reply: Json, counts: Sequence[int]) -> list[Judged]:
    """Return the judgements of a reply to ``katha/check_answers``, one for each question.

    Args:
        reply: the reply.
        counts: how many answers beside the canonical one each question has.

    Raises:
        BadReply: not every question is judged once, or a wrong answer has a number that is not there.
    """
    entries = by_number(reply["questions"], "number", _upto(len(counts)), "judgements of the questions")
    judged = []
    for entry, count in zip(entries, counts, strict=True):
        strange = [number for number in entry["wrong_answers"] if not 1 <= number <= count]
        if strange:
            raise BadReply(f"question {entry['number']} has {count} other answers; there is no {strange[0]}")
        wrong = frozenset(number - 1 for number in entry["wrong_answers"])
        judged.append(Judged(entry["gold_supported"], wrong, note(entry["remark"])))
    return judged


def read_contrasts(reply: Json, count: int, remark: str = "remark") -> list[Json]:
    """Return what a reply to ``katha/check_contrastives`` or ``katha/read_variants`` says, in order.

    Args:
        reply: the reply.
        count: how many variants there are.
        remark: the field with a remark, which is shortened.

    Raises:
        BadReply: not every variant is judged once.
    """
    entries = by_number(reply["variants"], "number", _upto(count), "judgements of the contrasts")
    return [{**entry, remark: note(entry[remark])} for entry in entries]


def read_record(reply: Json, scenes: Sequence[Json], transitions: Sequence[Json]) -> Json:
    """Return the judgements of a reply to ``katha/check_record``, scenes and transitions in order.

    A field that is null or empty says nothing that could be contradicted; it is left out.

    Raises:
        BadReply: not every scene and transition is judged once.
    """
    judged = by_number(reply["scenes"], "scene", _upto(len(scenes)), "judgements of the scenes")
    firsts = [part["from_scene"] for part in transitions]
    links = by_number(reply["transitions"], "from_scene", firsts, "judgements of transitions from scene")
    return {
        "scenes": _said(judged, scenes, SCENE_FIELDS),
        "transitions": _said(links, transitions, TRANSITION_FIELDS),
        "narrative_type": reply["narrative_type_fits"],
        "moral_label": reply["moral_label_fits"],
        "label_remark": note(reply["label_remark"]),
    }


def _said(entries: Sequence[Json], parts: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[Json]:
    return [
        {
            **entry,
            "remark": note(entry["remark"]),
            "contradicted": [name for name in names if name in entry["contradicted"] and part[name]],
        }
        for entry, part in zip(entries, parts, strict=True)
    ]


def note(text: str | None) -> str:
    """Return a model's remark as one line of at most 300 characters."""
    return normalize_text(text or "")[:LONGEST_NOTE]


def _upto(count: int) -> list[int]:
    return list(range(1, count + 1))
