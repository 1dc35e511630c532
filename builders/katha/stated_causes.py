"""Causes that an English story states with a connective, in the words of the story itself.

A cause is the part of one sentence that holds both sides and the word between them ("the well sank so low
that a boy was sent down", "the prince was hurt, so he went into the forest"), or two sentences that "So" or
"Therefore" joins. Order alone is no cause, and neither is a purpose. What comes about is a deed: somebody
does something, or something is done to somebody. The part begins with a subject that is named: a pronoun is
replaced by whom it means, or nothing is said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from ..text.emotions import feeling_words
from ..text.forms import can_be, is_participle
from ..text.reading import StoryView
from ..text.referents import PRONOUNS, Referents, is_followed_by_noun
from ..text.tokens import Token, read_tokens, words
from ..text.words import find_verb, lexicon, lower_words, whole_words, word_set

LONGEST = 45
"""Words of a cause that is still one phrase."""
LONGEST_SENTENCE = 600
"""Characters of a sentence that is read."""
LONGEST_EFFECT = 20
"""Words of an effect that a variant denies the reason of."""
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StatedCause:
    """A cause as the story states it.

    Attributes:
        text: both sides with the word between them, without a full stop.
        cause: why it came about; None where it cannot stand alone.
        effect: what came about; None where it cannot stand alone.
        begins: where the first side begins in the story text.
        span: of the effect in the story text.
        alone: whether nothing else stands in its sentence.
    """

    text: str
    cause: str | None
    effect: str | None
    begins: int
    span: Span
    alone: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a cause stands: its whole span, and the spans of its two sides."""

    whole: Span
    cause: Span
    effect: Span


def find_causes(view: StoryView) -> tuple[StatedCause, ...]:
    """Return the causes that a story states, in story order; none in other languages than English."""
    if not view.english:
        return ()
    sentences = _sentences(view)
    joint = [(cause, span) for span in sentences for cause in _within(view.text, span)]
    for pair in pairwise(sentences):
        joint += [(cause, (pair[0][0], pair[1][1])) for cause in _across(view.text, *pair)]
    made = [_told(view, *cause) for cause in sorted(joint, key=lambda each: each[0].effect)]
    return tuple(cause for cause in made if cause is not None)


def _sentences(view: StoryView) -> list[Span]:
    starts: dict[int, Span] = {}
    for segment in view.analysis.segments:
        first = starts.get(segment.sentence, (segment.start, 0))[0]
        starts[segment.sentence] = (first, segment.end)
    return [span for span in starts.values() if span[1] - span[0] <= LONGEST_SENTENCE]


_QUOTED = re.compile("[\"“”«»]|(?<!\\w)['‘]|\\b(?:I|[Ww]e|[Yy]ou|[Mm]y|[Oo]ur|[Yy]our|me|us)\\b")
_PART = re.compile(r"[,;:—–]\s+(?:(?:and|but|yet|while|for)\s+)?")
_STOP = re.compile(
    r"[,;:—–]\s+(?=(?:but|yet|while|whereas|who|which|where|when|until|though|although|or)\b)|[;—–]"
)
_NEXT = re.compile(_STOP.pattern + r"|,\s+(?=and\b)")
_DEGREE = re.compile(r"(?<![,;] )(?<!and )\bso (?:[a-z-]+ly |very )?([a-z-]+)(?: [a-z-]+){0,5}? that (?=\w)")
_SO = re.compile(r"(?:[,;](?: and)?| and) so (?!\w+ (?:say|said|thought|it|goes|called)\b)")
_BECAUSE = re.compile(
    r",? because (?!of\b)|, since |, for (?=(?:he|she|it|they|there|nobody|no one|nothing)\b)"
)
_AHEAD = re.compile(r"(?:^|, (?:and|but|yet) )(because|since) (?!of\b)", re.IGNORECASE)
_LINKS = re.compile(
    r"\b(?:so|because|therefore|thus|hence|otherwise|unless)\b|(?:[,;] |^)since\b"
    r"|[,;] for (?=(?:\w+ ){1,3}(?:was|were|had|could|would|did|is|\w+ed)\b)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"[;:—–]|, (?:and|or)\b(?! so\b)|\b(?:but|yet|though|although|however)\b", re.IGNORECASE
)
_RESULTS = ("so", "and so")


def _within(text: str, span: Span) -> Iterator[_Found]:
    """Yield the cause that one sentence of the narration states; none where it states several."""
    start, end = span[0], span[1] - (text[span[1] - 1] in ".!")
    if not _QUOTED.search(text[start:end]) and text[end - 1] != "?" and _is_linked_once(text, start, end):
        yield from _results_in(text, start, end)
        yield from _reasons_in(text, start, end)


