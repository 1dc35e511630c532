"""What an English story says outright: clauses read whole, with subject and objects called by their names.

And the causes that it states between two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from .clauses import Reading, SentenceReader
from .phrases import Part
from .referents import OBJECTS, PRONOUNS, Referents, is_followed_by_noun, is_plural
from .segments import Analysis
from .tokens import QUOTE, Token, read_tokens, sentence_groups, words
from .words import base_form, lexicon, word_set

LONGEST_SENTENCE = 120
"""Words and marks of a sentence that is read; what is longer is left unread."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One clause that can be quoted alone.

    Attributes:
        reading: the clause as it stands.
        sentence: number of its sentence, from 0.
        subject: whom or what it is about, such as ``the fox``; a pronoun is replaced.
        rest: what follows the verb, pronouns replaced.
        opens: whether it is the first clause of its sentence.
        words: what stands in ``rest`` for each word of the reading's.
    """

    reading: Reading
    sentence: int
    subject: str
    rest: str
    opens: bool
    words: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """The finite verb, in lower case."""
        return self.reading.verb.lower

    @property
    def adverbs(self) -> str:
        """What stands between subject and verb."""
        return " ".join(token.lower for token in self.reading.adverbs)

    @property
    def predicate(self) -> str:
        """Everything but the subject."""
        return " ".join(part for part in (self.adverbs, self.verb, self.rest) if part)

    @property
    def text(self) -> str:
        """The whole clause, such as ``the fox ran home``."""
        return f"{self.subject} {self.predicate}"

    @property
    def plain_rest(self) -> str:
        """What follows the verb, without waiting for a result: ``very hungry`` in place of ``so hungry``."""
        return f" {self.rest}".replace(" so ", " very ", 1).strip() if self.reading.degree else self.rest

    @property
    def plain(self) -> str:
        """The whole clause, as ``plain_rest`` ends it."""
        return " ".join(part for part in (self.subject, self.adverbs, self.verb, self.plain_rest) if part)

    @property
    def pronoun(self) -> str:
        """The pronoun that the text itself uses for the subject, or ""."""
        own = self.reading.subject
        return own[0].lower if len(own) == 1 and own[0].lower in PRONOUNS else ""

    @property
    def negated(self) -> bool:
        """Whether it says that something is not so."""
        said = {token.lower for token in (*self.reading.adverbs, *self.reading.rest)}
        return bool(said & words("negators")) or self.verb.endswith("n't")

    @property
    def kind(self) -> str:
        """``event``, ``speech``, ``state``, ``thought``, ``modal`` (could) or ``past`` (had gone)."""
        verb, after = self.verb.removesuffix("n't"), [token.lower for token in self.reading.rest[:3]]
        first = next((word for word in after if word != "not" and not word.endswith("ly")), "")
        if verb in ("was", "were"):
            return "event" if _is_participle(first) and first not in _emotions() else "state"
        if verb == "had":
            return "past" if _is_participle(first) or first == "been" else "state"
        if verb in word_set("verbs", "auxiliary") and verb != "did":
            return "modal"
        kinds = (
            ("speech", "verbs", "speech"),
            ("thought", "grammar", "cognition"),
            ("state", "verbs", "stative"),
        )
        return next((kind for kind, table, key in kinds if verb in word_set(table, key)), "event")

    def part(self, kind: str) -> str:
        """Return the first part of a kind (``phrases.Part``), or "" where there is none."""
        return next((self.part_text(part) for part in self.reading.parts if part.kind == kind), "")

    def part_text(self, part: Part) -> str:
        """Return a part in words."""
        return " ".join(self.words[part.start : part.end])

    @property
    def plain_predicate(self) -> str:
        """Everything but the subject, as in ``plain``."""
        return self.plain.removeprefix(f"{self.subject} ")

    @property
    def is_seen(self) -> bool:
        """Whether it tells, in the plain past, something that can be seen."""
        return self.kind == "event" and not self.negated and self.verb in word_set("verbs", "motion")

    @property
    def object_parts(self) -> tuple[str, str, str] | None:
        """What stands before, in and after the only thing that the verb is done to, or None.

        Read are ``a plump worm`` in "brought a plump worm to the mole", ``the fire`` in "put out the fire".
        """
        said = [token.lower for token in self.reading.rest]
        first = int(said[:1] != [] and said[0] in ("up", "out", "off", "away", "down", "back"))
        closing = words("prepositions", "particles")
        stop = next((i for i in range(first + 1, len(said)) if said[i] in closing), len(said))
        thing, after = said[first:stop], said[stop:]
        people = word_set("nouns", "animals", "people")
        named = sum(word in people | word_set("nouns", "objects") for word in thing)
        simple = len(thing) > 1 and thing[0] in _ARTICLES and thing[-1] not in people and named < 2
        clear = not word_set("words", "function") & set(thing[1:]) and after[:1] not in _MAY_MODIFY
        if not (simple and clear and self.rest.count(" ") + 1 == len(said)):
            return None
        return " ".join(said[:first]), " ".join(thing), " ".join(after)

    def asks(self, word: str, rest: str | None = None) -> str:
        """Return the question that asks about it with a question word, such as ``Why did the fox run?``.

        Args:
            word: the question word.
            rest: what follows the verb in the question, if that is not all of it.
        """
        verb, adverbs = self.verb, f" {self.adverbs}" if self.adverbs else ""
        rest = self.plain_rest if rest is None else rest
        if verb in word_set("verbs", "auxiliary") and not (verb == "had" and self.kind == "state"):
            return f"{word} {verb} {self.subject}{adverbs} {rest}?"
        if verb.endswith("n't"):
            return f"{word} {verb[:-3]} {self.subject}{adverbs} not {rest}?"
        base = "have" if verb == "had" else base_form(verb)
        return f"{word} did {self.subject}{adverbs} {base}{' ' if rest else ''}{rest}?"


def _is_participle(word: str) -> bool:
    regular = word.endswith("ed") and word not in word_set("verbs", "not_verbs")
    return regular or word in words("participles")


_ARTICLES = ("the", "a", "an")
_MAY_MODIFY = [["of"], ["from"], ["with"], ["in"]]


@cache
def _emotions() -> frozenset[str]:
    return frozenset(lexicon("emotions")["adjectives"])


@dataclass(frozen=True, slots=True)
class Told:
    """What an English story says outright.

    Attributes:
        statements: its clauses in order; None where something is unread.
        referents: whom its pronouns mean.
    """

    statements: tuple[Statement | None, ...]
    referents: Referents


@lru_cache(maxsize=128)
def read_statements(text: str, analysis: Analysis) -> Told:
    """Return what a story says. The stages of a story share it.

    Args:
        text: the normalised text.
        analysis: what was read off it; another language than English gives nothing.
    """
    if not analysis.english:
        return Told((), Referents((), frozenset(), frozenset()))
    starts: dict[int, int] = {}
    for segment in analysis.segments:
        starts.setdefault(segment.sentence, segment.start)
    sentences = sentence_groups(read_tokens(text), list(starts.values()))
    last = [entity.name.split()[-1].removesuffix("'s") for entity in analysis.entities if entity.character]
    names = frozenset(name.lower() for name in last if name[0].isupper())
    sentences = [tokens if len(tokens) <= LONGEST_SENTENCE else [] for tokens in sentences]
    readings = [SentenceReader(tokens, names).read() if tokens else [None] for tokens in sentences]
    agents = frozenset(r.subject[-1].lower for clauses in readings for r in clauses if r is not None)
    referents = Referents(sentences, frozenset(name.lower() for name in last), agents)
    statements: list[Statement | None] = []
    for number, tokens in enumerate(sentences):
        for order, reading in enumerate(readings[number]):
            said = None if reading is None else _statement(reading, number, tokens, referents, order == 0)
            statements.append(said)
    return Told(tuple(statements), referents)


def _statement(
    reading: Reading, sentence: int, tokens: Sequence[Token], referents: Referents, opens: bool
) -> Statement | None:
    subject = _subject(reading.subject, referents)
    impersonal = reading.subject[0].lower == "it" and reading.verb.lower in words("impersonal")
    if impersonal or subject is None:
        return None
    rest = _words(reading.rest, referents, reading, definite=False, context=tokens)
    if rest is None:
        return None
    return Statement(reading, sentence, subject, " ".join(rest), opens, tuple(rest))


def _subject(own: Sequence[Token], referents: Referents) -> str | None:
    first = own[0]
    if first.lower in PRONOUNS and len(own) == 1:
        return referents.meant(first)
    named = _words(own, referents, None, definite=True)
    return None if named is None else " ".join(named)


def _is_many(own: Sequence[Token]) -> bool:
    return own[0].lower == "they" or any(t.lower == "and" for t in own) or is_plural(own[-1].lower)


def _words(
    own: Sequence[Token],
    referents: Referents,
    clause: Reading | None,
    *,
    definite: bool,
    context: Sequence[Token] = (),
) -> list[str] | None:
    """Return the text of tokens, pronouns replaced by whom they mean; None where one is not clear.

    A possessive pronoun may stand where it can only be the subject's own, or is clear.
    """
    parts: list[str] = []
    subject = () if clause is None else clause.subject
    for i, token in enumerate(own):
        lower, text = token.lower, token.text
        if lower == QUOTE or not token.is_word:
            return None
        if lower in PRONOUNS and not lower.endswith(("self", "selves")):
            owns = lower in ("his", "its", "their") or (
                lower == "her" and is_followed_by_noun(context or own, _place(context or own, token))
            )
            meant = referents.meant(token)
            if owns:
                owner = _subject(subject, referents) if subject else None
                own_part = i + 1 < len(own) and own[i + 1].lower in words("own_parts")
                same = owner is not None and meant is not None and meant.split()[-1] == owner.split()[-1]
                alone = bool(subject) and referents.may_own(token, subject[-1])
                bound = clause is not None and (own_part or _keeps_to_itself(clause) or alone)
                unnamed = bool(subject) and subject[0].lower in PRONOUNS
                if same or ((owner is not None or unnamed) and bound and _agrees(lower, subject, referents)):
                    text = lower
                elif meant is None:
                    return None
                else:
                    text = f"{meant}'" if meant.endswith("s") else f"{meant}'s"
            elif lower in OBJECTS and meant is not None and meant != _subject(subject, referents):
                text = meant
            else:
                return None
        elif definite and i == 0:
            named = referents.is_name(token) or (len(own) > 1 and referents.is_name(own[1]))
            text = "the" if lower in _ARTICLES else (text if named else text.lower())
        elif definite and lower in ("a", "an") and own[i - 1].lower == "and":
            text = "the"
        parts.append(text)
    return parts


def _keeps_to_itself(clause: Reading) -> bool:
    """Whether "his" after "he" can hardly be another's: not after a verb that is done to others."""
    pronoun = len(clause.subject) == 1 and clause.subject[0].lower in PRONOUNS
    return pronoun and clause.verb.lower not in words("directed")


