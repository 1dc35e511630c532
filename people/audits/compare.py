"""One draft beside the gold record of its story: counts for every measure, and the cases to look at.

Texts are the same where the matcher says so (:mod:`fabula.evaluation.recoverability.matching`; by default
token F1 of a half or more). Parts of scenes are sought in the scenes that overlap: those that share at least
half of the letters of the shorter one.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...builders.katha.checks.rules import rule_checks
from ...builders.katha.checks.settling import JUDGES_VARIANTS
from ...builders.katha.drafts import by_person, maker_of
from ...builders.text.boundaries import scene_spans
from ...builders.text.segments import sentence_spans
from ...errors import InputError, UserError
from ...evaluation.recoverability.matching import Compare, Key, token_f1
from ...evaluation.stats.uncertainty import Uncertainty
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, tallies
from ...schemas.values import Score, state_of, vocabulary
from ...validators.katha.dataset import open_dataset
from ...validators.katha.field_rules import incomplete_reason
from ...validators.katha.scene_rules import check_part
from ...validators.katha.validation import producer_lines
from ...validators.lines import ignore
from ...validators.report import MARK, as_user_error, is_simulated
from ...validators.resampling import divided, resampled_sums

# -- Drafts and gold records of the same stories, from runs, releases or files of records

_UNREAD = "a program or nobody that is known wrote their questions, and no person has reviewed them"


@dataclass(frozen=True, slots=True)
class Annotated:
    """One record with what lies beside it, as plain JSON."""

    record: Json  # ``schemas.katha.StoryRecord``
    variants: Sequence[Json]  # its variants
    checks: Sequence[Json] = ()  # the checks that a run keeps; none elsewhere
    producers: Sequence[Json] = ()  # who made which field, where that is on file
    simulated: bool = False  # whether programs took part in the review of its release

    @property
    def whose(self) -> str | None:
        """Who stands for the record: its reviewers, or those who wrote its questions; None for nobody."""
        read = self.record["validation_status"] in vocabulary("validation_status").having("reviewed")
        if read and not self.simulated:
            return "people who reviewed them"
        asked = [
            f"$.questions[{number}].{name}"
            for number in range(len(self.record["questions"]))
            for name in ("question", "gold_answer")
        ]
        makers = {maker_of(path, self.producers) for path in asked or ("$.scenes[0].action",)}
        people = sorted(
            name for name in makers if name and by_person(name) and not is_simulated(name.partition(":")[2])
        )
        return ", ".join(people) if len(people) == len(makers) else None

    @property
    def texts(self) -> list[str]:
        return [scene["scene_text"] for scene in self.record["scenes"]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Drafts beside the gold records of the same stories."""

    pairs: Mapping[str, tuple[Annotated, Annotated]]  # story id -> draft and gold record, sorted by id
    undrafted: tuple[str, ...] = ()  # gold records without a draft
    other_text: tuple[str, ...] = ()  # stories whose texts are not the same, so that nothing can be compared
    without_gold: tuple[str, ...] = ()  # drafts without a gold record
    unread: tuple[str, ...] = ()  # records given as gold for which nobody stands: they are left out
    # who stands for the gold records -> for how many of the pairs
    whose: Mapping[str, int] = field(default_factory=dict)


def read_records(path: Path) -> dict[str, Annotated]:
    """Return the records of a run, a release or a file, by story id."""
    dataset = open_dataset(path)
    made = {str(line["id"]): line["fields"] for line in producer_lines(dataset)}
    simulated = dataset.manifest.get(MARK) is True
    records: dict[str, Annotated] = {}
    problems: list[UserError] = []
    for story in dataset.stories(ignore):
        checked, issues = check_part(story, only=())
        problems += [as_user_error(issue) for issue in issues if checked.broken and issue.level == "error"]
        if checked.broken:
            continue
        story_id = str(story.record["story_id"])
        producers = story.bundle.get("producers", made.get(story_id, ()))
        variants = [dict(variant.data) for variant in story.variants]
        records[story_id] = Annotated(
            story.record, variants, story.bundle.get("checks", ()), producers, simulated
        )
    if problems:
        raise InputError(problems)
    if not records:
        raise UserError(
            str(path), what="there are no records of stories in it",
            fix="give a run of `fabula build stories`, a release of stories, or a file of records",
        )  # fmt: skip
    return records


