"""The run that builds a bank of entities: its stages, what may be chosen, what it asks."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...builders.drafting import tell_plan
from ...engine.config import RunConfig
from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import STORE, RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...engine.running import RunKind
from ...engine.status import RunReport
from ...errors import ConfigError, InputError, MissingRequirement, UserError
from ...evaluation.entities.looking import EpisodeSelection
from ...evaluation.report.model import Frame
from ...evaluation.report.showing import Thumbnails
from ...evaluation.running import check_places, check_weights, device_named, missing_libraries, pinned
from ...media.kept_files import kept_bytes
from ...pages.page import policy_of, save_page, style_of, template_of
from ...releases.entities.tree import read_entity_set
from ...schemas.canonical import Json, Plain, pretty_bytes, sha256_bytes, write_atomic, writing
from ...schemas.plain_files import json_lines, read_plain
from ...schemas.text import counted, slug
from .bank import (
    BANK,
    CANDIDATES,
    CUTOUT,
    ENTITY,
    EPISODE,
    LABELLED,
    PANORAMA,
    PORTRAIT,
    VIEWS,
    BankEntry,
    BankEpisode,
    EntityRecord,
    EpisodeRecord,
    HowMade,
    read_bank,
    read_record,
)
from .candidates import DrawSettings
from .pictures import (
    Subject,
    bounds_of,
    check_cut,
    check_labels,
    cut_by_colour,
    cut_by_mask,
    labelled,
    opened_rgb,
    opened_rgba,
    panorama_of,
    png_bytes,
    rgb_of,
    thirds_of,
)
from .references import ENTITIES, ReferenceSettings
from .scripts import BOXES, EPISODES, OUTPUTS, MemoryScript, classify_by_rules

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...engine.hooks import Reporter


# -- Writing the bank of a finished run, and leaving in it what a person put there
#
# A file whose content is not what its ``entity.json`` says is a person's; so is one that it does not name.
# Such files stay, and only what follows from them is made again: the cut-out of a portrait, the labelled
# picture, the thirds of a panorama. An entity whose record is ``locked`` stays as it is but for these.

GIVEN = (PORTRAIT, CUTOUT, PANORAMA)
"""Files that a person may put in the place of ours."""
PERSON = "person"
_AGAIN = "run the same command again: what the run's journal holds is not paid for twice"
_OPAQUE = 128


def entity_folder(kind: str, name: str) -> str:
    """Return the folder of an entity: its type and name in ASCII; a name that loses letters gets a hash.

    >>> entity_folder("object", "the red cup")
    'object-the_red_cup'
    """
    joined = name.replace(" ", "_")
    plain = slug(joined)
    if plain != joined or "_" in name:
        plain = f"{plain[:40]}-{sha256_bytes(name.encode('utf-8'))[:8]}".lstrip("-")
    return f"{kind}-{plain}"


def episode_folder(episode_id: str) -> str:
    """Return the folder of an episode: its id, or what is left of it in ASCII, with a hash."""
    plain = slug(episode_id)
    return plain if plain == episode_id else f"{plain[:40]}-{sha256_bytes(episode_id.encode())[:8]}"


@dataclass(frozen=True)
class OnDisk:
    """What a folder of an entity holds already."""

    record: EntityRecord | None  # its record; None where there is none
    changed: Mapping[str, bytes]  # files that a person put there, with their bytes

    @property
    def kept(self) -> bool:
        """Whether a person saw to the picture, so that nobody is asked for another."""
        return bool(self.changed) or (self.record is not None and self.record.locked)


def look_at(folder: Path) -> OnDisk:
    """Return what a person changed in the folder of an entity."""
    if not (folder / ENTITY).is_file():
        return OnDisk(None, {})
    problems: list[UserError] = []
    record = read_record(folder, problems)
    if record is None:
        raise InputError(problems)
    changed = {}
    for name in GIVEN:
        path = folder / name
        if not path.is_file():
            continue
        data = read_plain(path)
        if name in record.by_person or sha256_bytes(data) != record.files.get(name):
            opened_rgba(data, str(path))
            changed[name] = data
    return OnDisk(record, changed)


def kept_entities(run: Path) -> tuple[str, ...]:
    """Return the entities of a run's bank that a person saw to, as ``episode/type:name``, sorted."""
    kept = []
    for path in sorted((run / BANK).glob(f"*/*/{ENTITY}")):
        seen = look_at(path.parent)
        if seen.kept and seen.record is not None:
            record = seen.record
            kept.append(f"{record.episode_id}/{record.type}:{record.name}")
    return tuple(sorted(kept))


