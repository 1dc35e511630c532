"""Stage: the narrative in scenes that a model writes from the source (sections A.16 and C.3, Table 25).

The model says which source sentences each scene tells and what it left out and why; every sentence is
accounted for. A second call compares narrative and source (order, what is missing, what was added); what it
finds goes back once. By rules, and where a person gave the scenes, the story is told in its own words: then
there is no narrative (null), and all that follows works on the source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from ...engine.stage import REHEARSED, BadReply, NoAnswer, Tools
from ...schemas.canonical import Json, digest
from ...schemas.text import is_unspaced, normalize_text
from ..replies import Drafted, Problems, ask, check_count, language, needed
from ..step import PlannerSettings, Step
from ..text.analyze_story import analyze
from ..text.segments import Analysis
from ..text.spans import scene_spans
from ..text.words import word_count
from .checks.verifier import verifier_settings, why_unjudged
from .drafts import Sketch, make_check

LEAST_WORDS, MOST_WORDS = 4, 110
"""Words of one scene's text; twice as many characters in scripts without spaces."""

ORDER, COMPLETE, FAITHFUL, DRAWABLE = (
    "narrative_in_order", "narrative_complete", "narrative_adds_nothing", "narrative_drawable",
)  # fmt: skip
"""Codes of the checks of a narrative."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    scenes: int = Field(
        default=5,
        ge=2,
        le=100,
        description="Scenes of the narrative; if draft_scenes.scenes differs, it is divided anew.",
    )
    verifier: str | None = Field(
        default=None, description="Spec of the model that compares narrative and source [the planner's]."
    )

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks: none for the rules."""
        planners = super().models()
        return tuple(dict.fromkeys((*planners, self.verifier or planners[0]))) if planners else ()


def source_sentences(sketch: Sketch) -> list[str]:
    """Return the sentences of the source, in order."""
    spans: dict[int, tuple[int, int]] = {}
    for segment in Analysis.from_json(sketch.analysis).segments:
        start, _ = spans.get(segment.sentence, (segment.start, 0))
        spans[segment.sentence] = (start, segment.end)
    text = sketch.story["normalized_text"]
    return [text[start:end] for start, end in spans.values()]


async def _ask(tools: Tools, sketch: Sketch) -> Drafted[Json]:
    """Return the narrative, after what a comparison with the source found was put right once."""
    if sketch.given_list("scenes") is not None:
        return Drafted(None, "")
    sentences = source_sentences(sketch)
    try:
        draft = await _write(tools, sketch, sentences)
    except NoAnswer as failure:
        if failure.code == REHEARSED:  # the comparison is counted as one of the source itself
            await _compare(tools, sketch, sentences, {"scenes": sentences})
        raise
    checks = await _compare(tools, sketch, sentences, draft.value)
    findings = [f"{check['note']}" for check in checks if check["passed"] is False]
    if findings:
        draft = await _write(tools, sketch, sentences, draft.value, findings)
        checks = await _compare(tools, sketch, sentences, draft.value)
    return Drafted({**draft.value, "checks": checks}, draft.maker)


async def _write(
    tools: Tools, sketch: Sketch, sentences: Sequence[str], before: Json = None, findings: Sequence[str] = ()
) -> Drafted[Json]:
    settings, story = tools.own(Settings), sketch.story
    previous = {name: before[name] for name in ("scenes", "left_out")} if before else {}
    return await ask(
        tools,
        "katha/normalise_story",
        lambda reply: read_narrative(reply, story, sentences, settings.scenes),
        count=settings.scenes,
        findings=list(findings),
        language=language(story),
        previous=previous,
        sentences=list(sentences),
        title=story["title"],
    )


