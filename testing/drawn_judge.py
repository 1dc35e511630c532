"""A stand-in for a judge that looks: it reads drawn frames, and nothing but their pixels.

It knows the records, so it knows which texts the codes in a frame may stand for; what a frame shows it reads
off the pixels (:mod:`fabula.models.generators.drawn.images`). A question is answered rightly if and only if
what its answer depends on is visible in the right frames; the rule of each dimension is that of
the rules below. So what an evaluation with it must give follows from the pictures alone. It is no model,
and says nothing about any.

- Text alone: every question and label is answered rightly.
- Images alone: a question by its rule; a label and a moral question by that of ``moral``.
- Both: ``source_answer`` and ``final_answer`` by the text, ``image_support`` by the rule.
- Pairs: the text whose changed scene is visible by an own text of it, or by a phrase of its changed scene.
- Questions that no record has (of other evaluators): by what the frames show and the question names
  (see below); with the text, as if frames showed all that it says.

``error`` turns a share of the answers: a right one wrong, and one that cannot be told right. Which, follows
from a hash of question, frames and model name, so that the same question about the same frames is always
answered alike. ``guessing`` looks at nothing: it gives the right answer with the chance of one among
:data:`GUESSES`, of one among all labels, of one among two texts.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from ..models.generators.drawn.images import codes_in
from ..models.generators.drawn.scene import code_of, phrases_of
from ..schemas.canonical import Json, digest, sha256_bytes
from ..schemas.katha import Question, Scene, StoryRecord, Transition
from ..schemas.text import contains_phrase, normalize_answer
from ..schemas.values import vocabulary
from ..studies.experiments.losses import scenes_needed
from .asked_prompts import fenced_texts, prompt_of, user_text
from .model_server import Asked, word_vector

# What drawn frames show of a story: which scene each is, and which questions can be answered from them.
#
# Frames are sets of codes, as :mod:`fabula.models.generators.drawn.images` reads them off pixels.
#
# A text is visible in a frame that shows its code, or those of all its phrases. A frame is recognised as
# the scene of which it shows most *own* texts: characters, things, act, state, feeling and what must be
# seen, as far as no other scene of the story has them; the earlier scene where two are equal; as none where
# it shows no own text. The frames of a scene are those that are recognised as it.
#
# A question can be answered where every scene that it cannot do without
# (:func:`fabula.studies.experiments.losses.scenes_needed`) has a frame, and
#
# - ``action_visibility``: the act of the scene is visible in a frame of it; where no act is annotated, all
#   that this scene alone must show.
# - ``causal``, ``consequence``: the cause, or consequence, of the transition is visible in a frame of one
#   of its two scenes, or in one between these that is recognised as no scene.
# - ``emotional``: the feeling of each of the scenes is visible in a frame of it; where no scene that it
#   asks about has a feeling, that of the transition in a frame of one of its scenes.
# - ``temporal_order``: the first frames of the scenes are in story order. In another order, the question is
#   answered with what is done in the last of them, which is wrong.
# - ``moral``, and the moral target: the label is visible in some frame, or every annotated cause is visible
#   in a frame of a scene of its transition, and there is one.
#
# What is annotated nowhere is visible nowhere: such a question cannot be answered.

Reading = Literal["right", "unclear", "reversed"]
"""What frames give: the answer, none, or another event's."""
Codes = frozenset[str]
Rule = Callable[["Board", Sequence[int]], Reading]
"""Frames and the scenes that a question needs, which all have frames -> what the frames give."""


def scene_texts(scene: Scene) -> tuple[str, ...]:
    """Return all texts of a scene that a picture may show, each once."""
    single = (scene.action, scene.state, scene.emotion)
    texts = (*scene.characters, *scene.objects, *scene.visual_must_show, *(text for text in single if text))
    return tuple(dict.fromkeys(texts))


def transition_texts(transition: Transition) -> tuple[str, ...]:
    """Return all texts of a transition that a picture may show."""
    fields = ("action", "causality", "intention", "emotion", "consequence", "expected_change", "moral_target")
    return tuple(text for name in fields if (text := getattr(transition, name)))


def own_codes(record: StoryRecord) -> dict[int, Codes]:
    """Return scene -> the codes of the texts that no other scene of the story has."""
    codes = {scene.scene_index: {code_of(text) for text in scene_texts(scene)} for scene in record.scenes}
    counts = Counter(code for several in codes.values() for code in several)
    return {
        index: frozenset(code for code in several if counts[code] == 1) for index, several in codes.items()
    }


def shows(frame: Codes, text: str) -> bool:
    """Return whether a text is visible in a frame."""
    phrases = phrases_of(text)
    return code_of(text) in frame or (bool(phrases) and all(code_of(phrase) in frame for phrase in phrases))