def write_bank(run: Path) -> None:
    """Write the bank of a finished run, or bring it up to date.

    Of an episode that the run no longer has, the entities stay, and only its list of them goes.
    """
    source = run / ENTITIES
    if not source.is_file():
        return
    rows: dict[str, list[Json]] = {}
    for row in json_lines(source):
        rows.setdefault(row["record"]["episode_id"], []).append(row)
    with writing(run / BANK, "free the disk, or correct the rights", what="the bank"):
        for episode_id, listed in rows.items():
            _write_episode(run, episode_id, listed)
        for path in (run / BANK).glob(f"*/{EPISODE}"):
            if path.parent.name not in map(episode_folder, rows):
                path.unlink()


def _write_episode(run: Path, episode_id: str, rows: list[Json]) -> None:
    folder = run / BANK / episode_folder(episode_id)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: row["episode"]["place"])
    names = []
    for row in ordered:
        name = entity_folder(row["record"]["type"], row["record"]["name"])
        names.append(name)
        (folder / name).mkdir(exist_ok=True)
        _write_entity(run, folder / name, row)
    about = {key: value for key, value in ordered[0]["episode"].items() if key not in ("place", "labels")}
    record = EpisodeRecord.model_validate({**about, "entities": names})
    _put(folder / EPISODE, pretty_bytes(record.as_json()))


def _write_entity(run: Path, folder: Path, row: Json) -> None:
    seen = look_at(folder)
    made = EntityRecord.model_validate(row["record"])
    record = made
    if seen.record is not None and (seen.kept or row["kept"]):
        # What is known of the script is as it is now; what is known of the picture stays.
        about = ("label", "owner", "parts", "first_shot", "description", "described_by")
        record = seen.record.model_copy(update={name: getattr(made, name) for name in about})
        files = {
            name: data for name in (*GIVEN, CANDIDATES)
            if (data := _read(folder / name)) is not None
        }  # fmt: skip
    else:
        files = {name: kept_bytes(run / STORE, file, fix=_AGAIN) for name, file in row["pictures"].items()}
    if seen.changed:
        record = _by_person(record, seen.changed)
    files, record = _derived(files, record, frozenset(seen.changed), labels=row["episode"]["labels"])
    record = record.model_copy(
        update={"files": {name: sha256_bytes(data) for name, data in sorted(files.items())}}
    )
    for name in (LABELLED, CUTOUT, CANDIDATES, *(f"{view}.png" for view in VIEWS)):
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        _put(folder / name, data)
    _put(folder / ENTITY, pretty_bytes(record.as_json()))


def _by_person(record: EntityRecord, changed: Iterable[str]) -> EntityRecord:
    """Return the record of an entity whose picture a person put there, without what a generator said."""
    gone: dict[str, Any] = dict.fromkeys(
        ("prompt", "prompt_by", "model", "seed", "round", "candidate", "chosen_because", "licence", "cropped")
    )
    if record.by_person:  # its record says so already, and may have been completed by hand
        gone = {}
    update = {"status": "verified", "reason": None, "verified_by": PERSON, "checks": (), "owner": None}
    return record.model_copy(
        update={**gone, **update, "by_person": tuple(sorted({*record.by_person, *changed}))}
    )


