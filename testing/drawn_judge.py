"""A stand-in for a judge that looks: it reads drawn frames, and nothing but their pixels.

It knows the records, so it knows which texts the codes in a frame may stand for; what a frame shows it reads
off the pixels (:mod:`fabula.models.generators.drawn.reading`). A question is answered rightly if and only if
what its answer depends on is visible in the right frames; the rule of each dimension is that of
:mod:`.drawn_boards`. So what an evaluation with it must give follows from the pictures alone. It is no model,
and says nothing about any.

- Text alone: every question and label is answered rightly.
- Images alone: a question by its rule; a label and a moral question by that of ``moral``.
- Both: ``source_answer`` and ``final_answer`` by the text, ``image_support`` by the rule.
- Pairs: the text whose changed scene is visible by an own text of it, or by a phrase of its changed scene.
- Questions that no record has (of other evaluators): by what the frames show and the question names
  (:mod:`.drawn_questions`); with the text, as if frames showed all that it says.

``error`` turns a share of the answers: a right one wrong, and one that cannot be told right. Which, follows
from a hash of question, frames and model name, so that the same question about the same frames is always
answered alike. ``guessing`` looks at nothing: it gives the right answer with the chance of one among
:data:`GUESSES`, of one among all labels, of one among two texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..experiments.losses import scenes_needed
from ..models.generators.drawn.codes import code_of
from ..models.generators.drawn.phrases import phrases_of
from ..models.generators.drawn.reading import codes_in
from ..schemas.canonical import Json, digest, sha256_bytes
from ..schemas.katha import Question, StoryRecord
from ..schemas.text import normalize_answer
from ..schemas.vocabulary import vocabulary
from .asked_prompts import fenced_texts, prompt_of, user_text
from .drawn_boards import Board, Codes, own_codes, shown_record, whole_frames
from .drawn_questions import UNCLEAR, Unknown, answer_unknown, turned_answer
from .model_server import Asked, word_vector

WRONG = "something that the story does not tell"
GUESSES = 4
"""Among so many answers one that guesses picks the right one."""
_READ: dict[str, Codes] = {}


@dataclass(frozen=True)
class DrawnJudge:
    """A handler for :class:`fabula.testing.model_server.ModelServer`.

    Attributes:
        records: the stories that may be shown.
        error: share of answers that are turned, 0 to 1.
        guessing: whether it looks at nothing.
    """

    records: Sequence[StoryRecord] = field(repr=False)
    error: float = 0.0
    guessing: bool = False

    def __call__(self, asked: Asked) -> Json:
        """Return the reply to a judge's prompt, as JSON.

        Raises:
            ValueError: the request was made with another prompt.
        """
        if asked.protocol == "embeddings":
            return word_vector(asked.text)
        prompt = prompt_of(asked) or ""
        if not prompt.startswith("judge/"):
            raise ValueError(f"not a prompt that this judge knows: {prompt or asked.system[:80]!r}")
        kind, _, condition = prompt.rpartition("/")[2].partition("_")
        texts = fenced_texts(user_text(asked))
        if kind == "match":
            accepted = {normalize_answer(line.partition("] ")[2]) for line in texts[1].splitlines()}
            return {"matched": normalize_answer(texts[2]) in accepted}
        frames = tuple(frame_codes(image.data) for image in asked.images)
        draw = Draw.of(asked, texts)
        if kind == "contrast":
            return self._contrast(texts, frames, draw)
        if kind == "label":
            return self._label(condition, texts, frames, draw)
        return self._question(condition, texts, frames, draw)

    def _question(
        self, condition: str, texts: Sequence[str], frames: tuple[Codes, ...], draw: "Draw"
    ) -> Json:
        known = self._asked_about(texts[-1], frames, texts[0] if condition != "image" else None)
        if known is None:
            told = None if condition == "image" else texts[0]
            return _reply(condition, *self._unknown(texts[-1], frames, draw, told))
        record, question = known
        reading = "right" if condition == "text" else Board(record, frames).read(question)
        is_right, turned = reading == "right", draw.share() < self.error
        if self.guessing:
            is_right, turned = draw.below(GUESSES) == 0, False
        if condition == "text_image":
            said = WRONG if turned or (self.guessing and not is_right) else question.gold_answer
            return _reply(condition, said, is_seen=is_right != turned)
        if is_right != turned:
            return _reply(condition, question.gold_answer, is_seen=True)
        if is_right or self.guessing:
            return _reply(condition, WRONG, is_seen=True)
        said = UNCLEAR if reading == "unclear" else _other_event(record, question)
        return _reply(condition, said, is_seen=reading != "unclear")

    def _asked_about(
        self, text: str, frames: tuple[Codes, ...], story: str | None
    ) -> tuple[StoryRecord, Question] | None:
        """Return the question of a text, of the story that is told or that the frames show."""
        asking = self._questions.get(text, [])
        if story is not None:
            return next(((record, each) for record, each in asking if record.story_text == story), None)
        if len(asking) < 2:
            return asking[0] if asking else None
        shown = shown_record([record for record, _ in asking], frames)
        return next((pair for pair in asking if pair[0] is shown), asking[0])

    @cached_property
    def _questions(self) -> dict[str, list[tuple[StoryRecord, Question]]]:
        asked: dict[str, list[tuple[StoryRecord, Question]]] = {}
        for record in self.records:
            for question in record.questions:
                asked.setdefault(question.question, []).append((record, question))
        return asked

    def _unknown(
        self, text: str, frames: tuple[Codes, ...], draw: "Draw", story: str | None
    ) -> tuple[str, bool]:
        record = next((each for each in self.records if each.story_text == story), None)
        if record is None:
            record = shown_record(self.records, frames)
        else:
            frames = whole_frames(record)
        unknown = Unknown(text, record, frames, tuple(self.records))
        if self.guessing:
            return turned_answer(unknown, None, draw.below), True
        answer = answer_unknown(unknown)
        if draw.share() < self.error:
            answer = turned_answer(unknown, answer, draw.below)
        return (UNCLEAR, False) if answer is None else (answer, True)

    def _label(self, condition: str, texts: Sequence[str], frames: tuple[Codes, ...], draw: "Draw") -> Json:
        labels = vocabulary("moral_label").values
        if condition == "image":
            record = shown_record(self.records, frames)
        else:
            record = next((each for each in self.records if each.story_text == texts[0]), None)
        if self.guessing:
            return {"answer": labels[draw.below(len(labels))], "confidence": "low"}
        can = record is not None and (condition != "image" or Board(record, frames).shows_moral())
        if record is None or record.moral_label is None:
            return {"answer": UNCLEAR, "confidence": "low"}
        turned = draw.share() < self.error
        if can != turned:
            return {"answer": record.moral_label, "confidence": "high"}
        others = [label for label in labels if label != record.moral_label]
        return {"answer": others[draw.below(len(others))] if turned else UNCLEAR, "confidence": "low"}

    def _contrast(self, texts: Sequence[str], frames: tuple[Codes, ...], draw: "Draw") -> Json:
        names = ("first", "second")
        if self.guessing:
            return {"answer": names[draw.below(2)], "confidence": "low"}
        record = next((each for each in self.records if each.story_text in texts), None)
        if record is None:
            return {"answer": UNCLEAR, "confidence": "low"}
        source = list(texts).index(record.story_text)
        shown = [
            _shows_told(record, texts[1 - source], frames),
            _shows_changed(record, texts[1 - source], frames),
        ]
        answer = UNCLEAR if shown[0] == shown[1] else names[source if shown[0] else 1 - source]
        if draw.share() < self.error:
            answer = names[1 - source] if answer == names[source] else names[source]
        return {"answer": answer, "confidence": "low" if answer == UNCLEAR else "high"}


@dataclass(frozen=True)
class Draw:
    """What chance decides about one question: always the same for the same question, frames and model."""

    key: str

    @classmethod
    def of(cls, asked: Asked, texts: Sequence[str]) -> "Draw":
        """Return the draw of a request: of its fenced texts, its pictures and the model's name."""
        images = [sha256_bytes(image.data) for image in asked.images]
        return cls(digest([list(texts), images, asked.model]))

    def share(self) -> float:
        """Return a number in [0, 1)."""
        return int(digest([self.key, "error"])[:12], 16) / 16**12

    def below(self, options: int) -> int:
        """Return a whole number below ``options``."""
        return int(digest([self.key, "choice"])[:12], 16) % options


