"""What the scores of shot images are called, how they are read, and which end is the good one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..metrics import aesthetic, cids, clip_score, copy_paste, inception, occm, style
from ..metrics.alignment import DIMENSIONS, SPECS
from ..metrics.spec import Spec
from .ratings import AVERAGE


@dataclass(frozen=True)
class Named:
    """How a score is shown.

    Attributes:
        label: name for readers.
        group: what it is about, as the paper groups it.
        digits: behind the point.
        higher: whether the higher value is the better one.
        top: value that counts as full where a chart needs one; None where there is no upper end.
        meaning: its definition in a sentence.
        variant: name of the setting that chooses between its definitions; None where there is one.
    """

    label: str
    group: str
    digits: Literal[2, 3]
    higher: bool
    top: float | None
    meaning: str
    variant: str | None = None


def _named(spec: Spec, label: str, group: str, digits: Literal[2, 3], **more: object) -> Named:
    return Named(label, group, digits, spec.direction == "higher", **more)  # type: ignore[arg-type]


SCORES: Mapping[str, Named] = {
    "cids_self": _named(
        cids.SELF, "CIDS self", "Character similarity", 3, top=1.0, variant="cids",
        meaning="How much each generated character looks like itself from shot to shot: mean cosine over the "
        "pairs of its matched crops, then over characters. -1 to 1.",
    ),
    "cids_cross": _named(
        cids.CROSS, "CIDS cross", "Character similarity", 3, top=1.0, variant="cids",
        meaning="How much generated characters look like their reference images: mean cosine of matched crop "
        "and references. -1 to 1.",
    ),
    "csd_self": _named(
        style.SELF, "CSD self", "Style similarity", 3, top=1.0,
        meaning="How alike the styles of a story's pictures are: mean cosine over all pairs. -1 to 1.",
    ),
    "csd_cross": _named(
        style.CROSS, "CSD cross", "Style similarity", 3, top=1.0, variant="csd",
        meaning="How alike the styles of pictures and reference images are: mean cosine over shots. -1 to 1.",
    ),
    "scene": _named(
        SPECS["scene"], "Scene", "Prompt alignment", 2, top=4.0, variant="alignment",
        meaning="A judge's rating of the place against the setting description, 0 to 4.",
    ),
    "shot": _named(
        SPECS["shot"], "Shot", "Prompt alignment", 2, top=4.0, variant="alignment",
        meaning="A judge's rating of the framing against the shot perspective design, 0 to 4.",
    ),
    "interaction": _named(
        SPECS["interaction"], "Interaction", "Prompt alignment", 2, top=4.0, variant="alignment",
        meaning="A judge's rating of what the characters do with each other (CI), 0 to 4.",
    ),
    "action": _named(
        SPECS["action"], "Action", "Prompt alignment", 2, top=4.0, variant="alignment",
        meaning="A judge's rating of what single characters do, by their crops (IA), 0 to 4.",
    ),
    AVERAGE: _named(
        SPECS["scene"], "Alignment", "Prompt alignment", 2, top=4.0, variant="alignment",
        meaning="Mean of scene, shot, interaction and action; undefined where one of them is. 0 to 4.",
    ),
    "occm": _named(
        occm.SPEC, "OCCM", "Character count", 2, top=100.0, variant="occm",
        meaning="Whether as many characters are detected as the script puts on stage: 100 exp(-|D - E| / "
        "(eps + E)), mean over shots. Above 0, to 100.",
    ),
    "aesthetic": _named(
        aesthetic.SPEC, "Aesthetics", "Generation quality", 2, top=10.0,
        meaning="Mean value of the aesthetic predictor over pictures, about 1 to 10.",
    ),
    "inception": _named(
        inception.SPEC, "Inception", "Diversity", 2, top=None, variant="splits",
        meaning="Inception score of all pictures together, 1 or more; it grows with their number, so that "
        "only sets of equal size can be compared. It has no interval over stories.",
    ),
    "copy_paste_rate": _named(
        copy_paste.SPEC, "Copy-paste", "Copying", 3, top=1.0, variant="copy_paste",
        meaning="Whether characters are copied from their first reference: its share among all references, "
        "softmax of cosines / 0.01. 0 to 1; a character with one reference is left out.",
    ),
    "clip_score": _named(
        clip_score.SPEC, "CLIP score", "Prompt alignment", 3, top=None, variant="clip_score",
        meaning="Weak baseline of alignment: how close pictures are to a part of their texts for CLIP, mean "
        "over shots; hessel is 2.5 max(cosine, 0), cosine the cosine itself.",
    ),
}  # fmt: skip
"""Score -> how it is shown: in the order of Table S6, what the table does not have behind it."""

POLAR = tuple(name for name in SCORES if name not in ("copy_paste_rate", "clip_score"))
"""The scores of the polar charts (Table S6): those of which more is better."""
LEAD = (AVERAGE, "cids_cross", "csd_cross", "occm", "aesthetic", "cids_self", "csd_self", *DIMENSIONS)
"""By which score stories are chosen and rows are sorted: the first of these that there is."""


def base_of(name: str) -> str:
    """Return a score's name without the judge that stands behind it where there are several."""
    return name.partition(" (")[0]


def judge_of(name: str) -> str:
    """Return the judge in a score's name; empty where there is one judge or none."""
    return name.partition(" (")[2].removesuffix(")")


def known_of(name: str) -> Named:
    """Return how a score is shown."""
    return SCORES[base_of(name)]


def label_of(name: str) -> str:
    """Return a score's name for readers, with its judge where there are several."""
    judge = judge_of(name)
    return known_of(name).label + (f" · {judge}" if judge else "")


def in_order(names: Iterable[str]) -> list[str]:
    """Return scores in the order of :data:`SCORES`, those of several judges side by side."""
    there = list(names)
    return [name for base in SCORES for name in there if base_of(name) == base]


def lead_of(names: Iterable[str]) -> str | None:
    """Return the score by which stories are chosen and rows are sorted; None where there is none."""
    there = list(names)
    return next((name for base in LEAD for name in there if base_of(name) == base), None)