def _derived(
    files: dict[str, bytes], record: EntityRecord, changed: frozenset[str], *, labels: bool
) -> tuple[dict[str, bytes], EntityRecord]:
    """Return the files with those that follow from others, and the record with what these tell."""
    if PANORAMA in files:
        panorama = panorama_of(opened_rgb(files[PANORAMA], PANORAMA))
        files |= {f"{view}.png": png_bytes(third) for view, third in thirds_of(panorama).items()}
        return files, record
    if PORTRAIT in files and PORTRAIT in changed and CUTOUT not in changed:
        files[CUTOUT], record = _cut_again(files[PORTRAIT], record)
    if CUTOUT in files and (changed or record.bounds is None):
        cut = opened_rgba(files[CUTOUT], CUTOUT)
        record = record.model_copy(update={"bounds": _bounds(cut)})
    shown = CUTOUT if CUTOUT in files else PORTRAIT
    if labels and shown in files:
        subject: Image = opened_rgba(files[shown], shown)
        files[LABELLED] = png_bytes(labelled(subject, record.name))
    else:
        files.pop(LABELLED, None)
    return files, record


def _cut_again(portrait: bytes, record: EntityRecord) -> tuple[bytes, EntityRecord]:
    """Return the cut-out of a person's portrait: by its own opacity, else by the key's colour."""
    import numpy as np

    whole = opened_rgba(portrait, PORTRAIT)
    opaque = np.asarray(whole.getchannel("A")) >= _OPAQUE
    if not opaque.all():
        cut = cut_by_mask(whole.convert("RGB"), opaque, PERSON)
        return png_bytes(whole), record.model_copy(update={"segmenter": PERSON})
    if record.key_colour is None:
        cut = cut_by_mask(whole.convert("RGB"), opaque, PERSON)
    else:
        cut = cut_by_colour(whole.convert("RGB"), rgb_of(record.key_colour))
    checks = check_cut(cut, Subject(record.type, record.name), DrawSettings().limits)
    return png_bytes(cut.image), record.model_copy(update={"checks": checks, "segmenter": cut.by})


def _bounds(cut: "Image") -> tuple[int, int, int, int] | None:
    import numpy as np

    return bounds_of(np.asarray(cut.getchannel("A")) >= _OPAQUE)


def _read(path: Path) -> bytes | None:
    return read_plain(path) if path.is_file() else None


def _put(path: Path, data: bytes) -> None:
    """Write a file unless it has this content."""
    if _read(path) != data:
        write_atomic(path, [data])


# -- The bank as one page, a wall of entities: each with its picture, what it was chosen from, and why

PAGE = "bank.html"
MOST = 400
"""Entities with a picture that a page shows; the others are listed."""
_SIDE, _WIDE = 300, 900
STATUSES = {
    "verified": "verified", "unverified": "not verified", "part_of": "part of another picture",
    "text_only": "words alone", "failed": "no picture",
}  # fmt: skip
"""Status of an entity -> how the page says it."""
_SHOWN = (LABELLED, PANORAMA, CUTOUT, PORTRAIT)


@dataclass(frozen=True, slots=True)
class Hung:
    """An entity on the wall."""

    entry: BankEntry  # what the bank has of it
    picture: Frame  # its picture, small
    grid: Frame | None  # the candidates of the try that it was taken from, small; None where there were none
    tries: tuple[str, ...]  # one line for each try: ground, what was chosen, what failed
    calls: str  # how many questions it took

    @property
    def status(self) -> str:
        return STATUSES[self.entry.record.status]

    @property
    def mark(self) -> str:
        """Class of the mark that shows its status."""
        marks = {"verified": "yes", "unverified": "no", "failed": "no"}
        return marks.get(self.entry.record.status, "neither")


@dataclass(frozen=True, slots=True)
class HungEpisode:
    """An episode on the wall: its entities with pictures, those without, and how many are not shown."""

    episode: BankEpisode
    hung: tuple[Hung, ...]
    others: tuple[BankEntry, ...]
    more: int


