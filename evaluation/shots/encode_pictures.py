"""Stage: what models say of whole pictures: style, aesthetic value, classes, likeness to the shot's text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.vision.needs import opened
from ...models.vision.store import VectorStore
from ...schemas.canonical import Json
from ...schemas.shots import ShotScript, TwoTexts
from ..metrics.vectors import packed
from .found import open_shot
from .references import TextMeans, compare_texts
from .settings import PictureSettings

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="encode_pictures",
    version=3,
    shape="map",
    reads=("story", "shots"),
    writes=("pictures",),
    libraries=("pillow", "numpy"),
    settings=PictureSettings,
    patience=20,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return rows by model, one per picture in the order of ``numbers``; null for a model that is not named.

    What further metrics need stands there only if it is named, and with it which shots share a setting.
    References are encoded for style alone. Of the encoder of texts, cosines are kept.
    """
    settings = tools.own(PictureSettings)
    models = {
        "style": _model(settings.style, settings, "encoder"),
        "aesthetic": _model(settings.aesthetic, settings, "predictor"),
        "inception": _model(settings.inception, settings, "predictor"),
        "clip": _model(settings.clip, settings, "text encoder"),
        **{part: opened(name, settings, None) for part, name in settings.more.items()},
    }
    if not any(model is not None for model in models.values()):
        return [Made({"pictures": None}) for _ in items]
    with VectorStore.of_user() as store:
        means = _Means(models, store, settings.batch)
        return [Made({"pictures": _pictures(item, means, settings.more)}) for item in items]


@dataclass(frozen=True)
class _Means:
    """The models by what they are for, and what keeps their rows."""

    models: Mapping[str, Any]
    store: VectorStore
    batch: int

    def rows(self, name: str, images: "Sequence[Image]") -> Json:
        """Return the packed rows of pictures; null without a model."""
        model = self.models[name]
        return None if model is None else packed(self.store.rows(model, images, self.batch))


def _pictures(item: Item, means: _Means, more: Collection[str]) -> Json:
    there = [shot for shot in item["shots"] if shot["file"] is not None]
    images = [open_shot(shot["file"]) for shot in there]
    numbers = [shot["number"] for shot in there]
    clip, likeness = means.models["clip"], None
    if clip is not None:
        likeness = compare_texts(item["story"], numbers, images, TextMeans(clip, means.store, means.batch))
    references = item["story"]["references"] if means.models["style"] is not None else {}
    return {
        "numbers": numbers,
        "models": {name: None if model is None else model.identity for name, model in means.models.items()},
        **{name: means.rows(name, images) for name in ("style", "aesthetic", "inception", *more)},
        "clip": likeness,
        "references": {
            key: means.rows("style", [open_shot(image["file"]) for image in some])
            for key, some in references.items()
        },
        **({"scenes": _scenes(item["story"])} if more else {}),
    }


def _scenes(story: Json) -> Json:
    """Return for each shot the number of the first one that has the same setting; one without is alone."""
    first: dict[str, int] = {}
    shots = ShotScript.model_validate(story["script"]).shots
    texts = [(shot.setting or TwoTexts()).of("en") or (shot.setting or TwoTexts()).of("ch") for shot in shots]
    return [
        first.setdefault(text.strip(), shot.index) if text.strip() else shot.index
        for shot, text in zip(shots, texts, strict=True)
    ]


def _model(name: str | None, settings: PictureSettings, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    return None if name is None else opened(name, settings, kind)
