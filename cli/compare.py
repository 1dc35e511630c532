"""``fabula compare``: two evaluations made alike, against each other."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, show
from .score import (
    MatcherOption,
    NonresponseOption,
    PartialOption,
    ReleaseOption,
    ResamplesOption,
    SeedOption,
    SupportOption,
    VotingOption,
    WeightsOption,
    event_definitions,
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
    matcher: MatcherOption = "accepted",
    nonresponse: NonresponseOption = None,
    support: SupportOption = "contradicted",
    weights: WeightsOption = None,
    voting: VotingOption = "unanimous",
    partial: PartialOption = "answered",
    resamples: ResamplesOption = 10_000,
    seed: SeedOption = 42,
    as_json: JsonOption = False,
) -> int:
    """Compare the methods of two evaluations with paired tests. Their protocols must be the same."""
    from ..evaluation.archive import read_manifest
    from ..evaluation.recoverability.compare import compare_folders
    from ..evaluation.recoverability.definitions import Definitions
    from ..evaluation.recoverability.score import read_weights

    if read_manifest(first).kind == "events":
        from ..evaluation.completion.compare import compare_folders as compare_events

        events = event_definitions(voting, partial, nonresponse, resamples, seed)
        show(compare_events(first, second, suite, events, allow or ()), as_json=as_json)
        return 0
    definitions = Definitions(
        matcher,
        nonresponse or "excluded",  # type: ignore[arg-type]  # checked by the class
        support,  # type: ignore[arg-type]
        None if weights is None else read_weights(weights),
        resamples,
        seed,
    )
    show(compare_folders(first, second, release, definitions, allow or ()), as_json=as_json)
    return 0
