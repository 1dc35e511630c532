"""The stages of judging videos, the files of a finished run, and what the evaluation says about itself."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...engine.execute import STORE
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.events.form import SUITE, load_suite, write_suite
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ..archive.replies import ReplyTally
from ..judging.settings import public_judge
from .judging import PUBLISHED
from .load_videos import SUITE_ROLE, outputs_sha256
from .settings import EventJudgeSettings
from .votes import METRIC

DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample", "reply")


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, video by video.

    Args:
        run: the manifest of the run.
    """

    kind = "events"
    first = "load_videos"

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
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
            video_key = {"unit": video["unit"], "seed": video["seed"]}
            self._invalid.setdefault(method, []).append({**video_key, "code": taken["invalid"]})

    def method(self, name: str) -> dict[str, Any]:
        """Return the accounting of a method, and what identifies its videos."""
        videos, invalid = self._videos[name], self._invalid.get(name, [])
        return {
            "requested": len(videos),
            "valid": len(videos) - len(invalid),
            "invalid_rate": len(invalid) / len(videos),
            "invalid": invalid,
            "seeds": self._outputs[name]["seeds"],
            "frames": self._frames[name],
            "strays": self._outputs[name]["strays"],
            "outputs_sha256": outputs_sha256(videos),
        }

    def protocol(self) -> dict[str, Any]:
        """Return how videos were judged."""
        given = self._run.settings["judge_events"]
        settings = EventJudgeSettings.model_validate(given)
        outputs: Json = next(iter(self._outputs.values()), {"suite": None, "units": None})
        return {
            "suite": outputs["suite"],
            "units": outputs["units"],
            "judges": sorted(public_judge(spec).spec for spec in settings.judges),
            "votes": {public_judge(spec).spec: settings.votes_of(spec) for spec in sorted(settings.judges)},
            "retries": settings.retries,
            "decoding": {name: given[name] for name in DECODING},
            "models": self.identities(sorted(settings.judges)),
            **PUBLISHED.protocol(settings, self._run),
            "frames": self._run.settings["take_frames"],
            "metrics": {METRIC.name: METRIC.version},
        }


KIND = "evaluate-events"
FRAMES = "frames.jsonl"
"""One line per video: its frames in the run's store, or why there are none."""

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(f"{__package__}.{name}" for name in ("load_videos", "take_frames", "judging:JUDGE_EVENTS")),
    finish=f"{__name__}:finish",
    final_fields=("frames", "outputs", "taken", "video"),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest, frames and a copy of the suite into the run folder."""
    run = read_manifest(folder)
    about = About(run)
    frames: list[Json] = []

    def judgements() -> Iterator[Judgement]:
        for item in items:
            about.add(item)
            frames.append(_frames_line(item))
            video = item["video"]
            yield from about.answered(
                item["votes"], protocol="events", kind="completion", condition="video",
                method=video["method"], unit=video["unit"], item=video["unit"], seed=video["seed"],
            )  # fmt: skip

    kept = tuple(judgements())
    source = next(source for source in run.source_list(folder) if source.role == SUITE_ROLE)
    write_suite(folder / SUITE, load_suite(source.path))
    about.write(folder, kept)
    write_atomic(folder / FRAMES, jsonl_lines(frames))


def _frames_line(item: Item) -> Json:
    video, taken = item["video"], item["taken"]
    pictures = [{**frame, "file": f"{STORE}/{frame['file']}"} for frame in item["frames"]]
    return {
        "method": video["method"], "unit": video["unit"], "seed": video["seed"], "frames": pictures, **taken,
    }  # fmt: skip
