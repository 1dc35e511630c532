"""Causes, results and purposes that the text states with a connective."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from .lexicon import lexicon, phrase_pattern, whole_words, word_set
from .reading import LONGEST_CLAUSE, Clause, StoryView
from .segments import strip_lead

_BECAUSE = whole_words(["because"])


@dataclass(frozen=True, slots=True)
class Link:
    """A stated link of two events, in the words of the story.

    Attributes:
        kind: ``cause`` (because, so) or ``purpose`` (to, in order to, hoping to).
        effect: what happens.
        reason: why, or what for.
        effect_scene, reason_scene: indices from 0.
    """

    kind: str
    effect: str
    reason: str
    effect_scene: int
    reason_scene: int


def find_links(view: StoryView) -> tuple[Link, ...]:
    """Return the stated links of an English story, in story order; causes before purposes of one clause."""
    if not view.english:
        return ()
    found = [link for clause in view.clauses for link in _links_at(view, clause)]
    return tuple(link for link in found if _is_sound(link))


def _is_sound(link: Link) -> bool:
    sizes = (len(link.effect.split()), len(link.reason.split()))
    return min(sizes) >= 2 and max(sizes) <= LONGEST_CLAUSE


def _links_at(view: StoryView, clause: Clause) -> Iterator[Link]:
    opening = clause.text.lower().lstrip(" \"'“‘")
    if _opens(opening, "opens_cause"):
        yield from _opened_cause(view, clause, opening)
    elif _opens(opening, "opens_result") and not _opens(opening, "no_result"):
        before = _neighbour(view, clause, -1)
        if before is not None:
            yield Link("cause", view.full(clause), view.full(before), clause.scene, before.scene)
    else:
        inside = _BECAUSE.search(clause.core)
        if inside and inside.start():
            effect, reason = clause.core[: inside.start()], clause.core[inside.end() :]
            yield Link("cause", strip_lead(effect), strip_lead(reason), clause.scene, clause.scene)
    yield from _purpose(view, clause)


def _opens(opening: str, key: str) -> bool:
    return opening.startswith(_openings(key))


@cache
def _openings(key: str) -> tuple[str, ...]:
    return tuple(phrase + end for phrase in lexicon("connectives")[key] for end in (" ", ", "))


def _opened_cause(view: StoryView, clause: Clause, opening: str) -> Iterator[Link]:
    """A clause that opens with "because" explains the next one at a sentence's start, else the last."""
    starts = clause.segment == 0 or view.clauses[clause.segment - 1].sentence != clause.sentence
    other = _neighbour(view, clause, 1 if starts or opening.startswith(("and ", "but ")) else -1)
    if other is not None and other.sentence == clause.sentence:
        yield Link("cause", view.full(other), clause.core, other.scene, clause.scene)


def _neighbour(view: StoryView, clause: Clause, step: int) -> Clause | None:
    number = clause.segment + step
    return view.clauses[number] if 0 <= number < len(view.clauses) else None


def _purpose(view: StoryView, clause: Clause) -> Iterator[Link]:
    match = phrase_pattern("connectives", "purpose").search(clause.core)
    if match is None or match[0].lower() not in lexicon("connectives")["purpose"]:
        return
    reason = clause.core[match.start() :]
    if match.start() == 0:
        before = _neighbour(view, clause, -1)
        if before is not None and before.sentence == clause.sentence:
            yield Link("purpose", view.full(before), reason, before.scene, clause.scene)
    elif not _wanted(clause.core[: match.start()]):
        effect = view.full(clause)
        if effect.endswith(clause.core[match.start() :]):
            effect = effect.removesuffix(clause.core[match.start() :]).strip(" ,")
            yield Link("purpose", effect, reason, clause.scene, clause.scene)


def _wanted(before: str) -> bool:
    """Whether a verb stands before the "to" that takes it as its object, as in "wanted to eat"."""
    last = before.rstrip(" ,").rpartition(" ")[2].lower()
    return last in word_set("verbs", "takes_to")


def intention_of(view: StoryView, scenes: tuple[int, ...]) -> str | None:
    """Return the first clause in the scenes that states a goal or plan, or None."""
    if not view.english:
        return None
    pattern = phrase_pattern("connectives", "intention")
    for scene in scenes:
        for clause in view.by_scene[scene]:
            if pattern.search(clause.text):
                return view.full(clause)
    return None
