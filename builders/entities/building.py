"""Building episodes: what is needed is looked up first, then shots and people, then what a model is asked.

What a model will be asked depends on the shots and people that are found, so these are found first; the run
keeps them. Only then is told what the rest is about to cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.budget import check_models
from ...engine.calls import model_uses
from ...engine.config import models_of
from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import RunRequest, execute
from ...engine.journal import NAME as JOURNAL
from ...engine.pipeline import load_pipeline
from ...engine.progress import Event
from ...engine.run_options import setting_texts
from ...engine.running import RunKind
from ...engine.status import NAME as REPORT
from ...engine.status import RunReport, read_report
from ...engine.survey import surveyed
from ...errors import BelowThreshold, ConfigError
from ...models.vision.measured import vision_plan
from ...schemas.canonical import Json, pretty_bytes, sha256_file, write_atomic
from ...schemas.plain_files import parse_json, read_plain
from ..drafting import Drafting, DraftOptions, estimate, listed, planner_texts, tell_plan, without_models
from .load_videos import ROLE
from .needs import check_needs, pinned
from .pipeline import EPISODES, FUNNEL, PIPELINE, Step, curation_funnel

if TYPE_CHECKING:
    from ...engine.progress import Reporter


STYLE = "judge_style"


@dataclass(frozen=True, slots=True)
class EntityOptions(DraftOptions):
    """How to build episodes. What every run may choose comes as keywords.

    Attributes:
        detections: file of people that you found yourself, used instead of detectors; see docs/identities.md.
    """

    detections: Path | None = None


def entity_request(
    videos: Sequence[Path | str] | Path | str, out: Path | str, options: EntityOptions
) -> RunRequest:
    """Return what the engine is to execute."""
    sources = listed(videos, ROLE, "videos")
    given: dict[str, object] = {}
    if options.detections is not None:
        file = Path(options.detections).absolute()
        if not file.is_file():
            raise ConfigError(
                "--detections",
                what=f"there is no file {file}",
                fix="check the path; see docs/identities.md",
            )
        given = {
            "detect_people.detections": str(file),
            "detect_people.detections_sha256": sha256_file(file),
        }
    texts = [*planner_texts(PIPELINE, options, drafting_only=True), *setting_texts(given)]
    request = options.drafting(PIPELINE, out, sources, texts)
    return replace(request, config=pinned(request.config))


def build_entities(
    videos: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: EntityOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Build episodes from videos; an existing run folder is continued.

    The run folder then holds the official tree in ``data/``, and what is left after each step of the curation
    in ``funnel.json``.
    """
    options = options if options is not None else EntityOptions()
    request = entity_request(videos, out, options)
    check_needs(request.config, [source.path for source in request.sources])
    if (kept := DRAFTING.run.kept(request, reporter)) is not None:
        return kept
    if reporter is not None and request.config.models:
        if _was_asked(request.folder):
            tell_entities(request, reporter)
        else:
            check_models(request.config, options.max_cost)
            for stages, through in parts_before_models(request):
                find(request, stages, reporter)
                _tell_rest(only(request, through), reporter)
    return DRAFTING.run.execute(request, reporter)


def estimate_entities(
    videos: Sequence[Path | str] | Path | str, out: Path | str, options: EntityOptions | None = None
) -> CallPlan:
    """Tell what :func:`build_entities` would ask of the model now, and about what that costs. Asks nothing.

    Shots and people have to be found for it; what the run has found of them is used.
    """
    request = entity_request(videos, out, options if options is not None else EntityOptions())
    check_needs(request.config, [source.path for source in request.sources])
    for stages, _ in parts_before_models(request)[:1]:
        find(request, stages)
    plan = plan_calls(request, without_models(request.config), use_known=True)
    return replace(plan, vision=vision_plan(request.config.stages.values()))


def _was_asked(folder: Path) -> bool:
    """Whether a model has answered in a run."""
    journal = Path(folder) / JOURNAL
    return journal.exists() and bool(model_uses(journal))


