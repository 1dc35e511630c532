"""Storyboards as Semantic Compass handles them: frames in order, and folders of outputs made of them."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...evaluation.outputs.layout import nothing_to_judge
from ...evaluation.outputs.named import MANIFEST
from ...evaluation.outputs.storyboards import check_outputs
from ...media.images import open_picture
from ...models.vision.registry import Kind, names, open_vision
from ...models.vision.store import Card, Encoder, Rows, TextEncoder, TextRows, VectorStore
from ...models.vision.weights import Place
from ...schemas.canonical import Json, link_or_copy, pretty_bytes, sha256_file, write_atomic, writing
from ...schemas.katha import StoryRecord
from ...schemas.values import Own, Score

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Semantic Compass: the score that selects a storyboard, and where it is repaired
#
# Question: which of a story's candidate storyboards shows its transitions best, and which transition least?
# Formula: score = w_r R + w_t C - w_p P (Eq. 24).
# R: the mean over scored dimensions of the share of selection questions that are answered rightly from the
#     pictures alone (Eq. 17 and 18 on one storyboard).
#     C: the share of annotated transitions for which a frame between its two scenes, both included, is nearer
#     to the annotation than delta (Eq. 25).
#     P: the share of neighbouring frames that are nearer to each other than gamma (Eq. 26).
#     Weakest transition: the one with the lowest R over the questions about it (Eq. 27).
#     Bridge: one frame between the two frames of a transition (Eq. 28).
# Input: verdicts per question; cosines in [-1, 1] of frames and annotations, shape (frames, transitions), and
#     of neighbouring frames, shape (frames - 1,); thresholds; weights from 0.
# Output: R, C and P in [0, 1]; the score in [-w_p, w_r + w_t], higher is better.
# Undefined when: R: no selection question was judged. C: no annotation has a text, or it is not known which
#     frames show which scene. P: there is one frame. C and P: no frame has a vector; a pair of frames without
#     one is left out of P. Weakest transition: no transition has a judged question.
# A term that is undefined for one of the candidates is left out for all of them, so that they are compared
#     by the same; without any term the first candidate is taken.
# Source: KathaTrace, 3.9, B.5-B.6, Eq. 14-15 and 24-28, Algorithm 1.
# Departures from the source: R counts every judged selection question: Eq. 16's filter by text and images
#     together differs from candidate to candidate, and a candidate must not gain by making a question
#     ambiguous. An annotation without text is left out of both sides of C. A comparison with a threshold is
#     strict, as printed. With a bridge C keeps the number of transitions as its denominator, and the repaired
#     one has three frames; P runs over five neighbours instead of four. Ties go to the earliest candidate in
#     the order of seeds, and to the earliest transition. Scores are compared to nine digits.
# Example: R = 0.5, C = 0.75, P = 0.25 with weights 0.4, 0.4, 0.2: 0.2 + 0.3 - 0.05 = 0.45.

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Term: TypeAlias = Literal["recoverability", "coverage", "copies"]
TERMS: tuple[Term, ...] = ("recoverability", "coverage", "copies")
T = TypeVar("T")

NO_QUESTION = "no selection question was judged"
NO_TEXT = "no transition has an annotation with text"
NO_SCENES = "it is not known which frames show which scene"
ONE_FRAME = "there is one frame"
NO_VECTOR = "the encoder has no vector for any of the frames"
DIGITS = 9
"""To so many digits scores are compared: the order of additions must not decide."""


class Weights(Own):
    """How much each term of Eq. 24 counts."""

    recoverability: float  # w_r, from 0
    coverage: float  # w_t, from 0
    copies: float  # w_p, from 0; subtracted

    def only(self, terms: Collection[Term]) -> "Weights":
        """Return the weights with those of other terms at 0."""
        return Weights(**{name: getattr(self, name) if name in terms else 0.0 for name in TERMS})

    def signed(self) -> Floats:
        """Return them with the sign that each term has in Eq. 24, shape (3,)."""
        return np.array([self.recoverability, self.coverage, -self.copies], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one storyboard; each may be undefined."""

    recoverability: Score  # R of Eq. 24.
    coverage: Score  # C of Eq. 25.
    copies: Score  # P of Eq. 26.

    def values(self) -> Floats:
        """Return the three values, ``nan`` where undefined; shape (3,)."""
        values = [getattr(self, name).value for name in TERMS]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def recoverability(verdicts: Mapping[str, Sequence[bool]]) -> Score:
    """Return R of one storyboard.

    ``verdicts``: dimension -> whether each judged selection question was answered rightly from images alone.
    """
    shares = [sum(rights) / len(rights) for _, rights in sorted(verdicts.items()) if len(rights)]
    judged = sum(len(rights) for rights in verdicts.values())
    return Score.ratio(sum(shares), len(shares), NO_QUESTION, questions=judged)


