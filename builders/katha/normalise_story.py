"""Stage: the narrative in scenes that a model writes from the source (sections A.16 and C.3, Table 25).

The model says which source sentences each scene tells and what it left out and why; every sentence is
accounted for. Scenes follow each other as the events did in time. The check of the whole draft compares
narrative and source. By rules, and where a person gave the scenes, the story is told in its own words: then
there is no narrative (null), and all that follows works on the source.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from ...engine.stage import BadReply
from ...schemas.canonical import Json, digest
from ...schemas.text import is_unspaced, normalize_text
from ..step import Drafted, PlannerSettings, Problems, Step, check_count, language, needed
from ..text.analyze_story import analyze
from ..text.boundaries import scene_spans
from ..text.segments import source_sentences, word_count
from .drafts import Sketch

LEAST_WORDS, MOST_WORDS = 4, 110
"""Words of one scene's text; twice as many characters in scripts without spaces."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    retired: ClassVar[tuple[str, ...]] = ("verifier",)
    scenes: int = Field(
        default=5,
        ge=2,
        le=100,
        description="Scenes of the narrative; if draft_scenes.scenes differs, it is divided anew.",
    )


def _show(sketch: Sketch, settings: Settings) -> Json:
    story = sketch.story
    return {
        "count": settings.scenes,
        "language": language(story),
        "sentences": source_sentences(story["normalized_text"], sketch.analysis),
        "title": story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: Settings) -> Json:
    sentences = source_sentences(sketch.story["normalized_text"], sketch.analysis)
    return read_narrative(reply, sketch.story, sentences, settings.scenes)


def read_narrative(reply: Json, story: Json, sentences: Sequence[str], count: int) -> Json:
    """Return the narrative of a reply to ``katha/normalise_story``.

    Returns:
        ``text``: the narrative. ``scenes``: their texts, which cover it. ``alignment``: for each scene the
        numbers of its source sentences, from 1. ``left_out``: groups of sentences and why. ``source_sha256``:
        hash of the source text. ``analysis``: what the rules read off the narrative.
    """
    check_count(reply["scenes"], count, "scenes")
    problems = Problems()
    texts = []
    for number, entry in enumerate(reply["scenes"], start=1):
        text = needed(entry, "text", f"scene {number}", problems)
        factor = 2 if is_unspaced(text) else 1
        if not LEAST_WORDS * factor <= word_count(text) <= MOST_WORDS * factor:
            problems.add(f"scene {number} has {word_count(text)} words; {LEAST_WORDS} to 70 are asked for")
        texts.append(text)
    alignment = [sorted(set(entry["from_sentences"])) for entry in reply["scenes"]]
    left_out = [
        {
            "sentences": sorted(set(group["sentences"])),
            "reason": needed(group, "reason", "left_out", problems),
        }
        for group in reply["left_out"]
    ]
    _check_numbers(alignment, left_out, len(sentences), problems)
    problems.check_script(story, texts)
    problems.settle()
    joined = normalize_text(("" if is_unspaced("".join(texts)) else " ").join(texts))
    if scene_spans(joined, texts) is None:
        raise BadReply("the scenes hold characters that a plain text cannot; write plain sentences")
    return {
        "text": joined,
        "scenes": texts,
        "alignment": alignment,
        "left_out": left_out,
        "source_sha256": digest(story["text"]),
        "analysis": analyze({**story, "normalized_text": joined}),
    }


def _check_numbers(
    alignment: Sequence[Sequence[int]], left_out: Sequence[Mapping[str, Json]], count: int, problems: Problems
) -> None:
    """Note scenes without sentences, strange numbers, and sentences that are nowhere."""
    named = {number for numbers in alignment for number in numbers}
    named |= {number for group in left_out for number in group["sentences"]}
    strange = sorted(number for number in named if not 1 <= number <= count)
    if strange:
        problems.add(
            f"the source has the sentences 1 to {count}; there is no {', '.join(map(str, strange[:10]))}"
        )
    missing = [number for number in range(1, count + 1) if number not in named]
    if missing:
        problems.add(
            f"nothing is said of the sentences {', '.join(map(str, missing[:20]))}: put each into"
            " from_sentences of the scene that tells it, or into left_out with the reason"
        )
    for number, numbers in enumerate(alignment, start=1):
        if not numbers:
            problems.add(f"scene {number}: from_sentences is empty")


STEP = Step(
    id="katha/normalise_story",
    version=6,
    writes=("narrative",),
    reads=("story", "given", "analysis"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    show=_show,
    read=_read,
    given=lambda sketch, settings: None if sketch.given_list("scenes") is None else Drafted(None, ""),
    settings=Settings,
    libraries=("sentencex",),
)