def _is_linked_once(text: str, start: int, end: int) -> bool:
    """Whether at most one word says why: with two of them it is not plain which part belongs to which."""
    return len(_LINKS.findall(text, start, end)) <= 1


def _results_in(text: str, start: int, end: int) -> Iterator[_Found]:
    """Yield "so low that a boy was sent down" and "A, so B"."""
    for match in _DEGREE.finditer(text, start, end):
        thought = set(lower_words(text, match.end(), end)[:4]) & words("cognition")
        if match[1] not in word_set("words", "function") - words("degree") and not thought:
            stop = _clause_end(text, match.end(), end, _STOP)
            first = _clause_start(text, start, match.start())
            yield _Found((first, stop), (first, match.end() - len(" that ")), (match.end(), stop))
    for match in _SO.finditer(text, start, end):
        if _is_subject(text, match.end(), end):
            stop = _clause_end(text, match.end(), end)
            first = _clause_start(text, start, match.start())
            yield _Found((first, stop), (first, match.start()), (match.end(), stop))


def _reasons_in(text: str, start: int, end: int) -> Iterator[_Found]:
    """Yield "B because A", "B, for A" and "Because A, B"."""
    for match in _BECAUSE.finditer(text, start, end):
        if not text[start : match.start()].endswith((" and", " but", " yet")):
            first, stop = _clause_start(text, start, match.start()), _clause_end(text, match.end(), end)
            yield _Found((first, stop), (match.end(), stop), (first, match.start()))
    for match in _AHEAD.finditer(text[start:end]):
        comma = text.find(", ", start + match.end(), end)
        if comma > 0 and _is_subject(text, comma + 2, end):
            stop = _clause_end(text, comma + 2, end)
            yield _Found((start + match.start(1), stop), (start + match.end(), comma), (comma + 2, stop))


def _across(text: str, before: Span, after: Span) -> Iterator[_Found]:
    """Yield the cause that a sentence with "So" or "Therefore" draws from the one before."""
    match = _results().match(text, before[1] - 1, after[1])
    quoted = _QUOTED.search(text, *before) or _QUOTED.search(text, *after)
    linked = _is_linked_once(text, before[1] - 1, after[1]) and not _LINKS.search(text, *before)
    if match and linked and not quoted and _is_subject(text, match.end(), after[1]):
        stop = _clause_end(text, match.end(), after[1] - 1)
        yield _Found((before[0], stop), (before[0], match.start()), (match.end(), stop))


@cache
def _results() -> re.Pattern[str]:
    phrases = whole_words([*_RESULTS, *lexicon("grammar")["results"]]).pattern
    return re.compile(rf"\. {phrases},? ", re.IGNORECASE)


def _clause_start(text: str, start: int, end: int) -> int:
    """Return where the clause before a connective begins: after the last mark with a subject behind it."""
    marks = [match.end() for match in _PART.finditer(text, start, end)]
    return next((mark_end for mark_end in reversed(marks) if _is_subject(text, mark_end, end)), start)


def _clause_end(text: str, start: int, end: int, stops: re.Pattern[str] = _NEXT) -> int:
    """Return where a clause ends: before the next one, if it has had its verb."""
    for match in stops.finditer(text, start, end):
        said = lower_words(text, start, match.start())
        if find_verb(said) is not None and len(said) > 2:
            return match.start()
    return end


def _is_subject(text: str, start: int, end: int) -> bool:
    """Whether somebody or something and a finite verb stand at a place."""
    said = lower_words(text, start, end)[:9]
    opens = bool(said) and (said[0] in _OPENERS or text[start].isupper())
    return opens and find_verb(said) not in (None, 0)


_OPENERS = frozenset(
    (
        "he",
        "she",
        "it",
        "they",
        "the",
        "a",
        "an",
        "his",
        "her",
        "their",
        "its",
        "nobody",
        "no",
        "everyone",
        "all",
    )
)


def _is_deed(view: StoryView, span: Span) -> bool:
    """Whether a clause tells what somebody does, or what is done to somebody, in the plain past."""
    said = lower_words(view.text, *span)
    at = find_verb(said)
    if not at or words("negators") & {*said} or "n't" in view.text[slice(*span)].replace("’", "'"):
        return False
    before = [word for word in said[:at] if not word.endswith("ly") and word not in words("adverbs")]
    somebody = word_set("nouns", "animals", "people") | view.called | {"he", "she", "they"}
    verb = said[at]
    if verb in ("was", "were"):
        does = at + 1 < len(said) and is_participle(said[at + 1]) and said[at + 1] not in feeling_words()
    else:
        does = verb not in word_set("verbs", "auxiliary", "stative") | words("feel")
    return bool(before) and before[-1] in somebody and does and not {"would", "more"} & {*said}


