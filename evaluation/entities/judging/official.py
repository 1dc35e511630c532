"""What the public code of EntityBench asks of episodes and how it reads replies; its texts are of a set.

Source: ``evaluate_benchmark.py`` at 3776439. One message holds the question and then the pictures, as JPEG of
quality 90; the anchor of a pair comes first. A reply is the first JSON object in its text: scores may be
numbers in quotes, a verdict is whether its value is anything but false, null, 0 or empty.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ....engine.stage import BadReply, Tools
from ....media.images import encode_image
from ....models.chat import Image, Message
from ....prompts.sets import TextSet
from ....schemas.canonical import Json
from ....schemas.entities import EntityType
from ....schemas.judgement import Condition, Kind
from ...judging.packets import GivenPacket, Reader
from ...judging.presets import Published
from ..entities import ACTION_CRITERIA, CRITERIA
from .settings import LEAST, MOST, Reading, pictures_named

JUDGING = ("judge_fidelity", "judge_actions", "judge_pairs", "judge_locations")
PUBLISHED = Published(
    "episodes",
    "entitybench",
    ("criteria", "pair_criteria", "action_criteria", "fidelity", "action", "no_labels", "pair", "location",
     "location_sampled", "location_image"),
    {
        "entitybench@3776439": {
            "measure_quality.definition": "vbench", "take_frames.grounding": "code",
            "take_frames.locations": "code", "ground_entities.definition": "code",
            "encode_appearances.definition": "code", "gate_appearances.least": 0.5,
            "judge_locations.definition": "code", "judge_locations.frames": 2, "judge_locations.shots": 8,
            "draw_grids.drawing": "code", "draw_grids.format": "png", "draw_grids.cell_width": 360,
            "draw_grids.cell_height": 240,
            **{f"{stage}.temperature": None for stage in JUDGING},
        },
    },
)  # fmt: skip
MAX_TOKENS, QUALITY, FRAMES = 50_000, 90, 5
"""Most tokens of a reply, the quality of a JPEG, and frames of a grid where none was drawn, to tell costs."""
Asked = tuple[Kind, str, Condition]
"""Kind, item and condition of a question, as the archive has them."""
_OBJECT = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_LONGEST = 200_000


def packet_of(
    texts: TextSet, asked: Asked, name: str, slots: Mapping[str, object],
    pictures: Sequence[Image], read: Reader,
) -> GivenPacket:  # fmt: skip
    """Return a question as the public code asks it."""
    message = Message("user", (texts.fill(name, slots), *pictures))
    return GivenPacket(*asked, texts.label(name), (message,), read, max_tokens=MAX_TOKENS)


def pictures_sent(names: Sequence[str], tools: Tools) -> tuple[Image, ...]:
    """Return pictures of the run's store as the public code sends them."""
    return tuple(
        picture if picture.sha256 is not None else Image(_jpeg(picture.data), "image/jpeg")
        for picture in pictures_named(names, tools)
    )


@lru_cache(maxsize=64)
def _jpeg(data: bytes) -> bytes:
    from PIL import Image as Pillow

    with Pillow.open(io.BytesIO(data)) as image:
        return encode_image(image.convert("RGB"), format="jpeg", quality=QUALITY, subsampled=True)


def fidelity_slots(texts: TextSet, kind: EntityType, entity: Mapping[str, str]) -> dict[str, object]:
    """Return what fills the question about one crop."""
    return _described(texts, "criteria", kind, entity)


def pair_slots(texts: TextSet, kind: EntityType, entity: Mapping[str, str]) -> dict[str, object]:
    """Return what fills the question about two crops."""
    return _described(texts, "pair_criteria", kind, entity)


def _described(texts: TextSet, name: str, kind: EntityType, entity: Mapping[str, str]) -> dict[str, object]:
    criteria: Mapping[str, str] = texts.data(name)[kind]
    named = {key: entity[key] for key in ("name", "description")}
    return {"type": kind, **named, "criteria": _listed(criteria), "fields": _fields(criteria)}


