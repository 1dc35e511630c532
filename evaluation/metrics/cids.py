"""Character Identification Similarity (CIDS), cross and self, by an optimal assignment of crops.

Question: do the generated characters look like their references (cross), and like themselves from shot to
    shot (self)?
Formula: each shot's crops are assigned to its expected characters (:func:`match_characters`). Cross: the mean
    cosine of matched crop and reference, over a character's references. Self: the mean cosine over all pairs
    of a character's matched crops. A story's value is a mean as the definition has it.
Input: unit vectors of reference crops and of the crops of each shot, by the encoders of the character's kind.
Output: in [-1, 1]; higher is better.
Undefined when: nothing was matched (cross); no character was matched twice (self).
Source: ViStoryBench, supplement section I and its public code.
Departures from the source: two definitions. ``paper`` (default): cross is the mean over matched pairs
    (section I.1), self the mean over pairs of crops of a character, then over the characters that have a
    pair; failed detections are left out and counted. ``code``: the mean over all characters of the script, 0
    for one that was never matched, self 1 for one that was matched once; 0 for two faces that no encoder has
    in common; no value for a story without any picture or with a character without any reference vector,
    of which the code makes no record. The default is the one that turns no failure into a score. What
    ``code`` does otherwise than the code, and by how much: values are not rounded to four digits (below
    0.0001); a name that a shot lists twice is one character (the code matches it twice: one crop more of that
    shot); corners of boxes are cut to whole pixels, not centres and sizes (a pixel a side); 64 boxes of a
    picture count at most (none lost of a picture with fewer); a script without characters has no value (the
    code writes 0 for the story). Cosines of several
    encoders of faces are averaged, as the public code does; the weights that its settings give, its default
    rule does not read. Where no crop of a character's references has a vector, all
    of them count whole, as in the code. Crops have as many dimensions as the encoder gives (768 of CLIP),
    where the paper says 512 of all.
Example: one character, one reference (1, 0); crops (1, 0) and (0.6, 0.8) in two shots: cross (1 + 0.6) / 2 =
    0.8, self 0.6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ...schemas.canonical import Json
from ...schemas.values import Score
from .metric import CROPS, DETECTOR, Choice, Choices, Metric, Term, Terms
from .story import Story
from .vectors import Floats, Vectors, mean_of_pairs, similarities, vectors_of

_IMPOSSIBLE = (
    -1e6
)  # far below any sum of cosines, so that such a pair is only taken when nothing else is left


def match_characters(tables: Sequence[Floats]) -> tuple[int | None, ...]:
    """Assign each expected character at most one crop, each crop to at most one character.

    As many pairs are matched as can be, and of those the sum of similarities is as large as it can be
    (Hungarian method); the similarity of a character to a crop is the highest over the character's
    references. Pairs that are no match take no part in it.

    ``tables``: per character the similarities of its references and the crops, shape (references, crops), the
    same number of crops in all; ``nan`` where there is none.

    Returned: per character the place of its crop, or None.
    """
    if not tables or not tables[0].shape[1]:
        return (None,) * len(tables)
    from scipy.optimize import linear_sum_assignment

    best = np.full((len(tables), tables[0].shape[1]), np.nan)
    for row, table in enumerate(tables):
        if len(table):
            known = ~np.isnan(table)
            highest = np.where(known, table, -np.inf).max(axis=0)
            best[row] = np.where(known.any(axis=0), highest, np.nan)
    crops: list[int | None] = [None] * len(tables)
    rows, columns = linear_sum_assignment(np.where(np.isnan(best), _IMPOSSIBLE, best), maximize=True)
    for row, column in zip(rows, columns, strict=True):
        value = best[row, column]
        if not np.isnan(value):
            crops[row] = int(column)
    return tuple(crops)


Definition = Literal["paper", "code"]
DEFINITION: Choice[Definition] = Choice("cids", ("paper", "code"))


@dataclass(frozen=True)
class Character:
    """A character of a script, as it is recognised."""

    key: str  # its name in the script
    # which encoders tell it: those of faces for a realistic human, else those of pictures
    encoders: tuple[str, ...]
    references: Vectors  # vectors of its reference crops


@dataclass(frozen=True)
class ShotCrops:
    """What was found in the picture of a shot."""

    number: int  # of the shot, from 1
    expected: tuple[str, ...]  # keys of the characters on stage, each once
    crops: Vectors | None  # vectors of the detected characters; None where there is no image


@dataclass(frozen=True)
class Match:
    """One expected character in one shot."""

    shot: int  # number of the shot
    character: str  # its key
    crop: int | None = None  # place of its crop among the shot's; None where it has none
    cross: float | None = None  # mean similarity to its references
    # why there is none: ``no image``, ``no reference``, ``nothing detected``, ``not matched``
    missed: str | None = None


@dataclass(frozen=True)
class Settings:
    """How similarities become values."""

    definition: Definition = "paper"  # ``paper`` or ``code``

    @property
    def apart(self) -> float:
        """Similarity of two pictures that are both known, but to no encoder in common."""
        return 0.0 if self.definition == "code" else float("nan")


@dataclass(frozen=True)
class Cids:
    """The values of one story."""

    cross: Score  # similarity to the references
    self_: Score  # similarity of the generated characters among themselves
    matches: tuple[Match, ...]  # one per expected character and shot, in order
    crops: Mapping[str, Vectors] = field(repr=False)  # character -> vectors of its matched crops
    no_record: str | None = None  # why the public code makes no record of the story; None where it makes one


def cids(
    characters: Sequence[Character], shots: Sequence[ShotCrops], settings: Settings | None = None
) -> Cids:
    """Return both similarities of one story."""
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
    why = no_record(characters, shots)
    cross, self_ = (
        of_record(cross_terms(characters, matches, settings), settings, why),
        of_record(self_terms(characters, matches, crops, settings), settings, why),
    )
    return Cids(cross.score, self_.score, tuple(matches), crops, why)


def no_record(characters: Sequence[Character], shots: Sequence[ShotCrops]) -> str | None:
    """Return why the public code makes no record of a story; None where it makes one."""
    if all(shot.crops is None for shot in shots):
        return "the story has no picture"
    lost = [role.key for role in characters if not role.references.known(role.encoders).any()]
    return f"no reference of {', '.join(lost)} has a vector" if lost else None


def of_record(terms: Terms, settings: Settings, why: str | None) -> Terms:
    """Return the terms of a story, or none where ``code`` counts and the code makes no record of it."""
    if settings.definition != "code" or why is None:
        return terms
    return Terms([term for term in terms.terms if isinstance(term.value, str)], terms.counts, why)


@dataclass(frozen=True)
class Matched:
    """Who was matched in a story, for the metrics of single characters."""

    characters: tuple[Character, ...]  # those that count, of all who were matched together
    cids: Cids  # who was matched, among all
    settings: Settings  # how
    mirrors: Mapping[str, Vectors]  # character -> vector of the mirror image of its first reference


def matched(story: Story, chosen: Choices) -> Matched | None:
    """Return who was matched in a story; None where nobody looked for characters."""
    crops = story.line.crops
    if crops is None:
        return None
    key = ("cids", chosen.of(DEFINITION))
    if key not in story.kept:
        settings = Settings(chosen.of(DEFINITION))
        characters = characters_of(crops)
        result = cids(characters, shots_of(story.line.shots_json(), crops), settings)
        mirrors = {name: vectors_of(rows) for name, rows in crops["mirrors"].items()}
        story.kept[key] = Matched(characters, result, settings, mirrors)
    every: Matched = story.kept[key]
    among = story.among
    return (
        every
        if among is None
        else replace(
            every, characters=tuple(character for character in every.characters if character.key in among)
        )
    )


def characters_of(crops: Json) -> tuple[Character, ...]:
    """Return the characters of a story with the vectors of their references, in the order of the script."""
    return tuple(
        Character(key, tuple(encoders), vectors_of(crops["references"].get(key, {})))
        for key, encoders in crops["encoders"].items()
    )


def shots_of(shots: Json, crops: Json) -> tuple[ShotCrops, ...]:
    """Return the shots of a story with the vectors of their crops."""
    made = []
    for shot in shots:
        there = crops["shots"].get(str(shot["number"]))
        vectors = None if there is None else vectors_of(there)
        made.append(ShotCrops(shot["number"], tuple(shot["expected"]), vectors))
    return tuple(made)


def cross_terms(
    characters: Sequence[Character], matches: Sequence[Match], settings: Settings, numbers: Sequence[int] = ()
) -> Terms:
    """Return the similarities to references, of some of the characters that were matched together.

    ``numbers``: of the story's shots, in order; none where nobody asks for single shots.
    """
    places = {number: index for index, number in enumerate(numbers)}
    own, counts = _covered(characters, matches)
    terms = [
        Term(
            (match.missed or "not matched").replace("image", "picture")
            if match.cross is None
            else match.cross,
            places.get(match.shot),
            match.character,
        )
        for match in own
    ]
    empty = places.keys() - {match.shot for match in own}
    terms += [Term("nobody expected", places[number]) for number in sorted(empty)]
    if settings.definition == "paper":
        return Terms(terms, counts, "no character was matched")
    return Terms(
        terms, counts, "the script has no character", tuple(character.key for character in characters)
    )


def self_terms(
    characters: Sequence[Character],
    matches: Sequence[Match],
    crops: Mapping[str, Vectors],
    settings: Settings,
) -> Terms:
    """Return the similarities of characters to themselves; see :func:`cross_terms`.

    ``crops``: character -> vectors of its matched crops.
    """
    terms, code = [], settings.definition == "code"
    twice = 0
    for character in characters:
        table: Floats = similarities(
            crops[character.key], crops[character.key], character.encoders, settings.apart
        )
        summed, pairs = mean_of_pairs(table)
        twice += bool(pairs)
        if pairs:
            terms.append(Term(summed / pairs, character=character.key))
        elif code:
            terms.append(Term(float(len(crops[character.key]) == 1), character=character.key))
    counts = _covered(characters, matches)[1] | {"matched_twice": twice}
    return Terms(terms, counts, "the script has no character" if code else "no character was matched twice")


def _covered(characters: Sequence[Character], matches: Sequence[Match]) -> tuple[list[Match], dict[str, int]]:
    """Return the matches of some characters, and how many came out how."""
    keys = {character.key for character in characters}
    own = [match for match in matches if match.character in keys]
    counts = {"characters": len(keys), "expected": len(own)}
    counts["matched"] = sum(match.crop is not None for match in own)
    for reason in ("no image", "no reference", "nothing detected", "not matched"):
        counts[reason.replace(" ", "_")] = sum(match.missed == reason for match in own)
    return own, counts


def _match_shot(shot: ShotCrops, by_key: Mapping[str, Character], settings: Settings) -> list[Match]:
    expected = [by_key[key] for key in dict.fromkeys(shot.expected) if key in by_key]
    if shot.crops is None:
        return [Match(shot.number, character.key, missed="no image") for character in expected]
    tables = [
        similarities(person.references, shot.crops, person.encoders, settings.apart) for person in expected
    ]
    crops = match_characters(tables)
    made = []
    for character, table, crop in zip(expected, tables, crops, strict=True):
        if crop is not None:
            made.append(Match(shot.number, character.key, crop, float(np.nanmean(table[:, crop]))))
        elif not character.references.known(character.encoders).any():
            made.append(Match(shot.number, character.key, missed="no reference"))
        else:
            why = "not matched" if len(shot.crops) else "nothing detected"
            made.append(Match(shot.number, character.key, missed=why))
    return made


def _cross(story: Story, chosen: Choices) -> Terms | None:
    match = matched(story, chosen)
    if match is None:
        return None
    numbers = [shot.number for shot in story.shots]
    terms = cross_terms(match.characters, match.cids.matches, match.settings, numbers)
    return of_record(terms, match.settings, match.cids.no_record)


def _self(story: Story, chosen: Choices) -> Terms | None:
    match = matched(story, chosen)
    if match is None:
        return None
    terms = self_terms(match.characters, match.cids.matches, match.cids.crops, match.settings)
    return of_record(terms, match.settings, match.cids.no_record)


CROSS = Metric(
    name="cids_cross", version=2, label="CIDS cross", group="Character similarity", direction="higher",
    range=(-1.0, 1.0), top=1.0, column=1, lead=1, needs=(DETECTOR, *CROPS), terms=_cross, per_shot=True,
    per_character=True, choices=(DEFINITION,),
    meaning="How much generated characters look like their reference images: mean cosine of matched crop "
    "and references. -1 to 1.",
)  # fmt: skip
SELF = Metric(
    name="cids_self", version=2, label="CIDS self", group="Character similarity", direction="higher",
    range=(-1.0, 1.0), top=1.0, column=0, lead=5, needs=(DETECTOR, *CROPS), terms=_self,
    per_character=True, choices=(DEFINITION,),
    meaning="How much each generated character looks like itself from shot to shot: mean cosine over the "
    "pairs of its matched crops, then over characters. -1 to 1.",
)  # fmt: skip
