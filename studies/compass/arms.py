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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from ...engine.execute import STORE
from ...engine.run_options import RunOptions
from ...errors import ConfigError, MissingRequirement
from ...models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ...prompts.loader import load_prompt
from ...schemas.canonical import jsonl_lines, write_atomic, writing
from ...schemas.katha import Scene, StoryRecord, Transition
from ...schemas.values import Own, Score
from ..pictures import FIELDS as MARKS
from ..pictures import (
    ORDERS,
    GenerateOptions,
    Order,
    PanelOrder,
    Plan,
    PlannedPanel,
    check_panels,
    generate,
    generations_of,
    read_orders,
    write_orders,
)
from .boards import TERMS, Board, Encoders, Floats, Seed, Term, Terms, copy_penalty, transition_coverage
from .judging import Ledger

if TYPE_CHECKING:
    from ...engine.hooks import Reporter

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


# -- The terms of storyboards: answers and likenesses first, thresholds afterwards
#
# What costs something, answers of judges and vectors of pictures, does not depend on thresholds. So it is
# measured once, and tuning only counts.


@dataclass(frozen=True)
class Measured:
    """A storyboard with what its terms are counted from."""

    board: Board  # the storyboard
    recoverability: Score  # R over its selection questions
    # cosine of each frame and each annotation, shape (frames, transitions)
    likeness: Floats = field(repr=False)
    neighbours: Floats = field(repr=False)  # cosine of each frame and the next, shape (frames - 1,)
    spans: tuple[tuple[int, ...], ...] = field(repr=False)  # of each transition, its frames, from 0
    with_text: tuple[bool, ...] = field(repr=False)  # whether each transition has an annotation with text

    def terms(self, delta: float, gamma: float) -> Terms:
        """Return its terms under two thresholds."""
        return Terms(self.recoverability, self.coverage(delta), self.copies(gamma))

    def coverage(self, delta: float) -> Score:
        """Return C of Eq. 25 under a threshold."""
        return transition_coverage(self.likeness, self.spans, self.with_text, delta)

    def copies(self, gamma: float) -> Score:
        """Return P of Eq. 26 under a threshold."""
        return copy_penalty(self.neighbours, gamma)

    @property
    def next_to_bridge(self) -> Floats:
        """Cosines of an inserted frame and its neighbours; empty where none was inserted."""
        pairs = [at for number in self.board.bridges for at in (number - 2, number - 1)]
        return self.neighbours[[at for at in pairs if 0 <= at < len(self.neighbours)]]


def measured(board: Board, record: StoryRecord, recoverability: Score, encoders: Encoders) -> Measured:
    """Look at a storyboard."""
    files = [frame.file for frame in board.frames]
    texts: Sequence[str] = [annotation_text(transition) for transition in record.transitions]
    return Measured(
        board,
        recoverability,
        encoders.likeness(files, texts),
        encoders.neighbours(files),
        board.spans(record),
        tuple(bool(text) for text in texts),
    )


# -- Inserted frames made by a generator: orders for the run that makes pictures
#
# Frames that are asked for: who asks says what they show, somebody else has them made.
#
# A frame follows from story, transition, what it shows and seed, whatever storyboard it is tried in. So arms
# that ask for the same frame share it.

SUFFIXES = ("png", "jpg", "jpeg", "webp")
WANTED = "frames_wanted.jsonl"


class FrameRequest(Own):
    story_id: str = Field(description="The story.")
    transition: int = Field(ge=1, description="Number of the transition that it stands at, from 1.")
    shows: Shows = Field(description="What it shows.")
    seed: Seed = Field(description="Generation seed; null for a system that takes none.")
    prompt: str = Field(description="What is to be seen, in words.")
    scene: DrawnScene = Field(description="The same as data, for the one model that draws from data.")

    @property
    def key(self) -> str:
        """Its name, and its path below a folder of frames, without ending."""
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        return f"{self.story_id}/t{self.transition}/{self.shows}{seed}"


Frames: TypeAlias = Mapping[str, Path | None]
"""Key of a request -> its picture; None where the generator made none."""
Render: TypeAlias = Callable[[Sequence[FrameRequest]], Frames]
"""Has frames made; asked again for the same, it gives the same pictures and pays nothing."""


