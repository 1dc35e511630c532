"""What drawn frames show of a story: which scene each is, and which questions can be answered from them.

Frames are sets of codes, as :mod:`fabula.models.generators.drawn.reading` reads them off pixels.

A text is visible in a frame that shows its code, or those of all its phrases. A frame is recognised as the
scene of which it shows most *own* texts: characters, things, act, state, feeling and what must be seen, as
far as no other scene of the story has them; the earlier scene where two are equal; as none where it shows no
own text. The frames of a scene are those that are recognised as it.

A question can be answered where every scene that it cannot do without
(:func:`fabula.experiments.losses.scenes_needed`) has a frame, and

- ``action_visibility``: the act of the scene is visible in a frame of it; where no act is annotated, all that
  this scene alone must show.
- ``causal``, ``consequence``: the cause, or consequence, of the transition is visible in a frame of one of
  its two scenes.
- ``emotional``: the feeling of each of the scenes is visible in a frame of it; where no scene that it asks
  about has a feeling, that of the transition in a frame of one of its scenes.
- ``temporal_order``: the first frames of the scenes are in story order. In another order, the question is
  answered with what is done in the last of them, which is wrong.
- ``moral``, and the moral target: the label is visible in some frame, or every annotated cause is visible in
  a frame of a scene of its transition, and there is one.

What is annotated nowhere is visible nowhere: such a question cannot be answered.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..experiments.losses import scenes_needed
from ..models.generators.drawn.codes import code_of
from ..models.generators.drawn.scene import phrases_of
from ..schemas.katha import Question, Scene, StoryRecord, Transition

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
    """Frames that are looked at as pictures of a story.

    Attributes:
        record: the story.
        frames: what each frame shows, in the order in which they are seen.
    """

    record: StoryRecord
    frames: tuple[Codes, ...]

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
        """Return whether a field of a transition is visible in a frame of one of its two scenes."""
        for each in self.record.transitions:
            if (each.from_scene, each.to_scene) == tuple(pair):
                text: str | None = getattr(each, name)
                return text is not None and any(self.visible(text, index) for index in pair)
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
    texts = [text for scene in record.scenes for text in scene_texts(scene)]
    texts += [text for each in record.transitions for text in transition_texts(each)]
    return frozenset(code_of(part) for text in texts for part in (text, *phrases_of(text)))
