"""Filters that need results, and difficulty: both thresholds of the paper, and no number without a method."""

from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.completion.grading import Grading, grade, rates_of
from fabula.evaluation.completion.human_rates import read_rates
from fabula.evaluation.completion.score import score_archive
from fabula.evaluation.completion.voting import Definitions
from fabula.schemas.events import EventPrompt, Suite


@pytest.fixture
def six() -> Suite:
    entry = {"prompt": "x", "event_list": ["a", "b"], "class": ["human", "easy", "2_events"]}
    return Suite({f"{name}.mp4": EventPrompt.model_validate(entry) for name in "abcdef"})


RATES = {
    "one": {"a.mp4": 1.0, "b.mp4": 0.5, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": 0.0, "f.mp4": None},
    "two": {"a.mp4": 1.0, "b.mp4": 1.0, "c.mp4": 0.5, "d.mp4": 0.5, "e.mp4": None, "f.mp4": None},
    "weak": {"a.mp4": 0.0, "b.mp4": 0.0, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": None, "f.mp4": None},
}


def levels(suite: Suite) -> dict[str, str]:
    return {name[0]: prompt.labels[1] for name, prompt in suite.prompts.items()}


def test_a_suite_when_graded_takes_the_methods_above_the_average(six: Suite) -> None:
    found = grade(six, RATES, Grading(easy=2, hard=1))
    # f has no answer by three methods. Of the others, over one and two: a 1, b 3/4, c 1/2, d 1/4, e 0.
    assert found.dropped == {"f.mp4": "no answer for 3 methods (more_than_two)"}
    assert found.methods == ("one", "two")
    assert found.means == {"a.mp4": 1, "b.mp4": 0.75, "c.mp4": 0.5, "d.mp4": 0.25, "e.mp4": 0}
    assert levels(found.suite) == {"a": "easy", "b": "easy", "c": "medium", "d": "medium", "e": "hard"}
    assert found.suite.prompts["a.mp4"].labels == ("human", "easy", "2_events")


def test_the_second_filter_when_named_after_the_appendix_drops_more(six: Suite) -> None:
    found = grade(six, RATES, Grading(silent="at_least_two", easy=1, hard=1))
    assert set(found.dropped) == {"e.mp4", "f.mp4"}
    exempt = grade(six, RATES, Grading(silent="at_least_two", exempt=("weak",), easy=1, hard=1))
    assert set(exempt.dropped) == {"f.mp4"}
    assert grade(six, RATES, Grading(silent=None, easy=1, hard=1)).dropped == {}


def test_the_third_filter_when_people_differ_drops_the_prompt(six: Suite) -> None:
    human = {"one": {"a.mp4": 0.0, "b.mp4": 0.5}, "two": {"a.mp4": 1.0}}
    # a: (|0 - 1| + |1 - 1|) / 2 = 0.5
    assert "a.mp4" in grade(six, RATES, Grading(max_difference=0.4, easy=1, hard=1), human).dropped
    assert "a.mp4" not in grade(six, RATES, Grading(max_difference=0.5, easy=1, hard=1), human).dropped


def test_a_grading_when_it_cannot_be_made_says_why(six: Suite) -> None:
    with pytest.raises(ConfigError, match="--above"):
        grade(six, RATES, Grading(above=0.9, easy=1, hard=1))
    with pytest.raises(ConfigError, match="--easy, --hard"):
        grade(six, RATES, Grading())


def test_rates_when_taken_from_scores_need_one_judge_and_each_method_once(archive, suite: Suite) -> None:
    scores = score_archive(archive({"a.mp4": [(1, 0), (1, 0)]}), suite, Definitions())
    assert rates_of([scores]) == {"m": {"a.mp4": 0.5, "b.mp4": None, "c.mp4": None}}
    with pytest.raises(ConfigError, match="m twice"):
        rates_of([scores, scores])
    with pytest.raises(ConfigError, match="--judge"):
        rates_of([scores], "nobody")


def test_peoples_rates_when_wrong_list_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "human.tsv"
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\nm\ta.mp4\t1\nm\tb.mp4\t2\n")
    with pytest.raises(InputError) as caught:
        read_rates(path)
    assert len(caught.value.problems) == 2
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\n")
    assert read_rates(path) == {"m": {"a.mp4": 0.5}}