@dataclass(frozen=True)
class Board:
    """Frames that are looked at as pictures of a story."""

    record: StoryRecord  # the story
    frames: tuple[Codes, ...]  # what each frame shows, in the order in which they are seen

    @cached_property
    def scenes(self) -> tuple[int | None, ...]:
        """The scene that each frame is recognised as."""
        own = own_codes(self.record)

        def recognised(frame: Codes) -> int | None:
            counts = {index: len(codes & frame) for index, codes in own.items()}
            best = max(counts, key=lambda index: (counts[index], -index), default=None)
            return best if best is not None and counts[best] else None

        return tuple(recognised(frame) for frame in self.frames)

    def of_scene(self, index: int) -> list[Codes]:
        """Return the frames of a scene."""
        return [frame for frame, scene in zip(self.frames, self.scenes, strict=True) if scene == index]

    def visible(self, text: str, scene: int | None = None) -> bool:
        """Return whether a text is visible in some frame, or in some frame of a scene."""
        frames = self.frames if scene is None else self.of_scene(scene)
        return any(shows(frame, text) for frame in frames)

    def scene(self, index: int) -> Scene | None:
        """Return a scene of the story; None where it has none of that number."""
        return next((scene for scene in self.record.scenes if scene.scene_index == index), None)

    def shown_between(self, pair: Sequence[int], name: str) -> bool:
        """Return whether a field of a transition is visible in a frame of one of its two scenes.

        A frame between these that is recognised as no scene, as a bridge is, counts with them.
        """
        places = [place for place, scene in enumerate(self.scenes) if scene in pair]
        for each in self.record.transitions:
            if (each.from_scene, each.to_scene) == tuple(pair) and places:
                text: str | None = getattr(each, name)
                looked_at = range(min(places), max(places) + 1)
                return text is not None and any(
                    shows(self.frames[place], text)
                    for place in looked_at
                    if self.scenes[place] is None or self.scenes[place] in pair
                )
        return False

    def read(self, question: Question) -> Reading:
        """Return what the frames give for a question."""
        rule = RULES.get(question.question_type)
        needed = scenes_needed(self.record, question)
        if rule is None or not all(index in self.scenes for index in needed):
            return "unclear"
        return rule(self, needed)

    def shows_moral(self) -> bool:
        """Return whether the moral target can be told."""
        label = self.record.moral_label
        if label is not None and self.visible(label):
            return True
        caused = [(each.from_scene, each.to_scene) for each in self.record.transitions if each.causality]
        return bool(caused) and all(self.shown_between(pair, "causality") for pair in caused)


def _read(*, can: bool) -> Reading:
    return "right" if can else "unclear"


def _action(board: Board, needed: Sequence[int]) -> Reading:
    scene = board.scene(needed[0]) if needed else None
    if scene is None:
        return "unclear"
    own = own_codes(board.record)[scene.scene_index]
    must = [text for text in scene.visual_must_show if code_of(text) in own]
    texts = [scene.action] if scene.action else must
    return _read(can=bool(texts) and all(board.visible(text, scene.scene_index) for text in texts))


def _of_transition(name: str) -> Rule:
    def rule(board: Board, needed: Sequence[int]) -> Reading:
        return _read(can=board.shown_between(needed, name))

    return rule


def _emotional(board: Board, needed: Sequence[int]) -> Reading:
    scenes = [scene for index in needed if (scene := board.scene(index)) is not None and scene.emotion]
    if len(scenes) < len(needed) or not scenes:
        return _of_transition("emotion")(board, needed)
    return _read(can=all(board.visible(str(scene.emotion), scene.scene_index) for scene in scenes))


def _temporal(board: Board, needed: Sequence[int]) -> Reading:
    places = [board.scenes.index(index) for index in needed]
    if not places:
        return "unclear"
    return "right" if places == sorted(places) else "reversed"


def _moral(board: Board, _needed: Sequence[int]) -> Reading:
    return _read(can=board.shows_moral())


RULES: Mapping[str, Rule] = {
    "action_visibility": _action,
    "causal": _of_transition("causality"),
    "consequence": _of_transition("consequence"),
    "emotional": _emotional,
    "temporal_order": _temporal,
    "moral": _moral,
}
"""Dimension -> the rule by which its questions are answered from frames."""


def shown_record(records: Sequence[StoryRecord], frames: Sequence[Codes]) -> StoryRecord | None:
    """Return the story of which frames show most texts; None where they show none of any."""
    seen = frozenset().union(*frames)
    counts = [len(seen & known_codes(record)) for record in records]
    best = max(counts, default=0)
    return records[counts.index(best)] if best else None


def whole_frames(record: StoryRecord) -> tuple[Codes, ...]:
    """Return a frame for each scene that shows all that the story says of it: what its text alone tells."""
    return tuple(
        frozenset(
            code_of(text)
            for texts in (
                scene_texts(scene),
                *(
                    transition_texts(each)
                    for each in record.transitions
                    if scene.scene_index in (each.from_scene, each.to_scene)
                ),
            )
            for text in texts
        )
        for scene in record.scenes
    )


