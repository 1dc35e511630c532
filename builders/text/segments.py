"""What the rules read off a story once, and every later stage uses: segments, and who is named.

Segments are sentences (by ``sentencex``), long ones cut into clauses. A model is shown them by number.
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced, unspaced_count

# -- Words of a text with their places, the English cue lists of the rules, and choices fixed by an id
#
# The cue lists are data files, loaded once, on first use.
#
# Verbs are found without a tagger: which word of a clause is its verb, and of what kind.

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

Kind = Literal["event", "speech", "stative"]

_ING_NOUNS = frozenset(
    ["spring", "string", "nothing", "something", "anything", "everything", "darling", "wedding"]
)


GUESSED_FROM, GUESSED_SURE = 40, 0.8
"""Letters that a text has at least, and the probability of its language, for it to be guessed."""


@cache
def language_detector() -> "LanguageIdentifier":
    """Return the detector of languages (py3langid, BSD-3-Clause), with probabilities."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def guess_language(text: str) -> str | None:
    """Return the language that a text is in; None where it is too short, or nothing is sure."""
    if len(text) < GUESSED_FROM:
        return None
    language, probability = language_detector().classify(text[:5000])
    return str(language) if probability >= GUESSED_SURE else None


def find_verb(words: Sequence[str]) -> int | None:
    """Return the index of the first finite verb among lower-case words, or None."""
    return next((i for i in range(len(words)) if is_verb(words, i)), None)


def is_verb(words: Sequence[str], i: int) -> bool:
    """Return whether the word at an index looks like a finite verb where it stands."""
    word = words[i]
    if word in word_set("verbs", "auxiliary"):
        return True
    if i == 0 or words[i - 1] in word_set("words", "determiners"):
        return False
    if word in lexicon("verbs")["irregular"] or word in word_set("verbs", "present"):
        return words[i - 1] not in ("of", "to", "with", "by")
    return _regular_past(word) and not (i + 1 < len(words) and words[i + 1] == "by")


def _regular_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in word_set("verbs", "not_verbs")


def is_participle(word: str) -> bool:
    """Return whether a word looks like a present participle; "king" and "morning" do not."""
    nouns = word_set("nouns", "animals", "people", "objects", "abstract", "titles")
    return len(word) > 4 and word.endswith("ing") and word not in nouns and word not in _ING_NOUNS


def verb_kind(words: Sequence[str], i: int) -> Kind:
    """Return what kind of verb stands at an index: an event, speech, or a state."""
    word = words[i]
    if word in word_set("verbs", "auxiliary"):
        ahead = [w for w in words[i + 1 : i + 4] if w not in ("not", "never", "n't", "been", "being")][:1]
        moving = any(w.endswith("ing") or w in word_set("verbs", "motion") or _regular_past(w) for w in ahead)
        return "event" if moving else "stative"
    if word in word_set("verbs", "speech"):
        return "speech"
    return "stative" if word in word_set("verbs", "stative") else "event"


@cache
def lexicon(name: str) -> dict[str, Any]:
    """Return one cue file, such as ``verbs``, as parsed JSON."""
    document: dict[str, Any] = json.loads((files(__package__) / f"{name}.json").read_text("utf-8"))
    return document


@cache
def word_set(name: str, *keys: str) -> frozenset[str]:
    """Return the words of one or more lists of a cue file as a set."""
    return frozenset(word for key in keys for word in lexicon(name)[key])


@cache
def phrase_pattern(name: str, key: str) -> re.Pattern[str]:
    """Return a pattern that finds any phrase of a list as whole words, the longest first, in any case."""
    return whole_words(lexicon(name)[key])


def whole_words(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the phrases as whole words, the longest first, in any case."""
    longest = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest)) + r")(?!\w)", re.IGNORECASE)


_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its lower-case form without a possessive ending, and its span."""

    lower: str
    start: int
    end: int
    possessive: bool


def words_of(text: str, start: int = 0, end: int | None = None) -> list[Word]:
    """Return the words between two places of a text, in order."""
    found = []
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        lower = match[0].lower().replace("’", "'")
        possessive = lower.endswith(("'s", "s'"))
        found.append(Word(lower.removesuffix("'s"), match.start(), match.end(), possessive))
    return found


def lower_words(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Return what :func:`words_of` finds, as lower-case words alone."""
    return [plain_word(word) if word[-1] == "s" else word for word in _WORD.findall(text[start:end].lower())]


def plain_word(word: str) -> str:
    """Return a lower-case word without a possessive ending."""
    return word.replace("’", "'").removesuffix("'s") if "s" in word[-1:] else word


def word_count(text: str) -> int:
    """Return the number of words; in a script without spaces, of its characters."""
    return unspaced_count(text) if is_unspaced(text) else len(text.split())


T = TypeVar("T")


def share(*parts: str) -> float:
    """Return a number from 0 to below 1 that is fixed by the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def pick(options: Sequence[T], *parts: str) -> T:
    """Return one of the options, fixed by the parts."""
    return options[int(share(*parts) * len(options))]


@dataclass(frozen=True)
class Renaming:
    """Puts a new name where a text uses the old one.

    Words are not cut (Leo is not in Leonard), a longer name of somebody else stays (the ferryman is not in
    Old Ferryman Tom), and a possessive keeps its form: Tomas' hat becomes Ana's hat. A name that begins with
    a small letter is found, and put, with a capital at the start of a sentence, too.
    """

    old: str  # the name until now
    new: str  # the name from now on
    others: Collection[str] = ()  # names of others in the same language, which are left alone

    def __call__(self, text: str) -> str:
        return self._pattern.sub(self._put, text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longer = (name for name in self.others if self.old in name and name != self.old)
        names = [*sorted(longer, key=len, reverse=True), self.old]
        listed = "|".join(re.escape(name) for name in names)
        capital = _capital(self.old)
        if capital != self.old:
            listed += f"|{re.escape(capital)}"
        if unspaced_count(self.old):
            return re.compile(f"(?P<name>{listed})(?P<own>)")
        return re.compile(rf"(?<!\w)(?P<name>{listed})(?!\w)(?:(?<=s)(?P<own>['’])(?=\s))?")

    def _put(self, match: re.Match[str]) -> str:
        written = match["name"]
        if written not in (self.old, _capital(self.old)):
            return match[0]
        name = self.new if written == self.old else _capital(self.new)
        apostrophe = match["own"] or ""
        before = match.string[: match.start()]
        quoted = bool(apostrophe) and before.endswith(("'", "‘"))
        return name + apostrophe + ("s" if apostrophe and not quoted and not name.endswith("s") else "")


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


# --


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
