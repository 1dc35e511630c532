"""Reading the replies to the prompts that check a draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text
from ...step import Problems, by_number
from ..annotate_transitions import TRANSITION_FIELDS
from ..draft_scenes import SCENE_FIELDS

LONGEST_NOTE = 300
READERS = ("short", "full", "own_words")
"""The readers who answer in one reply to ``katha/answer_questions``, the first the most usual one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model says of the answers to one question."""

    supported: bool  # whether the text supports the canonical answer
    wrong: frozenset[int]  # positions, from 0, of the other answers that are not the same answer
    remark: str  # what is wrong, in one line; empty if nothing is


def read_answers(reply: Json, count: int) -> list[tuple[str, ...]]:
    """Return the readers' answers of a reply to ``katha/answer_questions``.

    None where the text is unclear.
    """
    answers: list[tuple[str, ...]] = []
    for entry in by_number(reply["answers"], "number", _upto(count), "answers to the questions"):
        told: dict[str, str] = {}
        for text in (normalize_text(entry[reader] or "") for reader in READERS):
            told.setdefault(normalize_answer(text), text)
        told.pop("", None)
        if entry["status"] == "recoverable" and not told:
            raise BadReply(f"question {entry['number']} is recoverable, but no reader says an answer")
        answers.append(tuple(told.values()) if entry["status"] == "recoverable" else ())
    return answers


def read_guess(reply: Json) -> str | None:
    """Return the guess of a reply to ``katha/guess_answers``; None where there is none."""
    return normalize_text(reply["answer"] or "") or None if reply["status"] == "guessed" else None


def read_judgements(reply: Json, counts: Sequence[int]) -> list[Judged]:
    """Return the judgements of a reply to ``katha/check_answers``, one for each question."""
    entries = by_number(reply["questions"], "number", _upto(len(counts)), "judgements of the questions")
    problems = Problems()
    judged = [
        Judged(entry["gold_supported"], _wrong(entry, count, problems), note(entry["remark"]))
        for entry, count in zip(entries, counts, strict=True)
    ]
    problems.settle()
    return judged


def _wrong(entry: Json, count: int, problems: Problems) -> frozenset[int]:
    strange = [number for number in entry["wrong_answers"] if not 1 <= number <= count]
    if strange:
        problems.add(
            f"question {entry['number']} has {count} other answers; wrong_answers names {strange[0]}"
        )
    return frozenset(number - 1 for number in entry["wrong_answers"])


def read_contrasts(reply: Json, count: int) -> list[Json]:
    """Return what a reply to ``katha/read_variants`` says, in order."""
    entries = by_number(reply["variants"], "number", _upto(count), "readings of the variants")
    return [{**entry, "change": note(entry["change"])} for entry in entries]


def judges_labels(draft: Json, which: Mapping[str, Sequence[int]]) -> bool:
    """Return whether everything in a draft is judged, and its labels with it."""
    return all(len(which[name]) == len(draft[name]) for name in KEYS)


def read_record(reply: Json, draft: Json, which: Mapping[str, Sequence[int]], counts: Sequence[int]) -> Json:
    """Return the judgements of a reply to ``katha/check_record``, each list in order.

    A field that is null or empty says nothing that could be contradicted; it is left out.

    ``which``: list -> the positions, from 0, that were to be judged.
    """
    scenes, problems = len(draft["scenes"]), Problems()
    judged = {
        name: by_number(reply[name], key, [at + 1 for at in which[name]], f"judgements of {name}")
        for name, key in KEYS.items()
    }
    for entry, at, count in zip(judged["questions"], which["questions"], counts, strict=True):
        _check_question(entry, draft["questions"][at], scenes, problems)
        _wrong(entry, count, problems)
    for name in ("missing", "added"):
        for entry in reply["narrative"][name]:
            entry["remark"] = note(entry["remark"])
    labels = reply["labels"] if judges_labels(draft, which) else {"remark": None}
    if labels is None:
        problems.add("labels are to be judged; found null")
    problems.settle()
    return {
        **{name: _noted(judged[name]) for name in ("questions", "variants")},
        "scenes": _said(judged["scenes"], [draft["scenes"][at] for at in which["scenes"]], SCENE_FIELDS),
        "transitions": _said(
            judged["transitions"], [draft["transitions"][at] for at in which["transitions"]],
            TRANSITION_FIELDS,
        ),
        "labels": {**labels, "remark": note(labels["remark"])},
        "narrative": {**reply["narrative"], "misplaced": note(reply["narrative"]["misplaced"])},
    }  # fmt: skip


KEYS = {"scenes": "scene", "transitions": "from_scene", "questions": "number", "variants": "number"}
"""List of a record -> the key of the form under which its parts are numbered."""


def depends_on_transition(question: Mapping[str, Json]) -> bool:
    """Return whether what a question asks about has two halves; a moral is of the whole story."""
    return question["target_transition"] is not None and question["question_type"] != "moral"


def _check_question(entry: Json, question: Json, scenes: int, problems: Problems) -> None:
    halves = (entry["earlier_scene"], entry["later_scene"])
    if depends_on_transition(question) and not all(
        half is not None and 1 <= half <= scenes for half in halves
    ):
        problems.add(
            f"question {entry['number']}: earlier_scene and later_scene must be scenes of 1 to {scenes},"
            " where the two halves of what it asks about happen"
        )
    repeats = entry["repeats"]
    if repeats is not None and not 1 <= repeats < entry["number"]:
        problems.add(
            f"question {entry['number']}: repeats must be the number of an earlier question, or null"
        )


def _said(entries: Sequence[Json], parts: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[Json]:
    return [
        {**entry, "contradicted": [name for name in names if name in entry["contradicted"] and part[name]]}
        for entry, part in zip(_noted(entries), parts, strict=True)
    ]


def _noted(entries: Sequence[Json]) -> list[Json]:
    return [{**entry, "remark": note(entry["remark"])} for entry in entries]


def note(text: str | None) -> str:
    """Return a model's remark as one line of at most 300 characters."""
    return normalize_text(text or "")[:LONGEST_NOTE]


def _upto(count: int) -> list[int]:
    return list(range(1, count + 1))
