"""Questions about what is done: what with, where, and which of two events is told first.

They are asked of clauses whose parts are known, about things that no other scene and no title names, so that
only the scene itself tells them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ..text.forms import can_be, participle_of
from ..text.phrases import Part
from ..text.reading import StoryView
from ..text.referents import is_plural
from ..text.statements import Statement
from ..text.tokens import words
from ..text.words import base_form, content_words, lower_words, share, word_set
from .asked import Asked, accepted_answers, answer_forms, scene_target

MOST = 2
"""Questions about visible actions of one story at most."""
_WHERE = frozenset(
    ("in", "into", "on", "onto", "upon", "under", "underneath", "beneath", "behind", "beside", "inside",
     "near", "to", "toward", "towards", "up", "down", "across", "over", "through", "along", "between",
     "among", "against", "around", "round", "above", "below", "past", "next", "out", "off")
)  # fmt: skip
_OWN = frozenset(("his", "her", "their", "its", "him", "them", "it", "himself", "herself", "themselves"))
_DEFINITE = frozenset(("the", "his", "her", "their", "its"))
_ARTICLES = _DEFINITE | {"a", "an", "some"}
_PLAIN = ("", "and", "but", "so", "and so", "yet", "then")
_DOUBTFUL = frozenset(
    ("ago", "earlier", "before", "already", "once", "every", "each", "whenever", "always", "often", "nearly",
     "almost", "regularly", "daily", "usually", "sometimes", "dreamed", "dreamt", "dream", "imagined",
     "now")
)  # fmt: skip


def ask_actions(view: StoryView) -> list[Asked]:
    """Return questions about visible actions, of different scenes where there are several."""
    asked = [
        question
        for scene in range(view.count)
        for statement in view.said_in(scene)[:_LOOKED_AT]
        if _is_told_once(view, scene, statement)
        for question in (*_what(view, scene, statement), *_where(view, scene, statement))
    ] + [
        question
        for scene in range(view.count)
        for statement in view.unnamed_in(scene)[:_LOOKED_AT]
        if _is_told_once(view, scene, statement)
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


def _own(view: StoryView, statement: Statement) -> set[str]:
    """Return the possessive pronouns that can be the subject's own."""
    if not statement.subject:
        return set()
    return {_OWNS[view.referents.pronoun(statement.reading.subject)], _OWNS[statement.pronoun]}


def _is_told_once(view: StoryView, scene: int, statement: Statement) -> bool:
    """Whether a scene tells an event of the plain past once, and nothing else with the same verb."""
    base, verbs = _base(statement), lower_words(view.scene_text(scene))
    once = sum(can_be(verb, "VERB") and base_form(verb) == base for verb in verbs) == 1
    return once and _is_event(view, statement)


def _is_event(view: StoryView, statement: Statement) -> bool:
    start = statement.reading.start
    before = lower_words(view.text[max(0, start - 60) : start].rpartition(".")[2])
    doubtful = _DOUBTFUL & {*before, *lower_words(statement.predicate)}
    timed = words("time_nouns") & {*lower_words(statement.rest)}
    plain = statement.kind == "event" and not statement.negated and "would" not in before
    plain = plain and statement.verb != "did" and statement.reading.link in (*_PLAIN, "result")
    sure = all(
        word.lower() == token.lower or token.lower not in (*_OWNS.values(), "it")
        for word, token in zip(statement.words, statement.reading.rest, strict=True)
    )
    owned = {word.lower() for word in statement.words} & set(_OWNS.values())
    sure = sure and (not statement.subject or owned <= _own(view, statement))
    inside = statement.reading.end <= view.spans[view.scene_at(statement)][1]
    return plain and sure and inside and not doubtful and not timed and not statement.reading.degree


