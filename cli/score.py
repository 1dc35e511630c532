"""``fabula score``: numbers from an archive of judgements and the data that was judged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JsonOption, example, guarded, show

if TYPE_CHECKING:
    from ..evaluation.completion.voting import Definitions as EventDefinitions

RunArgument = Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)]
ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Release that was judged [where the evaluation says].")
]
MatcherOption = Annotated[
    str, typer.Option("--matcher", help="accepted, exact, keyword, or a matcher with archived verdicts.")
]
NonresponseOption = Annotated[
    str | None,
    typer.Option(
        "--nonresponse", help="No answer counts as incorrect (zero) or is excluded [excluded; events: zero]."
    ),
]
SupportOption = Annotated[
    str,
    typer.Option(
        "--support", help="Which image support spoils a text+image answer: contradicted, answer, eq51."
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option("--weights", help="Weights of judges, fitted on a validation split [one vote each]."),
]
VotingOption = Annotated[
    str, typer.Option("--voting", help="Events: unanimous, at_least_K or average over the votes of a judge.")
]
PartialOption = Annotated[
    str, typer.Option("--partial", help="Events: votes that count, answered or all that are required.")
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=0, help="Bootstrap resamples; 0 for no intervals.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")]


def event_definitions(
    voting: str, partial: str, nonresponse: str | None, resamples: int, seed: int
) -> "EventDefinitions":
    """Return the definitions for events; what no answer counts as is called ``zero`` there."""
    from ..evaluation.completion.voting import Definitions

    named = "zero" if nonresponse in (None, "incorrect") else nonresponse
    return Definitions(voting, named, partial, resamples, seed)  # type: ignore[arg-type]  # checked by the class


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
    matcher: MatcherOption = "accepted",
    nonresponse: NonresponseOption = None,
    support: SupportOption = "contradicted",
    weights: WeightsOption = None,
    voting: VotingOption = "unanimous",
    partial: PartialOption = "answered",
    resamples: ResamplesOption = 10_000,
    seed: SeedOption = 42,
    tables: Annotated[
        Path | None, typer.Option("--tables", help="Also write normalised answers, matches and masks here.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Score an evaluation: archive and data in, numbers out. No model is asked."""
    from ..evaluation.archive import read_manifest
    from ..evaluation.recoverability.definitions import Definitions
    from ..evaluation.recoverability.score import judged_folder, read_weights, scores_of

    if read_manifest(run).kind == "events":
        from ..evaluation.completion.score import score_folder

        events = event_definitions(voting, partial, nonresponse, resamples, seed)
        show(score_folder(run, suite, events), as_json=as_json)
        return 0
    definitions = Definitions(
        matcher,
        nonresponse or "excluded",  # type: ignore[arg-type]  # checked by the class
        support,  # type: ignore[arg-type]
        None if weights is None else read_weights(weights),
        resamples,
        seed,
    )
    judged = judged_folder(run, release, definitions, splits=split or ())
    if tables is not None:
        from ..evaluation.recoverability.tables import write_tables

        write_tables(tables, run, judged, definitions)
    show(scores_of(judged, definitions), as_json=as_json)
    return 0
