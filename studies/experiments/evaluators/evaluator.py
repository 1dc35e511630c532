"""What an evaluator is, as one value, and what its questions look like before they are a release.

What scenes are annotated with, one element at a time, and what other stories have of the same kind.

Questions by rules: one of several options, or yes and no; in English, for stories in English.

An open question by rules would have no accepted answers but the words of the annotation, and would be scored
wrong wherever a judge puts it otherwise. So the options are given, and what blind answers get is known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Literal

from ....errors import ConfigError
from ....evaluation.recoverability.matching import DIMENSIONS
from ....schemas.canonical import Json, Plain, digest
from ....schemas.katha import Question, Scene, StoryRecord
from ....schemas.text import contains_phrase, normalize_answer, primary_language
from ..study import MASTER_SEED

KINDS = ("character", "object", "action", "state", "emotion")


@dataclass(frozen=True)
class Element:
    """Something that a scene is annotated with."""

    kind: str  # one of :data:`KINDS`
    scene: int  # number of the scene, from 1
    text: str  # in the words of the annotation


def elements_of(record: StoryRecord) -> list[Element]:
    """Return the elements of a story's scenes in order, each text once a scene and kind."""
    return [element for scene in record.scenes for element in _of_scene(scene)]


def _of_scene(scene: Scene) -> Iterator[Element]:
    texts: dict[str, Sequence[str | None]] = {
        "character": scene.characters, "object": scene.objects, "action": (scene.action,),
        "state": (scene.state,), "emotion": (scene.emotion,),
    }  # fmt: skip
    for kind in KINDS:
        known = {normalize_answer(text): text for text in reversed(texts[kind]) if text}
        known.pop("", None)
        yield from (Element(kind, scene.scene_index, text) for text in reversed(known.values()))


@dataclass(frozen=True)
class Pool:
    """The elements of many stories."""

    # (language, kind) -> (story id, text), sorted
    texts: Mapping[tuple[str, str], Sequence[tuple[str, str]]] = field(repr=False)

    @classmethod
    def of(cls, records: Iterable[StoryRecord]) -> "Pool":
        texts: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for record in records:
            language = primary_language(record.language)
            for element in elements_of(record):
                texts.setdefault((language, element.kind), set()).add((record.story_id, element.text))
        return cls({key: sorted(pairs) for key, pairs in texts.items()})

    def foreign(self, record: StoryRecord, kind: str, most: int, order: Sequence[object]) -> list[str]:
        """Return elements of other stories that do not occur in this one."""
        own = {normalize_answer(element.text) for element in elements_of(record)}
        story = normalize_answer(record.story_text)
        chosen: dict[str, str] = {}
        pairs = self.texts.get((primary_language(record.language), kind), ())
        for _, text in sorted(pairs, key=lambda pair: digest([*order, *pair])):
            plain = normalize_answer(text)
            apart = not any(contains_phrase(plain, mine) or contains_phrase(mine, plain) for mine in own)
            if len(chosen) < most and apart and not contains_phrase(story, plain):
                chosen.setdefault(plain, text)
        return list(chosen.values())


By = Literal["rules", "model", "release"]
"""Who makes the questions: rules, a model, or nobody, as they are the release's own."""


@dataclass(frozen=True)
class Asked(Plain):
    """A question of an evaluator."""

    question: Question  # as releases hold it
    parents: tuple[str, ...] = ()  # ids of the questions that must be answered rightly for this one to count
    # share of blind answers that are right, where the answer is one of some; None where it is open
    chance: float | None = None

    @classmethod
    def of_json(cls, row: Json) -> "Asked":
        """Return what :meth:`as_json` wrote."""
        return cls(Question.model_validate(row["question"]), tuple(row["parents"]), row["chance"])


