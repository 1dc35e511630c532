"""Stage: judges rate, 0 to 4, how far pictures show what their script asks for (supplement, section H).

Each dimension is a question of its own: the place, the framing, what characters do with each other, and what
a single character does, for which the judge sees the crop of that character.

What the public code asks and how it reads ratings: ``prompt_align_evaluator.py``, ``gptv_utils.py``,
``cids_evaluator.py`` at 514cc31; its texts are of a set. One message holds rubric, text and picture; for a
single character the rubric is the system text, and the name stands apart. The rating is the first number
behind ``score:``; where there is none, the question is asked again, a little warmer.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal

from pydantic import Field, field_validator

from ...engine.config import RunConfig
from ...engine.stage import BadReply, Item, StageSpec, Tools
from ...errors import ConfigError, MissingRequirement
from ...models.chat import Image, Message
from ...models.vision.needs import VisionSettings
from ...models.vision.store import Definition
from ...prompts.loader import TextSet, load_prompt
from ...schemas.canonical import Json
from ...schemas.shots import Shot, ShotScript, TwoTexts
from ...schemas.values import Listed, Own, vocabulary
from ...validators.shots.script_rules import LISTS, read_camera
from ..judging.answers import Asking, Published, pictures_of
from ..judging.packets import GivenPacket, Packet
from ..judging.settings import ImageSettings, JudgeSettings
from ..metrics.alignment import DIMENSIONS, MOST
from ..metrics.metric import Need, metrics
from ..running import check_places, missing_libraries

# -- Settings of evaluating shot images: what is evaluated, which models look at it, who judges
#
# Which models each metric needs is checked before anything is looked at.

Dimension = Literal["scene", "shot", "interaction", "action"]


class ShotSelection(Own):
    """Which stories are evaluated, and how the outputs of methods are read."""

    stories: Listed[str] = Field(default=(), description="Only stories with these ids; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")
    mode: str | None = Field(default=None, description="Folder of the mode, where there are several.")
    language: str | None = Field(default=None, description="en or ch, where there are both.")
    timestamp: str | None = Field(default=None, description="Time stamp, or latest, where there are several.")
    references: Literal["dataset", "generated"] = Field(
        default="dataset", description="References of the set, or those that the method drew (Table S8)."
    )
    first_shot: int = Field(default=1, ge=0, le=1, description="Number of the first shot in file names.")


class DetectSettings(VisionSettings):
    """Who finds characters in pictures."""

    model: str | None = Field(default=None, description="Name of the detector; null: nobody looks.")

    def looking(self) -> tuple[str, ...]:
        return () if self.model is None else (self.model,)


class CropSettings(VisionSettings):
    """Who tells characters by their crops."""

    pictures: Listed[str] = Field(
        default=(), description="Encoders of crops of characters that are no realistic humans."
    )
    faces: Listed[str] = Field(default=(), description="Encoders of crops of realistic humans.")

    reference_crop: Definition = Field(
        default="clamped", description="How references are cut: clamped (public code) or trimmed (paper)."
    )

    def looking(self) -> tuple[str, ...]:
        return (*self.pictures, *self.faces)

    def encoders(self, tag: str | None) -> tuple[str, ...]:
        """Return which encoders tell a character with a tag (section I: faces of realistic humans only)."""
        return self.faces if tag == "realistic_human" else self.pictures


class PictureSettings(VisionSettings):
    """Who looks at whole pictures; null: nobody does."""

    style: str | None = Field(default=None, description="Encoder of style.")
    aesthetic: str | None = Field(default=None, description="Predictor of the aesthetic score.")
    inception: str | None = Field(default=None, description="Predictor of class probabilities.")
    clip: str | None = Field(default=None, description="Encoder of pictures and texts, for the CLIP score.")
    more: dict[str, str] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="What further metrics need of pictures -> its encoder or predictor.",
    )

    def looking(self) -> tuple[str, ...]:
        named = (self.style, self.aesthetic, self.inception, self.clip, *self.more.values())
        return tuple(name for name in named if name is not None)


class MatchSettings(Own):
    """Which crop is which character, for the judges of individual actions."""

    least: None = Field(default=None, description="Of older runs: every pair can be a match.")
    whole: bool = Field(
        default=False, description="Show the whole picture for everybody on stage: rehearsals alone do that."
    )


class ViewSettings(ImageSettings):
    """How pictures and crops are encoded for judges."""

    max_side: int | None = Field(
        default=768, ge=16, le=8192, description="Longer side in pixels at most; null keeps the size."
    )
    wanted: bool = Field(default=False, description="Whether there are judges.")


class AlignmentSettings(JudgeSettings):
    """Who judges the alignment of pictures with their script, and of what."""

    dimensions: tuple[Dimension, ...] = Field(default=("scene", "shot", "interaction", "action"))
    interaction_from: int = Field(
        default=2, ge=0, le=3, description="Interaction is asked of shots with so many characters or more."
    )

    @field_validator("dimensions")
    @classmethod
    def _in_order(cls, value: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
        return tuple(sorted(value, key=DIMENSIONS.index))


def models_needed(names: Collection[str], dimensions: Collection[str] = DIMENSIONS) -> frozenset[Need]:
    """Return the models that some metrics need; judges need crops for actions alone."""
    return frozenset(
        need
        for metric in metrics(names)
        if not metric.judged or metric.name in dimensions
        for need in metric.needs
    )


def check_needs(config: RunConfig, names: Collection[str]) -> None:
    """Check that every model is registered, with its libraries and device here, and that somebody judges.

    Loads no weights.
    """
    missing = missing_libraries(config)
    asking = config.own("judge_alignment", AlignmentSettings)
    judged = {name for name in names if any(metric.judged for metric in metrics([name]))}
    lacks_judge = bool(judged) and not asking.judges
    if missing:
        listed = [*missing, *(["a judge for alignment (--judge)"] if lacks_judge else [])]
        raise MissingRequirement(
            "--metrics", what=f"{', '.join(names)} cannot be computed here. Missing: {'; '.join(listed)}",
            fix='pip install "fabula[metrics]", or choose others with --metrics',
        )  # fmt: skip
    if lacks_judge:
        raise ConfigError(
            "--judge", what="alignment is judged by a model, and none is named",
            fix="name models with --judge, or choose metrics without alignment: --metrics"
            f" {','.join(name for name in names if name not in judged) or 'cids'}",
        )  # fmt: skip
    check_places(config)


# --

PROMPTS = {name: f"images/judge_{name}" for name in ("scene", "shot", "interaction", "action")}
TEXT = {"scene": "setting", "shot": "perspective", "interaction": "description", "action": "description"}
"""Dimension -> the input that holds what the script says."""
LANGUAGE = "en"
"""Of the texts that judges read, as in the public code; Chinese where a text has no English."""

PUBLISHED = Published(
    "images",
    "vistorybench",
    ("scene", "shot", "interaction", "action", "character"),
    {
        "vistorybench@514cc31": {
            "prepare_views.size": [512, 512], "prepare_views.stretching": "bicubic",
            "prepare_views.quality": 75, "prepare_views.subsampled": True, "judge_alignment.votes": 1,
            "judge_alignment.interaction_from": 0, "judge_alignment.temperature": 0.0, "run.attempts": 10,
        },
    },
)  # fmt: skip
MAX_TOKENS, SEED, WARMER = 512, 123, 0.1
"""Most tokens of a reply, the seed of every request, and by how much each attempt is warmer."""
_SCORE = re.compile(r"(?:score|Score):\s*[a-zA-Z]*\s*(\d{1,9})")


def _questions(item: Item, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield what is asked about a story, shot by shot."""
    settings = tools.own(AlignmentSettings)
    script = ShotScript.model_validate(item["story"]["script"])
    views = item["views"]
    for shot in script.shots:
        view = views["shots"].get(str(shot.index))
        if view is None:
            continue
        cast = [key for key in dict.fromkeys(script.cast(shot)) if key in script.characters]
        (picture,) = pictures_of([view], tools.store)
        for name in settings.dimensions:
            inputs = _inputs(name, shot, script, cast)
            if name == "action" or inputs is None:
                continue
            if name == "interaction" and len(cast) < settings.interaction_from:
                continue
            yield _packet(settings, name, item_of(shot.index, name), inputs, picture)
        if "action" in settings.dimensions:
            for crop in views["crops"]:
                if crop["shot"] == shot.index:
                    (picture,) = pictures_of([crop], tools.store)
                    key = crop["character"]
                    shown = {"character": _name(script, key), "description": _text(shot.static)}
                    yield _packet(settings, "action", item_of(shot.index, "action", key), shown, picture)


