"""Where scenes of a draft end, compared with where those of a gold record do.

Question: does a draft cut the story into scenes where a careful reader does?
Formula: a boundary is the place where a scene but the last ends. Exact: the same place, white space aside.
    Near: the sentences in which two scenes end are at most one apart; each boundary is matched once, in
    order. Precision: matched / boundaries of the draft; recall: matched / boundaries of the gold record.
    Pk: the share of windows of k sentences whose ends lie in one scene of one record and in two of the
    other. WindowDiff: the share of windows in which the numbers of boundaries differ.
Input: the text of a story, the texts of the scenes of both records, which cover it in order.
Output: counts, which add over stories. Pk and WindowDiff in [0, 1], 0 is the best.
Undefined when: Pk and WindowDiff where a story has no window, that is k sentences or fewer.
Source: Beeferman, Berger and Lafferty 1999 (Pk); Pevzner and Hearst 2002 (WindowDiff).
Departures from the source: k is half the mean length of the gold scenes, and at least 2 as in the package
    segeval (Fournier 2013), since with 1 a window is a single gap. A scene that ends within a sentence
    counts as one that ends after it, but is never an exact match of one that does.
Example: 8 sentences; gold scenes end after 2, 4 and 6, those of the draft after 2, 5 and 6. Exact: 2 of 3
    match; near: all 3. k = 8 / 4 / 2 = 1, so 2; the 6 windows begin at sentences 1 to 6. Boundaries within
    them, gold and draft: 1-1, 1-1, 1-0, 1-1, 1-2, 1-1: WindowDiff 2/6. With a boundary in one and none in
    the other there is one: Pk 1/6.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ..builders.text.segments import sentence_spans
from ..builders.text.spans import scene_spans

LEAST_WINDOW = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a scene: its offset in the text, and the number of the sentence that it lies in, from 0."""

    offset: int
    sentence: int


def cuts_of(text: str, language: str, scenes: Sequence[str]) -> list[Cut]:
    """Return where the scenes but the last end, in order; nothing where they do not cover the text."""
    spans = scene_spans(text, scenes)
    if spans is None:
        return []
    ends = [end for _, end in sentence_spans(text, language)]
    return [Cut(end, min(bisect_left(ends, end), len(ends) - 1)) for _, end in spans[:-1]]


def matched(gold: Sequence[Cut], draft: Sequence[Cut], reach: int | None) -> list[tuple[int, int]]:
    """Return which boundaries are the same, as pairs of their numbers, in order.

    ``reach``: how many sentences apart they may be; None where they must be at the same place.
    """
    pairs, own, other = [], 0, 0
    while own < len(gold) and other < len(draft):
        first, second = gold[own], draft[other]
        apart = second.sentence - first.sentence
        same = first.offset == second.offset if reach is None else abs(apart) <= reach
        if same:
            pairs.append((own, other))
        before = first.offset < second.offset if reach is None else apart > 0
        own += same or before
        other += same or not before
    return pairs


@dataclass(frozen=True, slots=True)
class Windows:
    """How many windows there are, and in how many of them two divisions differ."""

    total: int
    pk: int
    window_diff: int


def windows(gold: Sequence[Cut], draft: Sequence[Cut], sentences: int) -> Windows:
    """Return in how many windows of sentences two divisions of a story differ."""
    size = max(LEAST_WINDOW, round(sentences / (len(gold) + 1) / 2))
    firsts = range(max(0, sentences - size))
    counts = [
        tuple(sum(start <= cut.sentence < start + size for cut in cuts) for cuts in (gold, draft))
        for start in firsts
    ]
    return Windows(
        len(firsts),
        sum((own > 0) != (other > 0) for own, other in counts),
        sum(own != other for own, other in counts),
    )
