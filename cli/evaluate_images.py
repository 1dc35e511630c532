"""``fabula evaluate images``: look at generated shots with models and judges; scoring is another command."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .advice import summary_first
from .common import (
    JsonOption,
    ReplaceOption,
    emit,
    example,
    guarded,
    released,
    say,
    show,
    warn,
)
from .evaluate_events import tell_replies
from .outputs import FirstShotOption, LanguageOption, ModeOption, TimestampOption
from .run_choices import RunChoices, takes_run_choices

if TYPE_CHECKING:
    from ..engine.execute import RunRequest


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "images",
        epilog=example(
            "fabula evaluate images --release runs/vistory --outputs outputs/my-model --judge openai:gpt-4.1"
            " --dry-run",
            "fabula evaluate images --release runs/vistory --outputs outputs/my-model"
            " --outputs outputs/copy-paste --metrics cids,csd,occm,copy-paste --out runs/eval",
            "fabula evaluate images --release runs/vistory --outputs outputs/my-model --metrics alignment"
            " --judge openai:gpt-4.1 --votes 3 --out runs/eval",
        ),
    )(images)


@guarded
@takes_run_choices
def images(
    release: Annotated[Path, typer.Option("--release", help="Set of shot scripts.", show_default=False)],
    outputs: Annotated[
        list[Path],
        typer.Option(
            "--outputs", help="Shots of one method; see `outputs check`. Repeatable.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            help="all, or some of cids,copy-paste,occm,csd,aesthetic,inception,clip-score,alignment."
            " Repeatable [all].",
        ),
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A judge of alignment: openai:NAME, http://HOST/v1#NAME. Repeatable."),
    ] = None,
    votes: Annotated[
        int | None, typer.Option("--votes", help="Ratings of each judge of each question [1].")
    ] = None,
    stories: Annotated[list[str] | None, typer.Option("--story", help="Only this story. Repeatable.")] = None,
    lite: Annotated[
        bool, typer.Option("--lite", help="Only the stories of the official Lite subset that are there.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N stories.")] = None,
    mode: ModeOption = None,
    language: LanguageOption = None,
    timestamp: TimestampOption = None,
    first_shot: FirstShotOption = 1,
    references: Annotated[
        str,
        typer.Option("--references", help="dataset, or generated: those that the method drew (Table S8)."),
    ] = "dataset",
    device: Annotated[str, typer.Option("--device", help="Where models run: auto, cpu, cuda, mps.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be asked.")] = False,
    replace: ReplaceOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Find, encode and rate what generated shots show, and keep all of it (ViStoryBench).

    What the metrics need is checked before the first picture, and all that is missing is listed. Pictures
    are encoded once, whatever metrics or later runs use the vectors. The same command continues a run.
    """
    from ..evaluation.images.keeping import check_kept
    from ..evaluation.images.needs import check_weights
    from ..evaluation.images.requests import ImageOptions, images_request

    folder = released(release)
    read = {"mode": mode, "language": language, "timestamp": timestamp, "first_shot": first_shot}
    read |= {} if references == "dataset" else {"references": references}
    options = ImageOptions(
        metrics=tuple(metrics or ("all",)),
        judges=tuple(judges or ()),
        votes=votes,
        stories=_lite(folder, stories or ()) if lite else tuple(stories or ()),
        limit=limit,
        outputs={name: value for name, value in read.items() if value is not None},
        device=device,
        replace=replace,
        **run,
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            return _forecast(
                images_request(folder, outputs, out or Path(scratch) / "run", options), as_json=as_json
            )
    if out is None:
        raise ConfigError("--out", what="the run folder is not given", fix="for example --out runs/eval")
    request = images_request(folder, outputs, out, options)
    check_weights(request.config)
    if not replace:
        check_kept(request)
    return _evaluate(request, as_json=as_json)


def _lite(folder: Path, stories: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the stories of the Lite subset that a set has, and of those the ones that are asked for."""
    from ..releases.shot_tree import read_shot_set
    from ..schemas.shots import LITE

    there = read_shot_set(folder)[0].by_id
    missing = [one for one in LITE if one not in there]
    if missing:
        warn(f"the set has {len(LITE) - len(missing)} of the {len(LITE)} stories of Lite")
    chosen = tuple(one for one in LITE if one in there and (not stories or one in stories))
    if not chosen:
        raise ConfigError("--lite", what="the set has no story of the Lite subset", fix="leave it out")
    return chosen


def _forecast(request: "RunRequest", *, as_json: bool) -> int:
    """Tell what an evaluation would look at and ask."""
    from ..evaluation.images.requests import estimate_images, image_budget

    budget, plan = image_budget(request), estimate_images(request)
    if as_json:
        emit({"budget": budget.as_json(), "plan": plan.as_json()})
    else:
        for line in (*budget.lines(), *(plan.lines(sample=False) if budget.judges else ())):
            say(line)
    return 0


def _evaluate(request: "RunRequest", *, as_json: bool) -> int:
    from ..engine.progress import choose_reporter
    from ..evaluation.archive import read_manifest
    from ..evaluation.images.requests import image_budget, tell_images
    from ..evaluation.running import run_evaluation

    if not as_json:
        for line in image_budget(request).lines():
            warn(line)
    reporter = choose_reporter(as_json=as_json)
    with summary_first(request.folder, as_json=as_json):
        tell_images(request, reporter)
        report = run_evaluation(request, reporter)
    show(report, as_json=as_json)
    if not as_json:
        manifest = read_manifest(request.folder)
        tell_replies(manifest)
        for name, told in manifest.subject["methods"].items():
            say(f"{name}: {told['shots_valid']} of {told['shots_requested']} shots looked at")
            for code, count in told["findings"].items():
                warn(f"{name}: {count} {code}; fabula outputs check lists them")
        say(f"run: {request.folder}\nnext: fabula score {request.folder}")
    return 0
