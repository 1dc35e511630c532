"""``fabula score`` and ``fabula compare``: numbers from an evaluation, and two of them against each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .command import command
from .common import released, show

DEFINITIONS = (
    "evaluation.recoverability.definitions:Definitions",
    "evaluation.events.votes:Definitions",
)


@command("score", *DEFINITIONS)
def score(
    run: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    split: Sequence[str] = (),
    weights: Path | None = None,
    define: Sequence[str] = (),
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    tables: Path | None = None,
    as_json: bool = False,
) -> int:
    """Compute the scores of an evaluation; no model is asked.

    An evaluation that is not finished can be scored too: the scores then say what is missing.

    Options:
        run: Evaluation folder.
        release: Release that was judged [where the evaluation says].
        suite: Event suite that was judged [the copy in the folder].
        split: Only stories of this split.
        matcher: Who compares answers: {evaluation.recoverability.matchers:MATCHERS}, or a matcher with
            archived verdicts [accepted].
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: Images: a named definition, such as cids=code, occm=code, csd=all, least=0.3.
        tables: Also write tables here: answers, matches, masks; of images, scores, strata, shots.

    Examples:
        fabula score runs/eval-a
        fabula score runs/eval-a --json
    """
    from ..kinds.evaluations import score as score_as

    options = {
        "split": split, "weights": weights, "tables": tables, "suite": suite, "define": define,
        "release": released(release), "resamples": resamples, **given,
    }  # fmt: skip
    show(score_as(run, options), as_json=as_json)
    return 0


@command("compare", *DEFINITIONS)
def compare(
    first: Path,
    second: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    allow: Sequence[str] = (),
    weights: Path | None = None,
    define: Sequence[str] = (),
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    as_json: bool = False,
) -> int:
    """Compare the methods of two evaluations with paired tests.

    Both must have been judged under the same protocol. For images, name one folder twice to compare the
    methods in it. The definitions are those of `fabula score`.

    Options:
        first: Evaluation folder.
        second: Evaluation folder.
        release: Release that was judged [where the evaluations say].
        suite: Event suite that was judged [the copies in the folders].
        allow: Part of the protocol that may differ, such as prompts.
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: Images: a named definition, such as cids=code.

    Examples:
        fabula compare runs/eval-a runs/eval-c
    """
    from ..kinds.evaluations import compare as compare_as

    options = {
        "weights": weights, "suite": suite, "define": define, "release": released(release),
        "resamples": resamples, **given,
    }  # fmt: skip
    show(compare_as(first, second, options, allow), as_json=as_json)
    return 0
