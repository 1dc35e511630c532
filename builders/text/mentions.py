"""Characters and things that an English text names: animate nouns, names with titles, repeated things."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from .segments import Entity, Segment
from .words import Word, is_verb, word_set

_QUOTES = "\"“'‘«「(—–"
_AGENT_SUFFIXES = ("er", "or", "man", "woman", "men", "ess", "herd", "smith", "wright", "monger", "keeper")


@dataclass(slots=True)
class _Found:
    """Mentions gathered under one key."""

    name: str
    character: bool
    places: list[int] = field(default_factory=list)
    agent: bool = False
    firm: bool = True


class MentionFinder:
    """Finds the entities of one English text.

    A character is a noun of the animate lists, a name (a capitalised word inside a sentence, or one at
    its start that does what only a person or an animal does), or a noun phrase that is the subject of
    such a verb. A thing is a noun of the object list, or any other noun after a determiner that the text
    repeats. Everything reported is a form that occurs in the text.
    """

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self._text, self._words = text, words
        self._lowers = [word.lower for word in words]
        self._counts: dict[str, int] = {}
        for lower in self._lowers:
            self._counts[lower] = self._counts.get(lower, 0) + 1
        self._found: dict[str, _Found] = {}
        self._capitalised_inside = {
            word.lower
            for i, word in enumerate(words)
            if self._capitalised(i) and not self._starts_sentence(i)
        }

    def find(self, segments: Sequence[Segment]) -> tuple[Entity, ...]:
        """Return the entities in order of their first mention."""
        inside_name: set[int] = set()
        for first, last in self._names():
            inside_name.update(range(first, last + 1))
            self._add_name(first, last)
        for i in range(len(self._words)):
            if i not in inside_name:
                self._add_noun(i)
        kept = [f for f in self._found.values() if self._is_kept(f)]
        kept.sort(key=lambda f: f.places[0])
        ends = [segment.end for segment in segments]
        return tuple(Entity(f.name, f.character, _segments_of(f.places, ends)) for f in kept)

    def _is_kept(self, found: _Found) -> bool:
        if found.character:
            return found.firm or found.agent
        return found.firm or len(found.places) > 1

    def _add(self, key: str, name: str, i: int, **kind: bool) -> None:
        found = self._found.setdefault(key, _Found(name, kind["character"], firm=kind["firm"]))
        found.places.append(self._words[i].start)
        found.agent = found.agent or self._acts(i)
        found.character = found.character or (kind["character"] and kind["firm"])
        found.firm = found.firm or kind["firm"]

    # Names

    def _names(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last index of each run of capitalised words that is a name."""
        i, last = 0, -1
        while i < len(self._words):
            last = max(i, last)
            while last + 1 < len(self._words) and self._capitalised(last + 1) and self._joined(last):
                last += 1
            if not self._capitalised(i) or self._words[i].lower in word_set("words", "function"):
                i += 1
                continue
            first = i
            titled = last > i and self._is_title(i)
            if self._starts_sentence(i) and not titled and not self._known_name(i, last):
                first += 1
            if first <= last and self._is_name(first, last):
                yield first, last
            i = last + 1

    def _is_name(self, first: int, last: int) -> bool:
        lowered = {self._words[k].lower for k in range(first, last + 1)}
        return not lowered <= word_set("words", "not_names")

    def _known_name(self, i: int, last: int) -> bool:
        """Whether the capitalised word that starts a sentence is a name, and not just its first word."""
        word = self._words[i].lower
        if word in _common_words() or word.endswith(("ly", "ing")):
            return False
        if word in self._capitalised_inside:
            return True
        return self._acts(last) and self._text[self._words[i].start : self._words[i].end] != word

    def _add_name(self, first: int, last: int) -> None:
        end = self._words[last].end - (2 if self._words[last].possessive and self._ends_in_s(last) else 0)
        name = self._text[self._words[first].start : end]
        place = first > 0 and self._lowers[first - 1] in word_set("words", "place_prepositions")
        self._add(self._words[last].lower, name, last, character=True, firm=not place)
        found = self._found[self._words[last].lower]
        if len(name) > len(found.name):
            found.name = name

    def _ends_in_s(self, i: int) -> bool:
        word = self._words[i]
        return self._text[word.start : word.end].lower().endswith(("'s", "’s"))

    # Nouns

    def _add_noun(self, i: int) -> None:
        word = self._words[i]
        lower = word.lower
        if lower in word_set("nouns", "animals", "people"):
            if self._is_head(i) and (lower not in word_set("words", "ambiguous") or self._in_phrase(i)):
                self._add(lower, lower, i, character=True, firm=True)
        elif lower in word_set("nouns", "objects"):
            if lower not in word_set("words", "ambiguous") or self._in_phrase(i):
                self._add(lower, lower, i, character=False, firm=True)
        elif self._is_unlisted_head(i):
            person = lower.endswith(_AGENT_SUFFIXES) and self._acts(i)
            self._add(lower, lower, i, character=person, firm=person)

    def _is_head(self, i: int) -> bool:
        """Whether no other animate noun follows directly, as in "shepherd boy"."""
        if i + 1 >= len(self._words) or not self._joined(i) or self._words[i].possessive:
            return True
        follower = self._words[i + 1].lower
        return follower not in word_set("nouns", "animals", "people") or follower in word_set(
            "words", "ambiguous"
        )

    def _in_phrase(self, i: int) -> bool:
        """Whether a determiner stands one or two words before, in the same phrase."""
        determiners = word_set("words", "determiners")
        if i and self._joined(i - 1) and self._lowers[i - 1] in determiners:
            return True
        adjective = (
            i > 1 and self._joined(i - 1) and self._joined(i - 2) and self._lowers[i - 2] in determiners
        )
        known = word_set("words", "function") | word_set("nouns", "animals", "people", "objects")
        return bool(adjective) and self._lowers[i - 1] not in known and not is_verb(self._lowers, i)

    def _is_unlisted_head(self, i: int) -> bool:
        lower = self._words[i].lower
        if (
            len(lower) < 3
            or lower in _common_words()
            or lower.endswith(("ly", "ing", "ed", "ness", "tion", "ment"))
        ):
            return False
        if self._counts[lower] < 2 and not self._acts(i):
            return False
        follows = i + 1 < len(self._words) and self._joined(i)
        if (
            follows
            and self._lowers[i + 1] not in word_set("words", "function")
            and not is_verb(self._lowers, i + 1)
        ):
            return False
        return self._in_phrase(i) and not is_verb(self._lowers, i)

    # What stands around a word

    def _acts(self, i: int) -> bool:
        """Whether the next word is a verb that only a person or an animal can be the subject of."""
        ahead = i + 1 < len(self._words) and self._joined(i)
        return (
            ahead and self._lowers[i + 1] in word_set("verbs", "agentive") and not self._words[i].possessive
        )

    def _joined(self, i: int) -> bool:
        """Whether only one space stands between this word and the next."""
        return self._words[i + 1].start - self._words[i].end == 1 and self._text[self._words[i].end] == " "

    def _capitalised(self, i: int) -> bool:
        return self._text[self._words[i].start].isupper()

    def _is_title(self, i: int) -> bool:
        return self._words[i].lower in word_set("nouns", "titles")

    def _starts_sentence(self, i: int) -> bool:
        if i == 0:
            return True
        between = self._text[self._words[i - 1].end : self._words[i].start]
        return any(char in ".!?:;…。" for char in between) or between.rstrip(" ")[-1:] in tuple(_QUOTES)


@cache
def _common_words() -> frozenset[str]:
    return (
        word_set("words", "function", "determiners", "pronouns", "not_names")
        | word_set("nouns", "animals", "people", "objects", "abstract")
        | word_set("connectives", "place")
    )


def _segments_of(places: Sequence[int], ends: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the segments that hold the places, given where each segment ends."""
    last = len(ends) - 1
    return tuple(sorted({min(bisect_right(ends, place), last) for place in places}))
