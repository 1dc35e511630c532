"""Stage: the keyframes of an episode as pictures, made of the bank's cut-outs and panoramas."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from ....engine.stage import Item, Made, StageSpec, Tools
from ....errors import InputError
from ....media.images import encode_image
from ....media.kept_files import keep_file
from ....schemas.canonical import Json, sha256_bytes
from ....schemas.plain_files import read_plain
from ....schemas.values import Own
from ..bank import View
from ..pictures import opened_rgba
from .layout import Angle, Keyframe, ShotLayout
from .packets import KnownEntities, KnownPicture

if TYPE_CHECKING:
    from PIL.Image import Image

    from .compose import Cutout

VIEWS: Mapping[Angle, View] = {"left": "left", "front": "centre", "right": "right"}
"""Camera angle -> the third of the panorama behind (E.4)."""


class ComposeSettings(Own):
    """How keyframes are made."""

    wanted: bool = Field(default=True, description="Whether any are made.")
    width: int = Field(default=832, ge=64, le=4096, description="Of a keyframe, in pixels.")
    height: int = Field(default=480, ge=64, le=4096, description="The same.")
    heights: dict[str, float] = Field(
        default_factory=dict,
        description="Height of an entity relative to others of its type, by name, or by EPISODE/NAME [1].",
    )


SPEC = StageSpec(
    name="compose_keyframes", version=2, shape="map", reads=("episode_id", "known", "bank", "layouts"),
    writes=("keyframes",), libraries=("numpy", "pillow"), settings=ComposeSettings, patience=5.0,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Made:
    """Return for each shot its keyframes: file in the store, boxes; null where there is nothing to show."""
    settings = tools.own(ComposeSettings)
    layouts = [ShotLayout.model_validate(layout) for layout in item["layouts"]]
    if not settings.wanted or item["bank"] is None:
        return Made({"keyframes": [[None] * len(layout.keyframes) for layout in layouts]})
    known = KnownEntities.model_validate(item["known"])
    maker = _Maker(str(item["episode_id"]), known, Path(item["bank"]), settings, tools)
    return Made(
        {"keyframes": [[maker.made(keyframe) for keyframe in layout.keyframes] for layout in layouts]}
    )


def read_known(root: Path, picture: KnownPicture) -> bytes:
    """Return the bytes of a picture of the bank."""
    path = root / picture.path
    try:
        data = read_plain(path, follow=True)
    except OSError as error:
        raise _changed(path, f"it cannot be read: {error.strerror}") from error
    if sha256_bytes(data) != picture.sha256:
        raise _changed(path, "it was changed while the run went on")
    return data


def _changed(path: Path, what: str) -> InputError:
    return InputError.one(str(path), what=what, fix="give the same command again")


class _Maker:
    """Makes the keyframes of one episode; a picture of the bank is opened once."""

    def __init__(
        self, episode_id: str, known: KnownEntities, root: Path, settings: ComposeSettings, tools: Tools
    ) -> None:
        self._episode, self._known, self._root = episode_id, known, root
        self._settings, self._tools = settings, tools
        self._cutouts: dict[str, Cutout | None] = {}
        self._views: dict[tuple[str, Angle], Image | None] = {}

    def made(self, keyframe: Keyframe) -> Json:
        """Return the file of a keyframe, and what is where in it; None where it shows nothing of the bank."""
        from .compose import compose, listed

        names = [f"character:{standing.name}" for standing in keyframe.characters]
        names += [f"object:{beside.name}" for beside in keyframe.objects]
        cutouts = {key: cutout for key in names if (cutout := self._cutout(key)) is not None}
        view = None if keyframe.location is None else self._view(keyframe.location, keyframe.angle)
        if not cutouts and view is None:
            return None
        composed = compose(keyframe, cutouts, view, (self._settings.width, self._settings.height))
        data = encode_image(composed.image, format="png")
        name = f"{sha256_bytes(data)}.png"
        if self._tools.store is not None:
            keep_file(data, name, self._tools.store)
        return {"file": name, "boxes": listed(composed.boxes), "shows_place": view is not None}

    def _cutout(self, key: str) -> "Cutout | None":
        from .compose import Cutout

        if key not in self._cutouts:
            entity = self._known.by_key.get(key)
            picture = None if entity is None else entity.pictures.get("cutout")
            cutout = None
            if entity is not None and picture is not None:
                image = opened_rgba(read_known(self._root, picture), key)
                bounds = entity.bounds if entity.bounds and _fits(entity.bounds, image.size) else None
                cutout = replace(Cutout(image, bounds), height=self._height(entity.name))
            self._cutouts[key] = cutout
        return self._cutouts[key]

    def _height(self, name: str) -> float:
        heights = self._settings.heights
        return heights.get(f"{self._episode}/{name}", heights.get(name, 1.0))

    def _view(self, location: str, angle: Angle) -> "Image | None":
        from ....media.images import open_picture

        if (location, angle) not in self._views:
            entity = self._known.by_key.get(f"location:{location}")
            picture = None if entity is None else entity.pictures.get(VIEWS[angle])
            data = None if picture is None else read_known(self._root, picture)
            self._views[location, angle] = None if data is None else open_picture(data, name=location).image
        return self._views[location, angle]


def _fits(bounds: tuple[int, int, int, int], size: tuple[int, int]) -> bool:
    left, top, right, bottom = bounds
    return 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]
