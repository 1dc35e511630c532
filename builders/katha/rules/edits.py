"""The contrastive operations: each takes one scene and returns its changed text, or finds nothing to change.

The operations of Table 31 and a temporal one (Table 5, C.7). All of them change words of the scene in
place, so that its entities stay.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ..spans import Span
from .lexicon import lexicon, whole_words, word_set
from .reading import Clause, StoryView
from .verbs import base_form, find_verb
from .words import words_of


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


def remove_consequence(view: StoryView, scene: int) -> Iterator[Change]:
    """The last clause of the scene, an outcome, does not happen."""
    told = [clause for clause in view.by_scene[scene] if clause.kind == "event"]
    if scene == 0 or not told:
        return
    changed = _negated(view, told[-1])
    if changed is not None:
        yield Change(
            "remove_consequence", scene, changed, f'The consequence "{told[-1].core}" no longer happens.'
        )


def reverse_motivation(view: StoryView, scene: int) -> Iterator[Change]:
    """A word that tells a motive or attitude becomes its opposite."""
    for word, other, changed in _swapped(view, scene, "motives"):
        yield Change("reverse_motivation", scene, changed, f'The motive changes: "{word}" becomes "{other}".')


def replace_outcome(view: StoryView, scene: int) -> Iterator[Change]:
    """A word that tells how things turn out becomes its opposite; only in the later half of the story."""
    if scene * 2 < view.count - 1:
        return
    for word, other, changed in _swapped(view, scene, "outcomes"):
        yield Change("replace_outcome", scene, changed, f'The outcome changes: "{word}" becomes "{other}".')


def flatten_emotion(view: StoryView, scene: int) -> Iterator[Change]:
    """Every emotion word of the scene becomes a neutral one; nothing is changed where one has none."""
    neutral = lexicon("emotions")["flatten"]
    told = sorted({feeling.word for feeling in view.feelings(scene)})
    if not told or any(word not in neutral for word in told):
        return
    text = view.scene_text(scene)
    for word in told:
        text = re.sub(
            rf"(?i)(?<!\w){re.escape(word)} of(?!\w)", lambda found: _cased("aware of", found[0]), text
        )
        text = whole_words([word]).sub(lambda found: _cased(neutral[found[0].lower()], found[0]), text)
    words = ", ".join(f'"{word}" becomes "{neutral[word]}"' for word in told)
    yield Change("flatten_emotion", scene, text, f"The feeling is flattened: {words}.")


_CAUSE = re.compile(r"(?<!\w)because (?!of\b)(?P<reason>[^,;.!?\"”“]+)", re.IGNORECASE)
_NO_CAUSE = "for no reason that anyone could see"


def break_causal_link(view: StoryView, scene: int) -> Iterator[Change]:
    """A stated cause is taken away; what it caused still happens."""
    text = view.scene_text(scene)
    match = _CAUSE.search(text)
    if match is None:
        return
    changed = text[: match.start()] + _cased(_NO_CAUSE, match[0]) + text[match.end() :]
    reason = match["reason"].strip()
    yield Change(
        "break_causal_link", scene, changed, f'The cause "{reason}" is taken away; its effect still happens.'
    )


def reorder_events(view: StoryView, scene: int) -> Iterator[Change]:
    """The last two sentences of the scene change places.

    Without cue lists, in a scene of one sentence, its last two clauses do; their punctuation stays.
    """
    spans = _sentence_spans(view, scene)
    if len(spans) < 2 and not view.english:
        spans = _core_spans(view, scene)
    elif not all(_is_whole(view.text[slice(*span)]) for span in spans[-2:]):
        return
    if len(spans) < 2:
        return
    (start, end), (a, b), (c, d) = view.spans[scene], *spans[-2:]
    earlier, later = view.text[a:b], view.text[c:d]
    changed = view.text[start:a] + later + view.text[b:c] + earlier + view.text[d:end]
    delta = f'The order changes: "{_short(later)}" now comes before "{_short(earlier)}".'
    yield Change("reorder_events", scene, changed, delta)


def _sentence_spans(view: StoryView, scene: int) -> list[Span]:
    start, end = view.spans[scene]
    sentences: dict[int, Span] = {}
    for segment in view.analysis.segments:
        if start <= segment.start < end:
            first = sentences.get(segment.sentence, (segment.start, 0))[0]
            sentences[segment.sentence] = (first, min(segment.end, end))
    return list(sentences.values())


def _core_spans(view: StoryView, scene: int) -> list[Span]:
    starts = [(view.analysis.segments[clause.segment].start, clause) for clause in view.by_scene[scene]]
    found = [(view.text.find(clause.core, start), clause.core) for start, clause in starts]
    return [(place, place + len(core)) for place, core in found if core]


OPERATIONS: tuple[Callable[[StoryView, int], Iterator[Change]], ...] = (
    remove_consequence,
    reverse_motivation,
    replace_outcome,
    flatten_emotion,
    break_causal_link,
    reorder_events,
)


def _is_whole(sentence: str) -> bool:
    return sentence[-1:] in '.!?。！？।॥؟…"”’»」)' and any(char.isalpha() for char in sentence)


def _short(text: str, words: int = 12) -> str:
    parts = text.strip('"“” ').split()
    return " ".join(parts[:words]) + (" ..." if len(parts) > words else "")


def _swapped(view: StoryView, scene: int, table: str) -> Iterator[tuple[str, str, str]]:
    """Yield each word of the scene that has an opposite in the table, the opposite, and the changed text."""
    text, start = view.scene_text(scene), view.spans[scene][0]
    opposites = lexicon("opposites")[table]
    for match in _opposites(table).finditer(text):
        word = match[0]
        before = text[: match.start()].rpartition(" ")[0].rpartition(" ")[2].lower()
        if start + match.start() and before in ("not", "never", "no"):
            continue
        other = _cased(opposites[word.lower()], word)
        yield word, other, text[: match.start()] + other + text[match.end() :]


@cache
def _opposites(table: str) -> re.Pattern[str]:
    return whole_words(lexicon("opposites")[table])


def _cased(word: str, like: str) -> str:
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _negated(view: StoryView, clause: Clause) -> str | None:
    """Return the scene's text with the verb of a clause negated, or None where that cannot be done safely."""
    start = view.analysis.segments[clause.segment].start
    place = view.text.find(clause.core, start, start + len(clause.text))
    found = words_of(clause.core)
    words = [word.lower for word in found]
    verb = 0 if clause.subjectless else find_verb(words)
    if verb is None or place < 0 or {"not", "never", "no", "nobody", "nothing"} & set(words):
        return None
    negative = _negative(words[verb])
    if negative is None:
        return None
    base = view.spans[clause.scene][0]
    first, last = place + found[verb].start - base, place + found[verb].end - base
    text = view.scene_text(clause.scene)
    return text[:first] + _cased(negative, text[first]) + text[last:]


def _negative(verb: str) -> str | None:
    if verb in word_set("verbs", "takes_not"):
        return f"{verb} not"
    base = base_form(verb)
    return f"did not {base}" if base != verb or verb in word_set("verbs", "same_past") else None
