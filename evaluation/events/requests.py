"""What judging videos asks of the engine: sources, settings and options in its terms; and how many calls."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ...engine.execute import STORE, RunRequest, Source
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...engine.stage import Item
from ...errors import ConfigError, InputError
from ...releases.events.form import EVENTS, SUITE, load_suite, write_suite
from ...releases.loading import read_release_document
from ...releases.verify.files import check_intact
from ...schemas.canonical import Json, Plain, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ...schemas.paths import RELEASE as RELEASE_DOCUMENT
from ...schemas.text import tallied
from ..archive.archive import ArchiveForm, Beside
from ..archive.replies import ReplyTally
from ..judging.answers import asking_with
from ..judging.settings import JUDGES, judges_of, public_judge
from ..outputs.videos import check_methods, videos_of
from ..running import Evaluating, check_request
from .judging import PUBLISHED
from .load_videos import (
    OUTPUTS,
    SUITE_ROLE,
    EventJudgeSettings,
    VideoSelection,
    chosen_prompts,
    outputs_sha256,
)
from .votes import METRIC

# -- The stages of judging videos, the files of a finished run, and what the evaluation says about itself

DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample", "reply")


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, video by video."""

    kind = "events"
    first = "load_videos"

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
        self._videos: dict[str, list[Json]] = {}
        self._invalid: dict[str, list[Json]] = {}
        self._frames: Counter[str] = Counter()

    def add(self, item: Item) -> None:
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
    stages=tuple(
        f"{__package__}.{name}" for name in ("load_videos", "load_videos:take_frames", "judging:JUDGE_EVENTS")
    ),
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


# --

REHEARSED = 50


@dataclass(frozen=True, slots=True)
class EventOptions(RunOptions):
    """How to judge videos. What every run may choose comes as keywords.

    Attributes:
        judges: a judge: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section ``[judges]`` of
            the settings file gives.
        votes: votes of each judge on each video [as set, else 3; 2 for a model on your own server].
        labels: only prompts with this label.
        units: only the prompt with this file name.
        prompts: the judges' prompts: ``main``, ``official`` (see ``fabula prompts fetch``), or a folder
            with a set [main].
        protocol: prompts, frames, votes and reading of a published protocol, such as ``storyeval@d095e63``.
        limit: only the first so many prompts.
        replace: remove earlier replies from the folder that this evaluation does not ask for.
    """

    judges: Sequence[str] = ()
    votes: Annotated[int | None, Sets("judge_events.votes")] = None
    labels: Annotated[Sequence[str], Sets("load_videos.label")] = ()
    units: Annotated[Sequence[str], Sets("load_videos.units")] = ()
    limit: Annotated[int | None, Sets("load_videos.limit")] = None
    prompts: str | None = None
    protocol: str | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class VideoBudget(Plain):
    """How much judging asks for, before anything is asked."""

    videos: int  # videos that are requested, over all methods and seeds
    present: int  # those that are there
    judges: int  # verifiers
    calls: int  # calls of all verifiers: two for each vote on a video that is there

    def lines(self) -> Iterator[str]:
        yield f"{tallied(self.videos, 'videos')} requested, {self.present} there"
        judges = tallied(self.judges, "judges")
        yield f"{tallied(self.calls, 'calls')} of {judges}: each vote describes and then scores"


def events_request(
    suite: Path | str, outputs: Sequence[Path | str], out: Path | str, options: EventOptions
) -> RunRequest:
    judges = judges_of(options, options.judges)
    sources = [Source(SUITE_ROLE, Path(suite)), *(Source(OUTPUTS, Path(folder)) for folder in outputs)]
    asking = asking_with(PUBLISHED, options.prompts, options.protocol)
    named = {"judge_events.judges": judges} if judges else {}
    request = options.request(PIPELINE, out, sources, setting_texts({**asking.given(), **named}), {JUDGES})
    if not request.config.models:
        raise ConfigError("--judge", what="no judge is named", fix="name models with --judge")
    return asking.put_into(request, ["judge_events"])


def suite_of(path: Path) -> Path:
    """Return the file of a suite: the file itself, or that of a release, which must be as it was packed."""
    if not path.is_dir() or not (path / RELEASE_DOCUMENT).exists():
        return path
    stated = read_release_document(path, EVENTS).get("files")
    if not isinstance(stated, dict) or SUITE not in stated:
        what, fix = f"its {RELEASE_DOCUMENT} does not list {SUITE}", "fetch or pack the release again"
        raise InputError.one(str(path), what=what, fix=fix)
    check_intact(path)
    return path / SUITE


def video_budget(request: RunRequest) -> VideoBudget:
    """Return what an evaluation of videos asks for; no video is opened."""
    asking = request.config.own("judge_events", EventJudgeSettings)
    suite = load_suite(request.of_role(SUITE_ROLE)[0])
    units = list(chosen_prompts(suite, request.config.own("load_videos", VideoSelection)).prompts)
    folders = request.of_role(OUTPUTS)
    check_methods(folders)
    methods = [videos_of(folder, suite.prompts) for folder in folders]
    places = [videos.path(unit, seed) for videos in methods for seed in videos.seeds for unit in units]
    present = sum(path.is_file() for path in places)
    votes = sum(asking.votes_of(spec) for spec in asking.judges)
    return VideoBudget(len(places), present, len(asking.judges), 2 * votes * present)


def _rehearsed(request: RunRequest) -> int | None:
    """Return how many items are rehearsed; all where few videos are there, as the first may lack theirs."""
    return REHEARSED if video_budget(request).present > REHEARSED else None


def _join(places: Sequence[Path], _first_wins: bool) -> Beside:
    """Return the suite of the first folder that has one."""

    def write(out: Path) -> None:
        suites = (folder / SUITE for folder in places)
        write_suite(
            out / SUITE, load_suite(next((suite for suite in suites if suite.is_file()), places[0] / SUITE))
        )

    return Beside(write)


ARCHIVE = ArchiveForm(("judges", "metrics", "models", "prompts", "units", "votes"), (SUITE,), join=_join)
"""Archives of videos: the suite that was judged lies beside the replies."""
EVALUATING = Evaluating(
    PIPELINE, ARCHIVE, events_request, video_budget, check_request, EventOptions, suite_of, sample=_rehearsed,
)  # fmt: skip
PROTOCOL = EVALUATING.protocol()
