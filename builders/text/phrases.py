"""Phrases of an English sentence: noun phrases, verbs, and the parts that may follow a verb.

Which kinds of word a word can be comes from a lexicon. Where two readings are possible that matter, there is
no phrase: what is not surely one is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from .forms import ADJECTIVE, ADVERB, NOUN, VERB, can_be, is_form, is_gerund, is_participle, kinds
from .tokens import AUXILIARIES, QUOTE, Token, is_finite, words
from .words import base_form, lexicon, word_set

_LONGEST_NAME = 5
PERSONAL = frozenset(("he", "she", "it", "they"))
ARTICLES = frozenset(("the", "a", "an", "his", "her", "their", "its"))
_MEANT = frozenset(("him", "her", "it", "them"))
_DESCRIBING = frozenset(("adjective", "gerund"))
_SOME = frozenset(("some", "several", "another", "many"))
_REFLEXIVE = frozenset(("himself", "herself", "itself", "themselves"))
_ADVERBS = frozenset(("not", "home", "together", "alone", "there", "here"))
_PARTICLES = frozenset(("away", "back", "out", "together", "there", "alone"))
_AROUND = ("of", "in", "with", "from", "at", "on", "under", "by", "near", "beside")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what follows a verb.

    Attributes:
        kind: ``verb`` after an auxiliary, ``object``, ``phrasal`` (an object after ``up``, ``out``, ...),
            ``place`` (any preposition and its noun phrase), ``particle``, ``adverb``, ``time``,
            ``adjective``, ``degree`` (so + adjective), ``infinitive`` or ``gerund``, each without what
            follows these.
        start, end: places of its first and after its last token in the sentence.
    """

    kind: str
    start: int
    end: int

    def moved(self, by: int) -> "Part":
        """Return it with its places moved."""
        return Part(self.kind, self.start + by, self.end + by)