def pair_up(drafts: Mapping[str, Annotated], golds: Mapping[str, Annotated]) -> Pairs:
    """Return the drafts beside the gold records of the same stories."""
    shared = sorted(drafts.keys() & golds.keys())
    other = tuple(
        story_id
        for story_id in shared
        if _record_letters(drafts[story_id]) != _record_letters(golds[story_id])
    )
    whose = {story_id: golds[story_id].whose for story_id in shared}
    unread = tuple(story_id for story_id in shared if whose[story_id] is None)
    pairs = {
        story_id: (drafts[story_id], golds[story_id])
        for story_id in shared
        if story_id not in other and story_id not in unread
    }
    if not pairs:
        what = (
            f"no story is in both with the same text "
            f"({tallies({'drafts': len(drafts), 'gold records': len(golds)})}"
            + (f"; for {len(unread)} of these nobody stands: {_UNREAD})" if unread else ")")
        )
        fix = (
            "give gold records of the stories that were drafted: reviewed by people, or built with "
            "`fabula build stories --records FILE`, which says who wrote them"
        )
        raise InputError.one("--gold", what=what, fix=fix)
    undrafted = tuple(sorted(golds.keys() - drafts.keys()))
    without = tuple(sorted(drafts.keys() - golds.keys()))
    counted = Counter(name for story_id in pairs if (name := whose[story_id]) is not None)
    return Pairs(pairs, undrafted, other, without, unread, dict(sorted(counted.items())))


def _record_letters(record: Annotated) -> str:
    return "".join(record.record["story_text"].split())


# -- What an audit measures: every measure is a share of counts that add over stories, or kappa

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    label: str  # its name for readers
    meaning: str  # what is counted, out of what
    part: str  # the part of a record that it is about
    higher: bool = True  # whether the higher value is the better one


def _two_sided(name: str, part: str, label: str, what: str) -> dict[str, Measure]:
    return {
        f"{name}_precision": Measure(f"{label}, precision", f"{what} of the draft that gold has, too", part),
        f"{name}_recall": Measure(f"{label}, recall", f"{what} of gold that the draft has, too", part),
    }


_EXACT, _NEAR = "at the same place", "within one sentence"
MEASURES: Mapping[str, Measure] = {
    **_two_sided("boundaries", "scenes", "Scene boundaries", f"scene boundaries ({_EXACT})"),
    "boundaries_f1": Measure("Scene boundaries, F1", f"both, {_EXACT}", "scenes"),
    **_two_sided("near_boundaries", "scenes", "Boundaries, nearly", f"scene boundaries ({_NEAR})"),
    "near_boundaries_f1": Measure("Boundaries, nearly, F1", f"both, {_NEAR}", "scenes"),
    "window_diff": Measure("WindowDiff", "windows with other numbers of boundaries", "scenes", higher=False),
    "pk": Measure("Pk", "windows that one divides and the other does not", "scenes", higher=False),
    **_two_sided("characters", "scenes", "Characters", "characters of a scene"),
    **_two_sided("actions", "scenes", "Decisive acts", "actions of scenes"),
    **_two_sided("must_show", "scenes", "Must show", "things that must be visible"),
    "transitions_matched": Measure(
        "Transitions", f"transitions of gold whose boundary the draft has ({_NEAR})", "transitions"
    ),
    "transition_types": Measure(
        "Types agree", "matched transitions of the same type, where both give one", "transitions"
    ),
    "transition_kappa": Measure("Types, kappa", "agreement beyond chance (Cohen 1960)", "transitions"),
    **_two_sided("causes", "transitions", "Causes", "stated causes of matched transitions"),
    "questions_matched": Measure(
        "Questions", "questions of gold with one of the same type on the same scenes", "questions"
    ),
    "answers_of_matched": Measure(
        "Answers of matched", "accepted answers of matched gold questions that the draft accepts", "questions"
    ),
    "answers": Measure(
        "Answers", "accepted answers of all gold questions that the draft accepts", "questions"
    ),
    "blind_draft": Measure(
        "Sound by blind answers",
        "draft questions that a model, from the text, answers as accepted",
        "questions",
    ),
    "blind_gold": Measure("The same, gold", "gold questions that the same model answers so", "questions"),
    "variants_valid": Measure("Variants valid", "variants without a failed check", "variants"),
    "variants_read": Measure("Variants read", "variants that a model or an author judged", "variants"),
    "narrative_type": Measure("Narrative type", "records with the type of gold", "labels"),
    "moral_label": Measure("Moral label", "records with the label of gold", "labels"),
    "complete": Measure("Complete", "records that lack nothing that a release requires", "record"),
    "checked": Measure("Checked", "records whose checks were all made and passed, or reviewed", "record"),
}
"""Name -> measure, in the order of tables."""
KAPPA = "transition_kappa"
TYPES = vocabulary("transition_type").values


