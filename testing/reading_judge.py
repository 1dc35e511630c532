"""A stand-in for a judge: it answers every prompt of the judges from the request alone.

Given the story, it answers with the sentence that shares most words with the question. Given only pictures,
it says that it cannot tell: it looks at none. Deterministic, and no judge's work.
"""

import re

from ..builders.text.words import pick
from ..schemas.canonical import Json
from ..schemas.text import normalize_answer
from .asked_prompts import fenced_texts, prompt_of, user_text
from .model_server import Asked, word_vector

UNCLEAR = "unclear"
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟।])\s*")
_OPTION = re.compile(r"^- (.+)$", re.MULTILINE)
_LINE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)


def answer(asked: Asked) -> Json:
    """Return the reply to a judge's prompt, of either wording, as JSON.

    Raises:
        ValueError: the request was made with another prompt.
    """
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


def _nearest_sentence(story: str, question: str) -> str:
    wanted = word_vector(question)

    def likeness(sentence: str) -> float:
        return sum(left * right for left, right in zip(wanted, word_vector(sentence), strict=True))

    return max(filter(None, _SENTENCE_END.split(story)), key=likeness, default=UNCLEAR)
