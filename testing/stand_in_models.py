"""Stand-ins for models, each for the prompts of one room: deterministic, right in form, and no model's work.

Use one as the handler of a model server.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..builders.text.segments import pick
from ..schemas.canonical import Json, digest, sha256_bytes
from ..schemas.katha import StoryRecord
from ..schemas.text import normalize_answer
from ..studies.memory.shots.layout import CELLS
from .asked_prompts import answering, fenced_texts, prompt_of, user_text
from .model_server import Answer, Asked, word_vector

_SUBJECT = re.compile(r"Who or what leads it: (.+)\.")
_ACTS = (
    ("climbs a ladder", "rings a bell"),
    ("crosses a bridge", "opens a gate"),
    ("pushes a cart", "drops a stone"),
    ("rolls down a hill", "splashes into a pond"),
    ("lifts a lid", "closes a drawer"),
)


def answer_suite(asked: Asked) -> Json:
    """Return a drafted prompt, a caption or a list of events, by what the request asks for."""
    prompt_id = prompt_of(asked)
    if prompt_id == "events/caption_video":
        return _drafted_prompt("wheel", ("turns slowly", "stands still"), creative=False)
    if prompt_id == "events/write_prompt":
        found = _SUBJECT.search(asked.text)
        subject = found[1] if found else "thing"
        acts = _ACTS[sum(map(ord, subject)) % len(_ACTS)]
        return _drafted_prompt(subject, acts, creative="It must be impossible" in asked.text)
    if prompt_id == "events/list_events":
        prompt, *_ = fenced_texts(asked.text)
        first, *rest = prompt.rstrip(".").split(", ")
        return {"event_list": [first, *rest], "participants": ["object"], "creative": False}
    raise ValueError(f"not a request of the suite builder: {asked.system[:80]!r}")


def _drafted_prompt(subject: str, acts: tuple[str, str], *, creative: bool) -> Json:
    return {
        "prompt": f"A {subject} {acts[0]}, and then {acts[1]}.",
        "event_list": [f"A {subject} {acts[0]}", f"And then the {subject} {acts[1]}"],
        "participants": ["object"],
        "creative": creative,
    }


# A stand-in for the model that writes questions of evaluators, or prompts anew: right in form alone.

BROAD = ("who", "beginning", "ending", "feeling", "lesson")


def _entry(about: str) -> dict[str, Any]:
    return {"question": f"What of {about}?", "gold_answer": f"this of {about}", "other_answers": ["that"]}


def _of_scenes(texts: list[str]) -> Json:
    scenes = range(1, len(texts[0].splitlines()) + 1)
    return {"questions": [{"scene": n, "element": "action", **_entry(f"scene {n}")} for n in scenes]}


def _statements(texts: list[str]) -> Json:
    scenes = range(1, len(texts[0].splitlines()) + 1)
    return {
        "statements": [
            {
                "number": n, "scene": n, "element": "object", "question": f"Is thing {n} there, yes or no?",
                "yes": "yes", "parents": [n - 1] if n > 1 else [],
            }
            for n in scenes
        ]
    }  # fmt: skip


_WRITERS: dict[str, Callable[[list[str]], Json]] = {
    "evaluators/story_questions": lambda _: {
        "questions": [{"about": name, **_entry(name)} for name in BROAD],
    },
    "evaluators/scene_questions": _of_scenes,
    "evaluators/statements": _statements,
    "generation/rewrite_prompt": lambda texts: {"prompt": texts[0]},
}
"""Prompt -> what answers it, from the fenced texts of the request."""


def answer_questions(asked: Asked) -> Json:
    """Return the reply to a prompt."""
    return answering(asked, _WRITERS)(fenced_texts(user_text(asked)))


# A stand-in for a judge: it answers every prompt of the judges from the request alone.
#
# Given the story, it answers with the sentence that shares most words with the question. Given only
# pictures, it says that it cannot tell: it looks at none. Deterministic, and no judge's work.

UNCLEAR = "unclear"
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟।])\s*")
_OPTION = re.compile(r"^- (.+)$", re.MULTILINE)
_LINE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)


def answer_judge(asked: Asked) -> Json:
    """Return the reply to a judge's prompt, of either wording, as JSON."""
    prompt_id = prompt_of(asked) or ""
    if not prompt_id.startswith("judge/"):
        raise ValueError(f"not a judge's prompt: {asked.system[:80]!r}")
    kind, _, evidence = prompt_id.rpartition("/")[2].partition("_")
    texts = fenced_texts(user_text(asked))
    if kind == "match":
        _, accepted, given = texts
        known = {normalize_answer(text) for text in _LINE.findall(accepted)}
        return {"matched": normalize_answer(given) in known}
    if kind == "contrast" or evidence == "image":
        status = {"evidence_status": UNCLEAR} if kind == "question" else {}
        return {"answer": UNCLEAR, **status, "confidence": "low"}
    if kind == "label":
        return {"answer": pick(_OPTION.findall(user_text(asked)), texts[0]), "confidence": "low"}
    said = _nearest_sentence(*texts)
    if evidence == "text":
        return {"answer": said, "evidence_status": "recoverable", "confidence": "low"}
    return {"source_answer": said, "image_support": "ambiguous", "final_answer": said, "confidence": "low"}


