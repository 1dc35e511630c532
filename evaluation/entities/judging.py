"""Stages: a judge is asked about episodes; each stage is a value, and each question stands in both words.

``JUDGE_FIDELITY``: how far the canonical crop of an entity shows what its description says (B.3.3);
entities that were found with certainty or without are scored. ``JUDGE_ACTIONS``: how far the labelled
frames of a shot show its action (B.3.4); objects only where the action names a scheduled one as a whole
word. ``JUDGE_PAIRS``: the crop that stands for an entity with each other one (Eq. 31-36), in the order of
their content, so that no order shows which is the anchor or earlier. ``JUDGE_LOCATIONS``: whether shots
show the same location, whatever the camera does (Eq. 37-43); ``paper`` in pairs by a few full frames of
each, the sharpest first, ``code`` one question with frames of at most eight shots.

What the public code asks and how it reads replies: ``evaluate_benchmark.py`` at 3776439; its texts are of a
set. One message holds the question and then the pictures, as JPEG of quality 90; the anchor of a pair comes
first. A reply is the first JSON object in its text: scores may be numbers in quotes, a verdict is whether its
value is anything but false, null, 0 or empty.

Of a reply each value counts by itself: one that is null, a word, a list or out of range is null and noted
under ``unread``. A reply without any value that can be used is none.
"""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ...engine.stage import BadReply, Item, Made, Outcome, StageSpec, Tools, stage
from ...media.images import encode_image
from ...models.chat import Image, Message
from ...prompts.loader import TextSet, load_prompt
from ...schemas.canonical import Json
from ...schemas.entities import TYPES, EntityType
from ...schemas.judgement import Condition, Kind
from ...schemas.values import Own
from ..judging.answers import Asking, Published, last_attempts, pictures_of
from ..judging.packets import GivenPacket, Packet
from ..judging.settings import JudgeSettings
from ..metrics.vectors import unpacked
from .archived import ACTION_CRITERIA, CRITERIA, UNREAD, entity_parts, names_any
from .metrics.catalogue import FIDELITY_GATE, admitted, anchor, similarities_to_centroid

LEAST, MOST = 1, 10
"""The scale of every score."""
ASKING = ("judge_fidelity", "judge_actions", "judge_pairs", "judge_locations")
"""The stages that ask the judge, each with the same settings."""
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
            **{f"{stage}.temperature": None for stage in ASKING},
        },
    },
)  # fmt: skip
MAX_TOKENS, QUALITY, FRAMES = 50_000, 90, 5
"""Most tokens of a reply, the quality of a JPEG, and frames of a grid where none was drawn, to tell costs."""
_OBJECT = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_LONGEST, _SHOWN = 200_000, 80


class EpisodeJudgeSettings(JudgeSettings):
    """Who judges: one judge, asked once, as its fidelity decides what is compared across shots."""

    @model_validator(mode="after")
    def _one_verdict(self) -> Self:
        if len(self.judges) > 1 or self.votes != 1:
            raise ValueError("one judge, asked once; evaluate with another judge into another folder")
        return self


class GateSettings(Own):
    """Which appearances are compared across shots."""

    least: float = Field(
        default=FIDELITY_GATE, ge=0, le=1, description="Least overall fidelity of what is compared (Eq. 22)."
    )


class LocationSettings(EpisodeJudgeSettings):
    """How locations are compared across shots."""

    definition: Literal["paper", "code"] = Field(
        default="paper",
        description="Pairs of the anchor and each other shot (paper), or one set for each location (code).",
    )
    frames: int = Field(default=2, ge=1, le=8, description="Most frames of a shot, the sharpest first.")
    shots: int = Field(default=8, ge=2, le=50, description="Most shots of a set, taken evenly.")


