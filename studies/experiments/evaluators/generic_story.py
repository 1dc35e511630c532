"""Generic story questions: what anybody would ask about a story, without transitions.

Question: who is it about, how does it begin, how does it end and feel, what does it teach?
Answer: from the annotations of first and last scene and the story's moral label; the other options are of
    other stories. A model writes open questions instead, from the text of the story alone.
Localises: four dimensions, from broad questions: visible acts, feelings, consequences, the moral target.
"""

from collections import Counter

from ....builders.step import Problems, listed, needed
from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.katha import StoryRecord
from .evaluator import OPTIONS, About, Asked, Element, Evaluator, Material, choice, elements_of

ABOUT = {
    "who": "action_visibility", "beginning": "action_visibility", "ending": "consequence",
    "feeling": "emotional", "lesson": "moral",
}  # fmt: skip
"""What a question is about -> the dimension that it is evidence of."""
PROMPT = "evaluators/story_questions"
LESSON = "Which value does the story as a whole support?"
PREFIX = "gs"


def build(material: Material) -> list[Asked]:
    """Return the questions about a story; what its annotations lack is not asked about."""
    record, elements = material.record, elements_of(material.record)
    asked = []
    for name, kind, text, element in (
        ("who", "character", "Who is the story mainly about:", _main(elements)),
        ("beginning", "action", "What happens at the beginning of the story:", _end(elements, "action", 0)),
        ("ending", "action", "What happens at the end of the story:", _end(elements, "action", -1)),
        ("feeling", "emotion", "Which feeling does the story end with:", _end(elements, "emotion", -1)),
    ):
        if element is not None:
            about = About(f"{PREFIX}_{name}", ABOUT[name], (element.scene,))
            others = material.pool.foreign(record, kind, OPTIONS - 1, (material.seed, about.number))
            question = choice(material, about, text, [element.text, *others], kind)
            asked += [question] if question else []
    if record.moral_label is not None:
        about = About(f"{PREFIX}_lesson", ABOUT["lesson"], (len(record.scenes),))
        answers = [record.moral_label.replace("_", " "), record.moral_label]
        asked.append(Asked(about.question(record, LESSON, answers), chance=1 / 12))
    return asked


def _main(elements: list[Element]) -> Element | None:
    characters = [element for element in elements if element.kind == "character"]
    counts = Counter(element.text for element in characters)
    return max(characters, key=lambda element: counts[element.text], default=None)


def _end(elements: list[Element], kind: str, index: int) -> Element | None:
    of_kind = [element for element in elements if element.kind == kind]
    return of_kind[index] if of_kind else None


def read(reply: Json, record: StoryRecord) -> list[Asked]:
    """Return the questions of a model's reply.

    The answer to the last is the record's label, not a model's.
    """
    problems, asked = Problems(), []
    entries = {str(entry["about"]): entry for entry in reply["questions"]}
    if sorted(str(entry["about"]) for entry in reply["questions"]) != sorted(ABOUT):
        raise BadReply(f"expected one question about each of {', '.join(ABOUT)}")
    for name, dimension in ABOUT.items():
        entry, where = entries[name], f"the question about {name}"
        text = needed(entry, "question", where, problems)
        answers = [needed(entry, "gold_answer", where, problems)]
        answers += listed(entry, "other_answers", where, problems)
        if name == "lesson":
            if record.moral_label is None:
                continue
            answers = [record.moral_label.replace("_", " "), record.moral_label]
        scenes = tuple(range(1, len(record.scenes) + 1))
        asked.append(Asked(About(f"{PREFIX}_{name}", dimension, scenes).question(record, text, answers)))
    story = {"normalized_text": record.story_text, "language": record.language}
    problems.check_script(story, [question.question.question for question in asked])
    problems.settle()
    return asked


EVALUATOR = Evaluator(
    name="generic-story",
    title="Generic story QA",
    construction="Who, how it begins, how it ends, the feeling at the end, the lesson; no transitions.",
    card="By rules one of four options, of other stories; by a model open questions from the text alone. "
    "Broad questions are evidence of visible acts, feelings, consequences and the moral target; none is of "
    "causes or of order.",
    by="rules",
    dimensions=("action_visibility", "emotional", "consequence", "moral"),
    build=build,
    prompt=PROMPT,
    read=read,
)
