"""A study as data: ``study.toml``, read and checked, and where everything of it lies in its folder."""

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ...engine.calls import model_uses
from ...engine.journal_file import NAME as JOURNAL
from ...engine.manifest import NAME as MANIFEST
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, setting_texts
from ...engine.survey import surveyed
from ...errors import BudgetStop, ConfigError
from ...evaluation.judging.packets import EVIDENCE, Evidence
from ...evaluation.judging.settings import FOLDERS, PromptSet
from ...evaluation.katha.load_items import item_id
from ...evaluation.katha.pipeline import PIPELINE as JUDGING
from ...evaluation.katha.requests import STAGE_OF, EvaluateOptions, evaluate_katha
from ...evaluation.outputs.storyboards import check_outputs
from ...evaluation.recoverability.matching import Common
from ...models.spec import parse_spec
from ...pages.grid import Grid, Tabular
from ...people.audits.compare import read_records
from ...releases.loading import Release, load
from ...schemas.canonical import Json, digest, plain_parts, pretty_bytes, write_atomic
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import MISSHAPEN, explaining, read_json, read_plain, type_reason
from ...schemas.text import tallied
from ...schemas.values import Own
from ..compass.judging import RULES
from ..pictures import (
    GENERATIONS,
    ORDERS,
    GenerateOptions,
    Order,
    PanelOrder,
    Plan,
    check_panels,
    generate,
    generations_of,
    place_outputs,
    plan_named,
    write_orders,
)
from ..pictures import PIPELINE as GENERATING

if TYPE_CHECKING:
    from ...engine.hooks import Reporter

SEEDS = (42, 123, 2026)
"""Generation seeds of the KathaTrace paper (Table 44)."""
MASTER_SEED = 42
SETTINGS_OF_MODELS = "models"
"""Section of a study that is no part of it: settings of models, as in ``fabula.toml``."""

GENERATION, OUTPUTS, TRUTH = "generation", "outputs", "truth"
"""In a study's folder: the run that made the pictures; a folder of pictures for each method; what drawn
pictures show as data, a JSON Lines file for each method, which no judge ever sees."""
EVALUATION, COMPASS, EVALUATORS, PLANTED = "evaluation", "compass", "evaluators", "planted"
RELEASES, STORYBOARDS, EVALUATIONS = "releases", "storyboards", "evaluations"
"""The same: the evaluation of all methods; Semantic Compass; other evaluators; planted losses."""
TABLES, PAGE, RESOLVED = "tables", "index.html", "study.json"
"""The same: tables as files; the page; the study as it was read."""


class Closed(Own):
    """A system whose inside nobody can see, for Table 41."""

    name: str = Field(description="Name of the system.")
    version: str | None = Field(default=None, description="Version, as far as the service tells.")
    accessed: str | None = Field(default=None, description="Date of access, YYYY-MM-DD.")
    options: str | None = Field(default=None, description="Options it was used with.")


class Renderer(Own):
    """What turns plans into pictures; or a generator of whole stories, whose storyboards are finished."""

    model: str | None = Field(
        default=None, description="Spec of a model that makes pictures, such as image:openai:gpt-image-2."
    )
    outputs: str | None = Field(
        default=None, exclude_if=lambda folder: folder is None,
        description="Folder of finished storyboards in place of a model, called as the renderer is: a method "
        "without a plan.",
    )  # fmt: skip
    width: int | None = Field(default=None, ge=16, le=8192, description="In pixels [the system's].")
    height: int | None = Field(default=None, ge=16, le=8192, description="The same.")
    steps: int | None = Field(default=None, ge=1, description="Steps of denoising [the system's].")
    negative: str | None = Field(default=None, description="What must not be seen.")
    seeded: bool = Field(default=True, description="Whether it is run once a seed; else once, without one.")
    rewrite: str | None = Field(
        default=None, description="Chat model that writes prompts anew before they are sent; a condition."
    )
    closed: Closed | None = Field(default=None, description="What is known of a closed system.")

    @model_validator(mode="after")
    def _makes_pictures(self) -> Self:
        if (self.model is None) == (self.outputs is None):
            raise ValueError("a renderer has a model that makes pictures, or outputs that it has made")
        if self.model is None:
            how = ("width", "height", "steps", "negative", "rewrite")
            if asked := [name for name in how if getattr(self, name) is not None]:
                raise ValueError(f"{', '.join(asked)}: finished storyboards are not made anew")
            return self
        if parse_spec(self.model).makes != "image":
            raise ValueError(f"{self.model} makes no pictures: the spec of such a model begins with image:")
        if self.rewrite is not None and parse_spec(self.rewrite).makes != "text":
            raise ValueError(f"{self.rewrite} is no chat model, which rewriting needs")
        return self


