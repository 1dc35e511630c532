"""Methods against each other in a report, in words; and what low, middle and high values look like.

What was asked and what came back, per judge: outcomes and cost, counted over an archive.
"""

import base64
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from ...errors import ConfigError, InputError, UserError
from ...media.images import encode_image, fitted, open_picture
from ...models.spec import PROGRAMS
from ...models.vision.store import Box, cut
from ...pages.grid import Unit
from ...schemas.canonical import digest
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import open_plain, parse_json, read_plain
from ...schemas.text import plural
from ...schemas.values import Score
from ...validators.resampling import FEW, LEAST
from ..archive.archive import JUDGEMENTS, read_archive
from ..metrics.metric import Quantity
from ..outputs.layout import VIDEOS
from ..outputs.storyboards import Storyboards, check_outputs
from ..stats.uncertainty import LEVEL, Paired, Uncertainty
from .model import LEAST as LEAST_COVERAGE
from .model import Comparison, CountRow, CountTable, Definition, Example, Examples, Frame, Snap

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Pictures of a report: found in a run folder or in outputs, made small, within a budget

SIDE, SHOT_SIDE, CROP_SIDE, QUALITY = 360, 240, 96, 70
"""Longer sides in pixels of frames, shots and crops, and quality, of embedded pictures."""
MEGABYTES = 12.0
"""Size of all embedded pictures together, where no other is asked for."""
GONE, SPENT = "picture not available", "left out: there is no room for more pictures in this page"


@dataclass
class Thumbnails:
    """Makes small JPEGs without metadata as data URLs, until their budget is spent."""

    side: int = SIDE  # longer side of frames
    budget: int | None = None  # characters of data that are left; None for no limit
    made: int = 0  # pictures that were embedded
    gone: int = 0  # pictures that were not at hand
    spent: int = 0  # pictures that the budget left out
    _frames: dict[Path | None, Snap] = field(default_factory=dict, repr=False)
    _last: "tuple[Path, Image] | None" = field(default=None, repr=False)

    @classmethod
    def within(cls, megabytes: float) -> "Thumbnails":
        """Return what makes so many megabytes of pictures."""
        return cls(budget=int(megabytes * 1_000_000))

    def frame(self, path: Path | None, label: str, text: str | None = None) -> Frame:
        """Return the frame for a file, made once; without its picture where it cannot be opened."""
        if path not in self._frames:
            self._frames[path] = self.whole(path, self.side)[0]
        snap = self._frames[path]
        return Frame(label=label, text=text, width=snap.width, height=snap.height, data=snap.data)

    def whole(self, file: Path | None, side: int = SHOT_SIDE) -> tuple[Snap, tuple[int, int] | None]:
        """Return a picture, and its size before it was made small; None where there is none."""
        image = self._open(file)
        if image is None:
            return self.none(), None
        return self._small(image, side), (image.width, image.height)

    def crop(self, file: Path | None, box: Sequence[float] | None) -> Snap:
        """Return the part of a picture in a box; all of it without one."""
        image = self._open(file)
        part = (
            image
            if image is None or box is None
            else cut(image, Box(box[0], box[1], box[2], box[3]), "clamped")
        )
        return self.none() if part is None else self._small(part, CROP_SIDE)

    def none(self) -> Snap:
        """Return the place of a picture that is not at hand."""
        self.gone += 1
        return Snap(lost=GONE)

    def _open(self, file: Path | None) -> "Image | None":
        """Return a picture, of a clip its first frame; None where it is gone or cannot be opened."""
        if file is None:
            return None
        if self._last is None or self._last[0] != file:
            try:
                if file.suffix.lower() in VIDEOS:
                    from ...media.video import first_frame

                    self._last = file, first_frame(file).image
                else:
                    self._last = file, open_picture(file).image
            except UserError:
                return None
        return self._last[1]

    def _small(self, image: "Image", side: int) -> Snap:
        small = fitted(image, side)
        data = encode_image(small, format="jpeg", quality=QUALITY)
        text = f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
        if self.budget is not None and len(text) > self.budget:
            self.budget, self.spent = 0, self.spent + 1
            return Snap(lost=SPENT)
        if self.budget is not None:
            self.budget -= len(text)
        self.made += 1
        return Snap(width=small.width, height=small.height, data=text)


FRAMES = "frames.jsonl"
MOST = 6
"""Most pictures that one case shows."""

Place = tuple[str, str, int | None]
"""Method, unit and seed of a generation."""


@dataclass(frozen=True)
class Shown:
    """The pictures of one generation, in story order."""

    files: tuple[Path, ...]  # their files
    # which scene each shows; None for bridge frames, and where it is not known
    scenes: tuple[int | None, ...]


