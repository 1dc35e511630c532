"""The stages of evaluating shot images, the files of a finished run, and what it says of itself."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...engine.execute import STORE
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...schemas.canonical import Json
from ..archive.replies import ReplyTally
from ..judging.settings import public_judge
from ..metrics.metric import Metric
from ..metrics.registry import metrics
from .found import IMAGES
from .judging import PUBLISHED
from .settings import AlignmentSettings

DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample")
UNREAD = ("release", "stories", "references")
"""What stands in the protocol, and is the same for every method."""


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, item by item.

    Args:
        run: the manifest of the run.
    """

    kind = "images"
    first = "load_stories"

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
        self._models: dict[str, Json] = {}
        self._boxes: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        """Take in one story of a method."""
        method = item.id.rpartition("/")[0]
        self._outputs[method] = item["outputs"]
        boxes, crops, pictures = item["boxes"], item["crops"], item["pictures"]
        if boxes is not None:
            self._models["detector"] = boxes["model"]
            self._boxes[method] += sum(len(boxes_of_shot) for boxes_of_shot in boxes["shots"].values())
        if crops is not None:
            self._models["characters"] = crops["models"]
        if pictures is not None:
            self._models |= {name: model for name, model in pictures["models"].items() if model is not None}

    def method(self, name: str) -> dict[str, Any]:
        """Return the accounting of a method, and what identifies its pictures."""
        outputs = self._outputs[name]
        accounting = {key: value for key, value in outputs["accounting"].items() if key != "method"}
        return {
            **accounting, "findings": outputs["codes"], "outputs_sha256": outputs["sha256"],
            "boxes": self._boxes[name],
        }  # fmt: skip

    def _has(self, metric: Metric, settings: AlignmentSettings) -> bool:
        """Whether what a metric needs was looked for."""
        if metric.judged:
            return bool(settings.judges)
        return all(need.part in self._models for need in metric.needs)

    def protocol(self) -> dict[str, Any]:
        """Return how pictures were looked at and judged."""
        given = self._run.settings["judge_alignment"]
        settings = AlignmentSettings.model_validate(given)
        outputs: Json = next(iter(self._outputs.values()), {name: None for name in UNREAD})
        judges = sorted(settings.judges)
        return {
            **{name: outputs[name] for name in UNREAD},
            "models": dict(sorted(self._models.items())),
            "metrics": {metric.name: metric.version for metric in metrics() if self._has(metric, settings)},
            "judges": sorted(public_judge(spec).spec for spec in judges),
            "votes": {public_judge(spec).spec: settings.votes for spec in judges},
            "dimensions": list(settings.dimensions) if judges else [],
            "interaction_from": settings.interaction_from,
            "decoding": {name: given[name] for name in DECODING},
            "judge_models": self.identities(judges),
            **PUBLISHED.protocol(settings, self._run),
            "views": {
                name: value for name, value in self._run.settings["prepare_views"].items() if name != "wanted"
            },
            "matching": {"least": self._run.settings["match_crops"]["least"]},
        }


KIND = "evaluate-images"

SHOWN = ("number", "onstage", "expected", "sha256")
"""What a line says of a shot."""

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(
        f"{__package__}.{name}"
        for name in (
            "load_stories", "detect_characters", "encode_crops", "encode_pictures", "match_crops",
            "prepare_views", "judging:JUDGE_ALIGNMENT",
        )
    ),
    finish=f"{__name__}:finish",
    final_fields=("story", "facts", "shots", "outputs", "boxes", "crops", "pictures", "views"),
)  # fmt: skip


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest, and what was found in the pictures into the run folder."""
    About(read_manifest(folder)).finish(folder, items, IMAGES, line_of, lambda item: item["ratings"])


def line_of(item: Item) -> Json:
    """Return what the archive keeps of a method's story, besides ratings; no path of this machine."""
    method, _, story = item.id.rpartition("/")
    sheets = item["story"]["script"].get("Characters", {})
    return {
        "method": method,
        "story_id": story,
        "characters": {key: sheet.get("tag") for key, sheet in sheets.items()},
        "facts": item["facts"],
        "references": {
            key: [image["sha256"] for image in images]
            for key, images in item["story"]["references"].items()
        },
        "shots": [
            {name: shot[name] for name in SHOWN} for shot in item["shots"]
        ],
        "boxes": item["boxes"],
        "crops": item["crops"],
        "pictures": item["pictures"],
        "views": {
            "shots": {key: _kept(view) for key, view in item["views"]["shots"].items()},
            "crops": [_kept(view) for view in item["views"]["crops"]],
        },
    }  # fmt: skip


def _kept(view: Json) -> Json:
    return {**view, "file": f"{STORE}/{view['file']}"}