@dataclass(slots=True)
class Counts:
    """What was counted in one story."""

    sums: dict[str, tuple[int, int]] = field(default_factory=dict)  # measure -> how many of how many
    # (type in gold, type in the draft) of matched transitions -> how many
    types: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, name: str, number: int, total: int) -> None:
        before = self.sums.get(name, (0, 0))
        self.sums[name] = (before[0] + number, before[1] + total)


def scores(stories: Sequence[Counts], uncertainty: Uncertainty) -> dict[str, Score]:
    """Return every measure over all stories, with its interval over resampled stories."""
    names = [name for name in MEASURES if name != KAPPA]
    sums = np.array([[story.sums.get(name, (0, 0)) for name in names] for story in stories], dtype=np.float64)
    cells = np.array(
        [[story.types[own, other] for own in TYPES for other in TYPES] for story in stories], dtype=np.float64
    )
    columns = np.concatenate([sums.reshape(len(stories), -1), cells], axis=1)
    resamples = uncertainty.resamples if len(stories) > 1 else 0
    drawn = resampled_sums(columns, resamples, uncertainty.seed)
    values, replicates, own = (_values(rows, len(names)) for rows in (columns.sum(axis=0), drawn, columns))
    known = (~np.isnan(own)).sum(axis=0)
    known[-1] = (cells.sum(axis=1) > 0).sum()
    lowest = np.zeros(len(values))
    lowest[-1] = -np.inf  # kappa is no mean: no exact interval where all agree
    low, high = uncertainty.ends(values, replicates, known, (lowest, 1.0))
    totals = columns.sum(axis=0)
    shown = {}
    for position, name in enumerate((*names, KAPPA)):
        pair = totals[2 * position : 2 * position + 2] if name != KAPPA else (None, cells.sum())
        shown[name] = _score(values[position], (low[position], high[position]), pair)
    return {name: shown[name] for name in MEASURES}


def _values(rows: Floats, shares: int) -> Floats:
    """Return the shares of sums and kappa, shape (..., shares + 1)."""
    sums, cells = rows[..., : 2 * shares], rows[..., 2 * shares :]
    rates = divided(sums[..., 0::2], sums[..., 1::2])
    return np.concatenate([rates, _kappa(cells)[..., None]], axis=-1)


def _kappa(cells: Floats) -> Floats:
    """Return Cohen's kappa of flattened tables, shape (...); ``nan`` where chance alone explains all."""
    table = cells.reshape(*cells.shape[:-1], len(TYPES), len(TYPES))
    total = table.sum(axis=(-2, -1))
    agreed = divided(np.trace(table, axis1=-2, axis2=-1), total)
    chance = divided((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), total**2)
    return divided(agreed - chance, 1 - chance)


def _score(value: float, ends: tuple[float, float], pair: Sequence[float | None]) -> Score:
    if np.isnan(value):
        return Score(value=None, status="undefined", reason="there is nothing to count")
    low, high = (None if np.isnan(end) else float(end) for end in ends)
    number, total = (None if part is None else float(part) for part in pair)
    return Score(value=float(value), status="ok", low=low, high=high, numerator=number, denominator=total)


# -- One draft beside the gold record of its story

