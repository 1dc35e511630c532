"""``fabula export``: what others need of a release or an evaluation, in a folder of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied, tallies
from .command import command
from .common import answer, asked_for, released, show, warn, wrote

if TYPE_CHECKING:
    from ..evaluation.archive.archive import HubResults
    from ..releases.entities.requests import RequestOptions as EntityRequests
    from ..releases.entities.tree import EntitySet
    from ..releases.shots.imports import ExportedInputs
    from ..releases.shots.tree import RequestOptions as ShotRequests
    from ..releases.shots.tree import ShotSet


@command("export stories")
def katha(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")], *, out: Path, as_json: bool = False
) -> int:
    """Write a release as the official KathaBench files.

    The files have the names of Table 23 of the paper. An imported package comes out byte for
    byte as it came in.

    Options:
        folder: Release, packed or imported.
        out: A new folder.

    Examples:
        fabula export stories dist/kathabench --out KathaBench-25K
    """
    from ..releases.katha.package import export_package

    show(export_package(released(folder), out), as_json=as_json)
    return 0


@command("export plans", generator="--for", values="--value")
def export_plans(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    out: Path,
    splits: Sequence[str] = (),
    generator: str | None = None,
    values: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Write what generators have to draw, scene by scene.

    Each story has a plan, and so has each contrastive variant.
    plans.jsonl has one line per storyboard: its id, the prompts of its scenes, and the file to write each
    picture to. The pictures of a variant lie beside those of the stories, in a folder of the variant's id.
    With --for, the files are those that a generator of whole stories reads, each scene as a shot, and
    results.jsonl says where it leaves each picture and the file that the picture is to be among the outputs.

    Options:
        folder: Release of stories.
        out: A new folder.
        splits: Only stories of this split [all].
        generator: Generator to write the inputs of: animdirector, seedstory, storyadapter, storydiffusion,
            storygen, uno, vlogger; or a TOML file that describes another [plans.jsonl].
        values: With --for, a value of its description, as NAME=VALUE, such as root=/data/requests/.

    Examples:
        fabula export plans dist/mine-0.1.0 --out plans
        fabula export plans dist/mine-0.1.0 --split public_test --out plans
        fabula export plans dist/mine-0.1.0 --for storydiffusion --out storydiffusion-inputs
    """
    from ..evaluation.katha.plans import PLANS, write_plans
    from ..evaluation.katha.plans import export_plans as export_for
    from ..releases.loading import load

    if generator is not None:
        made = export_for(load(released(folder)), out, generator, _named_values(values), splits)
        return _inputs_written(out, made, f"{made.shots} scenes", as_json=as_json)
    if values:
        raise ConfigError("--value", what="values are those of a generator", fix="give --for, too")
    counts = write_plans(load(released(folder)), out, splits)
    line = (
        f"{out / PLANS}: {tallied(counts['stories'], 'stories')}, {tallied(counts['variants'], 'variants')}"
    )
    return answer({"out": str(out), **counts}, [line], as_json=as_json)


