"""What Semantic Compass is compared with: controls and ablations as values.

Tables 55 and 75 name seven settings, Table 63 seven sets of terms. The paper contradicts itself: the full row
of Table 63 (56.7) is that of reranking and bridging together, and its row "recoverability only" (52.0) is
what Table 55 calls reranking by the whole score. So each arm says here whether it reranks, by what, and
whether it bridges: all rows of Table 63 but the full one rerank and do not bridge, and ``rerank-only`` is the
whole score without a bridge.

How a transition's annotation becomes a text, and what an inserted frame is asked to show.

Question: what do an encoder of texts and a generator get of a transition?
Formula: psi's text is the fields action, causality, emotion and consequence, those that are not null, in this
    order, each on a line of its own with single spaces (definition ``fields``). Intention is left out: it is
    no scored dimension and nothing that can be seen. So are the moral target and ``recoverability_target``,
    which says what questions ask for.
Input: a transition of a record; for an inserted frame also the two scenes around it.
Output: a text, empty where no field is filled; a prompt, and the same as data for the ``drawn`` generator.
Undefined when: no field is filled: the transition is left out of Eq. 25.
Source: KathaTrace, A.4 and Table 8 for the fields; Eq. 25 (psi of the annotation); B.6 for the bridge, "from
    the corresponding transition annotation"; Table 55 for what the controls insert.
Departures from the source: it does not say how the annotation becomes a text, nor what the prompt of a bridge
    is. A frame is asked for in one of three ways: ``transition`` from the annotation, with intention and
    expected change; ``captions`` from the captions of both scenes; ``setting`` from who and what is there,
    without anything that happens. All three name the characters and things of both scenes.
Example: action "the fox leaps", consequence "the fox is wet": these two texts, a line each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...errors import ConfigError
from ...models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ...prompts.loader import load_prompt
from ...schemas.katha import Scene, StoryRecord, Transition
from ..pictures.plans import FIELDS as MARKS
from ..pictures.plans import Plan, PlannedPanel, check_panels
from .scoring import TERMS, Term

Shows: TypeAlias = Literal["transition", "captions", "setting"]
"""What an inserted frame shows."""
PSI = "fields"
"""Name of the definition of psi's text."""
FIELDS = ("action", "causality", "emotion", "consequence")
"""Fields of a transition that psi's text is made of, in order."""
PROMPT = "generation/inserted_frame"
TOLD = ("action", "causality", "intention", "emotion", "consequence", "expected_change")
"""Fields of a transition that a frame is asked to show, in order."""
_SCENE_MARKS: tuple[tuple[str, MarkKind], ...] = (
    ("action", "action"), ("state", "state"), ("emotion", "emotion"),
)  # fmt: skip
_PLAN = Plan(
    "inserted-frame", "Inserted frame", "a transition's annotation, or captions, or who is there",
    "the two scenes around it", "a repair or its control, not a plan of storyboards", PROMPT, lambda *_: {},
)  # fmt: skip


def annotation_text(transition: Transition) -> str:
    """Return psi's text of a transition; empty where none of its fields is filled."""
    return "\n".join(_filled(getattr(transition, name) for name in FIELDS))


def planned_frame(record: StoryRecord, number: int, shows: Shows) -> PlannedPanel:
    """Return the prompt for a frame between the two scenes of a transition, and the same as data.

    ``number``: of the transition in the record, from 1.
    """
    transition, scenes = record.transitions[number - 1], _around(record, number)
    characters, objects = _each(scenes, "characters"), _each(scenes, "objects")
    captions = [scene.scene_text for scene in scenes] if shows == "captions" else []
    facts = {name: getattr(transition, name) if shows == "transition" else None for name in TOLD}
    prompt = load_prompt(PROMPT).render(
        title=record.title, before=transition.from_scene, after=transition.to_scene, characters=characters,
        objects=objects, captions=captions, **facts,
    )  # fmt: skip
    texts = (record.title, *characters, *objects, *captions, *_filled(facts.values()))
    panel = PlannedPanel(transition.from_scene, prompt, frame_scene(record, number, shows), texts)
    check_panels(record, _PLAN, (panel,))
    return panel


def frame_scene(record: StoryRecord, number: int, shows: Shows) -> DrawnScene:
    """Return what a frame shows as data; see :func:`planned_frame`."""
    transition, scenes = record.transitions[number - 1], _around(record, number)
    marks = [Mark(kind="character", text=name) for name in _each(scenes, "characters")]
    marks += [Mark(kind="object", text=name) for name in _each(scenes, "objects")]
    if shows == "transition":
        marks += _marks(transition, [(name, MARKS[name]) for name in TOLD])
    if shows == "captions":
        for scene in scenes:
            marks += _marks(scene, _SCENE_MARKS)
            marks += [Mark(kind="must_show", text=text) for text in _filled(scene.visual_must_show)]
    return DrawnScene(marks=tuple(dict.fromkeys(marks)))