def item_of(number: int, dimension: str, character: str | None = None) -> str:
    """Return what a question is called in the archive, such as ``shot_03/action/Mira``."""
    return f"shot_{number:02d}/{dimension}" + ("" if character is None else f"/{character}")


def _packet(
    settings: AlignmentSettings, name: str, item: str, inputs: dict[str, Json], picture: Image
) -> Packet | GivenPacket:
    if settings.texts is not None:
        return official_packet(
            settings.texts, item, name, str(inputs[TEXT[name]]), picture, inputs.get("character")
        )
    texts = tuple(value for value in inputs.values() if isinstance(value, str))
    return Packet(
        "alignment", item, "image", load_prompt(PROMPTS[name]), inputs, (picture,), read_rating, texts
    )  # fmt: skip


def _inputs(name: str, shot: Shot, script: ShotScript, cast: list[str]) -> dict[str, Json] | None:
    """Return what a prompt is filled with; None where the script says nothing to go by."""
    if name == "scene":
        text = _text(shot.setting)
        return {"setting": text} if text else None
    if name == "shot":
        text = _text(shot.perspective)
        return {"perspective": text, "meanings": meanings_of(text)} if text else None
    text = _text(shot.static)
    names = [_name(script, key) for key in cast]
    return {"characters": names, "description": text} if text else None


