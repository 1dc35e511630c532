"""The run that makes packets: its stages, what may be chosen, and the folder that it leaves."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ....builders.drafting import tell_plan
from ....engine.execute import RunRequest, Source
from ....engine.manifest import read_manifest
from ....engine.pipeline import Pipeline
from ....engine.run_options import RunOptions, Sets, setting_texts
from ....engine.running import RunKind
from ....engine.stage import Item
from ....engine.status import RunReport
from ....errors import ConfigError
from ....schemas.canonical import Json, jsonl_lines, write_atomic
from .exports import PACKETS_FILE, place_packets
from .load_shots import BANK, EPISODES
from .packets import Memory

if TYPE_CHECKING:
    from ....engine.hooks import Reporter

LAYOUTS_FILE = "layouts.jsonl"
"""One line for each shot: its layout."""
PIPELINE = Pipeline(
    name="memory-packets",
    stages=tuple(
        f"{__package__}.{name}"
        for name in ("load_shots", "plan_layouts", "compose_keyframes", "make_packets")
    ),
    finish=f"{__name__}:finish",
    final_fields=("episode_id", "known", "layouts", "keyframes"),
    identity=f"{__package__}.load_shots:identity",
)


@dataclass(frozen=True, slots=True)
class PacketOptions(RunOptions):
    """How packets are made. What every run may choose comes as keywords.

    Attributes:
        model: chat model that plans the layouts [rules].
        memory: what a generator is shown: ``entities``, ``last-frame`` (the whole last frame of the shot
            before, in the place of the bank) or ``text`` [entities].
        no_keyframes: leave keyframes out; portraits of characters stay.
        heights: TOML file with the relative height of characters and objects: "Ana" = 0.9.
        width: of a keyframe, in pixels [832].
        height: the same [480].
        episodes: only this episode.
        tier: only episodes of this tier.
        limit: only the first so many episodes.
    """

    model: Annotated[str | None, Sets("plan_layouts.model")] = None
    memory: Annotated[Memory | None, Sets("make_packets.memory")] = None
    no_keyframes: bool = False
    heights: Path | None = None
    width: Annotated[int | None, Sets("compose_keyframes.width")] = None
    height: Annotated[int | None, Sets("compose_keyframes.height")] = None
    episodes: Annotated[Sequence[str], Sets("load_shots.episodes")] = ()
    tier: Annotated[Sequence[str], Sets("load_shots.tier")] = ()
    limit: Annotated[int | None, Sets("load_shots.limit")] = None


def packets_request(
    memory_run: Path, out: Path, options: PacketOptions, episodes: Path | None = None
) -> RunRequest:
    """Return what the engine is to execute.

    ``episodes``: the set of episodes; None for the one that the bank was built from.
    """
    script_source = episodes or episodes_of(memory_run)
    given: dict[str, object] = {"make_packets.keyframes": not options.no_keyframes}
    if options.no_keyframes or options.memory not in (None, "entities"):
        given["compose_keyframes.wanted"] = False
    sources = [Source(EPISODES, script_source), Source(BANK, memory_run / BANK)]
    texts = setting_texts(given)
    if options.heights is not None:
        heights = read_heights(options.heights).items()
        table = ", ".join(f"{json.dumps(name, ensure_ascii=False)} = {height}" for name, height in heights)
        texts.append(f"compose_keyframes.heights={{{table}}}")
    return options.request(PIPELINE, out, sources, texts)


def episodes_of(memory_run: Path) -> Path:
    """Return the set of episodes from which a bank was built."""
    for source in read_manifest(memory_run).source_list(memory_run.absolute()):
        if source.role == EPISODES:
            return source.path
    raise ConfigError(
        str(memory_run), what="this run was not made from episodes",
        fix="give the run folder of `fabula memory build`, or the set with --episodes",
    )  # fmt: skip


def read_heights(path: Path) -> dict[str, float]:
    """Return the relative heights in a TOML file: ``"Ana" = 0.9``, and tables of them by episode."""
    import tomllib

    from ....schemas.plain_files import read_plain, reason_of

    fix = 'write lines such as "Ana" = 0.9, for one episode below [its id]'
    try:
        document = tomllib.loads(read_plain(path, follow=True).decode("utf-8"))
    except (OSError, ValueError) as error:
        what = f"it cannot be read: {reason_of(error)}"
        raise ConfigError(f"--heights {path}", what=what, fix=fix) from error
    heights: dict[str, Json] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            heights |= {f"{name}/{inner}": height for inner, height in value.items()}
        else:
            heights[name] = value
    for name, value in heights.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.05 <= value <= 3:
            what = f"the height of {name} is {value!r}, and no number from 0.05 to 3"
            raise ConfigError(f"--heights {path}", what=what, fix=fix)
    return {name: float(value) for name, value in heights.items()}


RUN = RunKind(PIPELINE, partial(tell_plan, sample=None), place_packets)
"""How packets are made."""


def make_packets(
    memory_run: Path, out: Path, options: PacketOptions | None = None, episodes: Path | None = None,
    reporter: "Reporter | None" = None,
) -> RunReport:  # fmt: skip
    """Make the packets of every shot; a run is continued, and no layout that was planned is asked for again.

    ``episodes``: the set of episodes; None for the one that the bank was built from.
    """
    return RUN.make(packets_request(memory_run, out, options or PacketOptions(), episodes), reporter)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``layouts.jsonl`` and ``packets.jsonl``, a line for each shot."""
    layouts: list[Json] = []
    packets: list[Json] = []
    for item in items:
        episode = item["episode_id"]
        layouts += [{"episode_id": episode, **layout} for layout in item["layouts"]]
        portraits = {
            entity["pictures"]["labelled"]["sha256"]: entity["pictures"]["labelled"]["path"]
            for entity in item["known"]["entities"]
            if "labelled" in entity["pictures"]
        }
        packets += [
            {
                "packet": packet,
                "bank": {image["file"]: portraits[image["sha256"]] for image in packet["images"]
                         if image["role"] == "portrait"},
            }
            for packet in item["packets"]
        ]  # fmt: skip
    write_atomic(folder / LAYOUTS_FILE, jsonl_lines(layouts))
    write_atomic(folder / PACKETS_FILE, jsonl_lines(packets))