# -- Where scenes of a draft end, compared with where those of a gold record do
#
# Question: does a draft cut the story into scenes where a careful reader does?
# Formula: a boundary is the place where a scene but the last ends. Exact: the same place, white space aside.
#     Near: the sentences in which two scenes end are at most one apart; each boundary is matched once, in
#     order. Precision: matched / boundaries of the draft; recall: matched / boundaries of the gold record.
#     Pk: the share of windows of k sentences whose ends lie in one scene of one record and in two of the
#     other. WindowDiff: the share of windows in which the numbers of boundaries differ.
# Input: the text of a story, the texts of the scenes of both records, which cover it in order.
# Output: counts, which add over stories. Pk and WindowDiff in [0, 1], 0 is the best.
# Undefined when: Pk and WindowDiff where a story has no window, that is k sentences or fewer.
# Source: Beeferman, Berger and Lafferty 1999 (Pk); Pevzner and Hearst 2002 (WindowDiff).
# Departures from the source: k is half the mean length of the gold scenes, and at least 2 as in the package
#     segeval (Fournier 2013), since with 1 a window is a single gap. A scene that ends within a sentence
#     counts as one that ends after it, but is never an exact match of one that does.
# Example: 8 sentences; gold scenes end after 2, 4 and 6, those of the draft after 2, 5 and 6. Exact: 2 of 3
#     match; near: all 3. k = 8 / 4 / 2 = 1, so 2; the 6 windows begin at sentences 1 to 6. Boundaries within
#     them, gold and draft: 1-1, 1-1, 1-0, 1-1, 1-2, 1-1: WindowDiff 2/6. With a boundary in one and none in
#     the other there is one: Pk 1/6.

LEAST_WINDOW = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a scene: its offset in the text, and the number of the sentence that it lies in, from 0."""

    offset: int
    sentence: int


def cuts_of(text: str, language: str, scenes: Sequence[str]) -> list[Cut]:
    """Return where the scenes but the last end, in order; nothing where they do not cover the text."""
    spans = scene_spans(text, scenes)
    if spans is None:
        return []
    ends = [end for _, end in sentence_spans(text, language)]
    return [Cut(end, min(bisect_left(ends, end), len(ends) - 1)) for _, end in spans[:-1]]


def matched(gold: Sequence[Cut], draft: Sequence[Cut], reach: int | None) -> list[tuple[int, int]]:
    """Return which boundaries are the same, as pairs of their numbers, in order.

    ``reach``: how many sentences apart they may be; None where they must be at the same place.
    """
    pairs, own, other = [], 0, 0
    while own < len(gold) and other < len(draft):
        first, second = gold[own], draft[other]
        apart = second.sentence - first.sentence
        same = first.offset == second.offset if reach is None else abs(apart) <= reach
        if same:
            pairs.append((own, other))
        before = first.offset < second.offset if reach is None else apart > 0
        own += same or before
        other += same or not before
    return pairs


@dataclass(frozen=True, slots=True)
class Windows:
    """How many windows there are, and in how many of them two divisions differ."""

    total: int
    pk: int
    window_diff: int


def windows(gold: Sequence[Cut], draft: Sequence[Cut], sentences: int) -> Windows:
    """Return in how many windows of sentences two divisions of a story differ."""
    size = max(LEAST_WINDOW, round(sentences / (len(gold) + 1) / 2))
    firsts = range(max(0, sentences - size))
    counts = [
        tuple(sum(start <= cut.sentence < start + size for cut in cuts) for cuts in (gold, draft))
        for start in firsts
    ]
    return Windows(
        len(firsts),
        sum((own > 0) != (other > 0) for own, other in counts),
        sum(own != other for own, other in counts),
    )


# -- One draft beside the gold record of its story

NEAR = 1
"""So many sentences may two boundaries be apart that are nearly the same."""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that a person may want to look at."""

    group: str  # what it is about: boundaries, acts, causes, questions, blind, variants, labels
    story_id: str  # the story
    path: str  # JSON path in the gold record, or in the draft where there is none in gold
    gold: str  # what the gold record says
    draft: str  # what the draft says
    note: str  # what is wrong
    good: float  # how good it is, 0 to 1; the worst cases are shown first


@dataclass(slots=True)
class Comparison:
    """What was counted in one story, and what to look at."""

    counts: Counts = field(default_factory=Counts)
    cases: list[Case] = field(default_factory=list)