class CompassPart(Own):
    """Semantic Compass on the candidates of one method."""

    plan: str = Field(description="Plan of the candidates and of bridges.")
    renderer: str = Field(description="Renderer of the candidates and of bridges.")
    tuned_on: str = Field(default="validation", description="Split that weights and thresholds are tuned on.")
    coverage: str = Field(description="Encoder of images and texts for Eq. 25.")
    copies: str = Field(description="Encoder of images for Eq. 26.")
    weakest: Literal["own", "whole"] = Field(
        default="own", description="How the weakest transition is found (Eq. 27)."
    )
    selection_set: str | None = Field(
        default=None,
        description="Whose questions select, so that all of the release's report: rules, or records "
        "[half of the release's].",
    )
    reported_prompts: PromptSet = Field(default="heldout", description="Judges' prompts of the final report.")
    arms: tuple[str, ...] = Field(default=(), description="Controls of Tables 55 and 63 [all].")
    loss: str | None = Field(
        default=None, description="Loss that is planted into the candidates, to see it repaired [none]."
    )


class Plants(Own):
    """Losses planted into the outputs of one method, by which evaluators are measured."""

    method: str = Field(description="The method, PLAN+RENDERER.")
    losses: tuple[str, ...] = Field(default=(), description="Which losses [all that can be planted there].")


