"""Stage: captions of real videos and new prompts, written by a model; prompts by people stay as they are."""

from pathlib import Path
from typing import Any

from ...engine.stage import BadReply, Failed, Item, Made, Outcome, Rejected, StageSpec, Tools
from ...media.images import MediaProblem, encode
from ...models.chat import Image
from ...schemas.canonical import Json
from ..replies import ask
from .settings import WriteSettings

CAPTION, WRITE = "events/caption_video", "events/write_prompt"
_TAKEN = ("prompt", "event_list", "participants", "creative", "origin", "given")

SPEC = StageSpec(
    name="write_prompts",
    version=4,
    shape="map",
    reads=("seed", "slot"),
    writes=("drafted", "drafted_by"),
    libraries=("pillow", "av"),
    optional=("av",),
    keep={"needs_model": "--model"},
    reject_codes={"needs_model": "a model has to write this prompt, and none is named"},
    settings=WriteSettings,
    asks=(CAPTION, WRITE),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return prompt, events, participants and origin as far as they are known, and who wrote them."""
    seed, slot = item["seed"], item["slot"]
    if seed is not None and (seed["prompt"] or "given" in seed):
        drafted = {name: seed.get(name) for name in _TAKEN}
        return Made(
            {"drafted": drafted, "drafted_by": f"hand:{seed['author']}" if seed["author"] else "author"}
        )
    if tools.asker is None:
        return Rejected("needs_model", "name one with --model")
    if slot is not None:
        asked = {name: slot[name] for name in ("subject", "creative", "examples")}
        return await _ask(tools, WRITE, asked, (), "guided")
    try:
        assert seed is not None
        pictures = frames_of(Path(seed["video"]), tools)
    except MediaProblem as problem:
        return Failed(problem.code, str(problem))
    return await _ask(tools, CAPTION, {"count": len(pictures)}, pictures, "retrieval")


def frames_of(path: Path, tools: Tools) -> tuple[Image, ...]:
    """Return frames of a video, taken evenly and encoded without metadata."""
    from ...media.images import Picture, fitted
    from ...media.video import probe, sample_frames

    assert isinstance(tools.settings, WriteSettings)
    count = min(tools.settings.frames, probe(path).frames)
    taken = (Picture(fitted(frame.image, 768), "VIDEO") for frame in sample_frames(path, count))
    return tuple(Image(encode(picture, format="jpeg", quality=90), "image/jpeg") for picture in taken)


async def _ask(
    tools: Tools, prompt_id: str, inputs: dict[str, Json], pictures: tuple[Image, ...], origin: str
) -> Outcome:
    parts = [part for number, picture in enumerate(pictures, 1) for part in (f"Frame {number}", picture)]
    answer = await ask(tools, prompt_id, read_prompt, parts, **inputs)
    drafted = {**answer.value, "origin": origin, "given": None}
    if origin == "retrieval":
        drafted["creative"] = False
    return Made({"drafted": drafted, "drafted_by": answer.maker})


def read_prompt(reply: Json) -> dict[str, Any]:
    """Return a drafted prompt of a reply."""
    prompt = " ".join(str(reply["prompt"]).split())
    events = [" ".join(str(event).split()) for event in reply["event_list"]]
    if not prompt:
        raise BadReply("$.prompt: expected one sentence, found nothing")
    # How many there may be, and that they differ, is for the conditions: a short video has one event.
    if not events or not all(events):
        raise BadReply("$.event_list: expected the events of the prompt, found none, or an empty one")
    if not reply["participants"]:
        raise BadReply("$.participants: expected at least one, found none")
    kinds = list(dict.fromkeys(reply["participants"]))
    drafted = {"prompt": prompt, "event_list": events, "participants": kinds}
    return {**drafted, "creative": bool(reply["creative"])}
