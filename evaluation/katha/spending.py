"""What judging asks for: panels and calls by rule, before anything is asked, and what calls cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...builders.spending import tell_plan
from ...engine.config import RunConfig
from ...engine.execute import RunRequest
from ...releases.loading import Release, load
from ...schemas.katha import StoryRecord
from ...schemas.text import tallied, tallies
from ..judging.packets import EVIDENCE
from ..judging.settings import JudgeSettings, LabelledSettings, SelectionSettings, without_judges
from ..judging.training import TRAIN, trained_on
from ..outputs.named import read_manifest
from ..outputs.story_folders import find_story_folders
from ..outputs.storyboards import OutputsManifest, list_folder
from .load_items import OUTPUTS, RELEASE, chosen_records
from .variants import variant_stories

if TYPE_CHECKING:
    from ...engine.progress import Reporter

STAGE_OF = {"text": "judge_text", "image": "judge_images", "text_image": "judge_both"}
"""Evidence condition -> the stage that asks under it."""


@dataclass(frozen=True, slots=True)
class JudgingBudget:
    """How much a set of stories asks for (Eq. 67 and Tables 47 and 48 of the KathaTrace paper).

    Attributes:
        stories: stories that are judged.
        generations: storyboards that are judged, over all methods and seeds.
        panels: pictures that they must have.
        questions: recoverability questions of the stories.
        labels: stories with a moral target, asked for once per condition.
        pairs: contrastive pairs.
        judges: how many judges are asked; the largest number of any condition.
        calls: what is asked -> calls of all judges, all votes counted: ``text`` once per story whatever the
            methods, the others once per generation. Without invalid generations these are exact.
        one_judge: calls of one judge for the questions of one generation per story: three per question.
        there: pictures that lie in the folders, whatever they hold; None without outputs.
        training: stories among them of the split for training, where neither split nor stories were chosen.
    """

    stories: int
    generations: int
    panels: int
    questions: int
    labels: int
    pairs: int
    judges: int
    calls: dict[str, int]
    one_judge: int
    there: int | None = None
    training: int = 0

    @property
    def total(self) -> int:
        """Calls in all."""
        return sum(self.calls.values())

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain JSON."""
        return {**asdict(self), "total": self.total}

    def lines(self) -> list[str]:
        """Return the numbers as lines for people."""
        asked = ", ".join(f"{count} {name.replace('_', '+')}" for name, count in self.calls.items())
        lines = [
            f"{tallies({'stories': self.stories, 'storyboards': self.generations})} of {self.panels} panels, "
            + tallies(
                {
                    "questions": self.questions,
                    "moral targets": self.labels,
                    "contrastive pairs": self.pairs,
                }
            ),
            f"{tallied(self.one_judge, 'calls')} of one judge for the questions of one storyboard per story",
            f"{tallied(self.total, 'calls')} of {tallied(self.judges, 'judges')}: {asked}",
        ]
        if self.there is not None and self.there != self.panels:
            lines.append(
                f"but {tallied(self.there, 'pictures')} are there: fabula outputs check says which are amiss"
            )
        if self.training:
            lines.append(f"warning: {trained_on(self.training, self.stories)}")
        return lines


def judging_budget(request: RunRequest) -> JudgingBudget:
    """Return what an evaluation asks for, from the release and the folders' layout; no picture is opened.

    Where there are no outputs yet: what one method with one generation per story is asked.

    Raises:
        FabulaError: the release, a folder or the choice of stories is wrong.
    """
    settings = request.config.stages["load_items"]
    assert isinstance(settings, SelectionSettings)
    release = load(next(source.path for source in request.sources if source.role == RELEASE))
    records = chosen_records(release, settings)
    folders = [source.path for source in request.sources if source.role == OUTPUTS]
    shown = [_generations(folder, records, release) for folder in folders]
    chosen = settings.split or settings.stories
    training = 0 if chosen else sum(record.split == TRAIN for record in records)
    if not shown:
        panels = sum(len(record.scenes) for record in records)
        return replace(_budget(release, records, [(1, panels)], request.config), training=training)
    there = sum(pictures for _, _, pictures in shown)
    budget = _budget(release, records, [(seeds, panels) for seeds, panels, _ in shown], request.config)
    return replace(budget, there=there, training=training)


def _generations(folder: Path, records: Sequence[StoryRecord], release: Release) -> tuple[int, int, int]:
    """Return a method's number of seeds, the panels that one seed of all stories needs, and its pictures."""
    manifest = read_manifest(folder, OutputsManifest)
    panels = sum(manifest.panels_of(record) for record in records)
    known = [*release.records, *variant_stories(release, release.records)]
    places = find_story_folders(folder, manifest.folders, known).places
    unit = manifest.unit
    listed = [list_folder(places[one.story_id], unit=unit) for one in records if one.story_id in places]
    seeds = {seed for one in listed for seed, _ in one.seeds}
    wanted = seeds if manifest.seeds is None else set(manifest.seeds)
    pictures = sum(len(one.panels) for one in listed) + sum(
        len(list_folder(place, with_seeds=False, unit=unit).panels)
        for one in listed
        for seed, place in one.seeds
        if seed in wanted
    )
    return max(1, len(wanted)), panels, pictures


def _budget(
    release: Release, records: Sequence[StoryRecord], shown: Sequence[tuple[int, int]], config: RunConfig
) -> JudgingBudget:
    questions = sum(len(record.questions) for record in records)
    labels = sum(record.moral_label is not None for record in records)
    pairs = sum(one.has_variant for record in records for one in release.variants_of[record.story_id])
    seeds = sum(count for count, _ in shown)
    calls: dict[str, int] = {}
    most = 0
    for condition in EVIDENCE:
        settings = config.stages[STAGE_OF[condition]]
        assert isinstance(settings, LabelledSettings)
        items = questions + (labels if settings.labels else 0)
        answers = len(settings.judges) * settings.votes
        calls[condition] = items * answers * (1 if condition == "text" else seeds)
        most = max(most, len(settings.judges))
    contrasts = config.stages["judge_contrasts"]
    assert isinstance(contrasts, JudgeSettings)
    calls["contrast"] = pairs * len(contrasts.judges) * contrasts.votes * seeds
    return JudgingBudget(
        len(records), len(records) * seeds, sum(count * panels for count, panels in shown),
        questions, labels, pairs, most, calls, len(EVIDENCE) * questions,
    )  # fmt: skip


def tell_judging(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a new evaluation makes and about what they cost, or what it has cost so far."""
    tell_plan(request, reporter, without_judges)
