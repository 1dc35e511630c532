"""Stage: what rules read off the text once, so that no later stage has to read it again.

A model is shown the segments by their numbers.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import primary_language
from .segments import Analysis, Entity, Segment, Word, segment_text, word_set, words_of

# -- Whom an English text names: names and beings that two of its sentences bear out, and nobody else
#
# A name is a run of capitalised words inside a sentence; a being is a noun of the lists of animals and
# people. Words after a preposition of place, behind an article (but for beings), in capitals throughout, and
# names of days and the like are none: what this takes for somebody should be somebody.

_OPENING = frozenset(".!?:;…。\"“'‘«「(—–\n")


def find_entities(text: str, words: Sequence[Word], segments: Sequence[Segment]) -> tuple[Entity, ...]:
    """Return who is named in two sentences or more, in the order of their first mention."""
    starts = [segment.start for segment in segments]

    def at(places: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted({max(0, bisect_right(starts, place) - 1) for place in places}))

    named = _gathered(_names(text, words))
    beings = _gathered(_beings(text))
    everywhere: dict[str, list[int]] = {key: [] for key in beings}
    for word in words:
        if word.lower in everywhere:
            everywhere[word.lower].append(word.start)
    found = [(name, at(places), at(places)) for name, places in named.values()]
    found += [(name, at(places), at(everywhere[key])) for key, (name, places) in beings.items()]
    kept = [
        Entity(name, mentions)
        for name, sure, mentions in found
        if len({segments[number].sentence for number in sure}) > 1
    ]
    return tuple(sorted(kept, key=lambda entity: (entity.at, entity.name)))


def _gathered(mentions: Iterable[tuple[str, str, int]]) -> dict[str, tuple[str, list[int]]]:
    """Return key -> the name as it first stands, and where it does."""
    gathered: dict[str, tuple[str, list[int]]] = {}
    for key, name, place in mentions:
        gathered.setdefault(key, (name, []))[1].append(place)
    return gathered


def _names(text: str, words: Sequence[Word]) -> Iterator[tuple[str, str, int]]:
    """Yield key, name and place of each mention of a name."""
    runs = list(_runs(text, words))
    inside = {key for key, _, _, opens in runs if not opens}
    yield from ((key, name, place) for key, name, place, _ in runs if key in inside)


def _runs(text: str, words: Sequence[Word]) -> Iterator[tuple[str, str, int, bool]]:
    """Yield each run of capitalised words that may be a name, and whether it opens a sentence."""
    number = 0
    while number < len(words):
        last = number
        while last < len(words) and _is_capitalised(text, words, last, joined=last > number):
            last += 1
        if last == number:
            number += 1
            continue
        first, before = number, words[number - 1].lower if number else ""
        name = text[words[first].start : words[last - 1].end].removesuffix("'s").removesuffix("’s")
        gap = text[words[first - 1].end if first else 0 : words[first].start]
        opens = first == 0 or not _OPENING.isdisjoint(gap)
        if before not in word_set("words", "place_prepositions") | {"the", "a", "an"}:
            yield name.lower(), name, words[first].start, opens
        number = last


def _is_capitalised(text: str, words: Sequence[Word], number: int, *, joined: bool) -> bool:
    word = words[number]
    spelled = text[word.start : word.end]
    known = word_set("words", "function", "not_names", "determiners", "pronouns")
    if joined and text[words[number - 1].end : word.start] != " ":
        return False
    return spelled[0].isupper() and not spelled.isupper() and word.lower not in known


def _beings(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield each noun of the lists of animals and people behind a determiner, or one word further."""
    beings = word_set("nouns", "animals", "people") - word_set("words", "ambiguous")
    for phrase in _phrase().finditer(text):
        for number in (1, 2):
            if (word := phrase[number]) and word.lower() in beings:
                yield word.lower(), word, phrase.start(number)
                break
            if word and word.lower() in word_set("words", "function"):
                break


@cache
def _phrase() -> re.Pattern[str]:
    determiners = "|".join(sorted(word_set("words", "determiners")))
    return re.compile(rf"(?<!\w)(?:{determiners}) ([^\W\d_]+)(?: ([^\W\d_]+))?(?!\w)", re.IGNORECASE)


# -- What rules read off the text once, so that no later stage has to read it again

SPEC = StageSpec(
    name="analyze_story",
    version=4,
    shape="map",
    reads=("story",),
    writes=("analysis",),
    libraries=("sentencex",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the analysis of the story."""
    return Made({"analysis": analyze(item["story"])})


def analyze(story: Json) -> Json:
    """Return the analysis of a story as compact JSON; other languages than English are only segmented."""
    text, language = story["normalized_text"], story["language"]
    english = primary_language(language) == "en"
    segments = segment_text(text, language, english)
    if not english:
        return Analysis(False, segments, ()).as_json()
    return Analysis(True, segments, find_entities(text, words_of(text), segments)).as_json()
