"""Measuring settings: what is archived is read once for each way of reading it; nothing is judged again."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ....evaluation.archive.archive import read_manifest
from ....evaluation.recoverability.matching import Definitions, is_rule
from ....evaluation.recoverability.score import Judged
from ....releases.loading import Release, load
from ....schemas.canonical import Plain, digest
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question, StoryRecord
from ....schemas.values import Score
from ..evaluators.evaluator import evaluator_of
from ..measures.falls import Plant, falls_of
from ..measures.planted import Read, judged_as, people_of, plant_defects, planted_scores, release_of, seen_by
from ..measures.reliability import (
    detection,
    human_correlation,
    leakage,
    recovered,
    recovered_by_people,
    reliability,
)
from ..measures.views import NAMES, View, undefined, view_scores

# -- A setting: what of the protocol is left out, and how; data and pure functions, no fork of the protocol

How = Literal["nothing", "questions", "averaging", "answers", "filter", "pairs", "evaluator"]
"""By what a setting leaves something out: fewer questions, another mean, fewer accepted answers, no filter,
no contrastive pairs, or the questions of another evaluator."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    name: str  # in files
    title: str  # in tables
    removes: str  # what is left out, in a sentence
    how: How  # by what
    evaluator: str = "katha"  # whose evaluation is read
    # makes the setting's view of the evaluator's; None to leave it
    cut: Callable[[View], View] | None = field(default=None, repr=False)
    # makes of a record what answers are compared with; None to leave it
    record: Callable[[StoryRecord], StoryRecord] | None = field(default=None, repr=False)

    def of(self, view: View) -> View:
        return view if self.cut is None else self.cut(view)


@dataclass(frozen=True)
class Measured(Plain):
    """What was measured in a setting."""

    name: str  # of the setting
    title: str  # in tables
    removes: str  # what is left out
    how: How  # by what
    scores: Mapping[str, Score]  # name of a value -> the value; over several methods their mean
    # method -> text, image, gap and pair_accuracy
    methods: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader must know of it


def keeping(wanted: Callable[[Question], bool]) -> Callable[[View], View]:
    """Return the cut that keeps some questions only."""

    def cut(view: View) -> View:
        kept = {
            question.question_id
            for record in view.judged.items.records
            for question in record.questions
            if wanted(question)
        }
        chosen = np.array([key.question_id in kept for key in view.judged.items.keys], dtype=bool)
        return replace(view, kept=view.kept & chosen)

    return cut


def averaging(*dimensions: str) -> Callable[[View], View]:
    """Return the cut that averages over some dimensions only; over none: all questions count alike."""
    return lambda view: replace(view, dimensions=dimensions)


def unfiltered(view: View) -> View:
    """Return a view in which questions that nobody can answer stay in the score."""
    return replace(view, chosen="raw")


def uncontrasted(view: View) -> View:
    """Return a view without contrastive pairs, and without questions about variants."""
    return replace(view, judged=view.unchecked or view.judged, contrasts=False)


def both(first: Callable[[View], View], second: Callable[[View], View]) -> Callable[[View], View]:
    """Return the cut that makes two cuts, one after the other."""
    return lambda view: second(first(view))


def canonical_only(record: StoryRecord) -> StoryRecord:
    """Return a record whose questions accept their canonical answer alone."""
    questions = tuple(
        question.model_copy(update={"accepted_answers": (question.gold_answer,)})
        for question in record.questions
    )
    return record.model_copy(update={"questions": questions})


# --

FULL = "katha"
OF_RULES = ("leakage", "detection")
"""Groups that need a matcher that is a rule."""
PLANTED = (
    "localisation", "localisation_chance", "detected", "transitions", "transitions_chance", "sensitivity",
    "false_alarms", "false_accusations",
)  # fmt: skip
GROUPS: Mapping[str, tuple[str, ...]] = {
    "rates": NAMES,
    "planted": PLANTED,
    "people": ("human_correlation",),
    "leakage": ("leakage", "contamination"),
    "detection": ("detection", "false_removals"),
    "reliability": ("reliability",),
}
"""What can be measured in a setting -> the names of its values."""


