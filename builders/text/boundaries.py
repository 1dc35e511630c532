"""Where the scenes begin: dynamic programming over sentences and clauses.

The cost of a division is the sum over scenes of (length / mean length - 1) squared, plus for every
boundary a penalty for splitting a sentence and what ``openings`` says of the sentence that begins there.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ...engine.stage import Item, Made, Outcome, Tools, stage
from ...schemas.canonical import Json
from ...schemas.text import is_unspaced, normalize_text, primary_language
from ..step import Problems, check_count
from .segments import (
    Analysis,
    Entity,
    Segment,
    Word,
    lexicon,
    lower_words,
    phrase_pattern,
    quoted_spans,
    segment_text,
    whole_words,
    word_set,
    words_of,
)

# -- Signs that a new scene begins at a sentence, or that the sentence still belongs to the one before
#
# For a new scene speak a paragraph, words of time or place at the head of the sentence, and somebody new. For
# the old one speak the answer to what was said, a result, a pronoun, and an opening that was only just made.

PARAGRAPH, TIME, SOON, PLACE, NEWCOMER, CONTRAST = 0.35, 0.5, 0.25, 0.15, 0.2, 0.1
"""How much cheaper a scene begins where a sign of a new one stands."""
INSIDE, REPLY, SPEECH, QUESTION, RESULT, PRONOUN, JUST_OPENED, SHORT = 1.5, 0.7, 0.3, 0.4, 0.4, 0.2, 0.3, 0.25
"""How much dearer where a sign of the old one stands."""
FEW_WORDS = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str  # as it stands
    inside: bool  # whether it begins within a quotation
    paragraph: bool  # whether it begins a paragraph
    speaks: bool  # whether it begins with a quotation
    quotes: bool  # whether it holds one, or a part of one
    opens: float  # how strongly it opens with a time


def paragraph_starts(text: str, normalised: str) -> frozenset[int]:
    """Return where paragraphs begin in the normalised form of a text; nothing where that cannot be told.

    Paragraphs stand between empty lines, or one on each line where every line ends a sentence.
    """
    parts = [normalize_text(part) for part in re.split(r"\n\s*\n", text)]
    if len(parts) == 1:
        lines = [normalize_text(line) for line in text.splitlines()]
        parts = lines if all(line.endswith(_ENDS) for line in lines if line) else parts
    parts = [part for part in parts if part]
    if " ".join(parts) != normalised:
        return frozenset()
    starts, start = [], 0
    for part in parts:
        starts.append(start)
        start += len(part) + 1
    return frozenset(starts)


_ENDS = tuple(".!?…。！？।॥:;\"'”’»」")
_MARKS = "\"“«「‘'"


def opening_costs(text: str, analysis: Analysis, paragraphs: frozenset[int]) -> dict[int, float]:
    """Return what it costs to begin a scene at each sentence, by the number of its first segment."""
    firsts = [
        n for n, s in enumerate(analysis.segments) if not n or s.sentence != analysis.segments[n - 1].sentence
    ]
    sentences = _sentences(text, analysis, firsts, paragraphs)
    new = {entity.at[0] for entity in analysis.entities}
    costs = {firsts[0]: 0.0}
    for before, sentence, number in zip(sentences, sentences[1:], firsts[1:], strict=False):
        costs[number] = _spoken(before, sentence) - PARAGRAPH * (sentence.paragraph and not sentence.speaks)
        if analysis.english:
            costs[number] += _told(before, sentence) - NEWCOMER * (number in new)
    return costs


def _sentences(
    text: str, analysis: Analysis, firsts: Sequence[int], paragraphs: frozenset[int]
) -> list[Sentence]:
    spans = quoted_spans(text, 0, len(text))
    starts = [start for start, _ in spans]
    looked_at = []
    for number, stop in zip(firsts, [*firsts[1:], len(analysis.segments)], strict=True):
        start, end = analysis.segments[number].start, analysis.segments[stop - 1].end
        own = text[start:end]
        nearest = bisect_left(starts, start) - 1
        inside = nearest >= 0 and start < spans[nearest][1]
        quotes = inside or any(mark in own for mark in '"“«「')
        looked_at.append(
            Sentence(
                own,
                inside,
                start in paragraphs,
                own[0] in _MARKS,
                quotes,
                _time(own) if analysis.english else 0.0,
            )
        )
    return looked_at


def _spoken(before: Sentence, sentence: Sentence) -> float:
    """Return the cost of parting what is said from what belongs to it."""
    if sentence.inside:
        return INSIDE
    cost = 0.0
    if sentence.speaks:
        cost += REPLY if before.quotes else SPEECH
    if before.text.rstrip("\"'”’»」").endswith(("?", "？", ":")):
        cost += QUESTION
    return cost


def _told(before: Sentence, sentence: Sentence) -> float:
    """Return the cost that the words of an English sentence and of the one before speak of."""
    words = lower_words(sentence.text)
    head = words[0] if words else ""
    cost = -sentence.opens
    if phrase_pattern("openings", "results").match(sentence.text):
        cost += RESULT
    elif head in lexicon("openings")["pronouns"] and not sentence.opens:
        cost += PRONOUN
    if phrase_pattern("connectives", "contrast").match(sentence.text):
        cost -= CONTRAST
    if head in lexicon("openings")["places"]:
        cost -= PLACE
    if not sentence.paragraph:
        short = len(before.text.split()) <= FEW_WORDS
        cost += JUST_OPENED * max(before.opens >= TIME, short and before.paragraph) + SHORT * short
    return cost


def _time(sentence: str) -> float:
    """Return how strongly a sentence opens with a time, perhaps after "and" or "but"."""
    if _point().match(sentence):
        return TIME
    soon = phrase_pattern("openings", "soon").match(sentence)
    return SOON if soon else 0.0


@cache
def _point() -> re.Pattern[str]:
    table = lexicon("openings")
    noun = whole_words(table["time_nouns"]).pattern
    before = r"(?:but |and |yet )?(?:" + "|".join(table["time_leads"]) + r") "
    words = r"(?:[\w’'-]+ ){0,3}?"
    exact = whole_words(table["times"]).pattern
    return re.compile(rf"(?:but |and )?{exact}|{before}{words}{noun}", re.IGNORECASE)


# -- Where the scenes begin

SPLIT_PENALTY = (0.0, 0.35, 0.6, 0.9)
EVENNESS = 0.7
"""How much the lengths of scenes count beside what the sentences say."""
WIDE = 120
"""Up to so many segments every division is looked at; beyond, only the best near each equal share."""
CANDIDATES = 60


def divide(
    text: str, analysis: Analysis, count: int, paragraphs: frozenset[int] = frozenset()
) -> tuple[tuple[int, int], ...] | None:
    """Return the spans of the scenes in the text, or None where it has fewer segments than scenes.

    ``count``: the number of scenes, at least 2.
    """
    segments = analysis.segments
    if len(segments) < count:
        return None
    first = _best_starts(_lengths(text, segments), _boundary_costs(text, analysis, paragraphs), count)
    starts = [segments[index].start for index in first]
    ends = [segments[index - 1].end for index in (*first[1:], len(segments))]
    return tuple(zip(starts, ends, strict=True))


def _lengths(text: str, segments: Sequence[Segment]) -> list[int]:
    if is_unspaced(text):
        return [segment.end - segment.start for segment in segments]
    return [len(text[segment.start : segment.end].split()) for segment in segments]


def _boundary_costs(text: str, analysis: Analysis, paragraphs: frozenset[int]) -> list[float]:
    """Return the cost of beginning a scene at each segment."""
    opening = opening_costs(text, analysis, paragraphs)
    return [
        SPLIT_PENALTY[segment.strength] + opening.get(number, 0.0)
        for number, segment in enumerate(analysis.segments)
    ]


def _best_starts(lengths: Sequence[int], costs: Sequence[float], count: int) -> list[int]:
    """Return the first segment of each scene. Ties go to the earlier boundary."""
    total = [0]
    for length in lengths:
        total.append(total[-1] + length)
    mean = total[-1] / count
    size = len(lengths)

    def scene_cost(first: int, end: int) -> float:
        return EVENNESS * ((total[end] - total[first]) / mean - 1) ** 2

    # best[end] = (cost, starts) of dividing the segments before `end` into the scenes so far.
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [0])}
    for scene in range(1, count + 1):
        ends = [size] if scene == count else _candidates(total, costs, scene, count)
        step: dict[int, tuple[float, list[int]]] = {}
        for end in ends:
            extra = costs[end] if end < size else 0.0
            options = [
                (cost + scene_cost(starts[-1], end) + extra, starts)
                for first, (cost, starts) in best.items()
                if first < end
            ]
            if options:
                cost, starts = min(options, key=lambda option: option[0])
                step[end] = (cost, [*starts, end])
        best = step
    return best[size][1][:-1]


def _candidates(total: Sequence[int], costs: Sequence[float], scene: int, count: int) -> list[int]:
    """Return the segments at which the scene after the given one may begin."""
    size = len(costs)
    possible = range(scene, size - (count - scene) + 1)
    if size <= WIDE:
        return list(possible)
    share = total[-1] / count

    def estimate(end: int) -> float:
        return costs[end] + abs(total[end] - scene * share) / share

    return sorted(sorted(possible, key=estimate)[:CANDIDATES])


def read_division(entries: Sequence[Json], count: int, name: str, story: Json, analysis: Json) -> list[str]:
    """Return the texts of the scenes or shots into which a reply divides a story.

    They are spans of the story that hold all of it but white space, whatever the reply says.
    """
    segments = Analysis.from_json(analysis).segments
    check_count(entries, count, f"{name}s")
    firsts = [entry["first_segment"] for entry in entries]
    problems = Problems()
    if firsts[0] != 1:
        problems.add(f"{name} 1 must have first_segment 1, not {firsts[0]}")
    for number, (before, first) in enumerate(pairwise(firsts), start=2):
        if not before < first <= len(segments):
            problems.add(
                f"{name} {number}: first_segment must be greater than {before}, that of the {name} before,"
                f" and at most {len(segments)}; found {first}"
            )
    problems.settle()
    text, stops = story["normalized_text"], [*firsts[1:], len(segments) + 1]
    return [
        text[segments[first - 1].start : segments[stop - 2].end]
        for first, stop in zip(firsts, stops, strict=True)
    ]


# -- Where the scenes lie in the story text
#
# The join rule, exact for every script: scenes cover the normalised text in order, and nothing but white
# space is lost between them. So the scene texts joined without white space equal the story text without
# white space; where the script puts single spaces between sentences, " ".join(texts) is the story text.
#
# The other half of a boundary that moves: what is left to the neighbour of a part that was rewritten.

Span = tuple[int, int]


def scene_spans(text: str, scenes: Sequence[str]) -> tuple[Span, ...] | None:
    """Return the span of each scene in the text, or None where they do not cover it in order.

    White space counts neither in the text nor in the scenes.
    """
    spans: list[Span] = []
    place = 0
    for scene in scenes:
        start = _skip(text, place)
        end = start + len(scene)
        if not text.startswith(scene, start):
            found = _match_loosely(text, start, scene)
            if found is None:
                return None
            end = found
        if end == start:
            return None
        spans.append((start, end))
        place = end
    return tuple(spans) if _skip(text, place) == len(text) else None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _match_loosely(text: str, start: int, scene: str) -> int | None:
    place, end = start, start
    for char in scene:
        if char.isspace():
            continue
        place = _skip(text, place)
        if place >= len(text) or text[place] != char:
            return None
        place += 1
        end = place
    return end


def with_scene(text: str, span: Span, scene: str) -> str:
    """Return the text with one scene replaced; every other character stays."""
    return text[: span[0]] + scene + text[span[1] :]


def neighbour_of_moved(text: str, parts: Sequence[str], number: int, new: str) -> tuple[int, str] | None:
    """Return which part gives or takes what one part takes or gives, and its text.

    ``text``: the whole text, which the parts cover in order. ``number``: which of them changes, from 0.

    Returned: the number and text of the neighbour; ``None`` where the boundaries stay, the part is not a
    piece of the text at the same place, or nothing would be left of the neighbour.
    """
    spans = scene_spans(text, parts)
    if spans is None:
        return None
    start, end = spans[number]
    length, wanted = sum(not char.isspace() for char in new), "".join(new.split())
    places = [index for index, char in enumerate(text) if not char.isspace()]
    first, last = places.index(start), places.index(end - 1)
    if number + 1 < len(parts) and first + length < len(places):
        cut = places[first + length]
        left = text[cut : spans[number + 1][1]]
        if cut != spans[number + 1][0] and left.strip() and "".join(text[start:cut].split()) == wanted:
            return number + 1, left.strip()
    if number and last - length + 1 >= 0:
        cut = places[last - length + 1]
        left = text[spans[number - 1][0] : cut]
        if cut != start and left.strip() and "".join(text[cut:end].split()) == wanted:
            return number - 1, left.strip()
    return None


# -- Stage: what rules read off the text once, so that no later stage has to read it again
#
# A model is shown the segments by their numbers.

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


def analyze(story: Json) -> Json:
    """Return the analysis of a story as compact JSON; other languages than English are only segmented."""
    text, language = story["normalized_text"], story["language"]
    english = primary_language(language) == "en"
    segments = segment_text(text, language, english)
    if not english:
        return Analysis(False, segments, ()).as_json()
    return Analysis(True, segments, find_entities(text, words_of(text), segments)).as_json()


@stage(version=4, reads=("story",), writes=("analysis",), libraries=("sentencex",))
def analyze_story(item: Item, tools: Tools) -> Outcome:
    """Return the analysis of the story."""
    return Made({"analysis": analyze(item["story"])})
