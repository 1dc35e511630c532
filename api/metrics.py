"""Metrics of pictures and clips at hand, without a run: ``fabula.metric("csd")(pictures, references)``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ConfigError, InputError
from .calling import Place

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from ..schemas.canonical import Json

Shown: TypeAlias = "Place | Image | np.ndarray[Any, Any]"
"""A picture: a file, or a clip of which the first frame is seen; a PIL image; an array or tensor."""
_ALONE = "reference"
"""What the character of references without names is called."""


def metric(
    name: str, *, device: str = "auto", models: Mapping[str, Mapping[str, Any]] | None = None, **chosen: str
) -> "PictureMetric":
    """Return a metric that needs no judge, to be called with pictures.

    Args:
        name: as for ``fabula evaluate images --metrics``: ``csd``, ``cids``, ``aesthetic``, ...
        device: ``cpu``, ``cuda`` or ``mps`` [the fastest here].
        models: name of a model -> settings of its loader, such as ``local``, a folder with its weights.
        chosen: named definitions, such as ``csd="code"``.

    Returns:
        What measures pictures.

    Raises:
        ConfigError: there is no such metric, a judge is needed, or a definition is unknown.

    Examples:
        >>> import fabula
        >>> fabula.metric("occm", device="cpu")
        PictureMetric(name='occm', device='cpu')
    """
    from ..evaluation.metrics.metric import metrics, names
    from ..evaluation.running import device_named
    from ..evaluation.shots.ratings import read_definitions

    some = metrics([name])
    able = [each for each in names() if not any(one.judged for one in metrics([each]))]
    if not some:
        raise ConfigError(name, what="there is no such metric", fix=f"use one of {', '.join(able)}")
    if any(each.judged for each in some):
        fix = f"use fabula.evaluate with judges=[...], or one of {', '.join(able)}"
        raise ConfigError(name, what="a judge rates it, so it needs a release and a model", fix=fix)
    given = [f"{key.replace('_', '-')}={value}" for key, value in chosen.items()]
    return PictureMetric(name, device_named(device), dict(models or {}), read_definitions(given, resamples=0))


@dataclass(frozen=True)
class PictureMetric:
    """A metric of pictures; see :func:`metric`."""

    name: str  # by which it was chosen
    device: str  # where its models run
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    definitions: Any = field(default=None, repr=False)  # which named definitions count

    def __call__(
        self,
        pictures: Sequence[Shown],
        references: Sequence[Shown] | Mapping[str, Sequence[Shown]] = (),
        *,
        expected: Sequence[Sequence[str]] | None = None,
        texts: Sequence[str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dict[str, float]:
        """Return the scores of pictures, taken for the shots of one story.

        Args:
            pictures: in their order. Arrays and tensors are (height, width, 3) or (3, height, width), of 0
                to 255, or floats of 0 to 1.
            references: pictures of one character, or character -> its pictures.
            expected: who should be in each picture [everybody].
            texts: the English text of each picture, for ``clip-score``.
            tags: character -> ``realistic_human``, ``unrealistic_human`` or ``non_human``: who tells it.

        Returns:
            Score -> its value, such as ``csd_cross`` and ``csd_self``; one without a value is left out.

        Raises:
            InputError: a file is not there, or no score has a value; says why. MediaProblem: a picture
                cannot be read.
            MissingRequirement: a library or weights are missing.
        """
        from ..evaluation.metrics.metric import metrics
        from ..evaluation.metrics.story import Story

        named = references if isinstance(references, Mapping) else {_ALONE: references} if references else {}
        for what, given in (("expected", expected), ("texts", texts)):
            if given is not None and len(given) != len(pictures):
                fix = "give one for each picture"
                raise ConfigError(what, what=f"{len(given)} for {len(pictures)} pictures", fix=fix)
        with TemporaryDirectory() as folder:
            casts = [list(named)] * len(pictures) if expected is None else expected
            item = _story(Path(folder), pictures, named, casts, texts, tags)
            story = Story(self._looked_at(item))
        values: dict[str, float] = {}
        reasons: list[str] = []
        for each in metrics([self.name]):
            terms = None if each.terms is None else each.terms(story, self.definitions)
            score = None if terms is None else terms.score
            if each.whole is not None:
                score = each.whole([story], self.definitions)
            if score is not None and score.value is not None:
                values[each.name] = score.value
            else:
                why = "nothing was looked at" if score is None else score.reason
                reasons.append(f"{each.name}: {why}")
        if not values:
            fix = "give what it needs: pictures, references, texts"
            raise InputError.one(self.name, what="; ".join(reasons), fix=fix)
        return values

    def _looked_at(self, item: "dict[str, Json]") -> Any:  # noqa: ANN401 - a FoundStory, imported late
        """Return the story with what the models of the metric found in its pictures."""
        from ..engine.stage import Item, Made, Tools
        from ..evaluation.metrics.story import FoundStory
        from ..evaluation.shots.judging import models_needed
        from ..evaluation.shots.looking import detect_characters, encode_crops, encode_pictures
        from ..evaluation.shots.requests import line_of

        wanted = models_needed([self.name])
        for stage in (detect_characters, encode_crops, encode_pictures):
            settings: dict[str, Any] = {"device": self.device, "options": self.models}
            for need in (need for need in wanted if need.stage == stage.SPEC.name):
                if need.setting in stage.SPEC.settings.model_fields:
                    settings[need.setting] = need.model
                else:
                    settings.setdefault("more", {})[need.setting] = need.model
            tools = Tools(stage.SPEC.settings.model_validate(settings), "")
            (made,) = stage.run([Item("pictures/1", item)], tools)
            assert isinstance(made, Made)
            item |= made.fields
        return FoundStory.model_validate(line_of(Item("pictures/1", item)))


def _story(
    folder: Path,
    pictures: Sequence[Shown],
    references: Mapping[str, Sequence[Shown]],
    expected: Sequence[Sequence[str]],
    texts: Sequence[str] | None,
    tags: Mapping[str, str] | None,
) -> "dict[str, Json]":
    """Return pictures as a story of a method, as the stages of an evaluation take it."""
    shots = [
        {
            "index": number, "Characters Appearing": {"en": list(cast), "ch": []},
            "Setting Description": {"en": "one place", "ch": ""},
            "Static Shot Description": {"en": "" if texts is None else texts[number - 1], "ch": ""},
        }
        for number, cast in enumerate(expected, 1)
    ]  # fmt: skip
    characters = {key: {"tag": (tags or {}).get(key), "name_en": key} for key in references}
    return {
        "story": {
            "story_id": "1", "script": {"Characters": characters, "Shots": shots},
            "references": {
                key: [_file(folder, f"{place}-{number}", picture) for number, picture in enumerate(some)]
                for place, (key, some) in enumerate(references.items())
            },
        },
        "facts": {},
        "shots": [
            {
                "number": number, "onstage": len(cast),
                "expected": [key for key in cast if key in references],
                **_file(folder, f"{number}", picture),
            }
            for number, (picture, cast) in enumerate(zip(pictures, expected, strict=True), 1)
        ],
        "views": {"shots": {}, "crops": []},
    }  # fmt: skip


def _file(folder: Path, name: str, picture: Shown) -> "Json":
    """Return a picture as a file, and its hash."""
    from ..schemas.canonical import sha256_file

    if not isinstance(picture, str | Path):
        file = folder / f"{name}.png"
        _image(picture).save(file)
    elif not (file := Path(picture)).is_file():
        raise InputError.one(str(file), what="there is no such file", fix="give a picture or a clip")
    return {"file": str(file.absolute()), "sha256": sha256_file(file)}


def _image(picture: Any) -> "Image":  # noqa: ANN401 - an image, an array or a tensor
    import numpy as np
    from PIL import Image

    if isinstance(picture, Image.Image):
        return picture.convert("RGB")
    table = np.asarray(picture.detach().cpu() if hasattr(picture, "detach") else picture)
    if table.ndim == 3 and table.shape[0] == 3 and table.shape[2] != 3:
        table = table.transpose(1, 2, 0)
    if table.ndim != 3 or table.shape[2] != 3:
        fix = "give (height, width, 3) or (3, height, width)"
        raise ConfigError("pictures", what=f"an array of the shape {table.shape} is no picture", fix=fix)
    if table.dtype.kind == "f":
        table = np.rint(table * 255)
    return Image.fromarray(np.clip(table, 0, 255).astype(np.uint8))