SEEN = {"text": 0.9, "image": 0.6, "text_image": 0.9, "contrast": 0.7}
"""What is shown -> the share of questions that the stand-in answers rightly where it knows the records."""


class KnowingJudge:
    """A judge of storyboards that knows the records, and answers by chance: it looks at no picture.

    With it a report on anybody's boards has numbers to look at. Which questions are answered rightly follows
    from a hash of question, pictures and model name; how many, from :data:`SEEN`.
    """

    def __init__(self, records: Sequence[StoryRecord]) -> None:
        self._questions = {question.question: question for record in records for question in record.questions}
        self._labels = {record.story_text: record.moral_label for record in records}

    def __call__(self, asked: Asked) -> Json:
        kind, _, shown = (prompt_of(asked) or "").rpartition("/")[2].partition("_")
        texts, reply = fenced_texts(user_text(asked)), answer_judge(asked)
        question = self._questions.get(texts[-1]) if texts else None
        drawn = digest([texts, [sha256_bytes(image.data) for image in asked.images], shown, asked.model])
        share = SEEN.get("contrast" if kind == "contrast" else shown, 0.0)
        right = int(drawn[:12], 16) / 16**12 < share
        if kind == "contrast":
            source = "first" if texts[0] in self._labels else "second"
            return {**reply, "answer": source if right else UNCLEAR}
        if kind == "label":
            known, options = self._labels.get(texts[0] if texts else ""), _OPTION.findall(user_text(asked))
            return {**reply, "answer": known if right and known in options else pick(options, drawn)}
        if kind != "question" or question is None:
            return reply
        answer = question.gold_answer if right else UNCLEAR
        if shown == "text_image":
            said = {"source_answer": question.gold_answer, "final_answer": answer}
            return {**reply, **said, "image_support": "supported" if right else "ambiguous"}
        return {**reply, "answer": answer, "evidence_status": "recoverable" if right else "unclear"}


def _nearest_sentence(story: str, question: str) -> str:
    wanted = word_vector(question)

    def likeness(sentence: str) -> float:
        return sum(left * right for left, right in zip(wanted, word_vector(sentence), strict=True))

    return max(filter(None, _SENTENCE_END.split(story)), key=likeness, default=UNCLEAR)


# A stand-in for the model that arranges shots: it sees the prompt alone, and keeps its rules or breaks them.
#
# Its layouts are plain: everybody in one keyframe, who stays where they were, newcomers in free cells.

LAYOUT_PROMPT = "memory/layout_shot"
_LISTED = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
_LISTS = ("Characters of the shot", "Places of the shot", "Objects of the shot")


def answer_layout(asked: Asked) -> Json:
    """Return a valid layout for a shot."""
    characters, places, objects = lists_of(asked)
    before = before_of(asked)
    cells = {entry["name"]: entry["cell"] for entry in before["characters"]} if before else {}
    cells = {name: cell for name, cell in cells.items() if name in characters}
    free = [cell for cell in CELLS if cell not in cells.values()]
    for name in characters:
        if name not in cells:
            cells[name] = free.pop(0)
    same = before is not None and before["place"] in places
    keyframe = {
        "pan": "none", "camera": before["camera"] if before and same else "front",
        "place": before["place"] if before and same else places[0] if places else None,
        "shows": "everybody",
        "characters": [{"name": name, "cell": cell} for name, cell in cells.items()],
        "objects": [{"name": name, "beside": characters[0] if characters else None} for name in objects],
    }  # fmt: skip
    others = [place for place in places if place != keyframe["place"]]
    return {
        "reasoning": "The camera rests.",
        "keyframes": [keyframe, *({**keyframe, "place": place, "camera": "front"} for place in others)],
    }