def _what(view: StoryView, scene: int, statement: Statement) -> Iterator[Asked]:
    """Ask for the only thing that something is done to: "What did she dry with a towel?"."""
    parts, base = statement.reading.parts, _base(statement)
    if base not in words("handling"):
        return
    if statement.verb in ("was", "were"):
        if not {part.kind for part in parts} <= {"verb", "place", "adverb"}:
            return
        done = statement.predicate.split(maxsplit=1)[-1]
        question, thing = f"what was {done}", statement.subject
    else:
        first = next((part for part in parts if part.kind in ("object", "phrasal")), None)
        others = [part for part in parts if part is not first]
        if first is None or not {part.kind for part in others} <= {"place", "particle", "adverb"}:
            return
        if any(not _is_of_verb(statement, base, part) for part in others if part.kind == "place"):
            return
        skip = int(first.kind == "phrasal")
        thing = " ".join(statement.words[first.start + skip : first.end])
        rest = [*statement.words[: first.start + skip], *statement.words[first.end :]]
        question = statement.asks("what", " ".join(rest)).rstrip("?")
        if not statement.subject:
            if _OWN & set(rest) or statement.adverbs:
                return
            question = " ".join(("what was", participle_of(base), *rest))
    if _is_thing(view, scene, thing, base):
        yield from _asked(view, scene, statement, question, thing, [thing.partition(" ")[2]])


def _is_of_verb(statement: Statement, base: str, part: Part) -> bool:
    """Whether a prepositional phrase after an object belongs to the verb rather than to the object."""
    opener = statement.words[part.start]
    if opener == "with":
        return base in words("tools")
    if opener in ("in", "on", "under", "behind", "beside", "between", "near", "at", "against"):
        return base in words("placing")
    return opener in ("into", "onto", "over", "down", "up", "across", "through", "out", "off", "to")


def _is_thing(view: StoryView, scene: int, thing: str, base: str) -> bool:
    """Whether a noun phrase names a thing that can be drawn and that only this scene names."""
    own = lower_words(thing) or [""]
    head = own[-1]
    if " of " in f" {thing} ":
        head = own[own.index("of") - 1]
    unfit = word_set("nouns", "abstract", "people") | words("time_nouns", "own_parts", "vague", "blocked")
    kept = own[0] in _ARTICLES | words("quantifiers") or "'s " in thing or is_plural(head)
    kept = kept and not {"whole", "same", "other", "one", "more"} & {*own}
    return kept and head not in unfit and can_be(head, "NOUN") and not _is_told_elsewhere(view, scene, head)


def _is_told_elsewhere(view: StoryView, scene: int, noun: str) -> bool:
    """Whether the title, or more than one other scene, names a thing, too."""
    stems = {noun, noun.removesuffix("s"), f"{noun}s"}
    others = (view.scene_text(other) for other in range(view.count) if other != scene)
    named = sum(bool(stems & set(lower_words(text))) for text in others)
    return named > 1 or bool(stems & set(lower_words(view.title)))


def _where(view: StoryView, scene: int, statement: Statement) -> Iterator[Asked]:
    """Ask where something is done: "Where did she hang the umbrella?"."""
    parts, base = statement.reading.parts, _base(statement)
    places = [part for part in parts if part.kind == "place"]
    moves = base in words("walking")
    if len(places) != 1 or parts[-1] is not places[0] or statement.reading.cut:
        return
    if not {part.kind for part in parts} <= {"verb", "object", "place", "particle"} or not (
        moves or base in words("placing")
    ):
        return
    place = statement.words[places[0].start : places[0].end]
    gathers = place[0] in ("up", "down", "off", "over") and not moves
    if gathers or statement.part("particle") in ("home", "back"):
        return
    if not _is_place(view, scene, place, base in words("placing")):
        return
    rest = " ".join(statement.words[: places[0].start])
    question = statement.asks("where", rest).rstrip("?")
    yield from _asked(view, scene, statement, question, " ".join(place), [])


def _is_place(view: StoryView, scene: int, place: Sequence[str], placed: bool) -> bool:
    opener, noun = place[0], [*place[1:]]
    if opener in ("out", "next"):
        noun = noun[1:]
    if opener not in _WHERE or len(noun) < 2:
        return False
    plain = [word.lower().removesuffix("'s") for word in noun]
    head = plain[plain.index("of") - 1] if "of" in plain else plain[-1]
    sure = plain[0] in _DEFINITE or noun[0].endswith("'s")
    if opener in ("in", "on") and not sure and not (placed and plain[0] in ("a", "an")):
        return False
    unfit = words("time_nouns", "own_parts", "vague") | word_set("nouns", "people") | _NO_PLACES
    fits = (sure or plain[0] in _ARTICLES) and head not in unfit and can_be(head, "NOUN")
    return fits and not _is_told_elsewhere(view, scene, head)


