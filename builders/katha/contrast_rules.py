"""Choosing the contrastive variants of a story among all changes that the operations find.

An operation takes one scene and returns its changed text, or finds nothing to change. They are those of
Table 31 and a temporal one (Table 5, C.7). All of them change words of the scene in
place, so that its entities stay.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..text.reading import Clause, StoryView
from ..text.spans import Span, with_scene
from ..text.words import base_form, find_verb, lexicon, share, whole_words, word_set, words_of


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
    spans = [(view.text.find(clause.core, start), clause.core) for start, clause in starts]
    return [(place, place + len(core)) for place, core in spans if core]


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


# Which operation is taken first where several apply: those that leave the sentence whole before those
# that negate it; reordering, which any text allows, last.
_RANK = {
    "break_causal_link": 0,
    "reverse_motivation": 0,
    "replace_outcome": 0,
    "flatten_emotion": 0,
    "remove_consequence": 1,
    "reorder_events": 2,
}


TEMPORAL = 0.25
"""Share of the stories that get a temporal variant wherever their text allows one."""


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


def _worth(view: StoryView, change: Change, chosen: Sequence[Change]) -> tuple[int, int, int, float]:
    same_operation = sum(change.operation == other.operation for other in chosen)
    same_scene = sum(change.scene == other.scene for other in chosen)
    draw = share(view.id, change.operation, str(change.scene), change.delta)
    rank = _RANK[change.operation]
    if change.operation == "reorder_events" and share(view.id, "temporal") < TEMPORAL:
        rank = -1
    return same_operation, rank, same_scene, draw


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
            "variant_kind": "temporal_contrast"
            if change.operation == "reorder_events"
            else "semantic_contrast",
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
