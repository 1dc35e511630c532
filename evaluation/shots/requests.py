"""What evaluating shot images asks of the engine: sources, settings and options in its terms."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ...builders.drafting import REHEARSED as STORIES
from ...engine.config import RUN, RunConfig
from ...engine.execute import STORE, RunRequest, Source
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...engine.stage import Item
from ...errors import ConfigError
from ...models.vision.needs import VisionSettings
from ...releases.shots.tree import read_shot_set
from ...schemas.canonical import Json, Plain, digest
from ...schemas.text import tallied
from ..archive.merging import LineForm, Lines
from ..archive.replies import ReplyTally
from ..judging.answers import asking_with
from ..judging.settings import JUDGES, JudgeSettings, judges_of, public_judge
from ..metrics.alignment import DIMENSIONS
from ..metrics.metric import Metric, Need, metrics, names, needs
from ..metrics.metric import metrics as all_metrics
from ..metrics.story import FoundFacts
from ..running import Evaluating, check_weights, device_named, given_settings, pinned
from .judging import (
    PUBLISHED,
    AlignmentSettings,
    MatchSettings,
    PictureSettings,
    ShotSelection,
    check_needs,
    models_needed,
)
from .load_stories import OUTPUTS, SHOTS, chosen_stories
from .looking import IMAGES, read_found

# -- The stages of evaluating shot images, the files of a finished run, and what it says of itself

DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample")
UNREAD = ("release", "stories", "references")
"""What stands in the protocol, and is the same for every method."""


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, item by item."""

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
            "load_stories", "looking:detect_characters", "looking:encode_crops", "looking:encode_pictures",
            "looking:match_crops", "looking:prepare_views", "judging:JUDGE_ALIGNMENT",
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


# -- Archives of shot images: what was found in pictures lies beside the ratings

GROUND = ("characters", "references", "shots")
"""What must be the same wherever a story stands."""
ABOUT_PICTURES = {"numbers", "models", "references"}
"""What stands beside the findings of models of whole pictures."""
NO_FACTS = FoundFacts().as_json()


def _lines(folder: Path) -> Lines:
    return {(story.method, story.story_id): story.as_json() for story in read_found(folder)}


def _grounds(known: Json, line: Json) -> list[str]:
    other = [name for name in GROUND if known[name] != line[name]]
    facts = known["facts"], line["facts"]
    return [*other, *(["facts"] if NO_FACTS not in facts and facts[0] != facts[1] else [])]


def _joined(known: Json, line: Json) -> tuple[Json, list[str]]:
    """Return a story with what either part found, and what they found differently."""
    pictures, differ = _pictures(known["pictures"], line["pictures"])
    looked = {name: (known[name], line[name]) for name in ("boxes", "crops")}
    others = [name for name, both in looked.items() if None not in both and both[0] != both[1]]
    made = {name: theirs if mine is None else mine for name, (mine, theirs) in looked.items()}
    if "boxes" in others and known["crops"] is None:
        made["crops"] = None  # crops are of their own boxes
    made["facts"] = line["facts"] if known["facts"] == NO_FACTS else known["facts"]
    made["views"] = (known if known["views"].get("shots") else line)["views"]
    return {**known, **made, "pictures": pictures}, [*others, *differ]


def _pictures(known: Json, other: Json) -> tuple[Json, list[str]]:
    if known is None or other is None:
        return (other if known is None else known), []
    differ, made = [], dict(known)
    for name in sorted({*known, *other} - ABOUT_PICTURES):
        mine, theirs = known.get(name), other.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            differ.append(name)
        if mine is None and theirs is not None:
            made[name] = theirs
            if name in other["models"]:
                made["models"] = {**made["models"], name: other["models"][name]}
            if name == "style":
                made["references"] = other["references"]
    return made, differ


def _found(line: Json) -> dict[str, Json]:
    parts = {**{name: line[name] for name in ("shots", "boxes", "crops")}, **(line["pictures"] or {})}
    return {name: part for name, part in parts.items() if part is not None and name not in ABOUT_PICTURES}


