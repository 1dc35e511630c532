"""A stand-in for a language model that knows the prompts of the KathaBench builder and of ``models check``.

It answers each of them in the form that is asked for, from nothing but the request: it takes the story out
of its marks and repeats words of it. So its answers are right in form, the same for the same question, and
say nothing about what a real model would write. As a reviewer it finds everything in order, unless told
otherwise.

Use it as the handler of a model server::

    with ModelServer(KathaModel()) as server:
        ...

    python -m fabula.testing.model_server --handler fabula.testing.katha_model:answer
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..builders.katha.choosing.screen_stories import CRITERIA
from ..builders.katha.draft_scenes import scene_casts
from ..builders.katha.drafts import MOST_WORDS
from ..builders.text.boundaries import analyze, scene_spans
from ..builders.text.segments import pick, share
from ..schemas.canonical import Json, sha256_bytes
from ..schemas.text import contains_phrase, is_unspaced, normalize_answer
from ..schemas.values import vocabulary
from .asked_prompts import answering, divided, fence_after, lines_after, user_text
from .model_server import Asked

_AS_TOLD = "The last scene is told as before."
"""What a contrast says that was written again; the reviewer lets it pass."""
_MARKS = ' ,;:.!?"“”«»，。；：！？、،؛؟।॥'


@dataclass(frozen=True)
class KathaModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`."""

    # share of the stories in which, as a reviewer, it finds fault with the state of the first scene and the
    # first contrast, until they have been corrected
    critical: float = 0.0

    def __call__(self, asked: Asked) -> Json:
        return answering(asked, _ANSWERS)(_Request(user_text(asked)), self)


def answer(asked: Asked) -> Json:
    """Return the reply of a reviewer without objections; see :class:`KathaModel`."""
    return KathaModel()(asked)


@dataclass(frozen=True)
class _Request:
    """The user's message of one request, read back."""

    text: str

    def fence(self, before: str) -> str:
        return fence_after(self.text, before)

    def lines(self, before: str) -> list[str]:
        return lines_after(self.text, before)

    def word(self, before: str) -> str:
        """Return what stands on a line after these words."""
        match = re.search(re.escape(before) + r" (.*)", self.text)
        assert match is not None
        return match[1].strip()

    def number(self, pattern: str) -> int:
        """Return the last number that stands where a pattern has its group."""
        return int(re.findall(pattern, self.text)[-1])

    @property
    def moral(self) -> str | None:
        found = self.word("Moral target of the story:")
        return None if found == "none" else found

    @property
    def corrects(self) -> bool:
        """Whether something written before is to be corrected."""
        return "A check of these " in self.text

    def again(self, what: str) -> list[int]:
        """Return the numbers of the parts that are to be written again."""
        match = re.search(rf"Write {what} ([\d, ]+) anew", self.text)
        return [] if match is None else [int(number) for number in match[1].split(", ")]

    @cached_property
    def tale(self) -> "_Tale":
        return _Tale(self.lines("The story, one numbered scene a line:"), self.word("Language of the story:"))


class _Tale:
    """A story, known by its scenes alone."""

    def __init__(self, texts: Sequence[str], language: str) -> None:
        self.texts = list(texts)
        self.text = ("" if is_unspaced("".join(texts)) else " ").join(texts)
        name = "tale_" + sha256_bytes("".join(self.text.split()).encode())[:12]
        self.story = {"id": name, "title": "A tale", "language": language, "normalized_text": self.text}
        self.analysis = analyze(self.story)

    @property
    def id(self) -> str:
        return str(self.story["id"])

    def clause(self, scene: int, which: int = 0) -> str:
        """Return the first or the last clause of a scene, by index from 0, without the marks around it."""
        spans = scene_spans(self.text, self.texts)
        assert spans is not None
        begin, end = spans[scene]
        found = [
            self.text[max(begin, first) : min(end, last)].strip(_MARKS)
            for first, last, *_ in self.analysis["segments"]
            if first < end and last > begin
        ]
        told = [text for text in found if normalize_answer(text)]
        return told[which] if told else self.texts[scene].strip()


