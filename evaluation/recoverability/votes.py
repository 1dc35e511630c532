"""From replies to verdicts: the votes of a judge, then the judges, each by majority.

Question: what do all replies to one question under one condition say together?
Formula: the value with the most votes (Eq. 23). For questions the values are right and wrong (E.7), for
    labels and pairs the options. A tie is no value and so never right. First the votes of each judge are
    joined, then the judges, with weights where given.
Input: columns of replies.
Output: per judge, and for all together, a value for each item.
Undefined when: nobody was asked, or, with ``nonresponse=excluded``, nobody answered: :data:`UNJUDGED`.
Source: KathaTrace, Eq. 23, B.4, E.7.
Departures from the source: it does not say what a judge counts as that does not answer; see
    :mod:`.definitions`. Among labels no answer is an option of its own, which never is the right one.
Example: right, right, wrong is right; right, wrong is a tie, so wrong.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .definitions import Definitions
from .items import CONDITIONS, Items
from .replies import CATEGORIES, NO_ANSWER, WRONG, Columns, Replies

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
    size = {"question": items.questions, "moral_label": items.stories}.get(kind, len(items.pairs))
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
    if kind == "question" and definitions.nonresponse == "incorrect":
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
    tie = WRONG if kind == "question" else categories
    ballots = np.zeros((*single.shape[1:], categories + 1))
    for index, verdicts in enumerate(single):
        cast = np.where(verdicts == TIE, tie, np.where(verdicts == SILENT, categories, verdicts))
        for value in range(categories + 1):
            ballots[..., value] += weights[index] * (cast == value)
    return ballots


def _settled(verdicts: Verdicts, kind: str, definitions: Definitions) -> Verdicts:
    """Return verdicts in which ties are wrong, and silence is wrong or no verdict."""
    silent = UNJUDGED if definitions.nonresponse == "excluded" else SILENT
    if kind == "question":
        verdicts = np.where(verdicts == TIE, np.int8(WRONG), verdicts)
        silent = UNJUDGED if definitions.nonresponse == "excluded" else WRONG
    settled: Verdicts = np.where(verdicts == SILENT, np.int8(silent), verdicts).astype(np.int8)
    return settled
