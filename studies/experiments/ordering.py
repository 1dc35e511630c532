"""From a study to orders: which storyboards its cells need, and which cannot be ordered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ...people.audits.records import read_records
from ...releases.loading import Release
from ...schemas.katha import StoryRecord
from ..pictures.plans import Order, PanelOrder, Plan, check_panels, plan_named
from .study import Renderer, Study, method_name


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
