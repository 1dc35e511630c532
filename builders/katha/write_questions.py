"""Stage: the recoverability questions, with answers that come from the text (Tables 13 and 14)."""

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from .parts import given_list
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="write_questions",
    version=2,
    shape="map",
    reads=("story", "given", "analysis", "scenes", "transitions", "moral_label"),
    writes=("questions", "questions_by"),
    reject_codes={"not_askable": "The text supports no recoverability question."},
    settings=PlannerSettings,
    asks=("katha/write_questions",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the questions and who drafted them; a hand-written list replaces the drafted one."""
    given = given_list(item["given"], "questions")
    if given is not None:
        return Made({"questions": given, "questions_by": None})
    drafted = await planner_of(tools).questions(
        item["story"], item["analysis"], item["scenes"], item["transitions"], item["moral_label"]
    )
    if all(question["question_type"] == "moral" for question in drafted.value):
        return Rejected("not_askable", "no question about its events could be answered from the text")
    return Made({"questions": drafted.value, "questions_by": drafted.maker})
