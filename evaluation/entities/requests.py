"""What evaluating episodes asks of the engine: sources, settings and options in its terms."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ...engine.config import RUN, RunConfig, models_of
from ...engine.execute import RunRequest, Source
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...errors import ConfigError, MissingRequirement
from ...models.vision.needs import VisionSettings
from ...releases.entities.tree import EntitySet, Episode, read_entity_set
from ...schemas.canonical import Plain
from ...schemas.text import tallied, tallies
from ..judging.answers import asking_with
from ..judging.settings import JUDGES, judges_of
from ..running import (
    Evaluating,
    check_places,
    check_weights,
    device_named,
    given_settings,
    missing_libraries,
    pinned,
)
from .archived import entity_parts
from .episodes import EPISODES, OUTPUTS, AssumeSettings, GroupSettings, chosen_episodes
from .judging import ASKING, PUBLISHED, EpisodeJudgeSettings, LocationSettings
from .looking import (
    EpisodeSelection,
    FrameSettings,
    Grounding,
    GroundSettings,
    looking_budget,
    scheduled,
)
from .pipeline import ARCHIVE, ASSUMED, PIPELINE
from .quality import QualitySettings

# -- What an evaluation of episodes takes, by rule: what is looked at, and how many questions are asked


@dataclass(frozen=True, slots=True)
class EpisodeBudget(Plain):
    """How much an evaluation takes at most: everything there, seen and admitted; over all methods."""

    episodes: int  # episodes
    shots: int  # scheduled shots
    frames: int = 0  # frames that are grounded: passes of the detector's backbone
    queries: int = 0  # pairs of a frame and an entity
    crops: int = 0  # appearances: crops that are compared with their descriptions, and encoded
    calls: Mapping[str, int] = field(default_factory=dict)  # what is asked -> calls of the judge
    errors: Mapping[str, int] = field(default_factory=dict)  # what is wrong with the set: code -> how often

    @property
    def pictures(self) -> int | None:
        """How many frames models look at, crops left out; None if that is not known."""
        return self.frames or None

    def lines(self) -> Iterator[str]:
        yield f"{tallied(self.episodes, 'episodes')} of {self.shots} shots to be looked at"
        if self.frames:
            yield (
                f"at most {self.frames} frames through the detector's backbone, "
                + tallies({"queries": self.queries, "crops": self.crops})
            )
        if self.calls:
            listed = tallies(self.calls)
            yield f"at most {sum(self.calls.values())} calls of the judge: {listed}"
        for code, count in self.errors.items():
            yield f"the set: {count} {code}; fabula validate lists them, with what to do"


def budget_of(
    entity_set: EntitySet, pillars: Collection[int], grounding: Grounding, locations: LocationSettings
) -> EpisodeBudget:
    """Return what evaluating one method takes."""
    looked = looking_budget(entity_set, grounding)
    budget = EpisodeBudget(len(entity_set.episodes), looked.shots)
    if not {2, 3} & {*pillars}:
        return budget
    calls = {"fidelity": looked.appearances}
    if 2 in pillars:
        calls["action"] = sum(
            bool(shot.action.strip()) for episode in entity_set.episodes for shot in episode.script.shots()
        )
    if 3 in pillars:
        pairs, places = _compared(entity_set, locations)
        calls |= {"pair": pairs, "location": places}
    return EpisodeBudget(
        budget.episodes, looked.shots, looked.frames, looked.queries, looked.appearances,
        calls if locations.judges else {},
    )  # fmt: skip


def for_methods(budget: EpisodeBudget, methods: int, errors: Mapping[str, int]) -> EpisodeBudget:
    """Return what several methods take."""
    times = {name: methods * count for name, count in budget.calls.items()}
    return EpisodeBudget(
        methods * budget.episodes, methods * budget.shots, methods * budget.frames,
        methods * budget.queries, methods * budget.crops, times, errors,
    )  # fmt: skip


def _compared(entity_set: EntitySet, locations: LocationSettings) -> tuple[int, int]:
    """Return how many pairs of characters and objects are compared, and pairs or sets of locations."""
    pairs = places = 0
    for episode in entity_set.episodes:
        for key, count in _appearances(episode).items():
            if count > 1 and entity_parts(key)[0] != "location":
                pairs += count - 1
            elif count > 1:
                places += count - 1 if locations.definition == "paper" else 1
    return pairs, places


def _appearances(episode: Episode) -> Counter[str]:
    return Counter(key for shot in episode.script.shots() for key in scheduled(shot))


# -- What evaluating episodes asks of the engine

ITEM_TIMEOUT = 7200.0
"""Seconds that one shot may take in one stage, on a slow machine."""
PILLARS = (1, 2, 3)
_NONCOMMERCIAL = (
    'pip install "fabula[metrics,musiq]" (pyiqa is for noncommercial use only), or leave MUSIQ out: set'
    " measure_quality.measures without imaging_quality"
)
MODELS: Mapping[int, Mapping[str, str]] = {
    1: {},
    2: {"ground_entities.detector": "grounding-dino-swin-t", "ground_entities.text": "clip-vit-b-32"},
    3: {
        "ground_entities.detector": "grounding-dino-swin-t", "ground_entities.text": "clip-vit-b-32",
        "encode_appearances.encoder": "dinov2-base",
    },
}  # fmt: skip
"""Pillar -> the setting of each model that it needs, and who that is if nobody says (Table 11)."""

NOBODY: Mapping[str, Mapping[str, Any]] = {
    "measure_quality": {"wanted": False},
    "ground_entities": {"detector": None, "text": None},
    "encode_appearances": {"encoder": None},
    "draw_grids": {"wanted": False},
    **{name: {"judges": ()} for name in ASKING},
}
"""Stage -> the settings under which it does nothing."""
USED: Mapping[int, Sequence[str]] = {
    1: ("measure_quality",),
    2: ("ground_entities", "draw_grids", "judge_fidelity", "judge_actions"),
    3: ("ground_entities", "encode_appearances", "judge_fidelity", "judge_pairs", "judge_locations"),
}
"""Pillar -> the stages that it needs of these; the gate of pillar 3 goes by fidelity as judged."""


@dataclass(frozen=True, slots=True)
class EpisodeOptions(RunOptions):
    """How to evaluate episodes. What every run may choose comes as keywords.

    Attributes:
        judges: the judge: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section ``[judges]``
            of the settings file gives. One judge for each evaluation.
        pillars: what is evaluated, with commas between: 1 quality, 2 prompt following, 3 consistency across
            shots. Others can be added later by the same command.
        grounding: whose way of finding entities: ``paper`` or ``code`` [as set, else paper].
        quality: whose measures of quality: ``paper`` or ``vbench`` [as set, else paper].
        vbench: file that ``fabula import vbench-results`` wrote: its values are taken, nothing of them is
            measured again. Needs ``quality`` vbench.
        locations: whose way of comparing locations: ``paper`` or ``code`` [as set, else paper].
        prompts: the judge's prompts: ``main``, ``official`` (see ``fabula prompts fetch``), or a folder with
            a set [main].
        protocol: prompts, definitions, pictures and reading of a published protocol, such as
            ``entitybench@3776439``.
        episodes: only this episode.
        tier: only episodes of this tier.
        limit: only the first so many episodes.
        device: where models run: ``cpu``, ``cuda``, ``mps``, or ``auto`` for the fastest here.
        replace: remove from the folder what an earlier evaluation found or asked and this one does not.
    """

    judges: Sequence[str] = ()
    pillars: str = "1,2,3"
    grounding: Annotated[
        str | None,
        Sets("take_frames.grounding", "ground_entities.definition", "encode_appearances.definition"),
    ] = None
    quality: Annotated[str | None, Sets("measure_quality.definition")] = None
    vbench: Annotated[str | None, Sets("measure_quality.results")] = None
    locations: Annotated[str | None, Sets("take_frames.locations", "judge_locations.definition")] = None
    prompts: str | None = None
    protocol: str | None = None
    episodes: Annotated[Sequence[str], Sets("load_episodes.episodes")] = ()
    tier: Annotated[Sequence[str], Sets("load_episodes.tier")] = ()
    limit: Annotated[int | None, Sets("load_episodes.limit")] = None
    device: str = "auto"
    replace: bool = False


def episodes_request(
    release: Path | str, outputs: Sequence[Path | str], out: Path | str, options: EpisodeOptions
) -> RunRequest:
    pillars = pillars_named(options.pillars)
    asking = asking_with(PUBLISHED, options.prompts, options.protocol)
    given = given_settings(options)
    judges = judges_of(options, options.judges)
    chosen: dict[str, object] = {
        "group_episodes.pillars": pillars,
        "draw_grids.wanted": True,
        "measure_quality.wanted": True,
    }
    if asking.texts is not None:  # the question says how many frames the grid has
        chosen["draw_grids.drawing"] = "code"
    chosen |= asking.given() | _models(pillars, given)
    without = [stage for stage in _looking() if (stage, "device") not in given]
    chosen |= {f"{stage}.device": device_named(options.device) for stage in without}
    if judges:
        chosen |= {f"{stage}.judges": judges for stage in ASKING}
    request = options.request(
        PIPELINE,
        out,
        [Source(EPISODES, Path(release)), *(Source(OUTPUTS, Path(folder)) for folder in outputs)],
        setting_texts(chosen),
        {JUDGES},
        item_timeout=None if (RUN, "item_timeout") in given else ITEM_TIMEOUT,
    )
    config = pinned(_of_pillars(request.config, pillars))
    check_needs(config, pillars)
    if asking.texts is not None:
        _check_locations(config)
    return asking.put_into(replace(request, config=config), ASKING)


def _check_locations(config: RunConfig) -> None:
    """Check that locations are asked about in a way for which there are official texts."""
    locations = config.own("judge_locations", LocationSettings)
    if locations.judges and locations.definition == "paper":
        raise ConfigError(
            "--prompts", what="the public code has no question about a pair of locations, only about a set",
            fix="add --locations code, or leave --prompts out",
        )  # fmt: skip


def pillars_named(text: str) -> tuple[int, ...]:
    """Return the pillars that a text names, in order."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    if not named or any(part not in map(str, PILLARS) for part in named):
        raise ConfigError(
            f"--pillars {text}", what="a pillar is 1 (quality), 2 (prompt following) or 3 (across shots)",
            fix="write those that you want with commas between, such as --pillars 1,3",
        )  # fmt: skip
    return tuple(pillar for pillar in PILLARS if str(pillar) in named)