class Study(Own):
    """A study: ``study.toml``."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="Name of the study.")
    release: str = Field(description="Release folder, relative to the file, or user/name@tag.")
    drafts: str | None = Field(
        default=None, description="Records that plans are made of: a run of build stories [the release's]."
    )
    split: tuple[str, ...] = Field(default=("public_test",), description="Splits that are reported on.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many stories of each split.")
    plans: tuple[str, ...] = Field(
        default=(), description="Plans; see generation.plans. None where every renderer's outputs are there."
    )
    renderers: dict[str, Renderer] = Field(min_length=1, description="Name -> renderer.")
    seeds: tuple[int, ...] = Field(default=SEEDS, min_length=1, description="Generation seeds.")
    judges: tuple[str, ...] = Field(min_length=1, description="Specs of the judges.")
    prompts: PromptSet = Field(default="main", description=f"Judges' prompts: {', '.join(FOLDERS)}.")
    conditions: tuple[Evidence, ...] = Field(
        default=EVIDENCE, description="Evidence that judges are shown; without text there is no gap."
    )
    matcher: str = Field(default="accepted", description="How answers are compared with accepted ones.")
    common: Common = Field(
        default="every-seed", description="Which questions methods are compared on: every-seed, or majority."
    )
    match_with: tuple[str, ...] = Field(
        default=(), description="Models that compare answers, too: a chat model, embedding:SPEC."
    )
    people: str | None = Field(
        default=None, description="People's answers, as fabula calibrate reads them [none yet]."
    )
    labelled: str | None = Field(
        default=None,
        description="Answers that people called right or wrong, or votes on them, for Table 61 [none yet].",
    )
    compass: CompassPart | None = Field(default=None, description="Semantic Compass.")
    evaluators: tuple[str, ...] = Field(default=(), description="Evaluators to be compared with.")
    question_writer: str | None = Field(
        default=None, description="Chat model that writes the questions of evaluators that allow it [rules]."
    )
    plants: Plants | None = Field(default=None, description="Planted losses.")

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        compass, plants = self.compass, self.plants
        asked = [name for name, renderer in self.renderers.items() if renderer.model is not None]
        if bool(self.plans) != bool(asked):
            lacks = "plans for its renderers" if asked else "renderer with a model for its plans"
            raise ValueError(f"the study has no {lacks}")
        if compass is not None and compass.renderer in self.renderers and compass.renderer not in asked:
            raise ValueError(f"compass needs pictures of {compass.renderer}, whose storyboards are finished")
        if compass is not None and (compass.plan not in self.plans or compass.renderer not in self.renderers):
            raise ValueError("compass names a plan or renderer that the study does not have")
        if compass is not None and compass.tuned_on in self.split:
            raise ValueError(f"compass is tuned on {compass.tuned_on}, which the study reports on")
        if plants is not None and plants.method not in self.methods():
            raise ValueError(f"plants name {plants.method}, and the methods are {', '.join(self.methods())}")
        return self

    @property
    def people_file(self) -> Path | None:
        return None if self.people is None else Path(self.people)

    @property
    def labelled_file(self) -> Path | None:
        return None if self.labelled is None else Path(self.labelled)

    def sha256(self) -> str:
        """Return the hash of what the study says."""
        return digest(self.model_dump(mode="json"))

    def methods(self) -> dict[str, tuple[str, str]]:
        """Return method -> its plan and renderer, in order; finished ones, whose plan is "", come last."""
        return cells_of(self.plans, self.renderers)

    def finished(self) -> dict[str, Path]:
        """Return method -> its folder of outputs, of those that are not made by the study."""
        return {
            name: Path(renderer.outputs)
            for name, renderer in self.renderers.items()
            if renderer.outputs is not None
        }


def cells_of(plans: Sequence[str], renderers: Mapping[str, Renderer]) -> dict[str, tuple[str, str]]:
    """Return method -> its plan and renderer, of plans and renderers in their order."""
    planned = [name for name, renderer in renderers.items() if renderer.outputs is None]
    cells = {method_name(plan, name): (plan, name) for plan in plans for name in planned}
    return cells | {name: ("", name) for name in renderers if name not in planned}


def method_name(plan: str, renderer: str) -> str:
    """Return what the outputs of a plan and a renderer are called; those without a plan as the renderer."""
    return f"{plan}+{renderer}" if plan else renderer


def read_study(path: Path) -> tuple[Study, dict[str, Any]]:
    """Return the study in a file, and the settings of models that stand beside it."""
    with explaining(
        path, "see docs/experiments.md, or begin with examples/study.toml",
        what="the study cannot be read", kind=ConfigError,
    ):  # fmt: skip
        document = tomllib.loads(read_plain(path, follow=True).decode("utf-8"))
    models = document.pop(SETTINGS_OF_MODELS, {})
    study = document.pop("study", None)
    if not isinstance(study, Mapping):
        fix = "begin with [study], as in examples/study.toml"
        raise ConfigError(str(path), what="there is no section [study]", fix=fix)
    try:
        return Study.model_validate({**study, **document}), dict(models)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "study"
        raise ConfigError(
            f"{path} {key}", what=type_reason(first),
            fix="change the value; docs/experiments.md lists the keys",
        ) from error  # fmt: skip


def resolved(study: Study) -> dict[str, Json]:
    return {"study": study.model_dump(mode="json"), "sha256": study.sha256()}


# -- From a study to orders: which storyboards its cells need, and which cannot be ordered


@dataclass(frozen=True, slots=True)
class Ordered:
    orders: tuple[Order, ...]  # one for each storyboard
    stories: dict[str, tuple[str, ...]]  # split -> ids of the stories that are used of it
    # plan -> stories that it cannot be made of, such as those without gold for the oracle
    unusable: dict[str, tuple[str, ...]]

    @property
    def pictures(self) -> int:
        return sum(len(order.panels) for order in self.orders)


def orders_of(study: Study, release: Release) -> Ordered:
    """Return the orders of every cell, with no question in any prompt."""
    stories = {split: chosen_stories(study, release, split) for split in splits_of(study)}
    planned = _told(study, release)
    orders: list[Order] = []
    unusable: dict[str, tuple[str, ...]] = {}
    for plan_name in study.plans:
        plan = plan_named(plan_name)
        records = [planned[story] for story in _of_plan(study, plan_name, stories)]
        bare = tuple(record.story_id for record in records if not plan.usable(record))
        if bare:
            unusable[plan_name] = bare
        if len(bare) == len(records):
            raise ConfigError(
                f"plan {plan_name}",
                what="it can be made of no story: it needs records whose evidence people accepted",
                fix="leave the plan out, or use a release with gold records",
            )
        for record in records:
            if plan.usable(record):
                orders += _of_story(study, plan, record, stories)
    return Ordered(tuple(orders), stories, unusable)


def splits_of(study: Study) -> tuple[str, ...]:
    """Return the splits whose stories are used, those that are reported on first."""
    tuned = () if study.compass is None else (study.compass.tuned_on,)
    return tuple(dict.fromkeys((*study.split, *tuned)))


def chosen_stories(study: Study, release: Release, split: str) -> tuple[str, ...]:
    """Return the ids of the stories of a split that are used, in order."""
    if split not in release.splits:
        there = ", ".join(release.splits)
        raise ConfigError(
            f"split {split}", what=f"the release has none; it has: {there}", fix="use one of them"
        )
    return tuple(record.story_id for record in release.splits[split])[: study.limit]


def _of_plan(study: Study, plan: str, stories: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the stories that any method of a plan is used on."""
    compass = study.compass
    used = [*study.split, *([compass.tuned_on] if compass is not None and compass.plan == plan else [])]
    return [story for split in dict.fromkeys(used) for story in stories[split]]


