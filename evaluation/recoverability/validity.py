"""Which questions count before and after each of the paper's two filters, and what is common to all methods.

The paper calls two things ``raw`` and two things ``common-valid`` (Table 26 and Table 57). A question may be
left out because it is **ambiguous** (not answered as intended even from text and images together), or because
its **generation is invalid** (refused, blocked, empty, corrupt, incomplete). So there are six sets:

- ``before_both``: no filter. Questions of invalid generations count as not recovered from images. It is what
  :mod:`.pooling` calls ``raw``.
- ``before_ambiguity``: raw in Table 26. All questions of valid generations, ambiguous ones included.
- ``before_validity``: raw in Table 57. Without ambiguous questions as far as that is known: those of valid
  generations are filtered, those of invalid ones were never asked under text+image evidence and all count,
  as not recovered from images.
- ``filtered``: both filters; the number that is reported, the same in both tables.
- ``common_questions``: common-valid in Table 26. Those of filtered that are in it for every method and seed.
- ``common_stories``: common-valid in Table 57. Those of filtered whose story has, for every method that was
  asked for it, a generation that is valid.

Text and images are always counted over the same questions of the same generations: one mask is both sides'.

Source: KathaTrace, B.2, G.3, I.6, Tables 26, 42 and 57.
Departures from the source: the paper says that raw STG is ``computed before validity filtering`` and not what
    an invalid storyboard then counts as. Here it shows nothing: its questions are not recovered from images.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .coverage import Generations
from .definitions import Definitions
from .estimates import Estimates, Sheet
from .items import Items
from .method import Method, add_gaps
from .pooling import Outcomes, outcomes_of, sums_of

Mask = NDArray[np.bool_]
ValiditySet = Literal[
    "before_both", "before_ambiguity", "before_validity", "filtered", "common_questions", "common_stories"
]


def validity_sets(methods: Sequence[Method], items: Items) -> dict[str, dict[ValiditySet, Mask]]:
    """Return method -> set -> which questions are in it, shape (seeds, questions)."""
    common = common_stories(methods)[items.story]
    return {method.name: _sets_of(method.outcomes, common) for method in methods}


def common_stories(methods: Sequence[Method]) -> Mask:
    """Return which stories have a valid generation of every method that was asked for them; (stories,)."""
    common = np.ones(methods[0].made.requested.shape[1], dtype=bool)
    for method in methods:
        common &= method.made.valid.any(axis=0) | ~method.made.requested.any(axis=0)
    return common


def common_questions(methods: Sequence[Method]) -> Mask:
    """Return which questions are filtered for every method with every seed that was asked; (questions,).

    Only questions that every method was asked about, with some seed, are among them.
    """
    common = np.ones(methods[0].outcomes.requested.shape[1], dtype=bool)
    for method in methods:
        outcomes = method.outcomes
        common &= (outcomes.sets["filtered"] | ~outcomes.requested).all(axis=0)
        common &= outcomes.requested.any(axis=0)
    return common


def _sets_of(outcomes: Outcomes, common: Mask) -> dict[ValiditySet, Mask]:
    raw, filtered = outcomes.sets["raw"], outcomes.sets["filtered"]
    return {
        "before_both": raw,
        "before_ambiguity": raw & outcomes.valid,
        "before_validity": filtered | (raw & ~outcomes.valid),
        "filtered": filtered,
        "common_questions": outcomes.sets["common"],
        "common_stories": filtered & common,
    }


def narrowed(methods: Sequence[Method], requested: Mapping[str, Mask], items: Items) -> tuple[Method, ...]:
    """Return methods of which some were asked for fewer generations than the evaluation counts.

    An evaluation counts every story of every method. Where a method was never to make some of them, as an
    oracle plan that exists for gold stories only, those are no failures of it.

    ``requested``: method -> which generations were asked for, shape (seeds, stories); others stay.
    """
    made = {
        method.name: _narrower(method.made, requested[method.name])
        if method.name in requested
        else method.made
        for method in methods
    }
    boards = {method.name: method.board for method in methods}
    judges = tuple(methods[0].single) if methods else ()
    together = outcomes_of({name: board.together for name, board in boards.items()}, made, items)
    alone = {
        judge: outcomes_of({name: board.single[index] for name, board in boards.items()}, made, items)
        for index, judge in enumerate(judges)
    }
    return tuple(
        replace(
            method,
            outcomes=together[method.name],
            single={judge: alone[judge][method.name] for judge in judges},
            made=made[method.name],
        )
        for method in methods
    )


def _narrower(made: Generations, requested: Mask) -> Generations:
    return Generations(made.requested & requested, made.valid & requested)


def gaps_over(
    parts: Mapping[str, tuple[Method, Mask]], items: Items, definitions: Definitions
) -> dict[str, Estimates]:
    """Return recoverability and STG over chosen questions, by question, all resampled together.

    ``parts``: name -> method, and which of its questions count, shape (seeds, questions).

    Returned: name -> its values, called as in :func:`.recoverability.named`.
    """
    sheet = Sheet(items.stories)
    for name, (method, chosen) in parts.items():
        add_gaps(sheet, (name,), sums_of(method.outcomes, chosen, items))
    drawn = sheet.resampled(definitions)
    return {name: sheet.estimates(drawn, name) for name in parts}
