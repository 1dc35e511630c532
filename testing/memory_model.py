"""A stand-in for the models of an entity memory: agent, generator and viewer in one, each by plain rules.

It says nothing about any real model. Use it as the handler of a model server::

    with ModelServer(MemoryModel()) as server:
        agent, painter = f"{server.openai_url}#agent", f"image:{server.openai_url}#painter"
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from ..studies.memory.pictures import KEYS, Key, rgb_of
from .asked_prompts import fenced_texts, prompt_of, user_text
from .drawn import picture_bytes
from .drawn_portraits import Fault, draw_portrait
from .model_server import Answer, Asked, Picture

if TYPE_CHECKING:
    from PIL.Image import Image

STYLE = "ink drawing on rough paper"
SOUND = {"complete": True, "opaque": True, "clean": True, "single": True, "traits_right": True}
Paint = Callable[[Key, str], Fault | None]
"""Ground and prompt of a portrait -> the fault that it is drawn with."""
Look = Callable[[str], Mapping[str, Any]]
"""Name of an entity -> what of the verdict on its picture is other than sound."""


class MemoryModel:
    """Answers what a memory asks.

    Args:
        owners: object -> whose picture shows it; every other object stands alone.
        paint: how portraits are drawn; soundly, if nothing is given.
        look: what is found in a chosen portrait; nothing wrong, if nothing is given.

    Attributes:
        asked: how often each kind of question came: ids of prompts, and ``picture``.
    """

    def __init__(
        self,
        owners: Mapping[str, str] | None = None,
        paint: Paint = lambda _key, _prompt: None,
        look: Look = lambda _name: {},
    ) -> None:
        self._owners, self._paint, self._look = owners or {}, paint, look
        self.asked: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Json | Answer:
        if asked.wants == "image":
            self.asked["picture"] += 1
            return Answer(picture=Picture(picture_bytes(self._picture(asked.prompt))))
        prompt = prompt_of(asked) or ""
        self.asked[prompt] += 1
        texts, name = fenced_texts(user_text(asked)), prompt.removeprefix("memory/")
        if name == "classify_object":
            return self._classified(texts[1].splitlines(), texts[2])
        if name == "infer_style":
            return {"reason": "It is told like a tale.", "style": STYLE}
        if name.startswith("write_"):
            return {"prompt": f"{texts[0]}: {' '.join(texts[2:])}"}
        if name in ("choose_candidate", "verify_picture"):
            assert len(asked.images) == 1, "a grid or a cut-out is shown"
        if name == "choose_candidate":
            numbers = re.findall(r"may be chosen: ([\d, ]+)", asked.text)[-1].split(",")
            return {"reason": "Its edges are clean.", "number": int(numbers[-1])}
        if name == "verify_picture":
            return {"seen": "A figure.", "wrong": "", **SOUND, **self._look(texts[0])}
        raise ValueError(f"not a prompt of a memory: {asked.system[:80]!r}")

    def _picture(self, prompt: str) -> "Image":
        key = next((key for key, code in KEYS.items() if code in prompt), None)
        return draw_place() if key is None else draw_portrait(rgb_of(KEYS[key]), self._paint(key, prompt))

    def _classified(self, listed: list[str], name: str) -> Json:
        owner = self._owners.get(name)
        if owner is None:
            return {"reason": f"{name} is carried about.", "stands_alone": True, "owner": None}
        number = next(place for place, line in enumerate(listed, 1) if f" {owner}: " in line)
        return {"reason": f"{name} is a part.", "stands_alone": False, "owner": number}


def draw_place() -> "Image":
    """Return a panorama whose thirds are red, green and blue, lighter above."""
    from PIL import Image

    image = Image.new("RGB", (1536, 512))
    for place, colour in enumerate(((160, 60, 60), (60, 160, 60), (60, 60, 160))):
        image.paste(colour, (place * 512, 0, (place + 1) * 512, 512))
        image.paste(tuple(part + 60 for part in colour), (place * 512, 0, (place + 1) * 512, 200))
    return image