def _draft_scenes(request: _Request, _: KathaModel) -> Json:
    if "numbered segments:" not in request.text:
        fields, again = _described(request.tale), request.again("the description of scene")
        if again:
            # What was found fault with is said in other words, which the reviewer below will let pass.
            fields[0]["state"] = request.tale.clause(0, 0)
        numbers = again or range(1, len(fields) + 1)
        scenes = [{"scene": number, "first_segment": None, **fields[number - 1]} for number in numbers]
        return {"cast": _cast(fields), "scenes": scenes}
    firsts, texts = divided(request.lines("numbered segments:"), request.number(r"into exactly (\d+) scenes"))
    fields = _described(_Tale(texts, request.word("Language of the story:")))
    scenes = [
        {"scene": number, "first_segment": first, **entry}
        for number, (first, entry) in enumerate(zip(firsts, fields, strict=True), start=1)
    ]
    return {"cast": _cast(fields), "scenes": scenes}


def _cast(fields: Sequence[Json]) -> list[Json]:
    names = dict.fromkeys(name for entry in fields for name in entry["characters"])
    return [{"name": name, "look": f"figure {number}"} for number, name in enumerate(names, start=1)][:20]


def _described(tale: _Tale) -> list[Json]:
    return [
        {
            "characters": cast[:12], "objects": [], "action": tale.clause(number),
            "state": tale.clause(number, -1), "emotion": None, "emotion_words": None,
            "visual_evidence": None, "visual_must_show": [tale.clause(number)],
        }
        for number, cast in enumerate(scene_casts(tale.story, tale.analysis, tale.texts))
    ]  # fmt: skip


def _assess(request: _Request, _: KathaModel) -> Json:
    quoted = " ".join(request.fence("The story:").split()[:6])
    text = request.fence("The story:")
    return {
        "criteria": [{"criterion": name, "reason": f"{quoted} ...", "verdict": "fit"} for name in CRITERIA],
        "turning_point": "The story turns on what its last scene shows.",
        "narrative_type": pick(vocabulary("narrative_type").values, text),
        "morals": "one",
        "moral_label": pick(vocabulary("moral_label").values, text),
    }


