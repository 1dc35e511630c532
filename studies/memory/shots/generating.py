"""The run that makes videos of packets: its stages, what may be chosen, and the outputs that it leaves."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from ....builders.drafting import tell_plan
from ....engine.execute import STORE, RunRequest, Source
from ....engine.pipeline import Pipeline
from ....engine.run_options import RunOptions, Sets, setting_texts
from ....engine.running import RunKind
from ....engine.stage import (
    REHEARSED,
    Answer,
    Ask,
    BadReply,
    Child,
    Item,
    Made,
    NoAnswer,
    OneStage,
    Outcome,
    StageSpec,
    Tools,
    stage,
)
from ....engine.status import RunReport
from ....errors import ConfigError, MissingRequirement, UserError
from ....media.images import encode_image
from ....media.kept_files import keep_file
from ....media.video import frames_at, probe
from ....models.chat import Image
from ....models.generators.request import Generated, PictureRequest, read_generated
from ....models.spec import ModelSettings, parse_spec
from ....schemas.canonical import Json, jsonl_lines, sha256_bytes, write_atomic, writing
from ....schemas.plain_files import explaining, parse_json, read_plain
from ....schemas.values import Own
from ...pictures import link_from_store
from .exports import PACKETS, PlacedPacket, read_packets
from .packets import Packet, drawn_scene, looks_of

if TYPE_CHECKING:
    from ....engine.hooks import Reporter


# -- Stage: the videos of an episode, shot after shot; each begins where the last one of its scene ended
#
# What went wrong with a shot is an outcome of the method and is kept as data; the next shot then begins
# without a frame of it. Only a generator that cannot be reached fails the episode, which goes on at that
# shot later: every reply is in the journal.

LABEL = "memory/shot@1#000000000000"
"""What the journal calls the prompt of a shot: it stands in the packet."""
OUTCOMES = {
    "refused": "refused", "blocked": "blocked", "empty": "empty", "truncated": "corrupt",
    "malformed": "corrupt", "too_long": "failed", "bad_request": "failed",
}  # fmt: skip
"""Code of a missing answer -> outcome of the shot. Any other is raised: the generator had no part in it."""
SUFFIXES = {"video/mp4": "mp4", "video/webm": "webm", "video/x-matroska": "mkv", "video/quicktime": "mov"}
"""Media type of a video -> the ending of its file."""
_LONGEST = 2000  # characters of a useless reply that are kept


class GenerateSettings(ModelSettings):
    """Who makes the videos, and how."""

    seconds: float | None = Field(default=None, gt=0, description="Duration of a shot [the system's].")
    width: int | None = Field(default=None, ge=16, description="Of a video, in pixels [the system's].")
    height: int | None = Field(default=None, ge=16, description="The same.")
    negative: str | None = Field(default=None, description="What must not be seen.")
    video_seed: int | None = Field(default=None, description="Seed of the generator [left to it].")

    @model_validator(mode="after")
    def _it_makes_videos(self) -> Self:
        if self.model is not None and parse_spec(self.model).makes != "video":
            raise ValueError(f"{self.model} makes no videos: the spec of such a model begins with video:")
        return self


@dataclass(frozen=True, slots=True)
class Ended:
    """How a shot ended."""

    shot: str  # its key
    # its last frame as PNG; None where there is no video
    frame: bytes | None = field(default=None, repr=False)
    # entity -> the look that it was drawn with; of interest to the generator that draws data
    looks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Video:
    """A video that can be decoded."""

    generated: Generated  # what the model made
    suffix: str  # ending of its file
    frames: int  # how many frames it has
    last: bytes = field(repr=False)  # its last frame as PNG


async def videos_of_shots(item: Item, tools: Tools) -> Outcome:
    """Return what became of each shot, in story order; videos and last frames go to the run's store."""
    if tools.asker is None or tools.own(GenerateSettings).model is None:
        return Made({"shots": []})
    rows: list[Json] = []
    before = Ended("")
    open_question: NoAnswer | None = None
    for entry in item["packets"]:
        packet = Packet.model_validate(entry["packet"])
        placed = PlacedPacket(Path(entry["folder"]), packet)
        try:
            row, before = await _shot(placed, entry["hashes"], before, tools)
            rows.append(row)
        except NoAnswer as none:
            if none.code != REHEARSED:
                raise
            open_question, before = none, Ended(packet.shot)
    if open_question is not None:
        raise open_question
    return Made({"shots": rows})


