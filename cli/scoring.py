"""The options that say how an archive is scored, and the definitions that they stand for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from ..evaluation.recoverability.matchers import MATCHERS

if TYPE_CHECKING:
    from ..evaluation.completion.votes import Definitions as EventDefinitions
    from ..evaluation.images.definitions import Definitions as ImageDefinitions
    from ..evaluation.images.scores import ImageScores
    from ..evaluation.recoverability.definitions import Definitions

RunArgument = Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)]
ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Release that was judged [where the evaluation says].")
]
MatcherOption = Annotated[
    str | None,
    typer.Option("--matcher", help=f"{', '.join(MATCHERS)}, or a matcher with archived verdicts [accepted]."),
]
NonresponseOption = Annotated[
    str | None,
    typer.Option(
        "--nonresponse", help="No answer counts as incorrect (zero) or is excluded [excluded; events: zero]."
    ),
]
SupportOption = Annotated[
    str | None,
    typer.Option(
        "--support",
        help="Which image support spoils a text+image answer: contradicted, answer, eq51 [contradicted].",
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option("--weights", help="Weights of judges, fitted on a validation split [one vote each]."),
]
VotingOption = Annotated[
    str | None,
    typer.Option(
        "--voting", help="Events: unanimous, at_least_K or average over the votes of a judge [unanimous]."
    ),
]
PartialOption = Annotated[
    str | None,
    typer.Option("--partial", help="Events: votes that count, answered or all that are required [answered]."),
]
DefineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--define",
        help="Images: a named definition, such as cids=code, occm=code, csd=all, least=0.3. Repeatable.",
    ),
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=0, help="Bootstrap resamples; 0 for no intervals.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")]
IntervalOption = Annotated[
    str,
    typer.Option(
        "--interval",
        help="Intervals: by-size (Student's t below 30 stories or prompts, none below 6) or percentile.",
    ),
]
CorrectionOption = Annotated[
    str, typer.Option("--correction", help="Correction of p-values of several pairs: holm or bonferroni.")
]

OF_KIND = {
    "katha": ("--release", "--split", "--matcher", "--support", "--weights", "--tables", "--nonresponse"),
    "events": ("--release", "--suite", "--voting", "--partial", "--nonresponse"),
    "images": ("--define", "--tables"),
}
"""Kind of an evaluation -> the options that it has and not every other; a release may hold events, too."""
NAMES = {"katha": "storyboards (katha)", "events": "videos (events)", "images": "shots (images)"}


def check_options(kind: str, given: Mapping[str, object]) -> None:
    """Refuse options that say nothing about an evaluation of this kind.

    Args:
        kind: katha, events or images.
        given: option -> its value; None or empty where it was not given.

    Raises:
        ConfigError: such options were given; all of them are named.
    """
    owners = {name: other for other in reversed(OF_KIND) for name in OF_KIND[other]}
    wrong = [name for name in given if given[name] and name in owners and name not in OF_KIND[kind]]
    if wrong:
        raise ConfigError(
            ", ".join(wrong), what=f"only for an evaluation of {NAMES[owners[wrong[0]]]}; this is one"
            f" of {NAMES[kind]}", fix=f"leave it out; the options for {kind} are"
            f" {', '.join(OF_KIND[kind])} and --resamples, --seed, --interval, --correction",
        )  # fmt: skip


def katha_definitions(
    matcher: str | None,
    nonresponse: str | None,
    support: str | None,
    weights: Path | None,
    **uncertainty: Any,  # noqa: ANN401 - fields of Uncertainty
) -> "Definitions":
    """Return the definitions for storyboards.

    Raises:
        ConfigError: one of them does not exist. InputError: the weights cannot be used.
    """
    from ..evaluation.recoverability.definitions import Definitions
    from ..evaluation.recoverability.score import read_weights

    return Definitions(
        matcher or "accepted",
        nonresponse or "excluded",  # type: ignore[arg-type]  # checked by the class
        support or "contradicted",  # type: ignore[arg-type]
        None if weights is None else read_weights(weights),
        **uncertainty,
    )


def event_definitions(
    voting: str | None,
    partial: str | None,
    nonresponse: str | None,
    **uncertainty: Any,  # noqa: ANN401 - fields of Uncertainty
) -> "EventDefinitions":
    """Return the definitions for events; what no answer counts as is called ``zero`` there.

    Raises:
        ConfigError: one of them does not exist.
    """
    from ..evaluation.completion.votes import Definitions

    named = "zero" if nonresponse in (None, "incorrect") else nonresponse
    return Definitions(voting or "unanimous", named, partial or "answered", **uncertainty)  # type: ignore[arg-type]  # checked by the class


def suite_of(suite: Path | None, release: Path | None) -> Path | None:
    """Return the suite that was judged: as given, or that of the given release of events.

    Raises:
        ConfigError: both are given.
    """
    if suite is not None and release is not None:
        raise ConfigError(
            "--release",
            what="--suite and a release of events are both given, and one is enough",
            fix="leave one out",
        )
    return suite if suite is not None else release


def image_definitions(
    define: Sequence[str] | None,
    **uncertainty: Any,  # noqa: ANN401 - fields of Uncertainty
) -> "ImageDefinitions":
    """Return the definitions for shot images.

    Raises:
        ConfigError: one of them does not exist.
    """
    from ..evaluation.images.definitions import read_definitions

    return read_definitions(define or (), **uncertainty)


def image_scores(run: Path, definitions: "ImageDefinitions", tables: Path | None) -> "ImageScores":
    """Return the scores of an evaluation of shot images; write them as tables into a folder, too.

    Raises:
        InputError: the evaluation cannot be read. TargetError: the folder cannot be written.
    """
    from ..evaluation.archive import read_archive
    from ..evaluation.images.found import read_found
    from ..evaluation.images.score import score_folder
    from ..evaluation.images.tables import scored_shots, write_scores

    scores = score_folder(run, definitions)
    if tables is not None:
        write_scores(tables, scores, scored_shots(read_archive(run), read_found(run), scores))
    return scores