def transition_coverage(
    likeness: Floats, spans: Sequence[Sequence[int]], with_text: Sequence[bool], delta: float
) -> Score:
    """Return C of one storyboard (Eq. 25).

    ``likeness``: cosine of each frame and each annotation, shape (frames, transitions). ``spans``: of each
    transition the frames between its scenes, from 0; a bridge makes three of two. None of them: it is not
    known which frames show it. ``delta``: what a cosine must be above.
    """
    counted = [index for index, there in enumerate(with_text) if there]
    if counted and not all(len(spans[index]) for index in counted):
        return Score(value=None, status="undefined", reason=NO_SCENES)
    if counted and np.isnan(likeness[:, counted]).all():
        return Score(value=None, status="undefined", reason=NO_VECTOR)
    shown = sum(bool((likeness[list(spans[index]), index] > delta).any()) for index in counted)
    return Score.ratio(shown, len(counted), NO_TEXT, transitions=len(with_text))


def copy_penalty(neighbours: Floats, gamma: float) -> Score:
    """Return P of one storyboard (Eq. 26).

    ``neighbours``: cosine of each frame and the next, shape (frames - 1,); ``nan`` where one has no vector.
    ``gamma``: what a cosine must be above.
    """
    known = neighbours[~np.isnan(neighbours)]
    return Score.ratio(
        int((known > gamma).sum()), len(known), NO_VECTOR if len(neighbours) else ONE_FRAME,
        pairs=len(neighbours),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one story against each other."""

    scores: tuple[float, ...]  # of each, by the terms that are defined for all
    best: int  # place of the best, from 0
    terms: tuple[Term, ...]  # which terms were compared by; none where none with a weight is defined for all


def ranked(candidates: Sequence[Terms], weights: Weights) -> Ranking:
    """Rank the candidates of one story by Eq. 24.

    ``candidates``: at least one, in the order of seeds.
    """
    values = np.stack([candidate.values() for candidate in candidates])
    scores = scores_of(values[None], weights)[0]
    used = usable(values[None], weights)[0]
    return Ranking(
        tuple(float(score) for score in scores),
        int(best_of(scores[None])[0]),
        tuple(name for name, there in zip(TERMS, used, strict=True) if there),
    )


def usable(values: Floats, weights: Weights) -> Mask:
    """Return which terms have a weight and are defined for all candidates of a story.

    ``values``: terms, ``nan`` where undefined, shape (stories, candidates, 3).

    Returned: shape (stories, 3).
    """
    there: Mask = ~np.isnan(values).any(axis=1) & (weights.signed() != 0)
    return there


def scores_of(values: Floats, weights: Weights) -> Floats:
    """Return Eq. 24 by the usable terms; see :func:`usable`. Shape (stories, candidates)."""
    used = usable(values, weights)[:, None, :]
    weighted = np.where(used, np.nan_to_num(values) * weights.signed(), 0.0)
    scores: Floats = np.round(weighted.sum(axis=-1), DIGITS)
    return scores


def best_of(scores: Floats) -> NDArray[np.int64]:
    """Return the place of the highest score of each story, the first of several; shape (stories,)."""
    places: NDArray[np.int64] = scores.argmax(axis=-1)
    return places


def weakest_transition(values: Sequence[Score]) -> int | None:
    """Return the place of the transition with the lowest R (Eq. 27), from 0; None where none has a value."""
    known = [(score.value, index) for index, score in enumerate(values) if score.value is not None]
    return min(known)[1] if known else None


def inserted(frames: Sequence[T], after: int, frame: T) -> tuple[T, ...]:
    """Return frames with one more behind the ``after``-th, counted from 1 (Eq. 28)."""
    if not 1 <= after < len(frames):
        raise ValueError(f"a bridge stands behind frame 1 to {len(frames) - 1}, not behind {after}")
    return (*frames[:after], frame, *frames[after:])


def resembles(neighbours: Floats, gamma: float) -> bool:
    """Whether a bridge is a copy of one of its neighbours: a cosine above gamma (Algorithm 1, line 13)."""
    return bool((neighbours > gamma).any())


# --

Seed = int | None


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a storyboard."""

    file: Path  # where it lies
    sha256: str  # of the file
    # index of the scene that it shows; None where that is not known, and for an inserted frame
    scene: int | None = None
    inserted: bool = False  # whether Semantic Compass put it there


@dataclass(frozen=True, slots=True)
class Board:
    """A storyboard of one story."""

    story_id: str  # the story
    seed: Seed  # of the candidate that it is, or is made from; None where there is one per story
    frames: tuple[Frame, ...] = field(repr=False)  # its pictures, in order

    @property
    def bridges(self) -> tuple[int, ...]:
        """Numbers of inserted frames, from 1."""
        return tuple(number for number, frame in enumerate(self.frames, 1) if frame.inserted)

    def spans(self, record: StoryRecord) -> tuple[tuple[int, ...], ...]:
        """Return for each transition the frames from its first scene to its second, from 0.

        None of them where it is not known which frames show these scenes.
        """
        at = {frame.scene: index for index, frame in enumerate(self.frames) if frame.scene is not None}
        spans: list[tuple[int, ...]] = []
        for transition in record.transitions:
            first, last = at.get(transition.from_scene), at.get(transition.to_scene)
            if first is None or last is None or first >= last:
                spans.append(())
            else:
                spans.append(tuple(range(first, last + 1)))
        return tuple(spans)

    def with_frame(self, record: StoryRecord, transition: int, frame: Frame) -> "Board | None":
        """Return the storyboard with a frame behind the first frame of a transition (Eq. 28).

        None where it is not known which frames show the transition.

        ``transition``: its number, from 1.
        """
        span = self.spans(record)[transition - 1]
        if not span:
            return None
        return replace(self, frames=inserted(self.frames, span[0] + 1, replace(frame, inserted=True)))


@dataclass(frozen=True)
class Candidates:
    """The candidate storyboards of a method."""

    method: str  # name of the method
    seeds: tuple[Seed, ...]  # all seeds, in the order in which ties are decided
    boards: Mapping[str, tuple[Board, ...]] = field(repr=False)  # story id -> its valid storyboards, by seed
    invalid: tuple[tuple[str, Seed], ...]  # story id and seed of each generation that cannot be used


def read_candidates(folder: Path, records: Sequence[StoryRecord], known: Iterable[StoryRecord]) -> Candidates:
    """Return the candidates in a method's folder of outputs."""
    report = check_outputs(folder, records, known=known)
    if not report.valid:
        raise nothing_to_judge("storyboard", [report])
    boards: dict[str, list[Board]] = {record.story_id: [] for record in records}
    for output in report.valid:
        frames = tuple(Frame(file.file.absolute(), file.sha256, file.scene) for file in output.files)
        boards[output.unit].append(Board(output.unit, output.seed, frames))
    invalid = tuple((output.unit, output.seed) for output in report.invalid)
    return Candidates(
        report.method, report.seeds, {story: tuple(some) for story, some in boards.items()}, invalid
    )


def frame_of(file: Path) -> Frame:
    """Return a picture as a frame that shows no scene of its own."""
    return Frame(file.absolute(), sha256_file(file))


def write_boards(folder: Path, method: str, boards: Iterable[Board], *, panels: int | None = None) -> Path:
    """Write storyboards as the outputs of a method; what lies there and is right stays, the rest goes."""
    wanted: dict[Path, Path] = {}
    bridges: dict[str, tuple[int, ...]] = {}
    seeds: set[int] = set()
    for board in boards:
        below = Path(board.story_id, *([] if board.seed is None else [f"seed_{board.seed}"]))
        if bridges.setdefault(board.story_id, board.bridges) != board.bridges:
            raise ValueError(f"{method}: bridges of {board.story_id} stand at several places")
        for number, frame in enumerate(board.frames, 1):
            path = below / f"{number:02}{frame.file.suffix.lower()}"
            if wanted.setdefault(path, frame.file) != frame.file:
                raise ValueError(f"{method}: two storyboards want {path}")
        seeds |= set() if board.seed is None else {board.seed}
    manifest: dict[str, Json] = {"method": method}
    manifest |= {"bridges": shown} if (shown := {key: list(at) for key, at in bridges.items() if at}) else {}
    manifest |= {"panels": panels} if panels is not None else {}
    manifest |= {"seeds": sorted(seeds)} if seeds else {}
    with writing(folder):
        _lay_out(folder, wanted, manifest)
    return folder


def _lay_out(folder: Path, wanted: Mapping[Path, Path], manifest: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder) not in wanted and path.name != MANIFEST:
            path.unlink()
    for below, source in wanted.items():
        _link(source, folder / below)
    write_atomic(folder / MANIFEST, [pretty_bytes(manifest)])


def _link(source: Path, target: Path) -> None:
    """Put a picture at a place, without a copy where the disk can do so."""
    if target.exists():
        if target.samefile(source) or sha256_file(target) == sha256_file(source):
            return
        target.unlink()
    link_or_copy(source, target)


# -- psi and sim of Eq. 25 and 26: encoders by name, vectors that are stored once, and cosines
#
# Question: how alike are a frame and an annotation, or a frame and the next one?
# Formula: the cosine of their vectors, to six digits, added up exactly, so that no machine decides
# differently. Input: pictures; texts of annotations. Two encoders: one of pictures and texts for coverage,
# one of pictures
#     for copies; the paper's psi stands for both, and no one encoder is good at both.
# Output: in [-1, 1].
# Undefined when: an encoder has no vector for a picture; then nothing is above a threshold.
# Source: KathaTrace, Eq. 25-26. Neither encoder nor preparation is named there.
# Departures from the source: any model of :mod:`fabula.models.vision` may be named, such as ``clip-vit-l-14``
#     for coverage and ``dinov2-l-14`` for copies. Two more need no weights. ``pixels``: 16 x 16 cells of mean
#     colour, for copies of any picture. ``drawn-marks``: the marks that stand in pictures of the generator
#     ``drawn``, for both, and for its pictures only.
# Example: two equal pictures: 1.

SIDE = 16
"""Cells of ``pixels`` in a row, and rows."""
MARKS = 4096
"""Length of a vector of ``drawn-marks``."""


class PixelEncoder:
    """The colours of a picture's 16 x 16 cells, around middle grey; for copies only."""

    card = Card("pixels", "own", "1", f"{SIDE} x {SIDE} cells of mean colour", 3 * SIDE * SIDE + 1, 0.0, "-")
    identity = "pixels@1"

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 769); the last number is the same for all before scaling."""
        from PIL import Image

        rows = []
        for image in images:
            cells = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
            colours = np.asarray(cells, dtype=np.float64).ravel() / 255 - 0.5
            rows.append(np.append(colours, 0.5))  # a grey picture has a direction, too
        return _unit(np.array(rows).reshape(len(rows), 3 * SIDE * SIDE + 1))


class DrawnMarksEncoder:
    """Which marks a picture of the generator ``drawn`` shows; a text's are those of its lines."""

    card = Card("drawn-marks", "own", "1", "marks of drawn pictures", MARKS, 0.0, "-")
    identity = "drawn-marks@1"

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 4096); ``nan`` for a picture in which no mark can be read."""
        from ...models.generators.drawn.images import read_marks

        bags = [_bag([mark.code for mark in read_marks(image)]) for image in images]
        rows = _unit(np.array(bags).reshape(len(bags), MARKS))
        rows[~rows.any(axis=1)] = np.nan
        return rows

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts whose lines each name one mark; nothing is cut off."""
        from ...models.generators.drawn.scene import code_of

        rows = [_bag([code_of(line) for line in text.splitlines() if line.strip()]) for text in texts]
        return TextRows(_unit(np.array(rows).reshape(len(rows), MARKS)), (0,) * len(rows))


