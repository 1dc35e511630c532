"""Questions by rules: one of several options, or yes and no; in English, for stories in English.

An open question by rules would have no accepted answers but the words of the annotation, and would be scored
wrong wherever a judge puts it otherwise. So the options are given, and what blind answers get is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...schemas.canonical import digest
from ...schemas.katha import Question, StoryRecord
from ...schemas.text import normalize_answer, primary_language
from .evaluator import Asked, Material

WORDED = ("en",)
"""Languages that the rules have words for."""
OPTIONS = 4
"""Most options of a question."""


def is_worded(record: StoryRecord) -> bool:
    """Return whether rules can ask about a story in its language."""
    return primary_language(record.language) in WORDED


@dataclass(frozen=True)
class About:
    """What a question is about.

    Attributes:
        number: in its id, after the evaluator's prefix.
        dimension: that it is evidence of.
        scenes: that hold the answer.
        target: the scene that it is about; None for the whole story.
    """

    number: str
    dimension: str
    scenes: tuple[int, ...]
    target: int | None = None

    def question(self, record: StoryRecord, text: str, answers: Sequence[str]) -> Question:
        """Return the question as a release holds it; the first answer is the canonical one."""
        return Question(
            question_id=f"{record.story_id}_{self.number}", story_id=record.story_id,
            question_type=self.dimension, question=text, gold_answer=answers[0],
            accepted_answers=tuple(dict.fromkeys(answers)), target_scene=self.target, target_transition=None,
            evidence_scenes=self.scenes, required_evidence=None, answerability="unclear",
        )  # fmt: skip


def choice(material: Material, about: About, asked: str, options: Sequence[str], kind: str) -> Asked | None:
    """Return a question that offers its answer among others; None where there is no other.

    Args:
        material: story and seed.
        about: what it is about.
        asked: the question, without the options.
        options: the right one first, then wrong ones, best first.
        kind: of the options; things and characters are also accepted with an article.
    """
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