@dataclass
class Sources:
    """The folders of a study that settings are measured from."""

    # evaluator -> evaluation of all methods with its questions; ``katha`` is the study's own
    evaluations: Mapping[str, Path]
    definitions: Definitions  # how replies become numbers
    # evaluator -> evaluation of the storyboards with planted losses
    planted: Mapping[str, Path] = field(default_factory=dict)
    plants: Sequence[Plant] = ()  # what was planted
    base: str | None = None  # the method whose outputs were changed, if it was judged there, too
    people: Path | None = None  # file of people's answers
    # makes of an evaluation of all methods the one that is scored, as where a method was not asked for some
    # generations; None to leave it
    adjust: Callable[[Judged], Judged] | None = field(default=None, repr=False)
    _judged: dict[str, Judged] = field(default_factory=dict, repr=False)
    _people: tuple[tuple[HumanRow, ...], Mapping[str, Question]] | None = field(default=None, repr=False)

    def folder(self, evaluator: str, *, planted: bool = False) -> Path | None:
        """Return the evaluation with an evaluator's questions, or that which it reuses."""
        folders = self.planted if planted else self.evaluations
        return folders.get(FULL if evaluator_of(evaluator).reuses else evaluator)

    def judged(self, folder: Path, definitions: Definitions | None = None, read: Read = load) -> Judged:
        """Return an evaluation, adjusted where it is of all methods."""
        judged = judged_as(folder, definitions or self.definitions, read)
        if self.adjust is None or folder not in self.evaluations.values():
            return judged
        return self.adjust(judged)

    def view(self, setting: Setting, folder: Path, *, share: float = 0.0) -> View:
        """Return a folder as a setting sees it; with a share, that part of the questions made defective."""
        key = digest([str(folder), setting.name if setting.record else "", share])
        if key not in self._judged:
            self._judged[key] = self.judged(folder, read=_reading(setting, share))
        return setting.of(seen_by(evaluator_of(setting.evaluator), self._judged[key]))

    def answers(self) -> tuple[tuple[HumanRow, ...], Mapping[str, Question]]:
        """Return people's answers, and the questions that they answered; nothing without a file."""
        if self._people is None:
            folder = self.evaluations.get(FULL)
            if self.people is None or folder is None:
                self._people = ((), {})
            else:
                release = release_of(folder)
                methods = read_manifest(folder).subject.get("methods")
                rows = people_of(self.people, release, methods if isinstance(methods, Mapping) else {})
                questions = {
                    question.question_id: question for record in release for question in record.questions
                }
                self._people = (rows, questions)
        return self._people


def _reading(setting: Setting, share: float) -> Read:
    def read(path: Path) -> Release:
        release = load(path)
        if setting.record is not None:
            release = replace(release, records=tuple(map(setting.record, release.records)))
        return plant_defects(release, share)[0] if share else release

    return read


def measure(
    sources: Sources,
    setting: Setting,
    wanted: Collection[str] = ("rates", "planted", "people"),
    *,
    share: float = 0.2,
    value: str = "gap",
) -> Measured:
    """Return what is measured in a setting; what cannot be has no value, and says why."""
    folder = sources.folder(setting.evaluator)
    why = f"there is no evaluation with the questions of {evaluator_of(setting.evaluator).title}"
    if setting.record is not None and not is_rule(sources.definitions.matcher):
        folder, why = None, "the archived matcher has compared with all accepted answers"
    scores: dict[str, Score] = {}
    methods: Mapping[str, Mapping[str, Score]] = {}
    if folder is not None and "rates" in wanted:
        made = view_scores(sources.view(setting, folder), sources.definitions)
        scores |= made.together
        methods = made.methods
    for group in wanted:
        if group == "planted":
            scores |= _planted(sources, setting)
        elif group in OF_RULES and not is_rule(sources.definitions.matcher):
            archived = "defects are planted in what answers are compared with; the archived matcher has none"
            scores |= dict.fromkeys(GROUPS[group], undefined(archived))
        elif folder is not None and group in MEASURES:
            scores |= MEASURES[group](sources, setting, folder, share, value)
    names = [name for group in wanted for name in GROUPS[group]]
    every = {name: scores.get(name) or undefined(why) for name in names}
    return Measured(setting.name, setting.title, setting.removes, setting.how, every, methods)


def _planted(sources: Sources, setting: Setting) -> dict[str, Score]:
    folder = sources.folder(setting.evaluator, planted=True)
    if folder is None or not sources.plants:
        why = "no planted losses were judged with the questions of this evaluator"
        return {name: undefined(why) for name in PLANTED}
    falls = falls_of(sources.view(setting, folder), sources.plants, sources.base)
    return planted_scores(falls, sources.definitions)


def _people(sources: Sources, setting: Setting, folder: Path, _share: float, value: str) -> dict[str, Score]:
    rows, questions = sources.answers()
    ours = recovered(sources.view(setting, folder), "text" if value == "text" else "image")
    people = recovered_by_people(rows, questions) if rows else None
    return {"human_correlation": human_correlation(ours, people, sources.definitions)}


def _leakage(sources: Sources, setting: Setting, folder: Path, share: float, _value: str) -> dict[str, Score]:
    view, bad = _with_defects(sources, setting, folder, share)
    leaked = leakage(view, bad, sources.definitions)
    return {"leakage": leaked.leakage, "contamination": leaked.contamination}


def _detection(
    sources: Sources, setting: Setting, folder: Path, share: float, _value: str
) -> dict[str, Score]:
    view, bad = _with_defects(sources, setting, folder, share)
    removed = detection(view, bad, sources.definitions)
    return {"detection": removed.detection, "false_removals": removed.false_removals}


def _with_defects(
    sources: Sources, setting: Setting, folder: Path, share: float
) -> tuple[View, frozenset[str]]:
    bad = plant_defects(_reading(setting, 0.0)(release_of(folder).path), share)[1]
    return sources.view(setting, folder, share=share), bad


def _reliability(
    sources: Sources, setting: Setting, folder: Path, _share: float, value: str
) -> dict[str, Score]:
    return {"reliability": reliability(sources.view(setting, folder), value, sources.definitions)}


MEASURES: Mapping[str, Callable[[Sources, Setting, Path, float, str], dict[str, Score]]] = {
    "people": _people, "leakage": _leakage, "detection": _detection, "reliability": _reliability,
}  # fmt: skip