@command("export storyboards")
def export_storyboards(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    outputs: Annotated[Sequence[Path], typer.Option("--outputs")],
    license: str,
    out: Path,
    splits: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Write storyboards as a data set with pictures.

    The folder has the pictures, a Parquet table that the Hub's viewer and `datasets` show as pictures, a card
    and checksums. Storyboards that cannot be judged are left out. The licence is that of the pictures, which
    only their owner knows.

    Options:
        folder: Release of the stories.
        outputs: Storyboards of a method, as `outputs check` takes them; several may be given.
        license: SPDX id of the licence under which the pictures may be given away.
        out: A new folder.
        splits: Only stories of this split [all].

    Examples:
        fabula export storyboards dist/mine-0.1.0 --outputs storyboards/model-x --license CC0-1.0 --out boards
    """
    from ..evaluation.outputs.share import share_storyboards
    from ..evaluation.outputs.storyboards import check_methods
    from ..releases.loading import load

    release = load(released(folder))
    counts = share_storyboards(check_methods(outputs, release, splits), release, out, license)
    lines = [f"{out}: {tallies(counts)}"]
    if counts["left out"]:
        lines.append("to see why storyboards were left out: fabula outputs check")
    return answer({"out": str(out), **counts}, lines, as_json=as_json)


@command("export archive")
def archive(
    folder: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    out: Path,
    so_far: bool = False,
    as_json: bool = False,
) -> int:
    """Copy the judgements of an evaluation, for publishing.

    Judgements and manifest are checked, and paths of this machine are removed. Anybody can score the copy
    with the release that it names. An evaluation that somebody else published is checked in the same way.
    With --so-far the copy of a run that is not finished is marked as incomplete.

    Options:
        folder: Evaluation folder.
        out: A new folder.
        so_far: Take what the run has so far, even while it works or after it was killed.

    Examples:
        fabula export archive runs/eval-a --out dist/eval-a
        fabula export archive runs/eval-a --so-far --out /tmp/eval-a-so-far
    """
    from ..evaluation.archive.replies import lacking, lacks
    from ..kinds.evaluations import export_archive, export_so_far

    archive = (export_so_far if so_far else export_archive)(folder, out)
    unasked, unreached = lacks(archive.manifest.environment)
    document = {"out": str(out), "kind": archive.manifest.kind, "judgements": len(archive.judgements)}
    missing = f"; incomplete: {lacking(unasked, unreached)}" if unasked or unreached else ""
    line = f"{out}: {tallied(len(archive.judgements), 'judgements')}, {archive.manifest.kind}{missing}"
    return answer({**document, "unasked": unasked, "unreached": unreached}, [line], as_json=as_json)


@command("export inspect")
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    out: Path,
    release: Path | None = None,
    as_json: bool = False,
) -> int:
    """Write an evaluation as a log of inspect_ai.

    Its viewer shows every reply, with what was asked and what was read from it, and the scores. inspect_ai is
    not needed to write it. Put the log into a folder, and look at it with `inspect view --log-dir FOLDER`.

    Options:
        folder: Evaluation folder.
        out: The new file, such as eval.eval.
        release: Release that was judged [where the evaluation found it].

    Examples:
        fabula export inspect runs/eval-a --out logs/eval-a.eval
    """
    from ..kinds.evaluations import export_inspect

    count = export_inspect(folder, out, released(release))
    line = f"{out}: {tallied(count, 'replies')}; look at it with: inspect view --log-dir {out.parent}"
    return answer({"out": str(out), "samples": count}, [line], as_json=as_json)


@command("export results", "evaluation.archive.archive:HubResults")
def export_results(
    folder: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    options: "HubResults",
    out: Path,
    release: Path | None = None,
    as_json: bool = False,
) -> int:
    """Write scores as the Hub keeps evaluation results of a model.

    Put the file into the folder .eval_results of the model's repository. The Hub shows those results whose
    measure is the id of a task in the eval.yaml of the data set. That of a release has one task, which
    inspect_ai scores itself: moral_label_text. For others, add tasks of their names.

    Options:
        folder: Evaluation folder.
        out: The new file, such as .eval_results/mine.yaml.
        release: Release that was judged [where the evaluation found it].

    Examples:
        fabula export results runs/eval-a --dataset user/mine --method a --out .eval_results/mine.yaml
    """
    from ..kinds.evaluations import export_results as export

    count = export(folder, out, options, released(release))
    return answer(
        {"out": str(out), "results": count}, [f"{out}: {tallied(count, 'results')}"], as_json=as_json
    )


@command("export entitybench")
def export_entitybench(
    folder: Annotated[Path, typer.Argument(metavar="RUN")], *, out: Path, as_json: bool = False
) -> int:
    """Write episodes as the official EntityBench files.

    These are scripts/ and splits/, byte for byte.

    Options:
        folder: Run or release with episodes.
        out: A new folder.

    Examples:
        fabula export entitybench runs/eb --out EntityBench/data
    """
    from ..releases.entities.form import export_episodes

    entity_set, code = usable_set(released(folder))
    counts = export_episodes(entity_set, out)
    return wrote(out, entity_set.sha256, counts, as_json=as_json) or code


@command("export entities", "releases.entities.requests:RequestOptions", generator="--for")
def export_entities(
    folder: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    options: "EntityRequests",
    out: Path,
    generator: str | None = None,
    as_json: bool = False,
) -> int:
    """Write prompts and entities of shots for generators.

    One line per shot gives the prompt, its entities, which shot to continue, and the file to write the video
    to: EPISODE/SCENE_SHOT.mp4, such as NAME/002_001.mp4. With --for, the files are those that a generator
    reads, and results.jsonl names the file of each shot's video.

    Options:
        folder: Run or release with episodes.
        out: A new folder.
        generator: Generator to write the inputs of: holocine, cinetrans or storymem [requests.jsonl].

    Examples:
        fabula export entities runs/eb --out requests
        fabula export entities runs/eb --for holocine --out holocine-inputs
        fabula export entities runs/eb --header all --tier hard --out requests
        fabula export entities runs/eb --header first --ids character --per episode --out requests
    """
    from ..releases.entities.requests import REQUESTS, write_requests

    options.checked()
    entity_set, code = usable_set(released(folder))
    if generator is not None:
        from ..releases.entities.requests import RESULTS, write_inputs

        made = write_inputs(entity_set, out, generator, options)
        more = tallied(made["files"], "files")
        return asked_for(out, out / RESULTS, made, more, as_json=as_json) or code
    counts = write_requests(entity_set, out, options)
    return asked_for(out, out / REQUESTS, counts, tallied(counts["shots"], "shots"), as_json=as_json) or code


def usable_set(folder: Path) -> tuple["EntitySet", int]:
    """Return the episodes that can be used, and the exit code: 1 where files had to be left out."""
    from ..releases.entities.tree import read_entity_set

    entity_set, report = read_entity_set(folder, rules=False)
    for issue in report.errors:
        warn(f"left out: {issue}")
    return entity_set, int(not report.ok)


# -- ``fabula export`` of shot scripts: the official tree, inputs of generators, subsets


@command("export vistory")
def export_vistory(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")], *, out: Path, as_json: bool = False
) -> int:
    """Write shot scripts as the official ViStoryBench tree.

    Scripts stay the same field by field, images byte for byte.

    Options:
        folder: Set of shot scripts.
        out: A new folder.

    Examples:
        fabula export vistory runs/vistory --out ViStoryBench
    """
    from ..releases.shots.tree import read_shot_set, write_shot_set

    shot_set, _ = read_shot_set(released(folder))
    write_shot_set(shot_set, out)
    return wrote(out, shot_set.sha256, shot_set.counts(), as_json=as_json)


@command("export shots", "releases.shots.tree:RequestOptions", generator="--for", values="--value")
def export_shots(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    options: "ShotRequests",
    out: Path,
    generator: str | None = None,
    values: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Write prompts and references of shots for generators.

    requests.jsonl has one line per shot; the reference images that it names are copied beside it. If an
    option shortens a prompt or leaves a character without a reference, the line says so. With --for, the
    files are those that a generator reads, and results.jsonl names the file of each shot's picture, where
    outputs check looks for it.

    Options:
        folder: Set of shot scripts.
        out: A new folder.
        generator: Generator to write the inputs of: animdirector, seedstory, storyadapter, storydiffusion,
            storygen, uno, vlogger; or a TOML file that describes another [requests.jsonl].
        values: With --for, a value of its description, as NAME=VALUE, such as root=/data/requests/.

    Examples:
        fabula export shots runs/vistory --out requests
        fabula export shots runs/vistory --language ch --references 3 --max-chars 500 --previous 1 --out
            requests
        fabula export shots runs/vistory --for uno --out uno-inputs
    """
    from ..releases.shots.imports import REQUESTS, export_requests
    from ..releases.shots.tree import read_shot_set

    if generator is None and values:
        raise ConfigError("--value", what="values are those of a generator", fix="give --for, too")
    shot_set, _ = read_shot_set(released(folder))
    if generator is not None:
        return _for_generator(shot_set, out, generator, options, values, as_json=as_json)
    counts = export_requests(shot_set, out, options)
    return asked_for(out, out / REQUESTS, counts, tallied(counts["references"], "images"), as_json=as_json)


def _for_generator(
    shot_set: "ShotSet",
    out: Path,
    generator: str,
    options: "ShotRequests",
    values: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Write what a named generator reads, and say what the scripts lack for it."""
    from ..releases.shots.imports import export_inputs

    made = export_inputs(shot_set, out, generator, options, _named_values(values))
    lacks = [f"{story}: {key} has no reference image" for story, key in made.unshown]
    if made.missing:
        lacks.insert(0, f"the scripts lack {tallied(len(made.missing), 'texts')}, such as {made.missing[0]}")
    return _inputs_written(out, made, f"{made.shots} shots", lacks, as_json=as_json)


def _named_values(values: Sequence[str]) -> dict[str, str | int | float]:
    """Return values of a description by name."""
    given: dict[str, str | int | float] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise ConfigError("--value", expected="NAME=VALUE", found=value, fix="write it so")
        given[name] = text
    return given


def _inputs_written(
    out: Path, made: "ExportedInputs", parts: str, lacks: Sequence[str] = (), *, as_json: bool
) -> int:
    """Say what was written for a generator, and what is lacking."""
    from ..releases.shots.imports import RESULTS

    files = made.files[0] if len(made.files) == 1 else tallied(len(made.files), "files")
    lines = [
        f"{out}: {files}, {tallied(made.references, 'images')}; results of {parts}: {out / RESULTS}",
        *lacks,
    ]
    return answer({"out": str(out), **made.as_json()}, lines, as_json=as_json)


@command("export lite")
def lite(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    out: Path,
    count: int = 20,
    ids: str | None = None,
    created_at: str | None = None,
    as_json: bool = False,
) -> int:
    """Write a small subset that represents the whole set.

    Stories are chosen so that types, styles, cultures, lengths and characters are distributed as in the whole
    set. lite.json holds the ids and compares each distribution with that of the whole. The folder is like
    that of an imported set: `fabula release pack` makes a release of it.

    Options:
        folder: Set of shot scripts.
        out: A new folder.
        count: Number of stories in the subset.
        ids: Take these stories, as 01,08,...; or official for the published Lite subset.
        created_at: Creation time of the run, RFC 3339.

    Examples:
        fabula export lite runs/shots --count 20 --out runs/shots-lite
        fabula export lite runs/vistory --ids official --out runs/vistory-lite
        fabula release pack runs/vistory-lite --version 0.1.0 --license CC-BY-4.0 --out dist/lite
    """
    from ..releases.shots.imports import OFFICIAL, choose, write_subset
    from ..releases.shots.tree import read_shot_set

    shot_set, _ = read_shot_set(released(folder))
    named = ids if ids in (None, OFFICIAL) else [part.strip() for part in ids.split(",")]
    document = write_subset(shot_set, choose(shot_set, count, named), out, created_at)
    lines = (
        f"stories: {', '.join(document['ids'])}",
        *(
            f"{name}: differs from the whole by {field['total_variation']:.3f} (total variation)"
            for name, field in document["fields"].items()
        ),
        f"set: {out}",
        f"next: fabula release pack {quoted(out)} --version 0.1.0 --license LICENSE --out DIST",
    )
    return answer(document, lines, as_json=as_json)
