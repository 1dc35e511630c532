"""Stage: the videos of an episode, shot after shot; each begins where the last one of its scene ended.

What went wrong with a shot is an outcome of the method and is kept as data; the next shot then begins without
a frame of it. Only a generator that cannot be reached fails the episode, which goes on at that shot later:
every reply is in the journal.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from ....engine.stage import REHEARSED, Answer, Ask, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ....errors import MissingRequirement, UserError
from ....media.images import encode_image
from ....media.kept_files import keep_file
from ....media.video import frames_at, probe
from ....models.chat import Image
from ....models.generators.request import Generated, PictureRequest, read_generated
from ....models.spec import ModelSettings, parse_spec
from ....schemas.canonical import Json, sha256_bytes
from .exports import PlacedPacket
from .packets import Packet, drawn_scene, looks_of

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


SPEC = StageSpec(
    name="generate_shots", version=2, shape="map", reads=("episode_id", "packets"), writes=("shots",),
    libraries=("av",), settings=GenerateSettings, patience=240.0,
)  # fmt: skip


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


async def run(item: Item, tools: Tools) -> Outcome:
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


__all__ = ["LABEL", "OUTCOMES", "SPEC", "Ended", "GenerateSettings", "last_frame", "request_of", "run"]