class Reading:
    """Reads the values of one reply, and notes those that cannot be used.

    ``reply``: the JSON of a reply, whatever it is.

    Raises BadReply: it is no object.
    """

    def __init__(self, reply: Json) -> None:
        if not isinstance(reply, Mapping):
            raise BadReply(f"$: expected one JSON object, found {_text(reply)}")
        self._reply = reply
        self._unread: dict[str, str] = {}
        self._read = 0

    def score(self, name: str) -> float | None:
        """Return a score of 1 to 10; None where there is no such number."""
        value = self._reply.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and LEAST <= value <= MOST:
            self._read += 1
            return value
        self._note(name)
        return None

    def verdict(self, name: str) -> bool | None:
        """Return a verdict; None where it is neither true nor false."""
        value = self._reply.get(name)
        if isinstance(value, bool):
            self._read += 1
            return value
        self._note(name)
        return None

    def numbers(self, name: str, most: int) -> list[int]:
        """Return those entries of a list that are whole numbers from 1 to ``most``, each once, sorted."""
        value = self._reply.get(name)
        listed = value if isinstance(value, list) else []
        good = {entry for entry in listed if type(entry) is int and 1 <= entry <= most}
        if not isinstance(value, list) or len(good) < len(value):
            self._note(name)
        return sorted(good)

    def texts(self, name: str) -> list[str]:
        """Return those entries of a list that are texts."""
        value = self._reply.get(name)
        if not isinstance(value, list):
            self._note(name)
            return []
        return [entry for entry in value if isinstance(entry, str)]

    def parsed(self, values: dict[str, Json]) -> dict[str, Json]:
        """Return what is kept of the reply."""
        if not self._read:
            missing = "; ".join(f"$.{name}: found {text}" for name, text in self._unread.items())
            raise BadReply(f"no score and no verdict can be used: {missing}")
        reason = self._reply.get("reason")
        kept = {**values, "reason": reason if isinstance(reason, str) else None}
        return kept | ({UNREAD: self._unread} if self._unread else {})

    def _note(self, name: str) -> None:
        self._unread[name] = _text(self._reply[name]) if name in self._reply else "nothing"


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]


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


Way = Literal["score", "verdict"]


@dataclass(frozen=True)
class Shape:
    """What is kept of a reply, and how it is read: in our words or in those of the public code."""

    criteria: Sequence[str]  # scores by criterion
    values: Mapping[str, Way]  # more values, in the order in which they are looked for
    theirs: Mapping[str, str] = field(default_factory=dict)  # our name of a value -> the public code's
    described: bool = False  # whether the judge describes each picture first
    outliers: int = 0  # of so many pictures the numbers of those that do not fit; 0 where nobody asks
    flat: Sequence[str] = ()  # criteria that stand beside the values, null where they were not asked

    def read(self, reply: Json, *, public: bool = False) -> dict[str, Json]:
        """Return what is kept of a reply."""
        reading = PublicReading(reply) if public else Reading(reply)
        named = self.theirs if public else {}
        kept: dict[str, Json] = {}
        if self.described:
            kept["descriptions"] = [] if public else reading.texts("descriptions")
        criteria = {name: reading.score(name) for name in self.criteria}
        kept |= {name: getattr(reading, way)(named.get(name, name)) for name, way in self.values.items()}
        kept |= dict.fromkeys(self.flat) | criteria if self.flat else {"criteria": criteria}
        if self.outliers:
            kept["outliers"] = reading.numbers(named.get("outliers", "outliers"), self.outliers)
        return reading.parsed(kept)


def fidelity_shape(kind: EntityType) -> Shape:
    """Return how the fidelity of an entity of a type is read."""
    return Shape(CRITERIA[kind], {"overall": "score"}, {"overall": "fidelity"})


def action_shape(*, with_objects: bool) -> Shape:
    """Return how the scores of an action are read."""
    asked = [name for name in ACTION_CRITERIA if with_objects or name != "object_interaction"]
    values: Mapping[str, Way] = {"overall": "score", "depicted": "verdict"}
    return Shape(asked, values, {"depicted": "action_depicted"}, flat=ACTION_CRITERIA)


def pair_shape(kind: EntityType, *, described: bool = False) -> Shape:
    """Return how the comparison of two appearances of an entity of a type is read."""
    return Shape(CRITERIA[kind], {"same": "verdict", "similarity": "score"}, {"same": "is_same"}, described)


