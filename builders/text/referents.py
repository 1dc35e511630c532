"""Whom a pronoun of an English story means: the only one that fits, or nobody that could be told."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .clauses import QUOTE, Token, is_finite, words
from .words import word_set

_GENDERS = {"he": "male", "him": "male", "his": "male", "himself": "male",
            "she": "female", "her": "female", "hers": "female", "herself": "female",
            "it": "thing", "its": "thing", "itself": "thing",
            "they": "many", "them": "many", "their": "many", "themselves": "many"}  # fmt: skip
PRONOUNS = frozenset(_GENDERS)
OBJECTS = frozenset(("him", "her", "it", "them"))
_FAR = 3
"""Sentences back in which somebody of the same gender makes a pronoun unclear."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A noun phrase that a pronoun may mean.

    Attributes:
        start: where its noun stands in the text.
        sentence: number of its sentence.
        key: its last word, in lower case.
        name: how it is called in an answer, such as ``the fox``.
        kind: ``person``, ``animal``, ``thing``, or ``unknown`` for what only makes others unclear.
        many: whether it is more than one.
    """

    start: int
    sentence: int
    key: str
    name: str
    kind: str
    many: bool


class Referents:
    """The mentions of a story, and what its pronouns mean.

    Args:
        sentences: the tokens of each sentence.
        names: the last words of the characters' names, in lower case.
        agents: the last words of all subjects.
    """

    def __init__(
        self, sentences: Sequence[Sequence[Token]], names: frozenset[str], agents: frozenset[str]
    ) -> None:
        self._names, self._agents = names, agents - word_set("nouns", "objects", "abstract")
        nouns = [tuple(self._find(number, tokens)) for number, tokens in enumerate(sentences)]
        self._gender: dict[str, str] = {}
        for _ in range(2):
            self._near: list[Mention] = []
            self._known: dict[int, str | None] = {}
            for number, tokens in enumerate(sentences):
                self._near = [m for m in self._near if m.sentence >= number - _FAR] + list(nouns[number])
                self._learn(number, tokens)

    def _find(self, number: int, tokens: Sequence[Token]) -> Iterable[Mention]:
        for i, token in enumerate(tokens):
            if self._is_head(tokens, i):
                kind = self._kind(token)
                many = is_plural(token.lower) and not self.is_name(token)
                yield Mention(token.start, number, token.lower, self.called(tokens, i), kind, many)

    def _is_head(self, tokens: Sequence[Token], i: int) -> bool:
        token = tokens[i]
        if not token.is_word or token.lower == QUOTE or token.lower in word_set("words", "function"):
            return False
        verb = i > 0 and is_finite(tokens, i) and tokens[i - 1].lower not in word_set("words", "determiners")
        if verb or self._is_predicate(tokens, i):
            return False
        named = token.lower in self._names
        animate = token.lower in word_set("nouns", "animals", "people")
        if not named and not self._in_phrase(tokens, i):
            return animate and token.lower not in word_set("words", "ambiguous")
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        if following is None or not following.is_word or token.possessive:
            return True
        ends = following.lower in word_set("words", "function") or following.lower.endswith("ly")
        return ends or is_finite(tokens, i + 1) or (animate and following.lower not in self._names)

    def _is_predicate(self, tokens: Sequence[Token], i: int) -> bool:
        """Whether a noun says what somebody is, as in "became a judge"."""
        k = i - 1
        while k > 0 and tokens[k].is_word and tokens[k].lower not in ("a", "an"):
            k -= 1
        return i - 4 <= k and k > 0 and tokens[k - 1].lower in ("be", "become", "became", "was", "were", "as")

    def _in_phrase(self, tokens: Sequence[Token], i: int) -> bool:
        determiners = word_set("words", "determiners")
        for k in range(i - 1, max(-1, i - 5), -1):
            if tokens[k].lower in determiners:
                return True
            if not tokens[k].is_word or tokens[k].lower in word_set("words", "function"):
                return False
            if k and is_finite(tokens, k) and tokens[k - 1].lower not in determiners:
                return False
        return False

    def _kind(self, token: Token) -> str:
        if token.lower in word_set("nouns", "animals"):
            return "animal"
        if token.lower in word_set("nouns", "people") or token.lower in self._names:
            return "person"
        if token.lower in self._agents or token.lower in words("vague"):
            return "unknown"
        return "thing"

    def called(self, tokens: Sequence[Token], i: int) -> str:
        """Return a noun phrase that ends at a token without its adjectives: ``the fox``, ``King Shibi``."""
        first, own = i, _bare(tokens[i])
        if self.is_name(tokens[i]):
            titles = word_set("nouns", "titles")
            while first and tokens[first - 1].lower in titles and tokens[first - 1].text[0].isupper():
                first -= 1
            return " ".join([*(token.text for token in tokens[first:i]), own])
        before = tokens[i - 1] if i else None
        if before is not None and before.possessive:
            return f"{self.called(tokens, i - 1)}'s {own.lower()}"
        if before is not None and before.lower in word_set("nouns", "people", "animals"):
            return f"the {before.lower} {own.lower()}"
        return f"the {own.lower()}"

    def is_name(self, token: Token) -> bool:
        """Return whether a word is the name of a character, which stands without an article."""
        return token.text[0].isupper() and token.lower in self._names - word_set("nouns", "animals", "people")

    def _learn(self, number: int, tokens: Sequence[Token]) -> None:
        for i, token in enumerate(tokens):
            if token.lower not in PRONOUNS:
                continue
            gender, meant = _GENDERS[token.lower], None
            if not _looks_ahead(tokens, i):
                owner = token.lower in ("his", "its", "their") or (
                    token.lower == "her" and is_followed_by_noun(tokens, i)
                )
                meant = self._resolve(number, token, subject=_is_subject(tokens, i), owner=owner)
            self._known[token.start] = None if meant is None else meant.name
            if meant is None:
                meant = Mention(token.start, number, f"?{gender}", "", "unknown", gender == "many")
            elif gender in ("male", "female"):
                self._gender.setdefault(meant.key, gender)
            self._near.append(replace(meant, start=token.start, sentence=number))

    def meant(self, token: Token) -> str | None:
        """Return what a pronoun of the story means, or None where that cannot be told."""
        return self._known.get(token.start)

    def pronoun(self, subject: Sequence[Token]) -> str:
        """Return the pronoun that stands for a subject, or "" where the text does not tell which."""
        if len(subject) == 1 and subject[0].lower in PRONOUNS:
            return subject[0].lower
        if any(token.lower == "and" for token in subject):
            return "they"
        return {"male": "he", "female": "she", "many": "they"}.get(self.gender(subject[-1]) or "", "")

    def gender(self, token: Token) -> str | None:
        """Return ``male``, ``female``, ``thing`` or ``many`` of a noun, as far as the text tells."""
        if is_plural(token.lower) and not self.is_name(token):
            return "many"
        if token.lower in words("male"):
            return "male"
        if token.lower in words("female"):
            return "female"
        return self._gender.get(token.lower, "thing" if self._kind(token) == "thing" else None)

    def _resolve(self, number: int, token: Token, *, subject: bool, owner: bool) -> Mention | None:
        """Return the only mention in this and the last sentence that fits; none where another might be meant.

        A subject is most often what was the only one before it in its own sentence, an owner a person rather
        than an animal.
        """
        wanted = _GENDERS[token.lower]
        fitting = [m for m in self._near if m.start < token.start and self._fits(m, wanted)]
        own = {m.key: m for m in fitting if m.sentence == number}
        near = {m.key: m for m in fitting if number - 1 <= m.sentence}
        known = [m for m in fitting if m.key[0] == "?" or m.kind != "unknown"]
        far = {m.key: m for m in known}
        if subject and len(own) == 1:
            chosen, rivals = own, set[str]()
        else:
            chosen = near or far
            rivals = {key for key in far.keys() - chosen.keys() if key[0] != "?"}
        people = {key: m for key, m in chosen.items() if m.kind != "animal" or self._is(key, wanted)}
        if owner and len(people) == 1:
            chosen = people
        if len(chosen) != 1:
            return None
        (meant,) = chosen.values()
        if meant.kind == "unknown" or (wanted in ("thing", "many") and rivals):
            return None
        sure = self._is(meant.key, wanted) and not any(self._is(key, wanted) for key in rivals)
        return meant if sure or not rivals else None

    def _is(self, key: str, gender: str) -> bool:
        """Whether a noun is known to be of a gender."""
        if gender not in ("male", "female"):
            return False
        return key == f"?{gender}" or key in words(gender) or self._gender.get(key) == gender

    def _fits(self, mention: Mention, wanted: str) -> bool:
        if mention.key.startswith("?"):
            return mention.key == f"?{wanted}"
        if wanted == "many":
            return mention.many or mention.key in words("groups")
        if mention.many:
            return False
        if wanted == "thing":
            return mention.kind != "person" and self._gender.get(mention.key) is None
        other = "female" if wanted == "male" else "male"
        known = self._gender.get(mention.key)
        return mention.kind != "thing" and mention.key not in words(other) and known in (None, wanted)


def _bare(token: Token) -> str:
    plain = token.text.replace("’", "'")
    return plain.removesuffix("'s")


def is_plural(noun: str) -> bool:
    """Return whether a noun looks like a plural."""
    if noun in words("plurals"):
        return True
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def _is_subject(tokens: Sequence[Token], i: int) -> bool:
    return tokens[i].lower in ("he", "she", "it", "they")


def _looks_ahead(tokens: Sequence[Token], i: int) -> bool:
    """Whether a pronoun stands in a clause that opens the sentence, so that the noun may come later."""
    first = next((token.lower for token in tokens if token.lower not in ("and", "but", "so", "yet")), "")
    comma = any(token.lower == "," for token in tokens[:i])
    return first in words("subordinators") | words("prepositions") and not comma and _is_subject(tokens, i)


def is_followed_by_noun(tokens: Sequence[Token], i: int) -> bool:
    """Return whether "her" at a place owns what follows."""
    if i + 1 >= len(tokens) or not tokens[i + 1].is_word:
        return False
    following = tokens[i + 1].lower
    return not (
        following in word_set("words", "function") - {"own"}
        or following in words("prepositions", "adverbs", "particles")
        or following.endswith("ly")
    )
