"""What a metric is, as one value: all that names, needs or shows metrics reads it here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Generic, Literal, TypeVar, cast

from ...errors import ConfigError
from ...schemas.plugins import plugins
from ...schemas.values import Score
from .story import Story


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What a number is."""

    name: str  # of the number in files
    version: int = 1  # raised when its values change
    label: str  # name for readers
    # which end is better; ``none`` for a diagnostic, which is shown and not ranked
    direction: Literal["higher", "lower", "none"]
    range: tuple[float, float]  # its lowest and highest value; ``inf`` where there is none

    @property
    def higher(self) -> bool | None:
        """Whether the higher value is the better one; None of a diagnostic."""
        return None if self.direction == "none" else self.direction == "higher"

    @property
    def better(self) -> Literal["low", "high"] | None:
        """Which end is the good one, as tables say it."""
        return None if self.higher is None else "high" if self.higher else "low"


T = TypeVar("T", bound=str)
T_co = TypeVar("T_co", bound=str, covariant=True)


@dataclass(frozen=True)
class Choice(Generic[T_co]):
    """A definition that is chosen by name, such as ``cids=code``."""

    name: str  # as it is written
    # its values, the default first; the docstring of the metric's file says what they are
    options: tuple[T_co, ...]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Which definitions count.

    Attributes:
        chosen: name of a :class:`Choice` -> its value, where it is not the default.
    """

    chosen: Mapping[str, str] = field(default_factory=dict)

    def of(self, choice: Choice[T]) -> T:
        return cast("T", self.chosen.get(choice.name, choice.options[0]))


@dataclass(frozen=True)
class Need:
    """A model that has to look before a metric can be computed."""

    stage: str  # the stage in which it looks
    setting: str  # of that stage that names it; one that the stage does not have stands under its ``more``
    model: str | tuple[str, ...]  # the name or names where the settings give none
    part: str  # what an archive calls what it found

    @property
    def key(self) -> tuple[str, str]:
        """Stage and setting."""
        return self.stage, self.setting


DETECTOR = Need("detect_characters", "model", "grounding-dino-swin-t", "detector")
CROPS = (
    Need("encode_crops", "pictures", ("clip-vit-l-14",), "characters"),
    Need("encode_crops", "faces", ("arcface-r100", "adaface-ir101", "facenet-vggface2"), "characters"),
)


def of_pictures(part: str, model: str) -> Need:
    """Return the need of an encoder or predictor of whole pictures, kept in an archive as ``part``."""
    return Need("encode_pictures", part, model, part)


@dataclass(frozen=True)
class Term:
    """One addend of a story's score."""

    value: float | str  # the sum over what it stands for, or why there is none
    shot: int | None = None  # place among the story's shots, from 0; None where it is of no single shot
    character: str | None = None  # key of the character that it is about, if any
    count: int = 1  # how many things the value is the sum of


@dataclass(frozen=True)
class Terms:
    """What a story's score is made of."""

    terms: Sequence[Term]  # the addends
    counts: Mapping[str, int]  # coverage
    why: str  # why the story has no value where no term has one
    # where given, the score is the mean over these characters of each one's mean; 0 for one without
    of: tuple[str, ...] | None = None

    @property
    def score(self) -> Score:
        """The score of the story: sum of values over sum of counts, and coverage."""
        known = [
            (term.character, term.value, term.count) for term in self.terms if not isinstance(term.value, str)
        ]
        total, counted = sum(value for _, value, _ in known), sum(count for _, _, count in known)
        if self.of is not None:
            own = [[value for who, value, _ in known if who == key] for key in self.of]
            total, counted = sum(sum(some) / len(some) for some in own if some), len(self.of)
        return Score.ratio(float(total), counted, self.why, **self.counts)

    def of_shot(self, index: int) -> float | str | None:
        """Return the mean over the terms of a shot, or why it has no value; None where it has no term."""
        terms = [term for term in self.terms if term.shot == index]
        known = [term.value for term in terms if not isinstance(term.value, str)]
        if known:
            return sum(known) / len(known)
        return str(terms[0].value) if terms else None


Compute = Callable[[Story, Choices], Terms | None]
"""Story and definitions -> terms; None where nobody looked."""
Whole = Callable[[Sequence[Story], Choices], Score | None]
"""Stories and definitions -> score; None where nobody looked."""


