"""``fabula baseline``: outputs of simple methods that every other one is measured against."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from ..errors import ConfigError
from ..schemas.text import quoted
from .build import dry_folder, run_folder
from .command import command
from .common import answer, released, show, warn

if TYPE_CHECKING:
    from ..evaluation.katha.requests import EvaluateOptions
    from ..studies.compass.arms import Render
    from ..studies.compass.requests import CompassRequest


@command("baseline copy-paste")
def copy_paste(*, release: Path, out: Path, as_json: bool = False) -> int:
    """Make shots by copying the characters' reference images.

    Each shot shows the first reference image of every character on stage, side by side.
    A command that was stopped goes on when it is given again; pictures that are there stay.
    It copies, so similarity and copy-paste rate are as high as they can be, and the script is not followed.

    Options:
        release: Set of shot scripts.
        out: A new folder, or an interrupted one; its name is the method's.

    Examples:
        fabula baseline copy-paste --release runs/vistory --out outputs/copy-paste
    """
    from ..releases.shots.tree import read_shot_set
    from ..studies.copy_paste import write_copy_paste

    shot_set, _ = read_shot_set(released(release))
    written = write_copy_paste(shot_set, out)
    bare = sum(
        not story.references.get(key)
        for story in shot_set.stories
        for shot in story.script.shots
        for key in dict.fromkeys(story.script.cast(shot))
    )
    if bare:
        warn(f"characters on stage that have no reference image and are left out: {bare}")
    document = {"out": str(out), "pictures": written, "left_out": bare, "sha256": shot_set.sha256}
    score = f"fabula evaluate images --release {quoted(release)} --outputs {quoted(out)}"
    score += " --metrics cids,copy-paste,occm,csd"
    lines = (f"{out}: {written} pictures", f"next: {score} --out runs/eval")
    return answer(document, lines, as_json=as_json)


JUDGED = "evaluation.katha.requests:EvaluateOptions"
SET_BY_COMPASS = (
    "split", "subset", "stories", "limit", "matcher", "prompts", "protocol", "questions_only", "items",
    "replace", "replace_sources", "stage_costs",
)  # fmt: skip
"""Options of evaluations that Semantic Compass sets itself."""
Weakest = Literal["own", "whole"]


@command("baseline compass questions")
def compass_questions(*, release: Path, out: Path, as_json: bool = False) -> int:
    """Write what a planner needs to write questions that only select.

    Their stories, with the scenes and transitions of the release and without its questions. Give what
    `build stories` makes of them to tune and apply as --selection-set: then no question of the release is
    spent on selection, and every transition can have one.

    Options:
        release: Release folder with all questions, or user/name@tag.
        out: A new folder.

    Examples:
        fabula baseline compass questions --release dist/mine-0.1.0 --out selection
    """
    from ..releases.loading import load
    from ..studies.compass.judging import write_selection_inputs

    stories, scenes = write_selection_inputs(load(released(release)), out)
    build = f"fabula build stories {quoted(stories)} --records {quoted(scenes)} --model MODEL"
    document = {"stories": str(stories), "records": str(scenes)}
    return answer(document, [f"{stories}, {scenes}", f"next: {build} --out runs/selection"], as_json=as_json)


@command("baseline compass tune", JUDGED, without=SET_BY_COMPASS)
def compass_tune(
    *,
    release: Path,
    outputs: Path,
    options: "EvaluateOptions",
    coverage: str,
    copies: str,
    split: Sequence[str] = (),
    limit: int | None = None,
    weakest: str = "own",
    selection_set: str | None = None,
    frames: Path | None = None,
    renderer: str | None = None,
    device: str = "cpu",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Choose weights and thresholds of Semantic Compass on validation stories.

    Half of each story's questions select, the others say how well that was done; both halves are written
    beside the result, frozen.json. Test stories are refused. Judges see pictures alone, with the
    main prompts.
    It can be stopped at any moment: the same command continues it, and nothing is paid for twice.

    Options:
        release: Release folder with all questions, or user/name@tag.
        outputs: Candidates: storyboards of one method, one for each seed; see `outputs check`.
        coverage: Encoder of pictures and texts, such as clip-vit-l-14, or drawn-marks.
        copies: Encoder of pictures, such as dinov2-l-14, or pixels, which needs no weights.
        split: Stories of this split [validation].
        limit: Only the first so many stories.
        weakest: How the weakest transition is found: own (judges see its two frames alone), or whole (their
            answers about the whole storyboard) [own].
        selection_set: Whose questions select, so that all of the release's report: rules (made from the
            annotations), or records of the same stories: a run, a release or a file [half of each story's].
        frames: Folder with frames for bridges; what is missing is listed there with its prompt.
        renderer: Generator that makes these frames, such as image:openai:gpt-image-1, in place of a folder.
        device: Where encoders run: cpu, cuda, mps or auto [cpu].
        max_cost: Most USD that all of it may cost [no limit].
        out: Folder of the result; made if missing, continued if there.
        dry_run: Only show how many calls of judges and pictures it takes at most.

    Examples:
        fabula baseline compass tune --release dist/mine-0.1.0 --outputs outputs/model-x
            --judge openai:gpt-4.1-mini --coverage clip-vit-l-14 --copies dinov2-l-14
            --renderer image:openai:gpt-image-1 --max-cost 50 --out runs/compass
        fabula baseline compass tune --release dist/mine-0.1.0 --outputs outputs/model-x
            --judge openai:gpt-4.1-mini --coverage clip-vit-b-32 --copies pixels --frames frames
            --out runs/compass --dry-run
    """
    from ..studies.compass.frozen import FROZEN
    from ..studies.compass.requests import VALIDATION, tune

    splits = tuple(split) or (VALIDATION,)
    named = (coverage, copies, weakest, device)
    request = replace(_request(release, outputs, options, named, splits, limit), selection_set=selection_set)
    if dry_run:
        return _forecast(request, None, as_json=as_json)
    request = _in_folder(request, out, as_json=as_json)
    frozen = tune(request, _render(request, frames, renderer))
    setting, search = frozen.setting, frozen.search
    reached = search.repaired[f"{setting.repair_threshold:g}"]
    lines = (
        f"weights: recoverability {setting.weights.recoverability:g}, coverage {setting.weights.coverage:g},"
        f" copies {setting.weights.copies:g}",
        f"delta {setting.delta:g}, gamma {setting.gamma:g}, repair below {setting.repair_threshold:g}",
        f"{search.objective}: {_points(search.base)} for the mean of the candidates, "
        f"{_points(search.reranked)} selected, {_points(reached)} repaired, {search.stories} stories",
        f"frozen: {request.out / FROZEN}",
    )
    return answer({**frozen.as_json(), "sha256": frozen.sha256}, lines, as_json=as_json)


