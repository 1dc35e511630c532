"""The planner that asks a language model; see :class:`fabula.builders.shots.planner.Planner`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ....engine.stage import Tools
from ....models.settings import ModelSettings
from ....schemas.canonical import Json
from ...katha.model.asking import ask_prompt
from ...katha.model.shown import language, segment_texts
from ..planner import Drafted, Sketch
from ..translation import PARTS
from ..words import camera_texts
from . import read_cast, read_script
from .read_translation import NAMES_OF_LANGUAGES, parts_of, read_names, read_shots, shot_shown


class ShotModelPlanner:
    """Drafts the parts of a script by asking the model that the stage's settings name, once for each part.

    Args:
        tools: the stage's tools; their settings name the model, their asker answers.
    """

    def __init__(self, tools: Tools) -> None:
        assert isinstance(tools.settings, ModelSettings)
        self._tools, self._settings = tools, tools.settings

    async def _ask(self, prompt_id: str, read: Callable[[Json], Json], **inputs: Json) -> Drafted:
        told = await ask_prompt(self._tools, self._settings, prompt_id, read, **inputs)
        return Drafted(told.value, told.maker)

    async def plan(self, sketch: Sketch, count: int) -> Drafted | None:
        """Return the texts of the shots; None, without asking, where there are fewer segments than shots."""
        segments = segment_texts(sketch.story, sketch.analysis)
        if len(segments) < count:
            return None
        return await self._ask(
            "shots/plan_shots",
            lambda reply: read_script.read_plan(reply, sketch, count),
            count=count,
            language=language(sketch.story),
            segments=segments,
            title=sketch.story["title"],
        )

    async def cast(self, sketch: Sketch, given: Sequence[Json], human: str, most: int) -> Drafted:
        """Return the characters; what the author gave of them stands."""
        return await self._ask(
            "shots/write_characters",
            lambda reply: read_cast.read_characters(reply, sketch, given, human, most),
            given=[{name: value for name, value in one.items() if name in _TOLD} for one in given],
            human=human,
            language=language(sketch.story),
            most=most,
            shots=list(sketch.plot),
            title=sketch.story["title"],
        )

    async def onstage(self, sketch: Sketch) -> Drafted:
        """Return who is on stage; without asking where there is nobody."""
        if not sketch.cast:
            return Drafted([[] for _ in sketch.plot], f"{self._settings.model}")
        return await self._ask(
            "shots/place_characters",
            lambda reply: read_cast.read_onstage(reply, sketch),
            characters=_called(sketch.cast),
            language=language(sketch.story),
            shots=list(sketch.plot),
        )

    async def settings(self, sketch: Sketch) -> Drafted:
        """Return the settings."""
        return await self._ask(
            "shots/describe_settings",
            lambda reply: read_script.read_settings(reply, sketch),
            characters=_called(sketch.cast) or ["-"],
            language=language(sketch.story),
            shots=list(sketch.plot),
            title=sketch.story["title"],
        )

    async def cameras(self, sketch: Sketch) -> Drafted:
        """Return the perspectives."""
        return await self._ask(
            "shots/design_perspectives",
            lambda reply: read_script.read_cameras(reply, sketch),
            casts=_casts(sketch),
            shots=list(sketch.plot),
        )

    async def statics(self, sketch: Sketch) -> Drafted:
        """Return the static descriptions."""
        return await self._ask(
            "shots/describe_shots",
            lambda reply: read_script.read_statics(reply, sketch),
            cameras=[camera_texts(camera)[sketch.base] for camera in sketch.cameras],
            casts=_casts(sketch),
            language=language(sketch.story),
            places=[setting or "-" for setting in sketch.settings],
            shots=list(sketch.plot),
        )

    async def translate_names(self, sketch: Sketch, language: str) -> Drafted | None:
        """Return names and descriptions in the other language; what is given is not asked for."""
        if all(one["other_name"] and one["other_prompt"] for one in sketch.cast):
            return None
        sheets = [
            {
                "number": number,
                "name": one["name"],
                "known_as": one["other_name"],
                "appearance": one["prompt"],
            }
            for number, one in enumerate(sketch.cast, start=1)
        ]
        return await self._ask(
            "shots/translate_names",
            lambda reply: read_names(reply, sketch.cast, language),
            characters=sheets,
            language=NAMES_OF_LANGUAGES[sketch.base],
            target=NAMES_OF_LANGUAGES[language],
        )

    async def translate(self, sketch: Sketch, names: Mapping[str, Json], language: str) -> Drafted | None:
        """Return the texts of the shots in the other language: all parts at once, each with all the names."""
        parts = await asyncio.gather(
            *(self._translate_part(sketch, names, (part, language)) for part in parts_of(sketch))
        )
        value = {name: [shot[name] for drafted in parts for shot in drafted.value] for name in PARTS}
        return Drafted(value, "; ".join(dict.fromkeys(drafted.maker for drafted in parts)))

    async def _translate_part(
        self, sketch: Sketch, names: Mapping[str, Json], part: tuple[range, str]
    ) -> Drafted:
        places, language = part
        return await self._ask(
            "shots/translate_shots",
            lambda reply: read_shots(reply, sketch, part, names),
            language=NAMES_OF_LANGUAGES[sketch.base],
            names=[f"{one['name']} = {names[one['key']]}" for one in sketch.cast] or ["-"],
            shots=[shot_shown(sketch, place) for place in places],
            target=NAMES_OF_LANGUAGES[language],
        )

    async def labels(self, sketch: Sketch) -> Drafted:
        """Return story type, culture and the style that the references should have."""
        return await self._ask(
            "shots/classify_story",
            lambda reply: {name: reply[name] for name in ("story_type", "culture", "style")},
            language=language(sketch.story),
            story=sketch.story["normalized_text"],
            title=sketch.story["title"],
        )


_TOLD = ("key", "name", "tag", "gender", "prompt")


def _called(cast: Sequence[Json]) -> list[str]:
    return [one["key"] if one["name"] == one["key"] else f"{one['key']} ({one['name']})" for one in cast]


def _casts(sketch: Sketch) -> list[str]:
    """Return who is on stage in each shot, by the names that the texts use."""
    names = {one["key"]: one["name"] for one in sketch.cast}
    return [", ".join(names[key] for key in keys) or "-" for keys in sketch.onstage]
