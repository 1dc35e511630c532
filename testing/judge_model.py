"""A stand-in for a judge that answers from a table of recoverabilities.

It knows the records, and answers each question rightly or not as the table and a hash of the question say:
the same question under the same evidence always gets the same answer. It looks at pictures only to tell which
drawn storyboard (:mod:`.drawn_storyboards`) it is shown. So what comes out of an evaluation with it is known
before; it says nothing about any real judge.

Use it as the handler of a model server::

    with ModelServer(JudgeModel(records, {"text": 0.9, "image": 0.6, "text_image": 0.95})) as server:
        ...
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..schemas.canonical import Json, digest, sha256_bytes
from ..schemas.katha import Question, StoryRecord
from .asked_prompts import fenced_texts, prompt_of
from .drawn_storyboards import numbers_in
from .model_server import Asked, word_vector

WRONG = "nobody can tell"


@dataclass(frozen=True)
class JudgeModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`."""

    records: Sequence[StoryRecord]  # the records that are judged; drawn storyboards number them in this order
    # condition (``text``, ``image``, ``text_image``, ``contrast``) -> the share of questions that are
    # answered rightly; all of them where it is not there
    table: Mapping[str, float] = field(default_factory=dict)
    # ``condition/dimension`` -> the same for one dimension, ``condition/moral_label`` for the moral target,
    # ``image/variant`` for questions about variants, whose stories then stand behind the records
    dimensions: Mapping[str, float] = field(default_factory=dict)
    # story id -> SHA-256 of the pictures that a judge is sent of it, in order, where they are not drawn ones
    boards: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Json:
        if asked.protocol == "embeddings":
            return word_vector(asked.text)
        prompt = prompt_of(asked) or ""
        if not prompt.startswith("judge/"):
            raise ValueError(f"not a prompt that this judge knows: {asked.system[:80]!r}")
        kind, _, condition = prompt.rpartition("/")[2].partition("_")
        fenced = fenced_texts(asked.text)
        if kind == "contrast":
            return self._contrast(asked, fenced)
        if kind == "match":
            return {"matched": any(fenced[2] == line.partition("] ")[2] for line in fenced[1].splitlines())}
        record = self._record(asked, condition, fenced)
        if kind == "label":
            right = self.answers(record.story_id, condition, "moral_label", asked.model)
            return {"answer": record.moral_label if right else "unclear", "confidence": "high"}
        question = self._question(record, fenced[-1])
        about = question.question_type if question.story_id == record.story_id else "variant"
        right = self.answers(question.question_id, condition, about, asked.model)
        return _reply(question, condition, right=right)

    def answers(self, item: str, condition: str, dimension: str, model: str) -> bool:
        """Return whether a judge answers a question rightly."""
        share = self.dimensions.get(f"{condition}/{dimension}", self.table.get(condition, 1.0))
        return int(digest([item, condition, model])[:12], 16) / 16**12 < share

    def _record(self, asked: Asked, condition: str, fenced: Sequence[str]) -> StoryRecord:
        if condition == "image":
            return self._shown(asked)
        told = [record for record in self.records if record.story_text == fenced[0]]
        if not told:
            raise ValueError("not the text of a story that this judge knows")
        return told[0]

    def _shown(self, asked: Asked) -> StoryRecord:
        if self.boards:
            sent = [sha256_bytes(image.data) for image in asked.images]
            story = next((story for story, board in self.boards.items() if list(board) == sent), None)
            return next(record for record in self.records if record.story_id == story)
        numbers = [numbers_in(image.data) for image in asked.images]
        stories = {story for story, _ in numbers}
        if len(stories) != 1 or [panel for _, panel in numbers] != sorted(panel for _, panel in numbers):
            raise ValueError(f"not the drawn storyboard of one story, in order: {numbers}")
        return self.records[stories.pop()]

    def _question(self, record: StoryRecord, text: str) -> Question:
        prefix = f"{record.story_id}_"
        for told in (record, *(each for each in self.records if each.story_id.startswith(prefix))):
            for question in told.questions:
                if question.question == text:
                    return question
        raise ValueError(f"story {record.story_id} has no question {text[:80]!r}")

    def _contrast(self, asked: Asked, fenced: Sequence[str]) -> Json:
        record = self._shown(asked)
        source = "first" if fenced[0] == record.story_text else "second"
        other = "second" if source == "first" else "first"
        pair = digest(sorted(fenced))
        right = self.answers(pair, "contrast", "contrast", asked.model)
        return {"answer": source if right else other, "confidence": "medium"}


def _reply(question: Question, condition: str, *, right: bool) -> Json:
    answer = question.accepted_answers[-1] if right else WRONG
    if condition == "text_image":
        support = "supported" if right else "ambiguous"
        return {
            "source_answer": question.gold_answer, "image_support": support, "final_answer": answer,
            "confidence": "high" if right else "low",
        }  # fmt: skip
    status = "recoverable" if right else "unclear"
    return {"answer": answer, "evidence_status": status, "confidence": "high" if right else "low"}