@dataclass(frozen=True, slots=True)
class Break:
    """How the link between a cause and its effect is denied in place, while both still happen.

    Attributes:
        start, end: the words of the story text that change.
        new: what stands there instead.
        effect: what happened, in the words of the story.
    """

    start: int
    end: int
    new: str
    effect: str


def find_breaks(view: StoryView) -> Iterator[Break]:
    """Yield how each stated cause can be denied; not where a side is negated, which would deny it twice."""
    for span in _sentences(view) if view.english else ():
        start, end = span[0], span[1] - (view.text[span[1] - 1] in ".!")
        said = view.text[start:end]
        negated = words("negators") & set(lower_words(said)) or "n't" in said or "n’t" in said
        plain = not (negated or _QUOTED.search(said) or said.endswith("?"))
        if plain and _is_linked_once(view.text, start, end):
            yield from _breaks_in(view, start, end)


_NOT_FOR_THAT = "; yet it was not for that reason that "


_TURNS = re.compile(r"\b(?:[Bb]ut|[Yy]et)\b|;")
_TURN = re.compile(r"[.!]?\s+(?:But|Yet)\b")


def _breaks_in(view: StoryView, start: int, end: int) -> Iterator[Break]:
    """Yield the denials of one sentence, where nothing follows that would hang on a denied reason."""
    text = view.text
    for joint in _results_in(text, start, end):
        turns = _TURNS.search(text, start, joint.effect[0]) or _TURN.match(text, end)
        if joint.effect[1] != end or turns or not _is_deed(view, joint.effect):
            continue
        before, effect = text[joint.whole[0] : joint.effect[0]], text[slice(*joint.effect)]
        degree, so = list(_DEGREE.finditer(before + "x"))[-1:], list(_SO.finditer(before))[-1:]
        if degree and degree[0][1] != "long" and _is_subject(text, joint.effect[0], end):
            at = joint.whole[0] + degree[0].start()
            much = text[at + len("so ") : joint.effect[0] - len(" that ")]
            if " so " not in much:  # "so dark and so quiet": one of them would keep its "so"
                yield Break(at, joint.effect[0], f"very {much.removeprefix('very ')}{_NOT_FOR_THAT}", effect)
        elif so and not degree:
            yield Break(joint.whole[0] + so[0].start(), joint.effect[0], _NOT_FOR_THAT, effect)
    for match in _BECAUSE.finditer(text, start, end):
        if not text[start : match.start()].endswith((" and", " but", " yet")):
            first = _clause_start(text, start, match.start())
            effect = text[first : match.start()]
            if not _is_deed(view, (first, match.start())):
                continue
            alone = _clause_end(text, match.end(), end) == end and "because" not in text[match.end() : end]
            if alone and len(effect.split()) <= LONGEST_EFFECT:
                yield Break(match.start(), match.end(), ", though not because ", effect)


def _told(view: StoryView, joint: _Found, sentence: Span) -> StatedCause | None:
    """Return a cause with its pronouns replaced; None where one is not clear, or it is no whole phrase.

    Where the clauses alone leave a pronoun open, the sentence from its beginning may not.
    """
    first, stop = joint.whole
    said = view.text[sentence[0] : stop]
    lead = _LEAD.match(said)
    if _SEVERAL.search(said, lead.end() if lead else 0) or not _is_deed(view, joint.effect):
        return None
    for start in dict.fromkeys((first, min(first, sentence[0]))):
        text = _named(view, (start, stop))
        if text is not None and len(text.split()) <= LONGEST:
            cause, effect = (_named(view, side) for side in (joint.cause, joint.effect))
            alone = first == sentence[0] and not view.text[stop : sentence[1]].strip(" .!")
            return StatedCause(text, cause, effect, first, joint.effect, alone)
    return None


def _named(view: StoryView, span: Span) -> str | None:
    """Return a part of the story with pronouns that lean on what is before it replaced, or None."""
    start, end = span
    if start == end:
        return None
    tokens = [replace(token, start=token.start + start, end=token.end + start)
              for token in read_tokens(view.text[start:end])]  # fmt: skip
    parts, mark_end = [], start
    for i, token in enumerate(tokens):
        lone = token.lower == "one" and not (i and _may_stand_before_one(tokens[i - 1].lower))
        if token.lower in _POINTING or lone or (token.lower == "that" and i == 0):
            return None
        if token.lower not in PRONOUNS or token.lower.endswith(("self", "selves")):
            continue
        name = _name_for(view.referents, tokens, i)
        if name is None:
            return None
        parts += [view.text[mark_end : token.start], name]
        mark_end = token.end
    text = "".join([*parts, view.text[mark_end:end]]).strip(" ,;:")
    lead = _LEAD.match(text)
    text = _results().sub(", so ", text[lead.end() :] if lead else text)
    common = text.startswith("It ") or not (lead or _keeps_capital(tokens, view.referents))
    return text[0].lower() + text[1:] if common else text


