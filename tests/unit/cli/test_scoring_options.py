"""Options of scoring that say nothing about the kind of evaluation at hand are refused, not passed over."""

from pathlib import Path

import pytest

from fabula.cli.score import check_options, event_definitions, katha_definitions, suite_of
from fabula.errors import ConfigError
from fabula.evaluation.events.votes import Definitions as EventDefinitions
from fabula.evaluation.recoverability.definitions import Definitions

GIVEN = {
    "--split": ["train"],
    "--matcher": "exact",
    "--voting": "average",
    "--partial": None,
    "--suite": None,
}


def test_options_when_they_are_for_storyboards_are_refused_for_videos_by_name() -> None:
    with pytest.raises(ConfigError) as refused:
        check_options("events", GIVEN)
    assert refused.value.where == "--split, --matcher"
    assert "storyboards (katha)" in str(refused.value) and "--voting" in refused.value.fix


def test_options_when_they_are_for_videos_are_refused_for_storyboards() -> None:
    with pytest.raises(ConfigError, match=r"--voting: only for an evaluation of videos \(events\)"):
        check_options("katha", GIVEN)


@pytest.mark.parametrize("kind", ["katha", "events"])
def test_options_when_none_or_shared_ones_are_given_are_taken(kind: str) -> None:
    check_options(kind, {"--matcher": None, "--split": [], "--voting": None, "--release": Path("x")})


def test_definitions_when_nothing_is_given_are_the_defaults() -> None:
    assert katha_definitions({"seed": 42}, None, 10_000) == Definitions()
    assert event_definitions({"interval": "by-size"}, 10_000) == EventDefinitions()
    assert event_definitions({"nonresponse": "incorrect"}, 0).nonresponse == "zero"


def test_suite_when_given_twice_is_refused() -> None:
    assert suite_of(None, Path("release")) == Path("release")
    with pytest.raises(ConfigError, match="both"):
        suite_of(Path("suite"), Path("release"))
