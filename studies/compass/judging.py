"""Asking judges what selection needs: image-only answers about storyboards, each an evaluation of its own.

Every question goes through ``fabula evaluate stories``: an engine run below one folder, continued where it
was stopped, no answer paid for twice. Only the image-only condition is asked, with the prompts ``main`` and
without moral labels and pairs: Eq. 24 and 27 need no more.

What runs cost, and what is left of one cost limit that several runs share.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import ConfigError, InputError, TargetError
from ...evaluation.archive.archive import release_sha256
from ...evaluation.judging.settings import MAIN, JudgeSettings, judge_prompt, judges_of, public_judge
from ...evaluation.katha.requests import EvaluateOptions, evaluate_katha, evaluation_request
from ...evaluation.recoverability.matching import DIMENSIONS, Definitions
from ...evaluation.recoverability.pooling import IMAGE, RIGHT_VERDICT, UNJUDGED
from ...evaluation.recoverability.score import Judged, judged_folder
from ...people.audits.compare import read_records
from ...releases.katha.selection import write_derived
from ...releases.loading import Release, load
from ...schemas.canonical import Json, digest, jsonl_lines, plain_parts, pretty_bytes, write_atomic, writing
from ...schemas.katha import Question, StoryRecord
from ...schemas.plain_files import MISSHAPEN, explaining, read_json
from ...schemas.text import contains_phrase
from ...schemas.values import Score
from .boards import Board, Seed, recoverability, write_boards

if TYPE_CHECKING:
    from ...engine.hooks import Reporter
    from ...engine.status import RunReport


# -- Which questions select and which report: two parts of each story's questions, drawn once and kept
#
# Question: which of a story's questions may Semantic Compass see?
# Formula: by one of two rules, drawn per story by the SHA-256 of (seed, story id, question id).
#     transitions: questions are taken one by one, from the transition of which fewest were taken; among these
#         of the dimension of which fewest were taken there, then in the story. A half of them, rounded down,
#         selects, and at least two where there are three. Questions about no transition are taken last.
#     dimensions: half of the questions of each dimension, rounded down.
#     Moral questions are always halved as a dimension of their own: they are of no transition (Eq. 27).
#     With a selection set (questions that were written for selection alone) these select, and all questions
#     of the release report; what the release asks in the same words is left out of the set. The set "rules"
#     asks for the cause, feeling and outcome of every transition; answers are the annotation's texts.
# Input: the records of a release; the master seed, 42.
# Output: question id -> half, with a hash of the whole assignment.
# Undefined when: never. A story may have no question that selects: then recoverability is undefined for it
#     and the other terms select (:mod:`.scoring`).
# Source: KathaTrace, B.7, G.4, J.7, Tables 43 and 64: selection and final reporting stand on different
#     questions. The paper does not say how they are drawn.
# Departures from the source: it holds back questions between splits, this also within each story, so that
#     the stories that are reported on can be selected for. With the mix of Table 14 (5.7 questions a story,
#     one of most dimensions) dimensions leave 56 % of the stories without a selection question; transitions
#     give all of them two.
# Example: causal about transition 1, emotional about 1, consequence about 3, temporal order about 4, moral:
#     one of the first two and one of the others select, three report.

Half = Literal["selection", "reporting"]
SELECTION: Half = "selection"
REPORTING: Half = "reporting"
Halving = Literal["transitions", "dimensions"]
UNSCORED = "moral"
"""Dimension that has no part in Eq. 27: a moral is of the story, not of one transition."""
MASTER_SEED = 42
QUESTIONS = "questions.json"
SET_ID = "selecting_"
"""How the id of a question of a selection set begins in the release that selects."""
RULES = "rules"
"""The selection set that is made from annotations, without a planner."""
ASKED = {
    "causal": ("causality", "Why does it come to this: \u201c{after}\u201d? Before it: \u201c{before}\u201d"),
    "emotional": (
        "emotion", "What is felt between \u201c{before}\u201d and \u201c{after}\u201d?"
    ),
    "consequence": (
        "consequence", "What comes of it, when \u201c{before}\u201d is followed by \u201c{after}\u201d?"
    ),
}  # fmt: skip
"""Dimension -> the field of a transition that answers, and how the set of rules asks for it."""


@dataclass(frozen=True)
class QuestionHalves:
    """Which half each question of a release belongs to."""

    seed: int  # of the draw
    half_of: Mapping[str, Half] = field(repr=False)  # question id -> half
    rule: Halving = "dimensions"  # how they were drawn; files of earlier versions do not say it

    @property
    def sha256(self) -> str:
        """Hash of the assignment."""
        return digest({"seed": self.seed, "half_of": dict(self.half_of)})

    def of(self, half: Half) -> frozenset[str]:
        """Return the ids of the questions of a half."""
        return frozenset(question for question, owner in self.half_of.items() if owner == half)

    def records(self, records: Iterable[StoryRecord], half: Half) -> tuple[StoryRecord, ...]:
        """Return records with the questions of one half only; those that select have no moral label."""
        kept = self.of(half)
        return tuple(_with_half(record, kept, labelled=half == REPORTING) for record in records)

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``questions.json`` holds."""
        return plain_parts(self, "seed", "sha256", "rule", "half_of")