@dataclass(frozen=True)
class Material:
    """What rules make questions of."""

    record: StoryRecord  # the story
    pool: Pool = field(repr=False)  # what other stories have, for wrong options
    seed: int = MASTER_SEED  # of the order of options


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """A way of telling how much of a story its pictures keep."""

    name: str  # as it is written in studies
    title: str  # its name in tables
    construction: str  # how its questions are made, in a sentence
    card: str  # what else a reader must know of it; a sentence or more
    by: By  # who makes its questions where nothing else is asked for
    # the dimensions that its questions are evidence of; with none, all questions count alike and the
    # evaluator names no dimension
    dimensions: tuple[str, ...]
    transitions: bool = False  # whether its questions say which transition they are about
    contrasts: bool = False  # whether contrastive pairs are part of it
    # makes the questions by rules; None where there are no such rules
    build: Callable[[Material], list[Asked]] | None = field(default=None, repr=False)
    prompt: str | None = None  # id of the prompt by which a model writes them; None where no model does
    # makes questions of a model's reply; raises BadReply
    read: Callable[[Json, StoryRecord], list[Asked]] | None = field(default=None, repr=False)

    @property
    def reuses(self) -> bool:
        """Whether it is read off the judgements of the full protocol, so that nothing is judged again."""
        return self.by == "release"

    @property
    def localises(self) -> bool:
        """Whether it can say which of several dimensions was lost."""
        return len(self.dimensions) > 1


WORDED = ("en",)
"""Languages that the rules have words for."""
OPTIONS = 4
"""Most options of a question."""


def is_worded(record: StoryRecord) -> bool:
    """Return whether rules can ask about a story in its language."""
    return primary_language(record.language) in WORDED


@dataclass(frozen=True)
class About:
    """What a question is about."""

    number: str  # in its id, after the evaluator's prefix
    dimension: str  # that it is evidence of
    scenes: tuple[int, ...]  # that hold the answer
    target: int | None = None  # the scene that it is about; None for the whole story

    def question(self, record: StoryRecord, text: str, answers: Sequence[str]) -> Question:
        """Return the question as a release holds it; the first answer is the canonical one."""
        return Question(
            question_id=f"{record.story_id}_{self.number}", story_id=record.story_id,
            question_type=self.dimension, question=text, gold_answer=answers[0],
            accepted_answers=tuple(dict.fromkeys(answers)), target_scene=self.target, target_transition=None,
            evidence_scenes=self.scenes, required_evidence=None, answerability="unclear",
        )  # fmt: skip


def choice(material: Material, about: About, asked: str, options: Sequence[str], kind: str) -> Asked | None:
    """Return a question that offers its answer among others; None where there is no other."""
    record = material.record
    distinct = {normalize_answer(text): text for text in reversed(options)}
    kept = list(reversed(distinct.values()))[:OPTIONS]
    if len(kept) < 2:
        return None
    order = sorted(kept, key=lambda text: digest([material.seed, record.story_id, about.number, text]))
    text = f"{asked} {'; '.join(order)}. Answer with one of these."
    answers = [options[0], *(_with_articles(options[0]) if kind in ("character", "object") else ())]
    return Asked(about.question(record, text, answers), chance=1 / len(kept))


def statement(material: Material, about: About, said: str, parents: Sequence[str] = ()) -> Asked:
    """Return a question of whether something is so; it is."""
    text = f"{said} Answer yes or no."
    return Asked(about.question(material.record, text, ["yes"]), tuple(parents), chance=1 / 2)


def part(material: Material, scene: int) -> str:
    """Return the name of a scene's part of the story, whatever the number of pictures."""
    return f"part {scene} of {len(material.record.scenes)} of the story"


def _with_articles(text: str) -> list[str]:
    first, _, rest = text.partition(" ")
    bare = rest if first.casefold() in ("a", "an", "the") and rest else text
    article = "an" if bare[:1].casefold() in "aeiou" else "a"
    return [bare, f"the {bare}", f"{article} {bare}"]


# -- The full protocol as an evaluator, and without one of its parts: its own questions, judged once
#
# The paper does not say how contrastives change a score. Here pairs are judged beside the questions, and
# where variants have questions of their own, a question counts as recovered from pictures only where no rival
# about a variant is (:func:`.graph.contrast_checked`). Where they have none, image recoverability, gap and
# localisation without contrastives are those of the full protocol, and pair accuracy alone has no value.
# Without dimensions the same questions count alike, whatever their type, and nothing says which dimension
# was lost. The judges were still told what kind of answer each question wants, as nothing is judged again:
# the value is an upper bound of what questions without types would give.

