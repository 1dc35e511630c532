"""What an action says of where people stand, come from and go, read off English words.

It reads plain phrases: who enters or leaves and on which side, who stands left or right, where the camera
pans. Sides from somebody's own point of view ("to his right") and looks ("looks to the left") are not places.
Texts in other languages say nothing here; a layout without them is valid all the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .layout import Pan, Side

_SIDE = r"(?:far[- ]|extreme )?(?P<side>left|right)"
_COMES = re.compile(
    r"\b(?:enter(?:s|ing)?|walk(?:s|ing)? (?:in|into|onto)|step(?:s|ping)? (?:in|into|onto)"
    r"|run(?:s|ning)? (?:in|into)|rush(?:es|ing)? (?:in|into)|burst(?:s|ing)? (?:in|into)"
    r"|com(?:es|ing) (?:in|into)|emerg(?:es|ing)|arriv(?:es|ing)|join(?:s|ing)?)\b",
    re.IGNORECASE,
)
_GOES = re.compile(
    r"\b(?:exit(?:s|ing)?|walk(?:s|ing)? (?:out|off|away)|step(?:s|ping)? (?:out|away)"
    r"|run(?:s|ning)? (?:out|off|away)|leav(?:es|ing) (?:the )?(?:frame|room|scene|shot|place|view)"
    r"|storm(?:s|ing)? (?:out|off)|depart(?:s|ing)?)\b",
    re.IGNORECASE,
)
_FROM = re.compile(rf"\bfrom (?:the )?{_SIDE}\b(?! to (?:the )?(?:left|right)\b)", re.IGNORECASE)
_TO = re.compile(rf"\b(?:to|toward|towards|off) (?:the )?{_SIDE}\b", re.IGNORECASE)
_ACROSS = re.compile(
    r"\bfrom (?:the )?(?P<start>left|right) to (?:the )?(?P<side>left|right)\b", re.IGNORECASE
)
_STANDS = re.compile(
    rf"\b(?:on|at|to|in) the (?:{_SIDE}|(?P<middle>cent(?:er|re)|middle))"
    r"\b(?! (?:hand|arm|ear|leg|foot|shoulder|eye|wrist|sleeve|cheek|fist)\b)",
    re.IGNORECASE,
)
_PANS = re.compile(
    r"\b(?:camera|shot|view|frame)\b[^.;]*?"
    r"\b(?:pans?|turns?|tracks?|swings?|panning|tracking|whip[- ]pans?)\b"
    rf"[^.;]*?\b(?:(?:to|toward|towards) (?:the )?)?{_SIDE}\b",
    re.IGNORECASE,
)
_REVEALS = re.compile(
    r"\b(?:reveal(?:s|ing)?|settl(?:es?|ing)|land(?:s|ing)?|show(?:s|ing)?|find(?:s|ing)?|ends?"
    r"|com(?:es|ing) to)\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\b(?:look|gaz|glanc|star|peer|eye|turn|fac|gestur|point|off-?screen|off-?camera|off-?frame)\w*",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_CLAUSE = re.compile(r",\s+|\s+(?:and|while|as)\s+", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Coming:
    """Somebody who comes into the frame or goes out of it during a shot.

    Attributes:
        name: of the character.
        way: which of the two.
        side: on which side of the frame; None where the text does not say.
    """

    name: str
    way: Literal["in", "out"]
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """What an action says of the frame.

    Attributes:
        order: the characters, those that the text names first.
        coming: who comes and goes, in order.
        sides: character -> where the text puts them.
        crossing: character -> the sides where their way across the frame begins and ends.
        pan: where the camera turns.
        followed: whom it follows on the way.
    """

    order: tuple[str, ...] = ()
    coming: tuple[Coming, ...] = ()
    sides: dict[str, Side] = field(default_factory=dict)
    crossing: dict[str, tuple[Side, Side]] = field(default_factory=dict)
    pan: Pan = "none"
    followed: frozenset[str] = frozenset()

    def side_of_entry(self, name: str) -> Side | None:
        """Return the side from which somebody comes; None where they do not come or no side is named."""
        return next((move.side for move in self.coming if move.name == name and move.way == "in"), None)


def read_staging(action: str, characters: Sequence[str]) -> Staging:
    """Return what an action says of where characters stand, come from and go.

    Args:
        action: the text.
        characters: who is scheduled.
    """
    named = {name: position for name in characters if (position := find_name(action, name)) is not None}
    order = (*sorted(named, key=named.__getitem__), *(name for name in characters if name not in named))
    pan, followed = _pan(action, characters)
    coming: dict[str, Coming] = {}
    sides: dict[str, Side] = {}
    crossing: dict[str, tuple[Side, Side]] = {}
    for sentence in _SENTENCE.split(action):
        if _PANS.search(sentence):
            for name in _revealed(sentence, characters):
                coming.setdefault(name, Coming(name, "in", None if pan == "none" else pan))
            continue
        for name, match in _near(_ACROSS, sentence, characters):
            start, end = _side(match["start"]), _side(match["side"])
            if start != end:
                crossing.setdefault(name, (start, end))
        for move in _moves(sentence, characters):
            coming.setdefault(move.name, move)
        for name, match in _near(_STANDS, sentence, characters):
            clause = _clause_around(sentence, match.start())
            if not _LOOKS.search(clause) and name not in coming and name not in crossing:
                sides.setdefault(name, "centre" if match["middle"] else _side(match["side"]))
    return Staging(order, tuple(coming.values()), sides, crossing, pan, followed)


def user_of(action: str, name: str, characters: Sequence[str]) -> str | None:
    """Return beside whom an object stands: the character whom its sentence names last before it, else first.

    None where no sentence names it together with a character.
    """
    for sentence in _SENTENCE.split(action):
        at = find_name(sentence, name)
        if at is None:
            at = find_name(sentence, _ARTICLE.sub("", name))
        if at is None:
            continue
        named = sorted(
            (position, who) for who in characters if (position := find_name(sentence, who)) is not None
        )
        earlier = [who for position, who in named if position < at]
        if named:
            return earlier[-1] if earlier else named[0][1]
    return None


def find_name(text: str, name: str) -> int | None:
    """Return where a text first names somebody as a whole word, in any case; None where it does not."""
    if not name:
        return None
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    if match is not None:
        return match.start()
    at = text.find(name) if not name.isascii() else -1
    return at if at >= 0 else None


def _side(text: str) -> Side:
    return "left" if text.lower() == "left" else "right"


def _pan(action: str, characters: Sequence[str]) -> tuple[Pan, frozenset[str]]:
    for sentence in _SENTENCE.split(action):
        match = _PANS.search(sentence)
        if match is None:
            continue
        across = _ACROSS.search(sentence)
        pan: Pan = _way(across["side"] if across else match["side"])
        after = re.search(r"\bfollow\w*\b", sentence, re.IGNORECASE)
        tail = sentence[after.end() :] if after else ""
        return pan, frozenset(name for name in characters if find_name(tail, name) is not None)
    return "none", frozenset()


def _revealed(sentence: str, characters: Sequence[str]) -> list[str]:
    """Return who comes into view where the camera pans: those whom the sentence names after saying so."""
    pan = _PANS.search(sentence)
    reveal = None if pan is None else _REVEALS.search(sentence, pan.end())
    return (
        []
        if reveal is None
        else [
            name
            for name in characters
            if find_name(sentence[reveal.end() :], name) is not None
            and find_name(sentence[: reveal.start()], name) is None
        ]
    )


def _way(text: str) -> Pan:
    return "left" if text.lower() == "left" else "right"


def _moves(sentence: str, characters: Sequence[str]) -> Iterator[Coming]:
    """Yield who a sentence says comes or goes: those whom the clause names before the verb."""
    for clause in _clauses(sentence):
        for pattern, way in ((_COMES, "in"), (_GOES, "out")):
            verb = pattern.search(clause)
            if verb is None:
                continue
            before = clause[: verb.start()]
            who = [name for name in characters if find_name(before, name) is not None]
            said = (_FROM if way == "in" else _TO).search(clause, verb.end())
            side = None if said is None else _side(said["side"])
            yield from (Coming(name, "in" if way == "in" else "out", side) for name in who)


def _clauses(sentence: str) -> list[str]:
    """Return a sentence in clauses; one without a verb of motion stays with what follows it."""
    parts = re.split(r",\s+(?=(?:then|before)\b)|\s+(?:while|as|then|before|when)\s+", sentence)
    return [part for part in parts if part]


def _clause_around(sentence: str, at: int) -> str:
    start = 0
    for mark in _CLAUSE.finditer(sentence):
        if mark.start() >= at:
            return sentence[start : mark.start()]
        if mark.end() <= at:
            start = mark.end()
    return sentence[start:]


def _near(
    pattern: re.Pattern[str], sentence: str, characters: Sequence[str]
) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield each phrase of a sentence with the character named nearest to it."""
    named = {name: position for name in characters if (position := find_name(sentence, name)) is not None}
    for match in pattern.finditer(sentence) if named else ():

        def distance(name: str, match: re.Match[str] = match) -> int:
            start = named[name]
            return match.start() - start - len(name) if start < match.start() else start - match.end()

        yield min(named, key=lambda name: (distance(name), named[name])), match
