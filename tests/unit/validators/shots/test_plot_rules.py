"""Whether the plots of a script are the whole story."""

import pytest

from fabula.schemas.shots import ShotScript
from fabula.validators.shots.script_rules import check_plot

STORY = "A fox saw grapes.  It leapt. It left."


def found(plots: list[str], language: str = "en") -> list[str]:
    shots = [
        {"index": number, "Plot Correspondence": {language: text}} for number, text in enumerate(plots, 1)
    ]
    script = ShotScript.model_validate({"Shots": shots})
    return [f"{one.code} {one.path}" for one in check_plot(script, STORY, language, "01")]


def test_plots_when_they_are_the_story_but_for_white_space_are_fine() -> None:
    assert found(["A fox saw grapes.", "It leapt.\nIt left."]) == []


@pytest.mark.parametrize(
    ("plots", "path"),
    [
        (["A fox saw grapes.", "It left."], "$.Shots[1]['Plot Correspondence'].en"),
        (["It leapt.", "A fox saw grapes. It left."], "$.Shots[0]['Plot Correspondence'].en"),
        (["A fox saw grapes.", "It leapt."], "$.Shots"),
    ],
)
def test_plots_when_something_is_missing_or_out_of_order_are_reported(plots: list[str], path: str) -> None:
    assert found(plots) == [f"plot-coverage {path}"]
