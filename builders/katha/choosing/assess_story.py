"""Stage: whether a story is fit for the benchmark, judged by a model in the story's language (section C.3).

The rules of ``screen_stories`` can only find cues that speak against a story. Where a model drafts, it judges
each exclusion and each condition of C.3 with a reason. ``unfit`` turns the story away, ``unsure`` leaves the
check without a verdict, which sends the record to people. Without a model nothing is judged here.
"""

from collections.abc import Mapping

from ....schemas.canonical import Json
from ...replies import Problems, by_number, language, needed
from ...step import PlannerSettings, Step, Unfit
from ..drafts import Sketch, make_check

CRITERIA: Mapping[str, str] = {
    "events": "mainly_descriptive",
    "no_wordplay": "wordplay",
    "self_contained": "external_knowledge",
    "one_moral": "several_moral_targets",
    "harmless": "harmful_content",
    "five_scenes": "not_five_scenes",
    "four_transitions": "too_few_transitions",
    "askable": "not_askable",
    "contrastable": "not_contrastable",
}
"""Criterion of the prompt -> the code under which a story that does not meet it is turned away."""

CODES = {
    "mainly_descriptive": "The model finds that it mainly describes.",
    "wordplay": "The model finds that its point is in words that cannot be shown.",
    "external_knowledge": "The model finds that it cannot be understood from its text alone.",
    "several_moral_targets": "The model finds several morals equally plausible.",
    "harmful_content": "The model finds harmful content.",
    "not_five_scenes": "The model finds that five pictures cannot tell it.",
    "too_few_transitions": "The model finds fewer than four changes that matter.",
    "not_askable": "The model finds nothing that can be asked and settled by the text.",
    "not_contrastable": "The model finds no scene that could be told differently.",
}


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    story = sketch.story
    return {"language": language(story), "story": story["normalized_text"], "title": story["title"]}


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the checks of a reply, one for each criterion; an unsure one has no verdict."""
    named = [{**entry, "number": _number(entry)} for entry in reply["criteria"]]
    entries = by_number(named, "number", range(1, len(CRITERIA) + 1), "criteria")
    problems, checks = Problems(), []
    for entry in entries:
        reason = needed(entry, "reason", entry["criterion"], problems)
        passed = {"fit": True, "unfit": False}.get(entry["verdict"])
        said = reason if passed is not None else f"not settled, a person decides: {reason}"
        checks.append(make_check(f"screen_{CRITERIA[entry['criterion']]}", "$.story_text", passed, said))
    problems.settle()
    return checks


def _number(entry: Json) -> int:
    return 1 + list(CRITERIA).index(entry["criterion"])


def _settle(drafted: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    for check in drafted or ():
        if check["passed"] is False:
            raise Unfit(str(check["code"]).removeprefix("screen_"), str(check["note"]))
    return drafted or []


STEP = Step(
    id="katha/assess_story",
    version=2,
    writes=("assessment",),
    reads=("story", "given"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    show=_show,
    read=_read,
    settle=_settle,
    reject_codes=CODES,
)
