"""Copy-paste rate.

Question: is a generated character copied from the one reference picture rather than drawn anew?
Formula: softmax over a character's references of cosine / 0.01, the share of the first reference (Eq. S1);
    the mean over matched crops for a character, over characters for a story.
Input: unit vectors of a character's matched crops and of its references, the first one the primary.
Output: in [0, 1]; near 1 is copying; lower is better. With k alike references, 1 / k is "no preference".
Undefined when: ``paper``: a character has a single reference; no crop was matched.
Source: ViStoryBench, supplement section L, Eq. S1; its public code.
Departures from the source: two definitions. ``paper`` (default) is Eq. S1; a character with one reference
    has nothing to compare with and is left out and counted. ``code`` compares the first reference with its
    own mirror image alone, whatever other references there are, so 0.5 is "no preference"; a mirror image
    without a vector is the reference once more (0.5); a story of which the code makes no record has no value
    (:func:`.cids.no_record`). Where the code writes 0 for a story without any matched crop, there is no
    value: of n stories, each such one lowers the code's mean by a share of 1 / n.
Example: cosines 0.90 to the first and 0.88 to the second reference: 1 / (1 + exp(-2)) = 0.881.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from .cids import Character, Settings, matched, of_record
from .metric import CROPS, DETECTOR, Choice, Choices, Metric, Term, Terms
from .story import Story
from .vectors import Floats, Vectors, similarities

TEMPERATURE = 0.01
Definition = Literal["paper", "code"]
DEFINITION: Choice[Definition] = Choice("copy-paste", ("paper", "code"))


def copy_rates(cosines: Floats) -> Floats:
    """Return the share of the first reference for each crop.

    ``cosines``: shape (crops, references), at least two references.

    Returned: shape (crops,), in [0, 1].
    """
    scaled = (cosines - cosines.max(axis=1, keepdims=True)) / TEMPERATURE
    weights = np.exp(scaled)
    shares: Floats = weights[:, 0] / weights.sum(axis=1)
    return shares


def copy_paste(
    characters: Sequence[Character],
    crops: Mapping[str, Vectors],
    mirrors: Mapping[str, Vectors] | None = None,
    definition: Definition = "paper",
) -> Terms:
    """Return the rates of one story's characters.

    ``crops``: character -> vectors of its matched crops, as :func:`.cids.cids` returns them. ``mirrors``:
    character -> vector of the mirror image of its first reference; only ``code`` needs it.
    """
    apart = Settings(definition).apart
    terms, counts = [], {"characters": len(characters), "counted": 0, "one_reference": 0, "no_crop": 0}
    for character in characters:
        drawn = crops.get(character.key, Vectors({}))
        rivals = _rivals(character, mirrors, definition)
        if rivals is None:
            counts["one_reference"] += 1
            continue
        cosines = similarities(drawn, rivals, character.encoders, apart)
        known = cosines[~np.isnan(cosines).any(axis=1)]
        if not len(known):
            counts["no_crop"] += 1
            continue
        counts["counted"] += 1
        terms.append(Term(float(copy_rates(known).mean()), character=character.key))
    return Terms(terms, counts, "no character can be told")


def _rivals(
    character: Character, mirrors: Mapping[str, Vectors] | None, definition: Definition
) -> Vectors | None:
    """Return the vectors that share the probability, the primary first; None where there is only one."""
    there = np.flatnonzero(character.references.known(character.encoders))
    if definition == "paper":
        return character.references.take(there.tolist()) if len(there) > 1 else None
    mirror = None if mirrors is None else mirrors.get(character.key)
    if not len(there) or mirror is None or not len(mirror):
        return None
    first = character.references.take([int(there[0])])
    known = bool(mirror.known(character.encoders)[0])
    return Vectors.joined([first, mirror.take([0]) if known else first])


def _terms(story: Story, chosen: Choices) -> Terms | None:
    match, definition = matched(story, chosen), chosen.of(DEFINITION)
    if match is None:
        return None
    terms = copy_paste(match.characters, match.cids.crops, match.mirrors, definition)
    return of_record(terms, Settings(definition), match.cids.no_record)


METRIC = Metric(
    name="copy_paste_rate", version=2,
    label="Copy-paste", group="Copying", direction="lower", range=(0.0, 1.0), top=1.0,
    needs=(DETECTOR, *CROPS), terms=_terms, per_character=True, choices=(DEFINITION,),
    notes=(
        ("one_reference", "characters", "characters have one reference"),
        ("no_crop", "characters", "characters without a crop"),
    ),
    meaning="Whether characters are copied from their first reference: its share among all references, "
    "softmax of cosines / 0.01. 0 to 1; a character with one reference is left out.",
)  # fmt: skip
