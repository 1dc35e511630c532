"""Boundaries of scenes, by hand."""

import pytest

from fabula.audits.boundaries import Cut, Windows, cuts_of, matched, windows

TEXT = "A fox ran. A crow sat, and it sang. The cheese fell. The fox ate it. Night came. All slept."


def ends(*sentences: int) -> list[Cut]:
    """Boundaries at the ends of sentences, counted from 1."""
    return [Cut(10 * number, number - 1) for number in sentences]


def test_cuts_when_scenes_cover_the_text_are_places_and_sentences() -> None:
    scenes = [
        "A fox ran. A crow sat,",
        "and it sang. The cheese fell.",
        "The fox ate it. Night came. All slept.",
    ]
    assert cuts_of(TEXT, "en", scenes) == [Cut(22, 1), Cut(TEXT.index(" The fox"), 2)]
    assert cuts_of(TEXT, "en", ["Another text."]) == []


@pytest.mark.parametrize(
    ("gold", "draft", "exact", "near"),
    [
        ((2, 4, 6), (2, 4, 6), 3, 3),
        ((2, 4, 6), (2, 5, 6), 2, 3),  # 5 is one sentence from 4, and 6 is taken by 6
        ((2, 4, 6), (3,), 0, 1),  # one boundary of the draft is matched once
        ((2,), (1, 2, 3), 1, 1),
        ((2, 4), (7, 8), 0, 0),
        ((), (1,), 0, 0),
    ],
)
def test_boundaries_when_matched_are_taken_once_and_in_order(gold, draft, exact, near) -> None:
    assert len(matched(ends(*gold), ends(*draft), None)) == exact
    assert len(matched(ends(*gold), ends(*draft), 1)) == near


def test_boundary_within_a_sentence_is_nearly_that_at_its_end_and_not_exactly() -> None:
    own, other = [Cut(20, 1)], [Cut(15, 1)]
    assert matched(own, other, None) == [] and matched(own, other, 1) == [(0, 0)]


@pytest.mark.parametrize(
    ("gold", "draft", "sentences", "counted"),
    [
        # The example of the card: 6 windows of 2 sentences, one with 1-0 and one with 1-2 boundaries.
        ((2, 4, 6), (2, 5, 6), 8, Windows(6, 1, 2)),
        ((2, 4, 6), (2, 4, 6), 8, Windows(6, 0, 0)),
        # 12 sentences, 2 gold scenes: k = 3. No boundary in the draft: windows 4, 5 and 6 hold that of gold.
        ((6,), (), 12, Windows(9, 3, 3)),
        ((1,), (1,), 2, Windows(0, 0, 0)),
    ],
)
def test_windows_when_counted_by_hand_are_these(gold, draft, sentences, counted) -> None:
    assert windows(ends(*gold), ends(*draft), sentences) == counted