def crowded(asked: Asked) -> Json:
    """Return a layout in which everybody stands in the centre, which is valid for one character at most."""
    reply = answer_layout(asked)
    for keyframe in reply["keyframes"]:
        for standing in keyframe["characters"]:
            standing["cell"] = "centre"
    return reply


def lists_of(asked: Asked) -> tuple[list[str], list[str], list[str]]:
    """Return the characters, places and objects that a request lists."""
    if prompt_of(asked) != LAYOUT_PROMPT:
        raise ValueError(f"not a prompt about layouts: {asked.system[:80]!r}")
    text = user_text(asked)
    lists: list[list[str]] = []
    for heading in _LISTS:
        part = text.split(f"{heading}:\n", 1)[1]
        body = "" if part.startswith("none") else fenced_texts(part)[0]
        lists.append(_LISTED.findall(body))
    return lists[0], lists[1], lists[2]


def before_of(asked: Asked) -> dict[str, Json] | None:
    """Return the arrangement from which a shot goes on, as a request tells it; None after a cut."""
    text = user_text(asked)
    if "The shot goes on from another one" not in text:
        return None
    shown: dict[str, Json] = json.loads(fenced_texts(text.split("which ended like this:\n", 1)[1])[0])
    return shown


# A stand-in for a judge of prompt alignment: its ratings come from a table, whatever the picture shows.
#
# Use it as the handler of a model server::
#
# with ModelServer(AlignmentModel({"scene": 4, "shot": 3})) as server:
# ...

_BEGINNING = "images/judge_"


@dataclass
class AlignmentModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`."""

    # dimension -> its rating, or those that one question gets by turns; 2 where there is none
    ratings: Mapping[str, int | Sequence[int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)  # how often each dimension was asked

    def __call__(self, asked: Asked) -> Json:
        prompt_id = prompt_of(asked) or ""
        if not prompt_id.startswith(_BEGINNING):
            raise ValueError(f"not a prompt of alignment: {asked.system[:80]!r}")
        name = prompt_id.removeprefix(_BEGINNING)
        self.asked[name] += 1
        given = self.ratings.get(name, 2)
        if not isinstance(given, int):
            given = given[(asked.attempt - 1) % len(given)]
        return {"reason": "as the table says", "rating": given}


# A stand-in for a verifier of videos: flags from a table, so that what comes out is known before.
#
# It looks at no picture, and says nothing about any real verifier. Use it as the handler of a model server::
#
# with ModelServer(EventModel({"A cup falls, and breaks.": (1, 0)})) as server:
# ...

REFUSAL = "I would rather not look at this."


@dataclass(frozen=True)
class EventModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`."""

    # prompt -> the flag of each event; all completed where it is not there
    flags: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # prompt -> how many of its scorings are refused before one is answered
    refused: Mapping[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)  # prompt -> scorings so far

    def __call__(self, asked: Asked) -> Json | Answer:
        """Return a description, or flags for the events of the prompt that is fenced in the request."""
        if prompt_of(asked) == "events/describe_video":
            return f"{len(asked.images)} frames. Something moves."
        _, prompt, *events = fenced_texts(asked.text)
        number = self.seen.get(prompt, 0)
        self.seen[prompt] = number + 1
        if number < self.refused.get(prompt, 0):
            return Answer(refusal=REFUSAL)
        flags = self.flags.get(prompt, (1,) * len(events))
        if asked.schema is not None:
            return {
                "events": [
                    {"number": index, "reason": "Seen.", "completed": bool(flag)}
                    for index, flag in enumerate(flags, 1)
                ]
            }
        return f"Each event was looked at.\n[COMPLETE_LIST]: {', '.join(map(str, flags))}"