Blind = Sequence[str | None]
"""What a model answered to the questions of a record, in order; None where it found the text unclear."""


class Comparing:
    """Compares the draft of one story with its gold record.

    ``compare``: whether an answer is one of those that a key accepts. ``blind``: answers of a model to the
    questions of the draft and of the gold record, where one was asked.
    """

    def __init__(
        self, draft: Annotated, gold: Annotated, compare: Compare, blind: tuple[Blind | None, Blind | None]
    ) -> None:
        self._draft, self._gold, self._compare, self._blind = draft, gold, compare, blind
        self._story_id = str(gold.record["story_id"])
        self._made = Comparison()
        self._over = overlapping(gold, draft)

    def result(self) -> Comparison:
        """Return what was counted, and the cases."""
        draft, gold = self._draft.record, self._gold.record
        self._boundaries()
        self._scenes()
        self._transitions()
        self._questions()
        self._blindly()
        self._variants()
        for name in ("narrative_type", "moral_label"):
            same = draft[name] == gold[name]
            self._count(name, int(same), 1)
            if not same:
                self._case("labels", f"$.{name}", (str(gold[name]), str(draft[name])), "another label", 0)
        self._count("complete", int(incomplete_reason(draft, self._draft.variants) is None), 1)
        self._count("checked", int(state_of(draft["validation_status"], self._draft.checks) != "draft"), 1)
        return self._made

    def _count(self, name: str, number: int, total: int) -> None:
        self._made.counts.add(name, number, total)

    def _case(self, group: str, path: str, sides: tuple[str, str], note: str, good: float) -> None:
        self._made.cases.append(Case(group, self._story_id, path, *sides, note, good))

    def _same(self, first: str | None, second: str | None) -> bool:
        return bool(first and second) and self._compare(Key.of_answers("", str(second)), str(first))

    def _boundaries(self) -> None:
        text, language = self._gold.record["story_text"], self._gold.record["language"]
        gold, draft = (
            cuts_of(each.record["story_text"], language, each.texts) for each in (self._gold, self._draft)
        )
        for prefix, reach in (("", None), ("near_", NEAR)):
            same = len(matched(gold, draft, reach))
            self._count(f"{prefix}boundaries_precision", same, len(draft))
            self._count(f"{prefix}boundaries_recall", same, len(gold))
            self._count(f"{prefix}boundaries_f1", 2 * same, len(gold) + len(draft))
        compared = windows(gold, draft, len(sentence_spans(text, language)))
        self._count("window_diff", compared.window_diff, compared.total)
        self._count("pk", compared.pk, compared.total)
        exact = len(matched(gold, draft, None))
        if 2 * exact < len(gold) + len(draft):
            good = 2 * exact / (len(gold) + len(draft))
            note = f"{exact} of {len(gold)} boundaries are the same"
            sides = "\n\n".join(self._gold.texts), "\n\n".join(self._draft.texts)
            self._case("boundaries", "$.scenes", sides, note, good)

    def _scenes(self) -> None:
        gold, draft = self._gold.record["scenes"], self._draft.record["scenes"]
        for name, read in _PARTS.items():
            own, other = ([read(scene) for scene in scenes] for scenes in (gold, draft))
            back = [[i for i, over in enumerate(self._over) if j in over] for j in range(len(draft))]
            has = self._shared(own, other, self._over)
            self._count(f"{name}_recall", sum(map(sum, has)), sum(map(len, has)))
            kept = self._shared(other, own, back)
            self._count(f"{name}_precision", sum(map(sum, kept)), sum(map(len, kept)))
            for number, (texts, present) in enumerate(zip(own, has, strict=True)):
                beside = [text for j in self._over[number] for text in other[j]]
                for text in [text for text, there in zip(texts, present, strict=True) if not there]:
                    good = token_f1(normalize_answer(text), map(normalize_answer, beside))
                    self._case(
                        "acts", f"$.scenes[{number}].{_FIELDS[name]}", (text, "; ".join(beside)),
                        "not in the draft of the same scenes", good,
                    )  # fmt: skip

    def _shared(
        self, own: Sequence[Sequence[str]], other: Sequence[Sequence[str]], over: Sequence[Sequence[int]]
    ) -> list[list[bool]]:
        """Return for each text of each scene whether a scene that overlaps says the same."""
        return [
            [any(self._same(text, said) for j in over[i] for said in other[j]) for text in texts]
            for i, texts in enumerate(own)
        ]

    def _transitions(self) -> None:
        gold, draft = self._gold.record, self._draft.record
        cuts = [
            cuts_of(each.record["story_text"], gold["language"], each.texts)
            for each in (self._gold, self._draft)
        ]
        pairs = matched(cuts[0], cuts[1], NEAR)
        own, other = gold["transitions"], draft["transitions"]
        self._count("transitions_matched", len(pairs), len(own))
        for first, second in pairs:
            there, here = own[first], other[second]
            types = there["transition_type"], here["transition_type"]
            if None not in types:
                self._made.counts.types[types] += 1
            self._count("transition_types", int(types[0] == types[1]), int(None not in types))
            same = self._same(here["causality"], there["causality"])
            self._count("causes_recall", int(same), int(there["causality"] is not None))
            self._count("causes_precision", int(same), int(here["causality"] is not None))
            if here["causality"] is not None and not same:
                good = token_f1(
                    normalize_answer(here["causality"]), [normalize_answer(there["causality"] or "")]
                )
                texts = (str(there["causality"]), str(here["causality"]))
                self._case("causes", f"$.transitions[{first}].causality", texts, "another cause", good)

    def _questions(self) -> None:
        draft = self._draft.record["questions"]
        counterparts = self._counterparts()
        for number, question in enumerate(self._gold.record["questions"]):
            answers = _answers(question)
            other = counterparts.get(number)
            taken = 0 if other is None else sum(self._accepts(draft[other], text) for text in answers)
            self._count("questions_matched", int(other is not None), 1)
            self._count("answers", taken, len(answers))
            if other is not None:
                self._count("answers_of_matched", taken, len(answers))
            if taken < len(answers):
                note = "no question of this type on these scenes" if other is None else (
                    f"{taken} of {len(answers)} answers are accepted"
                )  # fmt: skip
                self._case(
                    "questions", f"$.questions[{number}]",
                    (asked(question), "" if other is None else asked(draft[other])), note,
                    taken / len(answers),
                )  # fmt: skip

    def _accepts(self, question: Json, answer: str) -> bool:
        key = Key.of_answers("", question["gold_answer"], question["accepted_answers"])
        return self._compare(key, answer)

    def _counterparts(self) -> dict[int, int]:
        """Return gold question -> question of the draft: of one type, on the same scenes, each taken once.

        Where there are several, first that which accepts most answers of gold, then that with most words
        of the question.
        """
        gold, draft = self._gold.record["questions"], self._draft.record["questions"]
        fits = []
        for number, question in enumerate(gold):
            scenes = {j for scene in question["evidence_scenes"] for j in self._over_of(scene - 1)}
            for other, drafted in enumerate(draft):
                on_same = scenes & {scene - 1 for scene in drafted["evidence_scenes"]}
                if drafted["question_type"] != question["question_type"] or not on_same:
                    continue
                accepted = sum(self._accepts(drafted, text) for text in _answers(question))
                words = token_f1(
                    normalize_answer(drafted["question"]), [normalize_answer(question["question"])]
                )
                fits.append((-accepted, -words, number, other))
        pairs: dict[int, int] = {}
        for _, _, number, other in sorted(fits):
            if number not in pairs and other not in pairs.values():
                pairs[number] = other
        return pairs

    def _over_of(self, scene: int) -> Sequence[int]:
        return self._over[scene] if 0 <= scene < len(self._over) else ()

    def _blindly(self) -> None:
        for name, side, answers in zip(
            ("blind_draft", "blind_gold"), (self._draft, self._gold), self._blind, strict=True
        ):
            questions = side.record["questions"] if answers is not None else ()
            for number, (question, answer) in enumerate(zip(questions, answers or (), strict=True)):
                sound = answer is not None and self._accepts(question, answer)
                self._count(name, int(sound), 1)
                if not sound and name == "blind_draft":
                    said = "the text is unclear" if answer is None else f"answered: {answer}"
                    accepted = map(normalize_answer, _answers(question))
                    good = token_f1(normalize_answer(answer or ""), accepted)
                    self._case("blind", f"$.questions[{number}]", ("", asked(question)), said, good)

    def _variants(self) -> None:
        failed = dict(failed_variants(self._draft))
        judged = {
            _variant_of(row["path"]) for row in self._draft.checks
            if row["code"] in JUDGES_VARIANTS and row["passed"] is not None
        }  # fmt: skip
        for number, variant in enumerate(self._draft.variants):
            self._count("variants_valid", int(number not in failed), 1)
            self._count("variants_read", int(number in judged), 1)
            if number in failed:
                scene = self._draft.texts[variant["changed_scene_id"] - 1 :][:1]
                texts = ("".join(scene), variant["contrastive_scene_text"])
                self._case("variants", f"$.variants[{number}]", texts, failed[number], 0)