class Phrases:
    """The phrases of one sentence, by the place at which they begin.

    Args:
        tokens: of the sentence, its final mark included.
        names: the last words of the characters' names, in lower case.
    """

    def __init__(self, tokens: Sequence[Token], names: frozenset[str]) -> None:
        self._tokens, self._names = tokens, names
        self.size = len(tokens)

    def lower(self, i: int) -> str:
        """Return a word in lower case, or "" outside of the sentence."""
        return self._tokens[i].lower if 0 <= i < self.size else ""

    def is_word(self, i: int) -> bool:
        """Return whether a word stands at a place, not a mark or a quotation."""
        return 0 <= i < self.size and self._tokens[i].is_word and self._tokens[i].lower != QUOTE

    def subject(self, i: int) -> int | None:
        """Return where the subject ends that begins at ``i``: a noun phrase, "A and B", "A in the B"."""
        end = self.noun_phrase(i)
        if end is None or self.lower(i) in PERSONAL or self.verb(end) is not None:
            return end
        if self.lower(end) == "and" or self.lower(end) in _AROUND:
            other = self.noun_phrase(end + 1)
            if other is not None and self.lower(end + 1) not in PERSONAL and self.verb(other) is not None:
                return other
        return end

    def after_insertion(self, i: int) -> int:
        """Return where a verb may stand after a subject that ends at ``i`` and, say, ", who was last,"."""
        opener = self.lower(i + 1)
        inserts = opener in ("who", "which", "whose", "being", "however", "meanwhile") or is_gerund(opener)
        if self.lower(i) != "," or not (inserts or is_participle(opener) or self._is_name(i + 1)):
            return i
        marks = [k for k in range(i + 1, min(self.size, i + 20)) if not self.is_word(k)]
        if not marks or self.lower(marks[0]) != "," or not is_finite(self._tokens, marks[0] + 1):
            return i
        return marks[0] + 1

    def verb(self, i: int) -> int | None:
        """Return the place of the finite verb after a subject that ends at ``i``, or None."""
        for k in range(i, min(self.size, i + 4)):
            if self.is_word(k) and is_finite(self._tokens, k):
                return k
            if not (self.lower(k) in words("adverbs") or self.lower(k).endswith("ly")):
                return None
        return None

    def starts_clause(self, i: int) -> bool:
        """Return whether a subject and its finite verb begin at a place."""
        end = self.subject(i)
        return end is not None and self.verb(end) is not None

    def noun_phrase(self, i: int, *, bare: bool = False) -> int | None:
        """Return where the noun phrase that begins at ``i`` ends, or None.

        Args:
            i: where it begins.
            bare: whether it may stand without an article, as after a verb or a preposition.
        """
        first = self.lower(i)
        if not self.is_word(i) or (first in words("vague") and not (bare and first in _SOME)):
            return None
        if first in PERSONAL or (bare and first in _MEANT and self._nouns(i + 1) is None):
            return None if bare and first in ("he", "she", "they") else i + 1
        if self._is_name(i):
            end = i + 1
            while self._is_name(end):
                end += 1
            return self._nouns(end) if self._tokens[end - 1].possessive else end
        if first in ARTICLES or first in words("quantifiers") or (bare and first in _SOME):
            return self._nouns(i + 1)
        if bare:
            return None if is_gerund(first) else self._nouns(i)
        return i + 1 if self._is_herd(i) or self._is_mass(i) else None

    def _is_mass(self, i: int) -> bool:
        """Whether a noun without an article opens the sentence and has its verb, as in "Dust settled"."""
        alone = can_be(self.lower(i), NOUN) and not kinds(self.lower(i)) & {ADVERB, ADJECTIVE}
        sure = kinds(self.lower(i + 1)) == {VERB} or self.lower(i + 1) in AUXILIARIES
        listed = words("prepositions", "subordinators", "time_nouns")
        function = self.lower(i) in word_set("words", "function") or self.lower(i) in listed
        return i == 0 and alone and sure and not function and self.verb(1) == 1

    def _is_herd(self, i: int) -> bool:
        """Whether a bare plural stands here, as in "Goats came"."""
        animate = self.lower(i) in word_set("nouns", "animals", "people")
        return animate and self.lower(i).endswith("s") and self.verb(i + 1) is not None

    def _is_name(self, i: int) -> bool:
        if not self.is_word(i) or not self._tokens[i].text[0].isupper():
            return False
        return self.lower(i) in self._names or (
            self.lower(i + 1) in self._names and self.lower(i) in word_set("nouns", "titles")
            and self._tokens[i + 1].text[0].isupper()
        )  # fmt: skip

    def _nouns(self, i: int) -> int | None:
        """Return where adjectives and nouns end that begin at ``i``; the last one must be a noun."""
        k = i
        while k < min(self.size, i + _LONGEST_NAME) and self._is_nominal(k):
            if self.lower(k) == "next" and self.lower(k + 1) == "to":
                break
            after_noun = k > i and not self._tokens[k - 1].possessive and self._is_noun(k - 1)
            if after_noun and self._ends_noun(k):
                break
            k += 1
        last = self.lower(k - 1)
        if k == i or (self._is_nominal(k) and k - i >= _LONGEST_NAME):
            return None
        if self._tokens[k - 1].possessive or last in words("vague", "quantifiers"):
            return None
        if k - i > 1 and self._may_modify(k - 1) and self._is_noun(k - 2):
            if can_be(self.lower(k - 2), ADJECTIVE) and k - i == 2:
                return k
            k -= 1
        return k if self._is_noun(k - 1) else None

    def _is_nominal(self, k: int) -> bool:
        lower = self.lower(k)
        if not self.is_word(k) or lower in _no_nominals():
            return False
        if lower.endswith("ly") and not can_be(lower, ADJECTIVE):
            return False
        own = kinds(lower)
        participle = is_participle(lower) or is_gerund(lower)
        return not own or bool(own & {NOUN, ADJECTIVE}) or participle or "-" in lower

    def _is_noun(self, k: int) -> bool:
        lower = self.lower(k)
        return can_be(lower, NOUN) or not kinds(lower) or lower in _known() or lower in self._names

    def _ends_noun(self, k: int) -> bool:
        """Whether a word after a noun is a verb or a participle rather than another noun."""
        following = self._is_nominal(k + 1) and not is_finite(self._tokens, k + 1)
        if is_finite(self._tokens, k):
            return not (following and self.lower(k - 1) not in _known())
        return is_gerund(self.lower(k)) and not following

    def _may_modify(self, k: int) -> bool:
        """Whether the last word after a noun may say how something became: "painted his mule white"."""
        lower = self.lower(k)
        listed = _known() | word_set("words", "ambiguous")
        return can_be(lower, ADJECTIVE) and lower not in listed and lower not in self._names

    def point_in_time(self, i: int) -> int:
        """Return the size of "one winter", "the next morning", "that same night", "some days later"."""
        k = i
        while k < i + 3 and self.lower(k) in words("time_openers"):
            k += 1
        if k == i or self.lower(k) not in words("time_nouns"):
            return 0
        return k + 1 + (self.lower(k + 1) in ("later", "after", "afterwards", "long", "ago")) - i

    # What follows a verb

    def part(self, k: int, verb: int, before: Sequence[Part]) -> Part | None:
        """Return the part of a clause that begins at ``k``, or None where it is not surely one.

        Args:
            k: where it begins.
            verb: place of the clause's finite verb.
            before: the parts between the verb and this one.
        """
        if not self.is_word(k):
            return None
        if self._is_verb_part(k, verb, before):
            return Part("verb", k, k + 1)
        if size := self.point_in_time(k):
            return Part("time", k, k + size)
        part = self._infinitive(k) or self._prepositional(k, verb)
        part = part or self._adjective(k, verb, before) or self._adverb(k)
        if part is not None:
            return part
        end = self._whole_noun_phrase(k)
        objects = sum(part.kind in ("object", "phrasal") for part in before)
        if end is not None and objects < 2:
            return Part("object", k, end)
        return Part("gerund", k, k + 1) if is_gerund(self.lower(k)) else None

    def _is_verb_part(self, k: int, verb: int, before: Sequence[Part]) -> bool:
        lower, head = self.lower(k), self.lower(verb).removesuffix("n't")
        chain = [part for part in before if part.kind != "adverb"]
        group = chain[-1:] and chain[-1].kind in ("verb", "infinitive") and self.lower(chain[-1].end - 1)
        if not chain and head not in AUXILIARIES:
            return False
        opener = head if not chain else group
        if opener in ("was", "were", "be", "been", "being", "got"):
            noun = self._is_nominal(k + 1) and self.lower(k + 1) not in words("particles")
            return is_gerund(lower) or (is_participle(lower) and not noun) or lower == "being"
        if opener in ("had", "have"):
            return is_participle(lower) or lower == "been"
        return (
            not chain
            and opener not in ("was", "were", "had")
            and (is_form(lower, "VB") or lower in ("be", "have"))
        )

    def _infinitive(self, k: int) -> Part | None:
        following = self.lower(k + 1)
        verbal = is_form(following, "VB") or following in ("be", "have", "do")
        if self.lower(k) != "to" or not verbal:
            return None
        return Part("infinitive", k, k + 2)

    def _prepositional(self, k: int, verb: int) -> Part | None:
        lower, start = self.lower(k), k
        particle = lower in words("particles") | _PARTICLES
        if lower == "next" and self.lower(k + 1) == "to":
            lower, k = "to", k + 1
        if lower == "out" and self.lower(k + 1) == "of":
            lower, k = "of", k + 1
        if lower in words("prepositions"):
            end = self._whole_noun_phrase(k + 1)
            if end is not None:
                moves = base_form(self.lower(verb)) in words("walking")
                shifts = lower in ("up", "down", "off", "over") and not moves
                return Part("phrasal" if shifts else "place", start, end)
            if is_gerund(self.lower(k + 1)) and not particle:
                return Part("gerund", start, k + 2)
        if lower == "out" and (end := self._whole_noun_phrase(k + 1)) is not None:
            return Part("phrasal", start, end)
        return Part("particle", k, k + 1) if particle and k == start else None

    def join(self, part: Part, k: int, verb: int) -> Part | None:
        """Return a part with what "and" joins to it, which begins at ``k``: "a net and a drum"."""
        end = self._whole_noun_phrase(k)
        other = None if end is None else Part("object", k, end)
        bare = not any(self.lower(n) in ARTICLES | words("quantifiers") for n in (part.start + 1, k))
        if (
            other is None
            or part.kind not in ("object", "phrasal", "place")
            or (part.kind == "place" and not bare)
        ):
            other = self.part(k, verb, [part])
            if other is None or (
                other.kind != part.kind and {other.kind, part.kind} != {"adjective", "gerund"}
            ):
                return None
        return Part(part.kind, part.start, other.end)

    def _whole_noun_phrase(self, k: int) -> int | None:
        """Return where a noun phrase with what it is part of ends: "the key of the shop"."""
        if self.lower(k) in _REFLEXIVE:
            return k + 1
        end = self.noun_phrase(k, bare=True)
        while end is not None and self.lower(end) == "of":
            end = self.noun_phrase(end + 1, bare=True)
        return end

    def _adjective(self, k: int, verb: int, before: Sequence[Part]) -> Part | None:
        start = k
        while self.lower(k) in words("degree"):
            k += 1
        if not (self.is_word(k) and (can_be(self.lower(k), ADJECTIVE) or self._is_feeling(k))):
            return None
        if self._is_nominal(k + 1) or self.lower(k) in word_set("words", "function"):
            return None
        links = self.lower(verb) in words("linking", "resulting") and all(
            part.kind in ("adverb", "verb") for part in before
        )
        apart = not self._is_noun(k) or (before[-1:] and before[-1].kind == "object")
        return Part("adjective", start, k + 1) if links or apart else None

    def _is_feeling(self, k: int) -> bool:
        return self.lower(k) in lexicon("emotions")["adjectives"]

    def _adverb(self, k: int) -> Part | None:
        start, lower = k, self.lower(k)
        while self.lower(k) in words("degree") and self.is_word(k + 1):
            k += 1
        own = kinds(self.lower(k))
        only = ADVERB in own and not own & {NOUN, ADJECTIVE}
        listed = lower in (words("adverbs") | _ADVERBS) - {"at", "all", "both"}
        if listed and k == start:
            return Part("adverb", k, k + 1)
        return Part("adverb", start, k + 1) if only and self.lower(k) not in words("blocked") else None


@cache
def _no_nominals() -> frozenset[str]:
    """Words that are never part of a noun phrase after its article."""
    return word_set("words", "function") - words("quantifiers") | words("prepositions", "blocked")


def _known() -> frozenset[str]:
    return word_set("nouns", "animals", "people", "objects", "abstract")