GENERATE_SHOTS = OneStage(
    StageSpec(
        "generate_shots", version=2, reads=("episode_id", "packets"), writes=("shots",), libraries=("av",),
        settings=GenerateSettings, patience=240.0,
    ),
    videos_of_shots,
)  # fmt: skip


def request_of(
    placed: PlacedPacket, hashes: Mapping[str, str], before: Ended, settings: GenerateSettings
) -> tuple[PictureRequest, dict[str, str]]:
    """Return what is asked for a shot, and the looks with which the generator that draws data draws it."""
    packet = placed.packet
    frame = None if before.frame is None else Image(before.frame, "image/png", sha256_bytes(before.frame))
    references = []
    for image in packet.images:
        if image.file is not None:
            references.append(Image(placed.picture(image.file), "image/png", hashes[image.file]))
        elif image.role == "frame" and image.shot == before.shot and frame is not None:
            references.append(frame)
    begins = packet.first_frame is not None and packet.first_frame.shot == before.shot
    given = begins or any(image.role == "frame" for image in packet.images)
    looks = looks_of(packet, before.looks if given and frame is not None else {})
    assert settings.model is not None
    draws_data = parse_spec(settings.model).provider == "drawn"
    request = PictureRequest(
        settings.model, packet.prompt, tuple(references), settings.negative, settings.video_seed,
        settings.width, settings.height, seconds=settings.seconds,
        scene=drawn_scene(packet, looks) if draws_data else None,
        first_frame=frame if begins else None,
    )  # fmt: skip
    return request, looks


async def _shot(
    placed: PlacedPacket, hashes: Mapping[str, str], before: Ended, tools: Tools
) -> tuple[Json, Ended]:
    assert tools.asker is not None
    packet, settings = placed.packet, tools.own(GenerateSettings)
    request, looks = request_of(placed, hashes, before, settings)
    row: dict[str, Json] = {
        "shot": packet.shot, "name": packet.name, "prompt": packet.prompt, "memory": packet.memory,
        "keyframes": packet.keyframes, "references": len(request.references),
        "first_frame": None if request.first_frame is None else request.first_frame.sha256,
        "asked_seed": settings.video_seed,
    }  # fmt: skip
    question = Ask(request.chat(), _read, LABEL, repairs=0, sample=settings.sample, plain=True)
    try:
        answer = await tools.asker.ask(question)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            raise
        reply = None if none.evidence is None else none.evidence[:_LONGEST]
        cost = None if none.receipt is None else none.receipt.cost
        gone = {"outcome": OUTCOMES[none.code], "reason": none.reason, "reply": reply, "cost": cost}
        return {**row, **gone}, Ended(packet.shot)
    return {**row, **_made(answer, tools)}, Ended(packet.shot, answer.value.last, looks)


def _made(answer: Answer[Video], tools: Tools) -> dict[str, Json]:
    video = answer.value
    data = video.generated.file.data
    name, last = f"{sha256_bytes(data)}.{video.suffix}", f"{sha256_bytes(video.last)}.png"
    if tools.store is not None:
        keep_file(data, name, tools.store)
        keep_file(video.last, last, tools.store)
    about = video.generated.about()
    reply = None if answer.receipt is None else answer.receipt.reply
    truth = video.generated.truth
    return {
        "outcome": "made", "reason": None, "reply": None, "file": name, "last_frame": last,
        "frames": video.frames, "revised_prompt": about["revised_prompt"], "effective_seed": about["seed"],
        "width": about["width"], "height": about["height"], "unsupported": about["unsupported"],
        "reported_model": None if reply is None else reply.reported_model,
        "cost": None if answer.receipt is None else answer.receipt.cost,
        "truth": None if truth is None else dict(truth),
    }  # fmt: skip


