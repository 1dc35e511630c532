"""Clauses of an English sentence that a small grammar reads whole; what it cannot read is left out.

A clause is a subject, a finite verb in the past and what follows, up to a mark or a word that begins
another clause. Everything in it must be accounted for: a second verb, a relative clause, a quotation or a
noun phrase that is cut off makes it unread. There is no parser model behind it, only word lists, so it
reads far fewer clauses than there are, and few that are none.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from .words import is_verb, lexicon, word_set

_TOKEN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\w\s]")
_CLOSING = {"“": "”", '"': '"', "«": "»", "‘": "’", "'": "'"}
_LONGEST_NAME = 5
QUOTE = "\x00"
"""The lower-case form of a token that stands for a whole quotation."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a mark, or a whole quotation; ``lower`` is without a possessive ending."""

    text: str
    lower: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word."""
        return self.text[0].isalnum()

    @property
    def possessive(self) -> bool:
        """Whether it ends in ``'s`` or ``s'``."""
        return self.text.lower().replace("’", "'").endswith("'s")


@dataclass(frozen=True, slots=True)
class Reading:
    """One clause as the grammar reads it.

    Attributes:
        link: how it hangs on what is before: ``and``, ``because``, ``so``, ..., or "" at a sentence's start.
        subject: its tokens; for a subject that is left out, those of the clause before.
        elided: whether the subject is left out, as after "and".
        adverbs: what stands between subject and verb.
        verb: the finite verb.
        rest: what follows the verb.
        degree: whether the verb's complement is "so hungry that ...", whose result comes next.
        lead: whether a time, place or manner stands before the subject.
        last: whether nothing of the sentence follows.
        shares: whether the next clause may leave out the same subject.
    """

    link: str
    subject: tuple[Token, ...]
    elided: bool
    adverbs: tuple[Token, ...]
    verb: Token
    rest: tuple[Token, ...]
    degree: bool = False
    lead: bool = False
    last: bool = False

    @property
    def start(self) -> int:
        """Where its own words begin in the text."""
        own = () if self.elided else self.subject
        return (*own, *self.adverbs, self.verb)[0].start

    @property
    def end(self) -> int:
        """Where its words end in the text."""
        return (self.verb, *self.rest)[-1].end


def words(*keys: str) -> frozenset[str]:
    """Return the words of one or more lists of the grammar."""
    return word_set("grammar", *keys)


def read_tokens(text: str) -> list[Token]:
    """Return the words and marks of a text, each quotation as one token."""
    tokens: list[Token] = []
    cursor, quotes = 0, iter([*_quotations(text), (len(text), len(text))])
    start, end = next(quotes)
    while match := _TOKEN.search(text, cursor):
        if match.start() >= start:
            if start == end:
                break
            tokens.append(Token(text[start:end], QUOTE, start, end))
            cursor = end
            start, end = next(quotes)
            continue
        lower = match[0].lower().replace("’", "'").removesuffix("'s")
        tokens.append(Token(match[0], lower, match.start(), match.end()))
        cursor = match.end()
    return tokens


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of quotations; one that is never closed goes on to the end."""
    cursor = 0
    while match := re.compile("[“\"«‘']").search(text, cursor):
        mark, start = match[0], match.start()
        single = mark in "‘'"
        if mark == "'" and not (re.match(r"'\w", text[start:]) and not text[start - 1 : start].isalnum()):
            cursor = match.end()
            continue
        closing = re.escape(_CLOSING[mark])
        pattern = rf"(?<=[^\w\s]){closing}(?!\w)" if single else closing
        end = re.compile(pattern).search(text, match.end())
        cursor = end.end() if end else len(text)
        yield start, cursor


@cache
def _irregular() -> frozenset[str]:
    return frozenset(lexicon("verbs")["irregular"]) | words("irregular")