@dataclass
class Pictures:
    """Finds the pictures of generations and makes the frames of a report from them."""

    shown: Mapping[Place, Shown]  # method, unit and seed -> the pictures
    small: Thumbnails = field(default_factory=lambda: Thumbnails.within(MEGABYTES), repr=False)
    # method -> what its pictures are called that show no scene that is known; panels where it does not say
    nouns: Mapping[str, str] = field(default_factory=dict)

    def of_scenes(self, place: Place, scenes: tuple[int, ...], texts: Mapping[int, str]) -> tuple[Frame, ...]:
        """Return the frames from the first to the last of some scenes, bridge frames between them included.

        Where it is not known which scene a picture shows, all pictures are returned.
        """
        shown = self.shown.get(place)
        if shown is None:
            return ()
        numbers = range(len(shown.files))
        wanted = [n for n in numbers if n < len(shown.scenes) and shown.scenes[n] in scenes]
        if wanted:
            numbers = range(min(wanted), max(wanted) + 1)
        return tuple(self._frame(place, number, texts) for number in numbers[:MOST])

    def every(self, place: Place) -> tuple[Frame, ...]:
        """Return at most :data:`MOST` pictures of a generation, spread over its length."""
        shown = self.shown.get(place)
        if shown is None or not shown.files:
            return ()
        count = len(shown.files)
        kept = sorted({round(n * (count - 1) / max(1, MOST - 1)) for n in range(MOST)})
        return tuple(self._frame(place, number, {}) for number in kept)

    def _frame(self, place: Place, number: int, texts: Mapping[int, str]) -> Frame:
        shown = self.shown[place]
        scene = shown.scenes[number] if number < len(shown.scenes) else None
        label = f"{self.nouns.get(place[0], 'Panel')} {number + 1}" if scene is None else f"Scene {scene}"
        return self.small.frame(shown.files[number], label, None if scene is None else texts.get(scene))


