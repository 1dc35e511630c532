"""A child counts only where its parents hold: verdicts on questions that depend on others.

Question: is a statement supported together with all that it depends on?
Formula: a verdict stays as it is unless it is right. A right one is wrong where any ancestor is wrong, and
    unjudged where none is wrong and one is unjudged.
Input: verdicts on questions, shape (..., questions); question -> its parents, without a circle.
Output: verdicts of the same shape.
Undefined when: never; the graph must have no circle and name no question that is not there.
Source: the idea of DSG (Cho et al. 2024); KathaTrace names its multi-frame form in Tables 3 and 54.
Departures from the source: a question that nobody was asked stays unjudged whatever its parents are. All
    conditions of evidence are treated alike, so that a child whose parent cannot be confirmed with story and
    pictures together is ambiguous, too. Judges are joined first, parents applied then; and for each judge
    alone to its own verdicts.
Example: parent wrong, child right: both wrong. Parent unjudged, child right: child unjudged; child wrong:
    child wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....errors import InputError
from ....evaluation.recoverability.pooling import (
    IMAGE,
    RIGHT_VERDICT,
    UNJUDGED,
    Board,
    Verdicts,
    outcomes_of,
)
from ....evaluation.recoverability.replies import WRONG
from ....evaluation.recoverability.score import Judged
from ....schemas.katha import Question

Parents = Mapping[int, Sequence[int]]
"""Place of a question -> places of its parents."""


def with_parents(verdicts: Verdicts, parents: Parents) -> Verdicts:
    """Return verdicts in which a child counts only where its parents hold; see the card.

    ``verdicts``: right, wrong or unjudged, shape (..., questions).
    """
    settled = verdicts.copy()
    for child in ordered(parents):
        above = settled[..., list(parents[child])]
        right = settled[..., child] == RIGHT_VERDICT
        wrong = (above == WRONG).any(axis=-1)
        unknown = ~wrong & (above == UNJUDGED).any(axis=-1)
        settled[..., child][right & wrong] = WRONG
        settled[..., child][right & unknown] = UNJUDGED
    return settled


def ordered(parents: Parents) -> list[int]:
    """Return the questions that have parents, each after all of its ancestors."""
    done: dict[int, None] = {}
    for start in parents:
        stack = [start]
        while stack:
            question = stack[-1]
            waiting = [above for above in parents[question] if above in parents and above not in done]
            if any(above in stack for above in waiting):
                raise _wrong("questions depend on each other in a circle")
            if waiting:
                stack += waiting[:1]
            else:
                done.setdefault(stack.pop())
    return list(done)


def apply_graph(judged: Judged, parents: Mapping[str, Sequence[str]]) -> Judged:
    """Return an evaluation in which a child counts only where its parents hold.

    ``parents``: question id -> ids of its parents; questions that are not scored are passed over.
    """
    places = judged.items.question_places
    strange = sorted(
        {above for name, row in parents.items() if name in places for above in row} - set(places)
    )
    if strange:
        raise _wrong(f"{len(strange)} parents are no questions of the release, such as {strange[0]}")
    graph = {
        places[name]: [places[above] for above in row] for name, row in parents.items() if name in places
    }

    def change(verdicts: Verdicts, _contrast: Verdicts) -> Verdicts:
        return with_parents(verdicts, graph)

    loose = {name: with_parents(verdicts, graph) for name, verdicts in judged.loose.items()}
    return replace(_changed(judged, change), loose=loose)


def contrast_checked(judged: Judged) -> Judged:
    """Return an evaluation in which no question counts as recovered from pictures that also tell its rival.

    Question: do the pictures tell the story, or would they pass for a variant of it as well?
    Formula: an image-only verdict that is right becomes wrong where a rival question about a variant of the
        story is answered rightly from the same pictures: one of the same dimension that is about one of the
        same scenes. Moral questions of a story and its variants are rivals of each other wherever they point.
    Source: ours. KathaTrace adds contrastives to the protocol in Tables 3, 54 and 58 and does not say how.
    Example: "How does it end?" is answered "safe" from the pictures, and of the variant "lost": wrong.
    """
    rivals = _rivals(judged)
    if not rivals:
        return judged

    def change(verdicts: Verdicts, contrast: Verdicts) -> Verdicts:
        settled = verdicts.copy()
        for number, others in rivals.items():
            answered = (contrast[..., IMAGE, others] == RIGHT_VERDICT).any(axis=-1)
            right = settled[..., IMAGE, number] == RIGHT_VERDICT
            settled[..., IMAGE, number][answered & right] = WRONG
        return settled

    return _changed(judged, change)


def _rivals(judged: Judged) -> dict[int, list[int]]:
    """Return place of a question -> places of its rivals among the questions about variants."""
    items, contrast = judged.items, judged.items.contrast
    if contrast is None:
        return {}
    rivals: dict[int, list[int]] = {}
    for record, other in zip(items.records, contrast.records, strict=True):
        for question in record.questions:
            number = items.question_places.get(question.question_id)
            others = [
                contrast.question_places[rival.question_id]
                for rival in other.questions
                if rival.question_id in contrast.question_places
                and rival.question_type == question.question_type
                and (question.question_type == "moral" or _about(rival) & _about(question))
            ]
            if number is not None and others:
                rivals[number] = others
    return rivals


def _about(question: Question) -> set[int]:
    if question.target_transition is not None:
        return set(question.target_transition)
    return set(question.evidence_scenes) if question.target_scene is None else {question.target_scene}


def _changed(judged: Judged, change: Callable[[Verdicts, Verdicts], Verdicts]) -> Judged:
    """Return an evaluation with other verdicts on its questions, and what follows from them.

    ``change``: verdicts on questions and those about variants, of all judges or of each -> the former anew.
    """
    made = {method.name: method.made for method in judged.methods}
    boards = {
        method.name: Board(
            change(method.board.together, method.contrast.together),
            change(method.board.single, method.contrast.single),
        )
        for method in judged.methods
    }
    rules = (made, judged.items, judged.methods[0].outcomes.common)
    outcomes = outcomes_of({name: board.together for name, board in boards.items()}, *rules)
    alone = [
        outcomes_of({name: board.single[index] for name, board in boards.items()}, *rules)
        for index in range(len(judged.replies.judges))
    ]
    methods = tuple(
        replace(
            method,
            outcomes=outcomes[method.name],
            single={judge: alone[n][method.name] for n, judge in enumerate(judged.replies.judges)},
            board=boards[method.name],
        )
        for method in judged.methods
    )
    return replace(judged, methods=methods)


def _wrong(what: str) -> InputError:
    return InputError.one("evaluator.json", what=what, fix="make the evaluator's release again")