def check_needs(config: RunConfig, pillars: Sequence[int]) -> None:
    """Check that libraries and devices of the models are here, and a judge where one is needed."""
    asking = config.own("judge_fidelity", EpisodeJudgeSettings)
    missing = missing_libraries(config)
    judged = [str(pillar) for pillar in pillars if pillar != 1]
    lacks_judge = bool(judged) and not asking.judges
    if missing:
        listed = [*missing, *(["a judge (--judge)"] if lacks_judge else [])]
        raise MissingRequirement(
            "--pillars",
            what=f"pillars {', '.join(map(str, pillars))} cannot be evaluated here. Missing:"
            f" {'; '.join(listed)}",
            fix=_NONCOMMERCIAL
            if any(part.startswith("pyiqa ") for part in missing)
            else 'pip install "fabula[metrics,video]", or choose other pillars with --pillars',
        )
    if lacks_judge:
        raise ConfigError(
            "--judge", what=f"pillar {' and '.join(judged)} is judged by a model, and none is named",
            fix="name a model with --judge, or measure quality alone: --pillars 1",
        )  # fmt: skip
    check_places(config)


def episode_budget(request: RunRequest) -> EpisodeBudget:
    """Return what an evaluation takes: what is looked at and asked; no video is opened."""
    ground = request.config.own("ground_entities", GroundSettings)
    locations = request.config.own("judge_locations", LocationSettings)
    whole, report = read_entity_set(request.of_role(EPISODES)[0])
    methods = request.of_role(OUTPUTS)
    chosen = chosen_episodes(whole, request.config.own("load_episodes", EpisodeSelection))
    pillars = _pillars(request)
    wrong = {issue.code for issue in report.issues if issue.level == "error"}
    budget = budget_of(chosen, pillars, ground.definition, locations)
    return for_methods(budget, len(methods), {code: report.counts[code] for code in sorted(wrong)})