def _must_show(scene: Json) -> list[str]:
    return list(scene["visual_must_show"])


def _action(scene: Json) -> list[str]:
    return [scene["action"]] if scene["action"] else []


def _characters(scene: Json) -> list[str]:
    return list(scene["characters"])


_PARTS: dict[str, Callable[[Json], list[str]]] = {
    "characters": _characters, "actions": _action, "must_show": _must_show,
}  # fmt: skip
_FIELDS = {"characters": "characters", "actions": "action", "must_show": "visual_must_show"}


def _answers(question: Json) -> list[str]:
    """Return the accepted answers, the canonical one first, each once."""
    return list(dict.fromkeys((question["gold_answer"], *question["accepted_answers"])))


def asked(question: Json) -> str:
    """Return a question and its accepted answers for readers."""
    return f"({question['question_type']}) {question['question']}\n= " + " / ".join(_answers(question))


def overlapping(gold: Annotated, draft: Annotated) -> list[list[int]]:
    """Return for each scene of the gold record which scenes of the draft overlap it, from 0.

    Scenes overlap that share at least half of the letters of the shorter one.
    """
    text, other = gold.record["story_text"], draft.record["story_text"]
    spans = (scene_spans(text, gold.texts) or (), scene_spans(other, draft.texts) or ())
    own, drafted = (
        [(_letters(each[:start]), _letters(each[:end])) for start, end in cuts]
        for each, cuts in zip((text, other), spans, strict=True)
    )
    return [
        [
            number for number, (start, end) in enumerate(drafted)
            if 2 * (min(last, end) - max(first, start)) >= min(last - first, end - start)
        ]
        for first, last in own
    ]  # fmt: skip