def requests_for(
    record: StoryRecord, transition: int, shows: Shows, seeds: Iterable[Seed]
) -> tuple[FrameRequest, ...]:
    """Return the requests for a frame at a transition, one for each seed."""
    panel = planned_frame(record, transition, shows)
    return tuple(
        FrameRequest(
            story_id=record.story_id, transition=transition, shows=shows, seed=seed, prompt=panel.prompt,
            scene=panel.drawn,
        )
        for seed in seeds
    )  # fmt: skip


def frames_in(folder: Path) -> Render:
    """Return what takes frames from a folder, where somebody put them.

    They are called by the keys of requests: ``STORY/t2/transition/seed_42.png``. Where some are missing, the
    folder gets ``frames_wanted.jsonl``, a line with the prompt for each, and the call stops.
    """

    def render(requests: Sequence[FrameRequest]) -> Frames:
        there = {request.key: _file(folder, request.key) for request in requests}
        missing = [request for request in requests if there[request.key] is None]
        if missing:
            _write_wanted(folder, missing)
            raise MissingRequirement(
                str(folder),
                what=f"{len(missing)} of {len(requests)} frames are not there; {WANTED} lists them",
                fix="have them made, put each under its key, and give the command again",
            )  # fmt: skip
        return there

    return render


def _file(folder: Path, key: str) -> Path | None:
    paths = (folder / f"{key}.{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _write_wanted(folder: Path, missing: Sequence[FrameRequest]) -> None:
    with writing(folder, what="the list of frames"):
        folder.mkdir(parents=True, exist_ok=True)
        rows = ({"file": f"{request.key}.png", **request.as_json()} for request in missing)
        write_atomic(folder / WANTED, jsonl_lines(rows))


_SEPARATOR = "~"
METHOD = "inserted"
FRAMES = "frames"
"""What its run is called in a ledger."""


@dataclass(frozen=True)
class FrameMaker:
    """Has frames made by one generator; a :data:`.frames.Render`.

    All frames are orders of one engine run, which grows: what was made is not asked for again, whoever wants
    it next.
    """

    folder: Path  # where the orders and the run lie
    model: str  # spec of the generator, such as ``image:drawn``
    options: GenerateOptions = field(default_factory=GenerateOptions)  # how to run
    width: int | None = None  # of a frame in pixels; None leaves it to the generator
    height: int | None = None  # the same
    steps: int | None = None  # of denoising; None leaves it to the generator
    negative: str | None = None  # what must not be seen
    reporter: "Reporter | None" = None  # takes the progress
    ledger: Ledger = field(default_factory=Ledger)  # what its runs cost, and others with the same limit

    def __call__(self, requests: Sequence[FrameRequest]) -> Frames:
        """Return the pictures; None for those that the generator refused or spoiled."""
        if not requests:
            return {}
        orders = [self._order(request) for request in requests]
        path = self.folder / ORDERS
        with writing(self.folder, what="the orders"):
            self.folder.mkdir(parents=True, exist_ok=True)
            before = read_orders(path) if path.is_file() else ()
            write_orders(path, {order.key: order for order in (*before, *orders)}.values())
        run = self.folder / "run"
        options = replace(self.options, max_cost=self.ledger.left(FRAMES), replace_sources=True)
        self.ledger.enter(FRAMES, generate(path, run, options, self.reporter))
        rows = {
            (row["method"], row["story_id"], row["seed"]): row
            for some in generations_of(run).values()
            for row in some
        }
        return {
            request.key: None if (row := rows[order.method, order.story_id, order.seed])["outcome"] != "made"
            else run / STORE / row["file"]
            for request, order in zip(requests, orders, strict=True)
        }  # fmt: skip

    def _order(self, request: FrameRequest) -> Order:
        method = _SEPARATOR.join((METHOD, request.shows, f"t{request.transition}"))
        panel = PanelOrder(number=1, prompt=request.prompt, scene=request.scene)
        return Order(
            method=method, story_id=request.story_id, seed=request.seed, model=self.model, width=self.width,
            height=self.height, steps=self.steps, negative=self.negative, panels=(panel,),
        )  # fmt: skip


def frame_maker(
    folder: Path, model: str, options: RunOptions, ledger: Ledger, reporter: "Reporter | None"
) -> FrameMaker:
    """Return what has frames made by a generator, with the options that every run has."""
    kept = {
        name.name: getattr(options, name.name)
        for name in fields(RunOptions)
        if name.name not in ("settings", "reuse", "replace_sources", "shard")
    }
    return FrameMaker(folder, model, GenerateOptions(**kept), ledger=ledger, reporter=reporter)