def known_codes(record: StoryRecord) -> Codes:
    """Return the codes of all texts of a story that a picture may show, phrases included."""
    return frozenset(code_of(part) for text in _texts(record) for part in (text, *phrases_of(text)))


# Questions that no record has, such as those of other evaluators: answered by what frames show.
#
# A question that names a part ("part 2 of 5 of the story") is about one frame: the second, where there are
# five frames; else those that are recognised as the second scene. Any other is about all frames.
#
# - With "yes or no": yes where a known text that the question names, the longest, is visible.
# - With "one of these": the option that is visible; of several the longest. Options are known texts that
#   the question names.
# - Any other: the visible text that shares most words with the question; of an equal number the longest.
#   Where none shares a word, and where the wanted answer is no known text, it cannot be told.
#
# Known texts are all texts of all records that a picture may show.

UNCLEAR = "unclear"
_PART = re.compile(r"\bpart (\d+) of (\d+)\b")
_SMALL_WORDS = """a an the of to in on at by for from with and or is are was were be do does did what which
    who whom how why when where this that these those it its he his she her they their them story part"""
_SMALL = frozenset(_SMALL_WORDS.split())


@dataclass(frozen=True)
class Unknown:
    """A question that no record has."""

    text: str  # the question
    record: StoryRecord | None  # the story that is shown; None where nothing known is visible
    frames: tuple[Codes, ...]  # what each frame shows
    records: tuple[StoryRecord, ...]  # all stories, whose texts are known

    @property
    def is_yes_no(self) -> bool:
        """Whether yes or no is wanted."""
        return "yes or no" in self.text.casefold()

    @property
    def has_options(self) -> bool:
        """Whether one of several options is wanted."""
        return "one of these" in self.text.casefold()

    def named(self) -> list[str]:
        """Return the known texts that the question names, the longest first, none within another."""
        question = normalize_answer(_PART.sub(" ", self.text))
        named: list[str] = []
        for text, plain in _known(self.records):
            if contains_phrase(question, plain):
                named.append(text)
                question = question.replace(plain, " | ")
        return named

    def looked_at(self) -> Sequence[Codes]:
        """Return the frames that the question is about."""
        part = _PART.search(self.text)
        if part is None or self.record is None:
            return self.frames
        number, total = int(part[1]), int(part[2])
        if total == len(self.frames) and 1 <= number <= total:
            return self.frames[number - 1 : number]
        return Board(self.record, self.frames).of_scene(number)

    def is_visible(self, text: str) -> bool:
        """Return whether a text is visible in the frames that the question is about."""
        return any(shows(frame, text) for frame in self.looked_at())


def answer_unknown(question: Unknown) -> str | None:
    """Return the answer; None where the frames do not give it."""
    named = question.named()
    if question.is_yes_no:
        return "yes" if named and question.is_visible(named[0]) else "no"
    if question.has_options:
        return next((text for text in named if question.is_visible(text)), None)
    if question.record is None:
        return None
    words = _words_in(question.text)
    shared = {
        text: len(words & _words_in(text))
        for text, _ in _known((question.record,))
        if question.is_visible(text)
    }
    best = max(shared, key=lambda text: shared[text], default=None)
    return best if best is not None and shared[best] else None


def turned_answer(question: Unknown, answer: str | None, below: Callable[[int], int]) -> str:
    """Return another answer than the one that was read; with None, any, at the chance of its options.

    ``answer``: what was read; None for nothing. ``below``: gives a whole number below another, by chance.
    """
    options = ["yes", "no"] if question.is_yes_no else question.named() if question.has_options else []
    others = [text for text in options if text != answer]
    return others[below(len(others))] if others else UNCLEAR


def _words_in(text: str) -> set[str]:
    return set(normalize_answer(text).split()) - _SMALL


def _known(records: Sequence[StoryRecord]) -> tuple[tuple[str, str], ...]:
    """Return all known texts with their normal forms, the longest first."""
    return _sorted(tuple(text for record in records for text in _texts(record)))


@lru_cache(maxsize=64)
def _sorted(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    plain = {normalize_answer(text): text for text in texts}
    plain.pop("", None)
    order = sorted(plain.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    return tuple((text, form) for form, text in order)


def _texts(record: StoryRecord) -> list[str]:
    texts = [text for scene in record.scenes for text in scene_texts(scene)]
    return texts + [text for each in record.transitions for text in transition_texts(each)]


WRONG = "something that the story does not tell"
GUESSES = 4
"""Among so many answers one that guesses picks the right one."""
_READ: dict[str, Codes] = {}


@dataclass(frozen=True)
class DrawnJudge:
    """A handler for :class:`fabula.testing.model_server.ModelServer`."""

    records: Sequence[StoryRecord] = field(repr=False)  # the stories that may be shown
    error: float = 0.0  # share of answers that are turned, 0 to 1
    guessing: bool = False  # whether it looks at nothing

    def __call__(self, asked: Asked) -> Json:
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