def as_assumed(request: RunRequest) -> RunRequest:
    """Return the same with the stages that look at pictures left out; see :mod:`.assume_shots`.

    No video is opened: every shot that has one is taken to show all that is scheduled, so that costs are
    rather over than under.
    """
    pillars = _pillars(request)
    assumed = AssumeSettings(entities=pillars != (1,), actions=2 in pillars, across=3 in pillars)
    config = replace(request.config, stages={**request.config.stages, "assume_shots": assumed})
    return replace(request, pipeline=ASSUMED, config=config)


def _pillars(request: RunRequest) -> tuple[int, ...]:
    return request.config.own("group_episodes", GroupSettings).pillars


def _looking() -> list[str]:
    """Return the stages whose models need a device."""
    from ...engine.pipeline import load_pipeline

    return [
        stage.name
        for stage in load_pipeline(PIPELINE).stages
        if issubclass(stage.spec.settings, VisionSettings)
    ]


def _models(pillars: Sequence[int], given: set[tuple[str, str]]) -> dict[str, object]:
    """Return the models that pillars need, as far as the user gave none."""
    needed = {key: name for pillar in pillars for key, name in MODELS[pillar].items()}
    return {key: name for key, name in needed.items() if tuple(key.split(".")) not in given}


def _of_pillars(config: RunConfig, pillars: Sequence[int]) -> RunConfig:
    """Return settings without the models and judges that no pillar needs, whoever the settings name."""
    kept = {name for pillar in pillars for name in USED[pillar]}
    stages = {
        name: settings if name in kept else settings.model_copy(update=NOBODY.get(name, {}))
        for name, settings in config.stages.items()
    }
    quality, frames = stages["measure_quality"], stages["take_frames"]
    assert isinstance(quality, QualitySettings) and isinstance(frames, FrameSettings)
    stages["measure_quality"] = quality.pinned().model_copy(update={"keeps": frames.grounding})
    left = {spec for name in ASKING for spec in models_of(stages[name])}
    models = {spec: options for spec, options in config.models.items() if spec in left}
    return replace(config, stages=stages, models=models)


EVALUATING = Evaluating(
    PIPELINE, ARCHIVE, episodes_request, episode_budget, lambda request: check_weights(request.config),
    EpisodeOptions, rehearsed=as_assumed,
)  # fmt: skip
PROTOCOL = EVALUATING.protocol()
