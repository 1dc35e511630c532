"""Questions about what is done to what.

They are asked of clauses whose parts are known and whose doer is named, about things that no other scene and
no title names, so that only the scene itself tells them. What a reader guesses from the verb is not asked
for, and neither is what happens more than once.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ..text.emotions import feeling_words
from ..text.forms import can_be, is_form
from ..text.phrases import Part
from ..text.reading import StoryView
from ..text.referents import is_plural
from ..text.statements import Statement
from ..text.tokens import words
from ..text.words import base_form, content_words, lower_words, share, word_set
from .asked import Asked, accepted_answers, answer_forms

MOST = 2
"""Questions about visible actions of one story at most."""
_LOOKED_AT = 12
"""Clauses of a scene that are compared: their number must not grow with the scene."""
_LONGEST_THING = 6
_DEFINITE = frozenset(("the", "his", "her", "their", "its"))
_ARTICLES = _DEFINITE | {"a", "an", "some"}
_PLAIN = ("", "and", "but", "so", "and so", "yet", "then", "result")
_OWNS = {"he": "his", "she": "her", "it": "its", "they": "their", "": ""}
_OWN = frozenset((*_OWNS.values(), "him", "them", "it")) - {""}


def ask_actions(view: StoryView) -> list[Asked]:
    """Return questions about visible actions, of different scenes where there are several."""
    asked = [
        question
        for scene in range(view.count)
        for statement in view.said_in(scene)[:_LOOKED_AT]
        if _is_told_once(view, scene, statement) and is_clear_doer(view, statement)
        for question in _what(view, scene, statement)
    ]
    start = int(share(view.id, "action") * len(asked))
    chosen: dict[int, Asked] = {}
    for question in asked[start:] + asked[:start]:
        chosen.setdefault(question.scenes[0], question)
    return list(chosen.values())[:MOST]


def _base(statement: Statement) -> str:
    """Return the base form of the verb that says what is done, in "was broken" as in "broke"."""
    verb = statement.part("verb")
    return base_form(verb.split()[-1] if verb else statement.verb)


def is_clear_doer(view: StoryView, statement: Statement) -> bool:
    """Whether a statement's subject is a single somebody, and nobody else in the story is called so.

    "The man" is not clear beside "another man" or "the men", and neither is who is called by a feeling.
    """
    own = statement.reading.subject
    called = lower_words(statement.subject)
    if not called or "and" in called or statement.negated or (len(called) == 1 and is_plural(called[0])):
        return False
    head = called[-1]
    said = lower_words(view.text)
    owned = any(token.lower in _OWN for token in own[:-1])
    if head not in view.called or owned or word_set("words", "naming") & {*called}:
        return False
    if set(called[:-1]) & (words("quantifiers") | _NOT_ONE | feeling_words()):
        return False
    others = {f"{head}s", f"{head}es", head.removesuffix("s")} - {head}
    rivals = {"another", "other", "second", "each", "every", "both", "one", "two", "three", "no"}
    beside = any(a in rivals and b == head for a, b in pairwise(said))
    return not (beside or others & set(said))


_NOT_ONE = frozenset(("other", "another", "same", "first", "second", "third", "last", "next", "own", "both"))


def _is_told_once(view: StoryView, scene: int, statement: Statement) -> bool:
    """Whether a scene tells an event of the plain past once, and nothing else with the same verb."""
    base, verbs = _base(statement), lower_words(view.scene_text(scene))
    once = sum(can_be(verb, "VERB") and base_form(verb) == base for verb in verbs) == 1
    return once and _is_event(view, scene, statement) and _is_whole(view, statement)


def _is_event(view: StoryView, scene: int, statement: Statement) -> bool:
    """Whether something simply happened, told in words that are all the text's own."""
    start, end = view.spans[scene]
    said = lower_words(view.text[_sentence_start(view, statement) : statement.reading.end])
    repeated = word_set("asking", "repeated") & {*said} or "now and then" in " ".join(said)
    timed = words("time_nouns") & {*lower_words(statement.rest)}
    plain = statement.kind == "event" and statement.verb != "did" and statement.reading.link in _PLAIN
    tokens = zip(statement.words, statement.reading.rest, strict=True)
    sure = all(word.lower() == token.lower for word, token in tokens)
    owned = {word.lower() for word in statement.words} & _OWN
    inside = start <= statement.reading.start and statement.reading.end <= end
    own = owned <= {_OWNS[view.referents.pronoun(statement.reading.subject)], _OWNS[statement.pronoun]}
    return plain and sure and own and inside and not (repeated or timed or statement.reading.degree)


