"""What judging asks for: panels and calls by rule, before anything is asked, and what calls cost."""

from collections import Counter
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
CONTRASTS = "judge_contrasts"


@dataclass(frozen=True, slots=True)
class JudgingBudget:
    """How much a set of stories asks for (Eq. 67 and Tables 47 and 48 of the KathaTrace paper)."""

    stories: int  # stories that are judged
    generations: int  # storyboards that are judged, over all methods and seeds
    panels: int  # pictures that they must have
    questions: int  # recoverability questions of the stories
    labels: int  # stories with a moral target, asked for once per condition
    pairs: int  # contrastive pairs
    judges: int  # how many judges are asked; the largest number of any condition
    # what is asked -> calls of all judges, all votes counted: ``text`` once per story whatever the methods,
    # the others once per complete generation. Exact unless a picture cannot be read.
    calls: dict[str, int]
    one_judge: int  # calls of one judge for the questions of one generation per story: three per question
    there: int | None = None  # pictures that lie in the folders, whatever they hold; None without outputs
    # generations with missing or wrongly numbered pictures; only their text is asked about
    incomplete: int = 0
    # stories among them of the split for training, where neither split nor stories were chosen
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
            "each question is asked of the text, of the pictures and of both: "
            f"{tallied(self.one_judge, 'calls')} of a judge for one storyboard of each story",
            f"{tallied(self.total, 'calls')} of {tallied(self.judges, 'judges')}: {asked}",
        ]
        if self.incomplete:
            lines.append(
                f"{tallied(self.incomplete, 'storyboards')} of them cannot be judged: "
                "fabula outputs check says why"
            )
        elif self.there is not None and self.there != self.panels:
            lines.append(
                f"but {tallied(self.there, 'pictures')} are there: fabula outputs check says which are amiss"
            )
        if self.training:
            lines.append(f"warning: {trained_on(self.training, self.stories)}")
        return lines


def judging_budget(request: RunRequest) -> JudgingBudget:
    """Return what an evaluation asks for, from the release and the folders' layout; no picture is opened.

    Where there are no outputs yet: what one method with one generation per story is asked.
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
        shown = [_Generations(1, panels, None, Counter(record.story_id for record in records))]
    budget = _budget(release, records, shown, request.config)
    return replace(budget, training=training)


@dataclass(frozen=True, slots=True)
class _Generations:
    """What a method has made."""

    seeds: int  # how many
    panels: int  # pictures that one seed of all stories needs
    there: int | None  # pictures that lie there; None without outputs
    complete: Counter[str]  # story id -> generations with the right pictures


def _generations(folder: Path, records: Sequence[StoryRecord], release: Release) -> _Generations:
    manifest = read_manifest(folder, OutputsManifest)
    panels = sum(manifest.panels_of(record) for record in records)
    known = [*release.records, *variant_stories(release, release.records)]
    places = find_story_folders(folder, manifest.folders, known).places
    unit = manifest.unit
    listed = [
        (record, list_folder(places[record.story_id], unit=unit))
        for record in records
        if record.story_id in places
    ]
    seeds = {seed for _, there in listed for seed, _ in there.seeds}
    wanted = seeds if manifest.seeds is None else set(manifest.seeds)
    pictures, complete = 0, Counter[str]()
    for record, there in listed:
        boards = [
            list_folder(place, with_seeds=False, unit=unit).panels
            for seed, place in there.seeds
            if seed in wanted
        ]
        pictures += len(there.panels) + sum(map(len, boards))
        expected = list(range(1, manifest.panels_of(record) + 1))
        judged = boards if wanted else [there.panels]
        complete[record.story_id] = sum([number for number, _ in board] == expected for board in judged)
    return _Generations(max(1, len(wanted)), panels, pictures, complete)


def _budget(
    release: Release, records: Sequence[StoryRecord], shown: Sequence[_Generations], config: RunConfig
) -> JudgingBudget:
    questions = sum(len(record.questions) for record in records)
    labels = sum(record.moral_label is not None for record in records)
    pairs = {
        record.story_id: sum(one.has_variant for one in release.variants_of[record.story_id])
        for record in records
    }
    complete = sum((made.complete for made in shown), Counter[str]())
    generations = len(records) * sum(made.seeds for made in shown)
    calls: dict[str, int] = {}
    most = 0
    for condition in EVIDENCE:
        settings = config.stages[STAGE_OF[condition]]
        assert isinstance(settings, LabelledSettings)
        items = sum(
            (len(record.questions) + (settings.labels and record.moral_label is not None))
            * (1 if condition == "text" else complete[record.story_id])
            for record in records
        )
        calls[condition] = items * len(settings.judges) * settings.votes
        most = max(most, len(settings.judges))
    contrasts = config.stages[CONTRASTS]
    assert isinstance(contrasts, JudgeSettings)
    asked = sum(count * complete[story_id] for story_id, count in pairs.items())
    calls["contrast"] = asked * len(contrasts.judges) * contrasts.votes
    pictures = [made.there for made in shown if made.there is not None]
    return JudgingBudget(
        len(records), generations, sum(made.seeds * made.panels for made in shown),
        questions, labels, sum(pairs.values()), most, calls, len(EVIDENCE) * questions,
        sum(pictures) if pictures else None, generations - complete.total(),
    )  # fmt: skip


def tell_judging(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a new evaluation makes and about what they cost, or what it has cost so far."""
    tell_plan(request, reporter, without_judges, by_rule=lambda: _calls_of_stages(request))


def _calls_of_stages(request: RunRequest) -> dict[str, int]:
    """Return stage -> calls by rule: methods share questions about texts, which few items do not show."""
    if request.options.items or request.options.shard is not None:
        return {}
    calls = judging_budget(request).calls
    return {STAGE_OF.get(name, CONTRASTS): count for name, count in calls.items()}