def _told(study: Study, release: Release) -> dict[str, StoryRecord]:
    """Return story id -> the record that plans are made of."""
    if study.drafts is None:
        return dict(release.by_id)
    drafts = read_records(Path(study.drafts))
    planned = {}
    for story_id, record in release.by_id.items():
        draft = drafts.get(story_id)
        if draft is None or draft.record["story_text"] != record.story_text:
            continue
        planned[story_id] = StoryRecord.model_validate(draft.record).model_copy(
            update={"questions": record.questions}
        )
    missing = sorted(
        story
        for split in splits_of(study)
        for story in chosen_stories(study, release, split)
        if story not in planned
    )
    if missing:
        raise ConfigError(
            f"drafts {study.drafts}", what=f"they have no record with the text of {', '.join(missing[:5])}",
            fix="draft the stories of the release, or leave `drafts` out",
        )  # fmt: skip
    return planned


def _of_story(
    study: Study, plan: Plan, record: StoryRecord, stories: dict[str, tuple[str, ...]]
) -> Iterator[Order]:
    panels = plan.panels(record)
    check_panels(record, plan, panels)
    ordered = tuple(
        PanelOrder(number=number, prompt=panel.prompt, scene=panel.drawn)
        for number, panel in enumerate(panels, start=1)
    )
    reported = any(record.story_id in stories[split] for split in study.split)
    for name, renderer in study.renderers.items():
        if renderer.model is None:
            continue
        compass = study.compass
        is_candidate = compass is not None and (compass.plan, compass.renderer) == (plan.name, name)
        if reported or is_candidate:
            yield from storyboards(
                method_name(plan.name, name), record.story_id, renderer, study.seeds, ordered
            )


def storyboards(
    method: str, story_id: str, renderer: Renderer, seeds: Sequence[int], panels: tuple[PanelOrder, ...]
) -> Iterator[Order]:
    """Yield the order of a story for each seed; one without a seed where the renderer takes none."""
    assert renderer.model is not None, "who makes no pictures has no orders"
    for seed in seeds if renderer.seeded else (None,):
        yield Order(
            method=method, story_id=story_id, seed=seed, model=renderer.model, width=renderer.width,
            height=renderer.height, steps=renderer.steps, negative=renderer.negative,
            rewrite=renderer.rewrite, panels=panels,
        )  # fmt: skip


# -- What every part of a study works with: the study, its release, its folder, the money that is left

