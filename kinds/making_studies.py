"""Making a study with people: a task or a preset, what is drawn, the plan, and what comes of it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.manifest import NAME as RUN
from ..engine.manifest import creation_time
from ..engine.manifest import read_manifest as read_run
from ..errors import ConfigError, InputError, TargetError
from ..models.spec import stand_ins_in
from ..schemas.canonical import Json
from ..schemas.paths import RELEASE
from ..schemas.plain_files import type_reason
from ..schemas.text import quoted
from .evaluations import Owners, owners_among, scored_judgings
from .kind import part
from .registry import kinds
from .verbs import load_stories

if TYPE_CHECKING:
    from ..people.review.folder import Study
    from ..people.review.items import Drawn
    from ..people.review.plan import Plan, Preset, Rules, Seat
    from ..people.review.sources.source import Drawing, DrawOptions, Material, Source
    from ..people.review.task import Task


# -- Studies with people: which source a task draws its items from, and what lies at the path it is given

SOURCES: Mapping[str, Callable[[], "Source"]] = {
    "storyboard_questions": part("people.review.sources.storyboards:QUESTIONS"),
    "storyboards": part("people.review.sources.storyboards:BOARDS"),
    "storyboard_pairs": part("people.review.sources.storyboards:PAIRS"),
    "shots": part("people.review.sources.shots:SOURCE"),
    "videos": part("people.review.sources.videos:SOURCE"),
    "appearances": part("people.review.sources.episodes:APPEARANCES"),
    "appearance_pairs": part("people.review.sources.episodes:PAIRS"),
    "answers": part("people.review.sources.answers:SOURCE"),
    "drafts": part("people.audits.form:SOURCE"),
    "records": part("people.review.sources.records:RECORDS"),
    "items": part("people.review.sources.given:SOURCE"),
}
"""What a task may name as ``draws`` -> its source."""


def source_of(task: "Task") -> "Source":
    name = task.card.draws
    if name not in SOURCES:
        raise ConfigError(
            f"task {task.card.id}: draws", expected=f"one of {', '.join(SOURCES)}", found=repr(name),
            fix="name one of them; `items` takes anything that a file describes",
        )  # fmt: skip
    return SOURCES[name]()


def owners_of_draws() -> Owners:
    """Return whose options those of what is drawn for a study are that not all kinds have."""
    drawn = [(source, set(chain(*source.takes.values()))) for source in (load() for load in SOURCES.values())]
    having: list[tuple[str, Sequence[str]]] = []
    for judging, scoring in scored_judgings():
        kind = next(kind for kind in kinds() if judging in kind.judging)
        known = {kind.name, judging.noun, *kind.imported}
        having.append(
            (scoring.title, [name for source, of in drawn if of & known for name in source.options])
        )
    return owners_among([*having, *((source.title, source.options) for source, names in drawn if not names)])


def draw_items(task: "Task", path: Path, options: "DrawOptions | None" = None) -> "Drawing":
    """Return the items of a study, and what they were drawn from."""
    from ..people.review.sources.source import DrawOptions

    source, material = source_of(task), material_of(path, options or DrawOptions())
    source.check(task.card.id, material)
    return source.draw(material)


def material_of(path: Path, options: "DrawOptions") -> "Material":
    """Return what lies at a path: an evaluation, a release, a run, a folder or a file.

    The first that fits.
    """
    from ..evaluation.archive.archive import EVALUATION, read_manifest
    from ..people.review.sources.source import Material
    from ..releases.loading import require_release

    if (path / EVALUATION).is_file():
        return Material(path, "evaluation", read_manifest(path).kind, options, load_stories)
    if (path / RELEASE).is_file():
        return Material(path, "release", require_release(path), options, load_stories)
    if (path / RUN).is_file():
        return Material(path, "run", read_run(path).kind, options, load_stories)
    if not path.exists():
        fix = "give an evaluation, a release, a run or a file"
        raise InputError.one(str(path), what="there is nothing at this path", fix=fix)
    return Material(path, "folder" if path.is_dir() else "file", "", options, load_stories)


# --

HOURS = 3600
REPEATS, CHECKS = 2, 3
"""Items that each seat is shown twice, and gold items of each, where neither a paper nor the user says."""
GUESSED_SECONDS = 30
"""Seconds that an item takes where nobody knows; a first guess for the workload, and named as one."""


@dataclass(frozen=True)
class Made:
    """A study that was made, or would be."""

    folder: Path  # its folder
    document: Mapping[str, Any] = field(repr=False)  # what it has: items, seats, votes, protocol

    def as_json(self) -> dict[str, Json]:
        return {"folder": str(self.folder), **self.document}

    def lines(self) -> Iterator[str]:
        made, seats = self.document, self.document["seats"]
        yield f"task: {made['task']}"
        yield from _care_lines(made["care"], made["preset"])
        yield f"items: {made['items']:,} of {made['stories']:,} stories; votes: {made['votes']:,}"
        each = (
            f"{seats['least']}" if seats["least"] == seats["most"] else f"{seats['least']} to {seats['most']}"
        )
        yield f"seats: {seats['count']:,}, each with {each} items, training: {made['training']}"
        hours = made["votes"] * GUESSED_SECONDS / HOURS
        yield f"work: about {hours:.1f} hours in all, if an item takes {GUESSED_SECONDS} s (a guess)"
        for name, (least, most) in made["methods"].items():
            yield f"  {name}: {least} to {most} items of each seat"
        yield from (f"short: {line}" for line in made["short"])
        if made["training_wanted"] > made["training"]:
            wanted = made["training_wanted"]
            yield f"note: the source of the preset has about {wanted} training items: --training FILE"
        if made["protocol"] is None:
            yield "nothing was written (--dry-run)"
        else:
            yield f"protocol: {made['protocol']}"
            yield f"next: fabula review invite {quoted(self.folder)} --count {seats['count']}"


def _care_lines(care: Mapping[str, Any], preset: str) -> Iterator[str]:
    from ..people.review.protocol import Floor

    floor = "none" if care["floor"] is None else Floor.model_validate(care["floor"]).line()
    yield f"least time of a vote: {floor}"
    lacking = f"none, as in the paper of {preset}" if preset else "none, seats have no room for any"
    unknown = lacking if care["has_gold"] else "none (--gold FILE gives some)"
    yield f"repeated items of each seat: {care['repeats'] or lacking}; gold items: {care['gold'] or unknown}"


@dataclass(frozen=True)
class Wanted:
    """What a study is to be."""

    task: str | None = None  # what is asked; None: the preset says
    preset: str | None = None  # a published study
    name: str | None = None  # short name; the folder's, if None
    title: str | None = None  # what reviewers read at the top; the task's, if None
    training: Path | None = None  # file of practice items
    gold: Path | None = None  # file of items with known answers
    rules: Mapping[str, Any] = field(default_factory=dict)  # rules of exclusion: name -> value
    settings: Mapping[str, Any] = field(default_factory=dict)  # other fields of the protocol: name -> value
    simulated: bool = False  # whether programs take the part of reviewers


def make(
    folder: Path,
    source: Path,
    given: Mapping[str, Any],
    wanted: Wanted,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Made:
    from ..people.review.folder import StudyPlan, deal, make_study
    from ..people.review.plan import Preset, load_preset
    from ..people.review.protocol import PROTOCOL, Floor
    from ..people.review.task import load_task

    if wanted.task is None and wanted.preset is None:
        raise ConfigError(
            "review init", what="what is asked is not said",
            fix="give --task or --preset; fabula review tasks lists them",
        )  # fmt: skip
    if not dry_run and (folder / PROTOCOL).is_file():
        status = f"fabula review status {quoted(folder)}"
        fix = f"go on with it (`{status}` says how it stands), or give a new folder"
        raise TargetError(str(folder), what="a study is there already", fix=fix)
    base = load_preset(wanted.preset) if wanted.preset else Preset(name="", task=str(wanted.task), source="-")
    name = wanted.task or base.task
    task = load_task(name)
    drawing = draw_items(task, source, base.chosen(_fields_of("DrawOptions", given)))
    training, checks = _marked(wanted, drawing, task)
    items = drawing.without((*training, *checks))
    chosen = _fields_of("Plan", given)
    if task.card.apart:
        chosen.setdefault("apart", True)
    if not checks:
        chosen.setdefault("checks", 0)
    plan = _careful(base, chosen, items, checks)
    made_up = {"stand_ins": makers} if (makers := stand_ins_in(source)) else {}  # reviewers read it first
    study_plan = StudyPlan(
        name=wanted.name or folder.name, title=wanted.title or "", task=name, plan=plan,
        rules=_rules(base, wanted.rules), created_at=creation_time(None),
        source={**drawing.source, **made_up},
        settings={
            "floor": Floor().as_json(), **base.protocol, **wanted.settings, "simulated": wanted.simulated
        },
    )  # fmt: skip
    study = None if dry_run else make_study(folder, study_plan, items, training, checks, progress)
    dealt = (items, deal(items, checks, plan))
    care = {
        "floor": study_plan.settings["floor"], "repeats": plan.repeats, "gold": plan.checks,
        "has_gold": bool(checks),
    }  # fmt: skip
    document = {**_document(task, base, drawing, dealt, len(training), study), "care": care}
    return Made(folder, document)


def _careful(
    base: "Preset", chosen: Mapping[str, Any], items: "Sequence[Drawn]", checks: "Sequence[Drawn]"
) -> "Plan":
    """Return the plan; without a preset it has repeats and gold items, as many as its seats have room for."""
    from ..people.review.folder import deal

    if base.name:
        return base.planned(chosen)
    usual = {"repeats": REPEATS, "checks": min(CHECKS, len(checks))}
    while True:
        try:
            plan = base.planned({**usual, **chosen})
            deal(items, checks, plan)
        except ConfigError as error:
            name = error.where
            if name in chosen or not usual.get(name):
                raise
            usual[name] -= 1
        else:
            return plan


def _marked(
    wanted: Wanted, drawing: "Drawing", task: "Task"
) -> "tuple[tuple[Drawn, ...], tuple[Drawn, ...]]":
    """Return the training and the check items of both files; an item of both is one thing only."""
    from ..people.review.sources.given import marked

    training: dict[str, Drawn] = {}
    checks: dict[str, Drawn] = {}
    for path in (wanted.training, wanted.gold):
        taught, known = marked(path, drawing, task) if path is not None else ((), ())
        training |= {each.named: each for each in taught}
        checks |= {each.named: each for each in known}
    if twice := sorted(training[name].about for name in training.keys() & checks.keys()):
        raise ConfigError(
            "--gold", what=f"practised before they are checked: {', '.join(twice[:5])}",
            fix="name each item in one of the two files",
        )  # fmt: skip
    return tuple(training.values()), tuple(checks.values())


def _rules(base: "Preset", given: Mapping[str, Any]) -> "Rules":
    from pydantic import ValidationError

    try:
        return base.ruled(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            f"--rule {'.'.join(map(str, first['loc']))}", what=type_reason(first),
            fix=f"rules are {', '.join(type(base.ruled({})).model_fields)}",
        ) from error  # fmt: skip


def _fields_of(which: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from ..people.review.plan import Plan
    from ..people.review.sources.source import DrawOptions

    names = {each.name for each in fields(Plan if which == "Plan" else DrawOptions)}
    return {name: value for name, value in given.items() if name in names}


def _document(
    task: "Task",
    preset: "Preset",
    drawing: "Drawing",
    dealt: "tuple[Sequence[Drawn], Sequence[Seat]]",
    training: int,
    study: "Study | None",
) -> dict[str, Any]:
    items, seats = dealt
    asked = [[place.item for place in seat.places if not place.repeat and not place.check] for seat in seats]
    sizes = [len(held) for held in asked]
    shown = {each.named: each.methods for each in items}
    counts = [Counter(method for item in held for method in shown[item]) for held in asked]
    methods = sorted({method for each in items for method in each.methods})
    return {
        "task": task.label,
        "preset": preset.name,
        "items": len(items),
        "stories": len({each.story for each in items}),
        "votes": sum(sizes),
        "seats": {"count": len(sizes), "least": min(sizes, default=0), "most": max(sizes, default=0)},
        "training": training,
        "training_wanted": preset.training,
        "methods": {
            method: [min(count[method] for count in counts), max(count[method] for count in counts)]
            for method in methods
        },
        "short": list(drawing.short),
        "protocol": None if study is None else study.protocol.sha256,
    }
