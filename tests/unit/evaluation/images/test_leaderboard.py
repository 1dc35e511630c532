"""Where methods stand: ranks over shared stories, who is not ranked and why, which differences are real."""

from itertools import combinations

import pytest

from fabula.evaluation.shots.compare import Leaderboard, leaderboard
from fabula.evaluation.shots.compare import image_comparisons as paired
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.scores import MethodScores, StoryScore, pooled
from fabula.schemas.values import Score

FEW = Definitions(resamples=500)
GONE = Score(value=None, status="undefined", reason="no character was matched")


def method(name: str, shots: int = 4, **values: list[float | None]) -> MethodScores:
    """A method with values of its stories 01, 02, ...; None for a story without."""
    count = len(next(iter(values.values())))
    stories = tuple(
        StoryScore(
            f"{n + 1:02d}",
            {
                key: GONE if (value := column[n]) is None else Score(value=value, status="ok")
                for key, column in values.items()
            },
        )
        for n in range(count)
    )
    return MethodScores(name, pooled(stories), stories, {"shots_valid": shots, "shots_requested": 4})


def board(*methods: MethodScores, excluded: tuple[str, ...] = ()) -> Leaderboard:
    return leaderboard(methods, paired(list(combinations(methods, 2)), FEW), FEW, excluded)


def test_ranks_when_lower_is_better_put_the_lowest_first() -> None:
    found = board(method("a", copy_paste_rate=[0.9, 0.8]), method("b", copy_paste_rate=[0.2, 0.1]))
    assert [found.cells[name]["copy_paste_rate"].rank for name in "ab"] == [2, 1]


def test_rank_when_a_method_lacks_a_hard_story_is_over_the_stories_that_all_have() -> None:
    # b has the higher mean, 0.9 against 0.7, but only as it failed on story 03; on 01 and 02 a is better.
    a, b = method("a", cids_cross=[0.95, 0.95, 0.2]), method("b", cids_cross=[0.9, 0.9, None])
    found = board(a, b)
    assert found.cells["a"]["cids_cross"].score.value == pytest.approx(0.7)
    assert found.cells["b"]["cids_cross"].score.value == pytest.approx(0.9)
    assert [found.cells[name]["cids_cross"].rank for name in "ab"] == [1, 2]
    assert [found.cells[name]["cids_cross"].stories for name in "ab"] == [2, 2]
    assert found.cells["a"]["cids_cross"].shared == pytest.approx(0.95)


def test_method_when_it_has_values_for_few_stories_is_not_ranked_and_takes_none_from_others() -> None:
    few = method("few", cids_cross=[0.99, None, None])
    found = board(method("a", cids_cross=[0.5, 0.6, 0.7]), method("b", cids_cross=[0.4, 0.5, 0.6]), few)
    assert found.cells["few"]["cids_cross"].rank is None
    assert found.cells["few"]["cids_cross"].why == "values for 1 of 3 stories only"
    assert found.cells["a"]["cids_cross"].stories == 3
    assert found.methods[-1] == "few"


def test_method_when_excluded_or_without_pictures_is_shown_and_not_ranked() -> None:
    best, empty = method("copy-paste", occm=[100.0, 100.0]), method("empty", 0, occm=[None, None])
    found = board(method("a", occm=[50.0, 60.0]), best, empty, excluded=("copy-paste",))
    assert found.unranked == {"copy-paste": "excluded from ranking", "empty": "no picture"}
    assert found.cells["a"]["occm"].rank == 1
    assert found.cells["copy-paste"]["occm"].rank is None
    assert found.cells["copy-paste"]["occm"].score.value == 100
    assert found.cells["empty"]["occm"].score.value is None
    assert found.methods == ("a", "copy-paste", "empty")


def test_difference_when_twelve_stories_agree_is_significant_and_of_four_is_not() -> None:
    def two(count: int) -> Leaderboard:
        low = [50.0 + n for n in range(count)]
        return board(method("a", occm=low), method("b", occm=[one + 5 + n % 3 for n, one in enumerate(low)]))

    many, few = two(12), two(4)
    assert (many.cells["b"]["occm"].better, many.cells["a"]["occm"].worse) == (("a",), ("b",))
    assert many.cells["a"]["occm"].better == ()
    assert few.cells["b"]["occm"].better == ()  # of 2 ** 4 signs two are as extreme: p = 0.125


def test_inception_when_sets_differ_in_size_ranks_the_largest_ones_only() -> None:
    scored = [method("a", occm=[1.0]), method("b", occm=[1.0]), method("c", occm=[1.0])]
    made = [
        MethodScores(
            one.method, {"inception": Score(value=value, status="ok", counts={"pictures": pictures})},
            one.stories, one.accounting,
        )
        for one, value, pictures in zip(scored, (5.0, 7.0, 9.0), (100, 100, 40), strict=True)
    ]  # fmt: skip
    cells = board(*made).cells
    assert [cells[name]["inception"].rank for name in "abc"] == [2, 1, None]
    assert cells["c"]["inception"].why == "40 pictures, others have 100"
    assert cells["a"]["inception"].low is None
