"""``image:drawn:NAME``: pictures drawn from a scene as data, or from the phrases of a prompt.

It is no generator to be compared with others: it draws what it is told, in shapes and colours, so that a
whole study can be run offline and what judges say of its pictures can be checked against what is in them.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from ....errors import ConfigError
from ....schemas.canonical import digest
from ...chat import CallFault, ChatRequest, Reply, Usage
from ...keys import Redactor
from ...options import ModelOptions
from ...spec import ModelSpec
from ..request import Choice, Generated, GeneratedFile, PictureRequest
from ..service import not_taken
from .drawing import Drawing, draw_scene
from .layout import default_size
from .phrases import scene_of
from .png import encode_png
from .scene import DrawnScene, Mark

FORGETTING, FAITHFUL = "storyboard", "faithful"
NAMES: Mapping[str, tuple[Choice, ...]] = {
    FORGETTING: ("seed", "size", "scene"),
    FAITHFUL: ("size", "scene"),
}
"""Names of the renderers -> what they take: ``storyboard`` leaves things out, ``faithful`` nothing."""
FORGOTTEN = 0.25
"""Share of the marks, characters not counted, that ``storyboard`` leaves out."""
MOST_SIDE = 4096
"""Most pixels of a side."""


class DrawnImages:
    """Draws pictures on this machine; one thread at a time is enough.

    Args:
        spec: ``image:drawn:storyboard`` or ``image:drawn:faithful``.

    Raises:
        ConfigError: there is no renderer of that name.
    """

    def __init__(self, spec: ModelSpec, _options: ModelOptions, _redactor: Redactor) -> None:
        self._name = checked_name(spec)

    async def complete(self, request: ChatRequest) -> Reply:
        """Draw one picture.

        Raises:
            CallFault: the request is for no picture, its scene is none, or its size cannot be drawn.
        """
        return drawn_reply(await asyncio.to_thread(self._make, PictureRequest.of(request)))

    async def close(self) -> None:
        """Close nothing."""

    def _make(self, asked: PictureRequest) -> Generated:
        scene, origin = scene_to_draw(asked)
        drawing = draw_scene(scene, size_of(asked, scene), forgetting(self._name, asked))
        file = GeneratedFile(encode_png(drawing.canvas.image), "image/png")
        return made_of(drawing, file, asked, self._name, origin)


def checked_name(spec: ModelSpec) -> str:
    """Return the name of the renderer that a spec names.

    Raises:
        ConfigError: there is none of that name.
    """
    if spec.name not in NAMES:
        raise ConfigError(
            f"model {spec}", what=f"drawn has no renderer {spec.name}; it has: {', '.join(NAMES)}",
            fix="use one of them",
        )  # fmt: skip
    return spec.name


def scene_to_draw(asked: PictureRequest) -> tuple[DrawnScene, str]:
    """Return the scene of a request, and whether it was given as data (``scene``) or read off the ``prompt``.

    Raises:
        CallFault: what is given is no scene.
    """
    if asked.scene is None:
        return scene_of(asked.prompt), "prompt"
    try:
        return DrawnScene.model_validate(asked.scene), "scene"
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        raise CallFault("bad_request", f"the scene cannot be drawn: {detail['msg']}") from error


def size_of(asked: PictureRequest, scene: DrawnScene) -> tuple[int, int]:
    """Return width and height of the picture, in pixels; a side that is not asked for is as by default.

    Raises:
        CallFault: it is too small or too large.
    """
    width, height = default_size(scene.form)
    size = (asked.width or width, asked.height or height)
    if not all(16 <= side <= MOST_SIDE for side in size):
        raise CallFault("bad_request", f"a side has 16 to {MOST_SIDE} pixels, not {size[0]} x {size[1]}")
    return size


def forgetting(name: str, asked: PictureRequest) -> Callable[[Mark], bool]:
    """Return which marks a renderer leaves out of a picture.

    ``storyboard`` leaves out each mark but characters with probability 1/4, by a hash of seed, mark and
    prompt, so that other seeds lose other things; ``faithful`` leaves out none.
    """

    def forgets(mark: Mark) -> bool:
        if name != FORGETTING or mark.kind == "character":
            return False
        drawn = digest([asked.seed, mark.kind, mark.text, asked.prompt])
        return int(drawn[:12], 16) / 16**12 < FORGOTTEN

    return forgets


def made_of(
    drawing: Drawing, file: GeneratedFile, asked: PictureRequest, name: str, origin: str
) -> Generated:
    """Return a picture or video as a reply tells it, with what it shows as data."""
    taken: tuple[Choice, ...] = NAMES[name] + (("seconds",) if file.media_type.startswith("video/") else ())
    truth: dict[str, Any] = {"renderer": name, "drawn_from": origin, **drawing.truth()}
    return Generated(
        file,
        seed=asked.seed if "seed" in taken else None,
        width=drawing.canvas.image.width,
        height=drawing.canvas.image.height,
        unsupported=not_taken(asked, taken),
        truth=truth,
    )


def drawn_reply(made: Generated) -> Reply:
    """Return what was made as a reply; nothing was counted, as nobody charges for it."""
    return Reply("ok", made.packed(), reported_model="drawn", usage=Usage())
