"""An episode as rules and statistics look at it: shots in order, who appears where, headers, mentions.

Every code that the rules about episode scripts, their registries and split files report.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ...schemas.entities import TYPES, EntityEpisode, EntityType, EpisodeShot, type_of_label
from ...schemas.text import unspaced_count
from ..report import issue_of, read_codes

Named = Literal["exact", "case", "part"]
"""How a text names an entity: letter for letter, up to case, or only by a content word of its name."""

EntityKey = tuple[EntityType, str]
"""An entity of an episode as its schedule knows it: the type of the list, and the name."""

_SMALL_WORDS = frozenset(("the", "a", "an", "of", "and"))
_LEAST_LETTERS = 3
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """One line of a prompt's header."""

    text: str  # the whole line
    name: str | None  # the entity of the registry that it describes; None where there is none of that name
    description: str  # what it says of it
    decorated: bool  # whether something stands between the name and the colon


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the action in a prompt."""

    lines: tuple[HeaderLine, ...]  # its lines, in order; none where the prompt is the bare action
    separator: str  # the line ends between the lines and the action
    ends_with_action: bool  # whether the prompt ends with the action at all; without that there are no lines


class NameIndex:
    """Finds which of many names a text holds, without looking for each of them.

    A name can only be there if its first word is; names of scripts without spaces may be anywhere.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        self._anywhere: list[str] = []
        for name in names:
            first = _WORD.search(name)
            if first is None or unspaced_count(name):
                self._anywhere.append(name)
            else:
                self._by_word.setdefault(first[0], []).append(name)

    def candidates(self, text: str) -> Iterator[str]:
        """Yield the names that a text may hold; every other name it does not."""
        yield from self._anywhere
        for word in dict.fromkeys(_WORD.findall(text)):
            yield from self._by_word.get(word, ())

    def held(self, text: str) -> Iterator[str]:
        """Yield the names that a text holds; see :func:`holds`."""
        return (name for name in self.candidates(text) if holds(text, name))


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """One episode, looked at once."""

    episode_id: str  # its id
    script: EntityEpisode  # its script
    shots: tuple[EpisodeShot, ...]  # its shots, in story order
    labels: Mapping[str, tuple[str, ...]]  # name -> its labels in the registry
    index: NameIndex  # finds names of the registry in texts
    # name -> its description; of a name with two labels the last, as the official evaluator has it
    descriptions: Mapping[str, str]
    # entity -> the shots that schedule it, numbered from 1 through the episode, ascending
    appearances: Mapping[EntityKey, tuple[int, ...]]
    headers: tuple[Header, ...]  # the header of each shot

    @property
    def scheduled(self) -> frozenset[str]:
        """The names that are scheduled in some shot, whatever the list."""
        return frozenset(name for _, name in self.appearances)

    def type_of(self, name: str) -> EntityType | None:
        """Return the type of a name: that of its label; of a label without one, that of its list."""
        listed = next((kind for kind, other in self.appearances if other == name), None)
        return self.label_type(name) or listed

    def label_type(self, name: str) -> EntityType | None:
        """Return the type of the labels of a name; None where they name none."""
        kinds = (type_of_label(label) for label in self.labels.get(name, ()))
        return next((kind for kind in kinds if kind is not None), None)


def view_of(episode_id: str, script: EntityEpisode) -> EpisodeView:
    """Return an episode as rules and statistics look at it."""
    shots = tuple(script.shots())
    labels: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    for label, entry in script.entity_descriptions.items():
        if entry.name:
            labels[entry.name] = (*labels.get(entry.name, ()), label)
            descriptions[entry.name] = entry.description or ""
    index = NameIndex(labels)
    appearances: dict[EntityKey, list[int]] = {}
    for number, shot in enumerate(shots, 1):
        for kind in TYPES:
            for name in dict.fromkeys(shot.scheduled.names(kind)):
                appearances.setdefault((kind, name), []).append(number)
    return EpisodeView(
        episode_id=episode_id,
        script=script,
        shots=shots,
        labels=labels,
        index=index,
        descriptions=descriptions,
        appearances={key: tuple(numbers) for key, numbers in appearances.items()},
        headers=tuple(header_of(shot, index) for shot in shots),
    )


def header_of(shot: EpisodeShot, index: NameIndex) -> Header:
    """Return what stands before the action in the prompt of a shot."""
    if not shot.prompt.endswith(shot.action):
        return Header((), "", ends_with_action=False)
    above = shot.prompt[: len(shot.prompt) - len(shot.action)]
    text = above.rstrip("\n")
    lines = tuple(_line(line, index) for line in text.split("\n")) if text else ()
    return Header(lines, above[len(text) :], ends_with_action=True)


def _line(line: str, index: NameIndex) -> HeaderLine:
    name, colon, description = line.partition(": ")
    known = [candidate for candidate in index.candidates(line) if line.startswith(candidate)]
    if colon and name in known:
        return HeaderLine(line, name, description, decorated=False)
    plain = [entry for entry in known if line[len(entry) :].startswith(": ")]
    if plain:  # a name with a colon in it
        return HeaderLine(line, plain[0], line[len(plain[0]) + 2 :], decorated=False)
    bare = [entry for entry in known if colon and name[len(entry) :].startswith(" (")]
    if bare:
        return HeaderLine(line, max(bare, key=len), description, decorated=True)
    return HeaderLine(line, None, description, decorated=False)


def holds(text: str, name: str) -> bool:
    """Return whether a text holds a name letter for letter, and not only as a part of longer words.

    Names of scripts that put no spaces between words may stand anywhere.
    """
    start = text.find(name) if name else -1
    if start < 0:
        return False
    if unspaced_count(name):
        return True
    while start >= 0:
        end = start + len(name)
        if not _in_word(text[start - 1 : start]) and not _in_word(text[end : end + 1]):
            return True
        start = text.find(name, start + 1)
    return False


def named(text: str, name: str) -> Named | None:
    """Return how a text names an entity, or None where it has not even a content word of its name.

    Content words have three letters or more and are not the, a, an, of, and.
    """
    if holds(text, name):
        return "exact"
    folded, small = text.casefold(), name.casefold()
    if holds(folded, small):
        return "case"
    words = {word for word in _WORD.findall(small) if len(word) >= _LEAST_LETTERS} - _SMALL_WORDS
    return None if words.isdisjoint(_WORD.findall(folded)) else "part"


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


CODES = read_codes(__package__)
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue."""

BLOCKING = frozenset(
    {
        *("unreadable", "too-large", "encoding", "json", "repeated-key", "shape", "unsafe-name"),
        *("no-shots", "scene-order", "list-length", "schedule-key", "story-name", "secret-removed"),
    }
)
"""Codes of what cannot be released: files of no use, and episodes whose shots cannot be told."""
CONTRADICTIONS = frozenset(("prompt-action", "header-description", "name-map"))
"""Codes of what an episode says twice and differently: an action, a description, a name."""