def _sentence_start(view: StoryView, statement: Statement) -> int:
    """Return where the sentence begins in which a statement stands."""
    return next(s.start for s in view.analysis.segments if s.sentence == statement.sentence)


_ENDS = re.compile(r"\s*(?:[.!?]|$)|,? (?:while|until|when|before|who) ")
_GOES_ON = re.compile(r",? and |,? but |[,;] ")


def _is_whole(view: StoryView, statement: Statement) -> bool:
    """Whether a clause ends where its sentence does, or where what follows has its own verb.

    Else the same may be told of more: "carried away a spoon; on Friday, a cup".
    """
    text, end = view.text, statement.reading.end
    joint = _GOES_ON.match(text, end)
    if _ENDS.match(text, end) or joint is None:
        return _ENDS.match(text, end) is not None
    following = _NEXT_MARK.split(text[joint.end() : joint.end() + 80])[0]
    return any(is_form(word, "VBD") for word in lower_words(following)[:5])


_NEXT_MARK = re.compile(r"[.,;:!?]| and ")


def _what(view: StoryView, scene: int, statement: Statement) -> Iterator[Asked]:
    """Ask for the only thing that somebody does something to: "What did she dry with a towel?"."""
    parts, base = statement.reading.parts, _base(statement)
    first = next((part for part in parts if part.kind in ("object", "phrasal")), None)
    others = [part for part in parts if part is not first]
    if base not in word_set("asking", "handling") or first is None or statement.verb in ("was", "were"):
        return
    if not {part.kind for part in others} <= {"place", "particle"}:
        return
    if any(not _is_of_verb(statement, base, part) for part in others if part.kind == "place"):
        return
    skip = int(first.kind == "phrasal")
    thing = " ".join(statement.words[first.start + skip : first.end])
    rest = [*statement.words[: first.start + skip], *statement.words[first.end :]]
    if _is_thing(view, scene, thing):
        question = statement.asks("what", " ".join(rest))
        yield from _asked(view, scene, statement, question, thing, [thing.partition(" ")[2]])


def _is_of_verb(statement: Statement, base: str, part: Part) -> bool:
    """Whether a prepositional phrase after an object belongs to the verb rather than to the object."""
    opener = statement.words[part.start]
    if opener == "with":
        return base in word_set("asking", "tools")
    if opener in ("in", "on", "under", "behind", "beside", "between", "near", "at", "against"):
        return base in word_set("asking", "placing")
    return opener in ("into", "onto", "over", "down", "up", "across", "through", "out", "off", "to")


def _is_thing(view: StoryView, scene: int, thing: str) -> bool:
    """Whether a noun phrase names a thing that can be drawn and that only this scene names."""
    own = lower_words(thing) or [""]
    head = own[-1]
    if "of" in own[1:]:
        head = own[own.index("of") - 1]
    unfit = words("time_nouns", "own_parts", "vague", "blocked") | word_set("asking", "usual")
    unfit |= word_set("nouns", "abstract", "people")
    several = is_plural(head) and (own[0] == head or can_be(own[0], "ADJ"))
    kept = own[0] in _ARTICLES or "'s " in thing or several
    kept = kept and not {"whole", "same", "other", "one", "more", "and", "or"} & {*own}
    kept = kept and len(own) <= _LONGEST_THING and head not in unfit and can_be(head, "NOUN")
    return kept and not _is_told_elsewhere(view, scene, thing)


def _is_told_elsewhere(view: StoryView, scene: int, thing: str) -> bool:
    """Whether the title or another scene has one of the nouns of a thing or a place, too."""
    nouns = [word for word in content_words(thing) if can_be(word, "NOUN")]
    stems = {form for noun in nouns for form in (noun, noun.removesuffix("s"), f"{noun}s")}
    others = (view.scene_text(other) for other in range(view.count) if other != scene)
    return any(stems & set(lower_words(text)) for text in (view.title, *others))


def _asked(
    view: StoryView, scene: int, statement: Statement, question: str, gold: str, more: Iterable[str]
) -> Iterator[Asked]:
    """Yield an action question, unless its answer is given away."""
    worded = f"In scene {scene + 1}, {question}"
    accepted = accepted_answers(gold, worded, extra=[*more, statement.text, *answer_forms(view, statement)])
    if accepted is not None:
        shown = f'Scene {scene + 1} must show: "{statement.text.strip()}".'
        yield Asked("action_visibility", worded, gold, accepted, (scene,), shown, scene=scene)
