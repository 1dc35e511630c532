"""The scores of an evaluation of storyboards, as values, as JSON and as lines for people."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...schemas.canonical import plain_fields
from ...schemas.text import counted
from ...schemas.values import Score
from ..stats.paired import Paired, paired_lines
from ..stats.ranks import TOLERANCE
from .definitions import PROTOCOL, Definitions
from .pooling import LEVELS, SETS, Level, SetName, Triple
from .replies import Coverage


@dataclass(frozen=True)
class GapScores:
    """Recoverability and STG over one set of questions."""

    text: Score  # R_text, equal weight per dimension
    image: Score  # R_image
    gap: Score  # STG
    latent_gap: Score  # mean gap over causal, emotional, consequence and moral
    gap_without_moral: Score  # mean gap over all dimensions but moral
    latent_gap_without_moral: Score  # mean gap over causal, emotional and consequence
    dimensions: Mapping[str, Mapping[str, Score]]  # dimension -> text, image and gap

    @property
    def negative(self) -> bool:
        """Whether the gap is below zero by more than rounding; it is to be inspected then."""
        return self.gap.value is not None and self.gap.value < -TOLERANCE


@dataclass(frozen=True)
class GroupScores:
    """Scores within a group of stories; their intervals are of stories of that group alone."""

    stories: int
    gaps: Mapping[SetName, GapScores]
    ambiguity: Score


@dataclass(frozen=True)
class MethodScores:
    """The scores of one method."""

    generations: Mapping[str, Any]  # stories and generations requested, valid and invalid (Table 57)
    questions: Mapping[str, int]  # total, valid, ambiguous, of invalid generations, unjudged (Table 26)
    ambiguity: Score  # share of questions that are ambiguous
    ambiguity_by_dimension: Mapping[str, Score]  # the same per dimension
    gaps: Mapping[Level, Mapping[SetName, GapScores]]  # level -> set -> recoverability and gap
    moral_target: Mapping[str, Score]  # text, image, gap, text_image, chance and majority
    # accuracy, confusion, contrastive_chosen; and text, image and gap against contrastive labels
    pairs: Mapping[str, Score]
    triples: tuple[Triple, ...]  # the eight combinations of the three verdicts
    # judge -> set -> text, image and gap of that judge alone
    judges: Mapping[str, Mapping[SetName, Mapping[str, Score]]]
    groups: Mapping[str, Mapping[str, GroupScores]]  # grouping -> group -> scores
    negative: Mapping[str, Any]  # what has a negative gap; to be inspected before anything is concluded
    evidence: tuple[Mapping[str, Any], ...]  # recoverability and gap with more and more evidence (Table 73)


@dataclass(frozen=True)
class KathaScores:
    """Everything that is scored of an evaluation of storyboards."""

    definitions: Definitions  # the named definitions that were used
    release: Mapping[str, Any]  # hash and version of the release
    scope: Mapping[str, Any]  # stories, questions and judges; how many judgements were about other stories
    methods: Mapping[str, MethodScores] = field(repr=False)  # method -> its scores
    comparisons: tuple[Paired, ...] = field(repr=False)  # each pair of methods
    robustness: Mapping[str, Any] = field(repr=False)  # the controls between methods and judges
    coverage: tuple[Coverage, ...] = field(repr=False)  # what was asked and what came back
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions."""
        return {"kind": PROTOCOL, **plain_fields(self)}

    def lines(self) -> Iterator[str]:
        """Yield the main scores in percentage points, with intervals and coverage."""
        used = self.definitions
        yield (
            f"release {self.release['version']}: {counted(self.scope['stories'], 'story')}, "
            f"{counted(self.scope['questions'], 'question')}, {counted(len(self.scope['judges']), 'judge')} "
            f"({', '.join(self.scope['judges'])}); "
            f"matcher={used.matcher}, nonresponse={used.nonresponse}, support={used.support}"
            + (f", common={used.common}" if used.common != "every-seed" else "")
        )
        yield from (f"note: {note}" for note in self.notes)
        for name, method in self.methods.items():
            yield ""
            yield from _method_lines(name, method)
        if self.comparisons:
            yield ""
            yield "difference of common-valid STG (negative: the first loses less)"
        yield from paired_lines(self.comparisons)
        if self.coverage:
            yield ""
            yield from coverage_lines(self.coverage)


def points(score: Score) -> str:
    """Return a score in percentage points with its interval."""
    if score.value is None:
        return f"- ({score.reason or score.status})"
    text = f"{100 * score.value:.1f}"
    if score.low is None or score.high is None:
        return text
    return f"{text} [{100 * score.low:.1f}, {100 * score.high:.1f}]"


def coverage_lines(coverage: tuple[Coverage, ...]) -> Iterator[str]:
    """Yield what did not come back, by judge; or that everything did."""
    asked = sum(row.asked for row in coverage)
    answered = sum(row.outcomes["answered"] for row in coverage)
    yield f"{answered} of {asked} replies are answers"
    speaking = {row.judge for row in coverage if row.outcomes["answered"]}
    for judge in sorted({row.judge for row in coverage} - speaking):
        silent = [row for row in coverage if row.judge == judge]
        missing = _missing(sum((Counter(row.outcomes) for row in silent), Counter()))
        yield f"  {judge} answered nothing: {missing} of {sum(row.asked for row in silent)}"
    for row in coverage:
        if row.judge in speaking and row.asked != row.outcomes["answered"]:
            shown = "" if row.method is None else f"{row.method}, "
            missing_here = _missing(row.outcomes)
            yield f"  {row.judge}, {shown}{row.kind} under {row.condition}: {missing_here} of {row.asked}"


def _missing(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in outcomes.items() if count and name != "answered")


def _method_lines(name: str, method: MethodScores) -> Iterator[str]:
    made, asked = method.generations, method.questions
    yield name
    yield (
        f"  stories {made['stories_valid']} of {made['stories_requested']} valid, generations "
        f"{made['generations_invalid']} of {made['generations_requested']} invalid"
    )
    yield (
        f"  questions {asked['valid']} of {asked['total']} valid, {asked['ambiguous']} ambiguous, "
        f"{asked['invalid_generation']} of invalid generations, {asked['unjudged']} unjudged"
    )
    main = method.gaps["question"]["filtered"]
    yield f"  text {points(main.text)}  image {points(main.image)}  STG {points(main.gap)}"
    for level in LEVELS:
        gaps = "  ".join(f"{name} {points(method.gaps[level][name].gap)}" for name in SETS)
        yield f"  STG by {level}: {gaps}"
    if made["generations_invalid"]:
        lost = counted(asked["invalid_generation"], "question")
        yield f"  raw: {lost} of invalid generations count as not recovered from images, else they are out"
    yield f"  latent gap {points(main.latent_gap)}  ambiguity {points(method.ambiguity)}"
    for dimension, scores in main.dimensions.items():
        yield f"    {dimension:<18} STG {points(scores['gap'])}"
    moral = method.moral_target
    if moral["text"].value is not None:
        yield (
            f"  moral target: text {points(moral['text'])}  image {points(moral['image'])}  "
            f"chance {points(moral['chance'])}  majority {points(moral['majority'])}"
        )
    if method.pairs["accuracy"].value is not None:
        yield f"  pair accuracy {points(method.pairs['accuracy'])}"
    if method.negative["scores"]:
        yield f"  negative gaps, to be inspected: {', '.join(method.negative['scores'])}"