def write_wall(run: Path) -> None:
    """Write the page of a run whose bank is written; none for an empty one."""
    if any((run / BANK).glob(f"*/{EPISODE}")):
        save_page(run / PAGE, wall_of(run))


def wall_of(run: Path) -> str:
    """Return the page of a run."""
    bank = read_bank(run)
    rows = {_key(row["record"]): row for row in json_lines(run / ENTITIES)}
    small, wide = Thumbnails(_SIDE), Thumbnails(_WIDE)
    left, episodes = MOST, []
    for episode in bank.episodes:
        pictured = [entry for entry in episode.entries if entry.record.files]
        shown = pictured[:left]
        left -= len(shown)
        hung = tuple(_hung(entry, rows, small, wide) for entry in shown)
        others = tuple(entry for entry in episode.entries if not entry.record.files)
        episodes.append(HungEpisode(episode, hung, others, len(pictured) - len(shown)))
    style = style_of()
    text: str = template_of("wall.j2", __package__).render(
        style=style, policy=policy_of(style), episodes=episodes,
        facts=_facts([entry for episode in bank.episodes for entry in episode.entries]), counted=counted,
    )  # fmt: skip
    return text


def _key(record: Mapping[str, Json]) -> tuple[str, str, str]:
    return record["episode_id"], record["type"], record["name"]


def _hung(
    entry: BankEntry, rows: Mapping[tuple[str, str, str], Json], small: Thumbnails, wide: Thumbnails
) -> Hung:
    record = entry.record
    row = rows.get((record.episode_id, record.type, record.name))
    file = next((path for name in _SHOWN if (path := entry.file(name)) is not None), None)
    maker = wide if record.type == "location" else small
    grid = entry.file(CANDIDATES)
    calls = ", ".join(counted(count, name) for name, count in record.calls.items() if count)
    return Hung(
        entry, maker.frame(file, record.name), None if grid is None else wide.frame(grid, record.name),
        tuple(_tries(row)), calls,
    )  # fmt: skip


def _tries(row: Json | None) -> Sequence[str]:
    """Return a line for each try at a picture."""
    lines = []
    for number, made in enumerate([] if row is None else row["tries"], 1):
        ground = "" if made["key"] is None else f" on {made['key']}"
        count = sum(candidate["file"] is not None for candidate in made["candidates"])
        asked = counted(len(made["candidates"]), "picture")
        if made["chosen"] is None:
            outcomes = Counter(candidate["outcome"] for candidate in made["candidates"])
            result = ", ".join(f"{some} {outcome}" for outcome, some in outcomes.items())
        else:
            failed = [f"{check['code']} ({check['note']})" for check in made["checks"]
                      if check["passed"] is False]  # fmt: skip
            result = f"number {made['chosen']['number']} taken: {made['chosen']['why']}; " + (
                "passed" if made["passed"] else f"failed {'; '.join(failed) or 'the check'}"
            )
        lines.append(f"Try {number}{ground}: {asked}, {count} made; {result}")
    return lines


def _facts(entries: Sequence[BankEntry]) -> dict[str, str]:
    statuses = Counter(entry.record.status for entry in entries)
    calls: Counter[str] = Counter()
    for entry in entries:
        calls.update(entry.record.calls)
    facts = {"Entities": f"{len(entries):,}"}
    facts |= {text.capitalize(): f"{statuses[name]:,}" for name, text in STATUSES.items() if statuses[name]}  # type: ignore[index]
    by_hand = sum(bool(entry.record.by_person) for entry in entries)
    locked = sum(entry.record.locked for entry in entries)
    facts |= {"From a person": f"{by_hand:,}"} if by_hand else {}
    facts |= {"Locked": f"{locked:,}"} if locked else {}
    facts |= {f"Asked: {name}": f"{count:,}" for name, count in calls.items() if count}
    return facts


# -- The run that builds a bank of entities

# -- How many questions a bank takes: at least, if all passes at once, and at most


