"""Which questions count, and their sums per story: what every rate and its interval are made of.

Three **sets** of questions, per method:

- ``raw``: all that were judged under text-only evidence and either judged under image-only evidence or could
  not be, because the generation is invalid; those count as not recovered.
- ``filtered``: those of raw whose generation is valid and whose intended answer is recovered under text+image
  evidence (Eq. 7 and 16).
- ``common``: those of filtered that are filtered for every method and every seed. With noisy judges and many
  seeds hardly any is; by the definition ``majority`` it is those that are filtered for every method with more
  than half of the seeds that it was asked for. Such a question then counts once, as the mean over the seeds
  with which it is filtered.

Two **levels**: at ``question`` level each question has the same weight in its dimension (Eq. 17); at
``story`` level each story has, with the share of its questions of that dimension. Several seeds of a story
are one story: its sums are means over the seeds that have a question in the set (Table 44).

Of the eight outcome triples of the three evidence conditions, Table 30 names five; the other three say that
judging was not stable.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...schemas.canonical import plain_fields
from ...schemas.text import counted
from ...schemas.values import Score
from ...validators.resampling import divided
from ..stats.uncertainty import TOLERANCE, Paired, paired_lines
from .matching import CONDITIONS, DIMENSIONS, PROTOCOL, Common, Definitions, Items
from .replies import (
    CATEGORIES,
    NO_ANSWER,
    QUESTIONS,
    VARIANT_QUESTION,
    WRONG,
    Columns,
    Coverage,
    Generations,
    Replies,
)

# -- From replies to verdicts: the votes of a judge, then the judges, each by majority
#
# Question: what do all replies to one question under one condition say together?
# Formula: the value with the most votes (Eq. 23). For questions the values are right and wrong (E.7), for
#     labels and pairs the options. A tie is no value and so never right. First the votes of each judge are
#     joined, then the judges, with weights where given.
# Input: columns of replies.
# Output: per judge, and for all together, a value for each item.
# Undefined when: nobody was asked, or, with ``nonresponse=excluded``, nobody answered: :data:`UNJUDGED`.
# Source: KathaTrace, Eq. 23, B.4, E.7.
# Departures from the source: it does not say what a judge counts as that does not answer; see
#     :mod:`.matching`. Among labels no answer is an option of its own, which never is the right one.
# Example: right, right, wrong is right; right, wrong is a tie, so wrong.

Verdicts = NDArray[np.int8]

RIGHT_VERDICT = 1
UNJUDGED, TIE, SILENT = -1, -3, -2
"""No verdict; as many votes for one as for another; the judges that were asked gave no answer."""


@dataclass(frozen=True)
class Board:
    """The verdicts on one kind of item for one method."""

    together: Verdicts = field(repr=False)  # verdict of all judges, shape (seeds, conditions, items)
    single: Verdicts = field(repr=False)  # verdict of each judge, shape (judges, seeds, conditions, items)


def boards(
    replies: Replies, items: Items, kind: str, definitions: Definitions, *, loose: bool = False
) -> dict[str, Board]:
    """Return method -> the verdicts on all items of a kind; with ``loose`` the answers alone decide.

    Text-only verdicts belong to no method and stand in every method's board, for every seed.
    """
    rows = replies.columns[kind]
    if loose:
        rows = replace(rows, value=rows.loose)
    of_variants = 0 if items.contrast is None else items.contrast.questions
    sizes = {"question": items.questions, VARIANT_QUESTION: of_variants, "moral_label": items.stories}
    size = sizes.get(kind, len(items.pairs))
    is_text = rows.condition == 0
    text = _board(rows.chosen(is_text), (1, size), replies, kind, definitions)
    made = {}
    for index, method in enumerate(replies.methods):
        board = _board(
            rows.chosen(~is_text & (rows.method == index)),
            (len(replies.seeds), size),
            replies,
            kind,
            definitions,
        )
        for to, of in ((board.together, text.together), (board.single, text.single)):
            to[..., 0, :] = of[..., 0, :]
        made[method] = board
    return made


def _board(
    rows: Columns, shape: tuple[int, int], replies: Replies, kind: str, definitions: Definitions
) -> Board:
    seeds, size = shape
    judges = len(replies.judges)
    cells = (judges, seeds, len(CONDITIONS), size)
    categories = CATEGORIES[kind]
    values = rows.value
    if kind in QUESTIONS and definitions.nonresponse == "incorrect":
        values = np.where(values == NO_ANSWER, WRONG, values)
    cell = np.ravel_multi_index((rows.judge, np.maximum(rows.seed, 0), rows.condition, rows.item), cells)
    slots = categories + 1  # the last one: no answer
    counts = np.bincount(
        cell * slots + np.where(values == NO_ANSWER, categories, values),
        minlength=int(np.prod(cells)) * slots,
    )
    votes = counts.reshape(*cells, slots)
    single = _winner(votes.astype(np.float64), definitions)
    together = _winner(_ballots(single, categories, kind, replies.judges, definitions), definitions)
    return Board(together=_settled(together, kind, definitions), single=_settled(single, kind, definitions))


def _winner(votes: NDArray[np.float64], definitions: Definitions) -> Verdicts:
    """Return the place of the largest count along the last axis, whose last slot is for no answer."""
    answered = votes[..., :-1] if definitions.nonresponse == "excluded" else votes
    best = answered.max(axis=-1)
    tied = (answered >= best[..., None] - 1e-9).sum(axis=-1) > 1
    winner: Verdicts = answered.argmax(axis=-1).astype(np.int8)
    winner[tied] = TIE
    winner[best <= 0] = SILENT
    winner[(winner == votes.shape[-1] - 1)] = SILENT
    winner[votes.sum(axis=-1) == 0] = UNJUDGED
    return winner


def _ballots(
    single: Verdicts, categories: int, kind: str, judges: tuple[str, ...], definitions: Definitions
) -> NDArray[np.float64]:
    """Return the counts of the judges' verdicts; a judge's own tie stands for no answer of its own."""
    weights = np.array(
        [1.0 if definitions.weights is None else definitions.weights.get(judge, 0.0) for judge in judges]
    )
    tie = WRONG if kind in QUESTIONS else categories
    ballots = np.zeros((*single.shape[1:], categories + 1))
    for index, verdicts in enumerate(single):
        cast = np.where(verdicts == TIE, tie, np.where(verdicts == SILENT, categories, verdicts))
        for value in range(categories + 1):
            ballots[..., value] += weights[index] * (cast == value)
    return ballots


def _settled(verdicts: Verdicts, kind: str, definitions: Definitions) -> Verdicts:
    """Return verdicts in which ties are wrong, and silence is wrong or no verdict."""
    silent = UNJUDGED if definitions.nonresponse == "excluded" else SILENT
    if kind in QUESTIONS:
        verdicts = np.where(verdicts == TIE, np.int8(WRONG), verdicts)
        silent = UNJUDGED if definitions.nonresponse == "excluded" else WRONG
    settled: Verdicts = np.where(verdicts == SILENT, np.int8(silent), verdicts).astype(np.int8)
    return settled


# --

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SetName = Literal["raw", "filtered", "common"]
Level = Literal["question", "story"]
SETS: tuple[SetName, ...] = ("raw", "filtered", "common")
LEVELS: tuple[Level, ...] = ("question", "story")
TEXT, IMAGE, BOTH = 0, 1, 2


@dataclass(frozen=True)
class Outcomes:
    """The verdicts on every question for one method, and which set each belongs to."""

    verdicts: Verdicts = field(repr=False)  # right, wrong or unjudged, shape (seeds, conditions, questions)
    # name -> which questions are in it, or how much each counts, shape (seeds, questions)
    sets: Mapping[SetName, Mask | Floats] = field(repr=False)
    # whether the question's generation was asked for, shape (seeds, questions)
    requested: Mask = field(repr=False)
    valid: Mask = field(repr=False)  # whether the question's generation is valid, shape (seeds, questions)
    common: Common = "every-seed"  # which questions are common

    def those(self, name: SetName) -> Mask:
        """Return which questions are in a set, however much each counts, shape (seeds, questions)."""
        return np.asarray(self.sets[name], dtype=np.bool_)

    @property
    def checked(self) -> Mask:
        """Which questions have a text+image verdict on a valid generation, shape (seeds, questions)."""
        checked: Mask = self.valid & (self.verdicts[:, BOTH] != UNJUDGED)
        return checked

    @property
    def ambiguous(self) -> Mask:
        """Which of them are not recovered even so (Eq. 19), shape (seeds, questions)."""
        ambiguous: Mask = self.checked & (self.verdicts[:, BOTH] != RIGHT_VERDICT)
        return ambiguous


def outcomes_of(
    verdicts: Mapping[str, Verdicts],
    made: Mapping[str, Generations],
    items: Items,
    common: Common,
) -> dict[str, Outcomes]:
    """Return method -> its outcomes.

    ``verdicts``: method -> verdicts, shape (seeds, conditions, questions). ``made``: method -> its
    generations.
    """
    outcomes: dict[str, Outcomes] = {}
    for method, board in verdicts.items():
        requested = made[method].requested[:, items.story]
        valid = made[method].valid[:, items.story]
        shown = valid & (board[:, IMAGE] != UNJUDGED)
        raw = requested & (board[:, TEXT] != UNJUDGED) & (shown | ~valid)
        filtered = raw & shown & (board[:, BOTH] == RIGHT_VERDICT)
        outcomes[method] = Outcomes(board, {"raw": raw, "filtered": filtered}, requested, valid, common)
    return dict(zip(outcomes, with_common([*outcomes.values()]), strict=True))


def with_common(outcomes: Sequence[Outcomes]) -> list[Outcomes]:
    """Return outcomes with their common sets: what is filtered for each, wherever it was asked for."""
    common = np.logical_and.reduce([widely_valid(each) for each in outcomes])
    return [replace(each, sets={**each.sets, "common": counted_where(each, common)}) for each in outcomes]


def widely_valid(outcomes: Outcomes) -> Mask:
    """Return which questions are filtered for a method with every seed, or most; (questions,)."""
    filtered = outcomes.those("filtered")
    if outcomes.common == "majority":
        most = 2 * filtered.sum(axis=0) > outcomes.requested.sum(axis=0)
        return np.asarray(most | ~outcomes.requested.any(axis=0), dtype=np.bool_)
    return np.asarray((filtered | ~outcomes.requested).all(axis=0), dtype=np.bool_)


def counted_where(outcomes: Outcomes, common: Mask) -> Mask | Floats:
    """Return which of the common questions count with which seed, or how much; shape (seeds, questions)."""
    there = outcomes.those("filtered") & common
    return there / np.maximum(there.sum(axis=0), 1) if outcomes.common == "majority" else there


@dataclass(frozen=True)
class Sums:
    """Per story and dimension: what was recovered and of how many; or any sums of that."""

    text: Floats = field(repr=False)  # recovered under text-only evidence, shape (..., dimensions)
    image: Floats = field(repr=False)  # recovered under image-only evidence, shape (..., dimensions)
    # how many questions, or stories, were counted, shape (..., dimensions)
    counted: Floats = field(repr=False)

    def columns(self) -> Floats:
        """Return the three side by side, shape (..., 3 x dimensions)."""
        return np.concatenate([self.text, self.image, self.counted], axis=-1)

    @classmethod
    def of(cls, columns: Floats) -> "Sums":
        """Return what :meth:`columns` put side by side."""
        return cls(*np.split(columns, 3, axis=-1))

    def total(self) -> "Sums":
        """Return the sums over stories, shape (dimensions,)."""
        return Sums(self.text.sum(axis=0), self.image.sum(axis=0), self.counted.sum(axis=0))


def sums_of(outcomes: Outcomes, chosen: Mask | Floats, items: Items, level: Level = "question") -> Sums:
    """Return the sums per story over the chosen questions.

    ``chosen``: which questions count, shape (seeds, questions): then the seeds of a story are averaged; or
    how much each counts, which adds up over the seeds.

    Returned: arrays of shape (stories, dimensions).
    """
    text = per_story(chosen * (outcomes.verdicts[:, TEXT] == RIGHT_VERDICT), items)
    image = per_story(chosen * outcomes.valid * (outcomes.verdicts[:, IMAGE] == RIGHT_VERDICT), items)
    counted = per_story(chosen, items)
    if chosen.dtype != np.bool_:
        text, image, counted = (part.sum(axis=0, keepdims=True) for part in (text, image, counted))
    if level == "story":
        text, image = (np.nan_to_num(divided(part, counted)) for part in (text, image))
        counted = (counted > 0).astype(np.float64)
        weight = 1 / np.maximum(counted.sum(axis=0), 1)  # seeds in which the dimension is counted
        return Sums((text * weight).sum(axis=0), (image * weight).sum(axis=0), (counted * weight).sum(axis=0))
    weight = seed_weights(np.asarray(counted.any(axis=-1)))[..., None]
    return Sums((text * weight).sum(axis=0), (image * weight).sum(axis=0), (counted * weight).sum(axis=0))


def seed_weights(there: Mask) -> Floats:
    """Return 1 / number of seeds that a story has, 0 where it has none; shape as given (seeds, stories)."""
    number = there.sum(axis=0)
    return np.where(there, 1 / np.maximum(number, 1), 0.0)


def per_story(chosen: Mask | Floats, items: Items) -> Floats:
    """Return how many chosen questions each story has per dimension.

    ``chosen``: shape (seeds, questions); or how much each counts.

    Returned: shape (seeds, stories, dimensions).
    """
    width = items.stories * len(DIMENSIONS)
    places = items.story * len(DIMENSIONS) + items.dimension
    counts = [
        np.bincount(places[row], minlength=width)
        if row.dtype == np.bool_
        else np.bincount(places, weights=row, minlength=width)
        for row in chosen
    ]
    return np.array(counts, dtype=np.float64).reshape(len(chosen), items.stories, len(DIMENSIONS))


MEANINGS: dict[tuple[bool, bool, bool], str] = {
    (True, True, True): "recovered from text and from images",
    (True, False, True): "lost on the way to the images",
    (False, False, True): "recovered only from text and images together",
    (False, True, True): "recovered from images, not from text: a negative gap, to be inspected",
    (True, False, False): "recovered from text, not with the images beside it: images contradict or mislead",
    (False, False, False): "never recovered: a defective or underspecified question",
    (True, True, False): "recovered from either, not from both together: judging is not stable",
    (False, True, False): "recovered from images alone: judging is not stable",
}


@dataclass(frozen=True)
class Triple:
    """How often one combination of verdicts occurred."""

    text: bool  # whether the answer was right under text-only evidence
    image: bool  # whether it was under image-only evidence
    text_image: bool  # whether it was under both
    count: int  # of how many questions that was so, seeds counted apart
    included: bool  # whether such questions are part of filtered STG
    in_table_30: bool  # whether the paper's table has this combination
    meaning: str  # what it says


def triples_of(outcomes: Outcomes) -> tuple[Triple, ...]:
    """Return the eight combinations with their counts, over questions judged under all three conditions."""
    judged = outcomes.valid & (outcomes.verdicts != UNJUDGED).all(axis=1)
    right = outcomes.verdicts == RIGHT_VERDICT
    codes = (right[:, TEXT] * 4 + right[:, IMAGE] * 2 + right[:, BOTH])[judged]
    counts = np.bincount(codes.astype(np.int64), minlength=8)
    triples = []
    for text, image, both in product((True, False), repeat=3):
        unlisted = (image and not text) or (image and not both)
        count = int(counts[4 * text + 2 * image + both])
        meaning = MEANINGS[text, image, both]
        triples.append(Triple(text, image, both, count, both, not unlisted, meaning))
    return tuple(triples)


# -- The scores of an evaluation of storyboards, as values, as JSON and as lines for people


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
    if "variant_gap" in method.pairs:
        yield f"  STG on contrastive variants {points(method.pairs['variant_gap'])}"
    if method.negative["scores"]:
        yield f"  negative gaps, to be inspected: {', '.join(method.negative['scores'])}"
