"""Accepted answers: the canonical one and shorter forms of it, all in the words of the story."""

from collections.abc import Iterable, Sequence

from ....schemas.text import contains_phrase, normalize_answer
from .lexicon import word_set
from .reading import LONGEST_CLAUSE
from .segments import strip_lead
from .verbs import find_verb
from .words import content_words, lower_words

_SPLIT = (",", ";", " and ", " but ", " until ", " while ", " because ")


def accepted_answers(
    gold: str, question: str, *, english: bool, extra: Iterable[str] = ()
) -> tuple[str, ...] | None:
    """Return the accepted answers, the canonical one first, or None where it may not be asked for.

    Every answer has a content word, none is contained in the question, and no two are equal after
    normalisation. An answer that is too long to be compared is not asked for.
    """
    if len(gold.split()) > LONGEST_CLAUSE:
        return None
    forms = [gold, *extra, *(_shorter(gold) if english else ())]
    asked = normalize_answer(question)
    kept: dict[str, str] = {}
    for form in forms:
        normal = normalize_answer(form)
        degenerate = not normal or (english and not content_words(form)) or len(normal) < 2
        if not degenerate and not contains_phrase(asked, normal):
            kept.setdefault(normal, form)
    return tuple(kept.values()) if normalize_answer(gold) in kept else None


def _shorter(gold: str) -> list[str]:
    """Return shorter forms: without the connective, without the determiner, the first clause."""
    core = strip_lead(gold)
    forms = [core]
    first, _, rest = core.partition(" ")
    if first.lower() in word_set("words", "determiners") and len(rest.split()) >= 2:
        forms.append(rest)
    forms += [head for mark in _SPLIT for head in _head(core, mark)]
    return forms


def _head(core: str, mark: str) -> Sequence[str]:
    head = core.partition(mark)[0].strip(" ,;")
    words = lower_words(head)
    whole = (
        head != core and len(words) >= 3 and find_verb(words) is not None and len(content_words(head)) >= 2
    )
    return (head,) if whole else ()
