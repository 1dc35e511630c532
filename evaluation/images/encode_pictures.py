"""Stage: what models say of whole pictures: style, aesthetic value, classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.vision.store import VectorStore
from ...schemas.canonical import Json
from .looking import open_shot, opened, packed
from .settings import PictureSettings

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="encode_pictures",
    version=1,
    shape="map",
    reads=("story", "shots"),
    writes=("pictures",),
    libraries=("pillow", "numpy"),
    settings=PictureSettings,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return rows by model, one per picture in the order of ``numbers``; null for a model that is not named.

    References are encoded for style alone.
    """
    settings = tools.settings
    assert isinstance(settings, PictureSettings)
    models = {
        "style": _model(settings.style, settings, "encoder"),
        "aesthetic": _model(settings.aesthetic, settings, "predictor"),
        "inception": _model(settings.inception, settings, "predictor"),
    }
    if not any(model is not None for model in models.values()):
        return [Made({"pictures": None}) for _ in items]
    with VectorStore.of_user() as store:

        def rows(name: str, images: "Sequence[Image]") -> Json:
            model = models[name]
            return None if model is None else packed(store.rows(model, images, settings.batch))

        made = []
        for item in items:
            there = [shot for shot in item["shots"] if shot["file"] is not None]
            images = [open_shot(shot["file"]) for shot in there]
            pictures = {
                "numbers": [shot["number"] for shot in there],
                "models": {name: None if one is None else one.identity for name, one in models.items()},
                **{name: rows(name, images) for name in models},
            }
            references = item["story"]["references"] if models["style"] is not None else {}
            pictures["references"] = {
                key: rows("style", [open_shot(image["file"]) for image in some])
                for key, some in references.items()
            }
            made.append(Made({"pictures": pictures}))
        return made


def _model(name: str | None, settings: PictureSettings, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    return None if name is None else opened(name, settings, kind)