def pictures_of_run(folder: Path, nouns: Mapping[str, str] | None = None) -> Pictures:
    """Return the pictures that an evaluation folder holds; none where it is an archive without them."""
    pictures: dict[Place, Shown] = {}
    try:
        lines = read_plain(folder / FRAMES, follow=True).splitlines()
    except OSError:
        return Pictures(pictures, nouns=nouns or {})
    for line in lines:
        try:
            row = parse_json(line)
            key = (str(row["method"]), str(row["unit"]), row.get("seed"))
            pictures[key] = _shown(folder, row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the page says where a picture is not at hand
    return Pictures(pictures, nouns=nouns or {})


def kept_picture(folder: Path, name: object) -> Path | None:
    """Return a picture that a run keeps; None where it is gone, or its name leads out of the folder."""
    if not isinstance(name, str):
        return None
    root = folder.resolve()
    path = (root / name).resolve()
    return path if path.is_relative_to(root) and path.is_file() else None


def pictures_of_outputs(
    folders: Sequence[Path], records: Sequence[StoryRecord], judged: Mapping[str, Any]
) -> Pictures:
    """Return the pictures in folders of outputs, one method each.

    ``judged``: method -> what the manifest says of its outputs.
    """
    pictures: dict[Place, Shown] = {}
    for folder in folders:
        report = check_outputs(folder, records)
        _check_judged(folder, report, judged)
        for board in report.valid:
            files, scenes = (panel.file for panel in board.files), (panel.scene for panel in board.files)
            pictures[report.method, board.unit, board.seed] = Shown(tuple(files), tuple(scenes))
    return Pictures(pictures)


def _check_judged(folder: Path, report: Storyboards, judged: Mapping[str, Any]) -> None:
    """Refuse outputs that judges did not see: the page would show them beside verdicts on others."""
    about = judged.get(report.method)
    seen = about.get("outputs_sha256") if isinstance(about, Mapping) else None
    if judged and about is None:
        expected, found = f"outputs of one of {', '.join(judged)}", f"outputs of {report.method}"
    elif seen in (None, report.sha256):
        return
    else:
        expected, found = f"the outputs that were judged, SHA-256 {seen}", f"SHA-256 {report.sha256}"
    fix = "give the folder as it was judged, or leave --outputs out"
    raise InputError.one(str(folder), expected=expected, found=found, fix=fix)


def _shown(folder: Path, row: Mapping[str, Any]) -> Shown:
    """Return the pictures of one line; a name that leads out of the folder is no picture of it."""
    root = folder.resolve()
    files = []
    for frame in row["frames"]:
        path = (root / str(frame["file"])).resolve()
        files.append(path if path.is_relative_to(root) else root / "outside")
    scenes = [scene if isinstance(scene, int) else None for scene in row.get("scenes") or ()]
    return Shown(tuple(files), tuple(scenes))


# --

METHODS = 6
"""Methods whose units are shown with pictures, where no others are asked for."""
FEW_ANSWERS = 0.95
"""Share of answers of a judge below which a page says so at its top."""
OUTCOMES = ("answered", "refused", "blocked", "truncated", "malformed", "failed")


def read_lines(folder: Path) -> Iterator[Judgement]:
    """Yield the judgements of an evaluation folder, one line at a time."""
    try:
        with open_plain(folder / JUDGEMENTS, follow=True) as handle:
            for line in handle:
                yield Judgement.model_validate_json(line)
    except (OSError, ValidationError):
        read_archive(folder)  # says everything that is wrong with it
        raise


@dataclass
class Accounts:
    """Counts over the judgements of an archive; a matcher's own verdicts are no replies and left out."""

    replies: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    tokens: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    costs: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reported: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, judgement: Judgement) -> None:
        if judgement.kind == "match":
            return
        judge = judgement.judge.spec
        self.replies[judge] += 1
        self.outcomes[judge][judgement.outcome] += 1
        for name, count in (("input", judgement.input_tokens), ("output", judgement.output_tokens)):
            if count is not None:
                self.tokens[judge][name] += count
        if judgement.cost is not None:
            self.costs[judge].append(judgement.cost)
        if judgement.judge.reported_model:
            self.reported[judge].add(judgement.judge.reported_model)

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> "Accounts":
        accounts = cls()
        for judgement in judgements:
            accounts.add(judgement)
        return accounts

    def warnings(self) -> Iterator[str]:
        """Yield which judges answered so little that readers must know it first."""
        for judge, count in sorted(self.replies.items()):
            answered = self.outcomes[judge]["answered"]
            if answered < FEW_ANSWERS * count:
                yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."

    @property
    def total(self) -> int:
        return sum(self.replies.values())

    def outcome_table(self) -> CountTable:
        """Return the replies by outcome, one row per judge."""
        rows = [
            CountRow(label=judge, values={"replies": count, **{o: self.outcomes[judge][o] for o in OUTCOMES}})
            for judge, count in sorted(self.replies.items())
        ]
        columns = {"replies": "Replies", **{name: name.capitalize() for name in OUTCOMES}}
        return CountTable(
            name="outcomes", title="Replies by outcome", heading="Judge", columns=columns, rows=tuple(rows),
            note="Every request has exactly one outcome; replies that serve several methods count once.",
        )  # fmt: skip

    def cost_table(self) -> CountTable:
        """Return what the replies took, one row per judge."""
        columns = {
            "replies": "Replies", "input_tokens": "Input tokens", "output_tokens": "Output tokens",
            "usd": "USD", "without_price": "Replies of unknown price", "reported": "Model as reported",
        }  # fmt: skip
        rows = []
        for judge, count in sorted(self.replies.items()):
            costs, tokens = self.costs.get(judge, []), self.tokens.get(judge, Counter())
            values: dict[str, int | float | str | None] = {
                "replies": count,
                "input_tokens": tokens.get("input"),
                "output_tokens": tokens.get("output"),
                "usd": round(math.fsum(costs), 6) if costs else None,
                "without_price": count - len(costs),
                "reported": ", ".join(sorted(self.reported.get(judge, ()))) or None,
            }
            rows.append(CountRow(label=judge, values=values))
        return CountTable(
            name="cost", title="Replies and cost", heading="Judge", columns=columns, rows=tuple(rows),
            note="Tokens as the services counted them; USD if the price is known.",
        )  # fmt: skip


T = TypeVar("T")
Level = Literal["low", "middle", "high"]
ENDMOST: tuple[Level, ...] = ("low", "high")
ENDS = {True: "Higher is better.", False: "Lower is better.", None: "Neither end is better."}


def comparison(
    pair: Paired,
    measure: str,
    *,
    higher: bool | None,
    better: str = "is better",
    unit: Unit = "points",
    shown: bool = True,
) -> Comparison:
    """Return a paired comparison as a report shows it.

    ``higher``: whether the higher value is the better one; None of a diagnostic, where neither is.
    """
    if pair.difference is None:
        difference = Score(value=None, status="undefined", reason="no question is valid for both")
    else:
        difference = Score(value=pair.difference, status="ok", low=pair.low, high=pair.high)
    return Comparison(
        measure=measure, first=pair.first, second=pair.second, difference=difference, unit=unit,
        p={"Wilcoxon": pair.p_wilcoxon_corrected, pair.resampled_test: pair.p_bootstrap_corrected},
        effects={"Cohen's d": pair.cohen_d, "rank-biserial": pair.rank_biserial},
        pairs=pair.n, verdict=_verdict(pair, better, higher=higher), shown=shown,
    )  # fmt: skip