def is_finite(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a word can be a finite verb in the past."""
    lower = tokens[i].lower
    if lower in _AUXILIARIES:
        return True
    ahead = tokens[i + 1].lower if i + 1 < len(tokens) else ""
    if lower in _irregular():
        return not (ahead == "by" and lower in words("participles"))
    return is_verb(["he", lower, ahead], 1) and lower.endswith("ed")


_MODALS = frozenset(("was", "were", "had", "did", "could", "would", "should", "might", "must"))
_AUXILIARIES = _MODALS | {f"{modal}n't" for modal in _MODALS}
_JOINERS = frozenset(("and", "but", "yet", "so", "because", "when", "while"))
_PERSONAL = frozenset(("he", "she", "it", "they"))
_ARTICLES = frozenset(("the", "a", "an", "his", "her", "their", "its"))


class SentenceReader:
    """Reads the clauses of one sentence from left to right.

    Args:
        tokens: of the sentence, its final mark included.
        names: the last words of the characters' names, in lower case.
    """

    def __init__(self, tokens: Sequence[Token], names: frozenset[str]) -> None:
        self._tokens, self._names = tokens, names
        self._size = len(tokens)

    def read(self) -> list[Reading | None]:
        """Return the clauses in order; None stands for one or more that could not be read."""
        clauses: list[Reading | None] = []
        i, degree, reported = 0, False, False
        while i < self._size:
            link, start, lead = self._opening(i)
            if degree:
                link = "result"
            before = clauses[-1] if clauses else None
            # What comes after "he thought that ... and" may be part of what he thought.
            reported = reported and link in ("", "and", "but")
            read = None if reported else self._clause(start, link, before)
            if read is None:
                degree, stop = False, self._next_mark(start)
                if self._has_verb(start, stop) and clauses[-1:] != [None]:
                    clauses.append(None)
                reported = reported or any(self._lower(k) in words("complements") for k in range(start, stop))
                i = stop
                continue
            clause, i = read
            degree = clause.degree
            rest = any(token.is_word or token.lower == QUOTE for token in self._tokens[i:])
            clauses.append(replace(clause, lead=lead, last=not rest))
        return clauses

    def _lower(self, i: int) -> str:
        return self._tokens[i].lower if 0 <= i < self._size else ""

    def _next_mark(self, i: int) -> int:
        """Return the place after which another clause can begin, beyond ``i``."""
        for k in range(i + 1, self._size):
            if self._lower(k) in ",;:—–." or self._lower(k) in _JOINERS:
                return k
        return self._size

    def _has_verb(self, start: int, stop: int) -> bool:
        return any(
            self._lower(k) == QUOTE or is_finite(self._tokens, k) for k in range(start, min(stop, self._size))
        )

    # What stands before a clause

    def _opening(self, i: int) -> tuple[str, int, bool]:
        """Return the words that join the clause, where the clause begins, and whether a phrase stands before.

        "so" without a mark or an "and" before it tells a purpose as often as a result: it is "so that".
        """
        link, lead, marked = "", False, i == 0
        while i < self._size:
            step, joined = self._joint(i, link, marked or bool(link))
            if joined:
                link = f"{link} {joined}".strip()
            elif self._lower(i) in (",", ";", ":", "—", "–", "-"):
                step, marked = 1, True
            elif not step:
                step = self._adverbial(i) - i
                lead = lead or (step > 0 and self._lower(i) not in words("adverbs"))
                if not step:
                    break
            i += step
        return link, i, lead

    def _joint(self, i: int, link: str, marked: bool) -> tuple[int, str]:
        """Return how many words join a clause here, and how they are called; ``(0, "")`` where none do."""
        if phrase := self._phrase(i, words("results"), 4):
            return phrase, "so"
        if self._lower(i) == "so" and self._opens_clause(i + 1):
            return 1, "so" if marked else "so that"
        if phrase := self._phrase(i, words("subordinators"), 3):
            joins = self._starts_clause(i + phrase)
            return (phrase, " ".join(self._lower(k) for k in range(i, i + phrase))) if joins else (0, "")
        return (1, self._lower(i)) if self._lower(i) in ("and", "but", "yet") and not link else (0, "")

    def _opens_clause(self, i: int) -> bool:
        return self._starts_clause(i) or self._starts_clause(self._adverbial(i))

    def _phrase(self, i: int, phrases: frozenset[str], longest: int) -> int:
        if self._lower(i) not in _first_words(phrases):
            return 0
        for size in range(longest, 0, -1):
            if " ".join(self._lower(k) for k in range(i, i + size)) in phrases:
                return size
        return 0

    def _adverbial(self, i: int) -> int:
        """Return where a time, place or manner before a clause ends; ``i`` where there is none."""
        size = self._phrase(i, _times(), 5) or self._point_in_time(i)
        if not size and (self._lower(i).endswith("ly") or self._lower(i) == "then"):
            size = 1
        if not size and self._lower(i) in words("prepositions"):
            end = self._phrase_end(i + 1)
            while end and self._lower(end) in ("of", "in", "with", "from", "on", "at"):
                end = self._phrase_end(end + 1)
            size = (end or i) - i
        stop = i + size
        return stop if size and (self._lower(stop) == "," or self._starts_clause(stop)) else i

    def _point_in_time(self, i: int) -> int:
        """Return the size of "one winter", "the next morning", "that same night", "some days later"."""
        k = i
        while k < i + 3 and self._lower(k) in words("time_openers"):
            k += 1
        if k == i or self._lower(k) not in words("time_nouns"):
            return 0
        return k + 1 + (self._lower(k + 1) in ("later", "after", "afterwards", "long", "ago")) - i

    def _phrase_end(self, i: int) -> int | None:
        """Return where a noun phrase after a preposition ends, with or without a determiner."""
        end = self._noun_phrase(i)
        bare = i < self._size and self._tokens[i].is_word and self._lower(i) not in words("blocked")
        return i + 1 if end is None and bare and not is_finite(self._tokens, i) else end

    def _starts_clause(self, i: int) -> bool:
        end = self._subject(i)
        return end is not None and self._verb(end) is not None

    # The parts of a clause

    def _noun_phrase(self, i: int) -> int | None:
        """Return where the noun phrase that begins at ``i`` ends, or None."""
        first = self._lower(i)
        if first in _PERSONAL:
            return i + 1
        if not (i < self._size and self._tokens[i].is_word) or first in words("vague"):
            return None
        if self._is_name(i):
            end = i + 1
            while self._is_name(end):
                end += 1
            return None if self._tokens[end - 1].possessive else end
        if first not in _ARTICLES | words("quantifiers"):
            return i + 1 if self._is_herd(i) else None
        return self._nouns(i + 1)

    def _is_herd(self, i: int) -> bool:
        """Whether a bare plural stands here, as in "Goats came"."""
        animate = self._lower(i) in word_set("nouns", "animals", "people")
        return animate and self._lower(i).endswith("s") and self._verb(i + 1) is not None

    def _is_name(self, i: int) -> bool:
        if i >= self._size or not self._tokens[i].text[0].isupper():
            return False
        return self._lower(i) in self._names or (
            self._lower(i + 1) in self._names and self._lower(i) in word_set("nouns", "titles")
            and self._tokens[i + 1].text[0].isupper()
        )  # fmt: skip

    def _nouns(self, i: int) -> int | None:
        function = word_set("words", "function") - words("quantifiers")
        known = word_set("nouns", "animals", "people", "objects", "abstract")
        k = i
        while k < min(self._size, i + _LONGEST_NAME) and self._tokens[k].is_word:
            lower = self._lower(k)
            if lower in function or lower in words("prepositions", "blocked") or lower.endswith("ly"):
                break
            verb = k > i and is_finite(self._tokens, k) and not self._tokens[k - 1].possessive
            if verb and (self._lower(k - 1) in known or self._lower(k + 1) not in known):
                break
            k += 1
        if k == i or self._tokens[k - 1].possessive or self._lower(k - 1) in words("vague", "quantifiers"):
            return None
        return k

    def _subject(self, i: int) -> int | None:
        """Return where the subject ends that begins at ``i``: a noun phrase, "A and B", "A in the B"."""
        end = self._noun_phrase(i)
        if end is None or self._lower(i) in _PERSONAL:
            return end
        if self._lower(end) == "and":
            other = self._noun_phrase(end + 1)
            if other is not None and self._lower(end + 1) not in _PERSONAL and self._verb(other) is not None:
                return other
        if self._lower(end) in ("of", "in", "with", "from", "at", "on", "under", "by", "near", "beside"):
            other = self._noun_phrase(end + 1)
            if other is not None and self._lower(end + 1) not in _PERSONAL and self._verb(other) is not None:
                return other
        return end

    def _verb(self, i: int) -> int | None:
        """Return the place of the finite verb after a subject that ends at ``i``, or None."""
        for k in range(i, min(self._size, i + 4)):
            if self._tokens[k].is_word and is_finite(self._tokens, k):
                return k
            if not (self._lower(k) in words("adverbs") or self._lower(k).endswith("ly")):
                return None
        return None

    def _clause(self, i: int, link: str, before: Reading | None) -> tuple[Reading, int] | None:
        end, elided = self._subject(i), False
        subject: tuple[Token, ...] = ()
        if end is None:
            if before is None or not self._may_share(i, link, before):
                return None
            end, elided, subject = i, True, before.subject
        else:
            subject = tuple(self._tokens[i:end])
        verb = self._verb(end)
        if verb is None or self._lower(i - 1) == QUOTE or self._lower(i - 2) == QUOTE:
            return None
        ending = self._rest(verb)
        if ending is None:
            return None
        stop, degree = ending
        clause = Reading(
            link, subject, elided, tuple(self._tokens[end:verb]), self._tokens[verb],
            tuple(self._tokens[verb + 1 : stop - degree]), degree,
        )  # fmt: skip
        return (clause, stop) if _is_whole(clause) else None

    def _may_share(self, i: int, link: str, before: Reading) -> bool:
        verb = self._verb(i)
        joined = link in ("and", "but", "yet", "so", "and so") or (not link and self._lower(i - 1) == ",")
        if verb is None or not joined:
            return False
        if before.link.split(" ")[-1] in words("subordinators") or before.link.endswith("that"):
            return False
        form = self._lower(verb)
        participle = form in words("participles") or form not in _irregular()
        if participle and form not in _AUXILIARIES:
            if before.verb.lower in _AUXILIARIES or before.verb.lower in words("linking"):
                return False
            if link == "" and self._lower(verb + 1) not in _ARTICLES | frozenset(("him", "them")):
                return False
        return True

    def _rest(self, verb: int) -> tuple[int, bool] | None:
        """Return where the clause ends and whether "so ... that" ends it; None where it cannot be read."""
        degree = False
        for k in range(verb + 1, self._size):
            lower = self._lower(k)
            if lower == "that" and degree and self._starts_clause(k + 1):
                return k + 1, True
            ends = self._ends_at(k) if not self._tokens[k].is_word else self._joins(k)
            if ends and lower not in ("if", "unless", "lest"):
                return None if degree else (k, False)
            if lower == "so" and self._tokens[k].is_word:
                degree = True
            elif not self._continues(k):
                return None
        return None if degree else (self._size, False)

    def _continues(self, k: int) -> bool:
        """Whether a word can stand inside of a clause after its verb."""
        if not self._tokens[k].is_word or self._lower(k) in ("but", "yet"):
            return False
        return self._lower(k) not in words("blocked") and not self._is_second_verb(k)

    def _joins(self, k: int) -> bool:
        """Whether a word joins another clause to the one before it."""
        lower, size = self._lower(k), self._phrase(k, words("subordinators"), 3)
        if lower in ("and", "but", "yet", "so"):
            clause = self._starts_clause(k + 1) or self._opens_later(k + 1)
            return clause or (lower != "so" and self._verb(k + 1) is not None)
        if lower == "as" and size == 1:
            compared = {"as", "so", "such", "same"} & {self._lower(n) for n in range(max(0, k - 4), k)}
            if compared:
                return False
        return size > 0 and lower != "for" and self._starts_clause(k + size)

    def _opens_later(self, k: int) -> bool:
        """Whether a phrase and then a clause follow, as in "and at last the crow drank"."""
        _, start, _ = self._opening(k)
        return start > k and (self._starts_clause(start) or self._verb(start) is not None)

    def _ends_at(self, k: int) -> bool:
        """Whether a mark ends a clause: what follows must begin something of its own."""
        if self._lower(k) not in (",", "—", "–", ":", "("):
            return True
        follower = self._lower(k + 1)
        if self._lower(k) in (":", "(") or follower in (QUOTE, ""):
            return False
        if follower in ("and", "but", "yet", "so", "then"):
            _, start, _ = self._opening(k + 1)
            continues = self._verb(start) is not None or self._lower(start).endswith("ing")
            return continues or self._starts_clause(start)
        if follower in ("who", "which", "whose", "where", "to", "for", "with", "not", "without"):
            return True
        _, start, _ = self._opening(k + 1)
        return (
            self._starts_clause(start)
            or is_finite(self._tokens, k + 1)
            or (follower.endswith("ing") and len(follower) > 4)
        )

    def _is_second_verb(self, k: int) -> bool:
        if not is_finite(self._tokens, k):
            return False
        before, lower = self._lower(k - 1), self._lower(k)
        function = word_set("words", "function") | words("prepositions")
        modifies = k + 1 < self._size and self._tokens[k + 1].is_word and self._lower(k + 1) not in function
        determined = word_set("words", "determiners") | words("prepositions")
        participle = lower.endswith("ed") or lower in words("participles")
        noun = modifies or lower in word_set("nouns", "objects", "abstract")
        if before in determined and (noun or before not in words("prepositions")):
            return lower in _AUXILIARIES
        if before in _AUXILIARIES | frozenset(("not", "been", "being", "be", "to", "got")):
            return False
        passive = {self._lower(n) for n in range(max(0, k - 3), k)} & (_AUXILIARIES | {"been"})
        if participle and passive and lower not in _AUXILIARIES:
            return False
        return not (lower.endswith("ed") and modifies and self._lower(k - 2) in determined)


@cache
def _first_words(phrases: frozenset[str]) -> frozenset[str]:
    return frozenset(phrase.partition(" ")[0] for phrase in phrases)


@cache
def _times() -> frozenset[str]:
    table = lexicon("connectives")
    phrases = {*table["time"], *table["leading"]} - words("subordinators") - words("results")
    return frozenset(phrases - {"and", "but", "so", "yet", "or", "and so", "that is why", "so when"})


def _is_whole(clause: Reading) -> bool:
    """Whether nothing is missing at the end of a clause."""
    verb, rest = clause.verb.lower, clause.rest
    if not rest:
        needy = word_set("verbs", "speech", "auxiliary") | words("cognition", "transitive", "linking")
        return verb not in needy or verb in words("sounds")
    last = rest[-1].lower
    if last in words("dangling") and not (last == "her" and verb not in _AUXILIARIES):
        return False
    if last in words("prepositions") and last not in words("particles"):
        return False
    return not (len(rest) == 1 and last in _AUXILIARIES)


def sentence_groups(tokens: Sequence[Token], starts: Sequence[int]) -> list[list[Token]]:
    """Return the tokens of each sentence, given where the sentences start."""
    groups: list[list[Token]] = [[] for _ in starts]
    for token in tokens:
        groups[max(0, bisect_right(starts, token.start) - 1)].append(token)
    return groups
