"""The run that makes videos of packets: its stages, what may be chosen, and the outputs that it leaves."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ....builders.drafting import tell_plan
from ....engine.execute import STORE, RunRequest, Source
from ....engine.pipeline import Pipeline
from ....engine.run_options import RunOptions, Sets, setting_texts
from ....engine.running import RunKind
from ....engine.stage import Item
from ....engine.status import RunReport
from ....errors import ConfigError, InputError, TargetError
from ....models.spec import parse_spec
from ....schemas.canonical import Json, jsonl_lines, write_atomic
from ....schemas.plain_files import parse_json, read_plain, reason_of
from ...pictures.pipeline import link_from_store
from .exports import PACKETS
from .load_packets import PACKETS as ROLE

if TYPE_CHECKING:
    from ....engine.hooks import Reporter

GENERATIONS, TRUTH = "generations.jsonl", "truth.jsonl"
"""One line for each shot: what was asked, and what came of it; and what drawn videos show, as data."""
PIPELINE = Pipeline(
    name="memory-generate",
    stages=tuple(f"{__package__}.{name}" for name in ("load_packets", "generate_shots")),
    finish=f"{__name__}:finish",
    final_fields=("episode_id",),
    identity=f"{__package__}.load_packets:identity",
)


@dataclass(frozen=True, slots=True)
class ShotOptions(RunOptions):
    """How videos are made. What every run may choose comes as keywords.

    Attributes:
        model: who makes them: ``video:google:NAME``, ``video:command:NAME`` or ``video:drawn:faithful``.
        seconds: duration of a shot [the system's].
        width: of a video, in pixels [the system's].
        height: the same.
        seed: of the generator [left to it].
        negative: what must not be seen.
        episodes: only this episode.
        limit: only the first so many episodes.
    """

    model: Annotated[str | None, Sets("generate_shots.model")] = None
    seconds: Annotated[float | None, Sets("generate_shots.seconds")] = None
    width: Annotated[int | None, Sets("generate_shots.width")] = None
    height: Annotated[int | None, Sets("generate_shots.height")] = None
    seed: Annotated[int | None, Sets("generate_shots.video_seed")] = None
    negative: Annotated[str | None, Sets("generate_shots.negative")] = None
    episodes: Annotated[Sequence[str], Sets("load_packets.episodes")] = ()
    limit: Annotated[int | None, Sets("load_packets.limit")] = None


def generate_request(packets: Path, run: Path, options: ShotOptions) -> RunRequest:
    """Return what the engine is to execute."""
    if options.model is None or parse_spec(options.model).makes != "video":
        raise ConfigError(
            "--model", what="a model that makes videos is needed",
            fix="name one, such as --model video:command:mine (see docs/memory.md)",
        )  # fmt: skip
    folder = packets / PACKETS if (packets / PACKETS).is_dir() else packets
    if not folder.is_dir():
        what = f"there is no folder {PACKETS} of packets in it"
        raise ConfigError(str(packets), what=what, fix="make them first: fabula memory packets")
    # An episode whose generator cannot be reached is an item that is run again.
    given = setting_texts({"run.threshold": 0.0})
    return options.request(PIPELINE, run, [Source(ROLE, folder)], given)


RUN = RunKind(PIPELINE, partial(tell_plan, sample=None))
"""How videos are made."""


def generate_shots(
    packets: Path, run: Path, options: ShotOptions, reporter: "Reporter | None" = None
) -> RunReport:
    """Make the video of every shot; a run is continued, and no video that was made is asked for again."""
    return RUN.make(generate_request(packets, run, options), reporter)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``generations.jsonl``, and ``truth.jsonl`` where videos were drawn from data."""
    rows: list[Json] = []
    truths: list[Json] = []
    for item in items:
        for shot in item["shots"]:
            about = {name: value for name, value in shot.items() if name != "truth"}
            rows.append({"episode_id": item["episode_id"], **about})
            if shot.get("truth") is not None:
                key = {"episode_id": item["episode_id"], "shot": shot["shot"]}
                truths.append({**key, "truth": shot["truth"]})
    write_atomic(folder / GENERATIONS, jsonl_lines(rows))
    if truths:
        write_atomic(folder / TRUTH, jsonl_lines(truths))


@dataclass(frozen=True, slots=True)
class GeneratedShots:
    """What a run made of the shots."""

    run: Path  # the run folder
    outputs: Path  # folder with the videos of the method, as ``evaluate episodes`` reads it
    outcomes: Mapping[str, int]  # outcome -> how many shots
    cost: float | None  # USD; None where a price is not known

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "run": str(self.run), "outputs": str(self.outputs), "outcomes": dict(self.outcomes),
            "shots": sum(self.outcomes.values()), "cost": self.cost,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        listed = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        price = "price unknown" if self.cost is None else f"{self.cost:.4f} USD"
        return [
            f"{sum(self.outcomes.values())} shots: {listed or 'none'}; {price}",
            f"videos: {self.outputs}; what was asked and came back: {self.run / GENERATIONS}",
        ]


def place_videos(run: Path, outputs: Path) -> GeneratedShots:
    """Lay out the videos of a finished run as ``<episode>/001_002.mp4``; what lies there and is right stays.

    Other videos of its episodes are removed, so that no outcome of an earlier run is taken for one of this.
    """
    rows = _rows(run)
    wanted = {
        Path(row["episode_id"], f"{row['name']}.{row['file'].rpartition('.')[2]}"): run / STORE / row["file"]
        for row in rows
        if row["outcome"] == "made"
    }
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        for episode in dict.fromkeys(row["episode_id"] for row in rows):
            for path in (outputs / episode).glob("*") if (outputs / episode).is_dir() else ():
                if path.is_file() and path.relative_to(outputs) not in wanted:
                    path.unlink()
        for name, source in wanted.items():
            link_from_store(source, outputs / name)
    except OSError as error:
        raise TargetError(
            str(outputs), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
    costs = [row["cost"] for row in rows]
    cost = None if None in costs else sum(costs)
    return GeneratedShots(run, outputs, Counter(str(row["outcome"]) for row in rows), cost)


def _rows(run: Path) -> list[dict[str, Any]]:
    path = run / GENERATIONS
    try:
        return [parse_json(line) for line in read_plain(path, follow=True).splitlines()]
    except (OSError, ValueError) as error:
        fix = "finish the run: the same command continues it"
        raise InputError.one(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix) from error
