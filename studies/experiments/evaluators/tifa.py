"""Faithfulness questions for every element of every scene, in the manner of TIFA, over several pictures.

Question: which of four characters, things, acts, states or feelings does a part of the story show?
Answer: the scene's annotation; wrong options are first those of the story's other scenes, so that the right
    thing in the wrong part is no answer, then those of other stories. A model writes open questions instead.
Localises: three dimensions, each by elements: characters, things and acts visible acts; feelings feelings;
    states consequences.
"""

from collections.abc import Iterator

from ....builders.step import Problems, listed, needed
from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.katha import StoryRecord
from ....schemas.text import normalize_answer
from .evaluator import OPTIONS, About, Asked, Element, Evaluator, Material, choice, elements_of, part

DIMENSION_OF = {
    "character": "action_visibility", "object": "action_visibility", "action": "action_visibility",
    "state": "consequence", "emotion": "emotional",
}  # fmt: skip
"""Kind of element -> the dimension that a question about it is evidence of."""
PROMPT = "evaluators/scene_questions"
PREFIX = "ti"
ASKED = {
    "character": "Which of these appears in {part}:", "object": "Which of these things appears in {part}:",
    "action": "Which of these happens in {part}:", "state": "How do things stand in {part}:",
    "emotion": "Which feeling leads in {part}:",
}  # fmt: skip
OF_STORY = 2
"""Most wrong options that are of the story's other scenes."""


def build(material: Material) -> list[Asked]:
    """Return a question for each element of each scene that has a wrong option."""
    return list(_asked(material, elements_of(material.record)))


def _asked(material: Material, elements: list[Element]) -> Iterator[Asked]:
    for number, element in enumerate(elements, 1):
        about = About(f"{PREFIX}_{number}", DIMENSION_OF[element.kind], (element.scene,), element.scene)
        here = {
            normalize_answer(other.text)
            for other in elements
            if (other.kind, other.scene) == (element.kind, element.scene)
        }
        nearby = {
            normalize_answer(other.text): other.text
            for other in elements
            if other.kind == element.kind and normalize_answer(other.text) not in here
        }
        wrong = list(nearby.values())[:OF_STORY]
        order = (material.seed, about.number)
        wrong += material.pool.foreign(material.record, element.kind, OPTIONS - 1 - len(wrong), order)
        text = ASKED[element.kind].format(part=part(material, element.scene))
        question = choice(material, about, text, [element.text, *wrong], element.kind)
        if question is not None:
            yield question


def read(reply: Json, record: StoryRecord) -> list[Asked]:
    """Return the questions of a model's reply, by scene."""
    problems, asked = Problems(), []
    if not reply["questions"]:
        raise BadReply("expected questions about every scene, found none")
    for number, entry in enumerate(reply["questions"], 1):
        where, scene = f"question {number}", entry["scene"]
        if not 1 <= scene <= len(record.scenes):
            problems.add(f"{where}: scene must be 1 to {len(record.scenes)}, not {scene}")
        text = needed(entry, "question", where, problems)
        answers = [needed(entry, "gold_answer", where, problems)]
        answers += listed(entry, "other_answers", where, problems)
        about = About(f"{PREFIX}_{number}", DIMENSION_OF[entry["element"]], (scene,), scene)
        asked.append(Asked(about.question(record, text, answers)))
    story = {"normalized_text": record.story_text, "language": record.language}
    problems.check_script(story, [question.question.question for question in asked])
    problems.settle()
    return asked


EVALUATOR = Evaluator(
    name="tifa",
    title="Multi-frame TIFA-style QA",
    construction="A question for each character, thing, act, state and feeling of each scene.",
    card="A scene is named as a part of the story, so that an inserted picture shifts no question. What "
    "connects scenes is not asked about.",
    by="rules",
    dimensions=("action_visibility", "emotional", "consequence"),
    build=build,
    prompt=PROMPT,
    read=read,
)