def meanings_of(perspective: str) -> list[str]:
    """Return what the words of a perspective mean where it was written.

    Writers and judges use some of them differently: a close up shows the head, or begins at the chest.
    """
    camera = read_camera(perspective)
    meanings = []
    for name, value in zip(LISTS, camera.words, strict=True):
        if value is not None:
            entry = vocabulary(name).entries[value]
            meanings.append(f"{entry['en']}: {entry['description']}")
    return meanings


def read_rating(reply: Json) -> dict[str, Json]:
    """Return a reply with a rating of 0 to 4."""
    if not 0 <= reply["rating"] <= MOST:
        raise BadReply(f"$.rating: expected 0 to {MOST}, found {reply['rating']}")
    return {"rating": reply["rating"], "reason": str(reply["reason"])}


def official_packet(
    texts: TextSet, item: str, dimension: str, text: str, picture: Image, character: str | None = None
) -> GivenPacket:
    """Return a question as the public code asks it."""
    rubric = texts.text(dimension)
    if character is None:
        messages = [Message("user", (rubric, text, picture))]
    else:
        named = texts.fill("character", {"name": character})
        small = Image(picture.data, picture.media_type, picture.sha256, "low")
        messages = [Message("system", (rubric,)), Message("user", (text, named, small))]
    return GivenPacket(
        "alignment", item, "image", texts.label(dimension), tuple(messages), read_score,
        max_tokens=MAX_TOKENS, seed=SEED, warmer=WARMER,
    )  # fmt: skip


def read_score(reply: Json) -> dict[str, Json]:
    """Return the rating of a reply, as the public code reads it.

    Departure: a number above 4 is no rating here, and a reply without one is not 0.
    """
    match = _SCORE.search(str(reply))
    if match is None:
        raise BadReply("no score in the reply")
    rating = int(match[1])
    if rating > MOST:
        raise BadReply(f"expected a score of 0 to {MOST}, found {rating}")
    return {"rating": rating, "reason": str(reply)}


def _text(texts: TwoTexts | None) -> str:
    return "" if texts is None else (texts.of(LANGUAGE) or texts.of("ch")).strip()


def _name(script: ShotScript, key: str) -> str:
    return script.characters[key].name(LANGUAGE) or key


JUDGE_ALIGNMENT = Asking(
    StageSpec(
        name="judge_alignment", version=3, shape="map", reads=("story", "shots", "views"),
        writes=("ratings",), settings=AlignmentSettings, asks=tuple(PROMPTS.values()),
    ),
    _questions,
)  # fmt: skip
