"""A study as data: ``study.toml``, read and checked, and where everything of it lies in its folder."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ...errors import ConfigError
from ...evaluation.judging.packets import EVIDENCE, Evidence
from ...evaluation.judging.settings import FOLDERS, PromptSet
from ...evaluation.recoverability.definitions import Common
from ...models.spec import parse_spec
from ...people.audits.records import read_records
from ...releases.loading import Release
from ...schemas.canonical import Json, digest
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import read_plain, reason_of, type_reason
from ...schemas.values import Own
from ..pictures.plans import Order, PanelOrder, Plan, check_panels, plan_named

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
    """What turns plans into pictures."""

    model: str = Field(description="Spec of a model that makes pictures, such as image:openai:gpt-image-2.")
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
    plans: tuple[str, ...] = Field(min_length=1, description="Plans; see generation.plans.")
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
        if compass is not None and (compass.plan not in self.plans or compass.renderer not in self.renderers):
            raise ValueError("compass names a plan or renderer that the study does not have")
        if compass is not None and compass.tuned_on in self.split:
            raise ValueError(f"compass is tuned on {compass.tuned_on}, which the study reports on")
        if plants is not None and plants.method not in self.methods():
            raise ValueError(f"plants name {plants.method}, and the methods are {', '.join(self.methods())}")
        return self

    @property
    def people_file(self) -> Path | None:
        """The file of people's answers."""
        return None if self.people is None else Path(self.people)

    @property
    def labelled_file(self) -> Path | None:
        """The file of labelled answers."""
        return None if self.labelled is None else Path(self.labelled)

    def sha256(self) -> str:
        """Return the hash of what the study says."""
        return digest(self.model_dump(mode="json"))

    def methods(self) -> dict[str, tuple[str, str]]:
        """Return method -> its plan and renderer, in order."""
        return {
            method_name(plan, renderer): (plan, renderer)
            for plan in self.plans
            for renderer in self.renderers
        }


def method_name(plan: str, renderer: str) -> str:
    """Return what the outputs of a plan and a renderer are called."""
    return f"{plan}+{renderer}"


def read_study(path: Path) -> tuple[Study, dict[str, Any]]:
    """Return the study in a file, and the settings of models that stand beside it."""
    try:
        document = tomllib.loads(read_plain(path, follow=True).decode("utf-8"))
    except (OSError, ValueError) as error:
        fix = "see docs/experiments.md, or begin with examples/study.toml"
        raise ConfigError(str(path), what=f"the study cannot be read: {reason_of(error)}", fix=fix) from error
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
    """Return the study as ``study.json`` holds it."""
    return {"study": study.model_dump(mode="json"), "sha256": study.sha256()}


# -- From a study to orders: which storyboards its cells need, and which cannot be ordered


@dataclass(frozen=True, slots=True)
class Ordered:
    """The orders of a study."""

    orders: tuple[Order, ...]  # one for each storyboard
    stories: dict[str, tuple[str, ...]]  # split -> ids of the stories that are used of it
    # plan -> stories that it cannot be made of, such as those without gold for the oracle
    unusable: dict[str, tuple[str, ...]]

    @property
    def pictures(self) -> int:
        """How many pictures that are."""
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
    for seed in seeds if renderer.seeded else (None,):
        yield Order(
            method=method, story_id=story_id, seed=seed, model=renderer.model, width=renderer.width,
            height=renderer.height, steps=renderer.steps, negative=renderer.negative,
            rewrite=renderer.rewrite, panels=panels,
        )  # fmt: skip