@dataclass(frozen=True, slots=True)
class MemoryBudget(Plain):
    """What a build asks."""

    episodes: int  # how many
    characters: int  # scheduled ones, each with a portrait
    locations: int  # each with a panorama
    objects: int  # all of them
    alone: int  # objects with a picture of their own, as rules classify them
    kept: int  # entities that a person saw to; nobody is asked about these
    texts: int  # questions about texts: objects, styles, prompts
    pictures: int  # pictures if all pass at once
    looks: int  # questions about pictures then
    most_pictures: int  # pictures if nothing ever passes
    most_looks: int  # questions about pictures at most, whatever happens

    def lines(self) -> list[str]:
        lines = [
            f"{counted(self.episodes, 'episode')}: {counted(self.characters, 'character')},"
            f" {counted(self.locations, 'location')}, {counted(self.objects, 'object')}"
            f" ({self.alone:,} stand alone, by rules)"
        ]
        if self.kept:
            lines.append(f"{counted(self.kept, 'entity')} left as a person made them")
        if self.texts or self.pictures:
            lines.append(
                f"questions about texts: {self.texts:,}; pictures: {self.pictures:,} if all pass at once,"
                f" at most {self.most_pictures:,}; questions about pictures: {self.looks:,}, at most"
                f" {self.most_looks:,}"
            )
        return lines


def budget_of(
    scripts: Sequence[MemoryScript],
    drawing: DrawSettings,
    listing: ReferenceSettings,
    *,
    agent: bool,
    asks_style: bool,
) -> MemoryBudget:
    kept = set(listing.kept)
    counts = {"character": 0, "location": 0, "object": 0, "alone": 0, "kept": 0}
    portraits = panoramas = 0
    for script in scripts:
        for entity in script.entities:
            counts[entity.type] += 1
            alone = entity.type == "object" and classify_by_rules(entity, script).owner is None
            counts["alone"] += alone
            if f"{script.episode_id}/{entity.key}" in kept:
                counts["kept"] += 1
            elif entity.type == "location":
                panoramas += 1
            elif entity.type == "character" or alone:
                portraits += 1
    drawn = drawing.model is not None
    if not drawn:
        portraits = panoramas = 0
    tries = drawing.retries + 1 if drawing.verify else 1
    pictures = portraits * drawing.candidates + panoramas
    viewed = drawn and drawing.viewer is not None
    looks = portraits * ((drawing.candidates > 1) + drawing.verify) if viewed else 0
    return MemoryBudget(
        episodes=len(scripts), characters=counts["character"], locations=counts["location"],
        objects=counts["object"], alone=counts["alone"], kept=counts["kept"],
        texts=agent * (counts["object"] + (portraits + panoramas if drawn else 0))
        + asks_style * len(scripts),
        pictures=pictures, looks=looks, most_pictures=pictures * tries, most_looks=looks * tries,
    )  # fmt: skip


# -- The run that builds a bank of entities

MEMORY = "memory"
"""Kind of these runs."""
STAGES = (
    "scripts:load_scripts", "scripts:classify_objects", "scripts:infer_style", "references:list_references",
    "candidates:write_prompts", "candidates:draw_references", "references:crop_references",
)  # fmt: skip
PIPELINE = Pipeline(
    name=MEMORY,
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__package__}.references:finish",
    final_fields=("episode", "reference", "prompt", "drawn", "cropped"),
    identity=f"{__package__}.scripts:identity",
)
ASKING = ("classify_objects", "infer_style", "write_prompts")
"""The stages that ask the agent about texts."""
BY_RULES = "rules"
"""In the place of a model: nobody is asked."""