def _read(text: str) -> Video:
    """Return a video that can be decoded to its end."""
    try:
        generated = read_generated(text)
    except ValueError as error:
        raise BadReply(str(error)) from error
    suffix = SUFFIXES.get(generated.file.media_type)
    if suffix is None:
        known = ", ".join(sorted(SUFFIXES.values()))
        raise BadReply(f"the video is {generated.file.media_type}; {known} are used")
    try:
        frames, last = last_frame(generated.file.data, suffix)
    except MissingRequirement:
        raise
    except UserError as error:
        raise BadReply(f"the video cannot be decoded: {error.what or error}") from error
    return Video(generated, suffix, frames, last)


def last_frame(data: bytes, suffix: str) -> tuple[int, bytes]:
    """Return how many frames a video has, and the last one as PNG."""
    with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
        path = Path(folder, f"video.{suffix}")
        path.write_bytes(data)
        frames = probe(path).frames
        frame = next(frames_at(path, [frames - 1]))
    return frames, encode_image(frame.image, format="png")


# -- Stage: one item per episode, with its packets and where their pictures are

ROLE = "packets"
"""Role of the source: a folder of packets."""


class PacketSelection(Own):
    """Which packets are used."""

    episodes: tuple[str, ...] = Field(default=(), description="Only these episodes [all].")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many episodes [all].")


@stage(
    version=1, shape="expand", reads=("sources",), writes=("episode_id", "packets"), settings=PacketSelection
)
def load_packets(item: Item, tools: Tools) -> Iterator[Child]:
    del item
    settings = tools.own(PacketSelection)
    episodes: dict[str, list[PlacedPacket]] = {}
    for placed in read_packets(tools.paths[0]):
        episodes.setdefault(placed.packet.episode_id, []).append(placed)
    unknown = sorted(set(settings.episodes) - set(episodes))
    if unknown:
        raise ConfigError(
            "--episode", what=f"there are no packets of {', '.join(unknown)}",
            fix=f"check the spelling; there are some of {', '.join(list(episodes)[:3])}",
        )  # fmt: skip
    chosen = [name for name in episodes if not settings.episodes or name in settings.episodes]
    for name in chosen[: settings.limit]:
        packets: list[Json] = [_entry(placed) for placed in episodes[name]]
        yield Child(name, Made({"episode_id": name, "packets": packets}))


def _entry(placed: PlacedPacket) -> Json:
    """Return a packet with the hash of each of its pictures as it is now, whoever replaced it."""
    files = [image.file for image in placed.packet.images if image.file is not None]
    hashes = {file: sha256_bytes(placed.picture(file)) for file in files}
    return {"packet": placed.packet.as_json(), "folder": str(placed.folder.absolute()), "hashes": hashes}


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["episode_id"]


# --

GENERATIONS, TRUTH = "generations.jsonl", "truth.jsonl"
"""One line for each shot: what was asked, and what came of it; and what drawn videos show, as data."""
PIPELINE = Pipeline(
    name="memory-generate",
    stages=tuple(f"{__name__}:{name}" for name in ("load_packets", "GENERATE_SHOTS")),
    finish=f"{__name__}:finish",
    final_fields=("episode_id",),
    identity=f"{__name__}:identity",
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
        return {
            "run": str(self.run), "outputs": str(self.outputs), "outcomes": dict(self.outcomes),
            "shots": sum(self.outcomes.values()), "cost": self.cost,
        }  # fmt: skip

    def lines(self) -> list[str]:
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
    with writing(outputs):
        outputs.mkdir(parents=True, exist_ok=True)
        for episode in dict.fromkeys(row["episode_id"] for row in rows):
            for path in (outputs / episode).glob("*") if (outputs / episode).is_dir() else ():
                if path.is_file() and path.relative_to(outputs) not in wanted:
                    path.unlink()
        for name, source in wanted.items():
            link_from_store(source, outputs / name)
    costs = [row["cost"] for row in rows]
    cost = None if None in costs else sum(costs)
    return GeneratedShots(run, outputs, Counter(str(row["outcome"]) for row in rows), cost)


def _rows(run: Path) -> list[dict[str, Any]]:
    path = run / GENERATIONS
    with explaining(path, "finish the run: the same command continues it"):
        return [parse_json(line) for line in read_plain(path, follow=True).splitlines()]