def set_shape(count: int) -> Shape:
    """Return how the verdict on so many frames of a location is read."""
    theirs = {"consistent": "all_consistent", "outliers": "outlier_indices"}
    values: Mapping[str, Way] = {"consistent": "verdict", "consistency": "score"}
    return Shape(CRITERIA["location"], values, theirs, described=True, outliers=count)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, in our words and in those of the public code."""

    asked: tuple[Kind, str, Condition]  # kind, item and condition as the archive has them
    prompt: str  # id of our prompt
    inputs: Mapping[str, Json]  # what is filled into it
    files: Sequence[str]  # pictures of the run's store
    shape: Shape  # how a reply is read
    about: tuple[str, ...]  # the texts of the question itself
    text: str = ""  # name of the public code's text
    slots: Callable[[TextSet], Mapping[str, object]] | None = None  # what fills it; None where there is none
    sent: Sequence[str] | None = None  # pictures in the order of the public code, if it is another

    def packet(self, tools: Tools) -> Packet | GivenPacket:
        """Return it as it is sent, in the words that the settings name."""
        texts = tools.own(EpisodeJudgeSettings).texts
        if texts is None or self.slots is None:
            return Packet(
                *self.asked, load_prompt(self.prompt), self.inputs, pictures_named(self.files, tools),
                self.shape.read, self.about, strict=False,
            )  # fmt: skip
        pictures = pictures_sent(self.sent or self.files, tools)
        message = Message("user", (texts.fill(self.text, self.slots(texts)), *pictures))
        read = partial(self.shape.read, public=True)
        return GivenPacket(*self.asked, texts.label(self.text), (message,), read, max_tokens=MAX_TOKENS)


def pictures_named(names: Sequence[str], tools: Tools) -> tuple[Image, ...]:
    """Return pictures of the run's store by their file names."""
    return pictures_of([{"file": name} for name in names], tools.store)


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


def described_slots(
    name: str, kind: EntityType, entity: Mapping[str, str], texts: TextSet
) -> dict[str, object]:
    """Return what fills a question about crops of an entity; ``name`` is that of the text with criteria."""
    criteria: Mapping[str, str] = texts.data(name)[kind]
    named = {key: entity[key] for key in ("name", "description")}
    return {"type": kind, **named, "criteria": _listed(criteria), "fields": _fields(criteria)}