@dataclass(frozen=True, slots=True)
class MemoryOptions(RunOptions):
    """How to build a bank of entities. What every run may choose comes as keywords.

    Attributes:
        image: model that makes the pictures, such as ``image:openai:gpt-image-2``.
        agent: chat model that classifies objects, chooses the style and writes prompts [rules do].
        viewer: chat model that sees pictures, chooses the best candidate and checks it; ``rules`` for nobody
            [the agent].
        segmenter: model that cuts subjects out, such as ``sam2.1-hiera-tiny`` [the ground's colour does].
        candidates: pictures of each portrait to choose from [5].
        retries: further grounds for a portrait that does not pass: magenta, blue, orange [2].
        style: style of all pictures, in words [inferred from the overview].
        without_verification: take the chosen picture as it is.
        text_only: keep descriptions and make no pictures.
        from_outputs: a method's videos, from whose first frames references are cut instead of being made.
        boxes: where entities are in these frames, a line of JSON each [the whole frame].
        licence: under what the pictures may be used, as you know it.
        without_labels: draw no names below portraits.
        episodes: only this episode.
        tier: only episodes of this tier.
        limit: only the first so many episodes.
        device: where a segmenter runs: ``cpu``, ``cuda``, ``mps``, or ``auto`` for the fastest here.
    """

    image: Annotated[str | None, Sets("draw_references.model")] = None
    agent: Annotated[str | None, Sets(*(f"{stage}.model" for stage in ASKING))] = None
    viewer: str | None = None
    segmenter: Annotated[str | None, Sets("draw_references.segmenter")] = None
    candidates: Annotated[int | None, Sets("draw_references.candidates")] = None
    retries: Annotated[int | None, Sets("draw_references.retries")] = None
    style: Annotated[str | None, Sets("infer_style.style")] = None
    without_verification: bool = False
    text_only: bool = False
    from_outputs: Path | None = None
    boxes: Path | None = None
    licence: Annotated[str | None, Sets("draw_references.licence")] = None
    without_labels: bool = False
    episodes: Annotated[tuple[str, ...], Sets("load_scripts.episodes")] = ()
    tier: Annotated[tuple[str, ...], Sets("load_scripts.tier")] = ()
    limit: Annotated[int | None, Sets("load_scripts.limit")] = None
    device: str = "auto"

    @property
    def made(self) -> HowMade:
        """How references come about."""
        return "words" if self.text_only else "outputs" if self.from_outputs is not None else "generated"


def without_models(config: RunConfig) -> RunConfig:
    """Return settings under which nobody is asked."""
    bare: dict[str, dict[str, Any]] = {
        **{name: {"model": None} for name in ASKING},
        "draw_references": {"model": None, "viewer": None},
    }
    stages = {
        name: settings.model_copy(update=bare.get(name, {})) for name, settings in config.stages.items()
    }
    return replace(config, stages=stages, models={})


