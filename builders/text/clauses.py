"""Clauses of an English sentence that a small grammar reads whole; what it cannot read is left out.

A clause is a subject, a finite verb in the past and what follows, up to a mark or a word that begins
another clause. Every word in it must be part of a phrase: a second verb, a relative clause, a quotation or a
noun phrase that is cut off makes it unread. There is no parser model behind it, only word lists and a
lexicon, so it reads fewer clauses than there are, and few that are none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from .phrases import ARTICLES, Part, Phrases
from .tokens import AUXILIARIES, QUOTE, Token, irregular_forms, is_finite, words
from .words import lexicon, word_set


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
        parts: the parts of ``rest``, with places in it.
        cut: whether more that belongs to it may follow after a comma: "ran down the lane, over the fence".
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
    parts: tuple[Part, ...] = ()
    cut: bool = False

    @property
    def start(self) -> int:
        """Where its own words begin in the text."""
        own = () if self.elided else self.subject
        return (*own, *self.adverbs, self.verb)[0].start

    @property
    def end(self) -> int:
        """Where its words end in the text."""
        return (self.verb, *self.rest)[-1].end


__all__ = ["Reading", "SentenceReader", "Token", "words"]
_CUTS = frozenset(
    ("who", "which", "whose", "where", "not", "like", "as", "though", "although", "while", "because")
)
_JOINERS = frozenset(("and", "but", "yet", "so", "because", "when", "while"))


class SentenceReader:
    """Reads the clauses of one sentence from left to right.

    Args:
        tokens: of the sentence, its final mark included.
        names: the last words of the characters' names, in lower case.
    """

    def __init__(self, tokens: Sequence[Token], names: frozenset[str]) -> None:
        self._tokens, self._size = tokens, len(tokens)
        self._phrases = Phrases(tokens, names)
        self._stub: Reading | None = None

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
            cut = self._lower(i) in (",", ":", "—", "–") and not self._is_next_clause(i)
            clauses.append(replace(clause, lead=lead, last=not rest, cut=cut))
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

    def _is_next_clause(self, mark: int) -> bool:
        _, start, _ = self._opening(mark + 1)
        return self._phrases.starts_clause(start) or self._phrases.verb(start) is not None

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
            joins = self._phrases.starts_clause(i + phrase)
            return (phrase, " ".join(self._lower(k) for k in range(i, i + phrase))) if joins else (0, "")
        return (1, self._lower(i)) if self._lower(i) in ("and", "but", "yet") and not link else (0, "")

    def _opens_clause(self, i: int) -> bool:
        return self._phrases.starts_clause(i) or self._phrases.starts_clause(self._adverbial(i))

    def _phrase(self, i: int, phrases: frozenset[str], longest: int) -> int:
        if self._lower(i) not in _first_words(phrases):
            return 0
        for size in range(longest, 0, -1):
            if " ".join(self._lower(k) for k in range(i, i + size)) in phrases:
                return size
        return 0

    def _adverbial(self, i: int) -> int:
        """Return where a time, place or manner before a clause ends; ``i`` where there is none."""
        size = self._phrase(i, _times(), 5) or self._phrases.point_in_time(i)
        if not size and (self._lower(i).endswith("ly") or self._lower(i) == "then"):
            size = 1
        if not size and self._lower(i) in words("prepositions"):
            end = self._phrase_end(i + 1)
            while end and self._lower(end) in ("of", "in", "with", "from", "on", "at"):
                end = self._phrase_end(end + 1)
            size = (end or i) - i
        stop = i + size
        return stop if size and (self._lower(stop) == "," or self._phrases.starts_clause(stop)) else i

    def _phrase_end(self, i: int) -> int | None:
        """Return where a noun phrase after a preposition ends, with or without a determiner."""
        end = self._phrases.noun_phrase(i)
        bare = i < self._size and self._tokens[i].is_word and self._lower(i) not in words("blocked")
        return i + 1 if end is None and bare and not is_finite(self._tokens, i) else end

    # The parts of a clause

    def _clause(self, i: int, link: str, before: Reading | None) -> tuple[Reading, int] | None:
        end, elided = self._phrases.subject(i), False
        subject: tuple[Token, ...] = ()
        if end is None:
            before = before or self._stub_for(i)
            if before is None or not self._may_share(i, link, before):
                return None
            end, elided, subject = i, True, before.subject
        else:
            subject = tuple(self._tokens[i:end])
        verb = self._phrases.verb(end if elided else self._phrases.after_insertion(end))
        if not elided and (
            self._lower(end - 1) in words("time_nouns") or self._may_be_listed(i, link, before)
        ):
            return None
        if verb is None or self._lower(i - 1) == QUOTE or self._lower(i - 2) == QUOTE:
            return None
        ending = self._rest(verb)
        if ending is None:
            if subject:
                self._stub = Reading(link, subject, elided, (), self._tokens[verb], ())
            return None
        stop, degree, parts = ending
        clause = Reading(
            link, subject, elided, tuple(self._between(end, verb)), self._tokens[verb],
            tuple(self._tokens[verb + 1 : stop - degree]), degree,
            parts=tuple(part.moved(-verb - 1) for part in parts),
        )  # fmt: skip
        return (clause, stop) if _is_whole(clause) else None

    def _stub_for(self, i: int) -> Reading | None:
        """Return the last unread clause if its subject was read and no other clause begins after its verb."""
        if self._stub is None:
            return None
        after = [
            k
            for k in range(self._size)
            if self._stub.verb.end <= self._tokens[k].start < self._tokens[i - 1].start
        ]
        barred = words("blocked", "subordinators", "complements") | {QUOTE, ";", ":"}
        clear = not any(self._lower(k) in barred or is_finite(self._tokens, k) for k in after)
        return self._stub if clear else None

    def _may_be_listed(self, i: int, link: str, before: Reading | None) -> bool:
        """Whether a subject may be the end of a list, or say who somebody is: "His mate, a sailor, ..."."""
        if before is not None or link not in ("", "and") or i < 2:
            return False
        mark = i - 1 if link == "" else i - 2
        if self._lower(mark) not in (",", "and") and link == "":
            return False
        first = max((k + 1 for k in range(mark) if self._lower(k) in ";:—–."), default=0)
        return not any(is_finite(self._tokens, k) for k in range(first, mark)) and not self._is_lead(
            first, mark
        )

    def _is_lead(self, first: int, mark: int) -> bool:
        """Whether a phrase such as "In the morning," fills a stretch before a clause."""
        _, start, _ = self._opening(first)
        return start > mark

    def _between(self, end: int, verb: int) -> Sequence[Token]:
        """Return the adverbs between subject and verb, without an insertion."""
        commas = [k for k in range(end, verb) if self._lower(k) == ","]
        return self._tokens[commas[-1] + 1 if commas else end : verb]

    def _may_share(self, i: int, link: str, before: Reading) -> bool:
        verb = self._phrases.verb(i)
        joined = link in ("and", "but", "yet", "so", "and so") or (not link and self._lower(i - 1) == ",")
        if verb is None or not joined:
            return False
        if before.link.split(" ")[-1] in words("subordinators") or before.link.endswith("that"):
            return False
        form = self._lower(verb)
        participle = form in words("participles") or form not in irregular_forms()
        if participle and form not in AUXILIARIES:
            if before.verb.lower in AUXILIARIES or before.verb.lower in words("linking"):
                return False
            if link == "" and self._lower(verb + 1) not in ARTICLES | frozenset(("him", "them")):
                return False
        return True

    def _rest(self, verb: int) -> tuple[int, bool, tuple[Part, ...]] | None:
        """Return where the clause ends, whether "so ... that" ends it, and its parts; None if unread."""
        k, parts = verb + 1, list[Part]()
        while k < self._size:
            if stop := self._degree(k):
                return stop, True, (*parts, Part("degree", k, stop - 1))
            mark = not self._tokens[k].is_word
            if self._lower(k) == "and" and not self._joins(k):
                part = self._phrases.join(parts[-1], k + 1, verb) if parts else None
                if part is None:
                    return None
                parts[-1], k = part, part.end
                continue
            if self._ends_at(k) if mark else self._joins(k):
                conditional = self._lower(k) in ("if", "unless", "lest")
                return None if conditional else (k, False, tuple(parts))
            part = None if mark else self._phrases.part(k, verb, parts)
            if part is None:
                return None
            parts.append(part)
            k = part.end
        return self._size, False, tuple(parts)

    def _degree(self, k: int) -> int:
        """Return where the result of "so hungry that it ate" begins, or 0."""
        if self._lower(k) != "so":
            return 0
        for n in range(k + 2, min(self._size, k + 7)):
            if self._lower(n) == "that":
                return n + 1 if self._phrases.starts_clause(n + 1) else 0
            if not self._phrases.is_word(n):
                return 0
        return 0

    def _joins(self, k: int) -> bool:
        """Whether a word joins another clause to the one before it."""
        lower, size = self._lower(k), self._phrase(k, words("subordinators"), 3)
        if lower in ("and", "but", "yet", "so"):
            clause = self._phrases.starts_clause(k + 1) or self._opens_later(k + 1)
            return clause or (lower != "so" and self._phrases.verb(k + 1) is not None)
        if lower == "as" and size == 1:
            compared = {"as", "so", "such", "same"} & {self._lower(n) for n in range(max(0, k - 4), k)}
            if compared:
                return False
        return size > 0 and lower != "for" and self._phrases.starts_clause(k + size)

    def _opens_later(self, k: int) -> bool:
        """Whether a phrase and then a clause follow, as in "and at last the crow drank"."""
        _, start, _ = self._opening(k)
        return start > k and (self._phrases.starts_clause(start) or self._phrases.verb(start) is not None)

    def _ends_at(self, k: int) -> bool:
        """Whether a mark ends a clause: what follows must begin something of its own."""
        if self._lower(k) not in (",", "—", "–", ":", "("):
            return True
        follower = self._lower(k + 1)
        if self._lower(k) == "(" or follower in (QUOTE, ""):
            return False
        if self._lower(k) == ":":
            return True
        if follower in ("and", "but", "yet", "so", "then"):
            _, start, _ = self._opening(k + 1)
            continues = self._phrases.verb(start) is not None or self._lower(start).endswith("ing")
            return continues or self._phrases.starts_clause(start)
        if follower in _CUTS or follower in words("prepositions") or follower.endswith("ly"):
            return True
        _, start, _ = self._opening(k + 1)
        return (
            self._phrases.starts_clause(start)
            or is_finite(self._tokens, k + 1)
            or (follower.endswith("ing") and len(follower) > 4)
        )


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
    if last in words("dangling") and not (last == "her" and verb not in AUXILIARIES):
        return False
    if last in words("prepositions") and last not in words("particles"):
        return False
    return not (len(rest) == 1 and last in AUXILIARIES)