def _letters(text: str) -> int:
    return sum(not char.isspace() for char in text)


def failed_variants(draft: Annotated) -> Iterator[tuple[int, str]]:
    """Yield the number of each variant with a failed check, and what it failed.

    The rules check every variant anew; what a model or an author found stands in the checks of a run.
    """
    record = draft.record
    story = {
        "id": record["story_id"], "title": record["title"], "language": record["language"],
        "text": record["source_text"], "normalized_text": record["story_text"],
        "source_collection": record["provenance"]["source_dataset"],
        "source_reference": record["provenance"]["source_reference"],
        "rights_status": record["provenance"]["source_rights_status"],
    }  # fmt: skip
    lists = {name: record[name] for name in ("title", "narrative_type", "moral_label", "scenes")}
    lists |= {name: record[name] for name in ("transitions", "questions")}
    checks = [
        *rule_checks(story, {**lists, "variants": list(draft.variants), "producers": draft.producers}),
        *(row for row in draft.checks if row["code"] in JUDGES_VARIANTS),
    ]
    failed: dict[int, list[str]] = {}
    for row in checks:
        number = _variant_of(row["path"])
        if row["passed"] is False and number is not None:
            failed.setdefault(number, []).append(f"{row['code']}: {row['note']}")
    yield from ((number, "; ".join(dict.fromkeys(notes))) for number, notes in sorted(failed.items()))


def _variant_of(path: str) -> int | None:
    head, _, rest = path.partition("$.variants[")
    number = rest.partition("]")[0]
    return int(number) if not head and number.isdigit() else None
