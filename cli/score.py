"""``fabula score``: numbers from an archive of judgements and the data that was judged."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, released, show
from .scoring import (
    CorrectionOption,
    DefineOption,
    IntervalOption,
    MatcherOption,
    NonresponseOption,
    PartialOption,
    ReleaseOption,
    ResamplesOption,
    RunArgument,
    SeedOption,
    SupportOption,
    VotingOption,
    WeightsOption,
    check_options,
    event_definitions,
    image_definitions,
    image_scores,
    katha_definitions,
    suite_of,
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("score", epilog=example("fabula score runs/eval-a", "fabula score runs/eval-a --json"))(score)


@guarded
def score(
    run: RunArgument,
    release: ReleaseOption = None,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="Event suite that was judged [the copy in the folder].")
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option("--split", help="Only stories of this split. Repeatable.")
    ] = None,
    matcher: MatcherOption = None,
    nonresponse: NonresponseOption = None,
    support: SupportOption = None,
    weights: WeightsOption = None,
    voting: VotingOption = None,
    partial: PartialOption = None,
    define: DefineOption = None,
    resamples: ResamplesOption = 10_000,
    seed: SeedOption = 42,
    interval: IntervalOption = "by-size",
    correction: CorrectionOption = "holm",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            help="Also write tables here: answers, matches, masks; of images, scores, strata, shots.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Compute the scores of an evaluation; no model is asked.

    An evaluation that is not finished can be scored too: the scores then say what is missing.
    """
    from ..evaluation.archive import read_manifest
    from ..evaluation.recoverability.score import judged_folder, scores_of

    release = released(release)
    uncertainty = {
        "resamples": resamples, "seed": seed, "interval": interval, "correction": correction
    }  # fmt: skip
    kind = read_manifest(run).kind
    check_options(
        kind,
        {
            "--split": split, "--matcher": matcher, "--support": support, "--weights": weights,
            "--tables": tables, "--suite": suite, "--voting": voting, "--partial": partial,
            "--define": define, "--release": release, "--nonresponse": nonresponse,
        },
    )  # fmt: skip
    if kind == "events":
        from ..evaluation.completion.score import score_folder

        events = event_definitions(voting, partial, nonresponse, **uncertainty)
        show(score_folder(run, suite_of(suite, release), events), as_json=as_json)
        return 0
    if kind == "images":
        show(image_scores(run, image_definitions(define, **uncertainty), tables), as_json=as_json)
        return 0
    definitions = katha_definitions(matcher, nonresponse, support, weights, **uncertainty)
    judged = judged_folder(run, release, definitions, splits=split or ())
    if tables is not None:
        from ..evaluation.recoverability.tables import write_tables

        write_tables(tables, run, judged, definitions)
    show(scores_of(judged, definitions), as_json=as_json)
    return 0