def _account(lines: Sequence[Json]) -> dict[str, Any]:
    """Return what was asked of a method and is there, and what identifies its pictures."""
    shown = [[shot for shot in line["shots"] if shot["sha256"] is not None] for line in lines]
    asked, there = (sum(map(len, shots)) for shots in ([line["shots"] for line in lines], shown))
    hashes = [[line["story_id"], [[shot["number"], shot["sha256"]] for shot in shots]]
              for line, shots in zip(lines, shown, strict=True)]  # fmt: skip
    boxes = [some for line in lines if line["boxes"] is not None for some in line["boxes"]["shots"].values()]
    return {
        "stories_requested": len(lines),
        "stories_complete": sum(
            len(shots) == len(line["shots"]) for line, shots in zip(lines, shown, strict=True)
        ),
        "stories_without_shot": sum(not shots for shots in shown),
        "shots_requested": asked,
        "shots_valid": there,
        "missing_rate": (asked - there) / asked if asked else None,
        "outputs_sha256": digest(hashes),
        "boxes": sum(map(len, boxes)),
    }


def _dimensions(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {"dimensions": [name for name in DIMENSIONS if name in (protocol.get("dimensions") or ())]}


ARCHIVE = LineForm(
    IMAGES, "stories",
    ("dimensions", "judge_models", "judges", "metrics", "models", "prompts", "stories", "votes"),
    _lines, _grounds, _joined, _found, _account, _dimensions,
).archive()  # fmt: skip


# -- What evaluating shot images asks of the engine

LOOKING = ("detect_characters", "encode_crops", "encode_pictures")
ITEM_TIMEOUT = 7200.0
"""Seconds that one story may take in one stage: thirty shots and as many references, on a slow machine."""
REHEARSED = 5


@dataclass(frozen=True, slots=True)
class ImageOptions(RunOptions):
    """How to evaluate shot images. What every run may choose comes as keywords.

    Attributes:
        metrics: names of metrics, or ``all``; several in one text have commas between them.
        judges: a judge of alignment: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section
            ``[judges]`` gives.
        votes: how often each judge rates each question [as set, else 1]: the runs of H.6.
        stories: only this story.
        limit: only the first so many stories.
        prompts: the judges' prompts: ``main``, ``official`` (see ``fabula prompts fetch``), or a folder
            with a set [main].
        protocol: prompts, pictures, decoding and reading of a published protocol, such as
            ``vistorybench@514cc31``.
        outputs: how the outputs of methods are read: mode, language, timestamp, first_shot.
        device: where models run: ``cpu``, ``cuda``, ``mps``, or ``auto`` for the fastest here.
        replace: remove from the folder what an earlier evaluation found or asked and this one does not.
    """

    metrics: Sequence[str] = ("all",)
    judges: Sequence[str] = ()
    votes: Annotated[int | None, Sets("judge_alignment.votes")] = None
    stories: Annotated[Sequence[str], Sets("load_stories.stories")] = ()
    limit: Annotated[int | None, Sets("load_stories.limit")] = None
    prompts: str | None = None
    protocol: str | None = None
    outputs: Mapping[str, str | int] = field(default_factory=dict)
    device: str = "auto"
    replace: bool = False


@dataclass(frozen=True, slots=True)
class ImageBudget(Plain):
    """How much an evaluation asks for, before anything is looked at."""

    shots: int  # pictures that are asked for, over all methods
    judges: int  # judges of prompt alignment
    calls: int  # most calls of all judges: all pictures there, everybody on stage found
    # what is wrong with the set: code -> how often; such scripts and images are left out
    errors: Mapping[str, int]

    @property
    def pictures(self) -> int:
        """How many pictures models look at, crops of people left out."""
        return self.shots

    def lines(self) -> Iterator[str]:
        yield f"{tallied(self.shots, 'shots')} to be looked at"
        if self.judges:
            judges = tallied(self.judges, "judges")
            yield f"at most {tallied(self.calls, 'calls')} of {judges}"
        for code, count in self.errors.items():
            yield f"the set: {count} {code}; fabula validate lists them, with what to do"


def images_request(
    release: Path | str, outputs: Sequence[Path | str], out: Path | str, options: ImageOptions
) -> RunRequest:
    metrics = _metrics(options.metrics)
    judged = any(metric.judged for metric in all_metrics(metrics))
    judges = judges_of(options, options.judges) if judged else ()
    asking = asking_with(PUBLISHED, options.prompts, options.protocol)
    given = given_settings(options)
    chosen = _defaults(options, metrics, given)
    chosen |= asking.given()
    chosen |= {f"load_stories.{name}": value for name, value in options.outputs.items()}
    if judges:
        chosen["judge_alignment.judges"] = judges
    if not judged:  # whoever the settings name
        options = replace(options, settings=[*options.texts, "judge_alignment.judges=[]"])
    request = options.request(
        PIPELINE,
        out,
        [Source(SHOTS, Path(release)), *(Source(OUTPUTS, Path(folder)) for folder in outputs)],
        setting_texts(chosen),
        {JUDGES},
        item_timeout=None if (RUN, "item_timeout") in given else ITEM_TIMEOUT,
    )
    config = pinned(_trimmed(request.config, metrics))
    check_needs(config, metrics)
    return asking.put_into(replace(request, config=config), ["judge_alignment"])


def image_budget(request: RunRequest) -> ImageBudget:
    """Return what an evaluation asks for; no picture is opened."""
    selection = request.config.own("load_stories", ShotSelection)
    asking = request.config.own("judge_alignment", AlignmentSettings)
    whole, report = read_shot_set(request.of_role(SHOTS)[0])
    methods = len(request.of_role(OUTPUTS))
    scripts = [story.script for story in chosen_stories(whole, selection).stories]
    casts = [
        len({*script.cast(shot)} & script.characters.keys()) for script in scripts for shot in script.shots
    ]
    asked = 0
    for cast in casts:
        asked += sum(name in asking.dimensions for name in ("scene", "shot"))
        asked += "interaction" in asking.dimensions and cast >= asking.interaction_from
        asked += cast * ("action" in asking.dimensions)
    judges = len(asking.judges)
    wrong = {issue.code for issue in report.issues if issue.level == "error"}
    errors = {code: report.counts[code] for code in sorted(wrong)}
    return ImageBudget(methods * len(casts), judges, methods * asked * asking.votes * judges, errors)


def without_looking(config: RunConfig) -> RunConfig:
    """Return settings under which no model looks and nobody is asked, to tell what judges would be asked.

    For everybody on stage the whole picture stands in for a crop, so that costs are rather over than under.
    """
    stages = dict(config.stages)
    for name, settings in config.stages.items():
        if isinstance(settings, VisionSettings):
            stages[name] = type(settings)(device=settings.device, dtype=settings.dtype)
        elif isinstance(settings, MatchSettings):
            stages[name] = settings.model_copy(update={"whole": True})
        elif isinstance(settings, JudgeSettings):
            stages[name] = settings.model_copy(update={"judges": ()})
    return replace(config, stages=stages, models={})


def _metrics(named: Sequence[str]) -> tuple[str, ...]:
    wanted = [name.strip() for text in named for name in text.split(",") if name.strip()]
    known = names()
    unknown = [name for name in wanted if name not in (*known, "all")]
    if unknown or not wanted:
        raise ConfigError(
            "--metrics",
            what=f"there is no metric {', '.join(unknown)}" if unknown else "no metric is named",
            fix=f"name all, or some of {', '.join(known)}",
        )
    return known if "all" in wanted else tuple(name for name in known if name in wanted)


def _defaults(
    options: ImageOptions, metrics: Collection[str], given: Collection[tuple[str, str]]
) -> dict[str, object]:
    """Return the models that the metrics need, and where they run, as far as the user gave none."""
    made: dict[str, object] = {
        ".".join(need.key): need.model
        for need in models_needed(metrics)
        if need.key not in given and not _is_more(need)
    }
    without = [stage for stage in LOOKING if (stage, "device") not in given]
    return made | {f"{stage}.device": device_named(options.device) for stage in without}


def _is_more(need: Need) -> bool:
    """Whether a need has no setting of its own, and stands under ``more`` of the stage."""
    return need.stage == "encode_pictures" and need.setting not in PictureSettings.model_fields


def _trimmed(config: RunConfig, metrics: Collection[str]) -> RunConfig:
    """Return settings without models that no metric needs, and with views for judges where there are any."""
    stages = dict(config.stages)
    asking = config.own("judge_alignment", AlignmentSettings)
    wanted = models_needed(metrics, asking.dimensions)
    for need in needs():
        if need not in wanted and not _is_more(need):
            nothing = () if isinstance(need.model, tuple) else None
            stages[need.stage] = stages[need.stage].model_copy(update={need.setting: nothing})
    named = config.own("encode_pictures", PictureSettings).more
    more = {need.setting: named.get(need.setting, str(need.model)) for need in wanted if _is_more(need)}
    stages["encode_pictures"] = stages["encode_pictures"].model_copy(
        update={"more": dict(sorted(more.items()))}
    )
    stages["prepare_views"] = stages["prepare_views"].model_copy(update={"wanted": bool(asking.judges)})
    return replace(config, stages=stages)


EVALUATING = Evaluating(
    PIPELINE, ARCHIVE, images_request, image_budget, lambda request: check_weights(request.config),
    ImageOptions, alone=without_looking, sample=lambda _: REHEARSED, told=lambda _: STORIES,
)  # fmt: skip
PROTOCOL = EVALUATING.protocol()
