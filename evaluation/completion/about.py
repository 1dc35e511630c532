"""What an evaluation of videos says about itself: protocol, subject and environment (``evaluation.json``)."""

from collections import Counter
from typing import Any

from ...engine.manifest import Manifest
from ...engine.stage import Item
from ...schemas.canonical import Json
from ...schemas.judgement import EvaluationManifest
from ..archive.replies import ReplyTally, identity_of, labels_of
from ..judges.settings import public_judge
from .completion_rate import METRIC
from .load_videos import outputs_sha256
from .settings import EventJudgeSettings

DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample", "reply")


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, video by video.

    Args:
        run: the manifest of the run.
    """

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
        self._outputs: dict[str, Json] = {}
        self._videos: dict[str, list[Json]] = {}
        self._invalid: dict[str, list[Json]] = {}
        self._frames: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        """Take in one video."""
        video, taken = item["video"], item["taken"]
        method = video["method"]
        self._outputs[method] = item["outputs"]
        self._videos.setdefault(method, []).append(video)
        self._frames[method] += len(item["frames"])
        if taken["invalid"]:
            place = {"unit": video["unit"], "seed": video["seed"]}
            self._invalid.setdefault(method, []).append({**place, "code": taken["invalid"]})

    def manifest(self) -> EvaluationManifest:
        """Return the manifest."""
        methods = {method: self._method(method) for method in sorted(self._videos)}
        return EvaluationManifest(
            kind="events",
            protocol=self._protocol(),
            subject={"methods": methods},
            environment=self.environment("load_videos"),
        )

    def _method(self, method: str) -> dict[str, Any]:
        videos, invalid = self._videos[method], self._invalid.get(method, [])
        return {
            "requested": len(videos),
            "valid": len(videos) - len(invalid),
            "invalid_rate": len(invalid) / len(videos),
            "invalid": invalid,
            "seeds": self._outputs[method]["seeds"],
            "frames": self._frames[method],
            "strays": self._outputs[method]["strays"],
            "outputs_sha256": outputs_sha256(videos),
        }

    def _protocol(self) -> dict[str, Any]:
        given = self._run.settings["judge_events"]
        settings = EventJudgeSettings.model_validate(given)
        one: Json = next(iter(self._outputs.values()), {"suite": None, "units": None})
        models = self._run.models
        return {
            "suite": one["suite"],
            "units": one["units"],
            "judges": sorted(public_judge(spec).spec for spec in settings.judges),
            "votes": {public_judge(spec).spec: settings.votes_of(spec) for spec in sorted(settings.judges)},
            "retries": settings.retries,
            "decoding": {name: given[name] for name in DECODING},
            "models": {
                public_judge(spec).spec: identity_of(models.get(spec, {})) for spec in sorted(settings.judges)
            },
            "prompts": labels_of(self._run.prompts),
            "frames": self._run.settings["take_frames"],
            "seed": self._run.seed,
            "attempts": self._run.run.attempts,
            "metrics": {METRIC.name: METRIC.version},
        }
