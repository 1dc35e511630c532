"""Cutting a text into sentences (by ``sentencex``) and long sentences into clauses."""

import re
from collections.abc import Iterator
from functools import cache

from ....schemas.text import is_unspaced
from .analysis import Segment
from .lexicon import lexicon, phrase_pattern, whole_words, word_set
from .verbs import find_verb, is_participle
from .words import lower_words

MIN_WORDS = 3
MIN_CHARACTERS = 4
# A clause may end after these; the ideographic list comma is no clause boundary.
_MARKS = re.compile(r"[;:؛；：—–]+[\"'”’»]?\s*|[,،，]+[\"'”’»]?\s*")
_STRONG = frozenset(";:؛；：—–")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|«[^»]*»")
_AFTER_AND = whole_words(["and", "but", "so", "yet"])


def segment_text(text: str, language: str, english: bool) -> tuple[Segment, ...]:
    """Return the sentences of a normalised text, cut into clauses, in order.

    The segments cover the text but for white space. Clauses have at least three words, or four
    characters in a script without spaces.
    """
    spaceless = is_unspaced(text)
    segments: list[Segment] = []
    for number, (start, end) in enumerate(sentence_spans(text, language)):
        cuts = [(start, 0), *_clause_cuts(text, start, end, english, spaceless)]
        ends = [place for place, _ in cuts[1:]] + [end]
        for (begin, strength), stop in zip(cuts, ends, strict=True):
            segments.append(Segment(*trim(text, begin, stop), number, strength))
    return tuple(segments)


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
    quoted = [match.span() for match in _QUOTED.finditer(text, start, end)]
    candidates = sorted(
        set(_mark_cuts(text, start, end, english)) | set(_joiner_cuts(text, start, end, english))
    )
    last = start
    for place, strength in candidates:
        if any(begin < place < stop for begin, stop in quoted):
            continue
        if not (_enough(text, last, place, spaceless) and _enough(text, place, end, spaceless)):
            continue
        if (
            english
            and strength > 1
            and not (_has_verb(text, last, place) and _leads_clause(text, place, end))
        ):
            continue
        yield place, strength
        last = place


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


def _joiner_cuts(text: str, start: int, end: int, english: bool) -> Iterator[tuple[int, int]]:
    if not english:
        return
    for match in phrase_pattern("connectives", "joiners").finditer(text, start, end):
        comparison = text.startswith((" could", " can"), match.end())  # as hard as she could
        after_word = match.start() > start and text[match.start() - 1] == " "
        if after_word and text[match.start() - 2] not in ",;:" and not comparison:
            yield match.start(), 3
    for match in _AFTER_AND.finditer(text, start, end):
        if match.start() > start and text[match.start() - 2] not in ",;:":
            stop = _MARKS.search(text, match.end(), end)
            ahead = lower_words(text, match.start(), stop.start() if stop else end)
            if find_verb(ahead[:6]) is not None:
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


def _has_verb(text: str, start: int, end: int) -> bool:
    words = lower_words(text, start, end)
    # A coordinate clause may begin with its verb: "floated to the bank".
    headless = bool(words) and (is_participle(words[0]) or find_verb(["and", words[0]]) is not None)
    return headless or find_verb(words) is not None


def _enough(text: str, start: int, end: int, spaceless: bool) -> bool:
    if spaceless:
        return len(text[start:end].strip()) >= MIN_CHARACTERS
    return len(text[start:end].split()) >= MIN_WORDS


def strip_lead(clause: str) -> str:
    """Return an English clause without its leading connectives and the punctuation at its ends.

    A connective is dropped only where at least two words stay; one that can be a preposition ("after a
    mile he stopped") only where a clause of its own follows.
    """
    core = clause.strip(" ,;:.!?—–-…")
    while True:
        match = _lead().match(core)
        rest = core[match.end() :].lstrip(" ,;:—–-") if match else ""
        if len(rest.split()) < 2 or not match:
            return core
        if match[0].lower() in word_set("connectives", "leading_before_clause") and not _is_clause(rest):
            return core
        core = rest


@cache
def _lead() -> re.Pattern[str]:
    table = lexicon("connectives")
    pattern = whole_words([*table["leading"], *table["leading_before_clause"]]).pattern
    return re.compile(pattern + r"(?=[ ,])", re.IGNORECASE)


def _is_clause(rest: str) -> bool:
    words = lower_words(rest)[:5]
    verb = find_verb(words)
    if verb is None or words[0] in ("then", "that", "this"):
        return False
    later = words[1:verb]
    return not any(
        word in word_set("words", "determiners", "pronouns") or word in ("it", "i", "we", "you")
        for word in later
    )