def frame_codes(data: bytes) -> Codes:
    """Return the codes that can be read off a picture; each picture is read once."""
    key = sha256_bytes(data)
    if key not in _READ:
        _READ[key] = codes_in(data)
    return _READ[key]


def _reply(condition: str, answer: str, is_seen: bool) -> Json:
    confidence = "high" if is_seen else "low"
    if condition == "text_image":
        support = "supported" if is_seen else "omitted"
        return {
            "source_answer": answer, "image_support": support, "final_answer": answer,
            "confidence": confidence,
        }  # fmt: skip
    status = "recoverable" if is_seen else "omitted"
    return {"answer": answer, "evidence_status": status, "confidence": confidence}


def _other_event(record: StoryRecord, question: Question) -> str:
    """Return a wrong answer: what is done in the last of the scenes whose order is asked about."""
    last = max(scenes_needed(record, question), default=None)
    scene = next((scene for scene in record.scenes if scene.scene_index == last), None)
    accepted = {normalize_answer(text) for text in (question.gold_answer, *question.accepted_answers)}
    action = None if scene is None else scene.action
    return action if action and normalize_answer(action) not in accepted else WRONG


def _shows_told(record: StoryRecord, changed: str, frames: Sequence[Codes]) -> bool:
    """Whether something is visible that only the scenes have which another text tells otherwise."""
    own = own_codes(record)
    scenes = [scene.scene_index for scene in record.scenes if scene.scene_text not in changed]
    return any(own[index] & frame for index in scenes for frame in frames)


def _shows_changed(record: StoryRecord, changed: str, frames: Sequence[Codes]) -> bool:
    """Whether a phrase is visible that only the changed text has."""
    told = {code_of(phrase) for phrase in phrases_of(record.story_text)}
    codes = {code_of(phrase) for phrase in phrases_of(changed)} - told
    return any(codes & frame for frame in frames)