def action_slots(
    action: str, names: Sequence[str], frames: int, with_objects: bool, texts: TextSet
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
    entity: Mapping[str, str], shots: Sequence[str], compared: int, texts: TextSet
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


FIDELITY_PROMPTS = {kind: f"episodes/judge_{kind}" for kind in TYPES}
ACTION_PROMPT = "episodes/judge_action"
PAIR_PROMPTS = {"character": "episodes/compare_characters", "object": "episodes/compare_objects"}
LOCATION_PROMPTS = ("episodes/compare_locations", "episodes/compare_location_set")


def _of_crops(item: Item, _tools: Tools) -> Iterator[Question]:
    shot, grounded = item["shot"], item["grounded"]
    for entity in shot["entities"] if grounded is not None else ():
        seen, kind = grounded["entities"].get(entity["key"]), entity["type"]
        if seen is None or seen["canonical"] is None:
            continue
        named = {name: entity[name] for name in ("name", "description")}
        yield Question(
            asked=("fidelity", f"{shot['key']}/{entity['key']}", "image"), prompt=FIDELITY_PROMPTS[kind],
            inputs={**named, "unsure": seen["status"] == "weak"}, files=[seen["canonical"]["file"]],
            shape=fidelity_shape(kind), about=tuple(named.values()), text="fidelity",
            slots=partial(described_slots, "criteria", kind, entity),
        )  # fmt: skip


def _of_actions(item: Item, _tools: Tools) -> Iterator[Question]:
    shot, grid = item["shot"], item["grid"]
    if grid is None or not shot["action"].strip():
        return
    named = objects_named(shot["action"], shot["entities"])
    legend = [{"color": entry["color"], "name": entry["name"]} for entry in grid["legend"]]
    names, frames = [entry["name"] for entry in legend], grid.get("frames", FRAMES)
    yield Question(
        asked=("action", shot["key"], "video"), prompt=ACTION_PROMPT, files=[grid["file"]],
        inputs={"action": shot["action"], "legend": legend, "objects": named},
        shape=action_shape(with_objects=bool(named)), about=(shot["action"],), text="action",
        slots=partial(action_slots, shot["action"], names, frames, bool(named)),
    )  # fmt: skip


def objects_named(action: str, entities: Sequence[Json]) -> list[str]:
    """Return the scheduled objects whose names stand in an action as whole words, in any case."""
    names = (entity["name"] for entity in entities if entity["type"] == "object")
    return [name for name in names if names_any(action, [name])]


def _of_pairs(item: Item, _tools: Tools) -> Iterator[Question]:
    shots = _shots(item)
    for key, first, other in pairs_of(item["gate"]):
        kind = entity_parts(key)[0]
        if kind not in PAIR_PROMPTS:
            continue
        files = [shots[name]["grounded"]["entities"][key]["canonical"]["file"] for name in (first, other)]
        named = described(shots[first], key)
        yield Question(
            asked=("pair", f"{key}/{first}/{other}", "image"), prompt=PAIR_PROMPTS[kind], inputs=named,
            files=sorted(files), sent=files, shape=pair_shape(kind), about=tuple(named.values()),
            text="pair", slots=partial(described_slots, "pair_criteria", kind, named),
        )  # fmt: skip


def pairs_of(gate: Json) -> Iterator[tuple[str, str, str]]:
    """Yield entity, anchor and other shot of every pair that is compared."""
    for key, appearances in ({} if gate is None else gate).items():
        if (anchor := appearances["anchor"]) is not None:
            yield from ((key, anchor, other) for other in appearances["pool"] if other != anchor)


def described(shot: Json, key: str) -> dict[str, Json]:
    """Return name and description of an entity that a shot schedules."""
    entity = next(entity for entity in shot["shot"]["entities"] if entity["key"] == key)
    return {name: entity[name] for name in ("name", "description")}


def _of_locations(item: Item, tools: Tools) -> Iterator[Question]:
    paper = tools.own(LocationSettings).definition == "paper"
    return _of_location_pairs(item, tools) if paper else _of_location_sets(item, tools)


def _of_location_pairs(item: Item, tools: Tools) -> Iterator[Question]:
    shots = _shots(item)
    for key, first, other in pairs_of(item["gate"]):
        if entity_parts(key)[0] != "location":
            continue
        sides = sorted(_frames(shots[name], tools) for name in (first, other))
        named = described(shots[first], key)
        yield Question(
            asked=("pair", f"{key}/{first}/{other}", "image"), prompt=LOCATION_PROMPTS[0],
            inputs={**named, "counts": [len(files) for files in sides]},
            files=[file for files in sides for file in files],
            shape=pair_shape("location", described=True), about=tuple(named.values()),
        )  # fmt: skip


def _of_location_sets(item: Item, tools: Tools) -> Iterator[Question]:
    shots = _shots(item)
    for key, appearances in (item["gate"] or {}).items():
        pool = appearances["pool"]
        if entity_parts(key)[0] != "location" or len(pool) < 2:
            continue
        chosen = evenly(pool, tools.own(LocationSettings).shots)
        framed = {name: _frames(shots[name], tools) for name in chosen}
        files = [file for frames in framed.values() for file in frames]
        named, of_files = described(shots[chosen[0]], key), [name for name in chosen for _ in framed[name]]
        yield Question(
            asked=("location", key, "image"), prompt=LOCATION_PROMPTS[1],
            inputs={**named, "count": len(files)}, files=files, shape=set_shape(len(files)),
            about=tuple(named.values()), text="location_sampled" if len(pool) > len(chosen) else "location",
            slots=partial(location_slots, named, of_files, len(pool)),
        )  # fmt: skip


def evenly(names: Sequence[str], most: int) -> list[str]:
    """Return at most so many names, taken evenly, the first and the last among them."""
    if len(names) <= most:
        return list(names)
    return [names[round(index * (len(names) - 1) / (most - 1))] for index in range(most)]


def _shots(item: Item) -> Mapping[str, Json]:
    return {shot["shot"]["key"]: shot for shot in item["shots"]}


def _frames(shot: Json, tools: Tools) -> list[str]:
    """Return the files of the sharpest frames of a shot."""
    frames = shot["frames"]
    chosen = frames["scene"][: tools.own(LocationSettings).frames]
    return [frames["pictures"][str(index)] for index in chosen]


def _asking(
    name: str, reads: tuple[str, ...], writes: str, questions: Callable[[Item, Tools], Iterator[Question]],
    asks: Iterable[str], settings: type[EpisodeJudgeSettings] = EpisodeJudgeSettings,
) -> Asking:  # fmt: skip
    spec = StageSpec(
        name=name, version=1, shape="map", reads=reads, writes=(writes,), settings=settings, asks=tuple(asks)
    )
    return Asking(spec, lambda item, tools: (asked.packet(tools) for asked in questions(item, tools)))


JUDGE_FIDELITY = _asking(
    "judge_fidelity", ("shot", "grounded"), "fidelity", _of_crops, FIDELITY_PROMPTS.values()
)
JUDGE_ACTIONS = _asking("judge_actions", ("shot", "grid"), "actions", _of_actions, (ACTION_PROMPT,))
JUDGE_PAIRS = _asking("judge_pairs", ("shots", "gate"), "pairs", _of_pairs, PAIR_PROMPTS.values())
JUDGE_LOCATIONS = _asking(
    "judge_locations", ("shots", "gate"), "locations", _of_locations, LOCATION_PROMPTS, LocationSettings
)


# -- Stage: which appearances of each entity are compared across shots, and which stands for all (Eq. 22-31)


@stage(version=1, reads=("shots",), writes=("gate",), libraries=("numpy",), settings=GateSettings)
def gate_appearances(item: Item, tools: Tools) -> Outcome:
    """Return for each scheduled entity who is compared; None where nobody encoded any appearance."""
    shots = item["shots"]
    if all(shot["vectors"] is None for shot in shots):
        return Made({"gate": None})
    keys = dict.fromkeys(entity["key"] for shot in shots for entity in shot["shot"]["entities"])
    least = tools.own(GateSettings).least
    scores = [fidelity_of(shot) for shot in shots]
    return Made({"gate": {key: _gated(key, shots, scores, least) for key in keys}})


def fidelity_of(shot: Json) -> dict[str, float]:
    """Return entity -> overall fidelity in [0, 1], of those that the judge scored."""
    beginning = f"{shot['shot']['key']}/"
    scored = {row["item"].removeprefix(beginning): row["parsed"] for row in last_attempts(shot["fidelity"])}
    return {
        key: parsed["overall"] / MOST
        for key, parsed in scored.items()
        if parsed is not None and parsed["overall"] is not None
    }


def _gated(
    key: str, shots: Sequence[Json], scores: Sequence[Mapping[str, float]], least: float
) -> dict[str, Any]:
    pool, gated, unscored, vectors = [], [], [], {}
    for shot, fidelity in zip(shots, scores, strict=True):
        name, seen = shot["shot"]["key"], ((shot["grounded"] or {}).get("entities") or {}).get(key)
        if seen is None or seen["status"] != "present":
            continue
        if not admitted(seen["status"], fidelity.get(key), least):
            gated.append(name)
            continue
        pool.append(name)
        if key not in fidelity:
            unscored.append(name)
        packed = (shot["vectors"] or {"crops": {}})["crops"].get(key)
        if packed is not None:
            vectors[name] = unpacked(packed)
    nearest, near = _nearest(vectors)
    return {
        "pool": pool, "gated": gated, "unscored": unscored, "anchor": nearest, "similarities": near,
    }  # fmt: skip


def _nearest(vectors: Mapping[str, Any]) -> tuple[str | None, dict[str, float]]:
    """Return the shot that is nearest to the centroid, and the cosine of each with it."""
    if not vectors:
        return None, {}
    rows = np.concatenate([np.atleast_2d(rows) for rows in vectors.values()])
    near, first = similarities_to_centroid(rows), anchor(rows)
    names = list(vectors)
    if near is None or first is None:
        return None, {}
    return names[first], dict(zip(names, map(float, near), strict=True))