def _around(record: StoryRecord, number: int) -> tuple[Scene, ...]:
    transition = record.transitions[number - 1]
    wanted = (transition.from_scene, transition.to_scene)
    return tuple(scene for scene in record.scenes if scene.scene_index in wanted)


def _each(scenes: Iterable[Scene], field: str) -> list[str]:
    return list(dict.fromkeys(name for scene in scenes for name in _filled(getattr(scene, field))))


def _marks(owner: Scene | Transition, fields: Iterable[tuple[str, MarkKind]]) -> list[Mark]:
    return [Mark(kind=kind, text=text) for name, kind in fields for text in _filled([getattr(owner, name)])]


def _filled(texts: Iterable[str | None]) -> list[str]:
    plain = (" ".join(text.split()) for text in texts if text is not None)
    return [text for text in plain if text]


Start = Literal["all", "first", "best"]
"""Which candidates an arm takes: each one, that of the first seed, or the one with the highest score."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """How an arm inserts a frame."""

    # at the weakest transition (Eq. 27), or at a random one, drawn by master seed, story and arm.
    at: Literal["weakest", "random"]
    shows: Shows  # what the frame shows
    # whether Algorithm 1 decides: up to one frame for each seed is tried below the repair threshold, and the
    # best is taken where it raises the frozen score and copies no neighbour. Else one frame, of the first
    # seed, is inserted always: six pictures whatever it does (Table 74).
    tested: bool


@dataclass(frozen=True, slots=True)
class Arm:
    """One row of the tables."""

    name: str  # by which options, folders and tables name it
    label: str  # for tables
    start: Start  # which candidates it takes
    # the terms that rerank; none where it does not rerank. Their weights are the frozen ones, those of other
    # terms are 0.
    terms: tuple[Term, ...] = ()
    insertion: Insertion | None = None  # how it inserts a frame; None where it does not
    tables: tuple[int, ...] = (55, 75)  # numbers of the tables that have the row

    @property
    def tests(self) -> bool:
        """Whether judges are asked about its inserted frames."""
        return self.insertion is not None and self.insertion.tested

    @property
    def localises(self) -> bool:
        """Whether it has to know the weakest transition."""
        return self.insertion is not None and self.insertion.at == "weakest"


BRIDGE = Insertion("weakest", "transition", tested=True)
ANYWHERE = Insertion("random", "transition", tested=False)
AT_REST = Insertion("weakest", "setting", tested=False)
BY_CAPTIONS = Insertion("weakest", "captions", tested=False)
R, C, P = TERMS
ARMS: tuple[Arm, ...] = (
    Arm("base", "Base, mean over seeds", "all"),
    Arm("first-seed", "Base, first seed", "first"),
    Arm("random-extra", "Random extra frame", "first", insertion=ANYWHERE),
    Arm("non-semantic-extra", "Non-semantic extra frame", "first", insertion=AT_REST),
    Arm("caption-bridge", "Caption-only bridge", "first", insertion=BY_CAPTIONS),
    Arm("rerank-only", "Candidate rerank only", "best", TERMS, tables=(55, 63, 75)),
    Arm("bridge-only", "Bridge repair only", "first", insertion=BRIDGE),
    Arm("full", "Full Semantic Compass", "best", TERMS, BRIDGE, tables=(55, 63, 75)),
    Arm("recoverability", "Recoverability only", "best", (R,), tables=(63,)),
    Arm("coverage", "Transition coverage only", "best", (C,), tables=(63,)),
    Arm("copies", "Copy penalty only", "best", (P,), tables=(63,)),
    Arm("recoverability+coverage", "Recoverability + transition coverage", "best", (R, C), tables=(63,)),
    Arm("recoverability+copies", "Recoverability + copy penalty", "best", (R, P), tables=(63,)),
    Arm("coverage+copies", "Transition coverage + copy penalty", "best", (C, P), tables=(63,)),
)  # fmt: skip
"""All arms. What does not rerank starts from the first seed's candidate, so that it has one storyboard of a
story; ``first-seed`` is that candidate itself, and ``base`` is the mean over all seeds (Table 44)."""
NAMES = tuple(arm.name for arm in ARMS)
BASE, FIRST, FULL, STILL_FRAME = "base", "first-seed", "full", "non-semantic-extra"


def arms_named(wanted: Sequence[str] = ()) -> tuple[Arm, ...]:
    """Return arms by name, in the order of :data:`ARMS`; all where none is named."""
    known = {arm.name: arm for arm in ARMS}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ConfigError(
            f"arm {missing[0]}", what=f"there are {', '.join(known)}", fix="name some of these"
        )  # fmt: skip
    return tuple(arm for arm in ARMS if not wanted or arm.name in wanted)