LOCAL = (
    *("workers", "pool", "created_at", "retry_failed", "reuse"),
    *("batch", "batch_deadline", "batch_then_single", "limit_share"),
)
"""Options of the command that every run of a study gets."""
FEW = 100
"""Stories times seeds up to which runs work in this process: starting others would take longer."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions(RunOptions):
    """How to run a study. What every run may choose comes as keywords."""


@dataclass(frozen=True)
class Desk:
    """A study at work."""

    study: Study  # what is to be done
    models: Mapping[str, Mapping[str, Any]]  # settings of models that stand in the study's file
    release: Release = field(repr=False)  # what outputs are judged by
    folder: Path  # of the study; runs, outputs and tables lie below it
    # how its runs are executed
    options: ExperimentOptions = field(default_factory=ExperimentOptions, repr=False)
    reporter: "Reporter | None" = field(default=None, repr=False)  # takes the progress

    def run_options(self, folder: Path) -> dict[str, Any]:
        """Return what runs in a folder of the study are executed with, their share of the money included."""
        given = {name: getattr(self.options, name) for name in LOCAL}
        if given["workers"] is None and len(self.reported) * len(self.study.seeds) <= FEW:
            given["workers"] = 0
        limit = self.options.max_cost
        if limit is not None:
            others = self.spent() - spent_below(folder)
            if others >= limit:
                raise BudgetStop(
                    f"stopped at the cost limit: {others:.4f} of {limit:g} USD are spent\n  fix: raise"
                    " --max-cost and give the same command again: finished work is kept, and nothing is asked"
                    " twice"
                )
            given["max_cost"] = limit - others
        return {
            **given,
            "models": {**self.options.models, **self.models},
            "config": self.options.config,
            "settings": self.options.settings,
            "others": self.options.others,
        }

    def spent(self) -> float:
        """Return the USD that all runs of the study have cost, what may have been charged included."""
        return spent_below(self.folder)

    @cached_property
    def reported(self) -> tuple[str, ...]:
        """The ids of the stories that are reported on."""
        return tuple(
            story for split in self.study.split for story in chosen_stories(self.study, self.release, split)
        )

    def outputs(self, method: str) -> Path:
        return self.study.finished().get(method) or self.folder / OUTPUTS / method

    def finished_boards(self) -> dict[str, list[str]]:
        """Return method -> the item of each storyboard that is looked for in its finished outputs."""
        records = [self.release.by_id[story] for story in self.reported]
        boards: dict[str, list[str]] = {}
        for method, folder in self.study.finished().items():
            found = check_outputs(folder, records, known=self.release, decode=False)
            if found.method != method:
                raise ConfigError(
                    f"renderers.{method} outputs", expected=f"outputs of {method}", found=found.method,
                    fix=f"call the renderer {found.method}, or write the method's name into outputs.json",
                )  # fmt: skip
            boards[method] = [
                item_id({"method": method, "story_id": board.unit, "seed": board.seed})
                for board in (*found.valid, *found.invalid)
            ]
        return boards


def spent_below(folder: Path) -> float:
    """Return the USD that the runs in and below a folder have cost so far; 0 where there is none."""
    uses = (use for journal in sorted(folder.rglob(JOURNAL)) for use in model_uses(journal))
    return math.fsum(use.cost + use.uncertain_cost for use in uses)


def open_study(
    file: Path, folder: Path, options: ExperimentOptions, reporter: "Reporter | None" = None
) -> Desk:
    """Return a study ready for work, from its file."""
    study, models = read_study(file)
    placed = _placed(study, file.parent)
    return Desk(placed, models, load(placed.release), folder, options, reporter)


def keep_study(desk: Desk) -> None:
    """Write ``study.json``."""
    path = desk.folder / RESOLVED
    if path.is_file():
        name = _known(path).get("study", {}).get("name")
        if name != desk.study.name:
            raise ConfigError(
                f"--out {desk.folder}", what=f"the folder holds the study {name!r}, not {desk.study.name!r}",
                fix="choose another folder, or the file of that study",
            )  # fmt: skip
    desk.folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [pretty_bytes(resolved(desk.study))])


def reopen_study(folder: Path) -> Desk:
    """Return the study of a folder for looking at it; nothing can be asked from it."""
    document = _known(folder / RESOLVED)
    study = Study.model_validate(document["study"])
    return Desk(study, {}, load(study.release), folder)


def _known(path: Path) -> dict[str, Json]:
    with explaining(
        path.parent, "give the --out of fabula experiment run",
        what="this is no folder of a study", kind=ConfigError, of=MISSHAPEN,
    ):  # fmt: skip
        return dict(read_json(path, follow=True))


def _placed(study: Study, beside: Path) -> Study:
    """Return a study whose folders are found from here: in its file they are relative to it."""
    from ...releases.hub.client import looks_like_reference

    changes: dict[str, object] = {}
    if not looks_like_reference(study.release):
        changes["release"] = str((beside / study.release).absolute())
    else:
        from ...releases.hub.fetch import release_folder

        changes["release"] = str(release_folder(study.release))
    for name in ("drafts", "people", "labelled"):
        if (given := getattr(study, name)) is not None:
            changes[name] = str((beside / given).absolute())
    changes["renderers"] = {
        name: renderer
        if renderer.outputs is None
        else renderer.model_copy(update={"outputs": str((beside / renderer.outputs).absolute())})
        for name, renderer in study.renderers.items()
    }
    if study.compass is not None and study.compass.selection_set not in (None, RULES):
        placed = str((beside / str(study.compass.selection_set)).absolute())
        changes["compass"] = study.compass.model_copy(update={"selection_set": placed})
    return study.model_copy(update=changes)


# -- How far a study is: the matrix of its methods, with what is made and judged of each


@dataclass(frozen=True, slots=True)
class Cell:
    method: str  # its name
    ordered: int  # storyboards that the study wants of it, over all stories and seeds
    made: int  # storyboards whose generator has answered for every picture
    pictures: Mapping[str, int]  # outcome -> pictures of finished storyboards
    judged: int  # storyboards whose judgements are all in
    to_judge: int  # storyboards of stories that are reported on

    @property
    def invalid(self) -> int:
        """Pictures that were answered with something else than a picture."""
        return sum(count for outcome, count in self.pictures.items() if outcome != "made")


@dataclass(frozen=True, slots=True)
class StudyStatus(Tabular):
    """How far a study is."""

    name: str  # of the study
    cells: tuple[Cell, ...]  # its methods
    spent: float  # USD that it has cost so far
    parts: Mapping[str, str] = field(default_factory=dict)  # part of the study -> what is there of it
    notes: tuple[str, ...] = ()  # what a reader must know

    def grids(self) -> Iterator[Grid]:
        columns = ("method", "ordered", "made", "invalid", "judged", "to_judge")
        rows = (tuple(getattr(cell, name) for name in columns) for cell in self.cells)
        note = " ".join([f"{self.spent:.4f} USD spent.", *self.notes])
        yield Grid("methods", f"Study {self.name}", columns, tuple(rows), note)
        yield Grid("parts", "Parts", ("part", "state"), tuple(self.parts.items()), words=(1,))

    def as_json(self) -> dict[str, Any]:
        of_cell = ("method", "ordered", "made", "invalid", "pictures", "judged", "to_judge")
        cells = [plain_parts(cell, *of_cell) for cell in self.cells]
        return {"study": self.name, "cells": cells, **plain_parts(self, "spent", "parts", "notes")}

    def lines(self) -> Iterator[str]:
        width = max((len(cell.method) for cell in self.cells), default=6)
        row = f"{{:{width}}}  {{:>13}}  {{:>8}}  {{:>13}}".format
        yield f"study {self.name}: {self.spent:.4f} USD spent"
        yield row("method", "storyboards", "invalid", "judged")
        for cell in self.cells:
            judged = f"{cell.judged} of {cell.to_judge}"
            yield row(cell.method, f"{cell.made} of {cell.ordered}", f"{cell.invalid}", judged)
        for part, state in self.parts.items():
            yield f"{part}: {state}"
        yield from (f"note: {note}" for note in self.notes)


def study_status(desk: Desk, parts: Mapping[str, str] | None = None) -> StudyStatus:
    """Return how far a study is; reads only, also while it is at work.

    ``parts``: part of the study -> what is there of it, as the parts say.
    """
    ordered = orders_of(desk.study, desk.release)
    made = _done(desk.folder / GENERATION, GENERATING)
    judged = _done(desk.folder / EVALUATION, JUDGING)
    outcomes = _outcomes(desk.folder / GENERATION)
    cells = []
    boards = desk.finished_boards()
    for method in desk.study.methods():
        if method in boards:
            keys = boards[method]
            cells.append(
                Cell(method, len(keys), len(keys), Counter(), sum(key in judged for key in keys), len(keys))
            )
            continue
        orders = [order for order in ordered.orders if order.method == method]
        reported = [order.key for order in orders if order.story_id in desk.reported]
        finished = sum(order.key in made for order in orders)
        cells.append(
            Cell(
                method, len(orders), finished, outcomes.get(method, Counter()),
                sum(key in judged for key in reported), len(reported),
            )
        )  # fmt: skip
    notes = [
        f"plan {plan}: {tallied(len(stories), 'stories')} without records that people accepted"
        for plan, stories in ordered.unusable.items()
    ]
    return StudyStatus(desk.study.name, tuple(cells), desk.spent(), parts or {}, tuple(notes))


def _done(run: Path, pipeline: Pipeline) -> frozenset[str]:
    """Return the items of a run that have passed every stage."""
    if not (run / MANIFEST).is_file():
        return frozenset()
    with surveyed(run, pipeline) as survey:
        return frozenset(survey.items.live)


def _outcomes(run: Path) -> dict[str, Counter[str]]:
    if not (run / GENERATIONS).is_file():
        return {}
    return {method: Counter(row["outcome"] for row in rows) for method, rows in generations_of(run).items()}


# -- The first two parts of a study: the pictures of every method, and the judgements on them


def order_pictures(desk: Desk) -> Path:
    """Write the orders of a study; return the file."""
    path = desk.folder / ORDERS
    desk.folder.mkdir(parents=True, exist_ok=True)
    write_orders(path, orders_of(desk.study, desk.release).orders)
    return path


def make_pictures(desk: Desk) -> dict[str, Path]:
    """Have every picture of a study made that is not there yet; return method -> its folder of outputs."""
    if not desk.study.plans:
        return {}
    run = desk.folder / GENERATION
    options = GenerateOptions(**desk.run_options(run), replace_sources=True)
    generate(order_pictures(desk), run, options, desk.reporter)
    return place_outputs(run, desk.folder / OUTPUTS, desk.folder / TRUTH, _about(desk))


def _about(desk: Desk) -> dict[str, dict[str, Json]]:
    """Return method -> what its ``outputs.json`` says besides: the seeds that were ordered."""
    about = {}
    for method, (_, name) in desk.study.methods().items():
        renderer = desk.study.renderers[name]
        if renderer.model is not None:
            about[method] = {"seeds": sorted(desk.study.seeds)} if renderer.seeded else {}
    return about


def judge_methods(desk: Desk, methods: dict[str, Path]) -> Path:
    """Have the outputs of all methods judged; return the evaluation folder.

    Text-only questions are asked once for all methods.
    """
    out = desk.folder / EVALUATION
    chosen = [folder for method, folder in methods.items() if method in desk.study.methods()]
    evaluate_katha(desk.release.path, chosen, out, judging_options(desk, out), reporter=desk.reporter)
    return out


def judging_options(desk: Desk, out: Path) -> EvaluateOptions:
    """Return how the stories of a study are judged, whatever is judged."""
    given = desk.run_options(out)
    unasked = [f"{stage}.judges=[]" for name, stage in STAGE_OF.items() if name not in desk.study.conditions]
    return EvaluateOptions(
        **{**given, "settings": [*setting_texts(given["settings"]), *unasked]},
        judges=desk.study.judges,
        matcher=desk.study.match_with or None,
        stories=desk.reported,
        prompts=desk.study.prompts,
        replace_sources=True,
    )