def tell_entities(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a build makes and about what they cost, as far as shots and people are found."""
    tell_plan(request, reporter, sample=None, use_known=True)


def parts_before_models(request: RunRequest) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the stages to run before it is told what models will be asked, and those that this is about.

    One pair, or two where the first model judges the style of shots: which shots stay depends on it. None
    under settings that ask nobody.
    """
    names = load_pipeline(request.pipeline).names()
    asking = [at for at, name in enumerate(names) if models_of(request.config.stages[name])]
    if not asking:
        return []
    if names[asking[0]] != STYLE or len(asking) == 1:
        return [(names[: asking[0]], names)]
    return [(names[: asking[0]], names[: asking[0] + 1]), (names[: asking[1]], names)]


def only(request: RunRequest, stages: tuple[str, ...]) -> RunRequest:
    """Return a request for some of its stages."""
    return replace(request, options=replace(request.options, stages=stages))


def find(request: RunRequest, stages: tuple[str, ...], reporter: "Reporter | None" = None) -> None:
    """Run the first stages of a build, and keep what they make."""
    told_to = None if reporter is None else _Part(reporter, frozenset(stages))
    try:
        execute(only(request, stages), told_to)
    except BelowThreshold:
        return  # the build itself says so in the end, with all that came after


class _Part:
    """Tells of some stages only: the others are not run."""

    def __init__(self, reporter: "Reporter", stages: frozenset[str]) -> None:
        self._reporter, self._stages = reporter, stages

    def emit(self, event: Event) -> None:
        """Pass an event on, unless it is about a stage that does not run, or about the end."""
        if event.stage in self._stages or (
            event.stage is None and event.kind in ("warning", "sources", "stopping")
        ):
            self._reporter.emit(event)

    def close(self) -> None:
        """Leave the display in order."""
        self._reporter.close()


def _tell_rest(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls are to come and about what they cost, from the shots and people that were found."""
    plan = plan_calls(request, without_models(request.config), use_known=True)
    limit = request.options.max_cost
    more: dict[str, object] = {} if limit is None else {"max_cost": limit}
    told = {"calls": plan.calls, "cost": plan.cost, "stages": plan.stage_costs()}
    reporter.emit(Event("plan", data={**told, **more}))


def write_funnel(folder: Path) -> tuple[Step, ...] | None:
    """Write what is left after each step of the curation; None where the run was never finished."""
    folder = Path(folder)
    if not (folder / REPORT).is_file() or not (folder / EPISODES).is_file():
        return None
    with surveyed(folder, PIPELINE, keep=("shot",)) as survey:
        shots = tuple(survey.kept.columns.get("shot", ()))
    report, names = read_report(folder), load_pipeline(PIPELINE).names()
    through = names[: names.index("filter_shots") + 1]
    fallen = {item.id for item in report.items if item.stage in through}
    rows = map(parse_json, read_plain(folder / EPISODES, follow=True).splitlines())
    kept = [shot for shot in shots if shot not in fallen]
    # What was not chosen to run has fallen out of nothing.
    tried = replace(report, items=tuple(item for item in report.items if item.status != "pending"))
    steps = curation_funnel(tried, kept, [_shots_of(row) for row in rows])
    write_atomic(folder / FUNNEL, [pretty_bytes([step.as_json() for step in steps])])
    return steps


def _shots_of(row: Json) -> list[str]:
    """Return the ids of the source's shots of an episode."""
    video = str(row["episode_id"]).rpartition("__i")[0]
    return [f"{video}__{shot.rpartition('__')[2]}" for shot in row["entry"]["_window_shot_ids"]]


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_entities, write_funnel, plan=estimate),
    entity_request,
    EntityOptions,
    corrected_in_files="write its episodes with `fabula export entitybench RUN --out SET`, correct"
    " SET/scripts/EPISODE.json, and let `fabula validate SET` name each place that no longer fits;"
    " `fabula import entitybench SET --out NEW` then makes a set that can be released",
    building=build_entities,
    estimating=estimate_entities,
)
"""How episodes are drafted."""