def read_narrative(reply: Json, story: Json, sentences: Sequence[str], count: int) -> Json:
    """Return the narrative of a reply to ``katha/normalise_story``.

    Returns:
        ``text``: the narrative. ``scenes``: their texts, which cover it. ``alignment``: for each scene the
        numbers of its source sentences, from 1. ``left_out``: groups of sentences and why. ``source_sha256``:
        hash of the source text. ``analysis``: what the rules read off the narrative.

    Raises:
        BadReply: not as many scenes as asked for, one too short, too long or not in the story's script, a
            number that is no sentence, scenes out of order, or a sentence of which nothing is said.
    """
    check_count(reply["scenes"], count, "scenes")
    problems = Problems()
    texts = []
    for number, entry in enumerate(reply["scenes"], start=1):
        text = needed(entry, "text", f"scene {number}", problems)
        factor = 2 if is_unspaced(text) else 1
        if not LEAST_WORDS * factor <= word_count(text) <= MOST_WORDS * factor:
            problems.add(f"scene {number} has {word_count(text)} words; 25 to 70 are asked for")
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
    """Note scenes without sentences or out of order, strange numbers, and sentences that are nowhere."""
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
    firsts = [min(numbers) for numbers in alignment if numbers]
    if firsts != sorted(firsts):
        problems.add("the scenes do not follow the order of the source; tell them in its order")


async def _compare(tools: Tools, sketch: Sketch, sentences: Sequence[str], narrative: Json) -> list[Json]:
    """Return the checks of a narrative against its source; without verdicts where the model gave none.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    try:
        compared = await ask(
            replace(tools, settings=verifier_settings(_with_verifier(tools.own(Settings)))),
            "katha/check_narrative",
            lambda reply: read_comparison(reply, len(narrative["scenes"]), len(sentences)),
            language=language(sketch.story),
            scenes=narrative["scenes"],
            sentences=list(sentences),
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(code, "$.story_text", None, why) for code in (ORDER, COMPLETE, FAITHFUL, DRAWABLE)]
    return [{**check, "producer": compared.maker} for check in compared.value]


def _with_verifier(settings: Settings) -> Settings:
    return settings.model_copy(update={"verifier": settings.verifier or settings.model})


def read_comparison(reply: Json, scenes: int, sentences: int) -> list[Json]:
    """Return the checks of a reply to ``katha/check_narrative``.

    Raises:
        BadReply: a scene or sentence that is not there is named.
    """
    problems = Problems()
    wrong = [entry["scene"] for entry in reply["added"]] + list(reply["not_drawable"])
    for number in wrong:
        if not 1 <= number <= scenes:
            problems.add(f"there is no scene {number}")
    for entry in reply["missing"]:
        if not 1 <= entry["sentence"] <= sentences:
            problems.add(f"there is no sentence {entry['sentence']}")
    problems.settle()
    missing = [
        f"sentence {entry['sentence']}: {normalize_text(entry['remark'])}" for entry in reply["missing"]
    ]
    added = [f"scene {entry['scene']}: {normalize_text(entry['remark'])}" for entry in reply["added"]]
    dark = [f"scene {number}" for number in sorted(set(reply["not_drawable"]))]
    order = [] if reply["order_kept"] else [normalize_text(reply["order_remark"] or "no reason was given")]
    return [
        _verdict(ORDER, order, "the events follow each other as in the source", "not in the source's order"),
        _verdict(COMPLETE, missing, "nothing that matters is missing", "missing of the source"),
        _verdict(FAITHFUL, added, "nothing is added to the source", "not in the source"),
        _verdict(DRAWABLE, dark, "every scene can be drawn", "no picture can show"),
    ]


def _verdict(code: str, faults: Sequence[str], fine: str, fault: str) -> Json:
    note = f"{fault}: {'; '.join(faults)}" if faults else fine
    return make_check(code, "$.story_text", not faults, note)


STEP = Step(
    id="katha/normalise_story",
    version=4,
    writes=("narrative",),
    reads=("story", "given", "analysis"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    ask=_ask,
    asks=("katha/normalise_story", "katha/check_narrative"),
    settings=Settings,
    libraries=("sentencex",),
)
