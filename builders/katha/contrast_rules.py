"""Choosing the contrastive variants of a story among the few changes that rules can make soundly.

An operation takes one scene and yields its changed text, or nothing. They are four of Table 31. Each
changes words of one clause that is read whole, in place, so that the scene's entities stay and its grammar
holds. What turns out otherwise is changed only at the end of the
story, where nothing told later can contradict it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..text.emotions import told_feeling
from ..text.reading import StoryView
from ..text.spans import with_scene
from ..text.statements import Statement
from ..text.tokens import Token, words
from ..text.words import lexicon, share
from .stated_causes import find_breaks


@dataclass(frozen=True, slots=True)
class Change:
    """One possible contrastive change of a scene.

    Attributes:
        operation: value of the vocabulary ``change_type``.
        scene: index from 0.
        text: the scene's changed text.
        delta: the change, in words.
    """

    operation: str
    scene: int
    text: str
    delta: str


def reverse_motivation(view: StoryView, scene: int) -> Iterator[Change]:
    """The motive of an act, as in "out of pity" or "kindly", becomes its opposite."""
    for statement in view.said_in(scene):
        rest = statement.reading.rest
        if statement.kind not in ("event", "speech") or statement.negated:
            continue
        for i, token in enumerate(rest):
            other = _opposite_motive(rest, i)
            if other is None or _told_elsewhere(view, token):
                continue
            changed = _replaced(view, scene, token.start, token.end, other)
            delta = f'The motive changes: "{token.lower}" becomes "{other}".'
            yield Change("reverse_motivation", scene, changed, delta)


def _opposite_motive(rest: Sequence[Token], i: int) -> str | None:
    lower = rest[i].lower
    if i > 1 and (rest[i - 2].lower, rest[i - 1].lower) == ("out", "of"):
        opposite: str | None = lexicon("grammar")["motive_nouns"].get(lower)
        return opposite if i == len(rest) - 1 else None
    alone = i == 0 or rest[i - 1].lower not in words("degree") | {"as", "more", "less"}
    return lexicon("opposites")["manners"].get(lower) if alone else None


def replace_outcome(view: StoryView, scene: int) -> Iterator[Change]:
    """The last clause of the story says how it turns out, and now says the opposite."""
    event = _ending(view, scene)
    if event is None or event.reading.adverbs:
        return
    verb, rest = event.reading.verb, event.reading.rest
    frame, token = "", verb
    if not rest:
        frame = "alone"
    elif rest[0].lower in _OBJECT_OPENERS and not any(t.lower in words("prepositions") for t in rest):
        frame = "object"
    elif len(rest) == 1 and verb.lower in words("feel"):
        frame, token = "state", rest[0]
    other = lexicon("opposites")["endings"].get(frame, {}).get(token.lower)
    if other is not None:
        changed = _replaced(view, scene, token.start, token.end, other)
        delta = f'The outcome changes: "{token.lower}" becomes "{other}".'
        yield Change("replace_outcome", scene, changed, delta)


_OBJECT_OPENERS = frozenset(("the", "his", "her", "their", "its", "him", "them", "a", "an"))


def flatten_emotion(view: StoryView, scene: int) -> Iterator[Change]:
    """The only feeling that the scene tells becomes calm; nothing told in or after the scene rests on it."""
    feelings = view.feelings(scene)
    links = view.links
    for statement in view.said_in(scene):
        felt = told_feeling(statement)
        if felt is None or not felt.alone or statement.reading.degree:
            continue
        later = {f.emotion for n in range(scene + 1, view.count) for f in view.feelings(n)}
        rests = any(statement in (link.cause, link.effect) for link in links)
        if (
            {f.word for f in feelings} - {felt.word}
            or felt.emotion in later
            or rests
            or _reacts(view, statement)
        ):
            continue
        token = statement.reading.rest[0]
        changed = _replaced(view, scene, token.start, token.end, "calm")
        yield Change(
            "flatten_emotion", scene, changed, f'The feeling is flattened: "{felt.word}" becomes "calm".'
        )


def _reacts(view: StoryView, statement: Statement) -> bool:
    """Whether something may rest on a feeling: what comes after it in the scene, or "but" before it."""
    scene = view.scene_at(statement)
    after = view.text[statement.reading.end : view.spans[scene][1]]
    return any(char.isalnum() for char in after) or statement.reading.link in ("but", "yet", "so", "and so")


def break_causal_link(view: StoryView, scene: int) -> Iterator[Change]:
    """What a stated cause brought about still happens, and the text says that it was not for that reason."""
    start, end = view.spans[scene]
    for link in find_breaks(view):
        if start <= link.start and link.end < end:
            changed = _replaced(view, scene, link.start, link.end, link.new)
            delta = f'The link is broken: "{link.effect}" still happens, and not for the reason that is told.'
            yield Change("break_causal_link", scene, changed, delta)


OPERATIONS: tuple[Callable[[StoryView, int], Iterator[Change]], ...] = (
    reverse_motivation,
    replace_outcome,
    flatten_emotion,
    break_causal_link,
)


def _ending(view: StoryView, scene: int) -> Statement | None:
    """Return the statement with which the story ends, if it is in the scene and affirms something."""
    before, last = (None, None, *view.statements)[-2:]
    if scene != view.count - 1 or last is None or last.negated:
        return None
    reading = last.reading
    result = reading.degree or (before is not None and before.reading.degree)
    plain = reading.link in ("", "and", "so", "and so") and not reading.lead
    ends = not any(char.isalnum() for char in view.text[reading.end :])
    return last if ends and plain and not result else None


def _told_elsewhere(view: StoryView, token: Token) -> bool:
    """Whether the word, or one that begins like it, occurs anywhere else in the story."""
    stem = re.escape(token.lower[:5])
    return len(re.findall(rf"(?i)(?<!\w){stem}", view.text)) > 1


def _replaced(view: StoryView, scene: int, start: int, end: int, new: str) -> str:
    """Return a scene's text with a span of the story text replaced."""
    base, stop = view.spans[scene]
    return view.text[base:start] + new + view.text[end:stop]


