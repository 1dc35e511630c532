"""``fabula memory``: verified references of every entity of an episode, for generators."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .build import dry_folder, run_folder, summary_first
from .command import command
from .common import answer, chosen_form, emit, released, say, show, warn
from .evaluate import Forecast

if TYPE_CHECKING:
    from ..evaluation.katha.requests import EvaluateOptions
    from ..studies.compass.arms import Render
    from ..studies.compass.requests import CompassRequest
    from ..studies.experiments.study import ExperimentOptions
    from ..studies.memory.pipeline import MemoryOptions
    from ..studies.memory.shots.generating import ShotOptions
    from ..studies.memory.shots.pipeline import PacketOptions


@command("memory build", "studies.memory.pipeline:MemoryOptions", without=("replace_sources", "shard"))
def build(
    source: Annotated[Path, typer.Argument(metavar="EPISODES")],
    *,
    options: "MemoryOptions",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Make references of all entities of episodes.

    They are made before any video is. Every character gets a portrait, every location a panorama, and
    every object that stands alone a picture of its own; a portrait that does not pass is made again on a
    ground of another colour. The run folder then holds bank/, which you may correct by hand, and the page
    bank.html. It can be stopped at any moment: the same command goes on, keeps what you corrected, and
    pays for no picture twice.

    Options:
        source: A release, a run of `build entities`, or a folder of official episodes.

    Examples:
        fabula memory build runs/episodes --image image:drawn:faithful --out runs/memory
        fabula memory build runs/episodes --image image:openai:gpt-image-2 --agent openai:gpt-4.1 --dry-run
        fabula memory build runs/episodes --image image:openai:gpt-image-2 --agent openai:gpt-4.1
            --max-cost 20 --out runs/memory
        fabula memory build runs/episodes --text-only --out runs/words
        fabula memory build runs/episodes --from-outputs videos/my-model --out runs/first-frames
    """
    from ..api.calling import choose_reporter
    from ..studies.memory.bank import read_bank, told_of
    from ..studies.memory.pipeline import build_memory, estimate_memory, memory_budget, memory_request

    source = released(source)
    if dry_run:
        with dry_folder(out) as folder:
            budget = memory_budget(memory_request(source, folder, options))
            show(Forecast(budget, estimate_memory(source, folder, options)), as_json=as_json)
        return 0
    folder = run_folder(out, "runs/memory")
    if not as_json:
        warn(*memory_budget(memory_request(source, folder, options)).lines())
    report = build_memory(source, folder, options, choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json:
        say(*told_of(read_bank(folder)), f"run: {folder}", f"page: {folder / 'bank.html'}")
    return 0


# -- ``fabula memory`` of shots: what generators get for each shot, and the videos that they make of it

PACKETS_RUN = "packets-run"
"""Folder of a bank's run in which its packets are made, if no other is named."""


@command("memory packets", "studies.memory.shots.pipeline:PacketOptions", scripts="--scripts")
def packets(
    run: Path,
    *,
    options: "PacketOptions",
    out: Path | None = None,
    scripts: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Lay out every shot and write what a generator gets for it.

    Each shot has a folder with packet.json: labelled portraits of its characters, keyframes with its objects
    and its place, the prompt, and where each scheduled entity is in them. Rules arrange the shots unless
    --model is given; a model's layout that breaks the rules is sent back once. layouts.html shows them all.

    Options:
        run: Run folder of `fabula memory build`.
        out: Run folder of the packets [packets-run in the folder of the bank].
        scripts: The set of episodes, where it is no longer where the bank was built from.

    Examples:
        fabula memory packets runs/memory
        fabula memory packets runs/memory --model google:gemini-2.5-pro --dry-run
        fabula memory packets runs/memory --memory text --out runs/packets-text
        fabula memory packets runs/memory --no-keyframes --out runs/packets-portraits
    """
    from ..api.calling import choose_reporter
    from ..builders.drafting import estimate
    from ..studies.memory.shots.exports import PACKETS, PAGE, read_packets
    from ..studies.memory.shots.pipeline import make_packets, packets_request

    folder = out or run / PACKETS_RUN
    if dry_run:
        with dry_folder(out) as scratch:
            plan = estimate(packets_request(run, scratch, options, scripts))
            show(plan, as_json=as_json)
        return 0
    with summary_first(folder, as_json=as_json):
        reporter = choose_reporter(as_json=as_json)
        report = make_packets(run, folder, options, scripts, reporter)
    made = [placed.packet for placed in read_packets(folder)] if report.totals["made"] else []
    entities = sum(len(packet.entities) for packet in made)
    unregistered = sum(len(packet.unregistered) for packet in made)
    if as_json:
        counts = {"shots": len(made), "entities": entities, "unregistered": unregistered}
        emit({**report.as_json(), **counts})
        return 0
    show(report, as_json=False)
    say(
        f"{tallied(len(made), 'packets')} with {tallied(entities, 'scheduled entities')}, none lost;"
        f" {unregistered} have no description",
        f"packets: {folder / PACKETS}; layouts: {folder / PAGE}",
        f"next: fabula memory generate {quoted(folder)} --model MODEL --out outputs/mine",
    )
    return 0


@command(
    "memory generate", "studies.memory.shots.generating:ShotOptions", without=("replace_sources",),
    journal="--run",
)  # fmt: skip
def generate(
    run: Path,
    *,
    options: "ShotOptions",
    out: Path | None = None,
    journal: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Make the video of every shot.

    Each begins with the last frame of the shot that it goes on from. It can be stopped at any moment: the
    same command goes on, and no video that was made is asked for again. The videos lie as `fabula
    evaluate entities` reads them.

    Options:
        run: Run folder of packets, or that of the bank if its packets are in it.
        out: Folder of the outputs; its name is the name of the method.
        journal: Run folder, which keeps what was asked and came back [OUT.run, beside the outputs].

    Examples:
        fabula memory generate runs/memory --model video:google:gemini-omni-1.1-flash --out outputs/mine
            --dry-run
        fabula memory generate runs/memory --model video:google:gemini-omni-1.1-flash --out outputs/mine
            --max-cost 200
        fabula memory generate runs/packets-text --model video:command:mine --seconds 5 --out outputs/text
        fabula evaluate episodes --release eb --outputs outputs/mine --judge openai:gpt-4.1 --out runs/judged
    """
    from ..api.calling import choose_reporter
    from ..builders.drafting import estimate
    from ..studies.memory.shots.generating import generate_request, generate_shots, place_videos

    source = run / PACKETS_RUN if (run / PACKETS_RUN).is_dir() else run
    if dry_run:
        with dry_folder(journal) as scratch:
            show(estimate(generate_request(source, scratch, options)), as_json=as_json)
        return 0
    outputs = run_folder(out, "outputs/mine", "the folder of the outputs is not given")
    folder = journal or outputs.with_name(f"{outputs.name}.run")
    with summary_first(folder, as_json=as_json):
        report = generate_shots(source, folder, options, choose_reporter(as_json=as_json))
    placed = place_videos(folder, outputs)
    if as_json:
        emit({**report.as_json(), **placed.as_json()})
        return 0
    show(report, as_json=False)
    say(*placed.lines())
    return 0


@command("memory export", generator="--for", values="--value")
def export(
    run: Path,
    *,
    out: Path,
    generator: str = "image-video",
    values: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Write packets as a generator of one's own reads them.

    Options:
        run: Run folder of packets, or that of the bank if its packets are in it.
        out: A new folder.
        generator: Generator to write the inputs of: image-video, storymem; or a TOML file that describes
            another (see docs/memory.md).
        values: A value of its description, as NAME=VALUE, such as seconds=8.

    Examples:
        fabula memory export runs/memory --for storymem --out storymem-inputs
        fabula memory export runs/memory --for mine.toml --value seconds=8 --out inputs
    """
    from ..studies.memory.shots.exports import export_packets, overviews_of, read_packets

    given: dict[str, str | int | float] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise ConfigError("--value", what=f"{value} is no value", fix="write NAME=VALUE")
        given[name] = text
    source = run / PACKETS_RUN if (run / PACKETS_RUN).is_dir() else run
    show(export_packets(read_packets(source), generator, out, given, overviews_of(source)), as_json=as_json)
    return 0


# -- ``fabula experiment``: studies of plans, renderers, seeds and judges


@command(
    "experiment run",
    "studies.experiments.study:ExperimentOptions",
    without=("replace_sources", "shard", "stage_costs"),
)
def run(
    study: Path,
    *,
    options: "ExperimentOptions",
    out: Path | None = None,
    parts: Sequence[str] = (),
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Run a study, with everything that its file names.

    Every renderer makes pictures of every plan; judges look at them; then come Semantic Compass, evaluators
    and plants, where the file has them, and the tables and the page. It can be stopped at any moment: the
    same command goes on, and nothing that was made or answered is asked for again. A plan, renderer, seed
    or judge that is added to the file later is done then. Cells share what they can: a plan is made once,
    and the story alone is judged once for all methods.

    Options:
        study: The study, a TOML file; see docs/experiments.md.
        out: Folder of the study; made if missing, continued if there.
        parts: Only this part: pictures, judgements, compass, evaluators, plants or tables.
        max_cost: Most USD that the study may cost in all [no limit].
        dry_run: Only print calls, pictures, USD and hours.

    Examples:
        fabula experiment run study.toml --dry-run
        fabula experiment run study.toml --out runs/study --max-cost 50
        fabula experiment run study.toml --out runs/study --part pictures --part judgements
    """
    from ..api.calling import choose_reporter
    from ..studies.experiments.losses import forecast
    from ..studies.experiments.running import run_study, states_of
    from ..studies.experiments.study import open_study, study_status

    reporter = choose_reporter(as_json=as_json)
    if dry_run:
        show(forecast(open_study(study, out or Path("runs/study"), options)), as_json=as_json)
        return 0
    desk = open_study(
        study, run_folder(out, "runs/study", "the folder of the study is needed"), options, reporter
    )
    run_study(desk, parts)
    show(study_status(desk, states_of(desk)), as_json=as_json)
    return 0


@command("experiment status")
def status(folder: Path, *, as_json: bool = False) -> int:
    """Show how far a study is.

    Each method has a line: what is made, invalid and judged.

    Options:
        folder: Folder of the study.

    Examples:
        fabula experiment status runs/study
    """
    from ..studies.experiments.running import states_of
    from ..studies.experiments.study import reopen_study, study_status

    desk = reopen_study(folder)
    show(study_status(desk, states_of(desk)), as_json=as_json)
    return 0


@command("experiment tables")
def tables(
    folder: Path,
    *,
    table: Sequence[str] = (),
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Print the tables of a study.

    They are those of the KathaTrace paper, made from what lies in the folder. A table whose input is not
    there is listed with the reason. Nothing is asked.

    Options:
        folder: Folder of the study.
        table: Only the table of this number in the paper, or of this name.

    Examples:
        fabula experiment tables runs/study
        fabula experiment tables runs/study --table 57 --table leaderboard --format latex
        fabula experiment tables runs/study --format csv > tables.csv
    """
    from ..evaluation.report.formats import written
    from ..studies.experiments.tables.registry import study_tables

    form = chosen_form(form, as_json=as_json)
    made = study_tables(folder, table)
    if form == "json":
        emit({"tables": [each.as_json() for each in made]})
    else:
        say(written(made, "markdown" if form == "text" else form))  # type: ignore[arg-type]
    return 0


@command("experiment plant")
def plant(
    outputs: Path,
    *,
    release: Path,
    out: Path,
    loss: Sequence[str] = (),
    split: Sequence[str] = (),
    truth: Path | None = None,
    boxes: Path | None = None,
    as_json: bool = False,
) -> int:
    """Make outputs with known losses.

    Evaluators are measured by them, without people. Each loss becomes a method of its own: frames
    swapped, removed or repeated, a decisive thing erased, a feeling flattened, or nothing lost. Which
    scene of a story is hit follows from the master seed. What was done stands in plants.jsonl, which
    judges never see; what could not be planted in unplanted.jsonl, with the reason.

    Options:
        outputs: Outputs of one method; see `outputs check`.
        release: Release folder, or user/name@tag.
        out: A new folder, or an interrupted one.
        loss: Only this loss: {studies.experiments.losses:NAMES}.
        split: Only stories of this split.
        truth: What drawn pictures show, as truth/METHOD.jsonl of a study has it.
        boxes: Where things are in other pictures; see docs/drawn.md.

    Examples:
        fabula experiment plant outputs/model-x --release dist/mine-0.1.0 --out planted
        fabula experiment plant outputs/model-x --release dist/mine-0.1.0 --boxes boxes.jsonl
            --loss object_erased --loss none --out planted
    """
    from ..releases.loading import load
    from ..studies.experiments.planting import PlantOptions
    from ..studies.experiments.planting import plant as planted_into

    options = PlantOptions(tuple(loss), tuple(split), truth, boxes)
    planted = planted_into(outputs, load(released(release)), out, options)
    document = {
        "out": str(out), "methods": {name: str(path) for name, path in planted.methods.items()},
        "planted": len(planted.rows), "unplanted": len(planted.unplanted),
    }  # fmt: skip
    return answer(document, planted.told().splitlines(), as_json=as_json)


# -- ``fabula baseline``: outputs of simple methods that every other one is measured against


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
