"""Filters that need results, and difficulty: both thresholds of the paper, and no number without a method."""

import pytest

from fabula.builders.events.grade_prompts import check_judged, grade, labelled
from fabula.builders.events.settings import GradeSettings
from fabula.errors import ConfigError

SIX = tuple(f"{name}.mp4" for name in "abcdef")
RATES = {
    "one": {"a.mp4": 1.0, "b.mp4": 0.5, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": 0.0, "f.mp4": None},
    "two": {"a.mp4": 1.0, "b.mp4": 1.0, "c.mp4": 0.5, "d.mp4": 0.5, "e.mp4": None, "f.mp4": None},
    "weak": {"a.mp4": 0.0, "b.mp4": 0.0, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": None, "f.mp4": None},
}


def test_a_suite_when_graded_takes_the_methods_above_the_average() -> None:
    found = grade(SIX, RATES, GradeSettings(easy=2, hard=1))
    # f has no answer by three methods. Of the others, over one and two: a 1, b 3/4, c 1/2, d 1/4, e 0.
    assert found.dropped == {"f.mp4": ("silent", "no answer for 3 methods (more_than_two)")}
    assert found.methods == ("one", "two")
    assert found.means == {"a.mp4": 1, "b.mp4": 0.75, "c.mp4": 0.5, "d.mp4": 0.25, "e.mp4": 0}
    assert list(found.levels.values()) == ["easy", "easy", "medium", "medium", "hard"]
    assert labelled(("human", "easy", "2_events"), "hard") == ("human", "hard", "2_events")


def test_the_second_filter_when_named_after_the_appendix_drops_more() -> None:
    found = grade(SIX, RATES, GradeSettings(silent="at_least_two", easy=1, hard=1))
    assert set(found.dropped) == {"e.mp4", "f.mp4"}
    exempt = grade(SIX, RATES, GradeSettings(silent="at_least_two", exempt=("weak",), easy=1, hard=1))
    assert set(exempt.dropped) == {"f.mp4"}
    assert grade(SIX, RATES, GradeSettings(silent="off", easy=1, hard=1)).dropped == {}


def test_the_third_filter_when_people_differ_drops_the_prompt() -> None:
    human = {"one": {"a.mp4": 0.0, "b.mp4": 0.5}, "two": {"a.mp4": 1.0}}
    # a: (|0 - 1| + |1 - 1|) / 2 = 0.5
    assert "a.mp4" in grade(SIX, RATES, GradeSettings(max_difference=0.4, easy=1, hard=1), human).dropped
    assert "a.mp4" not in grade(SIX, RATES, GradeSettings(max_difference=0.5, easy=1, hard=1), human).dropped


def test_a_grading_when_it_cannot_be_made_says_why() -> None:
    with pytest.raises(ConfigError, match=r"grade_prompts\.above"):
        grade(SIX, RATES, GradeSettings(above=0.9, easy=1, hard=1))
    with pytest.raises(ConfigError, match=r"grade_prompts\.easy"):
        grade(SIX, RATES, GradeSettings())


def test_a_grading_when_a_prompt_was_never_judged_takes_it_for_neither_silent_nor_hard() -> None:
    rates = {**RATES, "two": {name: rate for name, rate in RATES["two"].items() if name != "b.mp4"}}
    with pytest.raises(ConfigError, match=r"two to be judged on all 6 prompts, found .* 1, such as b\.mp4"):
        check_judged(SIX, rates)
    check_judged([name for name in SIX if name != "b.mp4"], rates)