def _normalise(request: _Request, _: KathaModel) -> Json:
    """Tell the source in its own sentences; where they are too few, in halves of them."""
    sentences = request.lines("numbered sentences:")
    count = request.number(r"in exactly (\d+) scenes")
    pieces = [(number, text) for number, text in enumerate(sentences, start=1)]
    while len(pieces) < count:
        number, longest = max(pieces, key=lambda piece: len(piece[1]))
        at, middle = pieces.index((number, longest)), len(longest) // 2
        cut = longest.find(" ", middle) + 1 or middle
        pieces[at : at + 1] = [(number, longest[:cut].strip()), (number, longest[cut:].strip())]
    firsts = [place * len(pieces) // count for place in range(count + 1)]
    joiner = "" if is_unspaced("".join(sentences)) else " "
    scenes: list[Json] = []
    left: list[int] = []
    for start, stop in pairwise(firsts):
        part = pieces[start:stop]
        while len(part) > 1 and sum(len(text.split()) for _, text in part) > MOST_WORDS:
            left.append(part.pop(-2 if len(part) > 2 else -1)[0])
        text = joiner.join(text for _, text in part)
        scenes.append({"from_sentences": [number for number, _ in part], "text": text})
    return {"scenes": scenes, "left_out": [{"sentences": left, "reason": "too long"}] if left else []}


def _connect(request: _Request, _: KathaModel) -> Json:
    tale = request.tale
    transitions = []
    again = request.again("the transition from scene")
    for number in (first - 1 for first in again or range(1, len(tale.texts))):
        before, after = tale.clause(number, -1), tale.clause(number + 1)
        transitions.append(
            {
                "from_scene": number + 1, "to_scene": number + 2, "action": after,
                "causality": f"{before}; {after}", "intention": None, "emotion": None,
                "emotion_words": None,
                "consequence": tale.clause(number + 1, -1), "expected_change": f"{before} / {after}",
                "recoverability_target": f"{before}; {after}", "transition_type": "cause_effect",
            }
        )  # fmt: skip
    bearer = None if request.moral is None else len(tale.texts) - 1
    return {"transitions": transitions, "moral_from_scene": bearer}


def _asked(tale: _Tale) -> list[Json]:
    """Return a question for each pair of neighbouring scenes, of three types, in words of the story."""
    kinds = ("temporal_order", "causal", "consequence")
    pairs = zip(kinds, range(1, len(tale.texts)), strict=False)
    return [_question(kind, scene, tale.clause(scene), tale.clause(scene - 1, -1)) for kind, scene in pairs]


def _write_questions(request: _Request, _: KathaModel) -> Json:
    tale = request.tale
    if request.corrects:
        written = json.loads(request.fence("These questions have been written before:"))
        again = [written[number - 1] for number in request.again("question")]
        more = {"told_by": tale.text}
        return {
            "questions": [
                {**part, **more, "other_answers": (part["other_answers"] * 2)[:4]} for part in again
            ]
        }
    asked = _asked(tale)
    if "Moral target of the story:" in request.text and request.moral is not None:
        last = len(tale.texts)
        asked.append(_question("moral", last - 1, tale.clause(0), tale.clause(last - 1, -1)))
    return {"questions": asked}


def _question(kind: str, scene: int, asked: str, gold: str) -> Json:
    """Return a question about the transition from a scene, from 1: a clause asks for another."""
    return {
        "question_type": kind, "target_scene": None, "target_from_scene": scene,
        "evidence_scenes": [scene, scene + 1], "question": f"{asked}?", "gold_answer": gold, "told_by": gold,
        "other_answers": _other_answers(gold, normalize_answer(f"{asked}?")), "required_evidence": gold,
    }  # fmt: skip


def _other_answers(gold: str, asked: str) -> list[str]:
    words, plain = gold.split(), normalize_answer(gold)
    others = [" ".join(words[cut:]) for cut in (1, 2)] + [" ".join(words[:cut]) for cut in (-1, -2)]
    others += [gold[1:], gold[:-1], f"{gold} {words[0]}"]
    for text in others:
        normal = normalize_answer(text)
        if normal not in ("", plain) and not contains_phrase(asked, normal):
            return [text, text]
    return []


def _write_variants(request: _Request, _: KathaModel) -> Json:
    tale = request.tale
    if request.corrects:
        written = json.loads(request.fence("These contrasts have been written before:"))
        again = [written[number - 1] for number in request.again("contrast")]
        ends = {"later_scene": len(tale.texts), "depends": _AS_TOLD}
        return {
            "needs": tale.texts,
            "variants": [{**part, **ends, "semantic_delta": f"{part['semantic_delta']} ."} for part in again],
        }
    count = request.number(r"Write exactly (\d+) contrast")
    return {"needs": tale.texts, "variants": _turned(tale, count)}


def _turned(tale: _Tale, count: int) -> list[Json]:
    """Return contrasts in which the halves of a scene's text change places: any text allows as many."""
    variants: list[Json] = []
    for number, text in reversed(list(enumerate(tale.texts, start=1))):
        middle = text.find(" ", len(text) // 2) + 1 or len(text) // 2
        if len(variants) < count:
            turned = f"{text[middle:].strip()} {text[:middle].strip()}".strip()
            variants.append({
                "changed_scene": number, "change_type": "reorder_events",
                "later_scene": None if number == len(tale.texts) else len(tale.texts), "depends": text,
                "semantic_delta": f"{text[middle:].strip()} / {text[:middle].strip()}",
                "contrastive_scene_text": turned, "contrastive_moral": None, "questions": [],
            })  # fmt: skip
    return variants


def _answer_questions(request: _Request, _: KathaModel) -> Json:
    tale = request.tale
    known = {part["question"]: part["gold_answer"] for part in _asked(tale)}
    answers = []
    for number, line in enumerate(request.lines("The questions:"), start=1):
        kind, question = line.split(" ", maxsplit=1)
        if kind == "(moral)":
            said = pick(vocabulary("moral_label").values, tale.text)
        else:
            said = known.get(question) or tale.clause(len(tale.texts) - 1, -1)
        others = dict.fromkeys(("full", "own_words"))
        answers.append({"number": number, "status": "recoverable", "short": said, **others})
    return {"answers": answers}


def _judge_answers(request: _Request, _: KathaModel) -> Json:
    count = request.number(r"Judge all (\d+) questions")
    fine: Json = {"remark": None, "gold_supported": True, "wrong_answers": []}
    return {"questions": [{"number": number, **fine} for number in range(1, count + 1)]}


def _read_variants(request: _Request, _: KathaModel) -> Json:
    """Find of each variant what the stand-in would have written: it knows no better."""
    count = request.number(r"Read all (\d+) variants")
    fine: Json = {"change": "Told otherwise.", "others_changed": False, "entities_kept": True, "fluent": True}
    fine |= {"contradicts": [], "moral_label": None, "change_types": ["reorder_events"]}
    return {"variants": [{"number": number, **fine} for number in range(1, count + 1)]}


def _judge_record(request: _Request, model: KathaModel) -> Json:
    def shown(before: str) -> list[Json]:
        return list(json.loads(request.fence(before))) if before in request.text else []

    fine: Json = {"remark": None}
    scenes = shown("The descriptions of its scenes:")
    judged: list[Json] = [
        {"scene": part["scene"], **fine, "contradicted": [], "renderable": True} for part in scenes
    ]
    links = [
        {"from_scene": part["from_scene"], **fine, "contradicted": []}
        for part in shown("The descriptions of its transitions:")
    ]
    sound: Json = {"gold_supported": True, "one_answer": True, "drawable": True, "repeats": None}
    sound |= {"first_guess": "that a crow flies", "weakness": "none"}
    questions: list[Json] = []
    for part in shown("The questions with their answers:"):
        pair = re.search(r"from scene (\d+) to (\d+)", part["about"])
        earlier, later = (None, None) if pair is None else map(int, pair.groups())
        halves: Json = {"earlier_scene": earlier, "later_scene": later, "wrong_answers": []}
        questions.append({"number": part["number"], **fine, **sound, **halves})
    kept: Json = {"meaning_changed": True, "description_fits": True, "rest_kept": True, "possible": True}
    variants = shown("The variants:")
    read: list[Json] = [{"number": part["number"], **fine, **kept} for part in variants]
    if share(request.tale.id, "critical") < model.critical:
        if scenes and scenes[0]["scene"] == 1 and scenes[0]["state"] != request.tale.clause(0, 0):
            judged[0] |= {"remark": "That is not how the scene ends.", "contradicted": ["state"]}
        if variants and not variants[0]["description"].endswith(_AS_TOLD):
            read[0] |= {"remark": "The description says too little.", "description_fits": False}
    return {
        "narrative": {"misplaced": None, "missing": [], "added": []},
        "scenes": judged, "transitions": links, "questions": questions, "variants": read,
        "labels": {"narrative_type_fits": True, "moral_label_fits": True, "remark": None}
        if "and the labels" in request.text else None,
    }  # fmt: skip


_ANSWERS: dict[str, Callable[[_Request, KathaModel], Json]] = {
    "books/split_book": lambda *_: {"boundaries": []},  # all of it is one tale
    "models/check": lambda *_: {
        "characters": [{"name": "crow"}, {"name": "fox"}],
        "moral_label": "gratitude",
    },
    "katha/assess_story": _assess,
    "katha/normalise_story": _normalise,
    "katha/draft_scenes": _draft_scenes,
    "katha/annotate_transitions": _connect,
    "katha/write_questions": _write_questions,
    "katha/write_contrastives": _write_variants,
    "katha/answer_questions": _answer_questions,
    "katha/guess_answers": lambda *_: {"status": "unknown", "answer": None},
    "katha/check_answers": _judge_answers,
    "katha/read_variants": _read_variants,
    "katha/check_record": _judge_record,
}