_NO_PLACES = frozenset(
    ("way", "end", "name", "help", "sake", "mercy", "work", "war", "battle", "fight", "feast", "dance",
     "idea", "plan", "rest", "cost", "price", "thought", "song", "story", "question", "cold", "dark", "heat",
     "lump", "cloud", "row", "line", "heap", "pile", "hurry", "rage", "storm", "whisper", "voice", "kind",
     "sort", "order")
)  # fmt: skip
_OWNS = {"he": "his", "she": "her", "it": "its", "they": "their", "": ""}


def _asked(
    view: StoryView, scene: int, statement: Statement, question: str, gold: str, more: Iterable[str]
) -> Iterator[Asked]:
    """Yield an action question, unless its answer is given away or it says "his" of somebody else."""
    if _OWN & {*question.split()} - _own(view, statement):
        return
    worded = f"In scene {scene + 1}, {question}?"
    extra = [*more]
    if statement.subject:
        extra += [statement.text, *answer_forms(view, statement)]
    accepted = accepted_answers(gold, worded, extra=extra)
    if accepted is not None:
        shown = f'Scene {scene + 1} must show: "{statement.text.strip()}".'
        yield Asked("action_visibility", worded, gold, accepted, (scene,), shown, scene=scene)


def ask_first(view: StoryView) -> list[Asked]:
    """Return questions which of two events of different scenes, the nearest there are, is told first."""
    events = [
        (scene, statement)
        for scene in range(view.count)
        for statement in view.said_in(scene)[:_LOOKED_AT]
        if statement.reading.link in _PLAIN and _is_told_once(view, scene, statement)
        if _base(statement) not in words("pale") and len(statement.text.split()) <= _LONGEST_EVENT
    ]
    pairs = [(a, b) for a, b in combinations(events, 2) if a[0] < b[0] and _are_apart(a[1], b[1])]
    pairs = sorted(pairs, key=lambda pair: pair[1][0] - pair[0][0])
    nearest = [pair for pair in pairs if pair[1][0] - pair[0][0] == pairs[0][1][0] - pairs[0][0][0]]
    if not pairs:
        return []
    chosen = [nearest[int(share(view.id, "first") * len(nearest))]]
    chosen += [pair for pair in pairs if not {id(s) for _, s in pair} & {id(s) for _, s in chosen[0]}][:1]
    return [_first(view, *pair) for pair in chosen]


def _first(view: StoryView, earlier: tuple[int, Statement], later: tuple[int, Statement]) -> Asked:
    """Return the question which of two events is first, by their scenes."""
    (first, before), (second, after) = earlier, later
    options = [before.plain, after.plain]
    if share(view.id, "order") < 0.5:
        options.reverse()
    question = f"What happened first: {options[0]}, or {options[1]}?"
    accepted = tuple(dict.fromkeys((before.plain, *answer_forms(view, before))))
    shown = f'First scene {first + 1} must show "{before.plain}", then scene {second + 1} "{after.plain}".'
    transition, scene = scene_target(first, second)
    return Asked(
        "temporal_order", question, before.plain, accepted, (first, second), shown, transition, scene
    )


_LONGEST_EVENT = 14
_LOOKED_AT = 12
"""Clauses of a scene that are compared: their number must not grow with the scene."""


def _are_apart(before: Statement, after: Statement) -> bool:
    """Whether two events are of different subjects and share no word: else one may need the other."""
    words_apart = not set(content_words(before.predicate)) & set(content_words(after.predicate))
    return words_apart and _doer(before) != _doer(after)


def _doer(statement: Statement) -> str:
    """Return the last word of the subject, so that "the man" and "the old man" are not told apart."""
    return statement.subject.lower().split()[-1] if statement.subject else ""