OWN: Mapping[str, Callable[[], Encoder]] = {"pixels": PixelEncoder, "drawn-marks": DrawnMarksEncoder}
"""Encoders that need no weights."""


@dataclass(frozen=True)
class Encoders:
    """The two encoders, with the store of vectors."""

    coverage: TextEncoder = field(repr=False)  # of pictures and texts, for Eq. 25.
    copies: Encoder = field(repr=False)  # of pictures, for Eq. 26.
    store: VectorStore = field(repr=False)  # keeps vectors by content
    batch: int = 16  # pictures that an encoder gets at once

    @property
    def identities(self) -> dict[str, str]:
        """What the results depend on: names, revisions, numbers and devices."""
        return {"coverage": self.coverage.identity, "copies": self.copies.identity}

    def likeness(self, frames: Sequence[Path], texts: Sequence[str]) -> Floats:
        """Return the cosine of each frame and each text, shape (frames, texts)."""
        pictures = self._rows(self.coverage, frames)
        words = self.store.texts(self.coverage, texts, self.batch).rows
        return np.array([[cosine(row, text) for text in words] for row in pictures]).reshape(
            len(frames), len(texts)
        )

    def neighbours(self, frames: Sequence[Path]) -> Floats:
        """Return the cosine of each frame and the next, shape (frames - 1,)."""
        rows = self._rows(self.copies, frames)
        return np.array([cosine(row, after) for row, after in pairwise(rows)])

    def _rows(self, model: Encoder, frames: Sequence[Path]) -> Rows:
        return self.store.rows(model, [open_picture(frame).image for frame in frames], self.batch)


