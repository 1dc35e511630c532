"""Whom a pronoun of an English story means: the only one that fits, or nobody that could be told."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .tokens import QUOTE, Token, is_finite, words
from .words import word_set

_GENDERS = {"he": "male", "him": "male", "his": "male", "himself": "male",
            "she": "female", "her": "female", "hers": "female", "herself": "female",
            "it": "thing", "its": "thing", "itself": "thing",
            "they": "many", "them": "many", "their": "many", "themselves": "many"}  # fmt: skip
PRONOUNS = frozenset(_GENDERS)
OBJECTS = frozenset(("him", "her", "it", "them"))
_NOT_BARE = frozenset(
    ("the", "a", "an", "this", "that", "my", "your", "his", "her", "our", "their", "its", "old")
)
"""Before one of these a word such as Grandpa is no name."""
_PASSES = 3
"""How often pronouns are read: what one tells of somebody's gender helps with the others."""
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
        acts: whether it is the subject of a verb, or opens its sentence.
    """

    start: int
    sentence: int
    key: str
    name: str
    kind: str
    many: bool
    acts: bool = False


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
        self._quoting = {n for n, own in enumerate(sentences) if any(t.lower == QUOTE for t in own)}
        self._others: dict[int, frozenset[str]] = {}
        self._names, self._agents = names, agents - word_set("nouns", "objects", "abstract")
        self._gender: dict[str, str] = {}
        self._alias: dict[str, str] = {}
        for tokens in sentences:
            self._name_them(tokens)
        nouns = [tuple(self._find(number, tokens)) for number, tokens in enumerate(sentences)]
        self._first: dict[str, Mention] = {}
        self._counts: Counter[str] = Counter()
        for mention in (mention for own in nouns for mention in own):
            self._first.setdefault(mention.key, mention)
            self._counts[mention.key] += mention.kind in ("person", "animal") and not mention.many
        for _ in range(_PASSES):
            before = dict(self._gender)
            self._heroes: dict[str, Mention | None] = {}
            self._near: list[Mention] = []
            self._known: dict[int, str | None] = {}
            for number, tokens in enumerate(sentences):
                self._near = [m for m in self._near if m.sentence >= number - _FAR] + list(nouns[number])
                self._learn(number, tokens)
            if before == self._gender:
                break

    def _find(self, number: int, tokens: Sequence[Token]) -> Iterable[Mention]:
        for i, token in enumerate(tokens):
            if self._is_head(tokens, i) and token.lower not in words("time_nouns"):
                kind = self._kind(token)
                many = is_plural(token.lower) and not self.is_name(token)
                acts = self._acts(tokens, i)
                key = self._alias.get(token.lower, token.lower)
                yield Mention(token.start, number, key, self.called(tokens, i), kind, many, acts)

    def _name_them(self, tokens: Sequence[Token]) -> None:
        """Learn what titles tell of names, and whose names they are: "the boy, Tam,", "a girl named Ann"."""
        for i, token in enumerate(tokens):
            if i == 0 or not self.is_name(token):
                continue
            before = [tokens[n].lower for n in range(max(0, i - 4), i)]
            for gender in ("male", "female"):
                if before[-1] in words(gender):
                    self._gender.setdefault(token.lower, gender)
            after = tokens[i + 1].lower if i + 1 < len(tokens) else ""
            named = before[-1] in word_set("words", "naming") or (before[-1] == "," and after in (",", "."))
            owner = before[-2] if named and len(before) > 1 else ""
            if before[-3:] == ["whose", "name", "was"]:
                owner = next((tokens[n - 1].lower for n in range(i, 0, -1) if tokens[n].lower == ","), "")
            if owner and owner.rpartition("-")[2] in word_set("nouns", "people", "animals"):
                self._alias[owner] = token.lower

    def _acts(self, tokens: Sequence[Token], i: int) -> bool:
        """Whether a noun is the subject of a verb, as far as its neighbours tell."""
        if tokens[i].possessive:
            return False
        k = i + 1
        while k < len(tokens) and (tokens[k].lower.endswith("ly") or tokens[k].lower in words("adverbs")):
            k += 1
        first = next((n for n in range(i, -1, -1) if not tokens[n].is_word), -1) + 1
        prepositional = any(t.lower in words("prepositions") for t in tokens[first:i])
        after = [token.lower for token in tokens[i + 1 : i + 3]]
        relative = after[:1] == ["who"] or after in ([",", "who"], [",", "which"], [",", "whose"])
        return (
            (k < len(tokens) and is_finite(tokens, k)) or relative or (first == 0 and not prepositional)
            or (first == i - 2 and i > 2 and tokens[i - 3].lower == QUOTE)
            or (i > 1 and tokens[i - 2].lower in word_set("verbs", "speech"))
        )  # fmt: skip

    def _is_head(self, tokens: Sequence[Token], i: int) -> bool:
        token = tokens[i]
        if not token.is_word or token.lower == QUOTE or token.lower in word_set("words", "function"):
            return False
        verb = i > 0 and is_finite(tokens, i) and tokens[i - 1].lower not in word_set("words", "determiners")
        titled = i + 1 < len(tokens) and self.is_name(tokens[i + 1])
        if verb or self._is_predicate(tokens, i) or (titled and token.lower in word_set("nouns", "titles")):
            return False
        named = token.lower in self._names
        animate = token.lower in word_set("nouns", "animals", "people")
        if not named and not self._in_phrase(tokens, i):
            return animate and token.lower not in word_set("words", "ambiguous")
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        named = self.is_name(token) and following is not None and not self.is_name(following)
        if named or following is None or not following.is_word or token.possessive:
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
        noun = token.lower.rpartition("-")[2]
        if noun in word_set("nouns", "animals"):
            return "animal"
        if noun in word_set("nouns", "people") or token.lower in self._names:
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
        if (
            own[0].isupper()
            and own.lower() in words("kin")
            and (before is None or before.lower not in _NOT_BARE)
        ):
            return own
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
                subject = _is_subject(tokens, i)
                meant = self._resolve(number, token, subject=subject, owner=owner)
                if gender in ("male", "female"):
                    fitting = [m for m in self._near if m.start < token.start and self._may_be(m, gender)]
                    self._others[token.start] = frozenset(
                        m.key for m in fitting if m.kind != "unknown" or m.acts
                    )
                    if meant is not None and owner and self._is_rivalled(meant, fitting, number):
                        meant = None
                    if owner and i + 1 < len(tokens) and tokens[i + 1].lower in words("own_parts"):
                        fitting = [m for m in fitting if m.sentence == number] or fitting
                    if meant is None and not token.lower.endswith("self"):
                        meant = self._central(fitting, number, gender, subject=subject, owner=owner)
                        meant = meant or (None if owner else self._hero(token.start, number, gender, subject))
            self._known[token.start] = None if meant is None else meant.name
            if meant is None:
                meant = Mention(token.start, number, f"?{gender}", "", "unknown", gender == "many")
            elif gender in ("male", "female"):
                self._gender.setdefault(meant.key, gender)
            acts = _is_subject(tokens, i)
            self._near.append(replace(meant, start=token.start, sentence=number, acts=acts))

    def _may_be(self, mention: Mention, gender: str) -> bool:
        """Whether somebody, or a subject that no list knows to be a thing, may be of a gender."""
        thing = mention.kind == "thing" and mention.key not in word_set("nouns", "objects", "abstract")
        return self._fits(mention, gender) or (thing and mention.acts and not mention.many)

    def _is_rivalled(self, meant: Mention, fitting: Sequence[Mention], number: int) -> bool:
        """Whether the owner is not in the sentence, and somebody else near might be meant."""
        animate = [m for m in fitting if m.kind in ("person", "animal") and m.key != meant.key]
        return all(m.sentence < number for m in fitting if m.key == meant.key) and bool(animate)

    def _central(
        self, fitting: Sequence[Mention], number: int, gender: str, *, subject: bool, owner: bool
    ) -> Mention | None:
        """Return whom the text is about just before a pronoun, where nobody else of the gender is near.

        The subject of the same sentence, else of the one before, stays the subject; an object is somebody
        else than the subject of its own sentence.
        """
        fitting = [m for m in fitting if m.key[0] != "?" or m.acts]
        latest = max((m.sentence for m in fitting if m.kind in ("person", "animal")), default=number)
        known = latest >= number - 1
        near = [m for m in fitting if m.sentence >= latest - known and (known or self._is(m.key, gender))]
        if not subject and not owner:
            doers = [m for m in self._near if m.sentence == number and m.acts]
            doer = doers[-1].key if doers else ""
            near = [m for m in near if m.key != doer]
            return self._only(near, near, fitting, gender) if doer else None
        somebody = [m for m in near if m.kind in ("person", "animal") or m.key[0] == "?"]
        acting = [m for m in somebody if m.acts and m.sentence == number]
        if owner and not acting:
            return None
        acting = acting or [m for m in somebody if m.acts] or somebody
        speaking = any(m.sentence in self._quoting for m in acting)
        if speaking and len({m.key for m in fitting if m.kind in ("person", "animal")}) > 1:
            return None
        return self._only(acting, near, fitting, gender)

    def _hero(self, start: int, number: int, gender: str, leads: bool) -> Mention | None:
        """Return whom a story is about, where only that one of a gender is there, or is named twice as often.

        Nobody else who may be meant acts in this or the last sentence, and it is not the subject already.
        """
        if gender not in self._heroes:
            self._heroes[gender] = self._most_named(gender)
        hero = self._heroes[gender]
        if hero is None or hero.start > start or not self._fits(hero, gender):
            return None
        near = [m for m in self._near if m.start < start and m.sentence >= number - 1]
        rivals = [m for m in near if m.key != hero.key and m.key[0] != "?" and self._may_be(m, gender)]
        rivalled = any(self._is(m.key, gender) or (m.acts and _is_somebody(m)) for m in rivals)
        doers = [m.key for m in near if m.sentence == number and m.acts]
        taken = not leads and (not doers or doers[-1] == hero.key)
        return None if rivalled or taken else hero

    def _most_named(self, gender: str) -> Mention | None:
        """Return whoever of a gender is there alone, or is named twice as often as any other."""
        named = [
            key for key, number in self._counts.items() if number and self._fits(self._first[key], gender)
        ]
        ranked = sorted(named, key=lambda key: -self._counts[key])
        if not ranked or (len(ranked) > 1 and self._counts[ranked[0]] < 2 * self._counts[ranked[1]]):
            return None
        return self._first[ranked[0]] if self._first[ranked[0]].acts else None

    def _only(
        self, chosen: Sequence[Mention], near: Sequence[Mention], fitting: Sequence[Mention], gender: str
    ) -> Mention | None:
        """Return the only one of the chosen; None where another one may be meant.

        Rivals of somebody who is known to be of the gender are near; of others, whoever fits.
        """
        keys = {m.key for m in chosen}
        if len(keys) != 1 or chosen[-1].kind not in ("person", "animal"):
            return None
        meant = chosen[-1]
        sure = self._is(meant.key, gender)
        rivals = [m for m in (near if sure else fitting) if m.key != meant.key]
        doubtful = [
            m for m in rivals if not sure or self._is(m.key, gender) or (m.acts and m.kind != "unknown")
        ]
        return None if doubtful else meant

    def meant(self, token: Token) -> str | None:
        """Return what a pronoun of the story means, or None where that cannot be told."""
        return self._known.get(token.start)

    def may_own(self, token: Token, owner: Token) -> bool:
        """Return whether nobody but the owner can be meant by a possessive pronoun."""
        return not self._others.get(token.start, frozenset(("?",))) - {owner.lower}

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
        if meant.kind == "animal" and not self._is(meant.key, wanted) and self._has_person(wanted, token):
            return None
        sure = self._is(meant.key, wanted) and not any(self._is(key, wanted) for key in rivals)
        return meant if sure or not rivals else None

    def _has_person(self, gender: str, token: Token) -> bool:
        """Whether the story has named a person of a gender before."""
        known = [key for key, own in self._gender.items() if own == gender and key in self._names]
        return any(self._first[key].start < token.start for key in known if key in self._first)

    def _is(self, key: str, gender: str) -> bool:
        """Whether a noun is known to be of a gender."""
        if gender not in ("male", "female"):
            return False
        listed = key.rpartition("-")[2] in words(gender) or key.startswith(
            "she-" if gender == "female" else "he-"
        )
        return key == f"?{gender}" or listed or self._gender.get(key) == gender

    def _fits(self, mention: Mention, wanted: str) -> bool:
        if mention.key.startswith("?"):
            return mention.key == f"?{wanted}"
        if wanted == "many":
            return mention.many or mention.key in words("groups")
        if mention.many:
            return False
        if wanted in ("male", "female") and mention.key in words("groups"):
            return False
        if wanted == "thing":
            return mention.kind != "person" and self._gender.get(mention.key) is None
        other = "female" if wanted == "male" else "male"
        known = self._gender.get(mention.key)
        return mention.kind != "thing" and not self._is(mention.key, other) and known in (None, wanted)


def _bare(token: Token) -> str:
    plain = token.text.replace("’", "'")
    return plain.removesuffix("'s")


def _is_somebody(mention: Mention) -> bool:
    """Whether a noun is known or looks to be a person or an animal."""
    ends = ("er", "or", "ess", "ine", "ist", "man", "eer", "ian")
    return mention.kind in ("person", "animal") or mention.key.endswith(ends)


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
