"""``fabula compare``: two evaluations made alike, against each other."""

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
    SeedOption,
    SupportOption,
    VotingOption,
    WeightsOption,
    check_options,
    event_definitions,
    image_definitions,
    katha_definitions,
    suite_of,
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare", epilog=example("fabula compare runs/eval-a runs/eval-c"))(compare)


@guarded
def compare(
    first: Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)],
    release: ReleaseOption = None,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="Event suite that was judged [the copies in the folders].")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Part of the protocol that may differ, such as prompts. Repeatable."),
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
    as_json: JsonOption = False,
) -> int:
    """Compare the methods of two evaluations with paired tests.

    Both must have been judged under the same protocol. For images, name one folder twice to compare the
    methods in it.
    """
    from ..evaluation.archive import read_manifest
    from ..evaluation.recoverability.compare import compare_folders

    release = released(release)
    uncertainty = {
        "resamples": resamples, "seed": seed, "interval": interval, "correction": correction
    }  # fmt: skip
    kind = read_manifest(first).kind
    check_options(
        kind,
        {
            "--matcher": matcher, "--support": support, "--weights": weights, "--suite": suite,
            "--voting": voting, "--partial": partial, "--define": define,
            "--release": release, "--nonresponse": nonresponse,
        },
    )  # fmt: skip
    if kind == "events":
        from ..evaluation.completion.compare import compare_folders as compare_events

        events = event_definitions(voting, partial, nonresponse, **uncertainty)
        found = compare_events(first, second, suite_of(suite, release), events, allow or ())
        show(found, as_json=as_json)
        return 0
    if kind == "images":
        from ..evaluation.images.compare import compare_folders as compare_images

        named = image_definitions(define, **uncertainty)
        show(compare_images(first, second, named, allow or ()), as_json=as_json)
        return 0
    definitions = katha_definitions(matcher, nonresponse, support, weights, **uncertainty)
    show(compare_folders(first, second, release, definitions, allow or ()), as_json=as_json)
    return 0
