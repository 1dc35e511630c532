"""The transitions behind the scores: which are shown, with their frames, questions, replies and verdicts.

Which transitions a report shows: groups of scenes with questions, the worst first.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....schemas.judgement import Judgement
from ....schemas.katha import Question
from ....schemas.text import counted
from ....schemas.values import Score
from ...recoverability import recoverability
from ...recoverability.matching import CONDITIONS, Definitions, Items, Key, Marker, is_rule, matcher_of
from ...recoverability.method import Method
from ...recoverability.pooling import IMAGE, RIGHT_VERDICT, TEXT, UNJUDGED
from ...report.model import Case, CaseItem, Cases, Examples, Frame, Measure, Verdict
from ...report.showing import Pictures, Valued, examples_of

ALL, WORST, TYPICAL = 48, 12, 12
"""Up to how many transitions all are shown; else how many of the worst, and how many typical ones."""
NO_QUESTION = "no question of it is valid"

Scenes = tuple[int, ...]


@dataclass(frozen=True)
class Spot:
    """Some scenes of one generation, and the questions about them."""

    method: int  # place of the method
    seed: int  # place of the seed
    story: int  # place of the story
    scenes: Scenes  # from the first to the last, as numbers; empty for the story as a whole
    questions: tuple[int, ...]  # places of the questions
    score: Score  # its gap
    why: str = "all"


def spots_of(methods: Sequence[Method], items: Items) -> list[Spot]:
    """Return every group of scenes that has questions, for every valid generation."""
    groups: dict[tuple[int, Scenes], list[int]] = defaultdict(list)
    questions = _questions(items)
    for place, question in enumerate(questions):
        groups[int(items.story[place]), scenes_of(question)].append(place)
    found = []
    for number, method in enumerate(methods):
        for (story, scenes), places in sorted(groups.items()):
            for seed in range(len(method.outcomes.requested)):
                if method.outcomes.valid[seed, places[0]]:
                    score = _gap(method, seed, places)
                    found.append(Spot(number, seed, story, scenes, tuple(places), score))
    return found


def scenes_of(question: Question) -> Scenes:
    """Return the scenes that a question is about, from the first to the last; empty for the whole story."""
    if question.target_transition is not None:
        return (question.target_transition[0], question.target_transition[1])
    if question.target_scene is not None:
        return (question.target_scene,)
    if len(question.evidence_scenes) in (1, 2):
        return tuple(sorted(question.evidence_scenes))
    return ()


def chosen_spots(spots: Sequence[Spot]) -> list[Spot]:
    """Return what is shown, the worst first: all if there are few, else the worst and typical ones.

    Typical are those whose gap is nearest to the median. Those without a gap come last. What loses nothing is
    never among the worst.
    """
    known = sorted((spot for spot in spots if spot.score.value is not None), key=_badness)
    if len(spots) <= ALL:
        return [*known, *(spot for spot in spots if spot.score.value is None)]
    lossy = sum(_value(spot) > 0 for spot in known)
    worst = [replace(spot, why="worst") for spot in known[: min(WORST, lossy)]]
    rest = known[len(worst) :]
    if not rest:
        return worst
    middle = statistics.median(_value(spot) for spot in known)
    near = sorted(rest, key=lambda one: (abs(_value(one) - middle), _badness(one)))[:TYPICAL]
    return [*worst, *(replace(spot, why="typical") for spot in sorted(near, key=_badness))]


def _gap(method: Method, seed: int, places: Sequence[int]) -> Score:
    outcomes = method.outcomes
    valid = [place for place in places if outcomes.sets["filtered"][seed, place]]
    right = outcomes.verdicts[seed] == RIGHT_VERDICT
    lost = int(right[TEXT, valid].sum()) - int(right[IMAGE, valid].sum())
    return Score.ratio(lost, len(valid), NO_QUESTION, questions=len(places), valid=len(valid))


def _questions(items: Items) -> list[Question]:
    known = {question.question_id: question for record in items.records for question in record.questions}
    return [known[key.question_id] for key in items.keys]


def _value(spot: Spot) -> float:
    assert spot.score.value is not None
    return spot.score.value


def _badness(spot: Spot) -> tuple[float, int, int, Scenes, int, int]:
    """Return what spots are sorted by: the largest gap, of those the one with most questions, then order."""
    return (-_value(spot), -len(spot.questions), spot.story, spot.scenes, spot.method, spot.seed)


NAMES = {"text": "Text", "image": "Images", "text_image": "Text and images"}
ReplyKey = tuple[str | None, int | None, str]


@dataclass
class Replies:
    """The judgements about the questions that are shown."""

    wanted: frozenset[str]  # ids of the questions
    # (method, seed, question id) -> replies; text-only ones under method and seed null
    rows: dict[ReplyKey, list[Judgement]] = field(default_factory=lambda: defaultdict(list))
    matches: dict[str, dict[tuple[str, str], bool]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, judgement: Judgement) -> None:
        """Keep a judgement if it is about a question that is shown."""
        if judgement.item not in self.wanted:
            return
        if judgement.kind == "match" and judgement.parsed is not None:
            said = judgement.parsed
            self.matches[str(said.get("matcher"))][judgement.item, str(said.get("answer"))] = bool(
                said.get("matched")
            )
        elif judgement.kind == "question":
            is_text = judgement.condition == "text"
            place = (None, None) if is_text else (judgement.method, judgement.seed)
            self.rows[*place, judgement.item].append(judgement)

    def marker(self, definitions: Definitions) -> Marker:
        """Return what decides whether a reply is right."""
        named = {} if is_rule(definitions.matcher) else self.matches
        return Marker(matcher_of(definitions.matcher, named), definitions.support)


@dataclass(frozen=True)
class Shown:
    """What the cases are made of."""

    methods: Sequence[Method]
    items: Items
    replies: Replies
    pictures: Pictures
    seeds: tuple[int | None, ...]  # seeds by place
    definitions: Definitions  # how replies count

    def place(self, spot: Spot) -> tuple[str, str, int | None]:
        """Return method, story and seed of a spot."""
        seed = self.seeds[spot.seed] if self.seeds else None
        return self.methods[spot.method].name, self.items.records[spot.story].story_id, seed

    def frames(self, spot: Spot) -> tuple[Frame, ...]:
        """Return the pictures of a spot, without words."""
        return self.pictures.of_scenes(self.place(spot), spot.scenes, {})

    def case(self, spot: Spot) -> Case:
        """Return a spot with its pictures, questions and replies."""
        record, (method, story, seed) = self.items.records[spot.story], self.place(spot)
        texts = {scene.scene_index: scene.scene_text for scene in record.scenes}
        questions = {question.question_id: question for question in record.questions}
        marker = self.replies.marker(self.definitions)
        return Case(
            unit=story, title=record.title, place=_scenes_text(spot.scenes), method=method, seed=seed,
            why=spot.why, score=spot.score,
            frames=self.pictures.of_scenes((method, story, seed), spot.scenes, texts)
            if spot.scenes
            else self.pictures.every((method, story, seed)),
            items=tuple(
                self._item(questions[self.items.keys[number].question_id], spot, number, marker)
                for number in spot.questions
            ),
        )  # fmt: skip

    def _item(self, question: Question, spot: Spot, number: int, marker: Marker) -> CaseItem:
        outcomes, (method, _, seed) = self.methods[spot.method].outcomes, self.place(spot)
        verdicts = outcomes.verdicts[spot.seed, :, number]
        others = [answer for answer in question.accepted_answers if answer != question.gold_answer]
        name, rows = question.question_id, self.replies.rows
        about = [*rows.get((None, None, name), ()), *rows.get((method, seed, name), ())]
        return CaseItem(
            id=name, group=question.question_type, text=question.question,
            accepted=(question.gold_answer, *others),
            verdicts=tuple(self._verdict(reply, self.items.keys[number], marker) for reply in about),
            combined={
                condition: None if verdicts[n] == UNJUDGED else bool(verdicts[n] == RIGHT_VERDICT)
                for n, condition in enumerate(CONDITIONS)
            },
            valid=bool(outcomes.sets["filtered"][spot.seed, number]),
        )  # fmt: skip

    def _verdict(self, judgement: Judgement, key: Key, marker: Marker) -> Verdict:
        parsed: Mapping[str, object] = judgement.parsed or {}
        both = judgement.condition == "text_image"
        correct: bool | None = False if self.definitions.nonresponse == "incorrect" else None
        if judgement.outcome == "answered":
            correct = marker.marks(key, judgement.condition, parsed)[0]
        return Verdict(
            judge=judgement.judge.spec, condition=judgement.condition, vote=judgement.vote,
            outcome=judgement.outcome,
            answer=_text(parsed.get("final_answer" if both else "answer")) or judgement.reason,
            status=_text(parsed.get("image_support" if both else "evidence_status")),
            confidence=_text(parsed.get("confidence")), correct=correct,
        )  # fmt: skip


def cases_of(spots: Sequence[Spot], total: int, shown: Shown) -> Cases:
    """Return the transitions that a report shows."""
    note = f"All {total} groups of scenes with questions, the largest gap first."
    if len(spots) < total:
        worst = sum(spot.why == "worst" for spot in spots)
        note = (
            f"{len(spots)} of {total} groups of scenes with questions: the {worst} with the largest gap, and "
            f"{len(spots) - worst} whose gap is nearest to the median."
        )
    return Cases(
        title="Transitions",
        note=f"{note} The gap is the share of valid questions recovered from text, minus that from images. "
        "Judges saw pictures and questions only; the words under a picture are for readers.",
        measure=Measure.of(recoverability.GAP, label="Gap"), total=total, conditions=NAMES,
        shown=tuple(map(shown.case, spots)),
    )  # fmt: skip


def examples(spots: Sequence[Spot], shown: Shown) -> Iterator[Examples]:
    """Yield cards of what images tell and of the gap, with the pictures of transitions and scenes."""
    drawn = [spot for spot in spots if spot.scenes and shown.place(spot) in shown.pictures.shown]
    image = "Share of the valid questions about a part of a story that images tell."
    gap = "Share of these questions that text tells, minus that which images tell."
    for quantity, meaning in ((recoverability.IMAGE, image), (recoverability.GAP, gap)):
        is_gap = quantity is recoverability.GAP
        valued = []
        for spot in drawn:
            score = spot.score if is_gap else _seen(shown.methods[spot.method], spot)
            if score.value is not None:
                method, story, _ = shown.place(spot)
                scenes, count = _scenes_text(spot.scenes), counted(len(spot.questions), "question")
                valued.append(Valued(score.value, f"{method}, {story}, {scenes}, {count}", spot))
        made = examples_of(quantity, meaning, valued, shown.frames, "points" if is_gap else "percent")
        if made is not None:
            yield made


def _seen(method: Method, spot: Spot) -> Score:
    """Return the share of a spot's valid questions that images tell."""
    outcomes = method.outcomes
    valid = [place for place in spot.questions if outcomes.sets["filtered"][spot.seed, place]]
    right = outcomes.verdicts[spot.seed][IMAGE, valid] == RIGHT_VERDICT
    return Score.ratio(int(right.sum()), len(valid), NO_QUESTION)


def _scenes_text(scenes: Scenes) -> str:
    if not scenes:
        return "whole story"
    return f"scene {scenes[0]}" if len(scenes) == 1 else f"scene {scenes[0]} to {scenes[-1]}"


def _text(value: object) -> str | None:
    return None if value is None else str(value)