def _place(context: Sequence[Token], token: Token) -> int:
    return next(i for i, other in enumerate(context) if other.start == token.start)


def _agrees(pronoun: str, subject: Sequence[Token], referents: Referents) -> bool:
    """Whether a possessive pronoun may well be the subject's own."""
    if not subject:
        return False
    gender = {"his": "male", "her": "female", "its": "thing", "their": "many"}[pronoun]
    if len(subject) == 1 and subject[0].lower in PRONOUNS:
        own = {"he": "male", "she": "female", "it": "thing", "they": "many"}.get(subject[0].lower)
        return own == gender
    if gender == "many":
        return _is_many(subject)
    if _is_many(subject):
        return False
    known = referents.gender(subject[-1])
    return known == gender or (known is None and gender != "thing")


_CAUSES = ("because", "for")
_AHEAD = ("and because", "but because")


@dataclass(frozen=True, slots=True)
class Link:
    """A stated cause: why something happened, and what."""

    cause: Statement
    effect: Statement

    @property
    def text(self) -> str:
        """The link as one sentence without its full stop."""
        return f"{self.effect.text} because {self.cause.plain}"


def find_links(statements: Sequence[Statement | None]) -> tuple[Link, ...]:
    """Return the stated causes of a story, in story order.

    A clause with "because" explains the clause right before it in its sentence, or the one right after it
    where it opens the sentence; "so", "therefore" and the like give the result of the clause right before.
    Nothing unread may stand between, and none of the two may hang on a third clause.
    """
    links: list[Link] = []
    for before, clause in pairwise(statements):
        if before is None or clause is None:
            continue
        link, joined = clause.reading.link, before.sentence == clause.sentence
        ahead = before.reading.link in _AHEAD or (before.reading.link == "because" and before.opens)
        result = link in ("so", "and so") and _is_main(before) and (joined or before.reading.last)
        if joined and link in _CAUSES and _is_main(before):
            links.append(Link(clause, before))
        elif result or (joined and (before.reading.degree or (ahead and link == ""))):
            links.append(Link(before, clause))
    return tuple(link for link in links if _is_sound(link))


def _is_main(statement: Statement) -> bool:
    link = statement.reading.link
    return link.split(" ")[-1] not in words("subordinators") and not link.endswith("that")


def _is_sound(link: Link) -> bool:
    """Whether both sides say what happened or was so, and not the same."""
    if any(side.part("adjective").endswith("er") for side in (link.cause, link.effect)):
        return False  # "he was fonder of peace" waits for "than"
    clear = not link.effect.negated or link.effect.reading.link in ("so", "and so", "", "result")
    return clear and link.cause.text != link.effect.text
