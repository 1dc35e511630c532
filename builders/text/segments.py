"""What the rules read off a story once, and every later stage uses: segments, and who is named.

Segments are sentences (by ``sentencex``), long ones cut into clauses. A model is shown them by number.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced
from .words import (
    find_verb,
    is_participle,
    is_verb,
    lower_words,
    phrase_pattern,
    plain_word,
    whole_words,
    word_set,
    words_of,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence, or one clause of a sentence.

    Attributes:
        start, end: span in the normalised text, without white space at its ends.
        sentence: number of the sentence, from 0.
        strength: how well a scene may begin here; 0 a sentence, 1 after ``;``, ``:`` or a dash,
            2 after a comma before a clause, 3 before a conjunction without a comma.
    """

    start: int
    end: int
    sentence: int
    strength: int


@dataclass(frozen=True, slots=True)
class Entity:
    """Somebody whom the text names."""

    name: str  # a form that occurs in the text
    at: tuple[int, ...]  # the numbers of the segments that name them, ascending


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is read off one story."""

    # whether the English cue lists apply; without them only what is language-independent is known
    english: bool
    segments: tuple[Segment, ...]
    entities: tuple[Entity, ...]

    def as_json(self) -> Json:
        """Return a compact JSON form: lists of values in the order of the attributes."""
        return {
            "english": self.english,
            "segments": [[s.start, s.end, s.sentence, s.strength] for s in self.segments],
            "entities": [[e.name, list(e.at)] for e in self.entities],
        }

    @classmethod
    def from_json(cls, value: Json) -> "Analysis":
        """Return the analysis that :meth:`as_json` wrote."""
        return cls(
            value["english"],
            tuple(Segment(*row) for row in value["segments"]),
            tuple(Entity(name, tuple(at)) for name, at in value["entities"]),
        )


def segment_texts(story: Json, analysis: Json) -> list[str]:
    """Return the texts of the segments of a story, in order; they hold all of it but white space."""
    text: str = story["normalized_text"]
    return [text[segment.start : segment.end] for segment in Analysis.from_json(analysis).segments]


MIN_WORDS = 3
MIN_CHARACTERS = 4
# A clause may end after these; the ideographic list comma is no clause boundary.
_MARKS = re.compile(r"[;:؛；：—–]+[\"'”’»]?\s*|[,،，]+[\"'”’»]?\s*")
_STRONG = frozenset(";:؛；：—–")
_QUOTES = {"“": "”", '"': '"', "「": "」", "«": "»"}
_QUOTE = re.compile("[" + "".join(_QUOTES) + "]")
_PIECE = re.compile(r"\S+")
# After a full stop and a closing mark another sentence begins, whatever the library says.
_SAID = re.compile(r"(?<=\.[\"”])(?= [A-Z\"“])")
_AFTER_AND = whole_words(["and", "but", "so", "yet"])


def segment_text(text: str, language: str, english: bool) -> tuple[Segment, ...]:
    """Return the sentences of a normalised text, cut into clauses, in order.

    The segments cover the text but for white space. Clauses have at least three words, or four
    characters in a script without spaces.
    """
    spaceless = is_unspaced(text)
    segments: list[Segment] = []
    for number, (start, end) in enumerate(_sentences(text, language)):
        cuts = [(start, 0), *_clause_cuts(text, start, end, english, spaceless)]
        ends = [place for place, _ in cuts[1:]] + [end]
        for (begin, strength), stop in zip(cuts, ends, strict=True):
            segments.append(Segment(*trim(text, begin, stop), number, strength))
    return tuple(segments)


def _sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences, cut also after a full stop with a closing mark."""
    for start, end in sentence_spans(text, language):
        cuts = [match.start() for match in _SAID.finditer(text, start, end)]
        yield from zip([start, *(cut + 1 for cut in cuts)], [*cuts, end], strict=True)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def sentence_spans(text: str, language: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences; a piece without a letter or digit joins its neighbour."""
    import sentencex

    pieces = sentencex.segment(language.split("-", maxsplit=1)[0].lower() or "en", text)
    if "".join(pieces) != text:  # pragma: no cover - the library keeps every character
        pieces = [text]
    spans: list[tuple[int, int]] = []
    place, open_start = 0, 0
    for piece in pieces:
        place += len(piece)
        if any(char.isalpha() for char in piece):
            spans.append((open_start, place))
            open_start = place
        elif spans:
            spans[-1] = (spans[-1][0], place)
            open_start = place
    if open_start < len(text):
        spans.append((open_start, len(text)))
    return [trim(text, *span) for span in spans if text[span[0] : span[1]].strip()]


def _clause_cuts(
    text: str, start: int, end: int, english: bool, spaceless: bool
) -> Iterator[tuple[int, int]]:
    sentence = _Sentence(text, start, end)
    quoted = quoted_spans(text, start, end)
    begins = [begin for begin, _ in quoted]
    candidates = sorted(set(_mark_cuts(text, start, end, english)) | set(_joiner_cuts(sentence, english)))
    last = start
    for place, strength in candidates:
        before = bisect_left(begins, place) - 1
        if before >= 0 and place < quoted[before][1]:
            continue
        if not (sentence.is_enough(last, place, spaceless) and sentence.is_enough(place, end, spaceless)):
            continue
        if (
            english
            and strength > 1
            and not (sentence.has_verb(last, place) and _leads_clause(text, place, end))
        ):
            continue
        yield place, strength
        last = place


class _Sentence:
    """A sentence, read once: where its words are and which of them look like verbs.

    What is asked of a part of it takes the same time however long the part is.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self._pieces = [match.start() for match in _PIECE.finditer(text, start, end)]
        spans = [(word.start, word.end) for word in words_of(text, start, end)]
        self.begins = [begin for begin, _ in spans]
        self.words = [plain_word(text[begin:stop].lower()) for begin, stop in spans]

    @cached_property
    def marks(self) -> list[int]:
        """Where the marks are after which a clause may end."""
        return [match.start() for match in _MARKS.finditer(self.text, self.start, self.end)]

    @cached_property
    def _verbs_before(self) -> list[int]:
        """How many words before each one look like verbs between their neighbours."""
        return [0, *accumulate(is_verb(self.words, i) for i in range(len(self.words)))]

    def is_enough(self, start: int, end: int, spaceless: bool) -> bool:
        """Return whether a part is long enough for a clause."""
        if spaceless:
            first, last = trim(self.text, start, end)
            return last - first >= MIN_CHARACTERS
        first = bisect_left(self._pieces, start)
        pieces = bisect_left(self._pieces, end) - first
        cut = start < end and not self.text[start].isspace() and self._pieces[first : first + 1] != [start]
        return pieces + cut >= MIN_WORDS

    def has_verb(self, start: int, end: int) -> bool:
        """Return whether a part holds a finite verb, or begins with the verb of a coordinate clause."""
        first, stop = bisect_left(self.begins, start), bisect_left(self.begins, end)
        if first >= stop:
            return False
        opening = self.words[first]
        # A coordinate clause may begin with its verb: "floated to the bank".
        if is_participle(opening) or find_verb(["and", opening]) is not None or is_verb([opening], 0):
            return True
        inside = self._verbs_before[max(first + 1, stop - 1)] - self._verbs_before[first + 1]
        return inside > 0 or (stop - first > 1 and is_verb(self.words[stop - 2 : stop], 1))


def quoted_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans between quotation marks, in order; a mark that is never closed opens nothing."""
    spans: list[tuple[int, int]] = []
    unclosed: set[str] = set()
    place = start
    while (match := _QUOTE.search(text, place, end)) is not None:
        place = match.end()
        if match[0] in unclosed:
            continue
        stop = text.find(_QUOTES[match[0]], place, end)
        if stop < 0:
            unclosed.add(match[0])
        else:
            place = stop + 1
            spans.append((match.start(), place))
    return spans


def _mark_cuts(text: str, start: int, end: int, english: bool) -> Iterator[tuple[int, int]]:
    for match in _MARKS.finditer(text, start, end):
        mark = match[0][0]
        if match.end() >= end or (mark in ":,،" and match[0][-1:].isalnum()):
            continue
        if mark in ",:" and not match[0][-1].isspace():
            continue  # 10,000 and 7:30
        strength = 1 if mark in _STRONG else 2
        if english and strength == 2 and _is_list_item(text, match.end(), end):
            continue
        yield match.end(), strength


def _joiner_cuts(sentence: _Sentence, english: bool) -> Iterator[tuple[int, int]]:
    if not english:
        return
    text, start, end = sentence.text, sentence.start, sentence.end
    for match in phrase_pattern("connectives", "joiners").finditer(text, start, end):
        comparison = text.startswith((" could", " can"), match.end())  # as hard as she could
        after_word = match.start() > start and text[match.start() - 1] == " "
        if after_word and text[match.start() - 2] not in ",;:" and not comparison:
            yield match.start(), 3
    for match in _AFTER_AND.finditer(text, start, end):
        if match.start() > start and text[match.start() - 2] not in ",;:":
            mark = bisect_left(sentence.marks, match.end())
            first = bisect_left(sentence.begins, match.start())
            if sentence.begins[first : first + 1] != [match.start()]:
                continue  # rock-and-roll
            stop = first + 6
            if mark < len(sentence.marks):
                stop = min(stop, bisect_left(sentence.begins, sentence.marks[mark]))
            if find_verb(sentence.words[first:stop]) is not None:
                yield match.start(), 3


def _is_list_item(text: str, place: int, end: int) -> bool:
    """Whether the words up to the next comma hold neither a verb nor a clause word, as in a list."""
    ahead = lower_words(text, place, min(end, place + 120))[:8]
    clause_words = word_set("connectives", "splitters")
    if ahead[:1] and (ahead[0] in clause_words or any(map(is_participle, ahead[:2]))):
        return False
    return find_verb(ahead) is None


def _leads_clause(text: str, place: int, end: int) -> bool:
    ahead = lower_words(text, place, min(end, place + 160))[:14]
    return any(map(is_participle, ahead[:3])) or find_verb(ahead) is not None


def source_sentences(text: str, analysis: Json) -> list[str]:
    """Return the sentences of a source, in order, as ``analyze_story`` found them."""
    spans: dict[int, tuple[int, int]] = {}
    for segment in Analysis.from_json(analysis).segments:
        start, _ = spans.get(segment.sentence, (segment.start, 0))
        spans[segment.sentence] = (start, segment.end)
    return [text[start:end] for start, end in spans.values()]