def action_slots(
    texts: TextSet, action: str, names: Sequence[str], frames: int, *, with_objects: bool
) -> dict[str, object]:
    """Return what fills the question about an action.

    ``frames``: how many the grid has.
    """
    given: Mapping[str, str] = texts.data("action_criteria")
    criteria = {key: text for key, text in given.items() if with_objects or key != "object_interaction"}
    return {
        "count": frames, "action": action, "labels": ", ".join(names) or texts.text("no_labels"),
        "criteria": _listed(criteria), "fields": _fields(criteria),
    }  # fmt: skip


def location_slots(
    texts: TextSet, entity: Mapping[str, str], shots: Sequence[str], compared: int
) -> dict[str, object]:
    """Return what fills the question about a location.

    ``shots``: key of the shot of each picture, in order.
    """
    lines = [
        texts.fill("location_image", {"number": number, "shot": shot}) for number, shot in enumerate(shots, 1)
    ]
    named = {key: entity[key] for key in ("name", "description")}
    counts = {"shots": compared, "count": len(shots), "sampled": len(dict.fromkeys(shots))}
    return {**named, **counts, "images": "\n".join(lines)}


def _listed(criteria: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {text}" for name, text in criteria.items())


def _fields(criteria: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}": N' for name in criteria)


class PublicReading(Reading):
    """Reads the values of a reply as the public code does.

    Departures: a score outside of 1 to 10 counts as none, and so does a similarity that is not there, which
    is 0 in the public code, and an object or a list in place of a score of a pair, which stops it.
    """

    def __init__(self, text: Json) -> None:
        super().__init__(first_object(str(text)))

    def score(self, name: str) -> float | None:
        """Return a score of 1 to 10, also of a number in quotes; None where there is none."""
        given = self._reply.get(name)
        try:
            value = float(given) if isinstance(given, int | float | str) else 0.0
        except (ValueError, OverflowError):
            value = 0.0
        if not LEAST <= value <= MOST:
            self._note(name)
            return None
        self._read += 1
        return int(value) if value.is_integer() else value

    def verdict(self, name: str) -> bool:
        """Return whether a value is anything; what is not there is false."""
        self._read += name in self._reply
        return bool(self._reply.get(name, False))


def first_object(text: str) -> Json:
    """Return the first JSON object in a text, with at most one level of objects inside."""
    match = _OBJECT.search(text[:_LONGEST])
    cleaned = re.sub(r"\s*```$", "", re.sub(r"^```(?:json)?\s*", "", text.strip()))
    try:
        value = json.loads(match.group() if match else cleaned)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"no JSON in the reply: {error}") from error
    if not value:
        raise BadReply("the JSON of the reply is empty")
    return value


def read_fidelity(kind: EntityType) -> Reader:
    """Return what reads the fidelity of an entity of a type."""

    def read(reply: Json) -> dict[str, Json]:
        reading = PublicReading(reply)
        criteria = reading.scores(CRITERIA[kind])
        return reading.parsed({"overall": reading.score("fidelity"), "criteria": criteria})

    return read


def read_action(*, with_objects: bool) -> Reader:
    """Return what reads the scores of an action."""
    criteria = [name for name in ACTION_CRITERIA if with_objects or name != "object_interaction"]

    def read(reply: Json) -> dict[str, Json]:
        reading = PublicReading(reply)
        scores = dict.fromkeys(ACTION_CRITERIA) | reading.scores(criteria)
        judged = {"overall": reading.score("overall"), "depicted": reading.verdict("action_depicted")}
        return reading.parsed({**judged, **scores})

    return read


def read_pair(kind: EntityType) -> Reader:
    """Return what reads the comparison of two appearances."""

    def read(reply: Json) -> dict[str, Json]:
        reading = PublicReading(reply)
        criteria = reading.scores(CRITERIA[kind])
        verdict = {"same": reading.verdict("is_same"), "similarity": reading.score("similarity")}
        return reading.parsed({**verdict, "criteria": criteria})

    return read


def read_location(count: int) -> Reader:
    """Return what reads the verdict on so many frames of a location."""

    def read(reply: Json) -> dict[str, Json]:
        reading = PublicReading(reply)
        criteria = reading.scores(CRITERIA["location"])
        verdict = {
            "consistent": reading.verdict("all_consistent"), "consistency": reading.score("consistency")
        }  # fmt: skip
        outliers = reading.numbers("outlier_indices", count)
        return reading.parsed({"descriptions": [], **verdict, "criteria": criteria, "outliers": outliers})

    return read
