"""``fabula calibrate``: an evaluation beside what people said."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, example, guarded, released, show
from .scoring import DefineOption, NonresponseOption, image_definitions

ConfidenceOption = Annotated[
    list[str] | None,
    typer.Option("--confidence", help="Probability a level stands for, as high=0.9; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "calibrate",
        epilog=example(
            "fabula calibrate runs/eval-a --human human.jsonl",
            "fabula calibrate runs/eval-b --human people.csv --key key.json --json",
            "fabula calibrate runs/eval-c --human people.csv --define clip-text=mean",
        ),
    )(calibrate)


@guarded
def calibrate(
    run: Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)],
    human: Annotated[Path, typer.Option("--human", help="People's answers: .jsonl or .csv.")],
    release: Annotated[
        Path | None,
        typer.Option("--release", help="Release that was judged [where the evaluation found it]."),
    ] = None,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="Suite that was judged [the evaluation's copy].")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Key of anonymised tasks.")] = None,
    valid: Annotated[
        str,
        typer.Option("--valid", help="Whose text+image answers make a question valid: people, judges; all."),
    ] = "people",
    nonresponse: NonresponseOption = None,
    confidence: ConfidenceOption = None,
    min_seconds: Annotated[
        float | None, typer.Option("--min-seconds", help="Leave out answers that were given faster.")
    ] = None,
    attention_failures: Annotated[
        int, typer.Option("--attention-failures", help="Most attention checks that a person may fail.")
    ] = 0,
    min_consistency: Annotated[
        float | None,
        typer.Option("--min-consistency", help="Least share of repeated controls answered as before."),
    ] = None,
    fit_weights: Annotated[
        Path | None,
        typer.Option("--fit-weights", help="Write judges' weights here, fitted on the validation split."),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples.")] = 10_000,
    define: DefineOption = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep it beside the evaluation, so that fabula report shows it.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Compare judges with people; no model is asked.

    Also shows what people answered. For shot images, every score is compared with people's ratings of stories
    and shots.
    """
    from ..evaluation.archive import read_manifest
    from ..evaluation.report.people import write_calibration
    from ..people.against import LEVELS
    from ..people.calibrate import calibrate as compare
    from ..people.calibrate import write_weights
    from ..people.participants import Resampling
    from ..people.study import Exclusion, StudySettings

    settings = StudySettings(
        exclusion=Exclusion(attention_failures, min_seconds, min_consistency),
        resampling=Resampling(resamples),
        levels={**LEVELS, **_levels(confidence or [], tuple(LEVELS))},
        valid=valid,
        nonresponse=nonresponse,  # type: ignore[arg-type]  # checked by the class
        fit_split=None if fit_weights is None else "validation",
    )
    release = released(release)
    images = read_manifest(run).kind == "images"
    _check_options(
        {
            "--release": release, "--suite": suite, "--key": key, "--nonresponse": nonresponse,
            "--confidence": confidence, "--fit-weights": fit_weights, "--save": save,
        }
        if images
        else {"--define": define},
        images=images,
    )  # fmt: skip
    source = release if release is not None else suite
    report = compare(
        run, human, source, settings, key, image_definitions(define, resamples=0) if images else None
    )
    if fit_weights is not None:
        write_weights(report, fit_weights)
    if save:
        write_calibration(run, report.document)
    show(report, as_json=as_json)
    return 0


def _check_options(given: Mapping[str, object], *, images: bool) -> None:
    """Refuse options that say nothing about this kind of evaluation.

    Raises:
        ConfigError: such options were given; all of them are named.
    """
    wrong = [name for name, value in given.items() if value]
    if wrong:
        of = ("storyboards or videos", "shot images") if images else ("shot images", "another kind")
        raise ConfigError(
            ", ".join(wrong), what=f"only for an evaluation of {of[0]}; this is one of {of[1]}",
            fix="leave it out",
        )  # fmt: skip


def _levels(texts: list[str], known: tuple[str, ...]) -> dict[str, float]:
    """Return level -> probability from texts such as ``high=0.9``."""
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in known or not 0 <= value <= 1:
            raise ConfigError(
                "--confidence", expected=f"one of {', '.join(known)}, = and a number from 0 to 1",
                found=repr(text), fix="write it as high=0.9",
            )  # fmt: skip
        found[name] = value
    return found
