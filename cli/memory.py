"""``fabula memory``: verified references of every entity of an episode, for generators."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .build import dry_folder, run_folder
from .command import command
from .common import released, say, show, warn
from .evaluate import Forecast

if TYPE_CHECKING:
    from ..studies.memory.pipeline import MemoryOptions


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