def _may_stand_before_one(word: str) -> bool:
    """Whether "one" after a word leans on nothing before its phrase, as in "the other one"."""
    return word in word_set("words", "determiners") | {"other"} or can_be(word, "ADJ")


_POINTING = frozenset(("this", "these", "those", "such"))
_LEAD = re.compile(r"(?:And|But|Yet|and|but|yet|Meanwhile|Then|Now|Indeed),? ")


def _keeps_capital(tokens: Sequence[Token], referents: Referents) -> bool:
    first = tokens[0]
    titled = first.lower in word_set("nouns", "titles") and tokens[1].text[0].isupper()
    return titled or referents.is_name(first) or first.lower in PRONOUNS


def _name_for(referents: Referents, tokens: Sequence[Token], i: int) -> str | None:
    """Return how a pronoun is called: as it is where the phrase says whom it means; None if unclear."""
    token, before = tokens[i], tokens[:i]
    meant = referents.meant(token)
    if meant is not None and _FORMS.get(token.lower) == "many" and not _is_living(meant.split()[-1].lower()):
        return None
    if meant is None:
        return token.text if _is_impersonal(tokens, i) or _is_bound(referents, tokens, i) else None
    key = meant.split()[-1].lower()
    if any(other.lower == key or referents.meant(other) == meant for other in before):
        return token.text
    wanted = _FORMS.get(token.lower)
    if wanted is not None and any(_may_be_meant(referents, other, wanted) for other in before):
        return None
    owns = token.lower in ("his", "its", "their") or (token.lower == "her" and is_followed_by_noun(tokens, i))
    return meant if not owns else f"{meant}'" if meant.endswith("s") else f"{meant}'s"


def _is_living(noun: str) -> bool:
    return noun in word_set("nouns", "animals", "people") | words("groups", "plurals")


def _is_impersonal(tokens: Sequence[Token], i: int) -> bool:
    after = [token.lower for token in tokens[i + 1 : i + 4]]
    return tokens[i].lower == "it" and after[:1] in (["was"], ["grew"]) and bool(_WEATHER & set(after))


_WEATHER = frozenset(
    ("dark", "late", "daylight", "raining", "cold", "hot", "night", "winter", "summer", "noon", "early")
)
_SUBJECTS = {"he": "male", "she": "female", "it": "thing", "they": "many"}
_FORMS = {
    **_SUBJECTS,
    "him": "male",
    "his": "male",
    "her": "female",
    "its": "thing",
    "them": "many",
    "their": "many",
}


def _is_bound(referents: Referents, tokens: Sequence[Token], i: int) -> bool:
    """Whether a pronoun whose noun is not known has one in the phrase that fits, as a reader finds it.

    An object needs one outside of its own clause, and another one than the subject beside it.
    """
    wanted = _FORMS.get(tokens[i].lower)
    if wanted is None:
        return False
    owns = tokens[i].lower in ("his", "its", "their") or (
        tokens[i].lower == "her" and is_followed_by_noun(tokens, i)
    )
    clause = 0 if owns or tokens[i].lower in _SUBJECTS else _own_clause(tokens, i)
    reach = i if not clause and (owns or tokens[i].lower in _SUBJECTS) else clause
    nouns = {token.lower for token in tokens[:reach] if _fits(referents, token, wanted)}
    needed = 1 + any(_SUBJECTS.get(token.lower) == wanted for token in tokens[clause:i]) * (clause > 0)
    return len(nouns) >= needed


def _own_clause(tokens: Sequence[Token], i: int) -> int:
    """Return where the clause of a token begins: after a mark or a word that joins clauses."""
    joins = words("subordinators", "coordinators") | {"so", "that", ",", ";", "who", "which"}
    return next((k for k in range(i - 1, -1, -1) if tokens[k].lower in joins), 0)


def _may_be_meant(referents: Referents, token: Token, wanted: str) -> bool:
    """Whether a pronoun may stand for a word: a noun that fits, or a name that nothing else tells of."""
    capital = token.text[0].isupper() and token.lower not in word_set("words", "function")
    return _fits(referents, token, wanted) or (capital and token.lower not in PRONOUNS)


def _fits(referents: Referents, token: Token, wanted: str) -> bool:
    """Whether a word is a noun that a pronoun of a gender may stand for."""
    animate = token.lower in word_set("nouns", "animals", "people") or referents.is_name(token)
    known = referents.gender(token) if animate or token.lower in word_set("nouns", "objects") else None
    if wanted == "many":
        return known == "many"
    if wanted == "thing":
        return known == "thing" or token.lower in word_set("nouns", "animals")
    return animate and known in (None, wanted)