def tell_memory(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a new run makes and about what they cost, or what it has cost so far."""
    tell_plan(request, reporter, without_models)


def after(run: Path) -> None:
    """Write the bank of a run and its page, once the entities are known."""
    if (run / ENTITIES).is_file():
        write_bank(run)
        write_wall(run)


RUN = RunKind(PIPELINE, tell_memory, after)
"""How a bank is built; the page of a run is :data:`.wall.PAGE`."""


def memory_request(episodes: Path | str, out: Path | str, options: MemoryOptions) -> RunRequest:
    _check_options(options)
    kept = kept_entities(Path(out))
    given: dict[str, object] = {
        "list_references.made": options.made, "list_references.kept": list(kept),
        # An entity whose model cannot be reached is an item that is run again; no share of the others is
        # too small to go on with.
        "run.threshold": 0.0,
    }  # fmt: skip
    viewer = options.viewer if options.viewer is not None else options.agent
    if viewer is not None and viewer != BY_RULES:
        given["draw_references.viewer"] = viewer
    if options.without_verification:
        given["draw_references.verify"] = False
    if options.without_labels:
        given["list_references.labels"] = False
    if options.segmenter is not None:
        given["draw_references.device"] = device_named(options.device)
    sources = [Source(EPISODES, Path(episodes))]
    if options.from_outputs is not None:
        sources.append(Source(OUTPUTS, Path(options.from_outputs)))
    if options.boxes is not None:
        sources.append(Source(BOXES, Path(options.boxes)))
    request = options.request(PIPELINE, out, sources, setting_texts(given))
    config = request.config if options.made == "generated" else _words_alone(request.config)
    _check_drawing(config, options)
    return replace(request, config=pinned(config))


def _check_options(options: MemoryOptions) -> None:
    if options.text_only and options.from_outputs is not None:
        raise ConfigError(
            "--text-only", what="without pictures, nothing is taken from outputs", fix="leave out one of both"
        )
    if options.boxes is not None and options.from_outputs is None:
        raise ConfigError(
            "--boxes", what="boxes say where entities are in outputs, and none are named",
            fix="add --from-outputs FOLDER",
        )  # fmt: skip


def _words_alone(config: RunConfig) -> RunConfig:
    """Return settings with no generator and no viewer: nothing is drawn."""
    update = {"model": None, "viewer": None}
    stages = {**config.stages, "draw_references": config.stages["draw_references"].model_copy(update=update)}
    stages["write_prompts"] = stages["write_prompts"].model_copy(update={"model": None})
    from ...engine.config import models_of

    left = {spec for settings in stages.values() for spec in models_of(settings)}
    return replace(
        config, stages=stages, models={spec: some for spec, some in config.models.items() if spec in left}
    )


def _check_drawing(config: RunConfig, options: MemoryOptions) -> None:
    drawing = config.own("draw_references", DrawSettings)
    if options.made == "generated" and drawing.model is None:
        raise ConfigError(
            "--image", what="no model is named that makes the pictures",
            fix="name one, for example --image image:openai:gpt-image-2, or build --text-only",
        )  # fmt: skip
    if missing := missing_libraries(config):
        raise MissingRequirement(
            "--segmenter", what=f"it cannot run here. Missing: {'; '.join(missing)}",
            fix='pip install "fabula[metrics]", or leave --segmenter out',
        )  # fmt: skip
    check_places(config)


def scripts_chosen(request: RunRequest) -> tuple[MemoryScript, ...]:
    from ...evaluation.entities.episodes import chosen_episodes
    from .scripts import script_of

    whole, _ = read_entity_set(request.of_role(EPISODES)[0], rules=False)
    chosen = chosen_episodes(whole, request.config.own("load_scripts", EpisodeSelection))
    return tuple(script_of(episode.episode_id, episode.script) for episode in chosen.episodes)


def memory_budget(request: RunRequest) -> MemoryBudget:
    """Return how many questions a new build asks: at least, if all passes at once, and at most."""
    drawing = request.config.own("draw_references", DrawSettings)
    listing = request.config.own("list_references", ReferenceSettings)
    asks = bool(request.config.stages["classify_objects"].models())  # type: ignore[attr-defined]
    styled = bool(request.config.stages["infer_style"].models())  # type: ignore[attr-defined]
    return budget_of(scripts_chosen(request), drawing, listing, agent=asks, asks_style=styled)


def estimate_memory(episodes: Path | str, out: Path | str, options: MemoryOptions | None = None) -> CallPlan:
    """Tell what :func:`build_memory` would ask now if all passes at once, and about what that costs."""
    request = memory_request(episodes, out, options or MemoryOptions())
    return plan_calls(request, without_models(request.config))


def build_memory(
    episodes: Path | str,
    out: Path | str,
    options: MemoryOptions | None = None,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Build a bank of entities; a run is continued, and no picture that was made is asked for again.

    The run folder then holds ``entities.jsonl``, the folder ``bank`` and the page ``bank.html``.
    """
    request = memory_request(episodes, out, options or MemoryOptions())
    listing = request.config.own("list_references", ReferenceSettings)
    if listing.labels and listing.made != "words":
        check_labels(
            entity.name for script in scripts_chosen(request)
            for entity in script.entities if entity.type != "location"
        )  # fmt: skip
    check_weights(request.config)
    return RUN.make(request, reporter)


__all__ = [
    "MEMORY", "PAGE", "PIPELINE", "RUN", "MemoryOptions", "build_memory", "estimate_memory", "memory_budget",
    "memory_request",
]  # fmt: skip