@dataclass(frozen=True, kw_only=True)
class Metric(Quantity):
    """What a metric is.

    One of ``terms``, ``whole`` and ``judged`` says how it is computed. What is computed from ``terms`` is the
    mean over stories.

    Its version stands in the protocol of an evaluation.
    """

    group: str  # what it is about, as the paper groups it
    meaning: str  # its definition in a sentence or two
    needs: tuple[Need, ...] = ()  # the models that have to look
    terms: Compute | None = None  # of one story
    whole: Whole | None = None  # of a whole set
    judged: bool = False  # whether a judge rates it
    per_shot: bool = False  # whether single shots have a value
    per_character: bool = False  # whether it can be taken over some characters of a story
    choices: tuple[Choice[str], ...] = ()  # the definitions that it has
    digits: Literal[2, 3] = 3  # behind the point
    top: float | None = None  # value that counts as full where a chart needs one
    # its place in Table S6 of ViStoryBench, and in its polar charts; None where it is not there
    column: int | None = None
    lead: int | None = None  # by the lowest of these, stories are chosen and rows sorted; None: never
    # counts that are told with a score: which, what it is a part of, and the words
    notes: tuple[tuple[str, str, str], ...] = ()
    few: int = 0  # below so many pictures its value means little

    @property
    def ranked(self) -> bool:
        """Whether one end is better, so that methods can be ranked by it."""
        return self.direction != "none"


# -- Which metrics there are: an explicit tuple, and an entry-point group for users' own

METRICS = (
    ("cids", ".cids:CROSS"),
    ("cids", ".cids:SELF"),
    ("copy-paste", ".copy_paste:METRIC"),
    ("occm", ".occm:METRIC"),
    ("csd", ".style:CROSS"),
    ("csd", ".style:SELF"),
    ("aesthetic", ".aesthetic:METRIC"),
    ("inception", ".inception:METRIC"),
    ("clip-score", ".clip_score:METRIC"),
    ("shot-similarity", ".shot_similarity:METRIC"),
    ("alignment", ".alignment:SCENE"),
    ("alignment", ".alignment:SHOT"),
    ("alignment", ".alignment:INTERACTION"),
    ("alignment", ".alignment:ACTION"),
    ("alignment", ".alignment:AVERAGE"),
)
"""By which name a metric is chosen, and where it is; scores are listed in this order. Each passes
``tests/contract/test_metrics.py``."""
NAMES = tuple(dict.fromkeys(name for name, _ in METRICS))
"""What of ours can be chosen; some are several scores."""
GROUP = "fabula.metrics"
"""Entry points of this group add metrics: the name is the one by which it is chosen, the object a
:class:`.metric.Metric`."""


@cache
def registered() -> "tuple[tuple[str, Metric], ...]":
    """Return all metrics, our own first, each behind the name by which it is chosen."""
    own = [(name, cast("Metric", _load(address))) for name, address in METRICS]
    others = [(entry.name, entry.load()) for entry in plugins(GROUP)]
    known = {metric.name for _, metric in own}
    for name, metric in others:
        if not isinstance(metric, Metric) or metric.name in known or name in NAMES:
            raise ConfigError(
                f"entry point {name} of {GROUP}", what="it is no Metric, or there is one of that name",
                fix="name it, and its score, otherwise; docs/images.md shows how",
            )  # fmt: skip
        known.add(metric.name)
    return (*own, *others)


def _load(address: str) -> Any:  # noqa: ANN401 - checked by the contract test
    module, _, attribute = address.partition(":")
    return getattr(import_module(module, __package__), attribute)


def metrics(chosen: Iterable[str] | None = None) -> "tuple[Metric, ...]":
    wanted = None if chosen is None else set(chosen)
    return tuple(metric for name, metric in registered() if wanted is None or name in wanted)


def names() -> tuple[str, ...]:
    """Return every name by which metrics can be chosen."""
    return tuple(dict.fromkeys(name for name, _ in registered()))


def choices() -> "tuple[Choice[str], ...]":
    """Return every definition that can be chosen."""
    return tuple(dict.fromkeys(choice for metric in metrics() for choice in metric.choices))


def needs() -> "tuple[Need, ...]":
    """Return every model that some metric needs."""
    return tuple(dict.fromkeys(need for metric in metrics() for need in metric.needs))


def base_of(name: str) -> str:
    """Return a score's name without the judge that stands behind it where there are several."""
    return name.partition(" (")[0]


def judge_of(name: str) -> str:
    """Return the judge in a score's name; empty where there is one judge or none."""
    return name.partition(" (")[2].removesuffix(")")


def metric_of(name: str) -> "Metric":
    base = base_of(name)
    return next(metric for metric in metrics() if metric.name == base)


def label_of(name: str) -> str:
    """Return a score's name for readers, with its judge where there are several."""
    judge = judge_of(name)
    return metric_of(name).label + (f" · {judge}" if judge else "")


def in_order(scores: Iterable[str]) -> list[str]:
    """Return scores as Table S6 orders them, the others behind, those of several judges side by side."""
    there = list(scores)
    ordered = sorted(metrics(), key=lambda metric: (metric.column is None, metric.column or 0))
    return [name for metric in ordered for name in there if base_of(name) == metric.name]


def lead_of(scores: Iterable[str]) -> str | None:
    """Return the score by which stories are chosen and rows are sorted; None where there is none."""
    leading = [(lead, name) for name in scores if (lead := metric_of(name).lead) is not None]
    return min(leading, key=lambda entry: entry[0])[1] if leading else None
