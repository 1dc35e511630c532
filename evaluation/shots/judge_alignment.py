"""Stage: judges rate, 0 to 4, how far pictures show what their script asks for (supplement, section H).

Each dimension is a question of its own: the place, the framing, what characters do with each other, and what
a single character does, for which the judge sees the crop of that character.
"""

from collections.abc import Iterator

from ...engine.stage import BadReply, Item, Made, Outcome, StageSpec, Tools
from ...models.chat import Image
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.shots import Shot, ShotScript, TwoTexts
from ...schemas.vocabulary import vocabulary
from ...validators.shots.camera import LISTS, read_camera
from ..judging.answers import ask_judges, pictures_of
from ..judging.packets import GivenPacket, Packet
from ..metrics.alignment import MOST
from .official import official_packet
from .settings import AlignmentSettings

PROMPTS = {name: f"images/judge_{name}" for name in ("scene", "shot", "interaction", "action")}
TEXT = {"scene": "setting", "shot": "perspective", "interaction": "description", "action": "description"}
"""Dimension -> the input that holds what the script says."""
LANGUAGE = "en"
"""Of the texts that judges read, as in the public code; Chinese where a text has no English."""

SPEC = StageSpec(
    name="judge_alignment",
    version=3,
    shape="map",
    reads=("story", "shots", "views"),
    writes=("ratings",),
    settings=AlignmentSettings,
    asks=tuple(PROMPTS.values()),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per question, judge and vote; none without judges."""
    settings = tools.settings
    assert isinstance(settings, AlignmentSettings)
    if tools.asker is None or not settings.judges:
        return Made({"ratings": []})
    return Made({"ratings": await ask_judges(list(packets_of(item, settings, tools)), tools)})


def packets_of(item: Item, settings: AlignmentSettings, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield what is asked about a story, shot by shot."""
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


def _text(texts: TwoTexts | None) -> str:
    return "" if texts is None else (texts.of(LANGUAGE) or texts.of("ch")).strip()


def _name(script: ShotScript, key: str) -> str:
    return script.characters[key].name(LANGUAGE) or key