FULL = Evaluator(
    name="katha",
    title="Full KathaTrace",
    construction="Transition questions of six dimensions with accepted answers; contrastive pairs beside.",
    card="The protocol of `fabula evaluate stories` and `fabula score`; where variants have questions of "
    "their own, pictures that also answer a variant's do not count.",
    by="release",
    dimensions=DIMENSIONS,
    transitions=True,
    contrasts=True,
)
WITHOUT_CONTRASTIVES = replace(
    FULL,
    name="katha-without-contrastives",
    title="KathaTrace w/o contrastives",
    construction="The same questions; no contrastive pairs.",
    card="No pairs, and no check by questions about variants, where there are any: see the definition.",
    contrasts=False,
)
WITHOUT_DIMENSIONS = replace(
    FULL,
    name="katha-without-dimensions",
    title="KathaTrace w/o dimension-specific questions",
    construction="The same questions, counted alike, without their types.",
    card="Read off the same judgements; the judges knew what kind of answer was wanted, so that it is an "
    "upper bound. It names transitions, no dimensions.",
    dimensions=(),
)


# -- Which evaluators there are, in the order of tables

EVALUATORS = {
    "object-overlap": ".evaluator:EVALUATOR",
    "generic-story": ".generic_story:EVALUATOR",
    "tifa": ".tifa:EVALUATOR",
    "dsg": ".dsg:EVALUATOR",
    "katha-without-contrastives": ".evaluator:WITHOUT_CONTRASTIVES",
    "katha-without-dimensions": ".evaluator:WITHOUT_DIMENSIONS",
    "katha": ".evaluator:FULL",
}
"""Name -> where it is."""


@cache
def evaluator_of(name: str) -> Evaluator:
    address = EVALUATORS.get(name)
    if address is None:
        raise ConfigError(
            "evaluators", expected=f"one of {', '.join(EVALUATORS)}", found=name,
            fix="choose one of them",
        )  # fmt: skip
    module, _, attribute = address.partition(":")
    evaluator: Evaluator = getattr(import_module(module, __package__), attribute)
    return evaluator


# -- Object-overlap questions: who, what and which coarse acts appear anywhere in the story, by rules
#
# Question: which of four characters, things or acts appears in the story?
# Answer: the one that the story's scenes are annotated with; the others are of other stories of the release.
# Localises: nothing. All questions are typed ``action_visibility``, the dimension of what can be seen.

MOST = 6
"""Most questions of a kind about a story."""
ASKED = {
    "character": "Which of these appears in the story:",
    "object": "Which of these things appears in the story:",
    "action": "Which of these happens in the story:",
}


def build(material: Material) -> list[Asked]:
    """Return the questions about a story: each character, thing and act once, the first so many of a kind."""
    record, asked = material.record, []
    for kind, text in ASKED.items():
        first: dict[str, Element] = {}
        for element in elements_of(record):
            if element.kind == kind:
                first.setdefault(element.text.casefold(), element)
        for number, element in enumerate(list(first.values())[:MOST], 1):
            about = About(f"oo_{kind}_{number}", "action_visibility", (element.scene,))
            others = material.pool.foreign(record, kind, OPTIONS - 1, (material.seed, about.number))
            question = choice(material, about, text, [element.text, *others], kind)
            asked += [question] if question else []
    return asked


EVALUATOR = Evaluator(
    name="object-overlap",
    title="Object-overlap QA",
    construction="Which characters, things and coarse acts appear anywhere, one of four options.",
    card=f"Wrong options are of other stories of the release, drawn with seed {MASTER_SEED}. It names no "
    "dimension: everything that it asks about can be seen, and stands under action_visibility.",
    by="rules",
    dimensions=(),
    build=build,
)
