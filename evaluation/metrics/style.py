"""Style similarity (CSD), cross and self.

Question: are the pictures of a story in one style (self), and in that of the references (cross)?
Formula: cosines of style embeddings. Self: the mean over all pairs of the story's pictures. Cross: per shot
    the mean over its characters of the cosine of shot and reference, then the mean over shots.
Input: unit style vectors of the shots' pictures and of the reference pictures.
Output: in [-1, 1]; higher is better.
Undefined when: fewer than two pictures (self); no reference or no picture (cross).
Source: ViStoryBench, supplement section J; its public code.
Departures from the source: the section does not say which references stand for a shot. Two definitions:
    ``first`` (default): the first reference of each expected character that has one, and the story's
    first reference where a shot has no character or none of them has one. ``code``: as the public code,
    which puts the story's first reference in the place of every character without one. The default
    compares a shot with nobody who is not in it, as long as somebody can be told. What ``code`` does
    otherwise than the code, and by how much: for a single picture self is undefined, and cross without
    any reference, where the code writes 0 (of n stories, each lowers the code's mean by a share of 1 /
    n); self takes the pictures of the script's shots, where the code takes every picture that it finds
    (none more where names fit the script); a name that a shot lists twice counts once.
Example: three pictures with cosines 0.5, 0.7 and 0.9: self 0.7.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from .metric import Choice, Choices, Metric, Term, Terms, of_pictures
from .story import Story
from .vectors import Floats, mean_of_pairs

Definition = Literal["first", "code"]
DEFINITION: Choice[Definition] = Choice("csd", ("first", "code"))
NEED = of_pictures("style", "csd-vit-l")


def style_self(pictures: Floats, shots: int | None = None) -> Terms:
    """Return how alike the styles of a story's pictures are.

    ``pictures``: unit vectors, shape (pictures, dimensions). ``shots``: how many the script has; None for as
    many as there are pictures.
    """
    total, pairs = mean_of_pairs(np.clip(pictures @ pictures.T, -1.0, 1.0))
    whole = len(pictures) if shots is None else shots
    counts = {"shots": whole, "without_image": whole - len(pictures), "pairs": pairs}
    return Terms([Term(total, count=pairs)] if pairs else [], counts, "fewer than two pictures")


def style_cross(
    shots: Sequence[tuple[Floats | None, Sequence[str]]],
    references: Mapping[str, Floats],
    definition: Definition = "first",
    why: Sequence[str] = (),
) -> Terms:
    """Return how alike the styles of a story's shots and references are.

    ``shots``: per shot its unit vector, shape (dimensions,), None without a picture; and the characters on
    stage. ``references``: character -> unit vectors of its references, shape (references, dimensions), the
    first one the primary; in the order of the script.
    """
    counts = {"shots": len(shots), "without_image": 0, "by_the_story": 0, "no_reference": 0}
    known = {key: rows for key, rows in references.items() if len(rows)}
    terms = []
    for index, (picture, expected) in enumerate(shots):
        if picture is None:
            counts["without_image"] += 1
            terms.append(Term(why[index] if why else "no picture", index))
            continue
        value, own = shot_style(picture, expected, known, definition)
        counts["no_reference"] += len(set(expected) - known.keys())
        counts["by_the_story"] += value is not None and not own
        terms.append(Term("undefined" if value is None else value, index))
    return Terms(terms, counts, "no reference picture" if not known else "no picture")


def shot_style(
    picture: Floats,
    expected: Sequence[str],
    references: Mapping[str, Floats],
    definition: Definition = "first",
) -> tuple[float | None, bool]:
    """Return how alike the styles of one shot and its references are, and whether they are its characters'.

    None where no character of the story has a reference; see :func:`style_cross` for the arguments.
    """
    known = {key: rows for key, rows in references.items() if len(rows)}
    cast, first = list(dict.fromkeys(expected)), list(known)[:1]
    own = [key for key in cast if key in known]
    taken = own or first
    if definition == "code" and own:
        taken = [key if key in known else first[0] for key in cast]
    cosines = [float(known[key][0] @ picture) for key in taken]
    return (sum(cosines) / len(cosines) if cosines else None), bool(own)


def _cross(story: Story, chosen: Choices) -> Terms | None:
    rows = story.rows("style", units=True)
    if rows is None:
        return None
    shots = [(row, shot.expected) for row, shot in zip(rows, story.shots, strict=True)]
    return style_cross(shots, story.references(), chosen.of(DEFINITION), story.without_row())


def _self(story: Story, _chosen: Choices) -> Terms | None:
    rows = story.rows("style", units=True)
    if rows is None:
        return None
    known = [row for row in rows if row is not None]
    return style_self(np.array(known) if known else np.empty((0, 1)), len(rows))


CROSS = Metric(
    name="csd_cross", label="CSD cross", group="Style similarity", direction="higher", range=(-1.0, 1.0),
    top=1.0, column=3, lead=2, needs=(NEED,), terms=_cross, per_shot=True, choices=(DEFINITION,),
    notes=(("by_the_story", "shots", "shots by the story's first reference"),),
    meaning="How alike the styles of pictures and reference images are: mean cosine over shots. -1 to 1.",
)  # fmt: skip
SELF = Metric(
    name="csd_self", label="CSD self", group="Style similarity", direction="higher", range=(-1.0, 1.0),
    top=1.0, column=2, lead=6, needs=(NEED,), terms=_self,
    meaning="How alike the styles of a story's pictures are: mean cosine over all pairs. -1 to 1.",
)  # fmt: skip