def split_questions(
    records: Iterable[StoryRecord], seed: int = MASTER_SEED, rule: Halving = "transitions"
) -> QuestionHalves:
    """Draw the halves of a release's questions; the same for the same questions, in whatever order."""
    half_of: dict[str, Half] = {}
    for record in records:
        drawn = sorted(record.questions, key=lambda q, of=record.story_id: digest([seed, of, q.question_id]))  # type: ignore[misc]
        morals = [question for question in drawn if question.question_type == UNSCORED]
        others = [question for question in drawn if question.question_type != UNSCORED]
        by_rule = _over_transitions(record, others) if rule == "transitions" else _by_dimension(others)
        selecting = {question.question_id for question in (*_by_dimension(morals), *by_rule)}
        half_of |= {q.question_id: SELECTION if q.question_id in selecting else REPORTING for q in drawn}
    return QuestionHalves(seed, dict(sorted(half_of.items())), rule)


def _by_dimension(drawn: Sequence[Question]) -> list[Question]:
    groups: dict[str, list[Question]] = defaultdict(list)
    for question in drawn:
        groups[question.question_type].append(question)
    return [question for group in groups.values() for question in group[: len(group) // 2]]


def _over_transitions(record: StoryRecord, drawn: Sequence[Question]) -> list[Question]:
    """Return half of the questions, spread over transitions first, dimensions second."""
    links = {(transition.from_scene, transition.to_scene) for transition in record.transitions}
    left, taken = list(drawn), list[Question]()
    at, dimension, both = Counter[object](), Counter[str](), Counter[object]()

    def rank(question: Question) -> tuple[bool, int, int, int]:
        link, kind = question.target_transition, question.question_type
        return link not in links, at[link], both[link, kind], dimension[kind]

    for _ in range(max(len(drawn) // 2, min(2, len(drawn) - 1))):
        question = min(left, key=rank)  # the first of several: the order that was drawn
        left.remove(question)
        taken.append(question)
        link, kind = question.target_transition, question.question_type
        at[link] += 1
        both[link, kind] += 1
        dimension[kind] += 1
    return taken


def with_halves(
    release: Release,
    rule: Halving = "transitions",
    selection_set: str | None = None,
    seed: int = MASTER_SEED,
) -> tuple[Release, QuestionHalves]:
    """Return a release with halves of its questions; with those of a selection set beside its own.

    ``selection_set``: ``rules``, or the path of records of the same stories with other questions: a run of
    ``build stories``, a release or a file.
    """
    if selection_set is None:
        return release, split_questions(release.records, seed, rule)
    written = _selection_set(release, selection_set)
    half_of: dict[str, Half] = {q.question_id: REPORTING for record in release for q in record.questions}
    records = []
    for record in release:
        own = {_asks(question) for question in record.questions}
        added = tuple(
            question.model_copy(update={"question_id": f"{SET_ID}{question.question_id}"})
            for question in written.get(record.story_id, ())
            if question.question_type != UNSCORED and _asks(question) not in own
        )
        half_of |= dict.fromkeys((question.question_id for question in added), SELECTION)
        records.append(record.model_copy(update={"questions": (*record.questions, *added)}))
    if SELECTION not in half_of.values():
        what = "it has no question about a story of the release that the release does not ask itself"
        fix = "give records of the same stories, with questions that another planner wrote"
        raise InputError.one(selection_set, what=what, fix=fix)
    halves = QuestionHalves(seed, dict(sorted(half_of.items())), "transitions")
    return replace(release, records=tuple(records)), halves


def _selection_set(release: Release, name: str) -> dict[str, tuple[Question, ...]]:
    """Return story id -> the questions of a selection set."""
    if name == RULES:
        return {record.story_id: questions_by_rules(record) for record in release}
    return {
        story_id: tuple(map(Question.model_validate, annotated.record["questions"]))
        for story_id, annotated in read_records(Path(name)).items()
    }


def questions_by_rules(record: StoryRecord) -> tuple[Question, ...]:
    """Return questions about each transition that its annotation answers; none where a text is missing."""
    action = {scene.scene_index: scene.action for scene in record.scenes}
    asked = []
    for number, transition in enumerate(record.transitions, 1):
        link = (transition.from_scene, transition.to_scene)
        before, after = (action.get(scene) for scene in link)
        for kind, (field_of, words) in ASKED.items():
            answer = getattr(transition, field_of)
            if not (answer and before and after) or contains_phrase(f"{before} {after}", answer):
                continue
            asked.append(
                Question(
                    question_id=f"{record.story_id}_t{number}_{kind}", story_id=record.story_id,
                    question_type=kind, question=words.format(before=before, after=after),
                    gold_answer=answer, accepted_answers=(answer,), target_scene=link[1],
                    target_transition=link, evidence_scenes=link, required_evidence=answer,
                    answerability="text_supported",
                )
            )  # fmt: skip
    return tuple(asked)


def write_selection_inputs(release: Release, out: Path) -> tuple[Path, Path]:
    """Write what ``build stories`` needs for a planner to write a selection set: stories, and their scenes.

    Returned: a file of stories, and one of records with scenes and transitions but without questions.
    """
    stories, scenes = out / "stories.jsonl", out / "scenes.jsonl"
    told = [
        {
            "id": record.story_id, "title": record.title, "language": record.language,
            "text": record.story_text, "source_collection": record.provenance.source_dataset,
            "rights_status": record.provenance.source_rights_status,
        }
        for record in release
    ]  # fmt: skip
    kept = [
        {
            "story_id": record.story_id, "author": f"release {release.version}",
            "scenes": record.as_json()["scenes"], "transitions": record.as_json()["transitions"],
        }
        for record in release
    ]  # fmt: skip
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_atomic(stories, jsonl_lines(told))
        write_atomic(scenes, jsonl_lines(kept))
    return stories, scenes


def _asks(question: Question) -> tuple[str, ...]:
    """Return the words of a question, so that the same one is known in another spelling."""
    return tuple(re.findall(r"\w+", question.question.casefold()))


@dataclass(frozen=True)
class HalvedRelease:
    """A release and its two halves, each a folder that evaluations read."""

    whole: Release = field(repr=False)  # the release
    halves: QuestionHalves = field(repr=False)  # which question is where
    selection: Path  # folder of the half that selects
    reporting: Path  # folder of the half that reports

    def folder(self, half: Half) -> Path:
        return self.selection if half == SELECTION else self.reporting

    def sha256(self, half: Half) -> str:
        """Return the hash by which archives know the half that they were asked with."""
        return release_sha256(self.folder(half))


def halve_release(
    release: Release, out: Path, rule: Halving | None = None, selection_set: str | None = None
) -> HalvedRelease:
    """Write ``questions.json`` and a release for each half; what is there already and the same stays.

    The half that selects has neither moral labels nor contrastive variants: Eq. 24 asks for neither, and
    whatever selection does not see stays held out.

    ``rule``: how halves are drawn; None for that of the folder, else by transitions.
    """
    path = out / QUESTIONS
    rule = rule or (read_halves(path).rule if path.is_file() else "transitions")
    release, halves = with_halves(release, rule, selection_set)
    _keep(path, halves)
    about = {"seed": halves.seed, "questions_sha256": halves.sha256}
    selecting, reporting = (halves.records(release.records, half) for half in (SELECTION, REPORTING))
    return HalvedRelease(
        release,
        halves,
        write_derived(release, out / SELECTION, selecting, {"half": SELECTION, **about}, variants=()),
        write_derived(release, out / REPORTING, reporting, {"half": REPORTING, **about}),
    )


def read_halves(path: Path) -> QuestionHalves:
    """Return the halves in a file ``questions.json``."""
    fix = "write it again: the same release and seed give the same halves"
    with explaining(path, fix, what="no halves of questions", of=MISSHAPEN):
        document = read_json(path, follow=True)
        halves = QuestionHalves(
            int(document["seed"]),
            {str(key): _half(name) for key, name in document["half_of"].items()},
            "transitions" if document.get("rule") == "transitions" else "dimensions",
        )
        stated = document["sha256"]
    if stated != halves.sha256:
        raise InputError.one(str(path), what="the file was changed: its hash is another", fix=fix)
    return halves


def _half(name: object) -> Half:
    if name == SELECTION:
        return SELECTION
    if name == REPORTING:
        return REPORTING
    raise ValueError(f"{name!r} is no half")


def _with_half(record: StoryRecord, kept: frozenset[str], *, labelled: bool) -> StoryRecord:
    questions = tuple(question for question in record.questions if question.question_id in kept)
    changed: dict[str, Any] = {"questions": questions} | ({} if labelled else {"moral_label": None})
    return record.model_copy(update=changed)


def _keep(path: Path, halves: QuestionHalves) -> None:
    """Write the file of halves, unless it says the same."""
    content = pretty_bytes(halves.as_json())
    with writing(path, what="it"):
        if path.is_file():
            if read_halves(path).sha256 == halves.sha256:
                return
            raise TargetError(
                str(path), what="the folder holds the halves of other questions, or of another seed",
                fix="choose another folder",
            )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [content])


# -- Asking judges what selection needs


@dataclass(frozen=True, slots=True)
class Spent:
    """What one run asked and cost, over all time."""

    calls: int = 0  # answered calls of models
    usd: float = 0.0  # what they cost at most, as far as prices are known
    unpriced: int = 0  # calls whose price is not known

    def as_json(self) -> dict[str, Json]:
        return {"calls": self.calls, "usd": round(self.usd, 6), "unpriced": self.unpriced}


@dataclass
class Ledger:
    """The costs of runs that share a limit."""

    limit: float | None = None  # most USD in all; None for no limit
    spent: dict[str, Spent] = field(default_factory=dict)  # name of a run -> what it cost

    def left(self, run: str) -> float | None:
        """Return what a run may cost in all, the others considered; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - sum(spent.usd for name, spent in self.spent.items() if name != run))

    def enter(self, run: str, report: "RunReport") -> None:
        self.spent[run] = Spent(
            sum(use.calls for use in report.models),
            sum(use.cost + use.uncertain_cost for use in report.models),
            sum(use.unpriced for use in report.models),
        )

    def as_json(self) -> Mapping[str, Json]:
        """Return it as plain JSON, sorted."""
        return {name: spent.as_json() for name, spent in sorted(self.spent.items())}


IMAGES_ONLY = ("judge_text.judges=[]", "judge_both.judges=[]")
Key = tuple[str, str, Seed]
"""Method, story id and seed."""
Answers = Mapping[str, bool]
"""Question id -> whether it was answered rightly; without those that were not judged."""


@dataclass
class Judging:
    """Asks judges, run by run, below one folder and within one cost limit."""

    folder: Path  # where the runs and what they judge lie
    options: EvaluateOptions  # who judges, and how; prompts, splits and stories are set here
    definitions: Definitions = field(default_factory=Definitions)  # how replies become verdicts
    reporter: "Reporter | None" = None  # takes the progress
    ledger: Ledger = field(default_factory=Ledger)  # what its runs cost, and others with the same limit

    def answers(
        self, name: str, release: Path, outputs: Sequence[Path], stories: Iterable[str]
    ) -> dict[Key, Answers]:
        """Return method, story and seed -> the answers from images alone.

        ``name``: of the run: its folder below this one.
        """
        known = _asked(release)
        wanted = sorted(story for story in stories if story in known)
        if not wanted or not outputs:
            return {}
        run = self.folder / name
        report = evaluate_katha(release, outputs, run, self._chosen(name, wanted), reporter=self.reporter)
        self.ledger.enter(name, report)
        return answers_in(judged_folder(run, release, self.definitions))

    def _chosen(self, name: str, stories: Sequence[str]) -> EvaluateOptions:
        return replace(
            self.options, prompts=MAIN, protocol=None, questions_only=True, split=(), subset=None,
            limit=None, stories=tuple(stories), items=(), max_cost=self.ledger.left(name), replace=True,
            replace_sources=True, settings=[*self.options.texts, *IMAGES_ONLY],
        )  # fmt: skip

    def answers_each(self, release: Path) -> int:
        """Return how many answers each question gets: judges times votes."""
        request = evaluation_request(release, (), self.folder, self._chosen("", ()))
        settings = request.config.own("judge_images", JudgeSettings)
        return len(settings.judges) * settings.votes

    def judges(self) -> tuple[str, ...]:
        """Return the judges, by the names that archives give them."""
        specs = judges_of(self.options, self.options.judges, self.options.preset)
        if not specs:
            raise ConfigError("--judge", what="no judge is named", fix="name models with --judge")
        return tuple(public_judge(spec).spec for spec in specs)


def selection_prompts() -> dict[str, str]:
    """Return id -> label of the prompts that selection asks with."""
    prompts = [judge_prompt(name, MAIN) for name in ("question_image", "dimension")]
    return {prompt.card.id: prompt.label for prompt in prompts}


def answers_in(judged: Judged) -> dict[Key, Answers]:
    """Return method, story and seed -> the answers from images alone in an archive, of valid generations."""
    items = judged.items
    groups: dict[Key, dict[str, bool]] = {}
    for method in judged.methods:
        verdicts, valid = method.outcomes.verdicts[:, IMAGE], method.outcomes.valid
        for index, seed in enumerate(judged.replies.seeds):
            for number, key in enumerate(items.keys):
                verdict = verdicts[index, number]
                if valid[index, number] and verdict != UNJUDGED:
                    story = items.records[items.story[number]].story_id
                    answers = groups.setdefault((method.name, story, seed), {})
                    answers[key.question_id] = bool(verdict == RIGHT_VERDICT)
    return dict(groups)


def recovered(record: StoryRecord, answers: Answers, transition: int | None = None) -> Score:
    """Return R of a storyboard by its answers (:func:`.boards.recoverability`).

    ``transition``: only questions about this transition, from 1, none of them moral.
    """
    groups: dict[str, list[bool]] = {}
    for question in record.questions:
        name = question.question_type
        if question.question_id not in answers or name not in DIMENSIONS:
            continue
        about = transition is not None and _is_about(record, question.target_transition, transition)
        if transition is None or (about and name != UNSCORED):
            groups.setdefault(name, []).append(answers[question.question_id])
    return recoverability(groups)


def write_parts(
    halved: HalvedRelease, folder: Path, boards: Mapping[str, Sequence[Board]]
) -> tuple[Path, tuple[Path, ...], tuple[str, ...]]:
    """Write storyboards of two frames, one for each transition that a question is about, and their release.

    Each transition of a story becomes a story of its own, ``STORY_t1`` and so on, with the selection
    questions about it and no others, so that one evaluation asks all of them (Eq. 27).

    ``boards``: name of a method -> its storyboards, one of each story.

    Returned: the release, a folder of outputs for each method that has any, and the ids of its stories.
    """
    selecting = halved.halves.records(halved.whole.records, SELECTION)
    records = {record.story_id: record for record in selecting}
    parts: dict[str, StoryRecord] = {}
    shown: dict[str, list[Board]] = {method: [] for method in boards}
    for method, board in ((method, board) for method, some in boards.items() for board in some):
        record = records[board.story_id]
        for number, span in enumerate(board.spans(record), 1):
            part = part_of(record, number)
            if span and part.questions:
                parts[part.story_id] = part
                frames = (board.frames[span[0]], board.frames[span[-1]])
                shown[method].append(Board(part.story_id, None, frames))
    if taken := sorted(parts.keys() & records.keys()):
        what, fix = "it is called like a transition of another story", "give that story another id"
        raise InputError.one(taken[0], what=what, fix=fix)
    how = {"parts": "transitions", "questions_sha256": halved.halves.sha256}
    release = write_derived(halved.whole, folder / "release", parts.values(), how, variants=())
    outputs = tuple(
        write_boards(folder / "outputs" / method, method, some, panels=2)
        for method, some in shown.items()
        if some
    )
    return release, outputs, tuple(parts)


def part_of(record: StoryRecord, transition: int) -> StoryRecord:
    """Return a transition of a story as a story of its own, with the questions about it."""
    story_id = f"{record.story_id}_t{transition}"
    questions = tuple(
        question.model_copy(update={"story_id": story_id})
        for question in record.questions
        if question.question_type != UNSCORED and question.question_type in DIMENSIONS
        and _is_about(record, question.target_transition, transition)
    )  # fmt: skip
    return record.model_copy(update={"story_id": story_id, "questions": questions, "moral_label": None})


def _is_about(record: StoryRecord, target: tuple[int, int] | None, number: int) -> bool:
    transition = record.transitions[number - 1]
    return target == (transition.from_scene, transition.to_scene)


def _asked(release: Path) -> frozenset[str]:
    """Return the ids of the stories of a release that have a question."""
    return frozenset(record.story_id for record in load(release).records if record.questions)