def open_encoders(
    coverage: str,
    copies: str,
    run_on: Place | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Encoders:
    """Return the two encoders with their weights.

    ``options``: name -> settings of its loader, such as ``local``.
    """
    run_on, options = run_on or Place(), options or {}
    return Encoders(
        cast("TextEncoder", _opened(coverage, run_on, options, texts=True)),
        _opened(copies, run_on, options, texts=False),
        VectorStore.of_user(),
    )


def cosine(first: Rows, second: Rows) -> float:
    """Return the cosine of two vectors to six digits, 0 where one has no direction; ``nan`` of ``nan``."""
    product, scale = _dot(first, second), math.sqrt(_dot(first, first) * _dot(second, second))
    if math.isnan(product) or not scale:
        return product
    return round(max(-1.0, min(1.0, product / scale)), 6)


def _dot(first: Rows, second: Rows) -> float:
    # Not numpy's: the order in which it adds depends on the processor.
    products = first.astype(np.float64) * second.astype(np.float64)
    return math.fsum(products[products != 0].tolist())


def _opened(name: str, run_on: Place, options: Mapping[str, Mapping[str, Any]], *, texts: bool) -> Encoder:
    if name in OWN:
        model = OWN[name]()
        if texts and not isinstance(model, TextEncoder):
            fix = "name an encoder of pictures and texts, such as clip-vit-l-14 or drawn-marks"
            raise ConfigError(f"encoder {name}", what="it takes no texts, which Eq. 25 needs", fix=fix)
        return model
    if name not in names() and ":" not in name:
        fix = f"name one of them, or package.module:loader; {', '.join(OWN)} need no weights"
        raise ConfigError(f"encoder {name}", what=f"there are {', '.join((*names(), *OWN))}", fix=fix)
    kind: Kind = "text encoder" if texts else "encoder"
    return cast("Encoder", open_vision(name, run_on, options.get(name, {}), kind))


def _bag(codes: Sequence[str]) -> Floats:
    row = np.zeros(MARKS)
    for code in codes:
        row[int(code, 16) % MARKS] += 1
    return row


def _unit(rows: Floats) -> Rows:
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    unit: Rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0).astype(np.float32)
    return unit