@command("baseline compass apply", JUDGED, without=SET_BY_COMPASS, arms="--arm")
def compass_apply(
    *,
    release: Path,
    outputs: Path,
    frozen: Path,
    options: "EvaluateOptions",
    coverage: str,
    copies: str,
    split: Sequence[str] = (),
    limit: int | None = None,
    weakest: str = "own",
    selection_set: str | None = None,
    arms: Sequence[str] = (),
    frames: Path | None = None,
    renderer: str | None = None,
    device: str = "cpu",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Select and repair storyboards with a frozen file, beside controls.

    Each arm gets a folder of outputs; evaluate them together on the half of the questions that reports, with
    the held-out prompts. A file is refused for stories that it was tuned on, and for another release, other
    questions, judges, prompts or encoders than it was tuned with. The same command continues one that was
    stopped.

    Options:
        release: Release folder with all questions, or user/name@tag.
        outputs: Candidates: storyboards of one method, one for each seed; see `outputs check`.
        frozen: The file frozen.json of `baseline compass tune`.
        coverage: Encoder of pictures and texts; the one that was tuned with.
        copies: Encoder of pictures; the one that was tuned with.
        split: Stories of this split [public_test].
        limit: Only the first so many stories.
        weakest: How the weakest transition is found, own or whole; as tuned [own].
        selection_set: Whose questions select; those that were tuned with.
        arms: What is made: {studies.compass.arms:NAMES} [all].
        frames: Folder with frames to be inserted; what is missing is listed there with its prompt.
        renderer: Generator that makes these frames, such as image:openai:gpt-image-1, in place of a folder.
        device: Where encoders run: cpu, cuda, mps or auto [cpu].
        max_cost: Most USD that all of it may cost [no limit].
        out: Folder of the result; made if missing, continued if there.
        dry_run: Only show how many calls of judges and pictures each arm takes at most.

    Examples:
        fabula baseline compass apply --release dist/mine-0.1.0 --outputs outputs/model-x
            --frozen runs/compass/frozen.json --judge openai:gpt-4.1-mini --coverage clip-vit-l-14
            --copies dinov2-l-14 --renderer image:openai:gpt-image-1 --max-cost 50 --out runs/compass-test
        fabula baseline compass apply --release dist/mine-0.1.0 --outputs outputs/model-x
            --frozen runs/compass/frozen.json --judge openai:gpt-4.1-mini --coverage clip-vit-b-32
            --copies pixels --frames frames --arm base --arm full --out runs/compass-test
    """
    from ..studies.compass.frozen import read_frozen
    from ..studies.compass.requests import REPORTED, apply

    splits = tuple(split) or REPORTED
    named = (coverage, copies, weakest, device)
    request = replace(
        _request(release, outputs, options, named, splits, limit), selection_set=selection_set,
        halves=None if dry_run else read_frozen(frozen).conditions.halves,
    )  # fmt: skip
    if dry_run:
        return _forecast(request, arms, as_json=as_json)
    request = _in_folder(request, out, as_json=as_json, arms=arms)
    applied = apply(request, _render(request, frames, renderer), frozen, arms)
    folders = " ".join(f"--outputs {quoted(path)}" for path in applied.outputs.values())
    score = (
        f"fabula evaluate stories --release {quoted(request.out / 'reporting')} {folders} --prompts heldout"
    )
    lines = [*applied.lines(), f"next: {score} --judge MODEL --out runs/eval"]
    return answer(applied.as_json(), lines, as_json=as_json)


def _request(
    release: Path, outputs: Path, options: "EvaluateOptions", named: tuple[str, str, str, str],
    splits: tuple[str, ...], limit: int | None,
) -> "CompassRequest":  # fmt: skip
    """Return what tuning and applying are given; ``named``: coverage, copies, weakest and device."""
    from ..studies.compass.judging import Ledger
    from ..studies.compass.requests import CompassRequest

    coverage, copies, weakest, device = named
    if weakest not in get_args(Weakest):
        raise ConfigError("--weakest", what=f"{weakest} is none of own, whole", fix="use one of these")
    return CompassRequest(
        released(release), outputs, Path(), options, coverage, copies, cast("Weakest", weakest), device,
        splits=splits, limit=limit, ledger=Ledger(options.max_cost),
    )  # fmt: skip


def _in_folder(
    request: "CompassRequest", out: Path | None, *, as_json: bool, arms: Sequence[str] | None = None
) -> "CompassRequest":
    """Return a request with its folder; tell people before anything is asked what it takes at most."""
    from ..api.calling import choose_reporter
    from ..studies.compass.requests import forecast

    folder = run_folder(out, "runs/compass", "a folder is needed")
    request = replace(request, out=folder, reporter=choose_reporter(as_json=as_json))
    if not as_json:
        warn(*forecast(request, arms).lines())
    return request


def _forecast(request: "CompassRequest", arms: Sequence[str] | None, *, as_json: bool) -> int:
    from ..studies.compass.requests import forecast

    with dry_folder(None) as folder:
        show(forecast(replace(request, out=folder), arms), as_json=as_json)
    return 0


def _render(request: "CompassRequest", frames: Path | None, renderer: str | None) -> "Render":
    """Return who makes frames: a folder that somebody fills, or a generator."""
    from ..studies.compass.arms import frame_maker, frames_in

    if (frames is None) == (renderer is None):
        what = "neither is given" if frames is None else "both are given"
        fix = "name a folder of frames, or a generator"
        raise ConfigError("--frames, --renderer", what=what, fix=fix)
    if frames is not None:
        return frames_in(frames)
    return frame_maker(
        request.out / "frames", str(renderer), request.options, request.ledger, request.reporter
    )


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