def find_changes(view: StoryView) -> list[Change]:
    """Return every usable change, in order of scene and operation.

    Usable: the text differs after normalisation, and every character that the scene names is still named.
    """
    changes = []
    for scene in range(view.count):
        names = view.entities(scene, characters=True)
        for operation in OPERATIONS:
            changes += [change for change in operation(view, scene) if _is_usable(view, change, names)]
    return changes


def _is_usable(view: StoryView, change: Change, names: Sequence[str]) -> bool:
    before, after = view.scene_text(change.scene), change.text
    differs = before.split() != after.split() and normalize_answer(before) != normalize_answer(after)
    kept = after.casefold()
    return differs and all(name.casefold() in kept for name in names if name.casefold() in before.casefold())


def choose_changes(view: StoryView, count: int) -> list[Change]:
    """Return up to ``count`` changes, of different operations and scenes where possible, fixed by the id."""
    left = find_changes(view)
    chosen: list[Change] = []
    while left and len(chosen) < count:
        best = min(left, key=lambda change: _worth(view, change, chosen))
        chosen.append(best)
        left = [change for change in left if change.text != best.text]
    return sorted(chosen, key=lambda change: (change.scene, change.operation))


def _worth(view: StoryView, change: Change, chosen: Sequence[Change]) -> tuple[int, int, float]:
    same_operation = sum(change.operation == other.operation for other in chosen)
    same_scene = sum(change.scene == other.scene for other in chosen)
    return same_operation, same_scene, share(view.id, change.operation, str(change.scene), change.delta)


def write_variants(
    view: StoryView, count: int, narrative_type: str | None, moral_label: str | None
) -> list[Json]:
    """Return the variants with all fields; fewer than ``count`` where the story allows no more.

    Rules cannot tell which moral a variant supports: ``contrastive_moral`` is null.
    """
    return [
        {
            "variant_id": f"{view.id}_v{number}",
            "base_story_id": view.id,
            "variant_kind": "semantic_contrast",
            "subset": None,
            "narrative_type": narrative_type,
            "has_variant": True,
            "pair_id": f"{view.id}_pair{number}",
            "changed_scene_id": change.scene + 1,
            "change_type": change.operation,
            "original_moral": moral_label,
            "contrastive_moral": None,
            "semantic_delta": change.delta,
            "contrastive_scene_text": change.text,
            "contrastive_story_text": with_scene(view.text, view.spans[change.scene], change.text),
        }
        for number, change in enumerate(choose_changes(view, count), start=1)
    ]
