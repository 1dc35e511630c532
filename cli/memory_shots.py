"""``fabula memory`` of shots: what generators get for each shot, and the videos that they make of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .build import dry_folder, run_folder, summary_first
from .command import command
from .common import emit, say, show

if TYPE_CHECKING:
    from ..studies.memory.shots.generating import ShotOptions
    from ..studies.memory.shots.pipeline import PacketOptions


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