def comparison_note(methods: int, pairs: int, units: str, how: str) -> str:
    """Return how methods were compared, or why they were not.

    ``pairs``: how many comparisons there are. ``units``: what two methods must share, as in ``no two methods
    have a story in common that counts``. ``how``: how they were compared.
    """
    if methods < 2:
        return "There is only one method; fabula compare compares it with other evaluations."
    return how if pairs else f"No two methods have {units}."


def sentences(notes: Iterable[str], names: Iterable[str] = ()) -> Iterator[str]:
    """Yield notes as sentences; one that begins with a name, such as that of a method, keeps it as it is."""
    kept = (*PROGRAMS, *names)
    for note in notes:
        named = any(re.match(rf"{re.escape(name)}(?![\w-])", note) for name in kept)
        yield f"{note if named else note[:1].upper() + note[1:]}."


def day_of(label: str, manifest: EvaluationManifest) -> dict[str, str]:
    """Return the day of an evaluation under its label; nothing where it is not known."""
    created = manifest.environment.get("created_at")
    return {label: str(created)[:10]} if created else {}


def resampling_definition(used: Uncertainty, unit: str) -> Definition:
    """Return what a report says of its intervals and p-values."""
    units = plural(unit)
    few = f" Below {FEW} {units} they are of Student's t, below {LEAST} there are none."
    return Definition(
        name="bootstrap", value=f"{used.resamples:,} resamples, seed {used.seed}, {used.correction}",
        meaning=f"{units.capitalize()} are drawn with replacement; intervals are percentiles."
        f"{few if used.interval == 'by-size' else ''} P-values of several comparisons are corrected by "
        f"{used.correction.capitalize()}.",
    )  # fmt: skip


def _verdict(pair: Paired, better: str, *, higher: bool | None) -> str:
    if pair.difference is None or not pair.tests:
        return f"Too few {plural(pair.unit)} for a test." if 0 < pair.n < LEAST else "Cannot be said."
    if winner := pair.winner(higher=higher is not False):
        return f"{winner} {better}." if higher is not None else "They differ; neither end is better."
    disagree = len(pair.tests) == 2 and min(pair.tests) < LEVEL
    return "The two tests disagree." if disagree else "These data do not tell them apart."


@dataclass(frozen=True)
class Wanted(Generic[T]):
    """What a report with pictures shows."""

    definitions: T  # how scores are made
    units: tuple[str, ...] = ()  # stories or episodes that were asked for; none for those that tell most
    methods: tuple[str, ...] = ()  # whose units are shown; none for the first ones
    megabytes: float = MEGABYTES  # how large all pictures together may be
    unranked: tuple[str, ...] = ()  # methods that are shown and not ranked
    least: float = LEAST_COVERAGE  # share of its units from which a method is ranked

    def check(self, units: Sequence[str], methods: Sequence[str]) -> None:
        """Refuse names of units and methods that are not in the evaluation."""
        for option, names, there in (
            ("--story", self.units, units), ("--method", self.methods, methods),
            ("--unranked", self.unranked, methods),
        ):  # fmt: skip
            unknown = [name for name in names if name not in there]
            if unknown:
                raise ConfigError(
                    option, what=f"{', '.join(unknown)} is not in the evaluation",
                    fix=f"use some of {', '.join(dict.fromkeys(there[:20]))}",
                )  # fmt: skip

    def shown(self, methods: Sequence[str]) -> tuple[str, ...]:
        """Return the methods whose units are shown, of these in order."""
        return self.methods or tuple(methods[:METHODS])


class Valued(NamedTuple, Generic[T]):
    """One thing with a value: what it is in words, and what makes its pictures."""

    value: float
    text: str
    thing: T


def examples_of(
    quantity: Quantity,
    meaning: str,
    valued: Sequence[Valued[T]],
    pictures: Callable[[T], Sequence[Frame | Snap]],
    unit: Unit = "number",
) -> Examples | None:
    """Return the card of a score; None where nothing has a value."""
    if not valued:
        return None
    ordered = sorted(valued, key=lambda entry: (round(entry.value, 9), digest(entry.text)))
    levels: dict[Level, int] = {"low": 0, "middle": len(ordered) // 2, "high": len(ordered) - 1}
    names: tuple[Level, ...] = tuple(levels) if len(ordered) > 2 else ENDMOST[: len(ordered)]
    return Examples(
        name=quantity.name, label=quantity.label, note=f"{meaning} {ENDS[quantity.higher]}", unit=unit,
        total=len(ordered),
        shown=tuple(
            Example(
                level=level, value=ordered[levels[level]].value, text=ordered[levels[level]].text,
                frames=tuple(pictures(ordered[levels[level]].thing)),
            )
            for level in names
        ),
    )  # fmt: skip
