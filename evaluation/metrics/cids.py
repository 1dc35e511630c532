"""Character Identification Similarity (CIDS), cross and self.

Question: do the generated characters look like their references (cross), and like themselves from shot to
    shot (self)?
Formula: each shot's crops are assigned to its expected characters (:mod:`.match_characters`). Cross: the mean
    cosine of matched crop and reference, over a character's references. Self: the mean cosine over all pairs
    of a character's matched crops. A story's value is a mean as the definition has it.
Input: unit vectors of reference crops and of the crops of each shot, by the encoders of the character's kind.
Output: in [-1, 1]; higher is better.
Undefined when: nothing was matched (cross); no character was matched twice (self).
Source: ViStoryBench, supplement section I and its public code.
Departures from the source: two definitions. ``paper`` (default): cross is the mean over matched pairs
    (section I.1), self the mean over pairs of crops of a character, then over the characters that have a
    pair; failed detections are left out and counted. ``code``: the mean over all characters of the script, 0
    for one that was never matched, self 1 for one that was matched once. The default is the one that turns no
    failure into a score. A minimum similarity can be set; neither source has one. Cosines of several encoders
    of faces are averaged, as the public code does; the weights that its settings give and its default rule
    does not read can be chosen. Values are not rounded, where the code rounds to four digits. Crops have as
    many dimensions as the encoder gives (768 of CLIP), where the paper says 512 of all.
Example: one character, one reference (1, 0); crops (1, 0) and (0.6, 0.8) in two shots: cross (1 + 0.6) / 2 =
    0.8, self 0.6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...schemas.score import Score
from .match_characters import match_characters
from .spec import Spec
from .vectors import Floats, Vectors, mean_of_pairs, similarities

CROSS = Spec(
    "cids_cross", 1, "story", "higher", (-1.0, 1.0), "mean of stories", ("detections", "embeddings:character")
)
SELF = Spec(
    "cids_self", 1, "story", "higher", (-1.0, 1.0), "mean of stories", ("detections", "embeddings:character")
)
Definition = Literal["paper", "code"]


@dataclass(frozen=True)
class Character:
    """A character of a script, as it is recognised.

    Attributes:
        key: its name in the script.
        encoders: which encoders tell it: those of faces for a realistic human, else those of pictures.
        references: vectors of its reference crops.
    """

    key: str
    encoders: tuple[str, ...]
    references: Vectors


@dataclass(frozen=True)
class ShotCrops:
    """What was found in the picture of a shot.

    Attributes:
        number: of the shot, from 1.
        expected: keys of the characters on stage, each once.
        crops: vectors of the detected characters; None where there is no image.
    """

    number: int
    expected: tuple[str, ...]
    crops: Vectors | None


@dataclass(frozen=True)
class Match:
    """One expected character in one shot.

    Attributes:
        shot: number of the shot.
        character: its key.
        crop: place of its crop among the shot's; None where it has none.
        cross: mean similarity to its references.
        missed: why there is none: ``no image``, ``no reference``, ``nothing detected``, ``not matched``.
    """

    shot: int
    character: str
    crop: int | None = None
    cross: float | None = None
    missed: str | None = None


@dataclass(frozen=True)
class Settings:
    """How similarities become values.

    Attributes:
        definition: ``paper`` or ``code``.
        least: pairs of lower similarity are no match; None takes every pair.
        weights: encoder -> weight in the mean of several encoders' cosines, 1 where it has none; all alike
            where none are given.
    """

    definition: Definition = "paper"
    least: float | None = None
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Cids:
    """The values of one story.

    Attributes:
        cross: similarity to the references.
        self_: similarity of the generated characters among themselves.
        matches: one per expected character and shot, in order.
        crops: character -> vectors of its matched crops.
    """

    cross: Score
    self_: Score
    matches: tuple[Match, ...]
    crops: Mapping[str, Vectors] = field(repr=False)


def cids(
    characters: Sequence[Character], shots: Sequence[ShotCrops], settings: Settings | None = None
) -> Cids:
    """Return both similarities of one story.

    Args:
        characters: all characters of the script.
        shots: its shots; names that are no character's are left to the validators and not expected here.
        settings: the definition.
    """
    settings = settings or Settings()
    by_key = {character.key: character for character in characters}
    matches: list[Match] = []
    kept: dict[str, list[Vectors]] = {character.key: [] for character in characters}
    for shot in shots:
        for match in _match_shot(shot, by_key, settings):
            matches.append(match)
            if match.crop is not None and shot.crops is not None:
                kept[match.character].append(shot.crops.take([match.crop]))
    crops = {key: Vectors.joined(parts) for key, parts in kept.items()}
    cross, self_ = similarity_of(characters, matches, crops, settings)
    return Cids(cross, self_, tuple(matches), crops)


def similarity_of(
    characters: Sequence[Character],
    matches: Sequence[Match],
    crops: Mapping[str, Vectors],
    settings: Settings | None = None,
) -> tuple[Score, Score]:
    """Return cross and self over some characters of a story, all of whose characters were matched.

    Args:
        characters: those that count.
        matches: of all characters, as :func:`cids` returns them.
        crops: character -> vectors of its matched crops, likewise.
        settings: the definition.
    """
    settings = settings or Settings()
    by_key = {character.key: character for character in characters}
    own = [match for match in matches if match.character in by_key]
    counts = {"characters": len(characters), "expected": len(own)}
    counts["matched"] = sum(match.crop is not None for match in own)
    for reason in ("no image", "no reference", "nothing detected", "not matched"):
        counts[reason.replace(" ", "_")] = sum(match.missed == reason for match in own)
    return _cross(by_key, own, counts, settings.definition), _self(by_key, crops, counts, settings)


def _match_shot(shot: ShotCrops, by_key: Mapping[str, Character], settings: Settings) -> list[Match]:
    expected = [by_key[key] for key in dict.fromkeys(shot.expected) if key in by_key]
    if shot.crops is None:
        return [Match(shot.number, one.key, missed="no image") for one in expected]
    tables = [similarities(one.references, shot.crops, one.encoders, settings.weights) for one in expected]
    found = match_characters(tables, settings.least)
    made = []
    for one, table, crop in zip(expected, tables, found, strict=True):
        if crop is not None:
            made.append(Match(shot.number, one.key, crop, float(np.nanmean(table[:, crop]))))
        elif not one.references.known(one.encoders).any():
            made.append(Match(shot.number, one.key, missed="no reference"))
        else:
            why = "not matched" if len(shot.crops) else "nothing detected"
            made.append(Match(shot.number, one.key, missed=why))
    return made


def _cross(
    by_key: Mapping[str, Character], matches: Sequence[Match], counts: dict[str, int], definition: Definition
) -> Score:
    values = [match.cross for match in matches if match.cross is not None]
    if definition == "paper":
        return Score.ratio(sum(values), len(values), "no character was matched", **counts)
    per_character = [
        [match.cross for match in matches if match.character == key and match.cross is not None]
        for key in by_key
    ]
    total = sum(sum(one) / len(one) for one in per_character if one)
    return Score.ratio(total, len(by_key), "the script has no character", **counts)


def _self(
    by_key: Mapping[str, Character], crops: Mapping[str, Vectors], counts: dict[str, int], settings: Settings
) -> Score:
    total, counted = 0.0, 0
    for key, character in by_key.items():
        table: Floats = similarities(crops[key], crops[key], character.encoders, settings.weights)
        summed, pairs = mean_of_pairs(table)
        if pairs:
            total, counted = total + summed / pairs, counted + 1
        elif settings.definition == "code":
            total += 1.0 if len(crops[key]) == 1 else 0.0
    whole = counts | {"matched_twice": counted}
    if settings.definition == "code":
        return Score.ratio(total, len(by_key), "the script has no character", **whole)
    return Score.ratio(total, counted, "no character was matched twice", **whole)
